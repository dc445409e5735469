"""Makes Arrow columns of decoded rows of JSON (json_decoder.py); finds the rows with a text that is no value of its type."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import Any, cast

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Raw
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from eosingest.sources.files.formats.json_text import REJECTED
from eosingest.sources.files.reading.json_decoder import Rows, is_raw, raw_decoder
from eosingest.sources.files.reading.typed_text import TextType
from eosingest.sources.files.reading.typed_text import arrow_type as plain_type
from eosingest.spark.record_settings import CORRUPT

_FIRST_SECOND, _LAST_SECOND = -62135596800, 253402300799  # since 1970: the years 1 to 9999
_WORDS = {
    **dict.fromkeys(("Infinity", "+Infinity", "INF", "+INF"), math.inf),
    **dict.fromkeys(("-Infinity", "-INF"), -math.inf),
    "NaN": math.nan,
}
_Owners = npt.NDArray[np.int64]


def arrow_type(kind: DataType) -> pa.DataType:
    """Return the Arrow type of a column."""
    if isinstance(kind, StructType):
        return pa.struct([pa.field(each.name, arrow_type(each.dataType)) for each in kind.fields])
    if isinstance(kind, ArrayType):
        return pa.list_(arrow_type(kind.elementType))
    return pa.map_(pa.string(), arrow_type(kind.valueType)) if isinstance(kind, MapType) else plain_type(kind)


@dataclass(frozen=True)
class JsonColumns:
    """Makes the columns of a schema. `patterns`: Spark's patterns of dates and times, by type; `words`: NaN is a number."""

    schema: StructType
    patterns: Mapping[type[DataType], str] = field(default_factory=dict)
    words: bool = True

    def batch(self, rows: Rows) -> pa.RecordBatch:
        """Return the columns, followed by the texts of the corrupt rows (record_settings.CORRUPT), null for other rows."""
        made = _Made(self, rows.lenient, np.zeros(len(rows.values), np.bool_))
        made.bad[rows.corrupt] = True
        owners = np.arange(len(rows.values))
        columns = made.fields(self.schema, rows.values, owners)
        corrupt: pa.Array[Any] = pa.nulls(len(rows.values), pa.string())
        if made.bad.any():
            texts = [text if bad else None for text, bad in zip(rows.texts, made.bad, strict=True)]
            corrupt = pa.array(texts, pa.binary()).view(pa.string())  # it need not be UTF-8
        return pa.RecordBatch.from_arrays([*columns, corrupt], names=[*self.schema.names, CORRUPT])


