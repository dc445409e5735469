"""Refuses values that Spark writes as Java objects: map keys of `to_json`, arguments of `format_string`.

volatile_casts.py calls it for each such function in the analyzed plan of the records, before the plan is executed.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    CharType,
    DataType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructType,
    VarcharType,
)

from eosingest.errors import SpecError

_EXACT = (StringType, CharType, VarcharType, BooleanType, NumericType)  # as text, these are their values


def refuse_unwritable_argument(kind: DataType) -> None:
    """Raise SpecError for an argument of `format_string` that would be an address, or a number in place of a date."""
    if not isinstance(kind, (*_EXACT, NullType)):
        raise SpecError(
            f"format_string would not write {kind.simpleString().upper()} as a text of its value",
            code="bad-expression",
            hint="nothing was sent; write CAST(… AS STRING) in its arguments",
        )


def refuse_unwritable_keys(kind: DataType) -> None:
    """Raise SpecError if a value of this type holds a map whose keys would not be their values in JSON.

    Keys of BINARY, ARRAY, MAP and STRUCT become addresses, which differ from run to run; dates and times become numbers.
    """
    for key in _keys(kind):
        if not isinstance(key, _EXACT):
            raise SpecError(
                f"to_json would change map keys of type {key.simpleString().upper()}",
                code="map-keys",
                hint="nothing was sent; name the columns in record.value, and write the map as map_entries(COLUMN), an array"
                " of its keys and values, or as a map with keys of STRING",
            )


def _keys(kind: DataType) -> Iterator[DataType]:
    if isinstance(kind, MapType):
        yield kind.keyType
        yield from _keys(kind.valueType)
    elif isinstance(kind, ArrayType):
        yield from _keys(kind.elementType)
    elif isinstance(kind, StructType):
        for field in kind.fields:
            yield from _keys(field.dataType)
