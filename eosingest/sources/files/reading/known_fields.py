"""Makes the names with which the inspection compares the fields of JSON (formats/unknown_fields.py)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow
import pyarrow.json
from pyspark.sql.types import ArrayType, BooleanType, DataType, DoubleType, LongType, MapType, StringType, StructType

from eosingest.sources.files.formats.unknown_fields import KnownFields, Names
from eosingest.sources.files.reading.data_schema import from_ddl

_JSON: Any = pyarrow.json
_PLAIN: dict[type[DataType], pyarrow.DataType] = {
    StringType: pyarrow.string(),
    LongType: pyarrow.int64(),
    DoubleType: pyarrow.float64(),
    BooleanType: pyarrow.bool_(),
}


class _NoArrowTypeError(Exception):
    """A type that pyarrow reads from other JSON than Spark does."""


def known_fields(ddl: str) -> KnownFields:
    """Return the fields that a schema names."""
    return of_struct(from_ddl(ddl))


def of_struct(struct: StructType) -> KnownFields:
    """Return the fields of a schema."""
    try:
        schema = pyarrow.schema([pyarrow.field(field.name, _arrow(field.dataType)) for field in struct.fields])
    except _NoArrowTypeError:
        return KnownFields(_names(struct))
    return KnownFields(_names(struct), partial(_fits, schema))


def _names(kind: DataType) -> Names:
    if isinstance(kind, StructType):
        return {field.name: _names(field.dataType) for field in kind.fields}
    if isinstance(kind, ArrayType):
        return (_names(kind.elementType),)
    return (_names(kind.valueType),) if isinstance(kind, MapType) else None


def _arrow(kind: DataType) -> pyarrow.DataType:
    if isinstance(kind, StructType):
        return pyarrow.struct([pyarrow.field(field.name, _arrow(field.dataType)) for field in kind.fields])
    if isinstance(kind, ArrayType):
        return pyarrow.list_(_arrow(kind.elementType))
    if type(kind) not in _PLAIN:
        raise _NoArrowTypeError
    return _PLAIN[type(kind)]


def _fits(schema: Any, text: str) -> bool:
    """Say whether pyarrow reads the text by the schema, and finds no other field in it."""
    raw = text.encode()
    read = _JSON.ReadOptions(use_threads=False, block_size=len(raw) + 1)
    parse = _JSON.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    try:
        _JSON.read_json(pyarrow.BufferReader(raw), read, parse)
    except pyarrow.ArrowException:
        return False
    return True
