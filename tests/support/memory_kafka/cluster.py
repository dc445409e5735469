"""Implements a Kafka in memory, for simulation and tests: topics, transactions and isolation as in a real broker.

Between clients.py, which implements the protocols of kafka/ports.py with it, and log.py, one partition each. It answers one
request at a time: a simulation varies the order in which requests arrive. The rules are those of Apache Kafka's transaction
coordinator for clients that speak EndTxn up to version 4 (no KIP-890 epoch bump: librdkafka today), with partition
verification as since 3.6: tests/integration/test_memory_*.py compare it with a real broker, operation by operation.

    InitProducerId ─▶ EMPTY ─▶ first record: ONGOING ─▶ EndTxn: PREPARE_* ─▶ a marker in each partition ─▶ COMPLETE_*

A transaction is decided at PREPARE_*; readers see it marker by marker. Until the last one, InitProducerId and a new
transaction of the id answer CONCURRENT_TRANSACTIONS.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from eosingest.kafka.ports import LogRecord
from tests.support.memory_kafka.log import BrokerError, Entry, Identity, Log

MAX_EPOCH = 32_767
_EXPIRATION_S = 7 * 86_400.0


class State(enum.Enum):
    """The state of a transactional id, as DescribeTransactions names it."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


_PREPARED = (State.PREPARE_COMMIT, State.PREPARE_ABORT)


class Offsets(NamedTuple):
    """Log start offset, high watermark and last stable offset of a partition."""

    start: int
    high_watermark: int
    last_stable: int


@dataclass
class Transaction:
    """The coordinator's state of a transactional id. `partitions` are those of the ongoing transaction, with its entries."""

    producer_id: int
    epoch: int
    timeout_s: float
    state: State = State.EMPTY
    partitions: dict[tuple[str, int], list[Entry]] = field(default_factory=dict)
    started: float = 0.0
    updated: float = 0.0


@dataclass
class Topic:
    """A topic; its id differs from that of an earlier one of the same name."""

    name: str
    topic_id: str
    logs: list[Log]
    config: Mapping[str, str]


