"""Defines the interface of a source, and the values it returns: spec -> Source -> items and splits -> Plan.

A split's identity is its `key`, which is part of the key of its offset record. Other values that the protocol stores
(`bounds`, versions, positions) are opaque to it: the kind of source (files, ...) makes and compares these.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from eosingest.errors import ChangedError
from eosingest.report.wording import Wording

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
# A split's key as JSON text without spaces, as in the offsets topic: the same in every run. Dicts of splits are keyed by it.
SplitId: TypeAlias = str
# The state of an item when it was read: `version` in the offset record. Only the kind of source compares two of them.
Version: TypeAlias = Mapping[str, Json]
# A source's state, frozen when splits were planned so that a rerun cuts the same. Only the kind of source makes and reads it.
Scope: TypeAlias = Mapping[str, Json]
# A split as offset records keep it: its identity and its bounds.
Kept: TypeAlias = "tuple[SplitId, Mapping[str, Json]]"
# How far a split is committed, as its kind of position says.
Position: TypeAlias = "int | str | list[Json]"


_Recorded = TypeVar("_Recorded", bound="Recorded")


class PositionKind(StrEnum):
    """The meaning of a position, by its name in offset records."""

    ROWS = "rows"  # only a count of rows
    BYTES = "bytes"
    OFFSET = "offset"
    KEY = "key"

    @property
    def counted(self) -> bool:
        """Whether each split is read from its first row on, so that committed rows are counted, and proven by their receipt.

        Otherwise reading resumes at the position: no row before it comes in again.
        """
        return self in (PositionKind.ROWS, PositionKind.BYTES)


class SourcePartition(NamedTuple):
    """The partition of a topic that rows come from, by number, and how many `partitions` that topic had when it was listed."""

    partition: int
    partitions: int


def split_id(key: Mapping[str, Json]) -> SplitId:
    """Return the identity of the split that has this key."""
    return json.dumps(key, ensure_ascii=False, separators=(",", ":"))


class Split(Protocol):
    """A part of an item that one task reads: the same rows in the same order at every read."""

    @property
    @abstractmethod
    def item(self) -> str:
        """The name of the item that it is cut from."""

    @property
    @abstractmethod
    def key(self) -> dict[str, Json]:
        """Its identity among all splits of the job, of any run: part of its offset record's key. Two names or more."""

    @property
    @abstractmethod
    def bounds(self) -> dict[str, Json]:
        """Where it ends. A split that is resumed must have the same bounds as before."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Its size in the unit of its kind (`Wording.unit`; bytes for files): for progress, and to distribute splits."""

    @property
    @abstractmethod
    def label(self) -> str:
        """Its name in messages."""

    @property
    def id(self) -> SplitId:
        """Its identity, as a text."""
        return split_id(self.key)

    @property
    def source_partition(self) -> SourcePartition | None:
        """The topic partition that its rows come from, None for none: the partition for records without a key."""
        return None

    @abstractmethod
    def size_before(self, committed: CommittedPosition) -> int | None:
        """How much of `size` is before a position; None where positions of its kind do not say."""


class Positions(Protocol):
    """The position of each row of a batch in its split. Positions never go back from one row to the next.

    A column and not a list, since the task needs few of them.
    """

    @property
    @abstractmethod
    def kind(self) -> PositionKind:
        """The kind of the positions, which is not ROWS."""

    @property
    @abstractmethod
    def shared(self) -> bool:
        """Whether several rows may have one position: records that an expression (`explode`) makes of one source row."""

    @abstractmethod
    def at(self, row: int) -> Position:
        """Return the position of a row of the batch.

        A reader that resumes there begins after the row; where positions are shared, with the row's source row again.
        """

    @abstractmethod
    def rows_up_to(self, position: Position) -> int:
        """Return how many rows of the batch are at or before a position."""

    @abstractmethod
    def slice(self, start: int, end: int) -> Positions:
        """Return the positions of the rows [start, end)."""


class Item(Protocol):
    """The unit that changes, vanishes, and is sent again as a whole, as listed: a file, a table, a partition of a topic.

    Items are equal where their listed attributes are equal. Other attributes are for their kind alone.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Its identity, the same on every machine: what splits refer to, and messages name."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Its size in the unit of its kind."""

    @property
    @abstractmethod
    def seen(self) -> Sequence[Json]:
        """The listing's data on its content, as a file's length and modification time. If it differs, the item changed."""


@dataclass(frozen=True)
class LeftOut:
    """Items or other things that a listing left out, and `why`, in a word or two.

    `what` has the sorted names of items, which exist and have not vanished; or the number of things that are not items.
    `empty`: these items have no rows at all. `note` is a run's note on them, "" for none; `audited` says why an audit cannot
    compare them, "" for the words of the kind.
    """

    why: str
    what: tuple[str, ...] | int
    empty: bool = False
    note: str = ""
    audited: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the items that were left out."""
        return () if isinstance(self.what, int) else self.what


class CommittedPosition(NamedTuple):
    """How far a split is committed: its position, of a `kind`, and `OffsetRecord.row_records`."""

    kind: PositionKind
    position: Position
    row_records: int | None


class Recorded(Protocol):
    """A split as it is recorded: an offset record."""

    @property
    def split(self) -> SplitId:
        """The split's identity."""

    @property
    def bounds(self) -> Mapping[str, Json]:
        """The split's bounds."""

    @property
    def version(self) -> Version:
        """The version of its item."""

    @property
    def committed_position(self) -> CommittedPosition:
        """How far it is committed."""

    @property
    def done(self) -> bool:
        """Whether all of it is committed."""


