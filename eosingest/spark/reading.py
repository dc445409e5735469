"""The two ways from a source to the tasks, each prepared: what the launcher (job.py) runs, and what the driver is told of it.

FrameReading: Spark reads rows and makes the record columns of them. DirectReading: each task reads its splits itself, and no
JVM has to do with rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pyspark import Accumulator
from pyspark.sql import DataFrame

from eosingest.protocol.driver_contract import Prepared
from eosingest.spark.direct import DirectReader, DirectSplit
from eosingest.spark.worker import OUTPUT_SCHEMA, DirectTaskFunction, TaskFunction, WorkerKafka


class Reading(Protocol):
    """A job that is ready to be run."""

    @property
    def prepared(self) -> Prepared:
        """What the driver is told: how many tasks it has, by which schema rows are read, and which splits."""

    def job(self, context: Any, kafka: WorkerKafka, outcomes: Accumulator[list[str]]) -> Any:
        """Return the DataFrame, or the RDD, of the tasks' outcomes."""


@dataclass(frozen=True)
class FrameReading:
    """Spark reads: `records` are the record columns, with the header of each of the `headers`, in order."""

    records: DataFrame
    headers: tuple[str, ...]
    prepared: Prepared

    def job(self, context: Any, kafka: WorkerKafka, outcomes: Accumulator[list[str]]) -> DataFrame:
        """See the protocol. Every task is told of all splits: which it gets Spark alone decides."""
        function = TaskFunction(kafka, self.headers, outcomes)
        return self.records.coalesce(self.prepared.tasks).mapInArrow(function, OUTPUT_SCHEMA)


@dataclass(frozen=True)
class DirectReading:
    """The tasks read: `tasks` are the splits of each (`direct.deal`), and `reader` reads them."""

    reader: DirectReader
    tasks: Sequence[tuple[DirectSplit, ...]]
    prepared: Prepared

    def job(self, context: Any, kafka: WorkerKafka, outcomes: Accumulator[list[str]]) -> Any:
        """See the protocol."""
        kafka = replace(kafka, settings=replace(kafka.settings, splits={}))
        tasks = context.parallelize(self.tasks, len(self.tasks))
        return tasks.mapPartitions(DirectTaskFunction(kafka, self.reader, outcomes))
