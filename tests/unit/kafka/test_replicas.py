"""What is said of partitions that cannot be written."""

from __future__ import annotations

from confluent_kafka.admin import PartitionMetadata

from eosingest.kafka.replicas import too_few_of


def part(number: int, leader: int, in_sync: list[int]) -> PartitionMetadata:
    made = PartitionMetadata()
    made.id, made.leader, made.replicas, made.isrs = number, leader, [1, 2, 3], in_sync
    return made


def test_partitions_that_cannot_be_written_are_named() -> None:
    """Breaks when one without a leader, or with too few replicas in sync, is passed over, or a healthy one is named."""
    whole, short, lost = part(0, 1, [1, 2]), part(1, 1, [1]), part(2, -1, [3])
    assert list(too_few_of("t", [whole], 2)) == []
    assert list(too_few_of("t", [whole, lost, short], 2)) == [
        "topic t, partition 1, 2: 1 of 3 replicas in sync, min.insync.replicas is 2; not in sync: broker 1, 2, 3"
    ]


def test_not_all_of_a_thousand() -> None:
    (said,) = too_few_of("t", [part(number, 1, [1]) for number in range(1_000)], 2)
    assert "partition 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 990 more: 1 of 3" in said
