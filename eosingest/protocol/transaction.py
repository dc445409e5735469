"""Drives the task's producer and its transactions: steps 1 and 4 of the task (docs/protocol.md).

    CLOSED ──start──▶ READY ──send──▶ OPEN ──commit──▶ READY
       ▲                                                 │
       └──────────── close: after every failure ─────────┘

A transaction begins with the first record to write, and ends at `max_records`, `max_bytes` or half of the transaction timeout;
one that has everything may exceed neither limit nor nine tenths of the timeout. There is no abort: after any failure the
producer is closed, and the next one's `start` aborts its open transaction.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from eosingest.host.failpoints import fail_point
from eosingest.kafka.ports import REPEATED_COMMIT_S, Producer, Records
from eosingest.protocol.task_contract import Batch, TaskKafka, TaskSettings

_CHUNK_ROWS = 2_000  # rows between two checks of the clock
_IDLE_WAIT_S = 1.0
# The part of its timeout for which a transaction may be open: more if it has everything and only its commit follows.
_OPEN_SHARE, _OPEN_SHARE_OF_ALL = 0.5, 0.9

Entry = tuple[bytes, bytes]  # key and value of a record of the offsets topic


class ProducerState(enum.Enum):
    """The state of the task's producer."""

    CLOSED = "closed"  # no producer may write
    READY = "ready"  # earlier ones are fenced, and no transaction is open
    OPEN = "open"  # a transaction is open


class Transaction:
    """The task's producer, and the transaction that is open in it, if one is. Every method may raise KafkaFailure.

    After a KafkaFailure only `close` may follow: the offsets topic shows whether the transaction was committed.
    """

    def __init__(self, settings: TaskSettings, task: int, kafka: TaskKafka, now: Callable[[], float]) -> None:
        """There is no producer yet. `now` is a monotonic clock in seconds."""
        self._settings = settings
        self._task = task
        self._kafka = kafka
        self._now = now
        self._producer: Producer | None = None
        self._begun_at = 0.0
        self.state = ProducerState.CLOSED
        self.records = self.letters = 0  # sent in the open transaction
        self._bytes = 0

    def start(self) -> None:
        """Step 1: make a producer and fence every earlier one of the task's id; the coordinator aborts their transactions."""
        assert self.state is ProducerState.CLOSED, self.state
        self._producer = self._kafka.producer(self._task)
        self._producer.init_transactions()
        self.state = ProducerState.READY

    def send(self, rows: Batch, letters: Records, size: int) -> None:
        """Hand over rows and dead letters, of `size` bytes in all, in a transaction that is begun if none is open."""
        producer, dead = self._opened(), self._settings.dead_letters
        if len(rows.splits):
            producer.produce(self._settings.topic, rows.records)
        if len(letters):
            assert dead is not None, "dead letters require a topic for them"
            producer.produce(dead.topic, letters)
        fail_point("task-after-produce")
        self.records += len(rows.splits)
        self.letters += len(letters)
        self._bytes += size

    def commit(self, offsets: Iterable[Entry]) -> bool:
        """Step 4: flush, write the offset records last, commit. Return whether it was slow: close the producer then.

        The client may have repeated a slow EndTxn, and the first one, when it arrives late, would end this producer's next
        transaction half way (docs/protocol.md, The task).
        """
        producer = self._opened()
        producer.flush()
        fail_point("task-before-offsets")
        self._write_offsets(producer, offsets)
        fail_point("task-before-commit")
        began = self._now()
        producer.commit()
        fail_point("task-after-commit")
        self._end(ProducerState.READY)
        return self._now() - began >= REPEATED_COMMIT_S

    def close(self) -> None:
        """Close the producer in any state. An open transaction stays open until the next `start`, or its timeout."""
        self._end(ProducerState.CLOSED)
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    # ---- its limits ------------------------------------------------------------------------------------------------

    @property
    def wait_s(self) -> float:
        """How long to wait for the input, in seconds: at most until an open transaction is due."""
        if self.state is not ProducerState.OPEN:
            return _IDLE_WAIT_S
        share = _OPEN_SHARE_OF_ALL if self._settings.whole else _OPEN_SHARE
        return max(0.0, self._begun_at + self._settings.transaction_timeout_s * share - self._now())

    @property
    def due(self) -> bool:
        """Whether the transaction must end now: it is as old as it may be, or full where another one may follow."""
        full = self.records + self.letters >= self._settings.max_records or self._bytes >= self._settings.max_bytes
        if full and not self._settings.whole:
            return True
        return self.state is ProducerState.OPEN and self.wait_s == 0.0

    @property
    def timed_out(self) -> bool:
        """Whether the transaction is older than its timeout: then the coordinator may have fenced the producer."""
        is_open = self.state is ProducerState.OPEN
        return is_open and self._now() - self._begun_at >= self._settings.transaction_timeout_s

    def has_room_for(self, rows: int, size: int) -> bool:
        """Say whether so many more rows, of `size` bytes in all, are within the limits. An empty transaction takes any row."""
        held = self.records + self.letters
        return not held or (
            held + rows <= self._settings.max_records and self._bytes + size <= self._settings.max_bytes
        )

    def pieces(self, rows: Batch) -> Iterator[Batch]:
        """Cut rows into pieces that each fit into the transaction as it is at that time; of one row at least."""
        ends = np.cumsum(rows.sizes)
        # With a rate limit, a piece is at most what one second allows.
        at_once = int(self._settings.rate_limit or self._settings.max_bytes)
        start = 0
        while start < len(ends):
            before = int(ends[start - 1]) if start else 0
            room = min(self._settings.max_bytes - self._bytes, at_once)
            fit_bytes = int(np.searchsorted(ends, before + room, side="right"))
            fit_records = start + self._settings.max_records - self.records - self.letters
            end = max(start + 1, min(len(ends), start + _CHUNK_ROWS, fit_bytes, fit_records))
            yield rows.slice(start, end)
            start = end

    # ---- its parts -------------------------------------------------------------------------------------------------

    def _opened(self) -> Producer:
        assert self._producer is not None, "nothing is sent before start"
        if self.state is not ProducerState.OPEN:
            assert self.state is ProducerState.READY, self.state
            self._producer.begin()
            self._begun_at = self._now()
            self.state = ProducerState.OPEN
            fail_point("task-after-begin")
        return self._producer

    def _write_offsets(self, producer: Producer, offsets: Iterable[Entry]) -> None:
        for key, value in offsets:
            producer.produce_to_partition(self._settings.offsets_topic, self._settings.offsets_partition, key, value)

    def _end(self, state: ProducerState) -> None:
        self.state = state
        self.records = self.letters = self._bytes = 0