@dataclass(frozen=True)
class Gap:
    """Data of a split that was deleted before it was read. Reading resumes after `position`, which is of `position_kind`.

    `name` is unique in the job, and stays the same while no data after the gap is read; `text` describes the missing data in
    the kind's words, `size` is how much, in its unit.
    """

    split: SplitId
    name: str
    text: str
    size: int
    position: Position
    position_kind: PositionKind


@dataclass(frozen=True)
class Snapshot:
    """The content of a source at one moment. Only `items` has rows to send; they are sorted by name.

    `versions` has the version of each item by name: where that differs from a recorded one, `changed` names the item.
    `gaps` are in the splits of `items` that are not done.
    `left_out` has an entry for each reason why the kind of source leaves things out, even where none was. `notes` are other
    notes of a run. `scope` is the source's frozen scope, None for none.
    `folders` are the columns whose values come from items' paths (`k=v` folders), in lower case. `sample` is the first item,
    where it is a local file.
    """

    items: tuple[Item, ...]
    versions: Mapping[str, Version] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)
    scope: Scope | None = None
    folders: tuple[str, ...] = ()
    sample: Path | None = None


class Fold(NamedTuple):
    """Adjacent done splits, the first one first, and the bounds of one that has the first one's identity and covers all."""

    splits: tuple[SplitId, ...]
    bounds: Mapping[str, Json]


class SplitKind(Protocol):
    """Cuts items, and reads recorded splits, without a request or a listing: status, plans, audits and merging use it.

    `unread` makes the error for rows that were deleted before they were read, from texts that name them; None where rows do not
    expire. `may_be_corrected`: a changed item that is sent in part is accepted, if what was sent of it stays as it was.
    """

    unread: Callable[[Sequence[str]], ChangedError] | None = None
    may_be_corrected: bool = False

    @abstractmethod
    def cut(self, item: Item, split_size: int) -> tuple[Split, ...]:
        """Cut an item into successive splits, by `split_size` bytes where its kind has sizes. An empty item has no split."""

    @abstractmethod
    def split(self, split: SplitId, bounds: Mapping[str, Json]) -> Split:
        """Return the split that has this identity and these bounds, however its item is cut today."""

    @abstractmethod
    def item(self, split: SplitId) -> str:
        """Return the name of the item that a split was cut from, listed or not."""

    @abstractmethod
    def covers(self, done: Iterable[Kept], version: Version) -> bool:
        """Say whether `done` splits cover an item of this recorded version, for any split size."""

    def merges(self, done: Iterable[Kept]) -> list[Fold]:
        """Return which done splits may be merged: none, unless the kind makes new splits in every run, for ever.

        The positions of splits that are merged are not numbers of rows.
        """
        return []


class Purpose(StrEnum):
    """The use of a snapshot."""

    RUN = "run"  # its items are sent
    SHOW = "show"  # nothing is sent: no item is read for its version, and no writer is waited for
    AUDIT = "audit"  # the sent data is compared, also where a run would find only data left to send


class Source(Protocol):
    """Finds items and their versions. Every method may raise the errors of errors.py, naming the item.

    `wording` has the words for its items in messages; `splits` says how items are cut, and reads recorded splits.
    """

    wording: Wording
    splits: SplitKind

    def check_offline(self) -> None:
        """Refuse what no connection is needed to refuse, whether the data exists yet or not. Sends no request."""
        return

    @abstractmethod
    def check(self) -> None:
        """Refuse errors that are cheap to detect, before the run claims its job: a path that names nothing, say."""

    @abstractmethod
    def plan(
        self, scope: Scope | None = None, recorded: Collection[Recorded] = (), purpose: Purpose = Purpose.RUN
    ) -> Snapshot:
        """Find the items and compare them with the `recorded` splits, once in a run: all later steps use the result.

        `scope` is the one in force: keep to it, so that the same splits are cut, and return it. None: a source that needs a
        scope freezes a new one (numbers, texts, lists and dicts of them), of data that the done splits do not cover; where
        they cover everything it finds nothing. For an audit there is no scope: find the items that were recorded, except those
        that cannot be read again.
        """

    @abstractmethod
    def changed(self, items: Iterable[Item]) -> list[str]:
        """Return the names of those that changed or vanished since they were listed, as far as a listing shows."""

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return the names of items that no longer exist, whether the spec names them or not: none, where that is normal."""
        return []


def by_item(splits: SplitKind, recorded: Iterable[_Recorded]) -> dict[str, list[_Recorded]]:
    """Return the recorded splits by the names of their items."""
    grouped: dict[str, list[_Recorded]] = {}
    for each in recorded:
        grouped.setdefault(splits.item(each.split), []).append(each)
    return grouped


def covered(splits: SplitKind, recorded: Sequence[Recorded]) -> bool:
    """Say whether the done splits of one item cover it, regardless of today's split size."""
    return splits.covers(((each.split, each.bounds) for each in recorded if each.done), recorded[0].version)
