"""Builds the job that the launcher (job.py) runs, in one of two ways, and describes it for the driver.

FrameReading: Spark reads rows and makes the record columns. DirectReading: each task reads its splits itself, and no row goes
through the JVM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pyspark import Accumulator
from pyspark.sql import DataFrame

from eosingest.protocol.driver_contract import Prepared
from eosingest.protocol.split_table import SplitTable
from eosingest.spark import plan_checks
from eosingest.spark.direct import Confirm, Direct, DirectReader, DirectSplit, deal
from eosingest.spark.end_marker import with_end_row
from eosingest.spark.python_scan import PythonRows
from eosingest.spark.record_columns import null_columns, record_frame
from eosingest.spark.record_settings import RecordSettings
from eosingest.spark.without_pandas import map_in_arrow
from eosingest.spark.worker import OUTPUT_SCHEMA, DirectTaskFunction, TaskFunction, WorkerKafka


class Reading(Protocol):
    """A job that is ready to be run."""

    @property
    def prepared(self) -> Prepared:
        """The job's description for the driver: the number of tasks, the schema of the rows, the splits."""

    def job(self, context: Any, kafka: WorkerKafka, outcomes: Accumulator[list[str]], confirm: Confirm) -> Any:
        """Return the DataFrame or RDD whose rows are the tasks' outcomes. `confirm` is `Inputs.confirm` of the tasks."""


@dataclass(frozen=True)
class FrameReading:
    """Spark reads: `records` has the record columns, `headers` the names of its header columns.

    `source` has the rows from which they are computed. `several`: a source row may give several records. `json_schemas` as in
    `TaskFunction`.
    """

    records: DataFrame
    source: PythonRows
    headers: tuple[str, ...]
    prepared: Prepared
    several: bool = True
    json_schemas: Mapping[str, str] = field(default_factory=dict)

    def job(self, context: Any, kafka: WorkerKafka, outcomes: Accumulator[list[str]], confirm: Confirm) -> DataFrame:
        """See `Reading.job`. Every task receives all splits: it finds those of its rows by their hashes."""
        kafka = replace(kafka, settings=replace(kafka.settings, splits=SplitTable(kafka.settings.splits)))
        whole = kafka.settings.whole
        records = with_end_row(self.records) if whole else self.records.coalesce(self.prepared.tasks)
        function = TaskFunction(
            kafka, self.headers, outcomes, self.several, self.json_schemas, self.source.why, confirm
        )
        return map_in_arrow(records, function, OUTPUT_SCHEMA)


@dataclass(frozen=True)
class DirectReading:
    """The tasks read: `tasks` are the splits of each (`direct.deal`), and `reader` reads them."""

    reader: DirectReader
    tasks: Sequence[tuple[DirectSplit, ...]]
    prepared: Prepared

    def job(self, context: Any, kafka: WorkerKafka, outcomes: Accumulator[list[str]], confirm: Confirm) -> Any:
        """See `Reading.job`."""
        kafka = replace(kafka, settings=replace(kafka.settings, splits={}))
        tasks = context.parallelize(self.tasks, len(self.tasks))
        return tasks.mapPartitions(DirectTaskFunction(kafka, self.reader, outcomes, confirm))


def frame_reading(rows: PythonRows, settings: RecordSettings, most_tasks: int) -> FrameReading:
    """Make the record columns of a plan's rows; check that Spark's plan is narrow and reads each planned split once.

    Raises SpecError for an invalid expression.
    """
    frame = record_frame(rows, settings)
    records = frame.records.drop(*null_columns(frame, settings))
    plan_checks.check_narrow(records)
    splits, partitions = frame.source.verified(records)
    tasks = max(1, min(partitions, most_tasks))
    several = frame.source.position is not None and plan_checks.generates_rows(records)
    prepared = Prepared(tasks, frame.source.schema, splits)
    return FrameReading(records, frame.source, tuple(settings.headers), prepared, several, settings.json_schemas)


def direct_reading(direct: Direct, schema: str | None, most_tasks: int) -> DirectReading:
    """Assign the splits that are not done to at most `most_tasks` tasks."""
    tasks = deal([split for split in direct.splits if not split.planned.done], most_tasks)
    splits = {split.key: split.planned for split in direct.splits}
    return DirectReading(direct.reader, tasks, Prepared(len(tasks), schema or direct.schema, splits))
