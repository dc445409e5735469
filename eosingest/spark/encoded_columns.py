"""Encodes keys and values in Avro: a struct of the row's columns, checked against the schema, written by Spark's `to_avro`.

    columns ─▶ struct ─▶ fit (avro_fit.py) ─▶ cast ─▶ a zero, the schema's id, to_avro
                                      └─▶ the reason why a row does not fit: the row is bad, and is never written

Used by record_columns.py. `to_avro` is in the jar spark-avro (avro_jar.py); its writer is in Spark's own jars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, functions
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from eosingest.errors import SpecError, listed
from eosingest.records.encoding import Encoding, expanded
from eosingest.spark.avro_fit import Fit, Guard, fit
from eosingest.spark.without_pandas import literal
from eosingest.spec.expressions import expand_star

_NAMED_AT_MOST = 5


@dataclass(frozen=True)
class Encoded:
    """`rows` with the struct as a further column; the encoded `value`: null where the struct is null, JSON for an unfit row.

    `unfit` is the reason why a row does not fit, null where it fits; None if every row fits.
    """

    rows: DataFrame
    value: Column
    unfit: Column | None


def encoded(
    rows: DataFrame, where: str, encoding: Encoding, columns: Sequence[str], named: Callable[[str, str], Column]
) -> Encoded:
    """Return the column that `encoding` defines. `named` makes the column of an expression; its errors name `where`.

    Raises SpecError, with what to write, if the expression is no struct, or it does not fit the schema.
    """
    struct = f"__eosingest_{where.rpartition('.')[2]}_struct"
    with_struct = rows.withColumn(struct, named(where, expand_star(encoding.expression, columns)))
    kind = with_struct.schema[struct].dataType
    if not isinstance(kind, StructType):
        raise SpecError(
            f"{where}: avro.columns: {encoding.expression} is of type {kind.simpleString()}, not a struct",
            code="bad-expression",
            hint="write struct(*), or struct(a, b AS c)",
        )
    found = fit(kind, expanded(encoding.schema, f"schema {encoding.id} of subject {encoding.subject}"), struct)
    if found.problems:
        raise _does_not_fit(where, encoding, found)
    unfit = _reason(found.guards, struct)
    fitted = _cast(functions.col(struct), kind, found.target)
    return Encoded(with_struct, _bytes(encoding, fitted, struct, unfit), unfit)


def _bytes(encoding: Encoding, fitted: Column, struct: str, unfit: Column | None) -> Column:
    from pyspark.sql.avro.functions import to_avro

    fits = functions.col(struct).isNotNull() if unfit is None else functions.col(struct).isNotNull() & unfit.isNull()
    datum = to_avro(fitted, encoding.schema)
    made = functions.when(fits, functions.concat(literal(encoding.prefix), datum))
    if unfit is None:
        return made
    # Never sent to the topic: a dead letter shows the row in this form.
    return made.when(unfit.isNotNull(), functions.to_json(functions.col(struct)).cast("binary"))


def _cast(column: Column, kind: DataType, target: DataType) -> Column:
    """Cast the parts that differ one by one: the cast of a whole struct hides casts to times (volatile_casts.py)."""
    if kind == target:
        return column
    if isinstance(kind, StructType) and isinstance(target, StructType):
        pairs = zip(kind.fields, target.fields, strict=True)
        parts = [_cast(column[one.name], one.dataType, other.dataType).alias(one.name) for one, other in pairs]
        return functions.when(column.isNotNull(), functions.struct(*parts))
    if isinstance(kind, ArrayType) and isinstance(target, ArrayType):
        element, into = kind.elementType, target.elementType
        return functions.transform(column, lambda each: _cast(each, element, into))
    if isinstance(kind, MapType) and isinstance(target, MapType):
        value, wanted = kind.valueType, target.valueType
        return functions.transform_values(column, lambda _, each: _cast(each, value, wanted))
    return column.cast(target)


def _reason(guards: Sequence[Guard], struct: str) -> Column | None:
    """Return the reason of the first guard that is true; null if none is, or if the struct is null."""
    if not guards:
        return None
    reason = functions.when(functions.col(struct).isNull(), None)
    for guard in guards:
        reason = reason.when(functions.expr(guard.condition), guard.reason)
    return reason


def _does_not_fit(where: str, encoding: Encoding, found: Fit) -> SpecError:
    shown = listed(found.problems, _NAMED_AT_MOST, separator="; ", rest="; and {} more")
    return SpecError(
        f"{where}: the columns do not fit schema {encoding.id} of subject {encoding.subject}: {shown}",
        code="schema-does-not-fit",
        hint="nothing was sent; name and cast the columns in avro.columns, as in struct(id, CAST(amount AS DECIMAL(12,2)) AS"
        " amount)",
        problems=list(found.problems),
    )
