"""Reads ranges of a topic read_committed, in Spark's workers: of the sink topic for an audit, or of a source topic.

Like offsets_reader.py it ends by position: aborted records and transaction markers leave gaps. The driver has
seen every transaction of a range decided before a worker reads it, so no read waits for an open transaction.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

import confluent_kafka
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from eosingest.kafka.config import ClientSettings
from eosingest.kafka.librdkafka import failures, log, position, raise_unless_passing, topic_id
from eosingest.kafka.ports import FailureKind, KafkaFailure

_BATCH = 10_000
_REQUEST_S = 30.0
_WAIT_S = 0.1
# A range may end inside a partition; records prefetched beyond its end are discarded, so their size is limited.
_QUEUED_KBYTES = 32_768


class TopicReader:
    """A consumer of one topic, without a group. Raises KafkaFailure."""

    def __init__(self, topic: str, client: ClientSettings, *, patience_s: float) -> None:
        """Connect when first used. `patience_s`: for how many seconds a read may make no progress."""
        self._topic = topic
        self._client = client
        self._admin: AdminClient | None = None
        self._patience_s = patience_s
        config = {
            **client.librdkafka(),
            "group.id": "eosingest-reads-without-a-group",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",  # an offset that retention has just deleted must not be skipped
            "isolation.level": "read_committed",
            "check.crcs": True,  # as Java's consumer: a broker serves a damaged batch unchecked
            "queued.max.messages.kbytes": _QUEUED_KBYTES,
            "fetch.wait.max.ms": 20,  # the last fetch finds nothing more
            "fetch.queue.backoff.ms": 10,  # otherwise a full queue is checked again after a second
        }
        with failures():
            self._consumer = confluent_kafka.Consumer(config, logger=log)

    def topic_id(self) -> str:
        """Return the id of the topic that exists now."""
        with failures():
            if self._admin is None:
                self._admin = AdminClient(self._client.librdkafka(), logger=log)
        return topic_id(self._admin, self._topic, _REQUEST_S)

    def bounds(self, partition: int) -> tuple[int, int]:
        """Return the first offset that a partition still holds, and its last stable offset."""
        with failures():
            low_high = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), timeout=_REQUEST_S)
        if low_high is None:
            raise KafkaFailure(FailureKind.UNCERTAIN, "_TIMED_OUT", f"no watermarks of {self._topic}-{partition}")
        low, high = low_high
        return int(low), int(high)

    def read(self, partition: int, start: int, end: int) -> Iterator[list[confluent_kafka.Message]]:
        """Yield the records of [start, end) of a partition by offset, in lists that are never empty."""
        with failures():
            self._consumer.assign([TopicPartition(self._topic, partition, start)])
        try:
            yield from self._until(partition, start, end)
        finally:
            with failures():
                self._consumer.unassign()

    def _until(self, partition: int, start: int, end: int) -> Iterator[list[confluent_kafka.Message]]:
        reached, deadline = start, time.monotonic() + self._patience_s
        while reached < end:
            with failures():
                # Waits for one message only: with a larger number it waits the whole time if fewer arrive.
                messages = self._consumer.consume(1, timeout=_WAIT_S)
                messages += self._consumer.consume(_BATCH, timeout=0)
            records = [message for message in messages if message.error() is None]
            at = records[-1].offset() + 1 if records else -1
            if len(records) < len(messages):
                at = max(at, *(_end_of(message) for message in messages))
            if not messages:
                at = position(self._consumer, self._topic, partition)
            if at > reached:
                reached, deadline = at, time.monotonic() + self._patience_s
            elif time.monotonic() > deadline:
                raise KafkaFailure(
                    FailureKind.UNCERTAIN,
                    "read-deadline",
                    f"{self._topic}-{partition} was read to offset {reached} of {end}, and no further",
                )
            if records and records[-1].offset() >= end:
                records = [record for record in records if record.offset() < end]
            if records:
                yield records

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()


def _end_of(message: confluent_kafka.Message) -> int:
    """Return the offset of an end of the partition, -1 for other messages. Raises for an error that ends the read."""
    error = message.error()
    if (
        error is None or error.name() == "GROUP_AUTHORIZATION_FAILED"
    ):  # comes without Group rights, and means nothing here
        return -1
    if error.name() == "_PARTITION_EOF":
        return int(message.offset())
    raise_unless_passing(error)
    return -1


class TopicRecord(NamedTuple):
    """A record of a topic, as plain values. `timestamp_ms` is None where the message has no timestamp."""

    partition: int
    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def record_of(message: confluent_kafka.Message) -> TopicRecord:
    """Return the values of a message."""
    kind, timestamp = message.timestamp()
    return TopicRecord(
        message.partition(),
        message.offset(),
        timestamp if kind != confluent_kafka.TIMESTAMP_NOT_AVAILABLE else None,
        _bytes(message.key()),
        _bytes(message.value()),
        tuple((name, _bytes(value)) for name, value in message.headers() or ()),
    )


def _bytes(value: bytes | str | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
