"""Reads the header of a CSV file, and makes column names of it: empty and repeated names are replaced, as by Spark.

For the schema of the rows (reading/csv_scan.py): a file's header must have the columns' names, in their order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from eosingest.sources.files.bytes import codecs
from eosingest.sources.files.bytes.text_blocks import BadTextError, blocks, layout
from eosingest.sources.files.formats.csv_rows import Dialect
from eosingest.sources.files.formats.inspection import opened_to_check
from eosingest.sources.files.formats.whole import is_whole
from eosingest.sources.files.formats.whole_csv import Grammar, whole_rows
from eosingest.sources.files.listing.source_file import SourceFile


def names_of(header: Sequence[str | None], null: str = "", *, case_sensitive: bool = False) -> list[str]:
    """Return the names that Spark's CSVUtils.makeSafeHeader makes: `_c0` of an empty one, `a0`, `a1` of equal ones."""
    names = [name or "" for name in header]
    folded = [name if case_sensitive else name.lower() for name in names]
    twice = {name for name, times in Counter(folded).items() if times > 1}
    return [
        f"_c{place}" if name in ("", null) else f"{name}{place}" if folded[place] in twice else name
        for place, name in enumerate(names)
    ]


def first_row(file: SourceFile, options: Mapping[str, str]) -> list[str | None] | None:
    """Return the fields of a file's first row, its header if it has one; None if it has no row, or is damaged there.

    Raises the errors of `inspection.opened_to_check`.
    """
    dialect, found, grammar = Dialect.of(options), layout("csv", options), Grammar.of(options)
    try:
        with opened_to_check(file) as opened:
            pieces = codecs.pieces(opened, file.coded_path)
            if is_whole("csv", options):
                rows = (row for text in whole_rows(pieces, options) for row in grammar.each(text))
            else:
                lines = (line for block in blocks(pieces, found) for line in found.lines(block.text))
                rows = filter(dialect.is_row, lines)  # type: ignore[assignment]
            return next((dialect.fields(row) for row in rows), None)
    except (BadTextError, codecs.DamagedError):
        return None  # the inspection reports it
