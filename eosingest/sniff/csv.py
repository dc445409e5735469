"""Detects a CSV file's encoding, delimiter, quotes, header, and the types that all rows fit, with Python's csv."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from itertools import islice, pairwise

from eosingest.errors import FatalError, listed
from eosingest.sniff.found import Column, Found, same_but_for_case
from eosingest.sniff.opened import Opened

_SAMPLE_ROWS = 2_000
_NAMED_AT_MOST = 5
_DELIMITERS = (",", ";", "\t", "|")
_SHOWN = ", ".join(json.dumps(delimiter) for delimiter in _DELIMITERS)
_NUMERIC = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LEADING_ZERO = re.compile(r"-?0[0-9]")
_NAME = re.compile(r"[^\W\d][^\r\n]{0,99}")
_MARKS = ("NA", "N/A", "n/a", "NULL", "null", "\\N", "None", "NaN", "nan")
# Dates and times stay strings: they are strings in JSON anyway.
# A type fits only values whose text can be restored from it: no leading zeros, no plus sign, no spaces.
_TYPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("BIGINT", re.compile(r"-?(?:0|[1-9][0-9]{0,17})")),
    ("DOUBLE", re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,10})?(?:[eE][+-]?[0-9]{1,2})?")),
    ("BOOLEAN", re.compile(r"true|false")),
)


def look(data: Opened) -> Found:
    """Detect options and schema of a CSV file. Raises FatalError for one that this version cannot read."""
    raw, whole = data.bytes()
    text, encoding, notes = _decoded(data, raw)
    delimiter, escape = _dialect(data, text)
    first = next(_rows(text, delimiter, escape), [])
    header, sure = _has_header(first, text, delimiter, escape)
    options: dict[str, str | bool] = {"header": header}
    if delimiter != ",":
        options["sep"] = delimiter
    if '"' in text:
        options["escape"] = escape
    if encoding != "UTF-8":
        options["encoding"] = encoding
    names = first if header else [f"column_{number}" for number in range(1, len(first) + 1)]
    tallies = _tallied(data, names, text, delimiter, escape, header=header)
    columns = tuple(tally.column() for tally in tallies)
    notes += [*_notes_of_marks(tallies), *_notes_of_digits(tallies)]
    over_lines = [tally.name for tally in tallies if tally.over_lines]
    if over_lines:
        options["multiLine"] = True
        if text.partition("\n")[0].endswith("\r"):
            options["lineSep"] = "\r\n"  # without it Spark would take the end of a row for part of its last field
        notes.append(
            f"there are values of several lines ({listed(over_lines, _NAMED_AT_MOST)}): each file is read by one task"
        )
    if header and (same_but_for_case(names) or not all(name.strip() for name in names)):
        notes.append("a name in the header is empty or there twice: Spark names the columns; look at them with preview")
        return Found("csv", options, None, notes=tuple(notes), whole=whole)
    if not header:
        notes.append(
            "the first row looks like data: the columns are named column_1, column_2, …; rename them in the schema. If it is"
            " a header, write header = true and leave the schema out: preview shows the one that is inferred"
        )
    if header and not sure:
        notes.append(
            "the first row is taken for a header, though the rows below look alike: if it is data, header = false"
        )
    if len(names) == 1:
        notes.append(
            f"there is one column: if there should be more, say what stands between them, sep = … (not one of {_SHOWN})"
        )
    return Found("csv", options, columns, notes=tuple(notes), whole=whole)


def _decoded(data: Opened, raw: bytes) -> tuple[str, str, list[str]]:
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in raw[:1000]:
        raise FatalError(
            f"{data.file} is UTF-16 or binary; rows of it cannot be told apart safely",
            code="encoding",
            hint="convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW.csv",
        )
    try:
        return raw.decode("utf-8-sig"), "UTF-8", []
    except UnicodeDecodeError:
        windows = re.search(rb"[\x80-\x9f]", raw) is not None
        encoding = "windows-1252" if windows else "ISO-8859-1"
        note = f"the file is not UTF-8; {encoding} is a guess: look at names and texts with preview"
        return raw.decode("cp1252" if windows else "latin-1", errors="replace"), encoding, [note]


def _rows(text: str, delimiter: str, escape: str) -> Iterator[list[str]]:
    """Yield the rows except empty ones: Spark ignores empty lines."""
    backslash = {"escapechar": "\\", "doublequote": False} if escape == "\\" else {}
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=False, **backslash)  # type: ignore[arg-type]
    return (row for row in reader if row)


def _dialect(data: Opened, text: str) -> tuple[str, str]:
    """Return the delimiter and escape with which all rows have the same number of columns, and the most."""
    escapes = ('"', "\\") if '\\"' in text else ('"',)
    wanted = (
        ("\t",) if data.inner_suffix in (".tsv", ".tab") else ("|",) if data.inner_suffix == ".psv" else _DELIMITERS
    )
    best = (0, wanted[0], '"')
    csv.field_size_limit(1 << 30)
    for delimiter in wanted:
        for escape in escapes:
            widths = [len(row) for row in islice(_rows(text, delimiter, escape), _SAMPLE_ROWS)]
            even = len(set(widths)) == 1
            score = widths[0] if widths and even and widths[0] > 1 else 0
            if score > best[0]:
                best = (score, delimiter, escape)
    return best[1], best[2]


def _has_header(first: list[str], text: str, delimiter: str, escape: str) -> tuple[bool, bool]:
    """Return whether the first row is a header, and whether that is certain: words above values that are not words.

    A header consists of words, perhaps followed by consecutive years or numbers.
    """
    cells = [cell.strip() for cell in first]
    if not any(cells) or all(_TYPES[2][1].fullmatch(cell) for cell in cells):
        return False, False
    numbers = [cell for cell in cells if _is_typed(cell)]
    if numbers and not _counts_up(numbers):
        return False, False
    words = [cell for cell in cells if cell and not _is_typed(cell)]
    like_names = bool(words) and all(_NAME.fullmatch(word) for word in words)
    rest = list(islice(_rows(text, delimiter, escape), 1, 200))
    columns = [
        [row[at] for row in rest if at < len(row) and row[at] and row[at] not in _MARKS] for at in range(len(first))
    ]
    if any(cell and not _is_typed(cell) and cell in column for cell, column in zip(first, columns, strict=True)):
        return False, False
    over_values = [
        cell
        for cell, column in zip(cells, columns, strict=True)
        if cell and cell not in _MARKS and not _is_typed(cell) and column and all(map(_is_typed, column))
    ]
    header = like_names or (len(over_values) > 1 and len(set(words)) == len(words))
    return header, header and bool(over_values or numbers or not rest)


def _is_typed(cell: str) -> bool:
    return _NUMERIC.fullmatch(cell) is not None or any(pattern.fullmatch(cell) for _, pattern in _TYPES)


def _counts_up(numbers: list[str]) -> bool:
    """Say whether numbers look like column names: consecutive years, or ten or more consecutive numbers."""
    if len(numbers) < 3 or not all(_TYPES[0][1].fullmatch(number) for number in numbers):
        return False
    years = all(1500 <= int(number) <= 2500 for number in numbers)
    return (years or len(numbers) >= 10) and all(int(after) == int(before) + 1 for before, after in pairwise(numbers))


def _fits(type_: str, pattern: re.Pattern[str], cell: str) -> bool:
    """Say whether a cell fits a type. DOUBLE also fits a number of many digits if it is exactly how a double is written."""
    if pattern.fullmatch(cell):
        return True
    return type_ == "DOUBLE" and _NUMERIC.fullmatch(cell) is not None and repr(float(cell)) == cell


class _Tally:
    """What a column's values have in common. `marked` counts words that mean "no value", such as R's NA."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.left = list(_TYPES)
        self.values = self.empty = 0
        self.marked: dict[str, int] = {}
        self.numeric = True
        self.long = ""
        self.over_lines = False

    def take(self, cell: str) -> None:
        self.over_lines = self.over_lines or "\n" in cell or "\r" in cell
        if not cell:
            self.empty += 1
        elif cell in _MARKS:
            self.marked[cell] = self.marked.get(cell, 0) + 1
        else:
            self.values += 1
            if self.left:
                self.left = [(type_, pattern) for type_, pattern in self.left if _fits(type_, pattern, cell)]
            self.numeric = self.numeric and _NUMERIC.fullmatch(cell) is not None and not _LEADING_ZERO.match(cell)
            if self.numeric and not self.long and not _fits(*_TYPES[1], cell):
                self.long = cell

    @property
    def type(self) -> str:
        """The narrowest type that fits all values except marks; STRING if none does."""
        return self.left[0][0] if self.values and self.left else "STRING"

    def column(self) -> Column:
        return Column(self.name, "STRING" if self.marked else self.type, not self.empty and not self.marked)


