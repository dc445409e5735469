"""Finds columns of folders that Spark reads as other values than they say, before anything is sent.

As TIMESTAMP, a text without a date becomes that time of today, `2020-05` the first of May, and `202005` a year; as DATE,
`2020-01-02 x` loses its end; 70000 as SMALLINT is 4464.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from eosingest.errors import FatalError
from eosingest.spark.volatile_casts import NO_DATE
from eosingest.spec.expressions import quote_name

_VALUE = "«value»"
_BLANKS = r"[\x00-\x20\x7f]*"
_MIDNIGHT = r"[T ]00:00(?::00(?:\.0+)?)?(?:Z|[+-]00:?00)?"
_DATE = rf"^{_BLANKS}[+-]?[0-9]{{4,7}}-[0-9]{{1,2}}-[0-9]{{1,2}}(?:{_MIDNIGHT})?{_BLANKS}$"
_TAKEN_FOR_A_DATE = rf"^{_BLANKS}[+-]?[0-9]+(?:-[0-9]+(?:-[0-9]+(?:[T ].*)?)?)?{_BLANKS}$"
# `202005` is a month too, though Spark reads it as a year.
_MONTH = rf"^{_BLANKS}(?:[+-]?[0-9]{{4,6}}-[0-9]{{1,2}}|[12][0-9]{{3}}(?:0[1-9]|1[0-2])){_BLANKS}$"
_LONG_YEAR = rf"^{_BLANKS}[+-]?[0-9]{{5,6}}{_BLANKS}$"  # HHMMSS, or a number of days or seconds
# By type: the SQL condition (of «value») for a text that Spark reads as another value.
_SUSPECTS: Mapping[str, str] = {
    "timestamp": f"{_VALUE} RLIKE '{NO_DATE}' OR {_VALUE} RLIKE '{_MONTH}' OR {_VALUE} RLIKE '{_LONG_YEAR}'",
    "timestamp_ntz": f"{_VALUE} RLIKE '{_MONTH}' OR {_VALUE} RLIKE '{_LONG_YEAR}'",
    "date": f"{_VALUE} RLIKE '{_TAKEN_FOR_A_DATE}' AND NOT {_VALUE} RLIKE '{_DATE}'",
    "tinyint": f"try_cast({_VALUE} AS BIGINT) NOT BETWEEN -128 AND 127",
    "smallint": f"try_cast({_VALUE} AS BIGINT) NOT BETWEEN -32768 AND 32767",
}
_WORDS: Mapping[str, str] = {
    "timestamp": "times without a date, which Spark would take for today's, or a month, for its first day or for a year, or"
    " a number that is no year",
    "timestamp_ntz": "a month, which Spark would take for its first day, or a number, for a year",
    "date": "more or less than a date, of which Spark would make one",
    "tinyint": "numbers beyond it, which Spark would take for others",
    "smallint": "numbers beyond it, which Spark would take for others",
}
_WIDER = {"tinyint": "SMALLINT", "smallint": "INT"}
IN_FOLDERS = frozenset(("timestamp", "timestamp_ntz", "date", "tinyint", "smallint"))


def _name(kind: DataType) -> str:
    return kind.simpleString().partition("(")[0]


def _has(kind: DataType, types: frozenset[str]) -> bool:
    return _name(kind) in types or any(_has(inner, types) for inner in _inner(kind))


def _inner(kind: DataType) -> list[DataType]:
    if isinstance(kind, StructType):
        return [field.dataType for field in kind.fields]
    if isinstance(kind, ArrayType):
        return [kind.elementType]
    return [kind.valueType] if isinstance(kind, MapType) else []


def as_text(kind: DataType, types: frozenset[str]) -> DataType:
    """Return the type with STRING in place of these types, at any depth."""
    if _name(kind) in types:
        return StringType()
    if isinstance(kind, StructType):
        inner = [StructField(field.name, as_text(field.dataType, types), True) for field in kind.fields]
        return StructType(inner)
    if isinstance(kind, ArrayType):
        return ArrayType(as_text(kind.elementType, types), True)
    return MapType(kind.keyType, as_text(kind.valueType, types), True) if isinstance(kind, MapType) else kind


def misread_columns(
    read: Callable[[StructType], DataFrame], schema: StructType, types: frozenset[str]
) -> dict[str, str]:
    """Return the columns in which a text is read as another value, each with its type and one such text: "date 2020-01-02 x".

    Reads the data once, or not at all if no column has one of these `types`.
    """
    fields = [field for field in schema.fields if _has(field.dataType, types)]
    if not fields:
        return {}
    frame = read(StructType([StructField(f.name, as_text(f.dataType, types), True) for f in schema.fields]))
    found = [functions.min(functions.expr(_first(quote_name(field.name), field.dataType, types))) for field in fields]
    (row,) = frame.agg(*(column.alias(f"c{index}") for index, column in enumerate(found))).collect()
    return {field.name: text for field, text in zip(fields, row, strict=True) if text is not None}


def _first(value: str, kind: DataType, types: frozenset[str], depth: int = 0) -> str:
    """Return the SQL for some such text in a value that was read `as_text`, after its type; null if there is none."""
    name = _name(kind)
    if name in types:
        is_suspect = _SUSPECTS[name].replace("\\", "\\\\").replace(_VALUE, value)
        return f"IF({is_suspect}, concat('{name} ', {value}), NULL)"
    if isinstance(kind, StructType):
        inner = [
            _first(f"{value}.{quote_name(field.name)}", field.dataType, types, depth)
            for field in kind.fields
            if _has(field.dataType, types)
        ]
        return f"coalesce({', '.join(inner)})" if len(inner) > 1 else inner[0]
    values = f"map_values({value})" if isinstance(kind, MapType) else value
    name, (element,) = f"x{depth}", _inner(kind)
    return f"array_min(transform({values}, {name} -> {_first(name, element, types, depth + 1)}))"


def misread_folders(spark: SparkSession, values: Mapping[str, Collection[str]], schema: StructType) -> dict[str, str]:
    """Do the same as `misread_columns` for folder columns. `values`: the texts in folder names, by column in lower case."""
    found: dict[str, str] = {}
    for field in schema.fields:
        texts = values.get(field.name.lower(), ())
        if texts and _name(field.dataType) in IN_FOLDERS:
            alone = StructType([field])
            rows = [(text,) for text in texts]
            frame = partial(spark.createDataFrame, rows)
            found |= misread_columns(frame, alone, IN_FOLDERS)
    return found


def refusal(found: Mapping[str, str]) -> FatalError:
    """Make the error for the findings of `misread_folders`."""
    by_type: dict[str, list[str]] = {}
    for column, said in found.items():
        kind, _, text = said.partition(" ")
        by_type.setdefault(kind, []).append(f"{column} ('{text}')")
    problems = [
        f"a column of type {kind.upper()} holds {_WORDS[kind]}: {', '.join(columns)}"
        for kind, columns in by_type.items()
    ]
    wider = _WIDER.get(next(iter(by_type)), "STRING") if len(by_type) == 1 else "STRING"
    return FatalError(
        "; ".join(problems),
        code="bad-data",
        hint=f"nothing of this run was sent; declare the column as {wider}",
    )
