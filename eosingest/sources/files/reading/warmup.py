"""Reads a few files as a run reads them, for the training run that writes the JVM's class data archive (spark/warmup.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from eosingest.protocol.plan import make_plan
from eosingest.sources.files.reading.json_scan import JsonScan
from eosingest.sources.files.reading.rows import ReadSettings
from eosingest.sources.files.reading.scan import FileScan, spark_conf
from eosingest.sources.files.source import FileSource
from eosingest.spark import plan_checks
from eosingest.spark.record_columns import record_frame
from eosingest.spark.scan import Scan

_SPLIT_SIZE = 1 << 20
_SCHEMA = "id BIGINT, name STRING, amount DOUBLE"
_ROWS = 20_000  # enough for the JVM's interpreter to execute the code of a run
_FORMATS = ("json", "orc")


class FileRehearsal:
    """Implements `warmup.Rehearsal`."""

    def spark_conf(self) -> Mapping[str, str]:
        """Return the Spark settings that reading files needs."""
        return spark_conf(_SPLIT_SIZE)

    def records(self, spark: SparkSession, folder: Path) -> Iterator[DataFrame]:
        """Write files of each format, and yield the record columns of their rows."""
        rows = spark.range(_ROWS).selectExpr("id", "concat('name ', id) AS name", "id / 7 AS amount")
        for format in _FORMATS:
            rows.write.format(format).save(str(folder / format))
            yield _records(spark, format, folder / format)


def _records(spark: SparkSession, format: str, folder: Path) -> DataFrame:
    source = FileSource(format=format, paths=[f"{folder}/part-*.{format}*"], directory=folder, root=None, min_age_s=0.0)
    plan = make_plan(source, {}, _SPLIT_SIZE, source.plan())
    read = ReadSettings(
        format=format,
        options={},
        schema=_SCHEMA,
        where="amount > 1",
        select=("*",),
        key="name",
        value="to_json(struct(*))",
        headers={},
        timestamp=None,
    )
    scan: Scan = JsonScan(read, read) if format == "json" else FileScan(read, {})
    frame = record_frame(scan.frame(spark, plan, None, 2), read)
    plan_checks.check_narrow(frame.records, scan.scan_nodes)
    frame.source.verified(frame.records)
    return frame.records
