"""The checks of a format's text in the inspection (inspection.py): which files need them, and one pass over the pieces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eosingest.sources.csv_scan import CsvScan
from eosingest.sources.json_scan import JsonScan
from eosingest.sources.text_blocks import BadTextError, ambiguous_separator, blocks, layout

__all__ = ["BadTextError", "check_text", "needs_text_check"]


def needs_text_check(format: str, options: Mapping[str, str]) -> bool:
    """Say whether files of a format must be looked through: text goes through as it is, but for where it is cut."""
    return format in ("csv", "json") or (format == "text" and ambiguous_separator(layout(format, options).end))


def check_text(pieces: Iterable[bytes], format: str, options: Mapping[str, str], first_split: int | None) -> None:
    """Look through a file's pieces. Raises BadTextError for what Spark would read otherwise than it is written.

    `first_split` is the length in bytes of the first of several splits, None where the file has one only.
    """
    found = layout(format, options)
    if first_split is not None and ambiguous_separator(found.end):
        raise BadTextError(
            f"lineSep {found.separator!r} begins with a byte that it holds again: at the border of two splits a line may be"
            " cut in the wrong place",
            hint="set source.split_size above the size of the largest file, so that each is one split",
        )
    if format == "csv":
        CsvScan(options, first_split).check(blocks(pieces, found))
    elif format == "json":
        JsonScan(options).check(blocks(pieces, found))
