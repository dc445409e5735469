"""Implements `spark.scan.Scan` for files that Spark's readers read, and makes the scan of a spec."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from eosingest.errors import EosingestError
from eosingest.protocol.plan import Plan
from eosingest.sources.files.formats import FORMATS
from eosingest.sources.files.formats.whole import is_one_value, is_whole
from eosingest.sources.files.listing.names import metadata_file_path
from eosingest.sources.files.listing.partitions import partition_base
from eosingest.sources.files.reading import folders_by_path, hadoop_hdfs, hadoop_s3
from eosingest.sources.files.reading import splits as file_splits
from eosingest.sources.files.reading.inspect_files import inspect_pending
from eosingest.sources.files.reading.planned_files import pending_files, planned_files
from eosingest.sources.files.reading.rows import FileRows, ReadSettings, file_rows
from eosingest.sources.files.reading.schema_drift import check_pinned_schema
from eosingest.sources.files.reading.spark_reader import OF_THE_INDEX
from eosingest.sources.files.storage.schemes import are_in_buckets, are_in_hdfs, below
from eosingest.spark.record_columns import RecordSettings
from eosingest.spark.scan import Direct, OtherRows, Scan, Tasks

_READING = re.compile(r"while reading file (?:file:(?://)?(?=/))?((?:/|s3a://|hdfs://)\S+?)\.?\s")


def spark_conf(split_size: int) -> dict[str, str]:
    """Return the settings that reading files depends on; `split_size` in bytes."""
    return {
        # With a minimum of one partition and a fixed size, the cuts inside a file depend on that file alone.
        "spark.sql.files.maxPartitionBytes": str(split_size),
        "spark.sql.files.minPartitionNum": "1",
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.files.ignoreMissingFiles": "false",
        "spark.sql.sources.useV1SourceList": "json,text",
        # The files are listed already; a Spark job of thousands of tasks that lists them again would take longer than the run.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": str(2**31 - 1),
        # Hadoop's line reader silently drops longer lines.
        "spark.hadoop.mapreduce.input.linerecordreader.line.maxlength": str(2**31 - 1),
    }


class HadoopClient(NamedTuple):
    """Hadoop's client of a store: Spark's settings for it, given the spec's; its error, given Spark's error text."""

    spark_conf: Callable[[Mapping[str, str]], Mapping[str, str]]
    failure_of: Callable[[str, str], EosingestError | None]


@dataclass(frozen=True)
class FileScan:
    """How files are read: with the settings `read`, in a Spark with the spec's `conf`. `recursive`: no folder gives a column.

    `client` is Hadoop's client of the store with the files; None for local files. `by_paths`: an audit reads, and takes the
    folders' values from the path of each row (folders_by_path.py).
    """

    read: ReadSettings
    conf: Mapping[str, str]
    recursive: bool = False
    client: HadoopClient | None = None
    by_paths: bool = False

    scan_nodes = file_splits.SCAN_NODES
    infers_schema = False

    def spark_conf(self, split_size: int) -> Mapping[str, str]:
        """See `spark_conf`."""
        conf = spark_conf(split_size)
        if self.client is not None:
            conf |= {**OF_THE_INDEX, **self.client.spark_conf(self.conf)}
        return conf

    def direct(self, plan: Plan) -> Direct | None:
        """Return None: Spark reads."""
        return None

    def inspect(self, tasks: Tasks, plan: Plan, *, direct: bool, slots: int) -> None:
        """See `inspect_files.inspect_pending`."""
        inspect_pending(tasks, self.read, plan, as_lines=direct, slots=slots)

    def check_pinned_schema(self, spark: SparkSession, plan: Plan, pinned: str) -> None:
        """See `schema_drift.check_pinned_schema`; a schema that the spec gives is not checked."""
        hadoop_s3.reach(spark, pending_files(plan))
        if self.read.schema is None:
            check_pinned_schema(spark, self.read, plan, self._base_path(plan), pinned)

    def frame(
        self, spark: SparkSession, plan: Plan, schema: str | None, most_tasks: int, *, resumed: bool = False
    ) -> FileRows:
        """See `rows.file_rows`; Spark makes the partitions."""
        hadoop_s3.reach(spark, pending_files(plan))
        read = replace(self.read, schema=schema) if schema is not None else self.read
        base_path, files = self._base_path(plan), pending_files(plan)
        found = file_rows(spark, read, plan, base_path)
        if base_path is None or not self.by_paths:
            return found
        return replace(found, rows=folders_by_path.replaced(found.rows, files))

    def for_audit(
        self, spark: SparkSession, plan: Plan, slots: int, *, by_another_reader: bool
    ) -> tuple[Scan, Plan, OtherRows | None]:
        """Return the whole plan for Spark, with another decoder of folders' names."""
        return replace(self, by_paths=True), plan, None

    def items_named_in(self, plan: Plan, text: str) -> str:
        """Return the name of the file that Spark was reading when it failed with `text`, or of those that it may have been."""
        names = {metadata_file_path(file.path).removeprefix("file:"): file.name for file in pending_files(plan)}
        found = _READING.search(text)
        if found is not None and found.group(1) in names:
            return names[found.group(1)]
        names |= {below(file.path): file.name for file in pending_files(plan) if are_in_hdfs([file.path])}
        said = [path for path in names if path in text]
        if said:
            return names[max(said, key=len)]
        every = sorted(names.values())
        return f"one of {', '.join(every[:10])}{' …' if len(every) > 10 else ''}" if len(every) > 1 else every[0]

    def failure_of(self, plan: Plan, text: str) -> EosingestError | None:
        """Return the error of Hadoop's client of the store in the text of Spark's; None for local files."""
        return None if self.client is None else self.client.failure_of(text, self.items_named_in(plan, text))

    def _base_path(self, plan: Plan) -> str | None:
        return partition_base(planned_files(plan), recursive=self.recursive)


