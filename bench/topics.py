"""What the broker says of a topic: how many records it holds, and in how many seconds it was given them.

The same for every contender: a topic whose timestamps are the broker's, read from its first and its last records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 3


class Filled(NamedTuple):
    """Records of a topic (control records of transactions are none), and when the first and the last were appended (s)."""

    records: int
    first_s: float
    last_s: float

    @property
    def seconds(self) -> float:
        """How long records were coming in."""
        return self.last_s - self.first_s


def create(servers: str, topic: str, config: Mapping[str, str] | None = None) -> None:
    """Make a topic whose records bear the time at which the broker took them."""
    made = NewTopic(topic, PARTITIONS, 1, config={"message.timestamp.type": "LogAppendTime", **(config or {})})
    admin = AdminClient({"bootstrap.servers": servers})
    for done in admin.create_topics([made]).values():
        done.result(20)


def delete(servers: str, topic: str) -> None:
    """Delete a topic; the broker needs its disk."""
    admin = AdminClient({"bootstrap.servers": servers})
    for done in admin.delete_topics([topic]).values():
        done.result(20)


def filled(servers: str, topic: str) -> Filled:
    """Read the topic read_committed to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "bench",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "fetch.queue.backoff.ms": 10,
        }
    )
    count, first, last, ended = 0, float("inf"), float("-inf"), set[int]()
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        while len(ended) < PARTITIONS:
            for message in consumer.consume(10_000, timeout=5):
                if message.error():
                    ended.add(message.partition())
                    continue
                count += 1
                at = message.timestamp()[1] / 1000
                first, last = min(first, at), max(last, at)
    finally:
        consumer.close()
    return Filled(count, first, last)
