"""Reads a few files as a run reads them, for the training run that writes the JVM's class data archive (spark/warmup.py)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from eosingest.protocol.plan import make_plan
from eosingest.sources.files.reading.json_scan import JsonScan
from eosingest.sources.files.reading.read_settings import ReadSettings
from eosingest.sources.files.source import FileSource
from eosingest.spark import plan_checks
from eosingest.spark.record_columns import record_frame

_SPLIT_SIZE = 1 << 20
_SCHEMA = "id BIGINT, name STRING, amount DOUBLE"
_ROWS = 20_000  # enough for the JVM's interpreter to execute the code of a run


class FileRehearsal:
    """Implements `warmup.Rehearsal`."""

    def records(self, spark: SparkSession, folder: Path) -> Iterator[DataFrame]:
        """Write JSON files, and yield the record columns of their rows."""
        rows = spark.range(_ROWS).selectExpr("id", "concat('name ', id) AS name", "id / 7 AS amount")
        rows.write.json(str(folder / "json"))
        yield _records(spark, folder / "json")


def _records(spark: SparkSession, folder: Path) -> DataFrame:
    source = FileSource(format="json", paths=[f"{folder}/part-*.json*"], directory=folder, root=None, min_age_s=0.0)
    plan = make_plan(source, {}, _SPLIT_SIZE, source.plan())
    read = ReadSettings(
        format="json",
        options={},
        schema=_SCHEMA,
        where="amount > 1",
        select=("*",),
        key="name",
        value="to_json(struct(*))",
        headers={},
        timestamp=None,
    )
    scan = JsonScan(read, read)
    frame = record_frame(scan.frame(spark, plan, None, 2), read)
    plan_checks.check_narrow(frame.records)
    frame.source.verified(frame.records)
    return frame.records
