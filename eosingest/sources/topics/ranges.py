"""Defines ranges of offsets as items and splits of a source topic, and the state that is kept of them. Pure.

A run reads one range of each partition that has new records, by ascending offset and in one task: an item, and its only
split. The frozen state (`Frozen`) is the scope of the source: the topic's id, and the ranges.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from eosingest.protocol.source import (
    CommittedPosition,
    Gap,
    Json,
    PositionKind,
    Recorded,
    Scope,
    SourcePartition,
    Split,
    SplitId,
    Version,
)
from eosingest.report.wording import Wording
from eosingest.sources.base import Place, RangeSplits
from eosingest.sources.topics import errors

WORDING = Wording(
    item="range",
    items="ranges",
    unit="offsets",
    not_named="not among the ranges that are read now",
    kept="its topic's id",
    later="",
    on_executors="reach the brokers of source and sink",
    corrected="leave them out by transform.where and run with --accept-change, or raise the limit that refuses them and run"
    " again",
)


@dataclass(frozen=True)
class RangeSplit(Split):
    """The offsets [start, end) of a partition of a topic. Its key has the topic's id: another topic has other splits.

    `epoch` is that of the partition's leader when the end was frozen, None if it reported none. `partitions` is how many the
    topic had when this run listed it, None for a range that was not listed.
    """

    topic: str
    topic_id: str
    partition: int
    start: int
    end: int
    epoch: int | None = None
    partitions: int | None = field(default=None, compare=False)

    @property
    def item(self) -> str:
        """The name of the range."""
        return range_name(self.topic, self.partition, self.start)

    @property
    def key(self) -> dict[str, Json]:
        """The topic's id, the partition, and the first offset."""
        return {"topic": self.topic_id, "partition": self.partition, "start": self.start}

    @property
    def bounds(self) -> dict[str, Json]:
        """The offset after the last one, and the leader epoch."""
        return {"end": self.end} if self.epoch is None else {"end": self.end, "epoch": self.epoch}

    @property
    def size(self) -> int:
        """The number of offsets. Markers, aborted and compacted records have offsets, too."""
        return self.end - self.start

    @property
    def label(self) -> str:
        """Topic, partition and offsets."""
        return errors.place(self.topic, self.partition, self.start, self.end)

    @property
    def source_partition(self) -> SourcePartition | None:
        """The partition."""
        return SourcePartition(self.partition, self.partitions) if self.partitions is not None else None

    def size_before(self, committed: CommittedPosition) -> int | None:
        """Return the number of offsets up to a position, which is the offset of a record that was sent."""
        return cast(int, committed.position) + 1 - self.start if committed.kind is PositionKind.OFFSET else None


@dataclass(frozen=True)
class TopicRange:
    """A range as it was listed (a `protocol.source.Item`)."""

    split: RangeSplit

    @property
    def name(self) -> str:
        """Topic, partition and first offset."""
        return self.split.item

    @property
    def size(self) -> int:
        """The number of offsets."""
        return self.split.size

    @property
    def seen(self) -> tuple[Json, ...]:
        """The topic's id, and the end of the range."""
        return (self.split.topic_id, self.split.end)


class TopicSplits(RangeSplits[RangeSplit]):
    """The ranges of a topic as splits (`protocol.source.SplitKind`)."""

    def __init__(self, topic: str) -> None:
        """Take the topic's name."""
        self._topic = topic
        self.unread = errors.unread

    def split(self, split: SplitId, bounds: Mapping[str, Json]) -> RangeSplit:
        """Return the range that has this identity and these bounds."""
        return split_of(self._topic, split, bounds)

    def item(self, split: SplitId) -> str:
        """Return the name of the range."""
        return self.split(split, {"end": 0}).item

    def place(self, split: RangeSplit) -> Place:
        """Return partition and offsets."""
        return Place(split.partition, split.start, split.end)


