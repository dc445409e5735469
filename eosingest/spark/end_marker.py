"""Adds a last row that Spark computes after all others, where one transaction has everything: the proof that they all came.

    records ─▶ one partition ─▶ + end row ─▶ Arrow batches ─▶ until_end ─▶ worker.ArrowInputs

A task in Python sees a normal end of its input also where the JVM failed or was cancelled, and may not commit all on that. The
JVM computes this row behind the last row of the last partition: whoever has it has had all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from eosingest.errors import FatalError
from eosingest.protocol.task_contract import Signal
from eosingest.spark.record_columns import SPLIT
from eosingest.spark.without_pandas import literal


def with_end_row(records: DataFrame) -> DataFrame:
    """Return the record columns (record_columns.py) in one partition, and behind all of them a row without a split.

    A union has the partitions of its first part before those of its second; each part has one here, and stays one.
    """
    end = records.sparkSession.range(0, 1, 1, 1).select(literal(None).cast("bigint").alias(SPLIT))
    return records.coalesce(1).unionByName(end, allowMissingColumns=True).coalesce(1)


def until_end(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch | Signal]:
    """Yield the batches without the end row, and Signal.ALL when nothing came behind it.

    Raises FatalError where something did: then the order is not the one that the proof rests on.
    """
    ended = False
    for batch in batches:
        without = batch.column(SPLIT).null_count
        if ended or without > 1 or (without and batch.column(SPLIT)[-1].is_valid):
            raise FatalError(
                "rows came behind the row that Spark was to compute last",
                code="row-out-of-place",
                hint="this is a bug in eosingest, please report it; nothing was sent",
            )
        ended = bool(without)
        rows = batch.slice(0, len(batch) - without)
        if len(rows):
            yield rows
    if ended:
        yield Signal.ALL
