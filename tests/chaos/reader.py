"""The concurrent reader: it reads a round's topics and its progress, read_committed, from the first to the last moment.

It finds what the log looked like on the way: a record seen twice, one that is gone later (P3), progress that goes back
(P5), and an older run that commits after a newer one has fenced it (P7). It shares no code with eosingest.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from tests.support.harness import Record, number_of

_DECIDED = ("running", "settling", "complete", "failed")  # written after the fence of earlier runs
_CATCH_UP_S = 30.0


class Seen(NamedTuple):
    """A record of the sink topic, or a dead letter."""

    partition: int
    offset: int
    number: int
    letter: bool = False

    def __str__(self) -> str:
        return f"{'letter ' if self.letter else ''}{self.partition}:{self.offset}"


class Reader:
    """Reads `topic` and the job's partition of the offsets topic until `stop`. `wrongs` says what should never be.

    `plain` reads a value as text.
    """

    def __init__(
        self,
        servers: str,
        job: str,
        topic: str,
        offsets: tuple[str, int],
        plain: Callable[[bytes | None], bytes | None] = lambda value: value,
    ) -> None:
        self._servers = servers
        self._job = job
        self._topic = topic
        self._offsets = offsets
        self._plain = {topic: plain}  # by topic
        self._awaited = [topic]
        self.seen: list[Seen] = []
        self.wrongs: list[str] = []
        self.in_one = False  # all records and letters come by one transaction
        self.progress = Progress(job, self.wrongs)
        self._numbers: set[int] = set()
        self._next: dict[tuple[bool, int], int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)

    def start(self) -> None:
        """Begin; the topic need not be there yet."""
        self._thread.start()

    def read_letters(self, topic: str, plain: Callable[[bytes | None], bytes | None]) -> None:
        """Read the topic of the dead letters, too."""
        self._plain[topic] = plain
        self._awaited.append(topic)

    def stop(self) -> None:
        """End, and wait for it."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(30)

    def compare(self, records: Sequence[Record], letters: Sequence[Record] = ()) -> None:
        """Hold what was seen to what is in the topics now, once the reader has come there. Appends to `wrongs`."""
        there = {Seen(one.partition, one.offset, number_of(one.value)) for one in records}
        there |= {Seen(one.partition, one.offset, number_of(one.value), letter=True) for one in letters}
        deadline = time.monotonic() + _CATCH_UP_S
        while len(self.seen) < len(there) and time.monotonic() < deadline:
            time.sleep(0.05)
        seen = set(self.seen)
        if seen - there:
            self.wrongs.append(f"P3: {len(seen - there)} records were read and are gone: {sorted(seen - there)[:5]}")
        if there - seen:
            self.wrongs.append(f"P3: {len(there - seen)} records never reached the reader: {sorted(there - seen)[:5]}")

    def check_all_or_nothing(self, rows: int) -> None:
        """Where everything goes in one transaction: nothing was seen, or all of the rows are soon. Raises AssertionError.

        The partitions that a transaction is in do not show it at the same moment.
        """
        deadline = time.monotonic() + _CATCH_UP_S
        while len(self.seen) not in (0, rows):
            assert time.monotonic() < deadline, (
                f"all or nothing: {len(self.seen)} of {rows} rows were read, and no more came"
            )
            time.sleep(0.02)

    # ---- its thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            consumer = Consumer(
                {
                    "bootstrap.servers": self._servers,
                    "group.id": "chaos-reader",
                    "enable.auto.commit": False,
                    "auto.offset.reset": "error",  # a log that was cut off must not pass for one that was read
                    "isolation.level": "read_committed",
                    "allow.auto.create.topics": False,
                    "fetch.wait.max.ms": 100,
                    "reconnect.backoff.max.ms": 500,
                    "topic.metadata.refresh.interval.ms": 5000,
                    "log_level": 0,
                }
            )
            try:
                self._read(consumer)
            finally:
                consumer.close()
        except Exception as error:  # a reader that died has watched nothing
            self.wrongs.append(f"the concurrent reader failed: {error!r}")

    def _read(self, consumer: Consumer) -> None:
        places = [TopicPartition(*self._offsets, 0)]
        consumer.assign(places)
        while not self._stop.is_set():
            for topic in list(self._awaited):
                if partitions := self._partitions(consumer, topic):
                    consumer.incremental_assign([TopicPartition(topic, partition, 0) for partition in partitions])
                    self._awaited.remove(topic)
            for message in consumer.consume(2000, timeout=0.1):
                self._take(message)

    def _partitions(self, consumer: Consumer, topic: str) -> list[int]:
        try:
            entry = consumer.list_topics(topic, timeout=2).topics[topic]
        except KafkaException:  # the brokers are down: that may be the fault
            return []
        return sorted(entry.partitions) if entry.error is None else []

    def _take(self, message: Message) -> None:
        error = message.error()
        if error is not None:
            if error.name() in ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"):
                self.wrongs.append(f"P3: {message.topic()}-{message.partition()}: {error.str()}")
        elif plain := self._plain.get(message.topic()):
            letter, number = message.topic() != self._topic, number_of(plain(message.value()))
            self._take_record(Seen(message.partition(), message.offset(), number, letter))
        else:
            self.progress.take(message.offset(), message.key(), message.value(), in_one=self.in_one)

    def _take_record(self, one: Seen) -> None:
        if one.number in self._numbers:
            self.wrongs.append(f"P3: {one.number} was read twice, again at {one}")
        place = one.letter, one.partition
        due = self._next.get(place, one.offset)
        if one.offset < due:
            self.wrongs.append(f"P3: {one} came again")
        if self.in_one and one.offset > due:  # a marker lies between, or what was aborted
            self.wrongs.append(f"all or nothing: {one} is of another transaction than the one before {due}")
        self._numbers.add(one.number)
        self._next[place] = one.offset + 1
        self.seen.append(one)


