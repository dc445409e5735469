"""Checks the text of a format for the inspection (inspection.py): which files need it, and one pass through their pieces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eosingest.sources.files.bytes.text_blocks import BadTextError, blocks, layout
from eosingest.sources.files.formats.csv_check import CsvCheck
from eosingest.sources.files.formats.json_scan import JsonScan
from eosingest.sources.files.formats.unknown_fields import KnownFields
from eosingest.sources.files.formats.whole import is_whole
from eosingest.sources.files.formats.whole_csv import whole_rows
from eosingest.sources.files.formats.whole_json import check_json

__all__ = ["BadTextError", "can_be_parted", "check_text", "needs_text_check"]


def needs_text_check(format: str) -> bool:
    """Say whether the text of such files must be checked."""
    return format in ("csv", "json")


def can_be_parted(format: str, options: Mapping[str, str]) -> bool:
    """Say whether a file may be checked in parts that begin after line feeds."""
    found = layout(format, options)
    lines = format in ("csv", "json") and not is_whole(format, options)
    return lines and found.width == 1 and found.separator is None


def check_text(
    pieces: Iterable[bytes],
    format: str,
    options: Mapping[str, str],
    *,
    from_start: bool = True,
    fields: KnownFields | None = None,
) -> bool:
    """Check a file's pieces. Raises BadTextError for the first text that is not exactly rows.

    Not `from_start`: the pieces are a later part of the file, and lines are counted from there. Returns whether the first line
    of JSON was in the pieces. `fields`: see `JsonScan`.
    """
    if format == "json" and is_whole(format, options):
        check_json(pieces, options, fields)
        return True
    if format == "csv" and is_whole(format, options):
        for _ in whole_rows(pieces, options):
            pass
        return True
    found = layout(format, options)
    if format == "csv":
        CsvCheck(options).check(blocks(pieces, found, from_start=from_start))
        return True
    scan = JsonScan(options, from_start=from_start, fields=fields)
    return scan.check(blocks(pieces, found, from_start=from_start))
