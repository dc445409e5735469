"""What a source promises, and the values it hands on: spec -> Source -> items and splits -> Plan.

A split's identity is its `key`, which stands in the key of its offset record as it is; what else the protocol keeps of a source
(`bounds`, versions, positions) is opaque to it: kinds make it, and compare it.
"""

from __future__ import annotations

import builtins
import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias, runtime_checkable

from eosingest.report.wording import Wording

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
# A split's key as the offsets topic has it: JSON without a space. What a dict of splits is keyed by, and equal in every run.
SplitId: TypeAlias = str
# What an item was when it was read: "fingerprint" in the offset record. Only the item's kind compares two of them.
Version: TypeAlias = Mapping[str, Json]
# What a source froze when it was planned, so that a rerun cuts the same: made and read by its kind alone.
Scope: TypeAlias = Mapping[str, Json]
# How far a split is committed, as the kind of position says.
Position: TypeAlias = "int | str | list[Json]"
POSITION_KIND_ROWS: Final = "rows"  # nothing but a count of rows
POSITION_KIND_BYTES: Final = "bytes"
POSITION_KIND_OFFSET: Final = "offset"
POSITION_KIND_ROW_INDEX: Final = "row-index"
POSITION_KIND_KEY: Final = "key"
POSITION_KINDS: Final = frozenset(
    {POSITION_KIND_ROWS, POSITION_KIND_BYTES, POSITION_KIND_OFFSET, POSITION_KIND_ROW_INDEX, POSITION_KIND_KEY}
)


def split_id(key: Mapping[str, Json]) -> SplitId:
    """Return the identity of the split that has this key."""
    return json.dumps(key, ensure_ascii=False, separators=(",", ":"))


class Split(Protocol):
    """A part of an item that one task reads, in one order: the same rows whenever it is read."""

    @property
    @abstractmethod
    def item(self) -> str:
        """The name of what it is cut from: what changes, vanishes, and is sent again as a whole."""

    @property
    @abstractmethod
    def key(self) -> dict[str, Json]:
        """What tells it from every other split of the job, whenever that was made. Stands in the offset record's key."""

    @property
    @abstractmethod
    def bounds(self) -> dict[str, Json]:
        """Where it ends. A split that is resumed must have the bounds that it had."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How large it is, in bytes: for dealing out, and for progress."""

    @property
    @abstractmethod
    def label(self) -> str:
        """What a person calls it."""

    @property
    def id(self) -> SplitId:
        """Its identity, as a text."""
        return split_id(self.key)

    @abstractmethod
    def size_before(self, position: Position) -> int:
        """How much of `size` lies before a position of the kind's own, which is not a number of rows."""


class Positions(Protocol):
    """Where each row of a batch is in its split. Positions never go back from one row to the next.

    A column of them, and not a list: the task asks for one of many.
    """

    @property
    @abstractmethod
    def kind(self) -> str:
        """What the positions are: one of POSITION_KINDS, and not "rows"."""

    @property
    @abstractmethod
    def shared(self) -> bool:
        """Whether several rows may have one position: records that an expression (`explode`) makes of one source row."""

    @abstractmethod
    def at(self, row: int) -> Position:
        """Return the position of a row of the batch.

        A reader that goes on there begins behind the row; where positions are shared, with the row's source row again.
        """

    @abstractmethod
    def behind(self, position: Position) -> int:
        """Return how many rows of the batch lie at or before a position."""

    @abstractmethod
    def slice(self, start: int, end: int) -> Positions:
        """Return the positions of the rows [start, end)."""


class Item(Protocol):
    """What changes, vanishes, and is sent again as a whole: a file, a table, a partition of a topic. As it was listed.

    Items are equal where nothing that was listed of them differs. What else one holds is for its kind alone.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Its identity, on whatever machine: what splits name, and what a person is told."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How large it is, in the unit of its kind."""

    @property
    @abstractmethod
    def seen(self) -> Sequence[Json]:
        """What the listing alone tells of its content: where this differs, the item is not what it was."""


@dataclass(frozen=True)
class LeftOut:
    """What a listing passed over, and why, in a word or two of the kind's.

    `what` are the names of items, sorted: they are there, and have not vanished. Or it is how many there are of what is no
    item. `empty` items have no rows at all. `note` is what a run says of it, "" for nothing.
    """

    why: str
    what: tuple[str, ...] | int
    empty: bool = False
    note: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the items among it."""
        return () if isinstance(self.what, int) else self.what


@dataclass(frozen=True)
class Listing:
    """What a source holds at one moment. Only `items` has rows to send; they are sorted by name.

    What a kind may leave out is always in `left_out`, also where there is nothing of it. `notes` are what else is to be said
    of the look. `scope` is what the source has frozen, None for nothing.
    """

    items: tuple[Item, ...]
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)
    scope: Scope | None = None


class Source(Protocol):
    """List, identify, cut and look again. Every method may raise the classes of `errors`, each naming the item."""

    @property
    def wording(self) -> Wording:
        """The words of its kind, for whoever is told of its items."""

    def check(self) -> None:
        """Refuse what can be refused at little cost, before the run claims its job: a path that names nothing, say."""

    def list(self, scope: Scope | None = None, done: Iterable[tuple[SplitId, Mapping[str, Json]]] = ()) -> Listing:
        """Look at the source once. The plan and everything after it works from this look.

        `scope` is the one in force: list inside it, so that the same splits are cut, and return it with the listing. None: a
        source that must freeze something freezes a new scope (numbers, texts, lists and dicts of them), of what the splits
        that are `done`, each with its bounds, do not cover; where they cover everything it lists nothing.
        """

    def version(self, item: Item, known: Iterable[Version] = ()) -> Version:
        """Return what the item is now. Where the listing alone tells that it is still one of the `known`, nothing is read."""

    def unchanged(self, item: Item, recorded: Sequence[Version]) -> bool:
        """Say whether the item is still what all of these versions say, reading it where the listing alone does not tell."""

    def splits(self, item: Item, split_size: int) -> tuple[Split, ...]:
        """Cut the item, in order: `split_size` in bytes, where the kind cuts by it. An empty item has no split."""

    def split_of(self, split: SplitId, bounds: Mapping[str, Json]) -> Split:
        """Return the split that has this identity and these bounds, however its item is cut today."""

    def item_of(self, split: SplitId) -> str:
        """Return the name of what a split was cut from, listed or not."""

    def covers(self, done: Iterable[tuple[SplitId, Mapping[str, Json]]], recorded: Version) -> bool:
        """Say whether splits with these bounds are all of an item that was of this version, however it is cut today."""

    def look_again(self, items: Iterable[Item]) -> builtins.list[str]:
        """Return the names of those that a look tells to be other ones now, or to be gone."""


@runtime_checkable
class Rememberable(Protocol):
    """A source that can find again what it once listed by its name alone."""

    def missing(self, names: Iterable[str]) -> builtins.list[str]:
        """Return the names of items that are not there any more, named by the spec or not."""