class Progress:
    """The job's records in the offsets topic, as they come. Appends to `wrongs` what goes back or comes from the dead."""

    def __init__(self, job: str, wrongs: list[str]) -> None:
        self._job = job
        self._wrongs = wrongs
        self._owner = 0
        self._splits: dict[str, tuple[int, int, bool]] = {}
        self._senders: set[int] = set()
        self._in_one = False

    def take(self, offset: int, key: bytes, value: bytes | None, *, in_one: bool = False) -> None:
        """Take one record in log order. `in_one`: all rows come by one transaction, and so by one run."""
        self._in_one = in_one
        job, place = json.loads(key)
        if job == self._job and value is not None and "scope" not in place:  # which no run's number is in
            self._take(offset, place, json.loads(value))

    def _take(self, offset: int, place: dict[str, Any], value: dict[str, Any]) -> None:
        run = int(place.get("run") or place.get("ended") or value["run"])
        if "control" in place:
            self._take_control(offset, run, str(value["state"]))
        elif run < self._owner:
            self._wrongs.append(
                f"P7: run {run} wrote {place} at offset {offset}, after run {self._owner} had fenced it"
            )
        if len(place) > 1:
            self._take_split(offset, ":".join(map(str, place.values())), value)

    def _take_control(self, offset: int, run: int, state: str) -> None:
        if run < self._owner:
            self._wrongs.append(
                f"P7: run {run} became {state} at offset {offset}, after run {self._owner} owned the job"
            )
        if state in _DECIDED:
            self._owner = max(self._owner, run)

    def _take_split(self, offset: int, split: str, value: dict[str, Any]) -> None:
        new = (int(value["sequence"]), int(value["rows"]), bool(value["done"]))
        old = self._splits.get(split)
        if old is not None and (new[0] <= old[0] or new[1] < old[1] or new[2] < old[2]):
            self._wrongs.append(f"P5: {split} went from (sequence, rows, done) {old} to {new} at offset {offset}")
        if self._in_one and new[1] > (0 if old is None else old[1]):
            self._senders.add(int(value["run"]))
            if old is not None and old[1]:
                self._wrongs.append(f"all or nothing: {split} went on from row {old[1]} to {new[1]} at offset {offset}")
            if len(self._senders) > 1:
                self._wrongs.append(
                    f"all or nothing: runs {sorted(self._senders)} sent rows, {split} at offset {offset}"
                )
        self._splits[split] = new
