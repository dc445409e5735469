"""Implements the clients of the Kafka in memory (ports.py), with the behaviour of librdkafka and kafka-python.

Between the core (driver.py, task.py) and cluster.py. Every request goes through a `Network`, which may lose it, lose its
answer, or deliver it late; the clients retry and time out as the real ones do.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol, TypeVar

from eosingest.errors import TemporaryError
from eosingest.kafka.ports import (
    ANY_PARTITION,
    REPEATED_COMMIT_S,
    FailureKind,
    KafkaFailure,
    LogRecord,
    OffsetRange,
    OpenTransaction,
    Records,
    TopicDescription,
)
from tests.support.memory_kafka.cluster import Cluster
from tests.support.memory_kafka.log import BrokerError, Identity

_T = TypeVar("_T")
_AGAIN_S = 0.05
_REPEATED_S = 1.6 * REPEATED_COMMIT_S  # as producer.py has it: a repeated commit is known by its time
_LONGEST_WAIT_S = 5.0
_INIT_S = 30.0
_REQUEST_S = 30.0
_FENCES = frozenset({"PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"})
_REFUSALS = frozenset({"UNKNOWN_TOPIC_OR_PART"})
_LOCAL_NAMES = {"OFFSET_OUT_OF_RANGE": "_AUTO_OFFSET_RESET"}
_IN_THE_WAY = frozenset({"CONCURRENT_TRANSACTIONS"})


class NoAnswerError(Exception):
    """No answer arrived: the request may have been executed, may be later, or never."""


class Network(Protocol):
    """The network between a client and the cluster, and the client's clock."""

    def send(self, request: str, apply: Callable[[], _T]) -> _T:
        """Execute a request, named for traces. Raises NoAnswerError, or the BrokerError of the answer."""

    def now(self) -> float:
        """Return the clock, in seconds."""

    def wait(self, seconds: float) -> None:
        """Let time pass."""


def _failure(error: BrokerError) -> KafkaFailure:
    """Classify an answer as librdkafka.classify does; both kinds of fencing become `_FENCED`."""
    if error.code in _FENCES:
        return KafkaFailure(FailureKind.FENCED, "_FENCED", error.code)
    kind = FailureKind.REFUSED if error.code in _REFUSALS else FailureKind.UNCERTAIN
    return KafkaFailure(kind, _LOCAL_NAMES.get(error.code, error.code), "answered by the broker")


class _Client:
    """Sends requests, and retries them as the real client does."""

    def __init__(self, cluster: Cluster, network: Network) -> None:
        self._cluster = cluster
        self._network = network

    def _ask(self, request: str, apply: Callable[[], _T], timeout_s: float = _REQUEST_S) -> _T:
        """Send a request; retry CONCURRENT_TRANSACTIONS and lost answers for `timeout_s` seconds. Raises KafkaFailure."""
        deadline, pause = self._network.now() + timeout_s, _AGAIN_S
        while True:
            try:
                return self._network.send(request, apply)
            except BrokerError as error:
                if error.code not in _IN_THE_WAY:
                    raise _failure(error) from None
                reason = error.code
            except NoAnswerError:
                reason = "_TIMED_OUT"
                pause = max(pause, _REPEATED_S)
            if self._network.now() >= deadline:
                raise KafkaFailure(FailureKind.UNCERTAIN, reason, f"{request} timed out")
            self._network.wait(pause)
            pause = min(2 * pause, _LONGEST_WAIT_S)


