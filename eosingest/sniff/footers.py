"""Reads the columns in the footer of a Parquet or ORC file, with Spark's types; notes types that Spark does not read."""

from __future__ import annotations

from typing import Any

import pyarrow
from pyarrow import types

from eosingest.errors import FatalError
from eosingest.sniff.input import Opened
from eosingest.sniff.result import Column, Found, quoted

_NANOS_AS_LONG = {"spark.sql.legacy.parquet.nanosAsLong": "true"}
_PLAIN: tuple[tuple[Any, str], ...] = (
    (types.is_boolean, "BOOLEAN"),
    (types.is_int8, "TINYINT"),
    (types.is_int16, "SMALLINT"),
    (types.is_int32, "INT"),
    (types.is_int64, "BIGINT"),
    (types.is_uint8, "SMALLINT"),
    (types.is_uint16, "INT"),
    (types.is_uint32, "BIGINT"),
    (types.is_uint64, "DECIMAL(20,0)"),
    (types.is_float32, "FLOAT"),
    (types.is_float64, "DOUBLE"),
    (types.is_date, "DATE"),
    (types.is_duration, "BIGINT"),
    (types.is_null, "VOID"),
)


def look(data: Opened, kind: str) -> Found:
    """Return the columns in the footer. Raises FatalError if the footer cannot be read."""
    if data.codec is not None:
        raise FatalError(
            f"{data.file}: a {kind} file that is compressed as a whole cannot be read",
            code="format-unknown",
            hint=f"decompress it; {kind} is compressed inside",
        )
    try:
        schema = _schema(data, kind)
    except (pyarrow.ArrowException, OSError) as error:
        raise FatalError(
            f"{data.file} begins like a {kind} file, and its end cannot be read: {str(error).splitlines()[0]}",
            code="file-unreadable",
            hint="is it cut off? Write it again",
        ) from error
    notes: list[str] = []
    columns = tuple(Column(field.name, _ddl(field.type, field.name, kind, notes), None) for field in schema)
    nanos = kind == "parquet" and any(_has_nanos(field.type) for field in schema)
    if nanos:
        notes.append(
            "there are times in nanoseconds, which Spark reads as whole numbers with the setting that is written; a time is"
            f" timestamp_micros({_first_nanos(schema)} div 1000), for record.timestamp or in transform.select"
        )
    return Found(kind, columns=columns, conf=dict(_NANOS_AS_LONG) if nanos else {}, notes=tuple(notes))


def names(data: Opened, kind: str) -> list[str]:
    """Return the names of the columns. Raises pyarrow's errors."""
    return list(_schema(data, kind).names)


def _schema(data: Opened, kind: str) -> pyarrow.Schema:
    if kind == "parquet":
        from pyarrow import parquet

        with data.file.open("rb") as file:
            return _with_int96(parquet.ParquetFile(file, coerce_int96_timestamp_unit="us"))
    from pyarrow import orc

    with data.file.open("rb") as file:
        return orc.ORCFile(file).schema


def _with_int96(opened: Any) -> pyarrow.Schema:
    """Return the schema of a Parquet file, in which INT96, at the top, is a time in microseconds with a zone, as it is read."""
    schema: pyarrow.Schema = opened.schema_arrow
    instant = pyarrow.timestamp("us", "UTC")
    leaves = [opened.schema.column(place) for place in range(len(opened.schema.names))]
    for leaf in leaves:
        if leaf.physical_type == "INT96" and leaf.path == leaf.name:
            schema = schema.set(schema.get_field_index(leaf.name), pyarrow.field(leaf.name, instant))
    return schema


def _first_nanos(schema: pyarrow.Schema) -> str:
    return next(
        (quoted(field.name) for field in schema if types.is_timestamp(field.type) and _has_nanos(field.type)), "COLUMN"
    )


def _has_nanos(type_: Any) -> bool:
    if types.is_timestamp(type_):
        return bool(type_.unit == "ns")
    inner = [type_.field(index).type for index in range(type_.num_fields)] if types.is_nested(type_) else []
    return any(map(_has_nanos, inner))


def _ddl(type_: Any, column: str, kind: str, notes: list[str]) -> str:
    if types.is_dictionary(type_):
        return _ddl(type_.value_type, column, kind, notes)
    if getattr(type_, "extension_name", "") == "arrow.uuid":
        return "STRING"
    if types.is_decimal(type_):
        return f"DECIMAL({type_.precision},{type_.scale})"
    if types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_):
        return "STRING"
    if types.is_binary(type_) or types.is_large_binary(type_) or types.is_fixed_size_binary(type_):
        return "BINARY"
    if types.is_timestamp(type_):
        if kind == "orc":  # whose times are instants, and always nanoseconds to pyarrow
            return "TIMESTAMP"
        return "BIGINT" if type_.unit == "ns" else "TIMESTAMP" if type_.tz else "TIMESTAMP_NTZ"
    if types.is_struct(type_):
        fields = [type_.field(index) for index in range(type_.num_fields)]
        return f"STRUCT<{', '.join(f'{quoted(each.name)}: {_ddl(each.type, column, kind, notes)}' for each in fields)}>"
    if types.is_map(type_):
        return f"MAP<{_ddl(type_.key_type, column, kind, notes)}, {_ddl(type_.item_type, column, kind, notes)}>"
    if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
        return f"ARRAY<{_ddl(type_.value_type, column, kind, notes)}>"
    for matches, name in _PLAIN:
        if matches(type_):
            return name
    notes.append(f"Spark cannot read the column {column} of type {type_}: convert it before")
    return "STRING"
