"""Defines the interfaces to Kafka that the core needs: a producer, a reader of the offsets topic, an admin client.

`driver.py` and `task.py` use Kafka only through these protocols. producer.py and offsets_reader.py implement
the first two (the data plane), kafka_python.py the third (the control plane).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from eosingest.kafka.columns import BinaryColumn

# A commit that took longer may have been sent twice: a client waits longer than this before it repeats a request.
REPEATED_COMMIT_S = 0.5
# librdkafka never takes a record that is larger than its whole queue, which is of this size: no topic gets a larger one.
LARGEST_RECORD_BYTES = 64 << 20


class FailureKind(enum.Enum):
    """What a failed Kafka operation means for the protocol (docs/protocol.md, The task)."""

    FENCED = "fenced"  # another init_transactions on our id, or a transaction timeout: librdkafka does not say which
    REFUSED = "refused"  # by the broker or the client, which would refuse it again
    UNCERTAIN = "uncertain"  # time-out, connection lost, retriable error: the outcome is not known


class KafkaFailure(Exception):  # noqa: N818 - not an error of ours yet: the caller decides what it means
    """A failed operation of a producer or a reader, classified by what the protocol must do next.

    `code` is Kafka's or librdkafka's own name of the error (`_FENCED`, `MSG_SIZE_TOO_LARGE`).
    """

    def __init__(self, kind: FailureKind, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.kind = kind
        self.code = code
        self.detail = detail

    def __reduce__(self) -> tuple[object, ...]:
        return KafkaFailure, (self.kind, self.code, self.detail)


ANY_PARTITION = -1  # the partitioner's choice (RD_KAFKA_PARTITION_UA)
NO_PARTITION = -2  # a number that no partition has


@dataclass(frozen=True)
class Records:
    """Records of one topic, as columns of equal length.

    `timestamps_ms` is in ms since 1970; None, for a record or for all, takes the producer's clock. `headers` holds, per
    record, a list of (name, value) pairs, or is None where no record has headers. `partitions` are partition numbers,
    ANY_PARTITION where the partitioner chooses, or None where it chooses for all.
    """

    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    timestamps_ms: Sequence[int | None] | None = None
    headers: Sequence[list[tuple[str, bytes | None]]] | None = None
    partitions: npt.NDArray[np.int32] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, start: int, end: int) -> Records:
        """Return the records [start, end)."""
        return Records(
            self.keys[start:end],
            self.values[start:end],
            self.timestamps_ms[start:end] if self.timestamps_ms is not None else None,
            self.headers[start:end] if self.headers is not None else None,
            self.partitions[start:end] if self.partitions is not None else None,
        )

    def where(self, mask: npt.NDArray[np.bool_]) -> Records:
        """Return the records for which the mask is true."""
        return Records(
            _where(self.keys, mask),
            _where(self.values, mask),
            list(compress(self.timestamps_ms, mask)) if self.timestamps_ms is not None else None,
            list(compress(self.headers, mask)) if self.headers is not None else None,
            self.partitions[mask] if self.partitions is not None else None,
        )


def _where(column: Sequence[bytes | None], mask: npt.NDArray[np.bool_]) -> Sequence[bytes | None]:
    return column.where(mask) if isinstance(column, BinaryColumn) else list(compress(column, mask))


class LogRecord(NamedTuple):
    """A record of the offsets topic as read: Kafka offset, key, value (None for a tombstone), timestamp (ms since 1970)."""

    offset: int
    key: bytes
    value: bytes | None
    timestamp_ms: int = 0


class Producer(Protocol):
    """One transactional producer. Every method but `close` raises KafkaFailure; after any failure only `close` is safe."""

    def init_transactions(self) -> None:
        """Fence every earlier producer of this transactional id, and wait until its transaction is decided."""

    def begin(self) -> None:
        """Open a transaction."""

    def produce(self, topic: str, records: Records) -> None:
        """Hand all the records to the client, waiting where its queue is full (back-pressure)."""

    def produce_to_partition(self, topic: str, partition: int, key: bytes, value: bytes | None) -> None:
        """Hand one record with an explicit partition to the client."""

    def flush(self) -> None:
        """Wait until all records handed over are delivered; an undelivered record is a failure."""

    def commit(self) -> None:
        """Commit. On failure of any kind the outcome is unknown: read the offsets topic to learn it.

        A commit that took REPEATED_COMMIT_S or longer may have been sent twice, and the first may still be on its way: it
        would end the producer's next transaction half way. Only a new init_transactions prevents that.
        """

    def close(self) -> None:
        """Close the client without waiting for anything; an open transaction stays open until fenced or timed out."""


class OffsetsReader(Protocol):
    """Reads one partition of the offsets topic. Raises KafkaFailure."""

    @property
    def place(self) -> str:
        """The partition's name for messages, as Kafka writes it: topic-number."""

    def topic_id(self) -> str:
        """Return the id of the topic that exists now, as in `TopicDescription`."""

    def log_start(self) -> int:
        """Return the first offset that the partition still holds."""

    def high_watermark(self) -> int:
        """Return the offset after the last record, decided or not (a read_uncommitted client's answer)."""

    def last_stable_offset(self) -> int:
        """Return the offset before which every transaction is decided."""

    def read(self, start: int, end: int, *, committed: bool, deadline_s: float) -> Iterator[LogRecord]:
        """Yield the records of [start, end) by offset, of committed transactions only if `committed`.

        Waits for open transactions; after `deadline_s` seconds without progress raises KafkaFailure UNCERTAIN
        with the code `read-deadline`. Ends only when the position has reached `end`: never on an empty poll.
        """

    def close(self) -> None:
        """Close the connections."""


