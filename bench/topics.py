"""What the broker says of a topic: how many records it holds, and in how many seconds it was given them.

The same for every contender: a topic whose timestamps are the broker's, read from its first and its last records.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

PARTITIONS = 3
_LOOK_S = 0.5
_STILL_S = 5.0  # a topic that has been given nothing for as long is given nothing more


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


def wait_until_filled(servers: str, topic: str, records: int, deadline_s: float, check: Callable[[], None]) -> None:
    """Wait until a topic holds so many records and nothing more comes; transactions have control records beside them.

    Cheap, so that it does not slow down who is measured: when the records came the broker tells afterwards (`filled`).
    `check` raises where nothing will come.
    """
    admin, ends = AdminClient({"bootstrap.servers": servers}), -1
    asked = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in range(PARTITIONS)}
    changed = time.monotonic()
    deadline = changed + deadline_s
    while time.monotonic() < deadline:
        now = sum(found.result(20).offset for found in admin.list_offsets(asked).values())
        if now != ends:
            ends, changed = now, time.monotonic()
        elif now >= records and time.monotonic() - changed > _STILL_S:
            return
        check()
        time.sleep(_LOOK_S)
    raise TimeoutError(f"{topic} holds {ends} records of {records} after {deadline_s:.0f} s")
