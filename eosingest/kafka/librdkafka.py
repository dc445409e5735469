"""The data plane: transactional producers and the reader of the offsets topic, over confluent-kafka (librdkafka).

Tasks and the driver's control producer write through it, both read positions through it. kafka-python never
produces: its transactional commit has holes in 3.0.x.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import repeat

import confluent_kafka
import numpy as np
import numpy.typing as npt
from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from eosingest.host.interruption import never
from eosingest.kafka.columns import BinaryColumn
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.produce_batch import BatchProducer
from eosingest.kafka.protocols import (
    ANY_PARTITION,
    LARGEST_RECORD_BYTES,
    REPEATED_COMMIT_S,
    FailureKind,
    KafkaFailure,
    LogRecord,
    Records,
)
from eosingest.kafka.spread import Spread

log = logging.getLogger("eosingest.librdkafka")

# Refusals that no retry mends (docs/protocol.md, The task). Anything else that is not a fence has an unknown outcome.
REFUSALS = frozenset(
    {
        "CLUSTER_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "INVALID_CONFIG",
        "INVALID_MSG",
        "INVALID_RECORD",
        "INVALID_TIMESTAMP",
        "INVALID_TRANSACTION_TIMEOUT",
        "MSG_SIZE_TOO_LARGE",
        "POLICY_VIOLATION",
        "SASL_AUTHENTICATION_FAILED",
        "TOPIC_AUTHORIZATION_FAILED",
        "TOPIC_EXCEPTION",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "UNKNOWN_TOPIC_OR_PART",
        "UNSUPPORTED_COMPRESSION_TYPE",
        "UNSUPPORTED_FOR_MESSAGE_FORMAT",
        "UNSUPPORTED_VERSION",
        "_AUTHENTICATION",
        "_INVALID_ARG",
        "_UNKNOWN_PARTITION",
        "_UNKNOWN_TOPIC",
        "_UNSUPPORTED_FEATURE",
    }
)
_FENCES = frozenset({"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"})
# What a broker or librdkafka answers while a partition's leader moves, or has just moved.
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
# What is said of a producer that is broken already. Purged are the records of a transaction that had failed before.
_NOT_SAID_WHY = frozenset({"_FATAL", "_INCONSISTENT", "_PURGE_INFLIGHT", "_PURGE_QUEUE", "_STATE"})
_BATCH_BYTES = 1_000_000  # librdkafka's own default
_LEAST_MESSAGE_MAX_BYTES = 1_000  # it takes no less
_POLL_S = 0.1
_INIT_S = 30.0
_STEP_S = 1.0
_LEADER_S = 30.0
_QUEUE_KBYTES = LARGEST_RECORD_BYTES >> 10
# librdkafka varies its waits by 20 %: a request is repeated after 1.6 times REPEATED_COMMIT_S at the earliest.
_RETRY_BACKOFF_MS = int(2_000 * REPEATED_COMMIT_S)


def classify(error: KafkaError) -> KafkaFailure:
    """Sort an error of librdkafka by what the protocol must do next."""
    code = error.name()
    if code in _FENCES:
        kind = FailureKind.FENCED
    elif code in REFUSALS:
        kind = FailureKind.REFUSED
    else:
        kind = FailureKind.UNCERTAIN
    return KafkaFailure(kind, code, error.str())


@contextlib.contextmanager
def failures() -> Iterator[None]:
    """Turn KafkaException into KafkaFailure."""
    try:
        yield
    except KafkaException as exception:
        error = exception.args[0]
        if isinstance(error, KafkaError):
            raise classify(error) from exception
        raise KafkaFailure(FailureKind.UNCERTAIN, "unknown", str(exception)) from exception


@dataclass(frozen=True)
class ProducerSettings:
    """How a task's producer is made. Sizes in bytes, times in seconds. `topic` is where it will write first.

    `message_max_bytes` is the topic's max.message.bytes, which is a limit of batches: no batch is made larger.
    """

    client: ClientSettings
    topic: str
    transaction_timeout_s: float
    partitioner: str = "murmur2_random"
    message_max_bytes: int = 1_000_000


def _batch_size(settings: ProducerSettings) -> int:
    """Return how large a batch may get: as the user has it, or librdkafka by default, and never more than the topic takes."""
    wanted = settings.client.properties.get("batch.size", "")
    most = int(wanted) if wanted.isdecimal() else _BATCH_BYTES
    return max(1, min(most, settings.message_max_bytes))


class LibrdkafkaProducer:
    """A transactional producer of librdkafka (`kafka.protocols.Producer`).

    Any record that fails makes the commit fail (librdkafka >= 1.7). The delivery callback gets errors only, so a delivered
    record costs nothing; of records that went in columns it gets none, and the client is asked what went wrong. Waits are
    bounded by the transaction timeout: after it nothing can succeed.
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
        """As `failures`; where the error says no more than that the transaction is broken, raise the one that broke it."""
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
        then trips over it, or swallows it, and what comes out is a SystemError. The client is asked for the error again.
        """
        try:
            with self._failures():
                yield
        except SystemError as error:
            with failures():
                self._producer.begin_transaction()
            raise KafkaFailure(FailureKind.UNCERTAIN, "unknown", str(error)) from error

    def init_transactions(self) -> None:
        """Fence earlier producers of the id (InitProducerId, retried inside until the coordinator answers)."""
        deadline = time.monotonic() + max(_INIT_S, self._timeout_s)
        # Asked for its coordinator while no broker is connected, librdkafka asks again after 500 ms only. The first metadata
        # may come over the bootstrap connection, which it closes then; the second comes over one that stays.
        with contextlib.suppress(KafkaException):
            self._producer.list_topics(self._topic, _STEP_S)
            self._spread.learn(self._producer.list_topics(self._topic, _STEP_S))
        while True:
            self._check()
            try:
                # A call that times out here goes on where it was when it is called again.
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
        """Hand the records over; a full queue is waited for, any other refusal is a failure.

        Columns in memory go in one call; headers, timestamps and lists of bytes one by one.
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
        """Let librdkafka send for a moment. Raises KafkaFailure for what failed meanwhile, and past the deadline."""
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
        """Wait for every delivery; what is left at the transaction timeout cannot be committed any more."""
        with self._polling():
            left = self._producer.flush(self._timeout_s)
        self._raise_undelivered()
        if left:
            raise KafkaFailure(FailureKind.UNCERTAIN, "_MSG_TIMED_OUT", f"{left} records were not delivered in time")

    def commit(self) -> None:
        """Commit (EndTxn); waits without a limit of its own, as the broker's transaction timeout bounds it."""
        with self._polling():
            self._producer.commit_transaction(self._timeout_s + 10)
        self._raise_undelivered()

    def close(self) -> None:
        """Drop what is queued and let go."""
        if self._batches is not None:
            self._batches.close()
        with contextlib.suppress(KafkaException, RuntimeError, SystemError):
            self._producer.purge(in_queue=True, in_flight=True, blocking=False)
            self._producer.poll(0)
        del self._producer


