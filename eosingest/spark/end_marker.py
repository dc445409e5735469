"""Adds, for a job in one transaction, a last row that Spark computes after all others: the proof that all rows arrived.

    records ─▶ one partition ─▶ + end row ─▶ Arrow batches ─▶ until_end ─▶ worker.ArrowInputs

A normal end of its input proves nothing to a Python task, which sees it also if the JVM failed or was cancelled. The JVM
computes this row after the last row of the last partition: a task that has received it has received all rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from eosingest.errors import FatalError
from eosingest.protocol.task_contract import Signal
from eosingest.spark.record_settings import SPLIT
from eosingest.spark.without_pandas import literal


def with_end_row(records: DataFrame) -> DataFrame:
    """Return the record columns (record_columns.py) in one partition, followed by a row without a split.

    A union has the partitions of its first part before those of its second; here each part has one, and so has the result.
    """
    end = records.sparkSession.range(0, 1, 1, 1).select(literal(None).cast("bigint").alias(SPLIT))
    return records.coalesce(1).unionByName(end, allowMissingColumns=True).coalesce(1)


def until_end(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch | Signal]:
    """Yield the batches without the end row, then Signal.ALL if the end row was the last one.

    Raises FatalError if rows follow it: then the order is not the one on which the proof rests.
    """
    ended = False
    for batch in batches:
        without = batch.column(SPLIT).null_count
        if ended or without > 1 or (without and batch.column(SPLIT)[-1].is_valid):
            raise FatalError(
                "rows came after the row that Spark was to compute last",
                code="row-out-of-place",
                hint="this is a bug in eosingest, please report it; nothing was sent",
            )
        ended = bool(without)
        rows = batch.slice(0, len(batch) - without)
        if len(rows):
            yield rows
    if ended:
        yield Signal.ALL
