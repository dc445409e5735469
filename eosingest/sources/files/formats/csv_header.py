"""Reads the header of a CSV file, and checks the column names that Spark makes of empty and repeated names in it.

For reading/rows.py: Spark names such columns by position (`_c0`, `a0`, `a1`). With `enforceSchema = false` its check of the
header then finds other names in the file.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence

from eosingest.sources.files.bytes import codecs
from eosingest.sources.files.bytes.text_blocks import BadTextError, blocks, layout
from eosingest.sources.files.formats.csv_scan import CONTROLS, Dialect
from eosingest.sources.files.formats.inspection import opened_to_check
from eosingest.sources.files.formats.whole import is_whole
from eosingest.sources.files.formats.whole_csv import first_row
from eosingest.sources.files.listing.source_file import SourceFile


def may_be_given(columns: Sequence[str]) -> bool:
    """Say whether Spark may have made one of these names from an empty or repeated one."""
    return any(name.endswith(str(place)) for place, name in enumerate(columns))


def names_as_given(
    file: SourceFile, options: Mapping[str, str], columns: Sequence[str], *, case_sensitive: bool
) -> bool:
    """Say whether Spark makes these names of the file's header; True if the file has no header."""
    header = _header(file, options)
    if header is None:
        return True
    fold = str if case_sensitive else str.lower
    given = names_of(header, options.get("nullValue", ""), case_sensitive=case_sensitive)
    return [*map(fold, given)] == [*map(fold, columns)]


def names_of(header: Sequence[str], null: str = "", *, case_sensitive: bool = False) -> list[str]:
    """Return the names that Spark's CSVUtils.makeSafeHeader makes."""
    folded = [name if case_sensitive else name.lower() for name in header]
    twice = {name for name, times in Counter(folded).items() if times > 1}
    return [
        f"_c{place}" if name in ("", null) else f"{name}{place}" if folded[place] in twice else name
        for place, name in enumerate(header)
    ]


def _header(file: SourceFile, options: Mapping[str, str]) -> list[str] | None:
    dialect, found = Dialect.of(options), layout("csv", options)
    try:
        with opened_to_check(file) as opened:
            if is_whole("csv", options):
                row = first_row(codecs.pieces(opened, file.coded_path), options)
                return _fields(row, dialect) if row else None
            for block in blocks(codecs.pieces(opened, file.coded_path), found):
                for line in found.lines(block.text):
                    if line.strip(CONTROLS) and not (dialect.comment and line.startswith(dialect.comment)):
                        return _fields(line, dialect)
    except (BadTextError, codecs.DamagedError):
        pass  # the inspection reports it
    return None


def _fields(line: str, dialect: Dialect) -> list[str]:
    if len(dialect.delimiter) > 1 or not dialect.quote:
        return line.split(dialect.delimiter)
    doubled = dialect.escape == dialect.quote
    reader = csv.reader(
        [line],
        delimiter=dialect.delimiter,
        quotechar=dialect.quote,
        doublequote=doubled,
        escapechar=None if doubled or not dialect.escape else dialect.escape,
        skipinitialspace=dialect.skips_space,
    )
    return next(reader)
