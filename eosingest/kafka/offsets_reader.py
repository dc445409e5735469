"""Reads the offsets topic with confluent-kafka (librdkafka).

Driver and tasks read the job's progress through it, and an audit its receipts: offsets/topic.py uses it as
`ports.OffsetsReader`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import confluent_kafka
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from eosingest.errors import InterruptedRunError
from eosingest.host.interruptible import in_thread
from eosingest.host.interruption import never
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.librdkafka import failures, log, position, raise_unless_passing, topic_id
from eosingest.kafka.ports import FailureKind, KafkaFailure, LogRecord

# Errors of a broker or librdkafka while a partition's leader moves, or has just moved.
_LEADER_MOVES = frozenset(
    {
        "FENCED_LEADER_EPOCH",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_FOR_PARTITION",
        "OFFSET_NOT_AVAILABLE",
        "UNKNOWN_LEADER_EPOCH",
        "_UNKNOWN_PARTITION",
    }
)
_POLL_S = 0.1
_T = TypeVar("_T")
_STEP_S = 1.0
_LEADER_S = 30.0


class LibrdkafkaOffsetsReader:
    """Reads one partition of the offsets topic (`ports.OffsetsReader`), without a consumer group.

    It has two consumers, since a read_committed one reports the last stable offset as high watermark (measured).
    """

    def __init__(self, topic: str, partition: int, client: ClientSettings, check: Callable[[], None] = never) -> None:
        """Connect when first used. `check` is called while waiting, and raises to end the wait."""
        self._check = check
        self._topic = topic
        self._partition = partition
        self._config = {
            **client.librdkafka(),
            "group.id": "eosingest-reads-without-a-group",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "check.crcs": True,
            # A start offset that is gone must be an error: the default would jump to the end and read nothing.
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 20,
            "fetch.error.backoff.ms": 50,
            # Otherwise a full queue is checked again after a second: a million records took 7 s instead of 2.
            "fetch.queue.backoff.ms": 10,
        }
        self._client = client
        self._consumers: dict[str, confluent_kafka.Consumer] = {}
        self._admin: AdminClient | None = None

    @property
    def place(self) -> str:
        """The partition's name."""
        return f"{self._topic}-{self._partition}"

    def topic_id(self) -> str:
        """Return the topic's id."""
        with failures():
            if self._admin is None:
                self._admin = AdminClient(self._client.librdkafka(), logger=log)
        return topic_id(self._admin, self._topic, _LEADER_S)

    def _consumer(self, isolation_level: str) -> confluent_kafka.Consumer:
        if isolation_level not in self._consumers:
            config = {**self._config, "isolation.level": isolation_level}
            self._consumers[isolation_level] = confluent_kafka.Consumer(config, logger=log)
        return self._consumers[isolation_level]

    def _watermarks(self, isolation_level: str) -> tuple[int, int]:
        """Return low and high watermark. Waits, up to 30 s, while the partition has no leader or gets another one.

        librdkafka regards "no leader" as permanent and caches it for `metadata.max.age.ms`, a quarter of an hour
        (rd_kafka_topic_partition_list_get_leaders): this refreshes its metadata.
        """
        deadline = time.monotonic() + _LEADER_S
        while True:
            try:
                return self._ask_for_watermarks(isolation_level)
            except KafkaFailure as failure:
                if failure.code not in _LEADER_MOVES:
                    raise
                if time.monotonic() > deadline:
                    raise KafkaFailure(FailureKind.UNCERTAIN, failure.code, failure.detail) from failure
            self._check()
            time.sleep(_POLL_S)
            with contextlib.suppress(KafkaException):  # an error recurs at the next request
                self._consumer(isolation_level).list_topics(self._topic, timeout=_STEP_S)

    def _ask_for_watermarks(self, isolation_level: str) -> tuple[int, int]:
        at, consumer = TopicPartition(self._topic, self._partition), self._consumer(isolation_level)
        try:
            with failures():
                low_high = self._waited_for(lambda: consumer.get_watermark_offsets(at, timeout=_LEADER_S))
        except InterruptedRunError:
            del self._consumers[isolation_level]  # a thread still uses it, so it must not be closed
            raise
        if low_high is None:
            raise KafkaFailure(FailureKind.UNCERTAIN, "_TIMED_OUT", f"no watermarks of {self._topic}")
        low, high = low_high
        return int(low), int(high)

    def _waited_for(self, call: Callable[[], _T]) -> _T:
        return call() if self._check is never else in_thread(call, self._check, "kafka-reader")

    def log_start(self) -> int:
        """Return the log start offset."""
        return self._watermarks("read_uncommitted")[0]

    def high_watermark(self) -> int:
        """Return the high watermark, as a read_uncommitted client sees it."""
        return self._watermarks("read_uncommitted")[1]

    def last_stable_offset(self) -> int:
        """Return the last stable offset: the end for a read_committed client."""
        return self._watermarks("read_committed")[1]

    def read(self, start: int, end: int, *, committed: bool, deadline_s: float) -> Iterator[LogRecord]:
        """Yield [start, end); see `ports.OffsetsReader`. Ends by position: gaps and control records advance it too."""
        if start >= end:
            return
        consumer = self._consumer("read_committed" if committed else "read_uncommitted")
        with failures():
            consumer.assign([TopicPartition(self._topic, self._partition, start)])
        try:
            yield from self._until(consumer, end, deadline_s)
        finally:
            with failures():
                consumer.unassign()

    def _until(self, consumer: confluent_kafka.Consumer, end: int, deadline_s: float) -> Iterator[LogRecord]:
        before, reached, deadline = -1, -1, time.monotonic() + deadline_s
        while reached < end:
            self._check()
            if reached > before:  # progress, however long the caller took for the records
                before, deadline = reached, time.monotonic() + deadline_s
            if time.monotonic() > deadline:
                raise KafkaFailure(
                    FailureKind.UNCERTAIN, "read-deadline", f"read to offset {max(reached, 0)} of {end}, no further"
                )
            with failures():
                # Waits for one message only: with a larger number it waits the whole time if fewer arrive.
                messages = consumer.consume(1, timeout=0.05)
                messages += consumer.consume(10_000, timeout=0)
            for message in messages:
                error = message.error()
                offset = message.offset()
                if error is None:
                    if offset >= end:
                        return
                    reached = offset + 1
                    yield LogRecord(offset, message.key() or b"", message.value(), message.timestamp()[1])
                elif error.name() == "_PARTITION_EOF":
                    reached = max(reached, offset)
                elif error.name() != "GROUP_AUTHORIZATION_FAILED":  # comes without Group rights, and means nothing here
                    raise_unless_passing(error)
            if not messages:
                reached = max(reached, position(consumer, self._topic, self._partition))

    def close(self) -> None:
        """Close both consumers."""
        for consumer in self._consumers.values():
            with contextlib.suppress(KafkaException, RuntimeError):
                consumer.close()
        self._consumers.clear()
