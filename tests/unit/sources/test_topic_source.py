"""Which ranges of a topic a run freezes and refuses, and how a reader tells another topic: the brokers are played."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from eosingest.errors import ChangedError, EosingestError, FatalError, SpecError
from eosingest.host.interruption import never
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.ports import (
    FailureKind,
    KafkaFailure,
    LogEnd,
    OffsetRange,
    OpenTransaction,
    TopicDescription,
)
from eosingest.protocol import data_loss
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.plan import PlannedSplit
from eosingest.protocol.source import CommittedPosition, PositionKind, Purpose
from eosingest.sources.topics import source as source_module
from eosingest.sources.topics.ranges import RangeSplit, TopicRange, gap_of
from eosingest.sources.topics.reading import reader as reader_module
from eosingest.sources.topics.reading.reader import RecordsReader
from eosingest.sources.topics.source import TopicSource
from eosingest.spark.python_scan import PythonSplit
from tests.support.builders import as_recorded, offset_record

ID, OTHER = "11111111-0000-0000-0000-000000000000", "22222222-0000-0000-0000-000000000000"


@dataclass
class Cluster:
    """What the brokers say: of each partition log start, last stable offset and high watermark; offsets by time.

    `epoch` is that of all leaders, `ends` where it ends, by partition: by default at the high watermark.
    """

    partitions: list[tuple[int, int, int]]
    topic_id: str = ID
    times: dict[int, tuple[int | None, ...]] = field(default_factory=dict)
    open: list[OpenTransaction] = field(default_factory=list)
    config: dict[str, str] | None = field(default_factory=dict)
    cluster: str = "c"
    epoch: int | None = None
    ends: dict[int, int] = field(default_factory=dict)

    def __call__(self, *_: object) -> Cluster:
        return self

    def close(self) -> None:
        """Nothing."""

    def cluster_id(self) -> str:
        return self.cluster

    def describe_topic(self, name: str) -> TopicDescription | None:
        return TopicDescription(name, self.topic_id, len(self.partitions), self.config) if self.topic_id else None

    def offset_ranges(self, topic: str, partitions: int) -> tuple[OffsetRange, ...]:
        return tuple(OffsetRange(start, end) for start, _, end in self.partitions)

    def last_stable_ends(self, topic: str, partitions: int) -> tuple[LogEnd, ...]:
        return tuple(LogEnd(stable, self.epoch) for _, stable, _ in self.partitions)

    def ends_of_epochs(self, topic: str, epochs: dict[int, int]) -> dict[int, int]:
        return {partition: self.ends.get(partition, self.partitions[partition][2]) for partition in epochs}

    def offsets_at(self, topic: str, partitions: int, time_ms: int) -> tuple[int | None, ...]:
        return self.times[time_ms]

    def open_transactions(self, topic: str, partition: int) -> list[OpenTransaction]:
        return self.open


@dataclass
class Others:
    topic: str = "sink"
    offsets_topic: str = "eosingest-offsets"
    dead_letter_topic: str | None = "sink-dead"

    def sink(self) -> tuple[str, dict[str, str]]:
        return "sink:1", {}

    def resolve(self, properties: Any, key: str) -> dict[str, str]:
        return dict(properties)


@dataclass
class Table:
    topic: str = "t"
    bootstrap_servers: str | None = None
    properties: Any = None
    begin: str = "earliest"
    to: str = "latest"
    others: Any = field(default_factory=Others)


Listed = Callable[..., list[tuple[int, int, int]]]


@pytest.fixture
def source_on(monkeypatch: pytest.MonkeyPatch) -> Callable[..., TopicSource]:
    def made(cluster: Cluster, table: Table | None = None) -> TopicSource:
        monkeypatch.setattr(source_module, "KafkaPythonAdmin", cluster)
        return TopicSource(table or Table(), never)

    return made


def done(partition: int, start: int, end: int, topic_id: str = ID) -> OffsetRecord:
    return as_recorded(RangeSplit("t", topic_id, partition, start, end))


def ranges(listing: Any) -> list[tuple[int, int, int]]:
    return [(item.split.partition, item.split.start, item.split.end) for item in listing.items]


# ---- what is frozen ---------------------------------------------------------------------------------------------------


def test_up_to_the_last_stable_offset_and_behind_what_is_done(source_on: Callable[..., TopicSource]) -> None:
    """Breaks when an offset is read twice, or none reads it."""
    cluster = Cluster([(0, 10, 10), (5, 8, 9), (3, 3, 3), (0, 7, 7)])
    source = source_on(cluster)
    assert ranges(source.plan()) == [(0, 0, 10), (1, 5, 8), (3, 0, 7)]
    found = source.plan(None, [done(0, 4, 6), done(0, 0, 4), done(3, 0, 7)])
    assert ranges(found) == [(0, 6, 10), (1, 5, 8)]
    assert json.loads(json.dumps(found.scope)) == found.scope
    half = replace(done(0, 4, 6), done=False)
    assert ranges(source.plan(None, [done(0, 0, 4), half]))[0] == (0, 4, 10), "a range that is not done covers nothing"
    cluster.partitions = [(0, 50, 50), (6, 50, 50), (0, 50, 50), (0, 50, 50), (0, 9, 9)]
    again = source.plan(found.scope)
    assert (again.items, again.scope) == (found.items, found.scope), (
        "inside a scope the same is listed, whatever came since"
    )


def test_a_range_knows_its_partition_and_how_many_there_are_now(source_on: Callable[..., TopicSource]) -> None:
    """Breaks when records without a key keep a partition by a count of an earlier run."""
    cluster = Cluster([(0, 10, 10), (5, 8, 9)])
    source = source_on(cluster)
    found = source.plan()
    homes = [source.splits.cut(item, 0)[0].source_partition for item in found.items]
    assert homes == [(0, 2), (1, 2)]
    cluster.partitions.append((0, 9, 9))
    again = source.plan(found.scope)
    assert [source.splits.cut(item, 0)[0].source_partition for item in again.items] == [(0, 3), (1, 3)]


def test_from_counts_only_where_nothing_was_read(source_on: Callable[..., TopicSource]) -> None:
    cluster = Cluster([(0, 10, 10), (0, 10, 10), (0, 10, 12)], times={1000: (4, None, 0), 2000: (9, 2, 11)})
    table = Table(begin="1970-01-01T00:00:01Z", to="1970-01-01T00:00:02Z")
    source = source_on(cluster, table)
    assert ranges(source.plan()) == [(0, 4, 9), (2, 0, 10)]
    assert ranges(source.plan(None, [done(0, 0, 2), done(1, 0, 2)])) == [(0, 2, 9), (2, 0, 10)]


def test_a_log_that_ends_before_what_was_read(source_on: Callable[..., TopicSource]) -> None:
    """Breaks when a run waits until other records have the offsets that were read."""
    with pytest.raises(
        ChangedError, match="t-0: offsets up to 5 were there, and since then the log was cut off at 5"
    ) as raised:
        source_on(Cluster([(0, 5, 5)])).plan(None, [done(0, 0, 6)])
    assert (raised.value.code, raised.value.exit_code) == ("source-truncated", 12)
    assert "--from-scratch" in raised.value.hint


@pytest.mark.parametrize(
    ("earliest", "committed", "gap"),
    [
        (4, None, None),
        (7, None, (4, 7)),
        (90, None, (4, 12)),
        (6, CommittedPosition(PositionKind.OFFSET, 5, None), None),
        (8, CommittedPosition(PositionKind.OFFSET, 5, None), (6, 8)),
        (12, CommittedPosition(PositionKind.OFFSET, 11, None), None),
        (5, CommittedPosition(PositionKind.OFFSET, 5, 2), None),
        (6, CommittedPosition(PositionKind.OFFSET, 5, 2), (5, 6)),
    ],
)
def test_what_is_gone_unread_of_a_range(
    earliest: int, committed: CommittedPosition | None, gap: tuple[int, int] | None
) -> None:
    """Breaks when a gap is not seen, or has what was read; of a record that was sent in part the rest is gone with it."""
    found = gap_of(RangeSplit("t", ID, 0, 4, 12), committed, earliest)
    if gap is None:
        assert found is None
    else:
        first, end = gap
        assert found is not None
        assert (found.name, found.size, found.position, found.position_kind) == (
            f"t-0@{first}",
            end - first,
            end - 1,
            "offset",
        )


def test_unread_offsets_that_are_gone(source_on: Callable[..., TopicSource]) -> None:
    """Breaks when a run goes on behind a gap without being told, or says it of a range that it does not read."""
    source = source_on(Cluster([(7, 9, 9), (6, 6, 6), (0, 9, 9)]))
    listed = source.plan(None, [done(0, 0, 6), done(1, 0, 6)])
    assert ranges(listed) == [(0, 6, 9), (2, 0, 9)], "the range begins where the last one ended, so that the gap shows"
    assert [gap.text for gap in listed.gaps] == ["t-0, offset 6"]
    with pytest.raises(ChangedError, match=r"t-0, offset 6; .* and 2 more partitions: deleted before") as raised:
        data_loss.refuse(source, listed.gaps * 7)
    assert (raised.value.code, raised.value.exit_code) == ("source-records-deleted", 12)
    assert "--accept-gap" in raised.value.hint


def test_unread_offsets_of_ranges_in_force(source_on: Callable[..., TopicSource]) -> None:
    """Breaks when a range that is done has a gap, or one that was read in part has a gap of what was read."""
    cluster = Cluster([(0, 9, 9), (0, 9, 9), (0, 9, 9)])
    source = source_on(cluster)
    scope = source.plan().scope
    other = [replace(done(0, 0, 9), version={"topic": OTHER}), replace(done(1, 0, 9), version={"topic": ID})]
    assert source.plan(scope, other).changed == ("t-0@0",)
    cluster.partitions = [(7, 9, 9), (7, 9, 9), (7, 9, 9)]
    half = replace(done(1, 0, 9), done=False, position=3, position_kind=PositionKind.OFFSET)
    found = source.plan(scope, [done(0, 0, 9), half])
    assert [gap.text for gap in found.gaps] == ["t-1, offsets 4 to 6", "t-2, offsets 0 to 6"]


def test_a_log_that_was_cut_off_and_has_grown_again(source_on: Callable[..., TopicSource]) -> None:
    """Between runs, inside a scope, behind a run. Breaks when other records are taken for those that were read."""
    cluster = Cluster([(0, 10, 10), (0, 9, 9)], epoch=3)
    source = source_on(cluster)
    listed = source.plan()
    sent = [as_recorded(item.split) for item in listed.items]  # type: ignore[attr-defined]
    assert source.plan(listed.scope) == listed
    cluster.partitions, cluster.ends, cluster.epoch = [(0, 20, 20), (0, 20, 20)], {0: 10, 1: 7}, 5
    looks = [lambda: source.plan(listed.scope), lambda: source.plan(None, sent)]
    for look in looks:
        with pytest.raises(
            ChangedError, match="t-1: offsets up to 8 were there, and since then the log was cut off at 7"
        ):
            look()
    assert source.changed(listed.items) == ["t-1@0"]
    cluster.ends = {0: 10, 1: 9}
    assert ranges(source.plan(None, sent)) == [(0, 10, 20), (1, 9, 20)]
    cluster.ends = {0: 10, 1: -1}  # the leader knows no such epoch
    with pytest.raises(ChangedError, match="cut off at 0"):
        source.plan(None, sent)


def test_a_log_that_ends_before_the_scope(source_on: Callable[..., TopicSource]) -> None:
    scope = source_on(Cluster([(0, 10, 10)])).plan().scope
    with pytest.raises(ChangedError, match="cut off at 8"):
        source_on(Cluster([(0, 8, 8)])).plan(scope)


def test_another_topic_of_the_name(source_on: Callable[..., TopicSource]) -> None:
    """Breaks when offsets of a topic that is gone count for another one, in a scope, in done splits or in an audit."""
    scope = source_on(Cluster([(0, 10, 10)])).plan().scope
    other = source_on(Cluster([(0, 99, 99)], topic_id=OTHER))
    looks: list[Callable[[], object]] = [
        lambda: other.plan(scope),
        lambda: other.plan(None, [done(0, 0, 6)]),
        lambda: other.plan(None, [done(0, 0, 6)], Purpose.AUDIT),
    ]
    for look in looks:
        with pytest.raises(ChangedError, match=f"id {OTHER}") as raised:
            look()
        assert raised.value.code == "source-topic-recreated"


def test_what_has_changed_behind_a_run(source_on: Callable[..., TopicSource]) -> None:
    cluster = Cluster([(0, 10, 10), (0, 10, 10)])
    source = source_on(cluster)
    items = source.plan().items
    cluster.partitions = [(10, 12, 12), (0, 9, 9)]
    assert source.changed(items) == ["t-1@0"], "what was read may be deleted, and not be cut off"
    cluster.topic_id = OTHER
    assert source.changed(items) == ["t-0@0", "t-1@0"]
    cluster.topic_id = ""
    assert source.changed(items) == ["t-0@0", "t-1@0"]


def test_an_audit_lists_what_was_sent_and_is_there(source_on: Callable[..., TopicSource]) -> None:
    sent = [done(0, 0, 4), done(0, 4, 10), done(1, 0, 3)]
    listing = source_on(Cluster([(2, 20, 20), (0, 20, 20)])).plan(None, sent, Purpose.AUDIT)
    assert ranges(listing) == [(0, 4, 10), (1, 0, 3)]
    (left,) = listing.left_out
    assert (left.names, "deleted" in left.audited) == (("t-0@0",), True)
    compacted = source_on(Cluster([(0, 20, 20), (0, 20, 20)], config={"cleanup.policy": "compact"})).plan(
        None, sent, Purpose.AUDIT
    )
    assert (compacted.items, len(compacted.left_out[0].names)) == ((), 3)
    hidden = source_on(Cluster([(0, 20, 20), (0, 20, 20)], config=None)).plan(None, sent, Purpose.AUDIT)
    assert (hidden.items, "may be compacted" in hidden.left_out[0].audited) == ((), True)


@pytest.mark.parametrize(
    ("hanging", "read_before", "begins", "words"),
    [
        (False, False, "t-0: 3 offsets from 7 on", "of writer (5 s old)"),
        (False, True, "warning: t-0: 3 offsets", "of writer"),
        (True, False, "warning: t-0: 3 offsets", "kafka-transactions abort --topic t --partition 0 --start-offset 7"),
    ],
)
def test_what_lies_behind_an_open_transaction(
    source_on: Callable[..., TopicSource], hanging: bool, read_before: bool, begins: str, words: str
) -> None:
    """Breaks when a mirror ends with 0 records for ever and nobody is told why."""
    cluster = Cluster([(0, 7, 10), (0, 9, 9)], open=[OpenTransaction("writer", 7, 5.0, hanging)])
    (note,) = source_on(cluster).plan(None, [done(0, 0, 7)] if read_before else []).notes
    assert note.startswith(begins)
    assert words in note


def test_its_own_topics_are_refused_by_the_clusters_id(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = {"sink:1": "c", "alias:1": "c", "other:1": "d"}

    def connect(client: ClientSettings, check: object) -> Cluster:
        return Cluster([(0, 0, 0)], cluster=ids[client.bootstrap_servers])

    monkeypatch.setattr(source_module, "KafkaPythonAdmin", connect)
    for name in ("sink", "eosingest-offsets", "sink-dead"):
        for servers in (None, "sink:1", "alias:1"):
            with pytest.raises(SpecError, match="same cluster"):
                TopicSource(Table(topic=name, bootstrap_servers=servers), never).check()
        TopicSource(Table(topic=name, bootstrap_servers="other:1"), never).check()
    TopicSource(Table(), never).check()


def test_topics_without_ids_are_refused(source_on: Callable[..., TopicSource]) -> None:
    source = source_on(Cluster([(0, 5, 5)], topic_id="00000000-0000-0000-0000-000000000000"))
    with pytest.raises(FatalError, match="has no id"):
        source.plan()


# ---- how it is read ---------------------------------------------------------------------------------------------------


class Message:
    """A message as librdkafka's client gives it."""

    def __init__(self, offset: int) -> None:
        self._offset = offset

    def offset(self) -> int:
        return self._offset

    def partition(self) -> int:
        return 0

    def key(self) -> bytes | None:
        return None

    def value(self) -> bytes:
        return b"%d" % self._offset

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 1, 1


