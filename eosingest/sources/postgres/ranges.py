"""Ranges of a table's key as items and splits, and what of them is kept (the scope). Pure.

A key is kept as PostgreSQL's text of it, of whatever type it is. A range begins behind a key, None for the table's first row,
and ends with one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from eosingest.protocol.source import Json, Position, Scope, Split, SplitId
from eosingest.report.wording import Wording

WORDING = Wording(
    item="range",
    items="ranges",
    unit="rows",
    not_named="not among the ranges that are read now",
    kept="its table's identity",
    later="",
    on_executors="reach the database and the sink's brokers",
)
KEY_COLUMN = "__eosingest_key"

WHOLE_KEYS = ("int2", "int4", "int8")
TEXT_KEYS = ("text", "varchar")
TIME_KEYS = ("date", "timestamp", "timestamptz")
KEY_TYPES = (*WHOLE_KEYS, *TEXT_KEYS, *TIME_KEYS, "uuid")

KeyValue: TypeAlias = str


@dataclass(frozen=True)
class Column:
    """A column: its name, its PostgreSQL type, its Spark SQL type, and whether it is read as its text."""

    name: str
    type: str
    spark: str
    as_text: bool


@dataclass(frozen=True)
class Relation:
    """A table as the catalogue shows it. `name` is quoted for SQL; `identity` tells it from any other table of any server."""

    name: str
    identity: str
    columns: tuple[Column, ...]
    key: str
    key_type: str

    @property
    def typed(self) -> list[Json]:
        """The columns with their types, which must not change while a job is unfinished."""
        return [[column.name, column.type] for column in self.columns]


@dataclass(frozen=True)
class Snapshot:
    """An exported snapshot: the name by which it is imported, and what `pg_current_snapshot` says inside it."""

    name: str
    seen: str


@dataclass(frozen=True)
class KeyRange(Split):
    """The rows whose keys lie behind `after` and not behind `upto`. `rows` is how many there were when it was cut."""

    table: str
    identity: str
    after: KeyValue | None
    upto: KeyValue
    rows: int

    @property
    def item(self) -> str:
        """The name of the range."""
        return range_name(self.table, self.after)

    @property
    def key(self) -> dict[str, Json]:
        """The table's identity, and the key behind which the range begins."""
        return {"table": self.identity, "after": self.after}

    @property
    def bounds(self) -> dict[str, Json]:
        """The last key, and the number of rows."""
        return {"to": self.upto, "rows": self.rows}

    @property
    def size(self) -> int:
        """How many rows there were when it was cut."""
        return self.rows

    @property
    def label(self) -> str:
        """Table and keys."""
        begin = "from the first row on" if self.after is None else f"keys behind {self.after}"
        return f"{self.table}, {begin} up to {self.upto}"

    def size_before(self, position: Position) -> int:
        """Return about how many rows lie up to a key, by its distance; 0 for keys that are no numbers, and the first range."""
        try:
            at, after, upto = int(str(position)), int(self.after or ""), int(self.upto)
        except ValueError:
            return 0
        return min(self.rows, self.rows * (at - after) // max(upto - after, 1))


@dataclass(frozen=True)
class TableRange:
    """A range as it was listed (a `protocol.source.Item`), with what a task needs to read it."""

    split: KeyRange
    relation: Relation = field(compare=False)
    snapshot: Snapshot = field(compare=False)

    @property
    def name(self) -> str:
        """The name of the range."""
        return self.split.item

    @property
    def size(self) -> int:
        """How many rows there were when it was cut."""
        return self.split.rows

    @property
    def seen(self) -> tuple[Json, ...]:
        """The table's identity, and where the range ends."""
        return (self.split.identity, self.split.upto)


def range_name(table: str, after: KeyValue | None) -> str:
    """Return the name of the range that begins behind a key: `public.orders>250000`."""
    return f"{table}>{'' if after is None else after}"


def as_range(item: object) -> TableRange:
    """Return an item as a range: this source lists nothing else."""
    assert isinstance(item, TableRange), item
    return item


def split_of(table: str, split: SplitId, bounds: Mapping[str, Json]) -> KeyRange:
    """Return the range that has this identity and these bounds; `table` is the table's name."""
    key = json.loads(split)
    return KeyRange(table, key["table"], key["after"], cast(KeyValue, bounds["to"]), cast(int, bounds["rows"]))


def frozen(relation: Relation, ranges: list[KeyRange]) -> Scope:
    """Return the scope: what a run that goes on must find as it was, and the ranges."""
    return {
        "table": relation.identity,
        "columns": relation.typed,
        "key": [relation.key, relation.key_type],
        "ranges": [[split.after, split.upto, split.rows] for split in ranges],
    }


def ranges_of(table: str, scope: Scope) -> list[KeyRange]:
    """Return the ranges of a scope."""
    rows = cast("list[tuple[KeyValue | None, KeyValue, int]]", scope["ranges"])
    return [KeyRange(table, str(scope["table"]), after, upto, count) for after, upto, count in rows]
