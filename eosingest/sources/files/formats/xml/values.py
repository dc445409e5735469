"""Converts the text of an element or attribute to a value of its type, exactly as XML Schema's types define, or refuses it.

Between document.py, which provides the texts, and the columns of the reader (reading/xml_reader.py): DATE is a number of days,
TIMESTAMP one of microseconds, both since 1970. No value depends on a time zone, a language or the current day: the text of a
TIMESTAMP contains its zone, that of a TIMESTAMP_NTZ none.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from decimal import Context, Decimal, Inexact, InvalidOperation
from fractions import Fraction
from typing import Any

from eosingest.sources.files.formats import times
from eosingest.spec.ddl import Type

WHITE = " \t\r\n"  # white space in XML
_WHOLE = re.compile(r"[+-]?[0-9]+")
_FRACTION = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_FLOATING = re.compile(_FRACTION.pattern + r"(?:[eE][+-]?[0-9]+)?")
_NO_NUMBERS = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf, "NaN": math.nan}
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_DATE = re.compile(r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})")
_TIME = re.compile(
    _DATE.pattern + r"[T ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
    r"(?:\.(?P<fraction>[0-9]+))?(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?"
)
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_EXACTLY = Context(prec=38, traps=[Inexact, InvalidOperation])  # a DECIMAL has at most 38 digits
_LONGEST_NUMBER = 1000  # characters of a number: a longer one is of no use, and slow to convert


class BadValueError(Exception):
    """A text is no value of its type; `hint` is the remedy, if one is known."""

    def __init__(self, why: str = "", hint: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.hint = hint


def converter(kind: Type) -> Callable[[str], Any]:
    """Return the function that converts text to a plain type. Its text is neither empty nor only white space."""
    if kind.name in _BITS:
        bits = _BITS[kind.name]
        return lambda text: _whole(text, bits)
    if kind.name == "DECIMAL":
        return lambda text: _decimal(text, kind.precision, kind.scale)
    others: dict[str, Callable[[str], Any]] = {
        "STRING": str,
        "BOOLEAN": _boolean,
        "DOUBLE": _double,
        "FLOAT": _float,
        "DATE": _date,
        "TIMESTAMP": _timestamp,
        "TIMESTAMP_NTZ": _timestamp_ntz,
    }
    return others[kind.name]


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text.strip(WHITE)) if len(text) < _LONGEST_NUMBER else None
    if found is None:
        raise BadValueError
    return found


def _boolean(text: str) -> bool:
    value = _BOOLEANS.get(text.strip(WHITE))
    if value is None:
        raise BadValueError("true, false, 1 and 0 are")
    return value


def _whole(text: str, bits: int) -> int:
    value = int(_matched(_WHOLE, text).group())
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise BadValueError("it is beyond the type")
    return value


def _decimal(text: str, precision: int, scale: int) -> Decimal:
    number = Decimal(_matched(_FRACTION, text).group())
    try:
        value = _EXACTLY.quantize(number, Decimal((0, (1,), -scale)))
    except Inexact as error:
        raise BadValueError("it has more decimals than the type") from error
    except InvalidOperation as error:
        raise BadValueError("it is beyond the type") from error
    if abs(value) >= 10 ** (precision - scale):
        raise BadValueError("it is beyond the type")
    return value


def _double(text: str) -> float:
    text = text.strip(WHITE)
    if text in _NO_NUMBERS:
        return _NO_NUMBERS[text]
    value = float(_matched(_FLOATING, text).group())
    _refuse_beyond(text, value)
    return value


def _refuse_beyond(text: str, value: float) -> None:
    is_zero = not re.search("[1-9]", re.split("[eE]", text)[0])
    if math.isinf(value) or (value == 0 and not is_zero):
        raise BadValueError("it is beyond the type")


def _float(text: str) -> float:
    """Round the text only once: a DOUBLE between two FLOATs may be closer to another FLOAT than the text is."""
    double = _double(text)
    if math.isinf(double) or math.isnan(double):
        return double
    try:
        value = _of_32_bits(double)
    except OverflowError as error:
        raise BadValueError("it is beyond the type") from error
    _refuse_beyond(text.strip(WHITE), value)
    for other in (_beside(value, -1), _beside(value, 1)):
        if other != value and (value + other) / 2 == double:
            exact = Fraction(text.strip(WHITE))
            return other if abs(Fraction(other) - exact) < abs(Fraction(value) - exact) else value
    return value


def _of_32_bits(value: float) -> float:
    rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return rounded


def _beside(value: float, step: int) -> float:
    """Return the adjacent FLOAT; the same one for 0 and at the ends of the range."""
    (bits,) = struct.unpack("<i", struct.pack("<f", value))
    found: float = struct.unpack("<f", struct.pack("<i", bits + step))[0] if bits & 0x7FFFFFFF else value
    return found if math.isfinite(found) else value


def _date(text: str) -> int:
    return _read(times.days, _matched(_DATE, text))


def _timestamp(text: str) -> int:
    found = _moment(text)
    if found["zone"] is None:
        raise BadValueError("it has no time zone", "take TIMESTAMP_NTZ for times without a zone")
    return _read(times.in_utc, found)


def _timestamp_ntz(text: str) -> int:
    found = _moment(text)
    if found["zone"] is not None:
        raise BadValueError("it has a time zone", "take TIMESTAMP for times with a zone")
    return _read(times.microseconds, found)


def _moment(text: str) -> re.Match[str]:
    found = _matched(_TIME, text)
    if len((found["fraction"] or "").rstrip("0")) > 6:
        raise BadValueError("it is finer than microseconds")
    return found


def _read(number: Callable[[re.Match[str]], int], found: re.Match[str]) -> int:
    try:
        return number(found)
    except times.BadTimeError as error:
        raise BadValueError(str(error)) from error
