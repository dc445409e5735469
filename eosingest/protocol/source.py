"""The interface of a source, and the values it returns: spec -> Source -> items and splits -> Plan.

A split's identity is its `key`, which is part of the key of its offset record. What else the protocol keeps of a source
(`bounds`, versions, positions) is opaque to it: the kind of source (files, ...) makes and compares these.
"""

from __future__ import annotations

import builtins
import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

from eosingest.report.wording import Wording

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
# A split's key as JSON text without spaces, as in the offsets topic: the same in every run. Dicts of splits are keyed by it.
SplitId: TypeAlias = str
# What an item was when it was read: "fingerprint" in the offset record. Only the kind of source compares two of them.
Version: TypeAlias = Mapping[str, Json]
# What a source froze when its splits were planned, so that a rerun cuts the same. Only the kind of source makes and reads it.
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


class Home(NamedTuple):
    """The partition of a topic that rows come from, by number, and how many `partitions` that topic had when it was listed."""

    partition: int
    partitions: int


def split_id(key: Mapping[str, Json]) -> SplitId:
    """Return the identity of the split that has this key."""
    return json.dumps(key, ensure_ascii=False, separators=(",", ":"))


class Split(Protocol):
    """A part of an item that one task reads, in one order: the same rows whenever it is read."""

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
        """How large it is, in the unit of its kind (`Wording.unit`; of files bytes): for progress, and to deal splits out."""

    @property
    @abstractmethod
    def label(self) -> str:
        """Its name in messages."""

    @property
    def id(self) -> SplitId:
        """Its identity, as a text."""
        return split_id(self.key)

    @property
    def home(self) -> Home | None:
        """The partition of a topic that its rows come from, None where they come from none: where records without a key go."""
        return None

    @abstractmethod
    def size_before(self, position: Position) -> int:
        """How much of `size` lies before a position, which is of the kind's own and no number of rows."""


class Positions(Protocol):
    """Where each row of a batch is in its split. Positions never go back from one row to the next.

    A column and not a list, since the task needs few of them.
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

        A reader that resumes there begins after the row; where positions are shared, with the row's source row again.
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
        """Its identity, the same on every machine: what splits refer to, and messages name."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How large it is, in the unit of its kind."""

    @property
    @abstractmethod
    def seen(self) -> Sequence[Json]:
        """What the listing alone tells of its content, as a file's length and modification time. If it differs, it changed."""


@dataclass(frozen=True)
class LeftOut:
    """What a listing left out, and `why`, in a word or two.

    `what` are the sorted names of items, which exist and have not vanished; or the number of things that are no items.
    `empty`: these items have no rows at all. `note` is what a run says of them, "" for nothing; `audited` why an audit cannot
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


@dataclass(frozen=True)
class Listing:
    """What a source holds at one moment. Only `items` has rows to send; they are sorted by name.

    `left_out` has an entry for all that the kind of source may leave out, even where nothing was. `notes` are what else a run
    says of the listing. `scope` is what the source has frozen, None for nothing.
    """

    items: tuple[Item, ...]
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)
    scope: Scope | None = None


class Source(Protocol):
    """Lists its items, tells their versions, and cuts them. Every method may raise the errors of errors.py, naming the item."""

    @property
    def wording(self) -> Wording:
        """The words for its items in messages."""

    def check(self) -> None:
        """Refuse what can be refused at little cost, before the run claims its job: a path that names nothing, say."""

    def list(self, scope: Scope | None = None, done: Iterable[tuple[SplitId, Mapping[str, Json]]] = ()) -> Listing:
        """List the items, once in a run: the plan and everything after it rests on this listing.

        `scope` is the one in force: list inside it, so that the same splits are cut, and return it with the listing. None: a
        source that must freeze something freezes a new scope (numbers, texts, lists and dicts of them), of what the splits
        that are `done`, each with its bounds, do not cover; where they cover everything it lists nothing.
        """

    def version(self, item: Item, known: Iterable[Version] = ()) -> Version:
        """Return the item's version now. Where the listing alone tells that it is one of `known`, the item is not read."""

    def unchanged(self, item: Item, recorded: Sequence[Version]) -> bool:
        """Say whether the item still is of all these versions. Reads it where the listing alone does not tell."""

    def splits(self, item: Item, split_size: int) -> tuple[Split, ...]:
        """Cut the item into splits, in order, by `split_size` bytes where its kind has sizes. An empty item has no split."""

    def split_of(self, split: SplitId, bounds: Mapping[str, Json]) -> Split:
        """Return the split that has this identity and these bounds, however its item is cut today."""

    def item_of(self, split: SplitId) -> str:
        """Return the name of the item that a split was cut from, listed or not."""

    def covers(self, done: Iterable[tuple[SplitId, Mapping[str, Json]]], recorded: Version) -> bool:
        """Say whether `done` splits, each with its bounds, cover an item of the `recorded` version, by whatever split size."""

    def look_again(self, items: Iterable[Item]) -> builtins.list[str]:
        """Return the names of those that have changed or are gone since they were listed, as far as a listing tells."""


@runtime_checkable
class Rereadable(Protocol):
    """A source whose listing has only what is left to read: for an audit it lists what was sent."""

    def list_sent(self, sent: Iterable[tuple[SplitId, Mapping[str, Json]]]) -> Listing:
        """List the items that these splits, each with its bounds, were cut from. What cannot be read again is left out."""


class Reached(NamedTuple):
    """How far a split is committed: its position, of a kind of POSITION_KINDS, and `OffsetRecord.row_records`."""

    kind: str
    position: Position
    row_records: int | None


@dataclass(frozen=True)
class Gap:
    """What of a split is gone before it was read. Reading goes on behind `position`, which is of `position_kind`.

    `name` tells the gap from all others of the job, and stays while nothing behind it is read; `text` says in the words of the
    kind what is missing, `size` how much, in its unit.
    """

    split: SplitId
    name: str
    text: str
    size: int
    position: Position
    position_kind: str


@runtime_checkable
class Expiring(Protocol):
    """A source whose rows go by themselves, as those of a topic by its retention, read or not."""

    def gaps(self, pending: Iterable[tuple[Split, Reached | None]]) -> builtins.list[Gap]:
        """Return what is gone of splits, as far as each is committed (None: nothing is), and was not read."""

    def refuse_gaps(self, gaps: Sequence[Gap]) -> None:
        """Raise ChangedError for gaps behind which the run was not told to go on."""


class Fold(NamedTuple):
    """Done splits that lie side by side, in order, and the bounds of one that has the identity of the first and covers all."""

    splits: tuple[SplitId, ...]
    bounds: Mapping[str, Json]


@runtime_checkable
class Foldable(Protocol):
    """A source that makes new splits in every run, for ever. Their positions are no numbers of rows."""

    def fold(self, done: Iterable[tuple[SplitId, Mapping[str, Json]]]) -> builtins.list[Fold]:
        """Return which done splits, each given with its bounds, may be kept as one from now on."""


@runtime_checkable
class Foresighted(Protocol):
    """A source that may wait for an answer for each item: told of many beforehand, it asks for several at a time."""

    def ahead(self, items: Iterable[tuple[Item, Sequence[Version]]]) -> AbstractContextManager[None]:
        """Be told of which items `unchanged` and `version` are asked in the body, in order, each with its recorded versions.

        Both return and raise the same as without it.
        """


@runtime_checkable
class Rememberable(Protocol):
    """A source that can find again what it once listed by its name alone."""

    def missing(self, names: Iterable[str]) -> builtins.list[str]:
        """Return the names of items that do not exist any more, whether the spec names them or not."""
