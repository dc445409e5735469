"""The bytes of a key or a value in Avro: a struct of the row's columns, held against the schema, written by Spark's `to_avro`.

    columns ─▶ struct ─▶ fit (avro_fit.py) ─▶ cast ─▶ a zero, the schema's id, to_avro
                                      └─▶ why a row does not fit, in words: such a row is bad, and is never written

Used by record_columns.py. `to_avro` is in the jar spark-avro (avro_jar.py); its writer is in Spark's own.
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
    """`rows` with the struct as a further column; the record's `value`, null where the struct is, JSON of an unfit row.

    `unfit` says why it does not, null where it does; None where every row fits.
    """

    rows: DataFrame
    value: Column
    unfit: Column | None


def encoded(
    rows: DataFrame, where: str, encoding: Encoding, columns: Sequence[str], named: Callable[[str, str], Column]
) -> Encoded:
    """Return what `encoding` makes of each row. `named` makes the column of an expression, and names `where` if it cannot.

    Raises SpecError where it is no struct, or the struct does not fit the schema, with what to write.
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
    # Never sent to the topic: what a dead letter shows of the row.
    return made.when(unfit.isNotNull(), functions.to_json(functions.col(struct)).cast("binary"))


def _cast(column: Column, kind: DataType, target: DataType) -> Column:
    """Cast what differs, part by part: the cast of a whole struct hides what it does to a time (volatile_casts.py)."""
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
    """Return the reason of the first guard that is true, null where none is, as for a struct that is null."""
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
