"""Detects a CSV file's encoding, dialect and header with Python's csv, and types that keep all values with pyarrow."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice, pairwise, product
from operator import itemgetter
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

from eosingest.errors import FatalError, listed
from eosingest.sniff import preamble
from eosingest.sniff.csv_dialect import DELIMITERS, Dialect
from eosingest.sniff.input import Opened
from eosingest.sniff.result import Column, Found, is_kept_by_double, same_but_for_case
from eosingest.sources.files.formats.csv_header import names_of

_CSV: Any = pyarrow.csv
_COMPUTE: Any = pyarrow.compute  # without its scalars: they import pandas, which takes half a second
_SAMPLE_ROWS, _SAMPLE_CHARACTERS, _HEADER_ROWS = 2_000, 1 << 20, 200
_FEW = 1_000  # up to so many values are checked one by one
_SHOWN_DIGITS = 40
_NAMED_AT_MOST = 5
_LEAST_OVER_TOTAL = 3  # rows, with the total
_SHOWN = ", ".join(json.dumps(delimiter) for delimiter in DELIMITERS)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMERIC = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER = re.compile(f"(?!-?0[0-9]){_NUMERIC.pattern}")  # no type would restore a leading zero
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")
# Numbers of at most 15 digits among texts that pyarrow parses as doubles: a double keeps their values.
_SHORT = re.compile(r"^-?(?:[1-9](?:[0-9.]{0,13}[0-9])?|0(?:\.[0-9]{1,14})?)(?:[eE][+-]?[0-9]{1,2})?$")
_NAME = re.compile(r"[^\W\d][^\r\n]{0,99}")
_TYPED = re.compile(f"{_NUMERIC.pattern}|true|false")
_MARKS = ("NA", "N/A", "n/a", "NULL", "null", "\\N", "None", "NaN", "nan")
_IS_MARK = f"^(?:{'|'.join(map(re.escape, _MARKS))})$"


def look(data: Opened) -> Found:
    """Detect options and schema of a CSV file. Raises FatalError for one that this version cannot read."""
    raw, whole = data.bytes()
    text, encoding, notes = _decoded(data, raw)
    preamble.refuse_separator_line(data, text)
    sample = _sample(text)
    dialect, (first, *rest) = _dialect(data, sample, cut=len(sample) < len(text))
    if len(first) == 1:
        preamble.refuse_title(data, sample)
    header, sure = _has_header(first, rest[:_HEADER_ROWS])
    lines = io.StringIO(sample, newline="")
    next(dialect.rows(lines), [])
    end = lines.tell()
    options = {"header": header, **dialect.options(text)}
    if encoding != "UTF-8":
        options["encoding"] = encoding
    names = _names(data, first, notes) if header else [f"column_{number}" for number in range(1, len(first) + 1)]
    try:
        table = _read(data, text[end * header :], len(first), dialect, int(header), whole=whole)
    except FatalError as error:
        raise preamble.with_way_out(error, data, sample, dialect, whole=whole and sample == text) from None
    columns, over_lines = _judged(names, table, notes, quotes=dialect.quote in text)
    if any("\n" in name or "\r" in name for name in names):
        over_lines.insert(0, "the header")
    if over_lines:
        options["multiLine"] = True
        if text[:end].endswith("\r\n"):
            options["lineSep"] = "\r\n"  # without it each row would end in a wrong place
        notes.append(
            f"there are values of several lines ({listed(over_lines, _NAMED_AT_MOST)}): each file is read by one task"
        )
    guesses = (
        (not header, "the first row looks like data: the columns are named column_1, column_2, …; rename them in the schema. If"
         " it is a header, write header = true and leave the schema out: preview shows the one that is inferred"),
        (header and not sure, "the first row is taken for a header, though the rows below look alike: if it is data, header ="
         " false"),
        (len(names) == 1, "there is one column: if there should be more, name the separator, sep = … (not one of"
         f" {_SHOWN})"),
    )  # fmt: skip
    notes += [note for was_made, note in guesses if was_made]
    return Found("csv", options, tuple(columns), notes=tuple(notes), whole=whole)


def delimited(data: Opened) -> Found | None:
    """Detect a CSV file by its content: names above rows of as many fields, or numbers in columns; None for other text."""
    text = data.head.decode("utf-8-sig", "replace")
    sample = text[: text.rfind("\n") + 1] or text
    dialect, (first, *rest) = _dialect(data, sample, cut=False)
    if not rest or len(first) < 2 or {len(first)} != {len(row) for row in rest}:
        return None
    header, sure = _has_header(first, rest)
    if header:
        names = first[:-1] if not first[-1] else first
        taken = all(map(_IDENTIFIER.fullmatch, names)) and not same_but_for_case(names) and (sure or len(names) > 2)
    else:
        columns = [[row[at] for row in (first, *rest) if row[at]] for at in range(len(first))]
        numbers = sum(bool(column) and all(map(_TYPED.fullmatch, column)) for column in columns)
        taken = len(first) > 2 and numbers > (dialect.delimiter == ",")
    try:
        found = look(data) if taken else None
    except FatalError:
        return None  # lines of text, or rows that a run would refuse
    note = (
        'it is taken for csv by its content; to send its lines as they are: format = "text", without options and schema'
    )
    return None if found is None else replace(found, notes=(note, *found.notes))


def _sample(text: str) -> str:
    return text[: text.find("\n", _SAMPLE_CHARACTERS) + 1 or None]


def _names(data: Opened, header: list[str], notes: list[str]) -> list[str]:
    """Return the names of the columns: others where a name is empty or there twice, which is noted."""
    names = names_of(header)
    if names == header:
        return names
    if same_but_for_case(names):
        raise FatalError(
            f"{data.file}: its header has names twice, and the names that would replace them are there already",
            code="csv-header",
            hint="rename the columns in the file",
        )
    new = [name for name, given in zip(names, header, strict=True) if name != given]
    notes.append(
        f"a name in the header is empty or there twice: these columns are called {listed(new, _NAMED_AT_MOST)}"
    )
    return names


def _decoded(data: Opened, raw: bytes) -> tuple[str, str, list[str]]:
    if b"\0" in raw[:1000]:
        raise FatalError(
            f"{data.file} has zero bytes; its rows cannot be separated safely",
            code="encoding",
            hint="is it another format? Or write it again without them",
        )
    try:
        return raw.decode("utf-8-sig"), "UTF-8", []
    except UnicodeDecodeError:
        windows = re.search(rb"[\x80-\x9f]", raw) is not None
        encoding = "windows-1252" if windows else "ISO-8859-1"
        note = f"the file is not UTF-8; {encoding} is a guess: check names and texts with preview"
        return raw.decode("cp1252" if windows else "latin-1", errors="replace"), encoding, [note]


def _dialect(data: Opened, sample: str, *, cut: bool) -> tuple[Dialect, list[list[str]]]:
    """Return the dialect that splits all rows of a sample into equally many fields, the most; and these rows.

    Of two with equally many, prefer the one without text between a closing quote and the next delimiter, then double quotes.
    """
    quotes = [('"', '"'), *([('"', "\\")] if '\\"' in sample else []), *([("'", "'")] if "'" in sample else [])]
    wanted = {".tsv": "\t", ".tab": "\t", ".psv": "|"}.get(data.inner_suffix, DELIMITERS)
    best: Any = ((-1, False), Dialect(wanted[0]), [[""]])
    for delimiter, (quote, escape), strict in product(wanted, quotes, (True, False)):
        dialect = Dialect(delimiter, quote, escape)
        with suppress(csv.Error):
            rows = list(islice(dialect.rows(io.StringIO(sample, newline=""), strict=strict), _SAMPLE_ROWS))
            rows = (rows[:-1] if cut else rows) or rows or [[""]]
            width = len(rows[0]) if len(set(map(len, rows))) == 1 and len(rows[0]) > 1 else 0
            if quote == "'" and best[0][0] > 0:  # an apostrophe is no quote where all rows have as many fields anyway
                break
            best = max(best, ((width, strict and width > 0), dialect, rows), key=itemgetter(0))
    return best[1], best[2]


def _has_header(first: list[str], rest: list[list[str]]) -> tuple[bool, bool]:
    """Return whether the first row is a header, and whether that is certain: words above values that are not words.

    A header consists of words, perhaps followed by consecutive years or numbers.
    """
    cells = [cell.strip() for cell in first]
    if not any(cells) or all(cell in ("true", "false") for cell in cells):
        return False, False
    numbers = [cell for cell in cells if _TYPED.fullmatch(cell)]
    if numbers and not _counts_up(numbers):
        return False, False
    columns = [
        (cell, [row[at] for row in rest if at < len(row) and row[at] and row[at] not in _MARKS])
        for at, cell in enumerate(cells)
        if cell and not _TYPED.fullmatch(cell)
    ]
    if any(cell in values for cell, values in columns):
        return False, False
    words = [cell for cell, _ in columns]
    like_names = bool(words) and all(map(_NAME.fullmatch, words))
    over_values = [
        cell for cell, values in columns if cell not in _MARKS and values and all(map(_TYPED.fullmatch, values))
    ]
    header = like_names or (len(over_values) > 1 and len(set(words)) == len(words))
    return header, header and bool(over_values or numbers or not rest)


def _counts_up(numbers: list[str]) -> bool:
    """Say whether numbers look like column names: consecutive years, or ten or more consecutive numbers."""
    if len(numbers) < 3 or not all(_WHOLE.fullmatch(number) for number in numbers):
        return False
    years = all(1500 <= int(number) <= 2500 for number in numbers)
    return (years or len(numbers) >= 10) and all(int(after) == int(before) + 1 for before, after in pairwise(numbers))


def _read(data: Opened, text: str, width: int, dialect: Dialect, above: int, *, whole: bool) -> Iterable[Any]:
    """Return each column as pyarrow infers it, with the marks as nulls, and as texts; an empty text is null in both.

    Raises FatalError for a row with another number of fields, unless the end of the data cuts it; `above` rows precede `text`.
    """
    uneven: list[Any] = []

    def skip(row: Any) -> Literal["skip"]:
        uneven.append(row)
        return "skip"

    raw, names = text.encode() or b"\n", [str(at) for at in range(width)]
    read = _CSV.ReadOptions(use_threads=False, column_names=names, block_size=len(raw) + 1)
    parse = _CSV.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True, invalid_row_handler=skip)
    parse.quote_char = dialect.quote
    if dialect.escape == "\\":
        parse.escape_char, parse.double_quote = "\\", False
    convert = partial(_CSV.ConvertOptions, strings_can_be_null=True, true_values=["true"], false_values=["false"])
    as_texts = convert(null_values=[""], column_types=dict.fromkeys(names, pa.string()))
    as_typed = convert(null_values=["", *_MARKS])
    typed, texts = (_CSV.read_csv(pa.BufferReader(raw), read, parse, to).columns for to in (as_typed, as_texts))
    if uneven and (whole or uneven[0].number <= len(texts[0])):
        raise FatalError(
            f"{data.file}: row {uneven[0].number + above} has {uneven[0].actual_columns} fields, the first one {width}",
            code="corrupt-row",
            hint="correct the row; is the delimiter another one? Then write the spec by hand: eosingest init",
        )
    return zip(typed, texts, strict=True)


def _judged(
    names: list[str], table: Iterable[Any], notes: list[str], *, quotes: bool
) -> tuple[list[Column], list[str]]:
    """Return the columns, and the names of those whose values have several lines; add notes on the user's choices."""
    columns: list[Column] = []
    over_lines, long, totals = [], [], []
    marked: dict[str, list[str]] = {}
    for name, (typed, texts) in zip(names, table, strict=True):
        always, marks = typed.null_count == 0, []
        if typed.null_count > texts.null_count:
            is_mark = _COMPUTE.match_substring_regex(texts, _IS_MARK)
            marks, texts = texts.filter(is_mark).unique().to_pylist(), texts.filter(_COMPUTE.invert(is_mark))
            typed = typed.drop_null()
        type_, number = _type(typed, texts)
        if number:
            long.append(f"{name} ({number if len(number) <= _SHOWN_DIGITS else f'{len(number):,} characters'})")
        if type_ != "STRING" and len(marks) == 1:
            marked.setdefault(marks[0], []).append(f"{name} {type_}")
        if type_ == "STRING" and quotes and _COMPUTE.any(_COMPUTE.match_substring_regex(texts, "[\r\n]")).as_py():
            over_lines.append(name)
        if type_ == "STRING" and not marks and _is_number_but_for_the_last(texts):
            totals.append(name)
        columns.append(Column(name, "STRING" if marks else type_, always))
    notes += [
        f'"{mark}" is among the values of {len(named)} columns, which stay text; where it means null, write'
        f" nullValue = {json.dumps(mark)} into options, and into the schema: {', '.join(named)}"
        for mark, named in marked.items()
    ]
    if totals:
        notes.append(
            f"only the last row has no number in {listed(totals, _NAMED_AT_MOST)}: if it is a total, remove it from the file"
        )
    if long:
        notes.append(
            f"there are numbers of more digits than DOUBLE is sure to keep, which stay text: {listed(long, _NAMED_AT_MOST)};"
            " where that does not matter, write DOUBLE, or a DECIMAL of enough digits, into the schema"
        )
    return columns, over_lines