class MemoryProducer(_Client):
    """A transactional producer (`ports.Producer`). It sends batches of `batch_records`, and the rest at `flush`."""

    def __init__(
        self, transactional_id: str, cluster: Cluster, network: Network, *, timeout_s: float, batch_records: int = 1
    ) -> None:
        """`timeout_s` is the transaction timeout."""
        super().__init__(cluster, network)
        self._id = transactional_id
        self._timeout_s = timeout_s
        self._batch_records = batch_records
        self._who: Identity | None = None
        self._sequences: dict[tuple[str, int], int] = defaultdict(int)
        self._waiting: dict[tuple[str, int], list[LogRecord]] = defaultdict(list)
        self._in_transaction: set[tuple[str, int]] = set()
        self._failure: KafkaFailure | None = None

    def init_transactions(self) -> None:
        """Send InitProducerId until the coordinator gives a new epoch."""
        self._who = self._ask(
            "InitProducerId",
            lambda: self._cluster.init_producer_id(self._id, self._timeout_s),
            max(_INIT_S, self._timeout_s),
        )

    def begin(self) -> None:
        """Open a transaction, in this client only."""
        self._raise_failure()
        self._in_transaction.clear()

    def produce(self, topic: str, records: Records) -> None:
        """Hand over records; a key's partition differs from that of the real partitioners."""
        partitions = len(self._cluster.topics[topic].logs) if topic in self._cluster.topics else 1
        timestamps = records.timestamps_ms or [None] * len(records)
        chosen = [ANY_PARTITION] * len(records) if records.partitions is None else records.partitions.tolist()
        for key, value, timestamp, partition in zip(records.keys, records.values, timestamps, chosen, strict=True):
            at = (topic, zlib.crc32(key or b"") % partitions if partition == ANY_PARTITION else partition)
            self._waiting[at].append(LogRecord(-1, key or b"", value, timestamp or int(self._network.now() * 1000)))
            if len(self._waiting[at]) >= self._batch_records:
                self._send(at)

    def produce_to_partition(self, topic: str, partition: int, key: bytes, value: bytes | None) -> None:
        """Hand over one record."""
        self._waiting[topic, partition].append(LogRecord(-1, key, value, int(self._network.now() * 1000)))

    def flush(self) -> None:
        """Send the waiting records."""
        self._raise_failure()
        for at in list(self._waiting):
            self._send(at)

    def _send(self, at: tuple[str, int]) -> None:
        records = self._waiting.pop(at, None)
        if records:
            who, sequence = self._identity(), self._sequences[at]
            self._in_transaction.add(at)
            self._insist(
                f"Produce {at[0]}-{at[1]}",
                lambda: self._cluster.produce(who, at[0], at[1], sequence, records),
                self._timeout_s,
            )
            self._sequences[at] += len(records)

    def commit(self) -> None:
        """Send EndTxn, unless the transaction has no record."""
        self.flush()
        if self._in_transaction:
            who = self._identity()
            self._insist("EndTxn", lambda: self._cluster.end_txn(who, commit=True), self._timeout_s + 10)
            self._in_transaction.clear()

    def _insist(self, request: str, apply: Callable[[], None], timeout_s: float) -> None:
        """Send a request; after a failure this producer does nothing more, as librdkafka's without an abort."""
        try:
            self._ask(request, apply, timeout_s)
        except KafkaFailure as failure:
            self._failure = failure
            raise

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _identity(self) -> Identity:
        assert self._who is not None, "init_transactions comes first"
        return self._who

    def close(self) -> None:
        """Drop the records that wait."""
        self._waiting.clear()


class MemoryReader(_Client):
    """Reads one partition (`ports.OffsetsReader`)."""

    def __init__(self, topic: str, partition: int, cluster: Cluster, network: Network) -> None:
        """Connect to nothing."""
        super().__init__(cluster, network)
        self._topic = topic
        self._partition = partition

    @property
    def place(self) -> str:
        """The partition's name."""
        return f"{self._topic}-{self._partition}"

    def topic_id(self) -> str:
        """Return the topic's id."""
        return self._ask(f"DescribeTopic {self._topic}", lambda: self._cluster.topic(self._topic).topic_id)

    def log_start(self) -> int:
        """Return the log start offset."""
        return self._ask("ListOffsets start", lambda: self._cluster.list_offsets(self._topic, self._partition)).start

    def high_watermark(self) -> int:
        """Return the high watermark."""
        return self._ask(
            "ListOffsets high watermark", lambda: self._cluster.list_offsets(self._topic, self._partition)
        ).high_watermark

    def last_stable_offset(self) -> int:
        """Return the last stable offset."""
        return self._ask(
            "ListOffsets last stable", lambda: self._cluster.list_offsets(self._topic, self._partition)
        ).last_stable

    def read(self, start: int, end: int, *, committed: bool, deadline_s: float) -> Iterator[LogRecord]:
        """Yield [start, end), waiting for open transactions."""
        deadline, pause, position = self._network.now() + deadline_s, _AGAIN_S, start
        while position < end:
            before = position
            records, position = self._fetch(position, committed)
            if position > before:
                deadline = self._network.now() + deadline_s
            yield from (record for record in records if record.offset < end)
            if position < end:
                if self._network.now() > deadline:
                    raise KafkaFailure(
                        FailureKind.UNCERTAIN, "read-deadline", f"read to offset {position} of {end}, no further"
                    )
                self._network.wait(pause)
                pause = min(2 * pause, _LONGEST_WAIT_S)

    def _fetch(self, position: int, committed: bool) -> tuple[list[LogRecord], int]:
        return self._ask(
            "Fetch", lambda: self._cluster.fetch(self._topic, self._partition, position, committed=committed)
        )

    def close(self) -> None:
        """Nothing is held."""


