"""Strings that are no UTF-8: a row that has one ends the run, since `to_json` would write other characters in their place.

Between the reader and the rows (rows.py), for Avro, whose reader takes a string's bytes as they are. Nothing is read twice.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from eosingest.spec.expressions import quote_name

_SAID = "a string of column {} is no UTF-8"


def guarded(rows: DataFrame) -> DataFrame:
    """Return the rows, with columns that raise an error for a string that is no UTF-8."""
    return rows.selectExpr(*(_guarded(field.name, field.dataType) for field in rows.schema.fields))


def _guarded(name: str, kind: DataType) -> str:
    column = quote_name(name)
    valid = _is_valid(column, kind)
    if valid is None:
        return column
    said = _SAID.format(name).replace("\\", "\\\\").replace("'", "\\'")
    return f"IF(coalesce({valid}, true), {column}, raise_error('{said}')) AS {column}"


def _is_valid(value: str, kind: DataType, depth: int = 0) -> str | None:
    """Return the SQL that says whether every string in a value is UTF-8 (null of null); None where its type has no string."""
    if isinstance(kind, StringType):
        return f"is_valid_utf8({value})"
    if isinstance(kind, StructType):
        inner = [_is_valid(f"{value}.{quote_name(field.name)}", field.dataType, depth) for field in kind.fields]
        found = [f"coalesce({each}, true)" for each in inner if each is not None]
        return " AND ".join(found) or None
    if isinstance(kind, MapType):
        inner = [
            _every(f"map_{part}({value})", of, depth)
            for part, of in (("keys", kind.keyType), ("values", kind.valueType))
        ]
        return " AND ".join(f"coalesce({each}, true)" for each in inner if each is not None) or None
    return _every(value, kind.elementType, depth) if isinstance(kind, ArrayType) else None


def _every(values: str, kind: DataType, depth: int) -> str | None:
    name = f"x{depth}"
    valid = _is_valid(name, kind, depth + 1)
    return None if valid is None else f"forall({values}, {name} -> coalesce({valid}, true))"
