"""Gives the values of a column the type of the schema: exactly, or not at all.

    Arrow array of the file, and what it is (columnar.Stored) ─▶ converted ─▶ Arrow array of the schema's type

Which types a column may be read as is decided before (exact_types.py); a value that its type does not hold is refused here.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from eosingest.sources.files.reading.columnar import UUID, Stored

CORRECTED, LEGACY, EXCEPTION = "CORRECTED", "LEGACY", "EXCEPTION"
_DAY_US = 86_400_000_000
_FIRST_GREGORIAN_DAY = -141_427  # 1582-10-15, in days since 1970
_FIRST_STANDARD_DAY = -25_567  # 1900-01-01: before it, zones have their local mean time
# By the day, in the Julian calendar, from which each is valid: the days between both calendars. As Spark has them.
_SWITCH_DAYS = np.array(
    [
        *(-719164, -682945, -646420, -609895, -536845, -500320, -463795, -390745, -354220, -317695, -244645),
        *(-208120, -171595, _FIRST_GREGORIAN_DAY),
    ]
)
_SHIFTS = np.array([2, 1, 0, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, 0])
_SPARK_VERSION, _SPARK_ZONE = b"org.apache.spark.version", b"org.apache.spark.timeZone"
UTC_ZONES = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "+00:00", "Zulu", "UCT", "Universal")


class UnfitValueError(Exception):
    """The reason why a value of a column cannot be sent."""


@dataclass(frozen=True)
class Calendars:
    """The calendars of a file's dates and times, and of its INT96: CORRECTED (today's), LEGACY (the Julian one before
    1582-10-15), or EXCEPTION (an old value is refused). `zone` is that of the writer.
    """

    times: str = CORRECTED
    int96: str = CORRECTED
    zone: str = "UTC"

    def of_file(self, metadata: Mapping[bytes, bytes] | None) -> Calendars:
        """Return those of a file with this metadata: as Spark has written it, else these."""
        found = metadata or {}
        version = found.get(_SPARK_VERSION, b"").decode(errors="replace")
        if not version:
            return self
        old_times = version < "3.0.0" or b"org.apache.spark.legacyDateTime" in found
        old_int96 = version < "3.1.0" or b"org.apache.spark.legacyINT96" in found
        zone = found.get(_SPARK_ZONE, b"UTC").decode(errors="replace")
        return Calendars(LEGACY if old_times else CORRECTED, LEGACY if old_int96 else CORRECTED, zone)


@dataclass(frozen=True)
class Rules:
    """How values are read: `case`: names of fields are case-sensitive.

    `leaf` converts an array that is not nested, as `plain` does, which is the default.
    """

    case: bool = False
    calendars: Calendars = Calendars()
    leaf: Callable[[Any, Stored, Any, Calendars], Any] | None = None

    def folded(self, name: str) -> str:
        """Return a name as it is compared."""
        return name if self.case else name.lower()


def rules_of(options: Mapping[str, str], *, case: bool) -> Rules:
    """Return the rules by a spec's options: the calendars of old dates and times."""
    given = {name.lower(): value.upper() for name, value in options.items()}
    times, int96 = given.get("datetimerebasemode", CORRECTED), given.get("int96rebasemode", CORRECTED)
    return Rules(case, Calendars(times, int96))