class MemoryAdmin(_Client):
    """Topics and fencing (`ports.Admin`)."""

    def _answer(self, request: str, apply: Callable[[], _T]) -> _T:
        """As `_ask`, with the errors of an Admin."""
        try:
            return self._ask(request, apply)
        except KafkaFailure as failure:
            raise TemporaryError(f"{request}: {failure}", code="broker-unreachable") from failure

    def cluster_id(self) -> str:
        """Return the cluster's id."""
        return self._answer("DescribeCluster", lambda: self._cluster.cluster_id)

    def describe_topic(self, name: str) -> TopicDescription | None:
        """Return the description of a topic, None where it does not exist."""
        found = self._answer(f"DescribeTopic {name}", lambda: self._cluster.topics.get(name))
        return TopicDescription(name, found.topic_id, len(found.logs), found.config) if found else None

    def create_topic(self, name: str, *, partitions: int, replication_factor: int, config: Mapping[str, str]) -> None:
        """Create a topic; an existing one is no error."""
        try:
            self._answer(f"CreateTopic {name}", lambda: self._cluster.create_topic(name, partitions, config))
        except TemporaryError as error:
            if "TOPIC_ALREADY_EXISTS" not in error.message:
                raise

    def offset_ranges(self, topic: str, partitions: int) -> tuple[OffsetRange, ...]:
        """Return log start and high watermark of each partition."""
        found = self._answer(
            f"ListOffsets {topic}", lambda: [self._cluster.list_offsets(topic, number) for number in range(partitions)]
        )
        return tuple(OffsetRange(offsets.start, offsets.high_watermark) for offsets in found)

    def fence(self, transactional_ids: Iterable[str], *, timeout_s: float) -> None:
        """Send InitProducerId for every id until it succeeds."""
        for name in transactional_ids:
            try:
                self._ask("InitProducerId fence", lambda name=name: self._init(name), timeout_s)  # type: ignore[misc]
            except KafkaFailure as failure:
                raise TemporaryError(f"{name} could not be fenced: {failure}", code="fence-timeout") from failure

    def _init(self, transactional_id: str) -> None:
        self._cluster.init_producer_id(transactional_id, 60.0)

    def knows_transactional_id(self, transactional_id: str) -> bool:
        """Say whether the coordinator remembers the id."""
        return self._answer("DescribeTransactions", lambda: self._cluster.knows(transactional_id))

    def known_ids(self, stem: str) -> frozenset[str]:
        """Return the ids that begin with `stem` and that the coordinator remembers."""
        names = self._answer("ListTransactions", lambda: list(self._cluster.transactions))
        return frozenset(name for name in names if name.startswith(stem))

    def open_transactions(self, topic: str, partition: int) -> list[OpenTransaction]:
        """List the open transactions of the partition, oldest first."""
        found = self._answer("DescribeProducers", lambda: self._cluster.describe_producers(topic, partition))
        return sorted((OpenTransaction(*entry) for entry in found), key=lambda transaction: transaction.start_offset)

    def hanging_transactions(self, topic: str, partitions: int) -> list[tuple[int, OpenTransaction]]:
        """Return nothing: where a transaction ends here, each of its partitions gets the marker."""
        return []

    def close(self) -> None:
        """Nothing is held."""
