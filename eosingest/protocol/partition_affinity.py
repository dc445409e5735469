"""Keeps the source partition of records without a key that come from a topic (docs/protocol.md).

Between a task's split sequence and its transaction. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from eosingest.kafka.ports import ANY_PARTITION
from eosingest.protocol.source import SourcePartition, Split
from eosingest.protocol.task_contract import Batch, TaskSettings


def spread_note(splits: Iterable[Split], topic: str, partitions: int) -> str | None:
    """Say that records without a key keep no partition in the sink topic, which has `partitions`; None where they do."""
    sources = (split.source_partition for split in splits)
    others = {source.partitions for source in sources if source is not None} - {partitions}
    if not others:
        return None
    return (
        f"the source topic has {max(others)} partitions, and {topic} has {partitions}: records without a key are spread, and"
        " have no order (give it as many partitions, or a partition in [record])"
    )


def in_their_partition(rows: Batch, source: SourcePartition | None, settings: TaskSettings) -> Batch:
    """Return rows of one split, those without a key with their source partition, where the sink has as many partitions.

    Where the spec sets the partitions, the rows are returned as they are.
    """
    if source is None or not settings.keeps_partitions or source.partitions != settings.limits.partitions:
        return rows
    records = rows.records
    if records.partitions is not None or None not in records.keys:
        return rows
    without = np.fromiter((key is None for key in records.keys), np.bool_, len(records))
    chosen = np.where(without, source.partition, ANY_PARTITION).astype(np.int32)
    return replace(rows, records=replace(records, partitions=chosen))
