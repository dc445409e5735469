"""Guards generators such as `explode` against losing rows that could not be parsed: each of these gives one row of nulls.

A generator makes no row from a null array. Used by record_columns.py. Calls Spark's parser through py4j, by its internal API.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from pyspark.sql import Column, DataFrame, SparkSession, functions
from pyspark.sql.types import ArrayType, MapType

from eosingest.spark.without_pandas import literal

# Those that make a row from each element. Others (stack, json_tuple) make rows from any arguments.
_BY_ELEMENT: dict[str, Callable[[Column], Column]] = {
    "explode": functions.explode,
    "explode_outer": functions.explode_outer,
    "inline": functions.inline,
    "inline_outer": functions.inline_outer,
    "posexplode": functions.posexplode,
    "posexplode_outer": functions.posexplode_outer,
}
_OF_A_MAP = {"explode": "inline", "explode_outer": "inline_outer"}


def guarded(rows: DataFrame, expression: str, corrupt: str) -> Column | None:
    """Return the expression's generator so that a row whose column `corrupt` is not null gives one row, of nulls.

    None if the expression has no generator at its top, or one that cannot be guarded. Raises what Spark raises for an invalid
    expression.
    """
    names, call = _unaliased(_parsed(rows.sparkSession, expression))
    if call.getClass().getSimpleName() != "UnresolvedFunction" or call.arguments().size() != 1:
        return None
    generator = str(call.nameParts().mkString(".")).lower()
    if generator not in _BY_ELEMENT:
        return None
    of = _column(rows.sparkSession, call.arguments().apply(0))
    kind = rows.select(of).schema[0].dataType
    if isinstance(kind, MapType) and generator in _OF_A_MAP:
        # The entries as an array: a map cannot have a null key. The names of the columns are the same.
        generator, of = _OF_A_MAP[generator], functions.map_entries(of)
    elif not isinstance(kind, ArrayType):
        return None
    one_null = functions.array(literal(None))
    made = _BY_ELEMENT[generator](functions.when(functions.col(corrupt).isNull(), of).otherwise(one_null))
    return made.alias(*names) if names else made


def _unaliased(expression: Any) -> tuple[tuple[str, ...], Any]:
    """Return the names after AS, and the expression before it."""
    kind = expression.getClass().getSimpleName()
    if kind == "Alias":
        return (str(expression.name()),), expression.child()
    if kind == "MultiAlias":
        names = expression.names()
        return tuple(str(names.apply(index)) for index in range(names.size())), expression.child()
    return (), expression


def _parsed(session: SparkSession, expression: str) -> Any:
    return session._jsparkSession.sessionState().sqlParser().parseExpression(expression)


def _column(session: SparkSession, expression: Any) -> Column:
    from pyspark.sql.classic.column import Column as ClassicColumn

    jvm = cast(Any, session._jvm)
    return ClassicColumn(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))