class LibrdkafkaOffsetsReader:
    """Reads one partition of the offsets topic (`kafka.protocols.OffsetsReader`), without a consumer group.

    Two consumers, since the watermarks of a read_committed client end at the last stable offset (measured).
    """

    def __init__(self, topic: str, partition: int, client: ClientSettings, check: Callable[[], None] = never) -> None:
        """Connect when first asked. `check` is called while waiting, and raises to end the wait."""
        self._check = check
        self._topic = topic
        self._partition = partition
        self._config = {
            **client.librdkafka(),
            "group.id": "eosingest-reads-without-a-group",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            # A start offset that is gone must be an error: the default would jump to the end and read nothing.
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 20,
            "fetch.error.backoff.ms": 50,
            # Otherwise a full queue is looked at again after a second: a million records took 7 s instead of 2.
            "fetch.queue.backoff.ms": 10,
        }
        self._client = client
        self._consumers: dict[str, confluent_kafka.Consumer] = {}
        self._admin: AdminClient | None = None

    def topic_id(self) -> str:
        """Return the topic's id."""
        with failures():
            if self._admin is None:
                self._admin = AdminClient(self._client.librdkafka(), logger=log)
            asked = self._admin.describe_topics(TopicCollection([self._topic]), request_timeout=_LEADER_S)
            found = asked[self._topic].result()
        # librdkafka tells it as Kafka's tools do, kafka-python as a UUID.
        return str(uuid.UUID(bytes=base64.urlsafe_b64decode(f"{found.topic_id}==")))

    def _consumer(self, isolation_level: str) -> confluent_kafka.Consumer:
        if isolation_level not in self._consumers:
            config = {**self._config, "isolation.level": isolation_level}
            self._consumers[isolation_level] = confluent_kafka.Consumer(config, logger=log)
        return self._consumers[isolation_level]

    def _watermarks(self, isolation_level: str) -> tuple[int, int]:
        """Ask for low and high watermark. A partition that has no leader just now, or another one, is waited for.

        librdkafka takes "no leader" for lasting and keeps it in its cache for `metadata.max.age.ms`, a quarter of an hour
        (rd_kafka_topic_partition_list_get_leaders): it is made to look again.
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
            with contextlib.suppress(KafkaException):  # what is wrong shows when asked again
                self._consumer(isolation_level).list_topics(self._topic, timeout=_STEP_S)

    def _ask_for_watermarks(self, isolation_level: str) -> tuple[int, int]:
        at = TopicPartition(self._topic, self._partition)
        with failures():
            low_high = self._consumer(isolation_level).get_watermark_offsets(at, timeout=_LEADER_S)
        if low_high is None:
            raise KafkaFailure(FailureKind.UNCERTAIN, "_TIMED_OUT", f"no watermarks of {self._topic}")
        low, high = low_high
        return int(low), int(high)

    def log_start(self) -> int:
        """Return the log start offset."""
        return self._watermarks("read_uncommitted")[0]

    def high_watermark(self) -> int:
        """Return the high watermark, as a read_uncommitted client sees it."""
        return self._watermarks("read_uncommitted")[1]

    def last_stable_offset(self) -> int:
        """Return the last stable offset: what a read_committed client takes for the end."""
        return self._watermarks("read_committed")[1]

    def read(self, start: int, end: int, *, committed: bool, deadline_s: float) -> Iterator[LogRecord]:
        """Yield [start, end); see the protocol. Ends by position: gaps and control records advance it too."""
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
            if reached > before:  # it goes on, however long a million records take whoever folds them
                before, deadline = reached, time.monotonic() + deadline_s
            if time.monotonic() > deadline:
                raise KafkaFailure(
                    FailureKind.UNCERTAIN, "read-deadline", f"read to offset {max(reached, 0)} of {end}, no further"
                )
            with failures():
                # Waits for one only: asked for more, it waits the whole time for those that do not come.
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


def raise_unless_passing(error: KafkaError) -> None:
    """Raise for an error that ends the read; a lost connection is librdkafka's to mend, until the deadline."""
    failure = classify(error)
    if error.fatal() or failure.kind is not FailureKind.UNCERTAIN or error.name() == "_AUTO_OFFSET_RESET":
        raise failure


def position(consumer: confluent_kafka.Consumer, topic: str, partition: int) -> int:
    """Return the consumer's position, -1 where it has none yet."""
    with failures():
        offset = consumer.position([TopicPartition(topic, partition)])[0].offset
    return offset if offset >= 0 else -1


def check_properties(settings: ClientSettings) -> str | None:
    """Return librdkafka's complaint about the user's properties, None where it takes them. Connects to nothing."""
    try:
        confluent_kafka.Producer({**settings.properties, "transactional.id": "check"}, logger=log)
    except KafkaException as exception:
        error = exception.args[0]
        return error.str() if isinstance(error, KafkaError) else str(exception)
    return None
