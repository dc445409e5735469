"""Converts columns of texts to values of Spark's types, exactly, and marks the texts that are no value of their type.

    texts ─▶ the common spelling: cast by Arrow, a column at once ─┐
         └─▶ any other text: converted in Python, one by one ──────┴─▶ values, marks

For formats whose values are texts (CSV, folders) or may be (JSON). No value depends on a time zone, a language or the current
day: a TIMESTAMP without a zone is in UTC. docs/reading.md has the grammar of each type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from eosingest.sources.files.formats import times

_COMPUTE: Any = pyarrow.compute
_ARRAYS: Any = pa
_ARROW: Mapping[type[DataType], pa.DataType] = {
    StringType: pa.string(),
    BinaryType: pa.binary(),
    BooleanType: pa.bool_(),
    ByteType: pa.int8(),
    ShortType: pa.int16(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
    DateType: pa.date32(),
    TimestampType: pa.timestamp("us", tz="UTC"),
    TimestampNTZType: pa.timestamp("us"),
}
JAVA_NUMBERS: Mapping[str, float] = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_BLANKS = r"[\x00-\x20\x7f]*"
_MONTH_AND_DAY = r"-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})"
_YEAR = r"(?P<year>[0-9]{4})"
_ZONE = r"(?P<zone>Z|UTC|GMT|[+-](?:[0-9]{1,2}(?::[0-9]{1,2}){0,2}|[0-9]{4}|[0-9]{6}))"
_TIME = (
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]+))?)?"
    rf"(?:\ ?{_ZONE})?"
)
_MIDNIGHT = r"[T ]00:00(?::00(?:\.0+)?)?(?:Z|[+-]00:?00)?"
_DATE = re.compile(f"{_BLANKS}{_YEAR}{_MONTH_AND_DAY}(?:{_MIDNIGHT})?{_BLANKS}")
_MOMENT = re.compile(f"{_BLANKS}{_YEAR}(?:{_MONTH_AND_DAY}(?:[T ]{_TIME})?)?{_BLANKS}")
_WHOLE = re.compile(r"[+-]?[0-9]{1,400}")
_FRACTION = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_FLOATING = re.compile(rf"{_BLANKS}({_FRACTION}){_BLANKS}")
_DECIMAL = re.compile(rf"{_FRACTION}|[+-]?[0-9]{{1,3}}(?:,[0-9]{{3}})+(?:\.[0-9]*)?")
_ROUNDED = Context(prec=2_000, rounding=ROUND_HALF_UP)
_MOST_EXPONENT = 1_000  # of a DECIMAL: a larger one is of no use, and slow
# What the patterns take Arrow's cast reads as the converters do, or fails. Years far from 1 and 9999, where types end.
_DAY = "[1-8][0-9]{3}-[0-9]{2}-[0-9]{2}"
_PLAIN_TIME = rf"{_DAY}[T ][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(\.[0-9]{{1,6}})?"
_PLAIN: Mapping[type[DataType], str] = {
    BooleanType: "^(true|false)$",
    **dict.fromkeys((ByteType, ShortType, IntegerType, LongType), "^-?[0-9]{1,18}$"),
    **dict.fromkeys((FloatType, DoubleType), r"^-?[0-9]{1,30}(\.[0-9]{1,30})?$"),
    DateType: f"^{_DAY}$",
    TimestampType: rf"^{_PLAIN_TIME}(Z|[+-](0[0-9]|1[0-3]):[0-5][0-9])$",
    TimestampNTZType: f"^{_PLAIN_TIME}$",
}


def arrow_type(kind: DataType) -> pa.DataType:
    """Return the Arrow type of the values of a plain type."""
    if isinstance(kind, DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    return _ARROW[type(kind)]


@dataclass(frozen=True)
class TextType:
    """A type, and how its values are written.

    pattern: Spark's pattern of a date or a time (times.py); None for ISO 8601, in which a time may lack seconds and zone.
    others: the texts of a FLOAT or DOUBLE that are no digits, with their values.
    """

    kind: DataType
    pattern: str | None = None
    others: Mapping[str, float] = field(default_factory=lambda: JAVA_NUMBERS)

    def values(self, texts: Any) -> tuple[Any, Any | None]:
        """Return the values of texts, nulls for null, and marks (true) of the texts that are no value: None if there are none.

        The values of marked texts are null.
        """
        if isinstance(self.kind, StringType):
            return texts, None
        if isinstance(self.kind, TimestampType) and self.pattern is None:
            texts = _with_zone(texts)
        plain, values = self._plain(texts)
        rest = _COMPUTE.indices_nonzero(_COMPUTE.and_(texts.is_valid(), _COMPUTE.invert(plain)))
        if not len(rest):
            return values, None
        convert, converted, bad = self._converter(), [], []
        for at, text in zip(rest.to_pylist(), texts.take(rest).to_pylist(), strict=True):
            try:
                converted.append(convert(text))
            except (ValueError, InvalidOperation):
                converted.append(None)
                bad.append(at)
        mask = _COMPUTE.and_(texts.is_valid(), _COMPUTE.invert(plain))
        values = _COMPUTE.replace_with_mask(values, mask, pa.array(converted, arrow_type(self.kind)))
        return values, _marked(bad, len(texts)) if bad else None

    def _plain(self, texts: Any) -> tuple[Any, Any]:
        """Return which texts Arrow converts (true), and their values, null for others."""
        kind = arrow_type(self.kind)
        pattern = self._plain_pattern()
        if pattern is not None:
            plain = _COMPUTE.fill_null(_COMPUTE.match_substring_regex(texts, pattern), False)
            try:
                some = _COMPUTE.if_else(plain, texts, pa.scalar(None, pa.string()))
                return plain, some.cast(kind)
            except pa.ArrowInvalid:
                pass
        return pa.array([False] * len(texts), pa.bool_()), _ARRAYS.nulls(len(texts), kind)

    def _plain_pattern(self) -> str | None:
        if self.pattern is not None:
            return None
        if isinstance(self.kind, DecimalType):
            before, after = self.kind.precision - self.kind.scale, self.kind.scale
            fraction = rf"(\.[0-9]{{1,{after}}})?" if after else ""
            return f"^-?[0-9]{{1,{before}}}{fraction}$" if before else None
        return _PLAIN.get(type(self.kind))

    def _converter(self) -> Callable[[str], Any]:
        kind = self.kind
        if isinstance(kind, ByteType | ShortType | IntegerType | LongType):
            bits = arrow_type(kind).bit_width
            return lambda text: _whole(text, bits)
        if isinstance(kind, FloatType | DoubleType):
            return lambda text: _floating(text, self.others, single=isinstance(kind, FloatType))
        if isinstance(kind, DecimalType):
            return lambda text: _decimal(text, kind.precision, kind.scale)
        if isinstance(kind, BooleanType):
            return lambda text: {"true": True, "false": False}[_known(text.lower())]
        return self._of_time()

    def _of_time(self) -> Callable[[str], int]:
        """Return the converter of a DATE, a TIMESTAMP or a TIMESTAMP_NTZ."""
        default = _DATE if isinstance(self.kind, DateType) else _MOMENT
        grammar = default if self.pattern is None else times.compiled(self.pattern)
        numbers: dict[type[DataType], Callable[[re.Match[str]], int]]
        numbers = {DateType: times.day, TimestampType: times.in_utc, TimestampNTZType: _local}
        number = numbers[type(self.kind)]

        def convert(text: str) -> int:
            found = grammar.fullmatch(text)
            if found is None:
                raise ValueError
            return number(found)

        return convert


def _with_zone(texts: Any) -> Any:
    """Return the texts with `Z` at the end of times without a zone."""
    local = _COMPUTE.match_substring_regex(texts, _PLAIN[TimestampNTZType])
    return _COMPUTE.if_else(local, _COMPUTE.binary_join_element_wise(texts, "Z", ""), texts)


def _marked(places: list[int], length: int) -> Any:
    marks = [False] * length
    for place in places:
        marks[place] = True
    return pa.array(marks, pa.bool_())


def _known(text: str) -> str:
    if text not in ("true", "false"):
        raise ValueError
    return text


def _whole(text: str, bits: int) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError
    value = int(text)
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError
    return value


def _floating(text: str, others: Mapping[str, float], *, single: bool) -> float:
    """Return a number, rounded once to its type; one that is too large for it is infinite, as in Java."""
    if text in others:
        return others[text]
    found = _FLOATING.fullmatch(text)
    if found is None:
        raise ValueError
    if not single:
        return float(found[1])
    return float(pa.array([found[1].removeprefix("+")]).cast(pa.float32())[0].as_py())


def _decimal(text: str, precision: int, scale: int) -> Decimal:
    if not _DECIMAL.fullmatch(text):
        raise ValueError
    number = Decimal(text.replace(",", ""))
    if number.adjusted() > _MOST_EXPONENT:
        raise ValueError
    value = _ROUNDED.quantize(number, Decimal((0, (1,), -scale)))
    if abs(value) >= 10 ** (precision - scale):
        raise ValueError
    return value


def _local(found: re.Match[str]) -> int:
    if found.groupdict().get("zone") is not None:
        raise ValueError
    return times.microseconds(found)
