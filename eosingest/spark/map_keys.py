"""Refuses `to_json` of maps whose keys Spark cannot write: it writes a Java object's class name and address instead.

volatile_casts.py calls it for each `to_json` in the analyzed plan of the records, before the plan is executed.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    MapType,
    NumericType,
    StringType,
    StructType,
)

from eosingest.errors import SpecError

_EXACT = (StringType, BooleanType, NumericType)  # as text, these keys are their values


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
