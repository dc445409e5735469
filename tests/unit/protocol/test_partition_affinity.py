"""Where records without a key go that come from a partition of a topic: to that of the same number, where there are as many."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from eosingest.app.settings import driver_settings
from eosingest.kafka.ports import ANY_PARTITION, Records
from eosingest.protocol.partition_affinity import in_their_partition, spread_note
from eosingest.protocol.source import SourcePartition
from eosingest.protocol.task_contract import Batch
from eosingest.records.limits import TopicLimits
from eosingest.sources.topics.ranges import RangeSplit
from eosingest.spark.worker import binary_column
from eosingest.spec import load
from tests.support.builders import task_settings

KEYS = [b"k", None, b"", None]
SETTINGS = task_settings(limits=TopicLimits(1_000_000, partitions=3), keeps_partitions=True)
HOME = SourcePartition(2, 3)


def rows(keys: list[bytes | None] | pa.Array, partitions: list[int] | None = None) -> Batch:  # type: ignore[type-arg]
    count = len(keys)
    columns = binary_column(keys) if isinstance(keys, pa.Array) else keys
    chosen = np.array(partitions, np.int32) if partitions is not None else None
    numbers = np.zeros(count, np.int64)
    return Batch(numbers, Records(columns, [b"v"] * count, partitions=chosen), numbers, numbers)


def chosen(batch: Batch) -> list[int] | None:
    return None if batch.records.partitions is None else batch.records.partitions.tolist()


@pytest.mark.parametrize("keys", [KEYS, pa.array(KEYS, pa.binary())], ids=["list", "column"])
def test_a_null_key_keeps_its_partition_and_every_other_key_finds_its_own(keys: object) -> None:
    """Breaks when a record with an empty key is taken for one without, or one with a key is not left to the partitioner."""
    made = in_their_partition(rows(keys), HOME, SETTINGS)  # type: ignore[arg-type]
    assert chosen(made) == [ANY_PARTITION, 2, ANY_PARTITION, 2]
    assert list(made.records.keys) == KEYS


def test_where_it_is_not_kept() -> None:
    """Breaks when the sink has another number of partitions, the rows come from no topic, or the spec says where they go."""
    batch = rows(KEYS)
    fewer = replace(SETTINGS, limits=replace(SETTINGS.limits, partitions=2))
    assert chosen(in_their_partition(batch, HOME, fewer)) is None
    assert chosen(in_their_partition(batch, None, SETTINGS)) is None
    assert chosen(in_their_partition(batch, HOME, replace(SETTINGS, keeps_partitions=False))) is None
    assert chosen(in_their_partition(rows([b"a", b"b"]), HOME, SETTINGS)) is None, "nothing is to be kept"
    told = rows(KEYS, [1, 0, ANY_PARTITION, ANY_PARTITION])
    assert chosen(in_their_partition(told, HOME, SETTINGS)) == [1, 0, ANY_PARTITION, ANY_PARTITION]


def test_a_run_says_where_it_is_not_kept() -> None:
    """Breaks when it is said of a topic of as many partitions, or of splits that are of no topic's partition."""
    listed, known = RangeSplit("t", "id", 2, 0, 5, partitions=3), RangeSplit("t", "id", 2, 0, 5)
    assert spread_note([listed, known], "to", 3) is None
    assert spread_note([known], "to", 2) is None
    note = spread_note([known, listed], "to", 2)
    assert note is not None
    assert note.startswith("the source topic has 3 partitions, and to has 2: records without a key are spread")


def test_which_splits_have_a_home() -> None:
    """A range that was listed; not one that is known from its offset record alone."""
    assert RangeSplit("t", "id", 2, 0, 5, partitions=3).source_partition == HOME
    assert RangeSplit("t", "id", 2, 0, 5).source_partition is None
    assert RangeSplit("t", "id", 2, 0, 5) == RangeSplit("t", "id", 2, 0, 5, partitions=3), "it is no part of what it is"


SPEC = """\
name = "job"
[source]
format = "kafka"
topic = "from"
[record]
{record}
[sink]
bootstrap_servers = "nowhere:1"
topic = "to"
{sink}
"""


@pytest.mark.parametrize(
    ("record", "sink", "kept"),
    [
        ("", "", True),
        ('key = "CAST(NULL AS BINARY)"', "", True),
        ("", 'partitioner = "consistent_random"', True),
        ('partition = "partition"', "", False),
        ('partition = "CAST(NULL AS INT)"', "", False),
        ("", 'partitioner = "murmur2"', False),
        ("", 'partitioner = "random"', False),
    ],
)
def test_what_a_spec_says(tmp_path: Path, record: str, sink: str, kept: bool) -> None:
    """Breaks when a partitioner that has a rule of its own for null keys, or `record.partition`, is passed over."""
    file = tmp_path / "job.toml"
    file.write_text(SPEC.format(record=record, sink=sink))
    spec = load(file)
    assert driver_settings(spec, "nowhere:1").keeps_partitions is kept
