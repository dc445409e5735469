"""Reads the columns of Parquet files from their footers, and the type of Spark SQL of each: a closed table.

    footer ─▶ Stored: a column as the file stores it ─▶ Footer ─▶ exact_types.py: what a schema may read it as
                                                  └──▶ columnar_values.py: its values

Used by the driver for all pending files (parquet_scan.py), and by a task for its file (parquet_reader.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
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
    NullType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from eosingest.sources.files.reading.columnar import UUID, Stored, Unreadable, nested

INT96 = "INT96"
_MOST_DIGITS = 38
_ROW_METADATA = b"org.apache.spark.sql.parquet.row.metadata"
_PLAIN: Mapping[pa.DataType, DataType] = {
    pa.null(): NullType(),
    pa.bool_(): BooleanType(),
    pa.int8(): ByteType(),
    pa.int16(): ShortType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.uint8(): ShortType(),
    pa.uint16(): IntegerType(),
    pa.uint32(): LongType(),
    pa.uint64(): DecimalType(20, 0),
    pa.float32(): FloatType(),
    pa.float64(): DoubleType(),
    pa.string(): StringType(),
    pa.large_string(): StringType(),
    pa.string_view(): StringType(),
    pa.date32(): DateType(),
    pa.date64(): DateType(),
}
_LISTS = (types.is_list, types.is_large_list, types.is_fixed_size_list)
_BYTES = (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)


@dataclass(frozen=True)
class TypeSettings:
    """Settings of the spec's `spark.conf` that give columns another type: times in nanoseconds that of a BIGINT."""

    nanos_as_long: bool = False


def stored_columns(parquet: Any, settings: TypeSettings) -> tuple[Stored, ...]:
    """Return the columns of an open `pyarrow.parquet.ParquetFile`, in its order. Raises pyarrow's errors."""
    schema = parquet.metadata.schema
    leaves = (schema.column(place) for place in range(len(schema)))
    columns = tuple(_stored(field.name, field.type, leaves, settings) for field in parquet.schema_arrow)
    return tuple(_marked(column) for column in columns) if _has_variants(parquet.metadata) else columns


def _has_variants(metadata: Any) -> bool:
    """Say whether the file says of a column that it is VARIANT: in its schema, or as Spark 4.0 does, for Spark alone."""
    return "(Variant(" in str(metadata.schema) or b'"variant"' in (metadata.metadata or {}).get(_ROW_METADATA, b"")


def _marked(column: Stored) -> Stored:
    """Return the column, unreadable if it has the structure of a VARIANT."""
    return Stored(column.name, Unreadable("VARIANT"), column.parts) if _is_variant(column) else column


def _is_variant(column: Stored) -> bool:
    names = {part.name for part in column.parts}
    if "metadata" in names and names & {"value", "typed_value"}:
        return True
    return any(map(_is_variant, column.parts))


def _stored(name: str, kind: Any, leaves: Iterator[Any], settings: TypeSettings) -> Stored:
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_struct(kind):
        return nested(name, [_stored(field.name, field.type, leaves, settings) for field in kind])
    if any(is_list(kind) for is_list in _LISTS):
        return nested(name, [_stored("element", kind.value_type, leaves, settings)], ArrayType)
    if types.is_map(kind):
        parts = [
            _stored(part, of, leaves, settings) for part, of in (("key", kind.key_type), ("value", kind.item_type))
        ]
        return nested(name, parts, MapType)
    leaf = next(leaves)
    physical = leaf.logical_type.type if leaf.logical_type.type == UUID else leaf.physical_type
    return Stored(name, _leaf(kind, leaf, settings), physical=physical if physical in (INT96, UUID) else "")


def _leaf(kind: Any, leaf: Any, settings: TypeSettings) -> DataType | Unreadable:
    """Return the type of a column of the file: the type that Spark gives it, as far as it has one; UUIDs are texts."""
    logical = leaf.logical_type.type
    if leaf.physical_type == INT96:
        return TimestampType()
    if logical == UUID:
        return StringType()
    if logical in ("GEOMETRY", "GEOGRAPHY") or leaf.converted_type == "INTERVAL":
        return Unreadable(logical if leaf.converted_type != "INTERVAL" else "INTERVAL")
    if any(is_bytes(kind) for is_bytes in _BYTES):
        return BinaryType()
    if types.is_decimal(kind):
        fits = kind.precision <= _MOST_DIGITS and 0 <= kind.scale <= kind.precision
        return (
            DecimalType(kind.precision, kind.scale) if fits else Unreadable(f"DECIMAL({kind.precision},{kind.scale})")
        )
    if types.is_timestamp(kind) or types.is_time(kind) or types.is_duration(kind) or types.is_float16(kind):
        return _time(kind, leaf, settings)
    return _PLAIN.get(kind) or Unreadable(str(kind).upper())


def _time(kind: Any, leaf: Any, settings: TypeSettings) -> DataType | Unreadable:
    if types.is_duration(kind):
        return LongType()
    if types.is_float16(kind):
        return Unreadable("fixed_len_byte_array(2) (FLOAT16)", BinaryType())
    in_utc = '"isAdjustedToUTC":true' in leaf.logical_type.to_json()
    unit = {"ms": "MILLIS", "us": "MICROS", "ns": "NANOS"}.get(kind.unit, kind.unit)
    of_type = f"({'TIME' if types.is_time(kind) else 'TIMESTAMP'}({unit},{str(in_utc).lower()}))"
    if types.is_time(kind):
        return Unreadable(
            f"{leaf.physical_type.lower()} {of_type}", LongType() if types.is_time64(kind) else IntegerType()
        )
    if kind.unit == "ns":
        return LongType() if settings.nanos_as_long else Unreadable(f"int64 {of_type}", LongType())
    return TimestampType() if in_utc else TimestampNTZType()