def _tallied(data: Opened, names: list[str], text: str, delimiter: str, escape: str, *, header: bool) -> list[_Tally]:
    """Go through all rows. Raises FatalError for one that has more or fewer fields than the first."""
    tallies = [_Tally(name) for name in names]
    for number, row in enumerate(islice(_rows(text, delimiter, escape), int(header), None), start=1 + int(header)):
        if len(row) != len(names):
            raise FatalError(
                f"{data.file}: row {number} has {len(row)} fields, the first one {len(names)}",
                code="corrupt-row",
                hint="correct the row; is the delimiter another one? Then write the spec by hand: eosingest init",
            )
        for tally, cell in zip(tallies, row, strict=True):
            tally.take(cell)
    return tallies


def _notes_of_digits(tallies: list[_Tally]) -> Iterator[str]:
    """Yield a note on numbers with more digits than a type keeps exactly: only the user knows whether that matters."""
    columns = [tally for tally in tallies if tally.values and tally.numeric and tally.long]
    if columns:
        named = listed([f"{tally.name} ({tally.long})" for tally in columns], _NAMED_AT_MOST)
        yield (
            f"there are numbers of more digits than DOUBLE is sure to keep, which stay text: {named}; where that does not"
            " matter, write DOUBLE, or a DECIMAL of enough digits, into the schema"
        )


def _notes_of_marks(tallies: list[_Tally]) -> Iterator[str]:
    """Yield a note for each mark because of which a column stays a string: only the user knows what the mark means."""
    for mark in _MARKS:
        columns = [
            f"{tally.name} {tally.type}" for tally in tallies if list(tally.marked) == [mark] and tally.type != "STRING"
        ]
        if columns:
            yield (
                f'"{mark}" stands among the values of {len(columns)} columns, which stay text; where it means null, write'
                f" nullValue = {json.dumps(mark)} into options, and into the schema: {', '.join(columns)}"
            )
