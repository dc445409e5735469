"""Parses rows of CSV into Arrow columns of texts and converts these to their types; rows that have no such values are corrupt.

    blocks of whole rows (csv_reader.py) ─┬─▶ regular ones: pyarrow, a block at once ─┬─▶ texts ─▶ typed_text.py ─▶ values
                                          └─▶ others: csv_rows.py, row by row ────────┘

numpy finds the rows that pyarrow reads as csv_rows.py does: every quote opens or closes a field, and there is no escape.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
from pyspark.sql.types import BinaryType

from eosingest.sources.files.bytes.text_blocks import UTF_8_MARK, BadTextError, is_utf_8
from eosingest.sources.files.formats.csv_rows import BLANKS, Dialect, UnclosedFieldError, irregular_lines, lines_with
from eosingest.sources.files.reading.exact_types import type_words
from eosingest.sources.files.reading.typed_text import JAVA_NUMBERS, TextType

_CSV: Any = pyarrow.csv
_COMPUTE: Any = pyarrow.compute
_ARRAYS: Any = pa
_SHOWN = 60  # characters of a value, in a message
_UNIT_SEPARATOR = b"\x1f"


@dataclass(frozen=True)
class Rows:
    """Consecutive rows of a file, without empty lines and comments.

    data: their text in UTF-8, each row with a line feed at its end; None if another line break may be taken for a row's end.
    each: returns the rows one by one, without their ends. `spans`: a quoted field may have line breaks.
    """

    data: bytes | None
    each: Callable[[], list[str]]
    spans: bool = False


@dataclass(frozen=True)
class Texts:
    """The fields of rows: a column of texts, in Arrow, for each column that is wanted.

    `bad` has the rows that have no fields, or too few or too many: all their texts are null.
    """

    columns: Sequence[Any]
    count: int
    bad: Sequence[int]


@dataclass(frozen=True)
class CsvColumns:
    """The columns to read of rows with `width` fields: names, places and types. `null` is `nullValue`, `empty` `emptyValue`.

    `inspected`: a quoted field that does not end in its line is a corrupt row, for previews; otherwise it ends the read.
    """

    dialect: Dialect
    width: int
    names: tuple[str, ...]
    places: tuple[int, ...]
    types: tuple[TextType, ...]
    null: str = ""
    empty: str = ""
    inspected: bool = True

    def narrowed(self, names: frozenset[str]) -> CsvColumns:
        """Return only the columns with these names."""
        kept = [at for at, name in enumerate(self.names) if name in names]
        kept_names, places = [self.names[at] for at in kept], [self.places[at] for at in kept]
        return replace(self, names=tuple(kept_names), places=tuple(places), types=tuple(self.types[at] for at in kept))

    def decode(self, rows: Rows) -> tuple[list[Any], Any]:
        """Return the columns, and a column with the text of each corrupt row, null for the others.

        Raises BadTextError for bytes that are no UTF-8.
        """
        texts = self.texts(rows)
        corrupt = np.zeros(texts.count, bool)
        corrupt[list(texts.bad)] = True
        columns = []
        for column, kind in zip(texts.columns, self.types, strict=True):
            values, marks = (
                (column.cast(pa.binary()), None) if isinstance(kind.kind, BinaryType) else kind.values(column)
            )
            columns.append(values)
            if marks is not None:
                corrupt |= marks.to_numpy(zero_copy_only=False)
        if not corrupt.any():
            return columns, _ARRAYS.nulls(texts.count, pa.string())
        each = rows.each()
        return columns, pa.array([row if bad else None for row, bad in zip(each, corrupt, strict=True)], pa.string())

    def why(self, rows: Sequence[str]) -> list[str]:
        """Return why each of these rows is corrupt; "" for one that is not."""
        reasons, fields = [""] * len(rows), dict[int, list[str | None]]()
        for at, row in enumerate(rows):
            try:
                found = self.dialect.fields(row)
            except BadTextError as bad:
                reasons[at] = bad.message
                continue
            if len(found) == self.width:
                fields[at] = found
            else:
                reasons[at] = f"it has {len(found):,} fields, and there are {self.width:,} columns"
        for name, place, kind in zip(self.names, self.places, self.types, strict=True):
            if isinstance(kind.kind, BinaryType):
                continue
            texts = {at: self._text(row[place]) for at, row in fields.items() if not reasons[at]}
            marks = kind.values(pa.array(texts.values(), pa.string()))[1]
            for at in itertools.compress(texts, marks.to_pylist() if marks is not None else ()):
                reasons[at] = f"column {name} is {type_words(kind.kind)}, and its text is {str(texts[at])[:_SHOWN]}"
        return reasons

    def texts(self, rows: Rows) -> Texts:
        """Return the fields as texts: null if they are `null`, or empty and not quoted. Raises the error of `decode`."""
        data, irregular = rows.data, None
        if data is not None and self.width and self.dialect.quote.isascii():
            irregular = self._irregular(data, spans=rows.spans)
        if data is None or irregular is None:
            return self._one_by_one(rows.each())
        if not irregular:
            return self._at_once(data, spans=rows.spans) or self._one_by_one(rows.each())
        each, few = rows.each(), set(irregular)
        regular = "".join(f"{row}\n" for at, row in enumerate(each) if at not in few).encode()
        found = self._at_once(regular, spans=False)
        if found is None:
            return self._one_by_one(each)
        return _merged(found, self._one_by_one([each[at] for at in irregular]), irregular)

    def _irregular(self, data: bytes, *, spans: bool) -> list[int] | None:
        """Return the rows that pyarrow does not read as `Dialect.fields` does; None if that is not known."""
        dialect, quote = self.dialect, self.dialect.quote.encode()
        if not quote or (quote not in data and (dialect.doubles or not dialect.escape)):
            return []
        if spans:  # the grammar of whole_csv.py has proven them
            return [] if dialect.doubles and not dialect.is_trimmed else None
        if dialect.is_trimmed and dialect.doubles:
            return lines_with(data, quote)
        found = irregular_lines(data, dialect)
        if found is None or dialect.doubles or not dialect.escape:
            return found
        if not dialect.escape.isascii() or dialect.is_trimmed:
            return None
        return sorted({*found, *lines_with(data, dialect.escape.encode())})

    def _at_once(self, data: bytes, *, spans: bool) -> Texts | None:
        """Parse rows by pyarrow; None if it does not find as many rows as there are lines."""
        delimiter = self.dialect.delimiter.encode()
        if len(delimiter) > 1:
            if _UNIT_SEPARATOR in data:
                return None
            data, delimiter = data.replace(delimiter, _UNIT_SEPARATOR), _UNIT_SEPARATOR
        bad: list[int] = []

        def skip(row: Any) -> Literal["skip"]:
            bad.append(row.number - 1)
            return "skip"

        count = data.count(b"\n")
        if not data:
            return self._nothing(0)
        parse = _CSV.ParseOptions(
            delimiter=delimiter.decode(),
            quote_char=self.dialect.quote or False,
            double_quote=self.dialect.doubles and bool(self.dialect.quote),
            newlines_in_values=spans,
            ignore_empty_lines=True,
            invalid_row_handler=skip,
        )
        # pyarrow removes a mark from every buffer, and this one belongs to the first field.
        if data.startswith(UTF_8_MARK):
            data = UTF_8_MARK + data
        try:
            table = _CSV.read_csv(pa.BufferReader(data), self._read_options(len(data)), parse, self._convert_options())
        except pa.ArrowInvalid as error:
            if not is_utf_8(data):
                raise BadTextError("bytes that are no UTF-8") from error
            return None
        if not spans and len(table) + len(bad) != count:
            return None
        columns = [self._cleaned(_chunk(table.column(str(place)))) for place in self.places]
        found = Texts(columns, len(table), ())
        return found if not bad else _merged(found, self._nothing(len(bad)), bad)

    def _nothing(self, count: int) -> Texts:
        """Return rows without fields."""
        return Texts([_ARRAYS.nulls(count, pa.string()) for _ in self.places], count, range(count))

    def _read_options(self, length: int) -> Any:
        names = [str(place) for place in range(self.width)]
        return _CSV.ReadOptions(use_threads=False, block_size=length + 1, column_names=names)

    def _convert_options(self) -> Any:
        wanted = [str(place) for place in self.places] or ["0"]
        return _CSV.ConvertOptions(
            include_columns=wanted,
            column_types=dict.fromkeys(wanted, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=self._empty_is_null,
        )

    @property
    def _empty_is_null(self) -> bool:
        return self.empty == self.null == ""

    def _cleaned(self, column: Any) -> Any:
        """Return a column of texts with nulls and empty texts as the options say."""
        if self.dialect.skips_space:
            column = _COMPUTE.utf8_ltrim(column, BLANKS)
        if self.dialect.drops_space:
            column = _COMPUTE.utf8_rtrim(column, BLANKS)
        if self.dialect.is_trimmed:
            column = _null_where(column, "")
        if self.empty and not self.dialect.is_trimmed:
            column = _COMPUTE.if_else(_COMPUTE.equal(column, ""), self.empty, column)
        return column if self._empty_is_null and not self.dialect.is_trimmed else _null_where(column, self.null)

    def _one_by_one(self, rows: Sequence[str]) -> Texts:
        """Parse rows by `Dialect.fields`."""
        found, bad = list[Sequence[str | None]](), list[int]()
        for at, row in enumerate(rows):
            try:
                fields = self.dialect.fields(row)
            except BadTextError as error:
                if isinstance(error, UnclosedFieldError) and not self.inspected:
                    raise  # the lines after it are no rows either
                fields = []
            if len(fields) != self.width:
                bad.append(at)
                fields = [None] * self.width
            found.append([self._text(fields[place]) for place in self.places])
        columns = zip(*found, strict=True) if found else [[] for _ in self.places]
        return Texts([pa.array(column, pa.string()) for column in columns], len(rows), bad)

    def _text(self, field: str | None) -> str | None:
        field = self.empty if field == "" else field
        return None if field == self.null else field


def _merged(found: Texts, others: Texts, places: Sequence[int]) -> Texts:
    """Return the rows of `found` with the `others` between them, which are at these places of the result."""
    count = found.count + others.count
    taken = np.ones(count, bool)
    taken[list(places)] = False
    order: npt.NDArray[np.int64] = np.empty(count, np.int64)
    order[taken] = np.arange(found.count)
    order[~taken] = found.count + np.arange(others.count)
    rest = np.flatnonzero(taken)
    columns = [
        pa.concat_arrays([one, other]).take(pa.array(order))
        for one, other in zip(found.columns, others.columns, strict=True)
    ]
    return Texts(columns, count, sorted([*(int(rest[at]) for at in found.bad), *(places[at] for at in others.bad)]))


def _null_where(column: Any, text: str) -> Any:
    return _COMPUTE.if_else(_COMPUTE.equal(column, text), pa.scalar(None, pa.string()), column)


def _chunk(column: Any) -> Any:
    """Return a column as one array."""
    found = column.combine_chunks()
    return (
        found
        if isinstance(found, pa.Array)
        else (found.chunk(0) if found.num_chunks else _ARRAYS.nulls(0, column.type))
    )


def text_types(options: Mapping[str, str], kinds: Sequence[Any]) -> tuple[TextType, ...]:
    """Return how the values of these types are written, by the options of a spec."""
    numbers = {
        **JAVA_NUMBERS,
        options.get("nanValue", "NaN"): float("nan"),
        options.get("positiveInf", "Inf"): float("inf"),
        options.get("negativeInf", "-Inf"): float("-inf"),
    }
    formats = {"date": "dateFormat", "timestamp": "timestampFormat", "timestamp_ntz": "timestampNTZFormat"}
    return tuple(TextType(kind, options.get(formats.get(kind.simpleString(), "")), numbers) for kind in kinds)
