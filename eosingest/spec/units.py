"""Parses sizes and durations such as `32MiB` and `1h30m`. Plain numbers are bytes and seconds.

pydantic's own types do not fit: ByteSize reads `4g` as 4·10⁹ where Spark reads 4·2³⁰; its timedelta refuses `60s`.
Messages never show the text itself, which may come from a reference.
"""

from __future__ import annotations

import math
import re

KIB = 1024
MIB = 1024 * KIB

_SIZE_UNITS = {
    "": 1,
    "B": 1,
    "kB": 1000,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "TB": 1000**4,
    "KiB": KIB,
    "MiB": MIB,
    "GiB": 1024**3,
    "TiB": 1024**4,
}
# Units of Spark's JavaUtils.byteStringAs in lower case: unless spelled as in _SIZE_UNITS, they are ambiguous, and refused.
_SPARKS_UNITS = frozenset({"k", "m", "g", "t", "p", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib"})
_DURATION_UNITS = {
    "ms": 0.001,
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}

_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_SIZE_UNIT = "|".join(sorted(filter(None, _SIZE_UNITS), key=len, reverse=True))
_DURATION_UNIT = "|".join(sorted(_DURATION_UNITS, key=len, reverse=True))
_DURATION_PART = rf"({_NUMBER}) *({_DURATION_UNIT})"

SIZE_PATTERN = rf"^{_NUMBER} *({_SIZE_UNIT})?$"
DURATION_PATTERN = rf"^({_NUMBER}|{_DURATION_PART}( *{_DURATION_PART})*)$"

_NOT_A_SIZE = 'not a size; write "64KiB", "32MiB", "1GiB" (powers of 1024), "5MB" (powers of 1000) or a number of bytes'
_SPARKS_UNIT = (
    'the unit is ambiguous: Spark reads "g" and "m" as powers of 1024, others as powers of 1000; '
    'write "GiB", "MiB", "KiB"'
)
_NOT_A_DURATION = 'not a duration; write "500ms", "60s", "5 min", "1h30m" or a number of seconds'


def parse_size(value: object) -> int:
    """Return bytes from `"32MiB"`, `"500kB"` or a number of bytes. Raises ValueError, without the text."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise ValueError(_NOT_A_SIZE)
        return value
    if not isinstance(value, str):
        raise ValueError(_NOT_A_SIZE)
    text = value.strip()
    match = re.fullmatch(rf"({_NUMBER}) *([A-Za-z]*)", text)
    if match is None:
        raise ValueError(_NOT_A_SIZE)
    number, unit = match.groups()
    if unit not in _SIZE_UNITS:
        raise ValueError(_SPARKS_UNIT if unit.lower() in _SPARKS_UNITS else _NOT_A_SIZE)
    return round(float(number) * _SIZE_UNITS[unit]) if "." in number else int(number) * _SIZE_UNITS[unit]


def parse_duration(value: object) -> float:
    """Return seconds from `"60s"`, `"5 min"`, `"1h30m"` or a number of seconds. Raises ValueError, without the text."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not math.isfinite(value) or value < 0:
            raise ValueError(_NOT_A_DURATION)
        return float(value)
    if not isinstance(value, str):
        raise ValueError(_NOT_A_DURATION)
    text = value.strip()
    if re.fullmatch(_NUMBER, text):
        return float(text)
    if not re.fullmatch(DURATION_PATTERN, text):
        raise ValueError(_NOT_A_DURATION)
    return sum(float(number) * _DURATION_UNITS[unit] for number, unit in re.findall(_DURATION_PART, text))
