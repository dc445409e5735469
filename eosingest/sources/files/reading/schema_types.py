"""Converts schemas from Spark DDL to Spark's types, by Spark or, where no JVM runs, without it; and back to DDL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from pyspark import SparkContext
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CharType,
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
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
)

from eosingest.errors import SpecError
from eosingest.spark.python_scan import name_in_ddl
from eosingest.spec.ddl import DdlError, Field, Type, parse

_PLAIN: Mapping[str, type[DataType]] = {
    "BOOLEAN": BooleanType,
    "TINYINT": ByteType,
    "SMALLINT": ShortType,
    "INT": IntegerType,
    "BIGINT": LongType,
    "FLOAT": FloatType,
    "DOUBLE": DoubleType,
    "DATE": DateType,
    "TIMESTAMP": TimestampType,
    "TIMESTAMP_LTZ": TimestampType,
    "TIMESTAMP_NTZ": TimestampNTZType,
    "STRING": StringType,
    "BINARY": BinaryType,
}


def names_alike(names: Iterable[str], *, case: bool) -> tuple[str, str] | None:
    """Return the first two names that are one column, None if there are none. `case`: `a` and `A` are two columns."""
    seen: dict[str, str] = {}
    for name in names:
        folded = name if case else name.lower()
        if folded in seen:
            return seen[folded], name
        seen[folded] = name
    return None


def from_ddl(ddl: str) -> StructType:
    """Return the schema of a DDL text; an empty text has no columns. Where no JVM runs, this project's parser reads it.

    Raises SpecError for a schema that it does not understand.
    """
    if not ddl:
        return StructType([])
    if SparkContext._active_spark_context is not None:
        return cast(StructType, StructType.fromDDL(ddl))
    try:
        return _struct(parse(ddl))
    except (DdlError, KeyError) as error:
        raise SpecError(
            f"source.schema: it is not understood without Spark: {error}",
            code="bad-expression",
            hint="nothing was sent; write the types as in Spark's documentation, or use eosingest check --spark",
        ) from None


def columns_ddl(columns: StructType) -> str:
    """Return the columns of a schema as DDL."""
    return ", ".join(f"{name_in_ddl(each.name)} {ddl_of(each.dataType)}" for each in columns.fields)


def ddl_of(kind: DataType) -> str:
    """Return a type as DDL that can be parsed: names of fields are quoted where they must be."""
    if isinstance(kind, StructType):
        return f"STRUCT<{', '.join(f'{name_in_ddl(each.name)}: {ddl_of(each.dataType)}' for each in kind.fields)}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{ddl_of(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{ddl_of(kind.keyType)}, {ddl_of(kind.valueType)}>"
    return kind.simpleString().upper()


def _struct(fields: Iterable[Field]) -> StructType:
    return StructType([StructField(field.name, _type(field.type)) for field in fields])


def _type(kind: Type) -> DataType:
    """Return Spark's type. Raises KeyError for one that is not known."""
    if kind.name == "STRUCT":
        return _struct(kind.fields)
    if kind.name == "ARRAY" and kind.element is not None:
        return ArrayType(_type(kind.element))
    if kind.name == "MAP" and kind.key is not None and kind.element is not None:
        return MapType(_type(kind.key), _type(kind.element))
    if kind.name == "DECIMAL":
        return DecimalType(kind.precision, kind.scale)
    if kind.name in ("CHAR", "VARCHAR") and kind.numbers:
        return (CharType if kind.name == "CHAR" else VarcharType)(kind.numbers[0])
    return _PLAIN[kind.name]()
