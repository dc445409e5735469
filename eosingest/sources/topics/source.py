"""Lists a topic as a source: freezes a range of offsets of each partition, and detects whether the topic is another one.

    done ranges ─▶ next offset of each partition     ┐
    cluster     ─▶ id, log start, last stable offset ┴─▶ Frozen (the scope) ─▶ items, one range and one split each

It queries the brokers, and reads no record except one, in `check`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from eosingest.errors import FatalError, SpecError, TemporaryError
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.kafka_python import KafkaPythonAdmin
from eosingest.kafka.ports import FailureKind, KafkaFailure, TopicDescription
from eosingest.kafka.topic_reader import TopicReader
from eosingest.protocol.source import Item, LeftOut, Purpose, Recorded, Scope, Snapshot, Source
from eosingest.sources.base import of_known_versions
from eosingest.sources.topics import errors
from eosingest.sources.topics.client import Table, given_properties, sink_client, source_client
from eosingest.sources.topics.cluster import Partition, cut_off, held_back, partitions_of, refuse_cut_off
from eosingest.sources.topics.ranges import (
    WORDING,
    Frozen,
    RangeSplit,
    TopicRange,
    TopicSplits,
    as_range,
    gaps_of,
    last_done,
    version_of,
)
from eosingest.sources.topics.times import milliseconds

_PATIENCE_S = 10.0
_NO_ID = "00000000-0000-0000-0000-000000000000"
_COMPACTED = "the topic is compacted: not all that was sent need be there any more"
_MAY_BE_COMPACTED = "the topic may be compacted: the right to read its configuration is missing (DescribeConfigs)"
_DELETED = "records of it were deleted since they were sent (retention, or deleted records)"
_KEPT = "committed records are kept, nothing was sent twice"
_WORDS = ("earliest", "latest")  # in place of a point in time


class TopicSource(Source):
    """A topic as a source. Methods that query the brokers raise TemporaryError if none answers."""

    wording = WORDING

    def __init__(self, table: Table, check: Callable[[], None]) -> None:
        """Connect to nothing yet. `check` is called while waiting, and raises to end the wait."""
        self._table = table
        self._topic = table.topic
        self.splits = TopicSplits(table.topic)
        self._check = check

    # ---- the listing -----------------------------------------------------------------------------------------------

    def check_offline(self) -> None:
        """Raise SpecError for properties that cannot be used, and for a topic that the job writes, by the servers' names."""
        given_properties(self._table)
        if self._own_topic() is not None and self._table.bootstrap_servers in (None, self._sink_servers()):
            raise self._reads_what_it_writes()

    def check(self) -> None:
        """Connect, find the topic, and read a record of it.

        Raises SpecError for a topic that is missing or that the job writes, FatalError if it may not be read.
        """
        client = source_client(self._table)
        with self._connected(client) as admin:
            self._refuse_own_topics(client, admin)
            topic = self._described(admin)
            partitions = partitions_of(admin, topic)
        self._read_one(client, partitions)

    def plan(
        self, scope: Scope | None = None, recorded: Collection[Recorded] = (), purpose: Purpose = Purpose.RUN
    ) -> Snapshot:
        """Return the ranges of the scope, or freeze new ones: from the end of the done ranges up to `to`.

        For an audit the recorded ranges: those that no longer hold all of their records are left out. Raises ChangedError for
        another topic of the same name, and if a log was cut off.
        """
        with self._connected(source_client(self._table)) as admin:
            topic = self._described(admin)
            partitions = partitions_of(admin, topic)
            if purpose is Purpose.AUDIT:
                return self._recorded(topic, partitions, recorded)
            if scope is not None:
                frozen = Frozen.from_json(scope)
                self._refuse_other(topic, [frozen.topic_id])
                refuse_cut_off(admin, topic, partitions, frozen.splits)
                notes = self._notes_of_pins(frozen)
            else:
                splits = self.splits.recorded(recorded, done=True)
                self._refuse_other(topic, {split.topic_id for split in splits})
                last = last_done(splits)
                refuse_cut_off(admin, topic, partitions, last.values())
                frozen = self._frozen(admin, topic, partitions, {number: split.end for number, split in last.items()})
                notes = held_back(admin, topic, partitions, frozen) if self._table.to in _WORDS else []
        items = frozen.items(len(partitions))
        gaps = gaps_of((item.split for item in items), recorded, [found.earliest for found in partitions])
        snapshot = Snapshot(items, gaps=gaps, notes=tuple(notes), scope=frozen.to_json())
        return of_known_versions(snapshot, self.splits, recorded, version_of)

    def _recorded(
        self, topic: TopicDescription, partitions: Sequence[Partition], recorded: Collection[Recorded]
    ) -> Snapshot:
        splits = self.splits.recorded(recorded, done=False)
        self._refuse_other(topic, {split.topic_id for split in splits})
        compacted = topic.config is None or "compact" in topic.config.get("cleanup.policy", "")
        there = [split for split in splits if not compacted and _is_there(split, partitions[split.partition])]
        items = sorted(map(TopicRange, there), key=lambda item: item.name)
        gone = sorted({split.item for split in splits} - {item.name for item in items})
        why = _MAY_BE_COMPACTED if topic.config is None else _COMPACTED if compacted else _DELETED
        snapshot = Snapshot(tuple(items), left_out=(LeftOut("gone", tuple(gone), audited=why),))
        return of_known_versions(snapshot, self.splits, recorded, version_of)

    def _frozen(
        self, admin: KafkaPythonAdmin, topic: TopicDescription, partitions: Sequence[Partition], ends: Mapping[int, int]
    ) -> Frozen:
        """Freeze a range of each partition that has new records, or had (`gaps`); `ends`: up to where it was read."""
        begin = self._offsets_at(admin, self._table.begin, [found.earliest for found in partitions], partitions)
        until = self._offsets_at(admin, self._table.to, [found.stable for found in partitions], partitions)
        ranges = []
        for number, partition in enumerate(partitions):
            start = ends.get(number, begin[number])
            end = min(until[number], partition.stable)
            if start < end:
                ranges.append((number, start, end, partition.epoch))
        return Frozen(self._topic, topic.topic_id, self._table.begin, self._table.to, tuple(ranges))

    def _offsets_at(
        self, admin: KafkaPythonAdmin, text: str, otherwise: Sequence[int], partitions: Sequence[Partition]
    ) -> Sequence[int]:
        """Return the offsets of a point in time, the last stable one if no record is so late; `otherwise` for a word."""
        if text in _WORDS:
            return otherwise
        found = admin.offsets_at(self._topic, len(partitions), milliseconds(text))
        return [each.stable if at is None else at for at, each in zip(found, partitions, strict=True)]

    def _notes_of_pins(self, frozen: Frozen) -> list[str]:
        pinned = {"from": (frozen.begin, self._table.begin), "to": (frozen.until, self._table.to)}
        return [
            f"source.{key}: what an unfinished run has frozen by {was} is read first, and {now} counts for a later run"
            for key, (was, now) in pinned.items()
            if was != now
        ]

    def changed(self, items: Iterable[Item]) -> list[str]:
        """Return the ranges whose topic has another id now, or is gone, or whose partition ends before they do."""
        ranges = [as_range(item) for item in items]
        try:
            with self._connected(source_client(self._table)) as admin:
                topic = admin.describe_topic(self._topic)
                same = [item.split for item in ranges if topic is not None and item.split.topic_id == topic.topic_id]
                found = cut_off(admin, topic, partitions_of(admin, topic), same) if topic is not None else []
        except TemporaryError as error:
            raise TemporaryError(
                f"the source could not be checked after it was read: {error.message}",
                code=error.code,
                hint=f"{_KEPT}; run again: it resumes from here",
            ) from error
        except FatalError as error:
            raise _not_allowed(self._topic, error, _KEPT) from error
        kept = set(same) - {split for split, _ in found}
        return [item.name for item in ranges if item.split not in kept]

    # ---- the cluster -----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _connected(self, client: ClientSettings) -> Iterator[KafkaPythonAdmin]:
        admin = KafkaPythonAdmin(client, self._check)
        try:
            yield admin
        finally:
            admin.close()

    def _described(self, admin: KafkaPythonAdmin) -> TopicDescription:
        """Return the topic's description. Raises SpecError if it is missing, FatalError if topics have no ids."""
        try:
            topic = admin.describe_topic(self._topic)
        except FatalError as error:
            raise _not_allowed(self._topic, error) from error
        if topic is None:
            raise SpecError(
                f"source.topic: there is no topic {self._topic} on the source's cluster",
                code="source-topic-missing",
                hint="nothing was sent; correct source.topic or source.bootstrap_servers",
            )
        if topic.topic_id == _NO_ID:
            raise FatalError(
                f"topic {self._topic} has no id: the source's cluster is too old, or still runs by an older metadata version",
                code="broker-too-old",
                hint="nothing was sent; without an id a recreated topic cannot be distinguished from the one that was read",
            )
        return topic

    def _refuse_own_topics(self, client: ClientSettings, admin: KafkaPythonAdmin) -> None:
        """Raise SpecError if the job would read topics that it writes: with records, or with its own progress."""
        if self._own_topic() is None:
            return
        sink = sink_client(self._table)
        if client.bootstrap_servers != sink.bootstrap_servers:
            with self._connected(sink) as other:
                if other.cluster_id() != admin.cluster_id():
                    return
        raise self._reads_what_it_writes()

    def _own_topic(self) -> str | None:
        """Return the key of the spec by which the job writes a topic of this name, None if it writes none."""
        others = self._table.others
        what = {others.offsets_topic: "sink.offsets_topic", others.dead_letter_topic: "on_error.topic"}
        what[others.topic] = "sink.topic"
        return what.get(self._topic)

    def _sink_servers(self) -> str | None:
        """Return the sink's servers, None if they are an embedded broker that is down."""
        try:
            return sink_client(self._table).bootstrap_servers
        except TemporaryError:
            return None

    def _reads_what_it_writes(self) -> SpecError:
        return SpecError(
            f"source.topic: {self._topic} is also {self._own_topic()}, on the same cluster: a run would read what it writes",
            code="source-is-sink",
            hint="nothing was sent; name another topic, or the servers of another cluster in source.bootstrap_servers",
        )

    def _refuse_other(self, topic: TopicDescription, known: Iterable[str]) -> None:
        for topic_id in known:
            if topic_id != topic.topic_id:
                raise errors.recreated(self._topic, topic_id, topic.topic_id)

    def _read_one(self, client: ClientSettings, partitions: Sequence[Partition]) -> None:
        """Read a partition's first record, if any: whether a task may, and can, is known before any run is fenced."""
        number = next((n for n, found in enumerate(partitions) if found.earliest < found.stable), None)
        if number is None:
            return
        start = partitions[number].earliest
        try:
            with contextlib.closing(TopicReader(self._topic, client, patience_s=_PATIENCE_S)) as reader:
                for _ in reader.read(number, start, start + 1):
                    self._check()
        except KafkaFailure as failure:
            if failure.kind is FailureKind.REFUSED:
                raise _not_allowed(self._topic, failure) from failure


def _not_allowed(topic: str, why: Exception, safe: str = "nothing was sent by this run") -> FatalError:
    """Make the error for a topic that the source's user may not describe, or may not read."""
    return FatalError(
        f"source.topic: {topic} may not be read: {why}",
        code="kafka-refused",
        hint=f"{safe}; the source's user needs Read on the topic:"
        f" kafka-acls --add --allow-principal User:… --operation Read --topic {topic}; then run again",
    )


def _is_there(split: RangeSplit, partition: Partition) -> bool:
    """Say whether a partition still has all offsets of a range."""
    return partition.earliest <= split.start and split.end <= partition.latest


def source_of(table: Table, directory: Path, check: Callable[[], None]) -> TopicSource:
    """Make the source of a spec's `[source]`; `check` raises to end a long wait."""
    return TopicSource(table, check)
