"""Finds where a partition's log begins and ends (ListOffsets), and where a leader epoch ends (OffsetForLeaderEpoch, KIP-320).

For `KafkaPythonAdmin`. The second reveals a log that was truncated and grew again. kafka-python's admin has no call for it: its
private `_async_get_leader_for_partitions` and `_manager` send the request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import kafka.errors as kafka_errors
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec
from kafka.protocol.consumer.offsets import IsolationLevel, OffsetForLeaderEpochRequest

_Topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
_CONSUMER = -1  # in place of a replica's id
_ANY_LEADER = -1  # in place of the epoch that the leader must have
_PATIENCE_S = 30.0
_AGAIN_S = 0.2


def log_ends(
    client: KafkaAdminClient,
    asked: Mapping[TopicPartition, OffsetSpec | int],
    level: IsolationLevel,
    check: Callable[[], None],
) -> list[Any]:
    """Return kafka-python's `OffsetAndTimestamp` of each partition, in their order; waits a while for a leader that moves.

    `check` is called while waiting, and raises to end the wait. Raises kafka-python's errors.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        check()
        try:
            found = client.list_partition_offsets(asked, level)
            return [found[place] for place in asked]
        except kafka_errors.RetriableError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_AGAIN_S)


async def ends_of_epochs(client: KafkaAdminClient, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return, for each partition, the offset after its last record of the epoch or an earlier one; -1 if no leader knows it.

    Runs in the client's network thread. Raises kafka-python's errors.
    """
    ends: dict[TopicPartition, int] = {}
    leaders = await client._async_get_leader_for_partitions(set(epochs))
    for leader, places in leaders.items():
        topics = [_asked(place, epochs[place]) for place in places]
        request = OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=topics)
        answer = await client._manager.send(request, node_id=leader)
        for topic in answer.topics:
            for partition in topic.partitions:
                if partition.error_code:
                    raise kafka_errors.for_code(partition.error_code)(f"{topic.topic}-{partition.partition}")
                ends[TopicPartition(topic.topic, partition.partition)] = partition.end_offset
    return ends


def _asked(place: TopicPartition, epoch: int) -> Any:
    at = _Topic.OffsetForLeaderPartition(
        partition=place.partition, current_leader_epoch=_ANY_LEADER, leader_epoch=epoch
    )
    return _Topic(topic=place.topic, partitions=[at])
