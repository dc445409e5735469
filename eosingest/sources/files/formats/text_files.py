"""Defines the format entries of text (each line is a record, or, with `wholetext`, each file) and of binary files."""

from __future__ import annotations

from collections.abc import Mapping

from eosingest.sources.files.formats.entry import BOOLEAN, SOME_TEXT, FileFormat, Refusals, says


def is_whole(options: Mapping[str, str]) -> bool:
    """Say whether each file is one value."""
    return says("wholetext", options)


def _refused(options: Mapping[str, str], has_schema: bool) -> Refusals:
    if is_whole(options) and "linesep" in options:
        yield "lineSep", "has no effect with wholetext; drop one of them"


TEXT = FileFormat(
    name="text",
    schema_note="one column, value STRING",
    options={"lineSep": SOME_TEXT, "wholetext": BOOLEAN},  # not encoding: the reader keeps the bytes as they are
    defaults={"wholetext": "false"},
    is_text=True,
    columns={"value": "STRING"},
    value="value",
    is_whole=is_whole,
    refused=_refused,
)
BINARY = FileFormat(
    name="binaryFile",
    schema_note="path, modificationTime, length, and content, the file's bytes",
    options={},
    columns={"path": "STRING", "modificationTime": "TIMESTAMP", "length": "BIGINT", "content": "BINARY"},
    value="content",
    is_whole=lambda options: True,
)