def first_unread(split: RangeSplit, committed: CommittedPosition | None) -> int:
    """Return the first offset whose record is not sent, or sent only in part."""
    if committed is None or committed.kind != PositionKind.OFFSET:
        return split.start
    assert isinstance(committed.position, int), "offsets are whole numbers"
    return committed.position + (1 if committed.row_records is None else 0)


def gap_of(split: RangeSplit, committed: CommittedPosition | None, earliest: int) -> Gap | None:
    """Return the part of a range that was deleted unread, None if none was; its partition begins at the offset `earliest`."""
    first, end = first_unread(split, committed), min(earliest, split.end)
    if first >= end:
        return None
    name = range_name(split.topic, split.partition, first)
    text = errors.place(split.topic, split.partition, first, end)
    return Gap(split.id, name, text, end - first, end - 1, PositionKind.OFFSET)


def gaps_of(ranges: Iterable[RangeSplit], recorded: Iterable[Recorded], earliest: Sequence[int]) -> tuple[Gap, ...]:
    """Return the gaps of ranges, except done ones; `earliest` has the first offset of each partition."""
    records = {each.split: each for each in recorded}
    found = []
    for split in ranges:
        record = records.get(split.id)
        if record is None or not record.done:
            committed = record.committed_position if record is not None else None
            found.append(gap_of(split, committed, earliest[split.partition]))
    return tuple(gap for gap in found if gap is not None)


def version_of(item: TopicRange) -> Version:
    """Return the topic's id: the record at an offset never changes. Offsets show deleted and cut-off records."""
    return {"topic": item.split.topic_id}


def range_name(topic: str, partition: int, start: int) -> str:
    """Return the name of the range that begins at an offset: `orders-3@1500`."""
    return f"{topic}-{partition}@{start}"


def as_range(item: object) -> TopicRange:
    """Return an item as a range: this source lists nothing else."""
    assert isinstance(item, TopicRange), item
    return item


def split_of(topic: str, split: SplitId, bounds: Mapping[str, Json]) -> RangeSplit:
    """Return the range that has this identity and these bounds; `topic` is the topic's name."""
    key = json.loads(split)
    epoch = cast("int | None", bounds.get("epoch"))
    return RangeSplit(topic, key["topic"], key["partition"], key["start"], cast(int, bounds["end"]), epoch)


def last_done(done: Iterable[RangeSplit]) -> dict[int, RangeSplit]:
    """Return the last done range of each partition that has one: the partition was read up to its end."""
    last: dict[int, RangeSplit] = {}
    for split in done:
        if split.partition not in last or last[split.partition].end < split.end:
            last[split.partition] = split
    return last


@dataclass(frozen=True)
class Frozen:
    """The frozen state of a topic: its id, the `from` and `to` by which the ranges were made, and the ranges themselves.

    A range is partition, first offset, the offset after the last one, and leader epoch.
    """

    topic: str
    topic_id: str
    begin: str
    until: str
    ranges: tuple[tuple[int, int, int, int | None], ...]

    def items(self, partitions: int) -> tuple[TopicRange, ...]:
        """Return the ranges as items, by name, for a topic that has so many partitions now."""
        items = (TopicRange(replace(split, partitions=partitions)) for split in self.splits)
        return tuple(sorted(items, key=lambda item: item.name))

    @property
    def splits(self) -> tuple[RangeSplit, ...]:
        """The ranges as splits, by partition."""
        return tuple(RangeSplit(self.topic, self.topic_id, *each) for each in self.ranges)

    def to_json(self) -> dict[str, Json]:
        """Return the form that is kept in the offsets topic."""
        return {
            "topic": self.topic,
            "id": self.topic_id,
            "from": self.begin,
            "to": self.until,
            "ranges": [[*each] for each in self.ranges],
        }

    @classmethod
    def from_json(cls, scope: Scope) -> Frozen:
        """Read the form that `to_json` returns."""
        ranges = cast("list[tuple[int, int, int, int | None]]", scope["ranges"])
        return cls(
            str(scope["topic"]),
            str(scope["id"]),
            str(scope["from"]),
            str(scope["to"]),
            tuple((partition, start, end, epoch) for partition, start, end, epoch in ranges),
        )
