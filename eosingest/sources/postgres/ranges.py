"""Defines ranges of a table's key as items and splits, and the state that is kept of them (the scope). Pure.

A key of any type is kept as PostgreSQL's text of it; one of several columns as a list of texts. A range begins after a key,
None for the table's first row, and ends with one.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, cast

from eosingest.protocol.source import CommittedPosition, Json, PositionKind, Scope, Split, SplitId
from eosingest.report.wording import Wording
from eosingest.sources.base import Place, RangeSplits

WORDING = Wording(
    item="range",
    items="ranges",
    unit="rows",
    not_named="not among the ranges that are read now",
    kept="its table's identity",
    later="",
    on_executors="reach the database and the sink's brokers",
    corrected="correct them in the database and run again, or leave them out by transform.where and run with --accept-change",
)
KEY_COLUMN = "__eosingest_key"
_PLAIN = re.compile(r'[^",\\]+')  # has no quotes in the name of a range

WHOLE_KEYS = ("int2", "int4", "int8")
TEXT_KEYS = ("text", "varchar")
TIME_KEYS = ("date", "timestamp", "timestamptz")
KEY_TYPES = (*WHOLE_KEYS, *TEXT_KEYS, *TIME_KEYS, "uuid")

KeyValue: TypeAlias = tuple[str, ...]  # a text for each column of the key


def kept(value: KeyValue) -> str | list[Json]:
    """Return a key as the offsets topic and positions have it: a text, or a list of texts if it has several columns."""
    return value[0] if len(value) == 1 else list(value)


def key_of(value: object) -> KeyValue:
    """Return the key for a value that `kept` returned."""
    return (value,) if isinstance(value, str) else tuple(cast("list[str]", value))


def shown(value: KeyValue) -> str:
    """Return a key for names and messages: `17`, `eu,17`. No two keys look alike: special parts are quoted as in JSON."""
    if len(value) == 1 and value[0] and not value[0].startswith('"'):
        return value[0]
    return ",".join(part if _PLAIN.fullmatch(part) else json.dumps(part, ensure_ascii=False) for part in value)


@dataclass(frozen=True)
class Column:
    """A column: its name, its PostgreSQL type, its Spark SQL type, and whether it is read as text."""

    name: str
    type: str
    spark: str
    as_text: bool


@dataclass(frozen=True)
class KeyColumn:
    """A column of the key, and its type, one of KEY_TYPES."""

    name: str
    type: str

    @property
    def is_whole(self) -> bool:
        """Whether it has whole numbers."""
        return self.type in WHOLE_KEYS


@dataclass(frozen=True)
class Relation:
    """A table as the catalogue shows it, or a `query`. `identity` is unique among the tables and queries of all servers.

    The `name` of a table is quoted for SQL. `hides_keys`: no message has a value of the key.
    """

    name: str
    identity: str
    columns: tuple[Column, ...]
    keys: tuple[KeyColumn, ...]
    query: str | None = None
    hides_keys: bool = False

    @property
    def sql(self) -> str:
        """Its text in FROM. A comment at the end of a query does not reach the bracket."""
        return self.name if self.query is None else f"(\n{self.query}\n)"

    @property
    def said(self) -> str:
        """Its name in messages."""
        return f"table {self.name}" if self.query is None else "the query"

    @property
    def typed(self) -> list[Json]:
        """The columns with their types, which must not change while a job is unfinished."""
        return [[column.name, column.type] for column in self.columns]

    @property
    def keyed(self) -> Json:
        """The key with its types: name and type of its column, or a list of such pairs."""
        pairs: list[Json] = [[column.name, column.type] for column in self.keys]
        return pairs[0] if len(pairs) == 1 else pairs

    @property
    def key_names(self) -> str:
        """The columns of the key."""
        return ", ".join(column.name for column in self.keys)


@dataclass(frozen=True)
class ExportedSnapshot:
    """An exported snapshot: the name by which it is imported, and the value of `pg_current_snapshot` in it.

    `holder` is the virtual id of the transaction that exported it: while it lives, it holds locks on all relations.
    """

    name: str
    seen: str
    holder: str = ""


@dataclass(frozen=True)
class KeyRange(Split):
    """The rows with keys greater than `after`, up to `upto`. `rows` is their number when the range was cut.

    `settled`: all keys that follow are above it, except those set by hand (incremental.py). `hides_keys`: its name and its
    label have hashes in place of keys.
    """

    table: str
    identity: str
    after: KeyValue | None
    upto: KeyValue
    rows: int
    settled: bool = False
    hides_keys: bool = field(default=False, compare=False)

    @property
    def item(self) -> str:
        """The name of the range: `public.orders>250000`."""
        return f"{self.table}>{'' if self.after is None else self._named(self.after)}"

    @property
    def key(self) -> dict[str, Json]:
        """The table's identity, and the key after which the range begins."""
        return {"table": self.identity, "after": None if self.after is None else kept(self.after)}

    @property
    def bounds(self) -> dict[str, Json]:
        """The last key, the number of rows, and whether it is settled."""
        bounds: dict[str, Json] = {"to": kept(self.upto), "rows": self.rows}
        return {**bounds, "settled": True} if self.settled else bounds

    @property
    def size(self) -> int:
        """The number of rows when the range was cut."""
        return self.rows

    @property
    def label(self) -> str:
        """Table and keys."""
        begin = "from the first row on" if self.after is None else f"keys behind {self._named(self.after)}"
        return f"{self.table}, {begin} up to {self._named(self.upto)}"

    def _named(self, value: KeyValue) -> str:
        if not self.hides_keys:
            return shown(value)
        return "#" + hashlib.sha256(json.dumps([self.identity, kept(value)]).encode()).hexdigest()[:12]

    def size_before(self, committed: CommittedPosition) -> int | None:
        """Return the approximate number of rows up to a key, by the distance of its first column.

        None if that is no number, and for the first range.
        """
        if committed.kind is not PositionKind.KEY or self.after is None:
            return None
        try:
            at, after, upto = int(key_of(committed.position)[0]), int(self.after[0]), int(self.upto[0])
        except ValueError:
            return None
        return min(self.rows, self.rows * (at - after) // max(upto - after, 1))


@dataclass(frozen=True)
class TableRange:
    """A range as it was listed (a `protocol.source.Item`), with what a task needs to read it."""

    split: KeyRange
    relation: Relation = field(compare=False)
    snapshot: ExportedSnapshot = field(compare=False)

    @property
    def name(self) -> str:
        """The name of the range."""
        return self.split.item

    @property
    def size(self) -> int:
        """The number of rows when the range was cut."""
        return self.split.rows

    @property
    def seen(self) -> tuple[Json, ...]:
        """The table's identity, and the end of the range."""
        return (self.split.identity, kept(self.split.upto))


def as_range(item: object) -> TableRange:
    """Return an item as a range: this source lists nothing else."""
    assert isinstance(item, TableRange), item
    return item


def split_of(table: str, split: SplitId, bounds: Mapping[str, Json]) -> KeyRange:
    """Return the range that has this identity and these bounds; `table` is the table's name."""
    key = json.loads(split)
    after = None if key["after"] is None else key_of(key["after"])
    return KeyRange(table, key["table"], after, key_of(bounds["to"]), cast(int, bounds["rows"]), "settled" in bounds)


class KeySplits(RangeSplits[KeyRange]):
    """The ranges of a table as splits (`protocol.source.SplitKind`)."""

    def __init__(self, table: str, *, hides_keys: bool) -> None:
        """Take the table's name. `hides_keys` as in `KeyRange`."""
        self._table = table
        self._hides_keys = hides_keys

    def split(self, split: SplitId, bounds: Mapping[str, Json]) -> KeyRange:
        """Return the range that has this identity and these bounds."""
        return self.shown(split_of(self._table, split, bounds))

    def shown(self, split: KeyRange) -> KeyRange:
        """Return the range as messages may name it."""
        return replace(split, hides_keys=True) if self._hides_keys else split

    def item(self, split: SplitId) -> str:
        """Return the name of the range."""
        return self.split(split, {"to": "", "rows": 0}).item

    def place(self, split: KeyRange) -> Place | None:
        """Return the keys, which are whole numbers; None for a range that is not settled: the table gets no more of them."""
        if not split.settled:
            return None
        return Place(split.identity, None if split.after is None else int(split.after[0]), int(split.upto[0]))

    def merged(self, ranges: Sequence[KeyRange]) -> Mapping[str, Json]:
        """Return the bounds of the range that adjacent ones make together."""
        return {**ranges[-1].bounds, "rows": sum(split.rows for split in ranges)}


def frozen(relation: Relation, ranges: list[KeyRange]) -> Scope:
    """Return the scope: the state that a resumed run must find unchanged, and the ranges."""
    settled: dict[str, Json] = {"settled": True} if any(split.settled for split in ranges) else {}
    return {
        **settled,
        "table": relation.identity,
        "columns": relation.typed,
        "key": relation.keyed,
        "ranges": [[split.key["after"], split.bounds["to"], split.rows] for split in ranges],
    }


def ranges_of(table: str, scope: Scope) -> list[KeyRange]:
    """Return the ranges of a scope."""
    rows = cast("list[tuple[Json, Json, int]]", scope["ranges"])
    identity = str(scope["table"])
    return [
        KeyRange(table, identity, None if after is None else key_of(after), key_of(upto), count, "settled" in scope)
        for after, upto, count in rows
    ]
