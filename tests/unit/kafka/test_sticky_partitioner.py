"""Where the records of a call go that have no key: to one partition that has a leader, and not always to the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pytest
from confluent_kafka.admin import ClusterMetadata

from eosingest.kafka.columns import BinaryColumn
from eosingest.kafka.sticky_partitioner import Spread
from eosingest.spark.worker import binary_column

NO_KEYS = BinaryColumn.nulls(3)


def told(leaders: dict[int, int]) -> ClusterMetadata:
    partitions = {number: SimpleNamespace(leader=leader) for number, leader in leaders.items()}
    return cast(ClusterMetadata, SimpleNamespace(topics={"t": SimpleNamespace(partitions=partitions)}))


def spread_of(leaders: dict[int, int], partitioner: str = "murmur2_random", **properties: str) -> Spread:
    made = Spread(partitioner, {name.replace("_", "."): value for name, value in properties.items()})
    made.learn(told(leaders))
    return made


def test_partitions_with_a_leader_in_turns() -> None:
    spread = spread_of({0: 1, 1: -1, 2: 1, 3: 2})
    taken = [spread.next("t", NO_KEYS) for _ in range(300)]
    assert {number: taken.count(number) for number in taken} == {0: 100, 2: 100, 3: 100}
    assert taken[0] != taken[1]


def test_it_does_not_always_begin_with_the_same() -> None:
    begun = {spread_of(dict.fromkeys(range(4), 0)).next("t", NO_KEYS) for _ in range(200)}
    assert begun == {0, 1, 2, 3}


@pytest.mark.parametrize("keys", [[b"k", None, None], [None, None, b""], [b"k"] * 3])
def test_records_with_keys_go_where_the_partitioner_says(keys: list[bytes | None]) -> None:
    column = binary_column(pa.array(keys, pa.binary()))
    assert spread_of({0: 1}).next("t", column) is None


@pytest.mark.parametrize("partitioner", ["consistent", "murmur2", "fnv1a", "random"])
def test_other_partitioners_say_it_for_null_keys_too(partitioner: str) -> None:
    assert spread_of({0: 1}, partitioner).next("t", NO_KEYS) is None


@pytest.mark.parametrize("leaders", [{}, {0: -1}])
def test_nothing_is_chosen_where_nothing_is_known(leaders: dict[int, int]) -> None:
    assert spread_of(leaders).next("t", NO_KEYS) is None
    assert spread_of({0: 1}).next("another topic", NO_KEYS) is None


def test_who_sets_librdkafka_s_own_rule_gets_it() -> None:
    assert spread_of({0: 1}, sticky_partitioning_linger_ms="0").next("t", NO_KEYS) is None
