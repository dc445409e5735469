"""Parses dates and times in texts: by a regular expression with named groups, which is a grammar or one of Spark's patterns.

    pattern of Spark, such as dd/MM/yyyy ─▶ compiled ─▶ regular expression ─▶ match ─▶ days, microseconds

No value depends on a time zone, a language or the current day. Years are those from 1 to 9999. Patterns are read as Spark reads
them (https://spark.apache.org/docs/latest/sql-ref-datetime-pattern.html): upper and lower case are one, names are English.
"""

from __future__ import annotations

import datetime
import re
from functools import lru_cache

_DAY_US = 86_400_000_000
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_FIRST_DAY, _LAST_DAY = datetime.date.min.toordinal() - _EPOCH, datetime.date.max.toordinal() - _EPOCH
_MOST_ZONE_MINUTES = 14 * 60
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_SHORT, _LONG = r"[+-][0-9]{2}[0-9]{2}", r"[+-][0-9]{2}:[0-9]{2}"  # offsets of time zones
_HOURS = r"[+-][0-9]{2}(?:[0-9]{2})?"
_ZONES = {"X": f"Z|{_HOURS}", "XX": f"Z|{_SHORT}", "XXX": f"Z|{_LONG}", "x": _HOURS, "xx": _SHORT, "xxx": _LONG}
_ZONES |= {"Z": _SHORT, "ZZ": _SHORT, "ZZZ": _SHORT, "ZZZZZ": f"Z|{_LONG}"}
_NUMBERS = {"M": "month", "L": "month", "d": "day", "H": "hour", "h": "hour12", "m": "minute", "s": "second"}
_LETTERS = {
    **{letter: (group, "[0-9]{1,2}") for letter, group in _NUMBERS.items()},
    **{letter * 2: (group, "[0-9]{2}") for letter, group in _NUMBERS.items()},
    **{letters: ("zone", zone) for letters, zone in _ZONES.items()},
    **dict.fromkeys(("y", "u"), ("year", "[0-9]{1,4}")),
    **dict.fromkeys(("yy", "uu"), ("year2", "[0-9]{2}")),
    **dict.fromkeys(("yyyy", "uuuu"), ("year", "[0-9]{4}")),
    **dict.fromkeys(("MMM", "LLL"), ("name", "|".join(name[:3] for name in _MONTHS))),
    **dict.fromkeys(("MMMM", "LLLL"), ("name", "|".join(_MONTHS))),
    "a": ("half", "AM|PM"),
}
_ALIKE = (("year", "year2"), ("month", "name"), ("hour", "hour12"))  # groups of a pattern that mean the same
_PIECE = re.compile(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|(.)", re.DOTALL)


class BadTimeError(ValueError):
    """The text is no date or no time."""


class BadPatternError(ValueError):
    """The pattern cannot be used for reading."""


@lru_cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a pattern of Spark. Raises BadPatternError with the reason."""
    made, groups, open_number = "", set[str](), False
    for piece in _PIECE.finditer(pattern):
        quoted, letters, _, other = piece.groups()
        if letters is None:
            made += "(?:" if other == "[" else ")?" if other == "]" else re.escape(_unquoted(quoted, other))
            open_number = False
            continue
        group, found = _LETTERS.get(letters) or _fraction(letters)
        if group in groups:
            raise BadPatternError(f"it has '{letters}' twice, or next to letters of the same meaning")
        if open_number and found.startswith("[0-9]"):
            raise BadPatternError(f"nothing separates '{letters}' from the number of any length before it")
        groups.add(group)
        open_number = found in ("[0-9]{1,2}", "[0-9]{1,4}")
        made += f"(?P<{group}>{found})"
    if ("hour12" in groups) != ("half" in groups):
        raise BadPatternError("'h' and 'a' belong together; 'H' is the hour of 24")
    try:
        return re.compile(made, re.IGNORECASE | re.ASCII)
    except re.error as error:
        raise BadPatternError("its brackets do not match") from error


def _unquoted(quoted: str | None, other: str | None) -> str:
    return (quoted.replace("''", "'") or "'") if quoted is not None else other or ""


def _fraction(letters: str) -> tuple[str, str]:
    if not letters.strip("S") and len(letters) <= 9:
        return "fraction", f"[0-9]{{1,{len(letters)}}}"
    raise BadPatternError(f"'{letters}' is not supported")


def days(found: re.Match[str]) -> int:
    """Return the days since 1970-01-01 of the match of a grammar. Parts that it does not have are those of 1970-01-01.

    A text that says the same in two ways, as `Jan 05` for `MMM MM`, is refused, of its time of day too.
    """
    part = found.groupdict()
    if any(part.get(one) and part.get(other) for one, other in _ALIKE):
        raise BadTimeError("it says the same in two ways")
    year = int(part.get("year") or 1970) if part.get("year2") is None else 2000 + int(part["year2"])
    month = int(part.get("month") or 1)
    if part.get("name"):
        month = next(number for number, name in enumerate(_MONTHS, 1) if name[:3].lower() == part["name"][:3].lower())
    try:
        return datetime.date(year, month, int(part.get("day") or 1)).toordinal() - _EPOCH
    except ValueError as error:
        raise BadTimeError("there is no such day") from error


def day(found: re.Match[str]) -> int:
    """Return the days since 1970-01-01 of a text that may also have a time of day and a zone, which must exist."""
    microseconds(found, of_day=True)
    _offset_us(found.groupdict().get("zone"))
    return days(found)


def microseconds(found: re.Match[str], *, of_day: bool = False) -> int:
    """Return the microseconds since 1970 in the time zone of the text. Digits after the sixth of a second are cut off.

    `of_day`: since midnight.
    """
    part = found.groupdict()
    hour = int(part.get("hour") or 0)
    if part.get("half") or part.get("hour12"):
        hour = int(part.get("hour12") or 0)
        if not part.get("half") or not 1 <= hour <= 12:
            raise BadTimeError("there is no such time of day")
        hour = hour % 12 + 12 * (part["half"].lower() == "pm")
    minute, second = int(part.get("minute") or 0), int(part.get("second") or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise BadTimeError("there is no such time of day")
    fraction = int((part.get("fraction") or "")[:6].ljust(6, "0"))
    since_midnight = ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction
    return since_midnight if of_day else days(found) * _DAY_US + since_midnight


def in_utc(found: re.Match[str]) -> int:
    """Return the microseconds since 1970 in UTC, in which a text without a zone is."""
    moment = microseconds(found) - _offset_us(found.groupdict().get("zone"))
    if not _FIRST_DAY <= moment // _DAY_US <= _LAST_DAY:
        raise BadTimeError("in UTC it is outside of the years 1 to 9999")
    return moment


def _offset_us(zone: str | None) -> int:
    """Return the microseconds by which a zone (`Z`, `UTC`, `+02:00`, `+0200`, `+2`, `+02:00:00`) is before UTC."""
    if zone is None or zone.lower() in ("z", "utc", "gmt"):
        return 0
    hours, minutes, seconds = _parts_of_offset(zone[1:])
    if minutes > 59 or seconds > 59 or hours * 60 + minutes + (seconds > 0) > _MOST_ZONE_MINUTES:
        raise BadTimeError("there is no such time zone")
    return (1 if zone[0] == "+" else -1) * ((hours * 60 + minutes) * 60 + seconds) * 1_000_000


def _parts_of_offset(text: str) -> tuple[int, int, int]:
    parts = text.split(":") if ":" in text or len(text) < 3 else [text[at : at + 2] for at in range(0, len(text), 2)]
    hours, minutes, seconds = [int(part) for part in (*parts, "0", "0")][:3]
    return hours, minutes, seconds