def converted(column: Any, stored: Stored, target: Any, rules: Rules) -> Any:
    """Return a column with the type `target`. Raises UnfitValueError if a value does not fit."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_null(column.type):
        return pa.nulls(len(column), target)
    if types.is_struct(target):
        return _struct(column, stored, target, rules)
    if types.is_map(target):
        offsets, start, end = _offsets(column)
        keys, items = (part.slice(start, end - start) for part in (column.keys, column.items))
        key, item = stored.parts
        found = converted(keys, key, target.key_type, rules), converted(items, item, target.item_type, rules)
        of_parts: Any = pa.MapArray.from_arrays
        return of_parts(offsets, *found, type=target)
    if types.is_list(target):
        offsets, start, end = _offsets(column)
        values = column.flatten() if types.is_fixed_size_list(column.type) else column.values.slice(start, end - start)
        made = converted(values, stored.parts[0], target.value_type, rules)
        return pa.ListArray.from_arrays(offsets, made, type=target)
    try:
        return (rules.leaf or plain)(column, stored, target, rules.calendars)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise UnfitValueError(f"a value does not fit the type {target}") from None


def _struct(column: Any, stored: Stored, target: Any, rules: Rules) -> Any:
    places = {rules.folded(part.name): place for place, part in enumerate(stored.parts)}
    made = []
    for field in target:
        place = places.get(rules.folded(field.name))
        if place is None:
            made.append(pa.nulls(len(column), field.type))
        else:
            made.append(converted(column.field(place), stored.parts[place], field.type, rules))
    if not made:
        return pa.array([None if is_null else {} for is_null in column.is_null().to_pylist()], target)
    return pa.StructArray.from_arrays(made, fields=[*target], mask=column.is_null())


def _offsets(column: Any) -> tuple[Any, int, int]:
    """Return the offsets of a column of lists or maps, from 0, and where its elements are in the array of all.

    The offset of a null is null; Arrow's reader gives it no elements.
    """
    if types.is_fixed_size_list(column.type):
        lengths = column.is_valid().to_numpy(zero_copy_only=False) * column.type.list_size
        offsets = np.concatenate([[0], np.cumsum(lengths)])
    else:
        offsets = column.offsets.to_numpy().astype(np.int64)
    start, end = int(offsets[0]), int(offsets[-1])
    is_null = np.append(column.is_null().to_numpy(zero_copy_only=False), False)
    return pa.array((offsets - start).astype(np.int32), mask=is_null), start, end


def plain(column: Any, stored: Stored, target: Any, calendars: Calendars) -> Any:
    """Return an array that is not nested with the type `target`. Raises UnfitValueError, or pyarrow's errors."""
    kind = column.type
    if stored.physical == UUID and types.is_string(target):
        return _uuids(column)
    if types.is_string(target):
        return _text(column)
    if types.is_binary(target):
        return (column.view(pa.binary(2)) if types.is_float16(kind) else column).cast(target)
    if types.is_date(kind):
        return _dated(column.cast(pa.date32()), calendars.times, calendars.zone).cast(target)
    if types.is_timestamp(kind) and types.is_timestamp(target):
        is_instant = target.tz is not None  # Spark rebases no others
        mode = (calendars.int96 if kind.tz is None else calendars.times) if is_instant else CORRECTED
        return _dated(column.cast(pa.timestamp("us", kind.tz)), mode, calendars.zone).cast(target)
    return column if kind == target else column.cast(target)


def _text(column: Any) -> Any:
    """Return strings, whose bytes are checked: Arrow's reader takes any."""
    try:
        if types.is_string(column.type):
            column.validate(full=True)
            return column
        return column.cast(pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        raise UnfitValueError("a string is no UTF-8") from None


def _uuids(column: Any) -> Any:
    values = (None if value is None else str(uuid.UUID(bytes=value)) for value in column.cast(pa.binary()).to_pylist())
    return pa.array(values, pa.string())


def _dated(column: Any, mode: str, zone: str) -> Any:
    """Return dates, or times in microseconds, by today's calendar. Raises UnfitValueError if they cannot be."""
    if mode == CORRECTED or column.null_count == len(column):
        return column
    is_date = types.is_date(column.type)
    values = column.cast(pa.int32()).cast(pa.int64()) if is_date else column.cast(pa.int64())
    numbers: npt.NDArray[np.int64] = values.fill_null(0).to_numpy(zero_copy_only=False)
    days = numbers if is_date else numbers // _DAY_US
    earliest = int(days.min())
    if earliest >= (_FIRST_GREGORIAN_DAY if is_date else _FIRST_STANDARD_DAY):
        return column
    what = "a date before 1582-10-15" if is_date else "a time before 1900"
    if mode != LEGACY:
        raise UnfitValueError(f"{what}, and the file does not say by which calendar")
    if not is_date and zone not in UTC_ZONES:
        raise UnfitValueError(f"{what} by the calendar of Spark 2, in the zone {zone}")
    if earliest < _SWITCH_DAYS[0]:
        raise UnfitValueError("a date before the year 1 by the Julian calendar")
    shifts = _SHIFTS[np.searchsorted(_SWITCH_DAYS, days, side="right") - 1]
    moved = pa.array(
        numbers + shifts * (1 if is_date else _DAY_US), mask=column.is_null().to_numpy(zero_copy_only=False)
    )
    return (moved.cast(pa.int32()) if is_date else moved).cast(column.type)
