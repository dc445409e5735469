"""The columns of ORC files, and the type of Spark SQL of each; their values, where pyarrow's are not those of the type.

footer (orc_footer.py) ─▶ Stored ─▶ exact_types.py: what a schema may read it as
└──▶ columnar_values.py and `leaf`: its values
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from pyspark.sql.types import (
    ArrayType,
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
    MapType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from eosingest.sources.files.reading.columnar import Stored, Unreadable, nested
from eosingest.sources.files.reading.columnar_values import UTC_ZONES, Calendars, UnfitValueError, plain
from eosingest.sources.files.reading.orc_footer import OrcFooter, OrcType

CHAR, TIME = "CHAR", "TIMESTAMP"
_OF_SPARK = "spark.sql.catalyst.type"  # an attribute: the type of Spark, which ORC's type does not show
_NTZ = "timestamp_ntz"
_PLAIN: Mapping[str, DataType] = {
    "BOOLEAN": BooleanType(),
    "BYTE": ByteType(),
    "SHORT": ShortType(),
    "INT": IntegerType(),
    "LONG": LongType(),
    "FLOAT": FloatType(),
    "DOUBLE": DoubleType(),
    "STRING": StringType(),
    "VARCHAR": StringType(),
    "CHAR": StringType(),
    "BINARY": BinaryType(),
    "TIMESTAMP": TimestampType(),
    "TIMESTAMP_INSTANT": TimestampType(),
    "DATE": DateType(),
}
_WITHOUT_ZONE = ("ORIGINAL", "HIVE_8732")  # versions of writers whose stripes may not name the zone of their times
# Arrow counts times in nanoseconds, in 64 bits: from 1677-09-21 to 2262-04-11. Less a day, for the zone of the writer.
_LEAST_MS, _MOST_MS = -9_223_285_636_854, 9_223_285_636_854
_WRAPS = int(pa.__version__.split(".")[0]) < 25  # before it, pyarrow wraps times beyond these without an error
_SECOND_US, _DAY_US = 1_000_000, 86_400_000_000


def stored_columns(footer: OrcFooter, writer_version: str) -> tuple[Stored, ...]:
    """Return the columns of a file in its order. Raises ValueError if its types are none of rows."""
    rows = footer.types[0]
    if rows.kind != "STRUCT":
        raise ValueError(f"its rows are no structs but {rows.kind}")
    return tuple(
        _stored(name, footer.types[place], footer, writer_version)
        for name, place in zip(rows.names, rows.parts, strict=True)
    )


def _stored(name: str, kind: OrcType, footer: OrcFooter, version: str) -> Stored:
    def parts(*names: str) -> list[Stored]:
        return [
            _stored(part, footer.types[place], footer, version) for part, place in zip(names, kind.parts, strict=True)
        ]

    if kind.kind == "STRUCT":
        return nested(name, parts(*kind.names))
    if kind.kind == "LIST":
        return nested(name, parts("element"), ArrayType)
    if kind.kind == "MAP":
        return nested(name, parts("key", "value"), MapType)
    return Stored(name, _leaf(kind, version), physical=kind.kind)


def _leaf(kind: OrcType, version: str) -> DataType | Unreadable:
    words = kind.kind.lower()
    if kind.kind == "DECIMAL":
        fits = 0 < kind.precision <= 38 and kind.scale <= kind.precision
        return (
            DecimalType(kind.precision, kind.scale) if fits else Unreadable(f"decimal({kind.precision},{kind.scale})")
        )
    if kind.kind not in _PLAIN:
        return Unreadable("uniontype" if kind.kind == "UNION" else words)
    if types_of := _time_problem(kind, version):
        return Unreadable(types_of)
    of_spark = kind.attributes.get(_OF_SPARK, "")
    if of_spark == _NTZ and kind.kind == "LONG":
        return TimestampNTZType()
    own = _PLAIN[kind.kind]
    if of_spark and of_spark != own.typeName() and not isinstance(own, StringType):
        return Unreadable(f"{words} ({of_spark})", own)
    return own


def _time_problem(kind: OrcType, version: str) -> str:
    """Return the words for times that cannot be read, empty for all other columns."""
    if kind.kind not in ("TIMESTAMP", "TIMESTAMP_INSTANT"):
        return ""
    if kind.times is None and kind.has_values and _WRAPS:
        return f"{kind.kind.lower()} (without statistics, which pyarrow before 25 needs)"
    if kind.kind == "TIMESTAMP" and version in _WITHOUT_ZONE:
        return "timestamp (of an old version of Hive, which does not write the times' zone)"
    least, most = kind.times or (0, 0)
    if least < _LEAST_MS or most > _MOST_MS:
        return f"{kind.kind.lower()} (with times before 1677-09-22 or after 2262-04-10)"
    return ""


def leaf(column: Any, stored: Stored, target: Any, calendars: Calendars) -> Any:
    """Return an array that is not nested with the type `target`, as `columnar_values.plain` does."""
    if types.is_timestamp(target) and types.is_timestamp(column.type):
        return _times(column, "UTC" if column.type.tz else calendars.zone).cast(target)
    if types.is_timestamp(target) and types.is_int64(column.type):
        return column.cast(target)  # Spark's microseconds
    if stored.physical == CHAR:
        return plain(_without_padding(column), stored, target, calendars)
    return plain(column, stored, target, calendars)


def _without_padding(column: Any) -> Any:
    """Return texts without the spaces at their ends, which are no part of a CHAR."""
    return pc.utf8_rtrim(plain(column, Stored("", StringType()), pa.string(), Calendars()), " ")


def _times(column: Any, zone: str) -> Any:
    """Return times in microseconds, of those in nanoseconds; further digits are cut off. `zone` is that of the writer.

    Of other zones before 1970 the databases of the JVM and of the system differ, and so do the libraries about the second of a
    time with milliseconds that is before 1970 in one of both zones. ORC's libraries write -0.5 s as 0.5 s.
    """
    micros = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False) // 1000
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if zone in UTC_ZONES:
        if ((micros >= 1000) & (micros < _SECOND_US)).any():
            raise UnfitValueError("a time in the second after 1970-01-01 00:00, which may be meant as one before it")
    elif (valid & (micros < _DAY_US)).any():
        raise UnfitValueError(
            f"a time before 1970-01-02, written in the zone {zone or '(unknown)'}: its rules are in dispute"
        )
    return pa.array(micros, mask=~valid).cast(pa.timestamp("us"))
