"""Implements one partition of the Kafka in memory: appends, reads by isolation level, and compaction.

Used by cluster.py, which coordinates the transactions whose records and markers are appended here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from eosingest.kafka.ports import LogRecord


class BrokerError(Exception):
    """An error code in an answer, by Kafka's name."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Identity(NamedTuple):
    """A producer: its transactional id, and the producer id and epoch that InitProducerId gave it."""

    transactional_id: str
    producer_id: int
    epoch: int


@dataclass(slots=True)
class Span:
    """One transaction in one partition: from its first record, until the marker that sets `committed`."""

    first_offset: int
    committed: bool | None = None


@dataclass(slots=True)
class Appended:
    """A log's state of a producer: its epoch, and (first sequence, count) of its last five batches, to detect duplicates."""

    epoch: int
    batches: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=5))


class Entry(NamedTuple):
    """A record in a log. `span` is None for a record outside of transactions; a marker has no key, and `marker` set."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    span: Span | None
    marker: bool = False


class Log:
    """One partition: entries by ascending offset, with gaps where they were compacted away."""

    def __init__(self) -> None:
        """Empty, from offset 0."""
        self.entries: list[Entry] = []
        self.start = 0
        self.end = 0
        self._open: dict[int, Span] = {}
        self._appended: dict[int, Appended] = {}
        self._lowest: dict[Identity, int] = {}

    def __repr__(self) -> str:
        return f"Log({self.start} to {self.end})"

    @property
    def last_stable(self) -> int:
        """The offset before which every transaction is decided."""
        return min((span.first_offset for span in self._open.values()), default=self.end)

    @property
    def open_producers(self) -> Mapping[int, int]:
        """First offset of the open transaction of each producer id."""
        return {producer: span.first_offset for producer, span in self._open.items()}

    def append(self, who: Identity, sequence: int, records: Sequence[LogRecord]) -> list[Entry]:
        """Append a transactional batch whose first record has this sequence number. A repeated batch is ignored."""
        known = self._appended.get(who.producer_id)
        if known and known.epoch == who.epoch and (sequence, len(records)) in known.batches:
            self._verify(who, sequence)
            return []
        if self._verify(who, sequence) < sequence or (known and sequence != _next_sequence(known, who.epoch)):
            raise BrokerError("OUT_OF_ORDER_SEQUENCE_NUMBER")
        span = self._open.setdefault(who.producer_id, Span(self.end))
        self._remember(who.producer_id, who.epoch).batches.append((sequence, len(records)))
        self._lowest.pop(who, None)
        return [self._add(record, span) for record in records]

    def _verify(self, who: Identity, sequence: int) -> int:
        """Return the lowest sequence seen since the producer's last transaction here: a new one begins with no higher one."""
        if who.producer_id in self._open:
            return sequence
        self._lowest[who] = min(sequence, self._lowest.get(who, sequence))
        return self._lowest[who]

    def _remember(self, producer_id: int, epoch: int) -> Appended:
        known = self._appended.get(producer_id)
        if known is None or known.epoch != epoch:
            known = self._appended[producer_id] = Appended(epoch)
        return known

    def append_plain(self, records: Iterable[LogRecord]) -> None:
        """Append records outside of any transaction."""
        for record in records:
            self._add(record, None)

    def _add(self, record: LogRecord, span: Span | None) -> Entry:
        entry = Entry(self.end, record.key, record.value, record.timestamp_ms, span)
        self.entries.append(entry)
        self.end += 1
        return entry

    def write_marker(self, who: Identity, *, committed: bool) -> None:
        """Decide the producer's open transaction here; the marker takes an offset even if no transaction is open."""
        span = self._open.pop(who.producer_id, Span(self.end))
        self._remember(who.producer_id, who.epoch)
        self._lowest.pop(who, None)
        span.committed = committed
        self.entries.append(Entry(self.end, None, None, 0, span, marker=True))
        self.end += 1

    def fetch(self, start: int, *, committed: bool) -> tuple[list[LogRecord], int]:
        """Return records from `start` on, and the position after them: markers and gaps advance it too."""
        if not self.start <= start <= self.end:
            raise BrokerError("OFFSET_OUT_OF_RANGE")
        limit = self.last_stable if committed else self.end
        found = [
            LogRecord(entry.offset, entry.key or b"", entry.value, entry.timestamp_ms)
            for entry in self.entries[self._index(start) : self._index(limit)]
            if not entry.marker and not (committed and entry.span is not None and not entry.span.committed)
        ]
        return found, max(start, limit)

    def _index(self, offset: int) -> int:
        return bisect_left(self.entries, offset, key=lambda entry: entry.offset)

    def compact(self, up_to: int, *, drop_tombstones: bool = False) -> None:
        """Keep the latest committed record of each key below `up_to`; never past the last stable offset, as Kafka's cleaner."""
        limit = min(up_to, self.last_stable)
        clean, rest = self.entries[: self._index(limit)], self.entries[self._index(limit) :]
        latest = {entry.key: entry.offset for entry in clean if _visible(entry)}
        self.entries = [
            entry
            for entry in clean
            if entry.marker or (latest.get(entry.key) == entry.offset and not (drop_tombstones and entry.value is None))
        ] + rest

    def delete_before(self, offset: int) -> None:
        """Move the log start offset, as retention and DeleteRecords do."""
        self.start = min(max(self.start, offset), self.end)
        self.entries = self.entries[self._index(self.start) :]


def _next_sequence(known: Appended, epoch: int) -> int:
    if known.epoch != epoch or not known.batches:
        return 0
    first, count = known.batches[-1]
    return first + count


def _visible(entry: Entry) -> bool:
    return not entry.marker and (entry.span is None or bool(entry.span.committed))