@dataclass
class Reader:
    """Gives batches of offsets, or an error in place of one. `ids` is what it says of the topic, in turn, the last again."""

    batches: Sequence[Sequence[int] | KafkaFailure]
    ids: list[str | KafkaFailure]
    bounds_now: tuple[int, int] = (0, 20)
    asked: list[tuple[int, int]] = field(default_factory=list)
    looked: int = 0

    def __call__(self, *_: object, **__: object) -> Reader:
        return self

    def topic_id(self) -> str:
        found = self.ids.pop(0) if len(self.ids) > 1 else self.ids[0]
        if isinstance(found, KafkaFailure):
            raise found
        return found

    def bounds(self, partition: int) -> tuple[int, int]:
        self.looked += 1
        return self.bounds_now

    def read(self, partition: int, start: int, end: int) -> Iterator[list[Message]]:
        self.asked.append((start, end))
        for batch in self.batches:
            if isinstance(batch, KafkaFailure):
                raise batch
            yield [Message(offset) for offset in batch]

    def close(self) -> None:
        """Nothing."""


def read(monkeypatch: pytest.MonkeyPatch, reader: Reader, committed: OffsetRecord | None = None) -> list[int]:
    """Return the offsets that a task is given; what is raised is raised behind them, with them in its notes."""
    monkeypatch.setattr(reader_module, "TopicReader", reader)
    split = RangeSplit("t", ID, 0, 4, 12)
    planned = PythonSplit(1, TopicRange(split), PlannedSplit(split, {"topic": ID}, committed))
    found: list[int] = []
    try:
        for batch in RecordsReader(ClientSettings("s:1"), "t").read(planned, committed):
            found += batch.column("offset").to_pylist()
    except (EosingestError, OSError) as error:
        error.add_note(str(found))
        raise
    return found


