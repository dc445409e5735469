"""Makes the names with which the inspection compares the fields of JSON (formats/unknown_fields.py)."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from eosingest.sources.files.formats.unknown_fields import KnownFields, Names
from eosingest.sources.files.reading.data_schema import from_ddl


def known_fields(ddl: str) -> KnownFields:
    """Return the fields that a schema names."""
    return KnownFields(names_of(from_ddl(ddl)))


def names_of(kind: DataType) -> Names:
    """Return the names of a type's fields."""
    if isinstance(kind, StructType):
        return {field.name: names_of(field.dataType) for field in kind.fields}
    if isinstance(kind, ArrayType):
        return (names_of(kind.elementType),)
    return (names_of(kind.valueType),) if isinstance(kind, MapType) else None