@dataclass(frozen=True)
class _Made:
    """Makes the columns of one batch; `bad` marks its rows. The owner of a value is the place of its row."""

    columns: JsonColumns
    lenient: bool
    bad: npt.NDArray[np.bool_]

    def fields(self, kind: StructType, values: Sequence[Any], owners: _Owners) -> list[pa.Array[Any]]:
        """Return the columns of a struct's fields, of values that may be None."""
        if is_raw(kind):
            return [self._column(each.dataType, self._of_dicts(each, values, owners), owners) for each in kind.fields]
        found = []
        has_nulls = any(value is None for value in values)
        for place, each in enumerate(kind.fields):
            get = attrgetter(f"f{place}")
            inner = [None if value is None else get(value) for value in values] if has_nulls else list(map(get, values))
            found.append(self._column(each.dataType, inner, owners))
        return found

    def _of_dicts(self, field: StructField, values: Sequence[Any], owners: _Owners) -> list[Any]:
        """Return the values of a field in dicts of raw values."""
        decode, found = raw_decoder(field.dataType), list[Any]()
        for place, value in enumerate(values):
            raw = None if value is None else value.get(field.name)
            try:
                found.append(None if raw is None else decode(raw))
            except REJECTED:
                found.append(None)
                self.bad[owners[place]] = True
        return found

    def _column(self, kind: DataType, values: Sequence[Any], owners: _Owners) -> pa.Array[Any]:
        if isinstance(kind, StructType):
            return self._struct(kind, values, owners)
        if isinstance(kind, ArrayType | MapType):
            return self._several(kind, values, owners)
        if isinstance(kind, FloatType | DoubleType | DecimalType) and (
            self.lenient or not isinstance(kind, DoubleType)
        ):
            return self._numbers(kind, values, owners)
        if isinstance(kind, StringType) and self.lenient:
            values = [_string(value) if isinstance(value, Raw) else value for value in values]
        if isinstance(kind, TimestampType):
            return self._moments(values, owners)
        if isinstance(kind, DateType | TimestampNTZType):
            return self._of_texts(kind, pa.array(values, pa.string()), owners)
        return pa.array(values, plain_type(kind))

    def _struct(self, kind: StructType, values: Sequence[Any], owners: _Owners) -> pa.Array[Any]:
        if not kind.fields:
            return pa.array([None if value is None else {} for value in values], pa.struct([]))
        nulls = pa.array([value is None for value in values], pa.bool_())
        fields = list(cast(Any, arrow_type(kind)))
        return pa.StructArray.from_arrays(self.fields(kind, values, owners), fields=fields, mask=nulls)

    def _several(self, kind: ArrayType | MapType, values: Sequence[Any], owners: _Owners) -> pa.Array[Any]:
        lengths = np.fromiter((len(value or ()) for value in values), np.int64, len(values))
        ends = np.concatenate(([0], np.cumsum(lengths)))
        nulls = np.array([value is None for value in values] + [False])
        offsets = pa.array(ends, pa.int32(), mask=nulls)
        given = [value for value in values if value]
        of_each = np.repeat(owners, lengths)
        if isinstance(kind, ArrayType):
            inner = self._column(kind.elementType, list(chain.from_iterable(given)), of_each)
            return pa.ListArray.from_arrays(offsets, inner)
        names = pa.array(list(chain.from_iterable(given)), pa.string())
        inner = self._column(kind.valueType, [each for value in given for each in value.values()], of_each)
        made: pa.Array[Any] = cast(Any, pa.MapArray).from_arrays(offsets, names, inner)
        return made

    def _numbers(self, kind: DataType, values: Sequence[Any], owners: _Owners) -> pa.Array[Any]:
        """Return a column of FLOAT, DOUBLE or DECIMAL; of DOUBLE, values may be numbers already."""
        is_decimal = isinstance(kind, DecimalType)
        texts = [_number(value, in_quotes=is_decimal) if isinstance(value, Raw) else None for value in values]
        found = self._of_texts(kind, pa.array(texts, pa.string()), owners)
        if not isinstance(kind, DoubleType):
            return found
        pairs = zip(values, found.to_pylist(), strict=True)
        numbers = [value if isinstance(value, float) else read for value, read in pairs]
        return pa.array(numbers, pa.float64())

    def _moments(self, values: Sequence[Any], owners: _Owners) -> pa.Array[Any]:
        """Return a column of TIMESTAMP, of texts and of seconds since 1970."""
        try:
            return self._of_texts(TimestampType(), pa.array(values, pa.string()), owners)
        except pa.ArrowTypeError:  # a number
            pass
        texts = [None if isinstance(value, int) else value for value in values]
        found = self._of_texts(TimestampType(), pa.array(texts, pa.string()), owners).cast(pa.int64()).to_pylist()
        for place, value in enumerate(values):
            if isinstance(value, int):
                fits = _FIRST_SECOND <= value <= _LAST_SECOND
                found[place] = value * 1_000_000 if fits else None
                self.bad[owners[place]] |= not fits
        return pa.array(found, pa.int64()).cast(plain_type(TimestampType()))

    def _of_texts(self, kind: DataType, texts: pa.Array[Any], owners: _Owners) -> pa.Array[Any]:
        others = _WORDS if self.columns.words else {}
        found: pa.Array[Any]
        found, marks = TextType(kind, self.columns.patterns.get(type(kind)), others).values(texts)
        if marks is not None:
            self.bad[owners[marks.to_numpy(zero_copy_only=False)]] = True
        return found


def _string(value: Raw) -> str | None:
    """Return the STRING of a value: a text, or the characters of any other value; None for null."""
    text = bytes(value)
    if text == b"null":
        return None
    return msgspec.json.decode(text, type=str) if text.startswith(b'"') else text.decode()


def _number(value: Raw, *, in_quotes: bool) -> str | None:
    """Return the text of a number; None for null. Not `in_quotes`: only words such as "NaN" may be in quotes."""
    text = _string(value)
    if text is None or in_quotes or text in _WORDS or not bytes(value).startswith(b'"'):
        return text
    return ""  # no number
