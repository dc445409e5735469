"""One Spark session for many tests, with the settings that a run gives Spark."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from eosingest.spark import avro_jar, jvm, required_settings
from tests.support.processes import QUICK_JVM


@contextlib.contextmanager
def warm_spark() -> Iterator[SparkSession]:
    """Start Spark on two cores; it writes Avro, too."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).disabled = True
    _forget_unfit_jvm()
    settings = {
        "spark.driver.extraJavaOptions": f"{jvm.SAME_EVERYWHERE} {QUICK_JVM}",
        "spark.driver.memory": "4g",  # a check taken out makes fields of whole files
        "spark.driver.extraClassPath": os.pathsep.join(avro_jar.jars({})),
    }
    with spark_with({**settings, **required_settings.DEFAULTS, **required_settings.REQUIRED}) as spark:
        yield spark


@contextlib.contextmanager
def spark_with(settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Start Spark on two cores with these settings and this Python; it writes no log."""
    same = {"spark.ui.enabled": "false", "spark.driver.extraJavaOptions": jvm.SAME_EVERYWHERE}
    builder = SparkSession.builder.master("local[2]")
    for key, value in {**same, **settings}.items():
        builder = builder.config(key, value)
    with _same_environment():
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        try:
            yield spark
        finally:
            spark.stop()


@contextlib.contextmanager
def _same_environment() -> Iterator[None]:
    """Remove the variables that pyspark sets in this process: commands of later tests would inherit them."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in [name for name in os.environ if "SPARK" in name]:
            del os.environ[name]
        os.environ.update({name: value for name, value in before.items() if "SPARK" in name})


def _forget_unfit_jvm() -> None:
    """Have pyspark start a JVM where the one that this process had has ended, or was started without the jar.

    pyspark would ask it for ever: a JVM outlives its contexts.
    """
    gateway = SparkContext._gateway
    if gateway is None:
        return
    if gateway.proc.poll() is None:
        if _has_jar(gateway):
            return
        gateway.proc.kill()
        gateway.proc.wait()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def _has_jar(gateway: Any) -> bool:
    try:
        gateway.jvm.java.lang.Class.forName("org.apache.spark.sql.avro.CatalystDataToAvro")
    except Py4JJavaError:
        return False
    return True
