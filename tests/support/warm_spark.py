"""One Spark session for many tests, with the settings that a run gives Spark."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator

from pyspark.sql import SparkSession

from eosingest.spark import jvm, required_settings


@contextlib.contextmanager
def warm_spark(split_size: int) -> Iterator[SparkSession]:
    """Start Spark on two cores, which cuts files by `split_size` bytes until it is told otherwise."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).disabled = True
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.extraJavaOptions", jvm.SAME_EVERYWHERE)
    for key, value in {**required_settings.DEFAULTS, **required_settings.required_settings(split_size)}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()


def cut_by(spark: SparkSession, split_size: int) -> None:
    """Have files cut by another size from now on."""
    spark.conf.set("spark.sql.files.maxPartitionBytes", str(split_size))
