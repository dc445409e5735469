"""Calls pyspark without importing pandas, which takes half a second of each command and which we never use.

pyspark's functions import it to find out whether it, or NumPy, is there (pyspark/testing/utils.py), and to check its version.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from py4j.protocol import INPUT_CONVERTER
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter, StructType
from pyspark.sql.udf import UserDefinedFunction
from pyspark.sql.utils import get_active_spark_context
from pyspark.util import PythonEvalType


def pass_no_numpy() -> None:
    """Remove the converters of NumPy's values, which py4j asks about each argument that is not plain. We pass none."""
    INPUT_CONVERTER[:] = [
        each for each in INPUT_CONVERTER if not isinstance(each, NumpyScalarConverter | NumpyArrayConverter)
    ]


def literal(value: bool | bytes | int | str | None) -> Column:
    """Do what `functions.lit` does."""
    jvm: Any = get_active_spark_context()._jvm
    return Column(jvm.functions.lit(value))


def map_in_arrow(frame: DataFrame, function: Callable[..., Any], schema: StructType | str) -> DataFrame:
    """Do what `frame.mapInArrow` does."""
    udf = UserDefinedFunction(function, schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    made: Any = udf(*(frame[name] for name in frame.columns))
    mapped = frame._jdf.mapInArrow(made._jc, False, None)
    return DataFrame(mapped, frame.sparkSession)
