"""Reads the header of a CSV file, and makes column names of it: empty and repeated names are replaced, as by Spark.

For the schema of the rows (reading/csv_scan.py): a file's header must have the columns' names, in their order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from eosingest.errors import FatalError
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


def first_row(
    file: SourceFile, options: Mapping[str, str], split_size: int | None = None, *, inspected: bool = True
) -> list[str | None] | None:
    """Return the fields of a file's first row, its header if it has one; None if it has no row.

    Raises FatalError if the file is cut at `split_size` bytes, and the row begins later: it would be sent as a row. A file that
    is damaged there is None if it is `inspected`, else a FatalError. Raises the errors of `inspection.opened_to_check`.
    """
    dialect = Dialect.of(options)
    try:
        with opened_to_check(file) as opened:
            at, row = next(_rows(codecs.pieces(opened, file.coded_path), options, dialect), (0, None))
            if split_size is not None and file.splittable and at > split_size:
                raise FatalError(
                    f"{file.name}: the header begins at byte {at:,}, after the first split, and would be sent as a row",
                    code="bad-data",
                    hint="nothing of this run was sent; take the lines before it out, or set source.split_size above it",
                )
            return None if row is None else dialect.fields(row)
    except (BadTextError, codecs.DamagedError) as bad:
        if inspected:
            return None  # the inspection reports it
        raise FatalError(
            f"{file.name}: its first row: {bad.message}",
            code="bad-data",
            hint="; ".join(filter(None, ("nothing of this run was sent", bad.hint))),
        ) from bad


def _rows(pieces: Iterator[bytes], options: Mapping[str, str], dialect: Dialect) -> Iterator[tuple[int, str]]:
    """Yield the rows, each with the byte at which it begins; 0 where a file is read as a whole."""
    if is_whole("csv", options):
        grammar = Grammar.of(options)
        yield from ((0, row) for text in whole_rows(pieces, options) for row in grammar.each(text))
        return
    found = layout("csv", options)
    ends = re.compile("\r\n|\r|\n" if found.separator is None else re.escape(found.separator))
    for block in blocks(pieces, found):
        begin = 0
        for line in found.lines(block.text):
            if dialect.is_row(line):
                yield block.offset + len(block.text[:begin].encode(found.encoding)), line
            end = ends.search(block.text, begin)
            begin = len(block.text) if end is None else end.end()
