"""Implements the transactional producer of tasks and of the driver's control records, with confluent-kafka (librdkafka).

Everything that is written to Kafka goes through it: records, offset records and control records (docs/protocol.md). task.py and
control_log.py use it as `ports.Producer`. kafka-python never produces: its transactional commit has defects in 3.0.x.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import TypeVar

import confluent_kafka
import numpy as np
import numpy.typing as npt
from confluent_kafka import KafkaError, KafkaException

from eosingest.host.interruptible import in_thread
from eosingest.host.interruption import never
from eosingest.kafka.columns import BinaryColumn
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.librdkafka import classify, failures, log
from eosingest.kafka.ports import (
    ANY_PARTITION,
    LARGEST_RECORD_BYTES,
    REPEATED_COMMIT_S,
    FailureKind,
    KafkaFailure,
    Records,
)
from eosingest.kafka.produce_batch import BatchProducer
from eosingest.kafka.sticky_partitioner import Spread

_T = TypeVar("_T")

# Errors of a producer that had failed before, which do not name the cause. Its transaction's records are purged.
_NOT_SAID_WHY = frozenset({"_FATAL", "_INCONSISTENT", "_PURGE_INFLIGHT", "_PURGE_QUEUE", "_STATE"})
_BATCH_BYTES = 1_000_000  # librdkafka's own default
_LEAST_MESSAGE_MAX_BYTES = 1_000  # librdkafka takes no less
_POLL_S = 0.1
_INIT_S = 30.0
_STEP_S = 1.0
_QUEUE_KBYTES = LARGEST_RECORD_BYTES >> 10
# librdkafka varies its waits by 20 %: a request is repeated after 1.6 times REPEATED_COMMIT_S at the earliest.
_RETRY_BACKOFF_MS = int(2_000 * REPEATED_COMMIT_S)


@dataclass(frozen=True)
class ProducerSettings:
    """The settings of a task's producer. Sizes in bytes, times in seconds. It first requests the metadata of `topic`.

    `message_max_bytes` is the largest max.message.bytes of the topics that are written to. That setting limits batches: only a
    batch of one record may be larger than `batch_max_bytes`, the smallest of them.
    """

    client: ClientSettings
    topic: str
    transaction_timeout_s: float
    partitioner: str = "murmur2_random"
    message_max_bytes: int = 1_000_000
    batch_max_bytes: int = 1_000_000


def _batch_size(settings: ProducerSettings) -> int:
    """Return how large a batch may get: the user's setting or librdkafka's default, and never more than a topic takes."""
    wanted = settings.client.properties.get("batch.size", "")
    most = int(wanted) if wanted.isdecimal() else _BATCH_BYTES
    return max(1, min(most, settings.batch_max_bytes))


class LibrdkafkaProducer:
    """A transactional producer of librdkafka (`ports.Producer`).

    Any record that fails makes the commit fail (librdkafka >= 1.7). The delivery callback receives only errors, so a delivered
    record costs nothing; for records in columns it receives none, and the error is read from the client. Waits are bounded
    by the transaction timeout: after it nothing can succeed. Where a signal may end a wait, the call runs in a thread, and
    is not repeated in short steps: librdkafka advises against a commit timeout other than the transaction timeout.
    """

    def __init__(self, transactional_id: str, settings: ProducerSettings, check: Callable[[], None] = never) -> None:
        """Connect. `check` is called while waiting, and raises to end the wait. Raises KafkaFailure for a bad setting."""
        self._check = check
        self._timeout_s = settings.transaction_timeout_s
        self._topic = settings.topic
        self._undelivered: KafkaError | None = None
        config = {
            "linger.ms": 20,
            "queue.buffering.max.kbytes": _QUEUE_KBYTES,
            "message.max.bytes": max(_LEAST_MESSAGE_MAX_BYTES, settings.message_max_bytes),
            **settings.client.librdkafka(),
            "batch.size": _batch_size(settings),
            "transactional.id": transactional_id,
            "transaction.timeout.ms": int(settings.transaction_timeout_s * 1000),
            "retry.backoff.ms": _RETRY_BACKOFF_MS,
            "retry.backoff.max.ms": _RETRY_BACKOFF_MS,
            "partitioner": settings.partitioner,
            "delivery.report.only.error": True,
            "on_delivery": self._on_delivery,
        }
        with failures():
            self._producer = confluent_kafka.Producer(config, logger=log)
        self._batches = BatchProducer.of(self._producer)
        self._spread = Spread(settings.partitioner, settings.client.properties)

    def _on_delivery(self, error: KafkaError | None, _message: object) -> None:
        if error is not None and self._undelivered is None:
            self._undelivered = error

    def _raise_undelivered(self) -> None:
        if self._undelivered is not None:
            with self._failures():
                raise classify(self._undelivered)

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        """As `failures`; if the error says only that the transaction is broken, raise the error that broke it."""
        try:
            with failures():
                yield
        except KafkaFailure as failure:
            if failure.code in _NOT_SAID_WHY:
                with failures():
                    self._producer.begin_transaction()  # librdkafka answers with the reason
            raise

    @contextlib.contextmanager
    def _polling(self) -> Iterator[None]:
        """As `failures`, around calls that serve callbacks.

        confluent-kafka turns a fatal error into an exception in its error callback; a delivery callback of the same poll
        then fails on it, or swallows it, and the call raises SystemError. The error is read from the client again.
        """
        try:
            with self._failures():
                yield
        except SystemError as error:
            with failures():
                self._producer.begin_transaction()
            raise KafkaFailure(FailureKind.UNCERTAIN, "unknown", str(error)) from error

    def init_transactions(self) -> None:
        """Fence earlier producers of the id (InitProducerId, which librdkafka retries until the coordinator answers)."""
        deadline = time.monotonic() + max(_INIT_S, self._timeout_s)
        # If no broker is connected, librdkafka repeats its query for the coordinator only after 500 ms. The first metadata
        # may arrive over the bootstrap connection, which it then closes; the second arrives over one that stays.
        with contextlib.suppress(KafkaException):
            self._producer.list_topics(self._topic, _STEP_S)
            self._spread.learn(self._producer.list_topics(self._topic, _STEP_S))
        while True:
            self._check()
            try:
                # A call that times out here resumes when it is repeated.
                self._producer.init_transactions(min(_STEP_S, max(0.1, deadline - time.monotonic())))
                return
            except KafkaException as exception:
                error = exception.args[0]
                if time.monotonic() > deadline or not error.retriable():
                    raise classify(error) from exception

    def begin(self) -> None:
        """Open a transaction (local to the client until the first record)."""
        with failures():
            self._producer.begin_transaction()

    def produce(self, topic: str, records: Records) -> None:
        """Hand over the records, waiting if the queue is full; any other refusal is a failure.

        Columns in memory go in one call; records with headers or timestamps, or in lists, go one by one.
        """
        keys, values = records.keys, records.values
        plain = records.headers is None and records.timestamps_ms is None
        if self._batches is not None and plain and isinstance(keys, BinaryColumn) and isinstance(values, BinaryColumn):
            partition = self._spread.next(topic, keys) if records.partitions is None else None
            self._produce_columns(
                self._batches, topic, self._batches.messages(keys, values, records.partitions), partition
            )
        else:
            self._produce_each(topic, records)
        with self._polling():
            self._producer.poll(0)
        self._raise_undelivered()

    def _produce_columns(
        self, batches: BatchProducer, topic: str, messages: npt.NDArray[np.void], partition: int | None
    ) -> None:
        deadline = time.monotonic() + self._timeout_s
        while True:
            taken, error = batches.produce(topic, messages, partition)
            if error is None:
                return
            if error.code() != KafkaError._QUEUE_FULL:
                with self._failures():
                    raise KafkaException(error)
            messages = messages[taken:]
            self._wait_for_room(deadline)

    def _wait_for_room(self, deadline: float) -> None:
        """Let librdkafka send for a moment. Raises KafkaFailure for a record that failed, and after the deadline."""
        with self._polling():
            self._producer.poll(_POLL_S)
        self._raise_undelivered()
        if time.monotonic() > deadline:
            raise KafkaFailure(FailureKind.UNCERTAIN, "_QUEUE_FULL", "the brokers take no records")

    def _produce_each(self, topic: str, records: Records) -> None:
        count = len(records)
        partitions = repeat(ANY_PARTITION, count) if records.partitions is None else records.partitions.tolist()
        # Zero means "now" to librdkafka's Python API, as does a null timestamp to us.
        timestamps = repeat(0, count) if records.timestamps_ms is None else (ms or 0 for ms in records.timestamps_ms)
        headers = repeat(None, count) if records.headers is None else records.headers
        produce, deadline = self._producer.produce, time.monotonic() + self._timeout_s
        rows = zip(records.values, records.keys, partitions, timestamps, headers, strict=True)
        with self._failures():  # around all of them: around each it takes as long as the call itself
            for value, key, partition, timestamp, header in rows:
                while True:
                    try:
                        produce(topic, value, key, partition, timestamp=timestamp, headers=header)
                        break
                    except BufferError:
                        self._wait_for_room(deadline)

    def produce_to_partition(self, topic: str, partition: int, key: bytes, value: bytes | None) -> None:
        """Hand over one record for an explicit partition."""
        self._produce_each(topic, Records([key], [value], partitions=np.array([partition], np.int32)))

    def flush(self) -> None:
        """Wait for every delivery; records left at the transaction timeout cannot be committed any more."""
        producer, timeout_s = self._producer, self._timeout_s
        with self._polling():
            left = self._waited_for(lambda: producer.flush(timeout_s))
        self._raise_undelivered()
        if left:
            raise KafkaFailure(FailureKind.UNCERTAIN, "_MSG_TIMED_OUT", f"{left} records were not delivered in time")

    def commit(self) -> None:
        """Commit (EndTxn). Waits for 10 s longer than the transaction timeout, after which the broker has decided it."""
        producer, timeout_s = self._producer, self._timeout_s + 10
        with self._polling():
            self._waited_for(lambda: producer.commit_transaction(timeout_s))
        self._raise_undelivered()

    def _waited_for(self, call: Callable[[], _T]) -> _T:
        return call() if self._check is never else in_thread(call, self._check, "kafka-producer")

    def close(self) -> None:
        """Drop queued records and close the client. An open transaction stays open."""
        if self._batches is not None:
            self._batches.close()
        with contextlib.suppress(KafkaException, RuntimeError, SystemError):
            self._producer.purge(in_queue=True, in_flight=True, blocking=False)
            self._producer.poll(0)
        del self._producer
