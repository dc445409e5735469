"""Refuses strings that are not UTF-8: a row with one ends the run, since `to_json` would write other characters in their place.

Between the reader and the rows (rows.py), for formats that store typed values, whose readers keep a string's bytes as they are.
Nothing is read twice, and no column is read that the records do not use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame, functions
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from eosingest.spark.without_pandas import literal
from eosingest.spec.expressions import quote_name

# Fields of a struct that are checked separately. More of them would make one expression too deep for Spark's optimizer.
_MOST_FIELDS = 50


def guarded(rows: DataFrame, stored: Collection[str]) -> DataFrame:
    """Return the rows, with columns that raise an error for a string that is not UTF-8.

    `stored` are the columns whose values are in the files, by name. The others stay plain, so that Spark can skip whole files.
    """
    return rows.select(
        *(
            _guarded(functions.col(quote_name(field.name)), field.name, field.dataType).alias(field.name)
            if field.name in stored
            else functions.col(quote_name(field.name))
            for field in rows.schema.fields
        )
    )


def _guarded(value: Column, name: str, kind: DataType) -> Column:
    """Return the value of column `name`, or an error; Spark still reads only those fields of a struct that are used."""
    if not _has_strings(kind):
        return value
    if isinstance(kind, StructType) and len(kind.fields) <= _MOST_FIELDS:
        for field in _with_strings(kind):
            inner = _guarded(value.getField(field.name), name, field.dataType)
            value = value.withField(quote_name(field.name), inner)
        return value
    error = functions.call_function("raise_error", literal(f"a string of column {name} is no UTF-8"))
    return functions.when(_is_valid(value, kind), value).otherwise(error)


def _with_strings(kind: StructType) -> list[StructField]:
    return [field for field in kind.fields if _has_strings(field.dataType)]


def _has_strings(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return bool(_with_strings(kind))
    if isinstance(kind, MapType):
        return _has_strings(kind.keyType) or _has_strings(kind.valueType)
    return isinstance(kind, StringType) or (isinstance(kind, ArrayType) and _has_strings(kind.elementType))


def _is_valid(value: Column, kind: DataType) -> Column:
    """Return whether every string in a value is UTF-8: true for null, and for types without a string."""
    if isinstance(kind, StringType):
        valid = functions.is_valid_utf8(value)
    elif isinstance(kind, ArrayType) and _has_strings(kind):
        valid = functions.forall(value, lambda element: _is_valid(element, kind.elementType))
    elif isinstance(kind, StructType):
        return _all(_is_valid(value.getField(field.name), field.dataType) for field in _with_strings(kind))
    elif isinstance(kind, MapType):
        keys = _is_valid(functions.map_keys(value), ArrayType(kind.keyType))
        return keys & _is_valid(functions.map_values(value), ArrayType(kind.valueType))
    else:
        return literal(True)
    return functions.coalesce(valid, literal(True))


def _all(conditions: Iterable[Column]) -> Column:
    return reduce(lambda one, other: one & other, conditions, literal(True))
