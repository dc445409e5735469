"""A random walk over single requests, on the Kafka in memory and on a real one at once.

Also what no sound client would send: requests of zombies, repeated and missing batches, an EndTxn too many.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eosingest.kafka.ports import LogRecord, OffsetsReader
from tests.support.memory_kafka.cluster import Cluster
from tests.support.memory_kafka.log import BrokerError, Identity
from tests.support.raw_kafka import RawKafka

PARTITIONS = 2
TIMEOUT_S = 600.0
_SAME = {"INVALID_PRODUCER_EPOCH": "PRODUCER_FENCED", "UNKNOWN_TOPIC_OR_PARTITION": "UNKNOWN_TOPIC_OR_PART"}


@dataclass
class Pair:
    """One producer on both sides, with the sequence number that each partition expects next, and what was last sent."""

    memory: Identity
    real: Identity
    sequences: dict[int, int] = field(default_factory=dict)
    last: dict[int, tuple[int, list[LogRecord]]] = field(default_factory=dict)


class RequestWalk:
    """A random walk over single requests. Two transactional ids; every producer that ever was stays in the game."""

    def __init__(self, seed: int, raw: RawKafka, config: Mapping[str, str] | None = None) -> None:
        self.random = random.Random(seed)
        self.raw = raw
        self.memory = Cluster(lambda: 0.0)
        self.topic = f"requests-{uuid.uuid4().hex[:8]}"
        self.ids = [f"{self.topic}.{number}" for number in range(2)]
        self.pairs: list[Pair] = []
        self.done: list[str] = []
        self.records = 0
        self.config = dict(config or {})
        for kafka in (self.memory, self.raw):
            kafka.create_topic(self.topic, PARTITIONS, self.config)

    def run(self, steps: int) -> None:
        for name in self.ids:
            self.init(name)
        for _ in range(steps):
            self.step()
            self.compare()

    def step(self) -> None:
        kind = self.random.choices(
            ["init", "produce", "repeat", "skip", "commit", "abort", "trim", "recreate"], [6, 20, 2, 2, 10, 4, 2, 0.5]
        )[0]
        if kind == "init":
            self.init(self.random.choice(self.ids))
        elif kind == "trim":
            self.trim()
        elif kind == "recreate":
            self.recreate()
        else:
            pair = self.choose()
            if kind in ("commit", "abort"):
                self.end(pair, commit=kind == "commit")
            else:
                self.produce(pair, kind)

    def choose(self) -> Pair:
        """Mostly one of the newest producers, else a zombie."""
        newest = self.pairs[-2:] if self.random.random() < 0.7 else self.pairs
        return self.random.choice(newest)

    def init(self, name: str) -> str:
        """Return "ok", with a new last of `pairs`, or the code of the error."""
        said, answers = self.ask(
            f"init {name[-1]}",
            lambda: self.memory.init_producer_id(name, TIMEOUT_S),
            lambda: self.raw.init_producer_id(name, TIMEOUT_S),
        )
        if said == "ok":
            self.pairs.append(Pair(*answers))
        return said

    def produce(self, pair: Pair, kind: str, partition: int | None = None) -> str:
        if partition is None:
            partition = PARTITIONS + 3 if self.random.random() < 0.02 else self.random.randrange(PARTITIONS)
        sequence, records = pair.sequences.get(partition, 0), self.make_records()
        if kind == "repeat":
            sequence, records = pair.last.get(partition, (sequence, records))
        elif kind == "skip":
            sequence += 3
        said, _ = self.ask(
            f"{kind} {self.name(pair)} to {partition}: {len(records)} records from sequence {sequence}",
            lambda: self.memory.produce(pair.memory, self.topic, partition, sequence, records),
            lambda: self.raw.produce(pair.real, self.topic, partition, sequence, records),
        )
        if said == "ok":
            pair.sequences[partition] = sequence + len(records)
            pair.last[partition] = (sequence, records)
        return said

    def make_records(self) -> list[LogRecord]:
        count = self.random.randint(1, 3)
        self.records += count
        return [LogRecord(-1, b"k", str(self.records + number).encode(), 1_000) for number in range(count)]

    def end(self, pair: Pair, *, commit: bool) -> str:
        return self.ask(
            f"{'commit' if commit else 'abort'} {self.name(pair)}",
            lambda: self.memory.end_txn(pair.memory, commit=commit),
            lambda: self.raw.end_txn(pair.real, commit=commit),
        )[0]

    def trim(self) -> None:
        partition = self.random.randrange(PARTITIONS)
        log = self.memory.log(self.topic, partition)
        offset = self.random.randint(log.start, log.last_stable)
        self.ask(
            f"delete before {offset} of {partition}",
            lambda: log.delete_before(offset),
            lambda: self.raw.delete_before(self.topic, partition, offset),
        )

    def recreate(self) -> None:
        def recreate(kafka: Cluster | RawKafka) -> None:
            kafka.delete_topic(self.topic)
            kafka.create_topic(self.topic, PARTITIONS, self.config)

        self.ask("recreate the topic", lambda: recreate(self.memory), lambda: recreate(self.raw))

    def name(self, pair: Pair) -> str:
        return f"{pair.memory.transactional_id[-1]}/{pair.memory.producer_id}/{pair.memory.epoch}"

    def ask(self, text: str, memory: Callable[[], Any], real: Callable[[], Any]) -> tuple[str, tuple[Any, Any]]:
        """Do it on both sides, and return what they said and what they gave; fails unless they said the same."""
        answers = attempt(memory), attempt(real)
        said = tuple(answer if isinstance(answer, str) else "ok" for answer in answers)
        self.done.append(f"{text} -> {said[0]}")
        assert said[0] == said[1], f"{text}: memory said {said[0]}, Kafka {said[1]}"
        return said[0], answers

    def compare(self) -> None:
        states, offsets = self.raw.look(self.topic, PARTITIONS, self.ids)
        known = [self.memory.transactions.get(name) for name in self.ids]
        memory = [f"{found.state.value} {found.epoch}" if found else "unknown" for found in known]
        assert memory == states, f"memory has {memory}, Kafka {states}"
        held = [self.memory.list_offsets(self.topic, partition) for partition in range(PARTITIONS)]
        assert held == offsets, f"memory holds {held}, Kafka {offsets}"


class CompactionWalk(RequestWalk):
    """Few keys, many transactions, one partition of a compacted topic; `same_after_compaction` has both sides compact it."""

    rolling = False

    def write(self, transactions: int) -> None:
        """Commit or abort transactions of one or two batches."""
        for _ in range(transactions):
            pair = self.choose()
            for _ in range(self.random.randint(1, 2)):
                self.produce(pair, "produce", 0)
            self.end(pair, commit=self.random.random() < 0.7)
            self.compare()

    def make_records(self) -> list[LogRecord]:
        now = int(time.time() * 1000)
        if self.rolling:
            return [LogRecord(-1, str(now).encode(), b"roll", now)]
        return [
            LogRecord(-1, f"k{self.random.randrange(8)}".encode(), self.random.choice([record.value, None]), now)
            for record in super().make_records()
        ]

    def same_after_compaction(self, reader: OffsetsReader, *, drop_tombstones: bool) -> bool:
        """Begin a new segment, since the active one is never compacted, and say whether the same is left on both sides."""
        time.sleep(0.15)
        log = self.memory.log(self.topic, 0)
        roll = log.end
        self.rolling = True  # by a record that replaces none
        self.produce(self.pairs[0], "produce", 0)
        self.rolling = False
        self.end(self.pairs[0], commit=True)
        self.compare()
        log.compact(roll, drop_tombstones=drop_tombstones)
        return all(self.same(reader, log.start, committed) for committed in (True, False))

    def same(self, reader: OffsetsReader, start: int, committed: bool) -> bool:
        """Say whether both sides give the same records from an offset on."""
        log = self.memory.log(self.topic, 0)
        end = log.last_stable if committed else log.end
        memory, _ = log.fetch(start, committed=committed)
        real = list(reader.read(start, end, committed=committed, deadline_s=20))
        return [record[:3] for record in memory] == [record[:3] for record in real]


def attempt(action: Callable[[], Any]) -> Any:
    """Return what came of it; the code of an error, by librdkafka's name of it. Fencing has one name here."""
    try:
        return action()
    except BrokerError as error:
        return _SAME.get(error.code, error.code)
