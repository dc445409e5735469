"""Defines what kinds share: the comparison of items with recorded versions; ranges, which are items of one split. Pure.

Adjacent done ranges are merged.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeVar, cast

from eosingest.protocol.source import (
    Fold,
    Item,
    Json,
    Kept,
    Recorded,
    Snapshot,
    Split,
    SplitId,
    SplitKind,
    Version,
    by_item,
    covered,
)

_KEPT = 50  # the last ranges of a line, which are never merged
_R = TypeVar("_R", bound=Split)


def compared(
    snapshot: Snapshot,
    splits: SplitKind,
    recorded: Iterable[Recorded],
    unchanged: Callable[[Any, Sequence[Version]], bool],
    version: Callable[[Any, Sequence[Version]], Version],
    ahead: Callable[[Iterable[tuple[Any, Sequence[Version]]]], AbstractContextManager[object]] = nullcontext,
) -> Snapshot:
    """Return the snapshot with its items' versions, and the names of those that changed since they were recorded.

    `unchanged` says whether an item still is of all its recorded versions. `version` returns the version of one that is not
    covered by done splits; the recorded versions that it gets are those of the item if it is unchanged. Both are called in
    the order of the items, in the context of `ahead`, which gets the items and their recorded versions.
    """
    records = by_item(splits, recorded)
    known = {name: _different(each.version for each in found) for name, found in records.items()}
    versions, changed = dict[str, Version](), list[str]()
    with ahead((item, known.get(item.name, ())) for item in snapshot.items):
        for item in snapshot.items:
            was = known.get(item.name, [])
            if was and not unchanged(item, was):
                changed.append(item.name)
                was = []
            is_done = was and covered(splits, records[item.name])
            versions[item.name] = was[0] if is_done else version(item, was)
    return replace(snapshot, versions=versions, changed=tuple(changed))


def of_known_versions(
    snapshot: Snapshot, splits: SplitKind, recorded: Iterable[Recorded], version: Callable[[Any], Version]
) -> Snapshot:
    """Return what `compared` returns, for items whose version is known without reading them."""
    return compared(
        snapshot,
        splits,
        recorded,
        lambda item, was: all(one == version(item) for one in was),
        lambda item, was: version(item),
    )


def _different(versions: Iterable[Version]) -> list[Version]:
    """Return the different ones of the versions recorded for an item: almost always one."""
    found: list[Version] = []
    for version in versions:
        if version not in found:
            found.append(version)
    return found


class Place(NamedTuple):
    """Where a range is: the line that it is a part of, such as a partition, and where it begins and ends there."""

    line: Hashable
    begin: int | None
    end: int


class RangeSplits(SplitKind, Generic[_R]):
    """Ranges as splits (`protocol.source.SplitKind`). Each is listed as an item with the attribute `split`."""

    @abstractmethod
    def split(self, split: SplitId, bounds: Mapping[str, Json]) -> _R:
        """Return the range that has this identity and these bounds."""

    def recorded(self, recorded: Collection[Recorded], *, done: bool) -> list[_R]:
        """Return the recorded ranges; only the done ones if `done`."""
        return [self.split(each.split, each.bounds) for each in recorded if each.done or not done]

    @abstractmethod
    def place(self, split: _R) -> Place | None:
        """Return the place of a range; None if it may not be merged."""

    def merged(self, ranges: Sequence[_R]) -> Mapping[str, Json]:
        """Return the bounds of the range that adjacent ones make together."""
        return ranges[-1].bounds

    def cut(self, item: Item, split_size: int) -> tuple[_R, ...]:
        """Return the range: it was cut when the source was listed."""
        return (cast(Any, item).split,)

    def covers(self, done: Iterable[Kept], version: Version) -> bool:
        """Say whether there is a done split: a range has one."""
        return any(True for _ in done)

    def merges(self, done: Iterable[Kept]) -> list[Fold]:
        """Return done ranges that are adjacent and can be kept as one.

        The last `_KEPT` of a line stay: an audit can compare a range with the source only while the source has all of it.
        Nothing is merged before there are twice as many: each run would write the same record again.
        """
        lines: dict[Hashable, list[tuple[Place, _R]]] = {}
        for split in (self.split(*kept) for kept in done):
            place = self.place(split)
            if place is not None:
                lines.setdefault(place.line, []).append((place, split))
        found = []
        for ranges in lines.values():
            ranges.sort(key=lambda placed: placed[0].end)
            for run in _adjacent(ranges[:-_KEPT] if len(ranges) >= 2 * _KEPT else []):
                if len(run) > 1:
                    found.append(Fold(tuple(split.id for split in run), self.merged(run)))
        return found


def _adjacent(ranges: Iterable[tuple[Place, _R]]) -> list[list[_R]]:
    """Return ranges, which are sorted, in groups of adjacent ones."""
    groups: list[list[_R]] = []
    end = None
    for place, split in ranges:
        if groups and place.begin == end:
            groups[-1].append(split)
        else:
            groups.append([split])
        end = place.end
    return groups