def scan_of(table: Any, records: RecordSettings, conf: Mapping[str, str]) -> Scan:
    """Make the scan of a spec's `[source]`."""
    read = ReadSettings(
        format=table.format,
        options=table.reader_options(),
        schema=table.ddl,
        refuses_unknown=table.unknown_fields == "error",
        inspects=table.inspect,
        **vars(records),
    )
    # Readers in Python import Arrow and Kafka's client, which takes a third of a second; Spark's own readers need neither.
    if table.format == "parquet":
        from eosingest.sources.files.reading.parquet_scan import ParquetScan

        return ParquetScan(read, records, table.recursive, conf=conf)
    if table.format == "orc":
        from eosingest.sources.files.reading.orc_scan import OrcScan

        return OrcScan(read, records, table.recursive, conf=conf)
    if table.format == "avro":
        from eosingest.sources.files.reading.avro_scan import AvroScan

        return AvroScan(read, records, table.recursive, conf=conf)
    if table.format == "csv":
        from eosingest.sources.files.reading.csv_scan import CsvScan

        return CsvScan(read, records, table.recursive, conf=conf)
    if table.format == "text" and not is_whole(table.format, read.options):
        from eosingest.sources.files.reading.text_scan import TextScan

        return TextScan(read, records, table.recursive)
    if is_one_value(table.format, read.options):
        from eosingest.sources.files.reading.value_scan import ValueScan

        return ValueScan(read, records, table.recursive)
    by_spark = FileScan(read, conf, table.recursive, _client(table.path))
    if table.format == "json":
        from eosingest.sources.files.reading.json_scan import JsonScan

        return JsonScan(read, records, table.recursive, conf=conf)
    if FORMATS[table.format].is_read_in_python:
        from eosingest.sources.files.reading.xml_scan import XmlScan

        return XmlScan(read, records, table.recursive)
    return by_spark


def _client(paths: Sequence[str]) -> HadoopClient | None:
    """Return Hadoop's client of the paths' store; None for local paths."""
    if are_in_buckets(paths):
        return HadoopClient(hadoop_s3.spark_conf, hadoop_s3.failure_of)
    return HadoopClient(hadoop_hdfs.spark_conf, hadoop_hdfs.failure_of) if are_in_hdfs(paths) else None