def at(offset: int, row_records: int | None = None) -> OffsetRecord:
    return replace(offset_record(rows=1, position=offset, position_kind=PositionKind.OFFSET), row_records=row_records)


def failure(code: str, kind: FailureKind = FailureKind.UNCERTAIN) -> KafkaFailure:
    return KafkaFailure(kind, code, "said by a broker")


@pytest.mark.parametrize(("committed", "start"), [(None, 4), (at(4), 5), (at(7), 8), (at(7, 2), 7), (at(11), 12)])
def test_where_it_goes_on(monkeypatch: pytest.MonkeyPatch, committed: OffsetRecord | None, start: int) -> None:
    """Breaks when a record is sent twice, or the rest of what `explode` made of one is left out."""
    reader = Reader([[8, 11]], [ID])
    assert read(monkeypatch, reader, committed) == [8, 11]
    assert reader.asked == [(start, 12)]


def test_all_of_it_was_read_and_then_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a run ends for ever with exit 12 for records that were sent."""
    assert read(monkeypatch, Reader([], [ID], (40, 60)), at(11)) == []


REFUSED = FailureKind.REFUSED
GONE = failure("UNKNOWN_TOPIC_OR_PART", REFUSED)
LOST = failure("_AUTO_OFFSET_RESET")


@pytest.mark.parametrize(
    ("reader", "code", "given"),
    [
        (Reader([[4, 5]], [OTHER]), "source-topic-recreated", []),
        (Reader([[4, 5], [6]], [ID, ID, OTHER]), "source-topic-recreated", [4, 5]),
        (Reader([[4, 5]], [ID, ID, OTHER]), "source-topic-recreated", [4, 5]),
        (Reader([], [ID, OTHER]), "source-topic-recreated", []),
        (Reader([[4, 5], GONE], [ID, ID, GONE]), "source-topic-recreated", [4, 5]),
        (Reader([[4, 5], LOST], [ID, ID, OTHER]), "source-topic-recreated", [4, 5]),
        (Reader([[4]], [ID], (5, 20)), "source-records-deleted", []),
        (Reader([[4]], [ID], (0, 11)), "source-truncated", []),
        (Reader([[4], failure("_LOG_TRUNCATION")], [ID]), "source-truncated", [4]),
        (Reader([[4], failure("TOPIC_AUTHORIZATION_FAILED", REFUSED)], [ID]), "kafka-refused", [4]),
    ],
)
def test_what_ends_a_read(monkeypatch: pytest.MonkeyPatch, reader: Reader, code: str, given: list[int]) -> None:
    """Breaks when a record of another topic is given, or an end of what can be read counts as the range's end."""
    with pytest.raises((ChangedError, FatalError)) as raised:
        read(monkeypatch, replace(reader, ids=list(reader.ids)))
    assert (raised.value.code, raised.value.__notes__) == (code, [str(given)])


def test_retention_in_the_middle_of_a_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when the lost range is not the one behind what was given."""

    class Moving(Reader):
        def bounds(self, partition: int) -> tuple[int, int]:
            return (0, 20) if not self.asked else (9, 20)

    with pytest.raises(ChangedError, match="offsets 6 to 8: deleted") as raised:
        read(monkeypatch, Moving([[4, 5], LOST], [ID]))
    assert raised.value.code == "source-records-deleted"


@pytest.mark.parametrize("said", [failure("read-deadline"), failure("_ALL_BROKERS_DOWN"), LOST, GONE])
def test_brokers_that_cannot_be_asked_now(monkeypatch: pytest.MonkeyPatch, said: KafkaFailure) -> None:
    """Breaks when a run ends for good for what a retry mends: Spark tries an OSError again."""
    with pytest.raises(OSError, match="said by a broker"):
        read(monkeypatch, Reader([[4], said], [ID]))
