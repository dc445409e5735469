"""Converts texts to values of Spark's types for an audit, by the grammar of docs/reading.md, with Python's own types.

No code of it is in the conversion of a run (typed_text.py), which has Arrow cast whole columns.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import (
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

from eosingest.spark.record_settings import CORRUPT

BITS: Mapping[type[DataType], int] = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
_BOOLEAN = re.compile("true|false")
_SIGN_AND_DIGITS = re.compile(r"[+-]?[0-9]{1,400}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")
_BLANKS = "".join(map(chr, [*range(0x21), 0x7F]))
_DAY = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]+))?)?")
_MIDNIGHT = re.compile(r"[T ]00:00(:00(\.0+)?)?(Z|[+-]00:?00)?")
_EXACT = Context(prec=2_000, rounding=ROUND_HALF_UP)
_ISO = re.compile(
    "[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}"
    r"(?:\.[0-9]{3}(?:[0-9]{3})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})"
)
_NOTHING = datetime.timedelta()
_FARTHEST = datetime.timedelta(hours=14)


def converter(kind: DataType, words: Mapping[str, float]) -> Callable[[str], Any]:
    """Return the function from a text to a value of a plain type other than BINARY; it raises ValueError for any other text.

    `words` are the texts of numbers that have no digits, such as NaN, with their values.
    """
    if isinstance(kind, StringType):
        return str
    if type(kind) in BITS:
        return lambda text: in_range(int(matched(_SIGN_AND_DIGITS, text)), BITS[type(kind)])
    if isinstance(kind, DecimalType):
        return lambda text: _decimal(text, kind)
    number = float if isinstance(kind, DoubleType) else _single
    if isinstance(kind, FloatType | DoubleType):
        return lambda text: words[text] if text in words else number(matched(_NUMBER, text.strip(_BLANKS)))
    found: Mapping[type[DataType], Callable[[str], Any]] = {
        BooleanType: lambda text: matched(_BOOLEAN, text.lower()) == "true",
        DateType: _date,
        TimestampType: _in_utc,
        TimestampNTZType: _local,
    }
    return found[type(kind)]


def batch_of(schema: pa.Schema, rows: Sequence[Sequence[Any]], corrupt: Sequence[bytes | None]) -> pa.RecordBatch:
    """Return the columns of rows, followed by the texts of the corrupt rows (record_settings.CORRUPT), null for others."""
    columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(schema.types)]
    texts = pa.array(corrupt, pa.binary()).view(pa.string())  # they need not be UTF-8
    return pa.RecordBatch.from_arrays([*columns, texts], names=[*schema.names, CORRUPT])


def in_range(number: int, bits: int) -> int:
    """Return a whole number. Raises ValueError if it has more bits."""
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError(number)
    return number


def matched(pattern: re.Pattern[str], text: str) -> str:
    """Return the text. Raises ValueError if the pattern does not match all of it."""
    if not pattern.fullmatch(text):
        raise ValueError(text)
    return text


def _decimal(text: str, kind: DecimalType) -> Decimal:
    if not _THOUSANDS.fullmatch(text):
        matched(_NUMBER, text)
    number = Decimal(text.replace(",", ""))
    if number.adjusted() > 1_000:
        raise ValueError(text)
    found = number.quantize(Decimal(1).scaleb(-kind.scale), context=_EXACT)
    if abs(found) >= Decimal(10) ** (kind.precision - kind.scale):
        raise ValueError(text)
    return found


def _single(text: str) -> float:
    """Return the float of 32 bits that is nearest to the number as it is written; of two the even one."""
    with np.errstate(over="ignore"):
        near = np.float32(float(text))
        if not np.isfinite(near) or not near:
            return float(near)
        others = [near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))]
    exact = Fraction(Decimal(text))
    finite = [each for each in others if np.isfinite(each)]
    return float(min(finite, key=lambda each: (abs(Fraction(float(each)) - exact), int(each.view(np.uint32)) & 1)))


# ---- dates and times -------------------------------------------------------------------------------------------------


def _date(text: str) -> datetime.date:
    day, rest = _day_and_rest(text.strip(_BLANKS))
    if rest:
        matched(_MIDNIGHT, rest)
    return day


def _local(text: str) -> datetime.datetime:
    moment, zone = _moment(text)
    if zone:
        raise ValueError(text)
    return moment


def _in_utc(text: str) -> datetime.datetime:
    try:
        if _ISO.fullmatch(text):  # four times as fast
            moment = datetime.datetime.fromisoformat(text)
            if abs(moment.utcoffset() or _NOTHING) <= _FARTHEST:
                return moment.astimezone(datetime.UTC)
        moment, zone = _moment(text)
        return (moment - _offset(zone)).replace(tzinfo=datetime.UTC)
    except OverflowError as error:
        raise ValueError(text) from error


def _moment(text: str) -> tuple[datetime.datetime, str]:
    """Return the time that a text says, and the text of its zone."""
    text = text.strip(_BLANKS)
    if re.fullmatch("[0-9]{4}", text):
        return datetime.datetime(int(text), 1, 1), ""
    day, rest = _day_and_rest(text)
    if not rest:
        return datetime.datetime.combine(day, datetime.time()), ""
    found = _TIME.match(rest, 1) if rest[0] in "T " else None
    if found is None:
        raise ValueError(text)
    hour, minute, second, fraction = (part or "0" for part in found.groups())
    time = datetime.time(int(hour), int(minute), int(second), int(fraction[:6].ljust(6, "0")))
    return datetime.datetime.combine(day, time), rest[found.end() :]


def _day_and_rest(text: str) -> tuple[datetime.date, str]:
    found = _DAY.match(text)
    if found is None:
        raise ValueError(text)
    year, month, day = map(int, found.groups())
    return datetime.date(year, month, day), text[found.end() :]


def _offset(zone: str) -> datetime.timedelta:
    """Return by how much a zone is before UTC."""
    name = zone.removeprefix(" ")
    if not zone or name in ("Z", "UTC", "GMT"):
        return datetime.timedelta()
    sign, digits = name[:1], name[1:]
    is_short = ":" in digits or len(digits) < 3
    parts = digits.split(":") if is_short else [digits[at : at + 2] for at in range(0, len(digits), 2)]
    is_right = len(parts) <= 3 and all(re.fullmatch("[0-9]{1,2}", part) for part in parts)
    if sign not in ("+", "-") or not is_right or (not is_short and len(digits) % 2):
        raise ValueError(zone)
    hours, minutes, seconds = [*map(int, parts), 0, 0][:3]
    size = datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if minutes > 59 or seconds > 59 or size > _FARTHEST:
        raise ValueError(zone)
    return size if sign == "+" else -size