class Cluster:
    """One broker that leads every partition and coordinates every transactional id. Each method is one request.

    Methods raise BrokerError. `defer` takes the coordinator's actions after its answer (writing a marker) and runs them now
    or later; `decided` is called when a transaction is decided: with its id, whether it commits, and its entries.
    """

    def __init__(
        self,
        now: Callable[[], float],
        *,
        defer: Callable[[Callable[[], None]], None] = lambda action: action(),
        decided: Callable[[str, bool, Mapping[tuple[str, int], list[Entry]]], None] = lambda *_: None,
        max_epoch: int = MAX_EPOCH,
        expiration_s: float = _EXPIRATION_S,
    ) -> None:
        """`now` is the clock in seconds; `max_epoch` and `expiration_s` (of idle transactional ids) as brokers have them."""
        self.cluster_id = "memory"
        self.topics: dict[str, Topic] = {}
        self.transactions: dict[str, Transaction] = {}
        self._now = now
        self._defer = defer
        self._decided = decided
        self._max_epoch = max_epoch
        self._expiration_s = expiration_s
        self._next_producer_id = 1
        self._topics_made = 0
        self._ongoing: dict[str, None] = {}  # oldest first: the same in every process

    # ---- topics ----------------------------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        """Create a topic. TOPIC_ALREADY_EXISTS if it exists."""
        if name in self.topics:
            raise BrokerError("TOPIC_ALREADY_EXISTS")
        self._topics_made += 1
        self.topics[name] = Topic(name, f"topic-{self._topics_made}", [Log() for _ in range(partitions)], dict(config))

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records."""
        self.topics.pop(name, None)

    def topic(self, name: str) -> Topic:
        """Return a topic. UNKNOWN_TOPIC_OR_PART where it is not there."""
        found = self.topics.get(name)
        if found is None:
            raise BrokerError("UNKNOWN_TOPIC_OR_PART")
        return found

    def log(self, topic: str, partition: int) -> Log:
        """Return a partition. UNKNOWN_TOPIC_OR_PART where it is not there."""
        found = self.topic(topic)
        if not 0 <= partition < len(found.logs):
            raise BrokerError("UNKNOWN_TOPIC_OR_PART")
        return found.logs[partition]

    def list_offsets(self, topic: str, partition: int) -> Offsets:
        """Return the partition's offsets."""
        self._abort_timed_out()
        log = self.log(topic, partition)
        return Offsets(log.start, log.end, log.last_stable)

    def fetch(self, topic: str, partition: int, start: int, *, committed: bool) -> tuple[list[LogRecord], int]:
        """Return records from `start` on, and the position after them."""
        self._abort_timed_out()
        return self.log(topic, partition).fetch(start, committed=committed)

    def describe_producers(self, topic: str, partition: int) -> list[tuple[str, int, float]]:
        """Return transactional id, first offset and age (s) of each transaction that is open in the partition."""
        self._abort_timed_out()
        open_producers = self.log(topic, partition).open_producers
        return [
            (name, open_producers[transaction.producer_id], self._now() - transaction.started)
            for name, transaction in self.transactions.items()
            if transaction.producer_id in open_producers
        ]

    # ---- transactions ----------------------------------------------------------------------------------------------

    def init_producer_id(self, transactional_id: str, timeout_s: float) -> Identity:
        """Fence earlier producers of the id: abort an open transaction (CONCURRENT_TRANSACTIONS until then), bump the epoch."""
        self._abort_timed_out()
        found = self.transactions.get(transactional_id)
        if found is None:
            found = self.transactions[transactional_id] = Transaction(self._new_producer_id(), -1, timeout_s)
        if found.state is State.ONGOING:
            self._fence_and_abort(transactional_id, found)
            raise BrokerError("CONCURRENT_TRANSACTIONS")
        if found.state in _PREPARED:
            raise BrokerError("CONCURRENT_TRANSACTIONS")
        if found.epoch >= self._max_epoch - 1:
            found.producer_id, found.epoch = self._new_producer_id(), -1
        found.epoch += 1
        found.timeout_s, found.state, found.updated = timeout_s, State.EMPTY, self._now()
        return Identity(transactional_id, found.producer_id, found.epoch)

    def produce(self, who: Identity, topic: str, partition: int, sequence: int, records: Sequence[LogRecord]) -> None:
        """Append a batch to the ongoing transaction; begins one, or adds the partition to it, where needed."""
        self._abort_timed_out()
        log = self.log(topic, partition)
        transaction = self._owned(who)
        if transaction.state in _PREPARED:
            raise BrokerError("CONCURRENT_TRANSACTIONS")
        if transaction.state is not State.ONGOING:
            transaction.state, transaction.started = State.ONGOING, self._now()
            self._ongoing[who.transactional_id] = None
        entries = transaction.partitions.setdefault((topic, partition), [])
        entries += log.append(who, sequence, records)

    def end_txn(self, who: Identity, *, commit: bool) -> None:
        """Decide the ongoing transaction. The same again: CONCURRENT_TRANSACTIONS until it is complete, then success."""
        self._abort_timed_out()
        transaction = self._owned(who)
        if transaction.state is State.ONGOING:
            self._decide(who.transactional_id, transaction, commit)
        elif transaction.state in _PREPARED:
            asked = State.PREPARE_COMMIT if commit else State.PREPARE_ABORT
            raise BrokerError("CONCURRENT_TRANSACTIONS" if transaction.state is asked else "INVALID_TXN_STATE")
        elif transaction.state is not (State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT):
            raise BrokerError("INVALID_TXN_STATE")

    def knows(self, transactional_id: str) -> bool:
        """Say whether the coordinator remembers the id."""
        return transactional_id in self.transactions

    def expire_ids(self) -> None:
        """Forget the ids that have been idle for longer than `transactional.id.expiration.ms`."""
        idle_since = self._now() - self._expiration_s
        for name, transaction in list(self.transactions.items()):
            if name not in self._ongoing and transaction.state not in _PREPARED and transaction.updated < idle_since:
                del self.transactions[name]

    def _owned(self, who: Identity) -> Transaction:
        found = self.transactions.get(who.transactional_id)
        if found is None or found.producer_id != who.producer_id:
            raise BrokerError("INVALID_PRODUCER_ID_MAPPING")
        if found.epoch != who.epoch:
            raise BrokerError("PRODUCER_FENCED")
        return found

    def _new_producer_id(self) -> int:
        self._next_producer_id += 1
        return self._next_producer_id - 1

    def _abort_timed_out(self) -> None:
        for name in list(self._ongoing) if self._ongoing else ():
            transaction = self.transactions[name]
            if transaction.started + transaction.timeout_s < self._now():
                self._fence_and_abort(name, transaction)

    def _fence_and_abort(self, name: str, transaction: Transaction) -> None:
        transaction.epoch += 1
        self._decide(name, transaction, commit=False)

    def _decide(self, name: str, transaction: Transaction, commit: bool) -> None:
        self._ongoing.pop(name, None)
        transaction.state = State.PREPARE_COMMIT if commit else State.PREPARE_ABORT
        transaction.updated = self._now()
        self._decided(name, commit, transaction.partitions)
        for partition in list(transaction.partitions):
            self._defer(partial(self._write_marker, name, transaction, partition, commit))

    def _write_marker(self, name: str, transaction: Transaction, partition: tuple[str, int], commit: bool) -> None:
        del transaction.partitions[partition]
        if partition[0] in self.topics:
            who = Identity(name, transaction.producer_id, transaction.epoch)
            self.log(*partition).write_marker(who, committed=commit)
        if not transaction.partitions:
            transaction.state = State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT
            transaction.updated = self._now()
            if transaction.epoch >= self._max_epoch:  # by a fence: no epoch is left to give
                transaction.producer_id, transaction.epoch = self._new_producer_id(), 0