def _is_number_but_for_the_last(texts: Any) -> bool:
    """Say whether all texts but the last one are numbers, by the first and the last ones before all are compared."""
    if len(texts) < _LEAST_OVER_TOTAL or texts[-1].as_py() is None or _TYPED.fullmatch(texts[-1].as_py()):
        return False
    some = [
        text for text in (*texts[:_HEADER_ROWS].to_pylist()[: len(texts) - 1], texts[-2].as_py()) if text is not None
    ]
    if not some or not all(map(_NUMERIC.fullmatch, some)):
        return False
    return bool(_COMPUTE.all(_COMPUTE.match_substring_regex(texts[:-1], f"^(?:{_NUMERIC.pattern})$")).as_py())


def _type(typed: Any, texts: Any) -> tuple[str, str]:
    """Return the type that keeps all texts, given the one that pyarrow infers, and the first number that no type keeps.

    Dates and times stay strings: they are strings in JSON anyway.
    """
    if typed.type not in (pa.int64(), pa.float64()):
        return ("BOOLEAN" if typed.type == pa.bool_() else "STRING"), ""
    left = texts
    if len(texts) > _FEW and _COMPUTE.all(_COMPUTE.is_finite(typed)).as_py():  # drop those that the type restores
        if typed.type == pa.float64():
            is_long = _COMPUTE.invert(_COMPUTE.match_substring_regex(texts, _SHORT.pattern))
            typed, left = typed.filter(is_long), texts.filter(is_long)
        left = left.filter(_COMPUTE.not_equal(typed.cast(pa.string()), left))
    numbers = _unique(left)
    if typed.type == pa.int64():
        if all(map(_WHOLE.fullmatch, numbers)):
            return "BIGINT", ""
        numbers = _unique(texts)  # a double may not keep those that BIGINT restores
    if not all(map(_NUMBER.fullmatch, numbers)):
        return "STRING", ""
    long = next((number for number in numbers if not _is_kept(number)), "")
    return ("STRING", long) if long else ("DOUBLE", "")


def _unique(texts: Any) -> list[str]:
    return [text for text in texts.unique().to_pylist() if text is not None]


def _is_kept(number: str) -> bool:
    """Say whether the double nearest to a number has its value. Whole numbers of many digits are ids, not doubles."""
    is_id = number.lstrip("-").isdigit()
    return bool(_SHORT.fullmatch(number)) or (not is_id and is_kept_by_double(number))
