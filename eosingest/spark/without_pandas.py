"""Calls pyspark and pyarrow without importing pandas, which takes half a second of each command and which we never use.

pyspark's functions import pandas to check whether it or NumPy is installed (pyspark/testing/utils.py), and its version;
pyarrow imports it with the first array that it makes, to know pandas' classes (pandas-shim.pxi).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from py4j.protocol import INPUT_CONVERTER
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter, StructType
from pyspark.sql.udf import UserDefinedFunction
from pyspark.sql.utils import get_active_spark_context
from pyspark.util import PythonEvalType


class _OfNumpyAlone:
    """A converter that refuses all but NumPy's values at once: pyspark's own imports pandas for any argument."""

    def __init__(self, converter: Any) -> None:
        self._converter = converter
        self.convert = converter.convert

    def can_convert(self, value: object) -> bool:
        of_numpy = any(base.__module__.partition(".")[0] == "numpy" for base in type(value).__mro__)
        return of_numpy and bool(self._converter.can_convert(value))


def keep_converters_from_pandas() -> None:
    """Have py4j pass only NumPy's values to pyspark's converters of such values."""
    INPUT_CONVERTER[:] = [
        _OfNumpyAlone(each) if isinstance(each, NumpyScalarConverter | NumpyArrayConverter) else each
        for each in INPUT_CONVERTER
    ]


class _NoPandas:
    """A finder on `sys.meta_path` that finds no pandas."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("not imported here", name=name)


def keep_pyarrow_from_pandas() -> None:
    """Have pyarrow conclude, once for this process and its forks, that pandas is not installed."""
    import pyarrow as pa  # a preview's driver needs none

    finder: Any = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([None])
    finally:
        sys.meta_path.remove(finder)


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