@dataclass(frozen=True)
class TopicDescription:
    """The brokers' description of a topic. `config` is None without the right to read it."""

    name: str
    topic_id: str
    partitions: int
    config: Mapping[str, str] | None


class OpenTransaction(NamedTuple):
    """A transaction that is open in a partition: its transactional id, its first offset there, and its age in seconds.

    `hanging`: no coordinator that answers us knows of it, so that none will end it (KIP-664). Coordinators list only what we
    have the right to describe: without it, another's transaction looks like a hanging one.
    """

    transactional_id: str
    start_offset: int
    age_s: float
    hanging: bool = False


class OffsetRange(NamedTuple):
    """The offsets that a partition holds: its log start, and its high watermark as a read_uncommitted client sees it."""

    start: int
    end: int


class LogEnd(NamedTuple):
    """An end of a partition, and the epoch of the leader that reported it, None if it reported none."""

    offset: int
    epoch: int | None


class Admin(Protocol):
    """Topics, configurations, fencing. Raises the errors of errors.py, with the servers' names in the text."""

    def cluster_id(self) -> str:
        """Return the cluster's id."""

    def describe_topic(self, name: str) -> TopicDescription | None:
        """Return the description of a topic, None where it does not exist. Never creates it."""

    def create_topic(self, name: str, *, partitions: int, replication_factor: int, config: Mapping[str, str]) -> None:
        """Create a topic; an existing one is no error."""

    def offset_ranges(self, topic: str, partitions: int) -> tuple[OffsetRange, ...]:
        """Return log start and high watermark of each partition of the topic, by number."""

    def fence(self, transactional_ids: Iterable[str], *, timeout_s: float) -> None:
        """Send InitProducerId for each id until it succeeds (CONCURRENT_TRANSACTIONS is no success: KAFKA-16570).

        Raises TemporaryError if it takes longer than `timeout_s` seconds.
        """

    def knows_transactional_id(self, transactional_id: str) -> bool:
        """Say whether the transaction coordinator remembers the id (DescribeTransactions, KIP-664)."""

    def known_ids(self, stem: str) -> frozenset[str]:
        """Return the ids that begin with `stem` and that coordinators remember (ListTransactions, KIP-664)."""

    def open_transactions(self, topic: str, partition: int) -> list[OpenTransaction]:
        """List the open transactions of a partition (DescribeProducers and ListTransactions, KIP-664)."""

    def hanging_transactions(self, topic: str, partitions: int) -> list[tuple[int, OpenTransaction]]:
        """List the hanging transactions of the topic, with their partitions; nothing without the right to see them."""

    def close(self) -> None:
        """Close the connections."""
