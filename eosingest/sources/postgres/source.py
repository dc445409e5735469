"""A table as a source: cuts it into ranges of its key, freezes them, and holds the snapshot in which all tasks of a run read.

    catalogue ─▶ Found ─▶ prove, cut (walk.py) ─▶ the scope ─▶ items, one range and one split each, with the snapshot's name

The holder is a connection in a transaction. It also has a lock on the table (ACCESS SHARE): TRUNCATE, which empties a table for
earlier snapshots too, ALTER TABLE and DROP TABLE wait for the end of the run.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from eosingest.protocol.source import Item, Json, Listing, Scope, SplitId, Version
from eosingest.sources.postgres import changed
from eosingest.sources.postgres.catalogue import Found, find
from eosingest.sources.postgres.connection import READ_ONLY, Table, connect, conninfo, explained
from eosingest.sources.postgres.ranges import (
    TEXT_KEYS,
    WORDING,
    KeyRange,
    Snapshot,
    TableRange,
    as_range,
    frozen,
    ranges_of,
    split_of,
)
from eosingest.sources.postgres.walk import cut, prove


class TableSource:
    """A table that is read (a `registry.PlannedSource`). Where no server answers, methods that ask raise TemporaryError."""

    wording = WORDING
    root_as_written = "."  # the identity of the table tells it apart

    def __init__(self, table: Table, check: Callable[[], None]) -> None:
        """Connect to nothing yet. `check` raises to end a long walk."""
        self._table = table
        self._check = check
        self._holder: Any = None  # the connection whose snapshot the items name

    # ---- the listing -----------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Connect, look the table, its key and its columns up, and ask for no row of it: which needs the right to read it."""
        with explained("the table could not be looked up"), connect(conninfo(self._table)) as connection:
            found = find(connection, self._table.table, self._table.key)
            connection.execute(f"select * from {found.relation.name} limit 0".encode())

    def list(self, scope: Scope | None = None, done: Iterable[tuple[SplitId, Mapping[str, Json]]] = ()) -> Listing:
        """List the ranges of the scope, or cut the table; nothing where all of it was sent once.

        Raises ChangedError for another table of the same name, or other columns than an unfinished run has frozen.
        """
        sent = [split_of(self._table.table, split, bounds) for split, bounds in done]
        with explained("the table could not be listed"):
            found = self._hold()
            self._refuse_other(found, [str(scope["table"])] if scope is not None else [one.identity for one in sent])
            if scope is None and sent:
                return self._listing(found, [])
            if scope is not None:
                _refuse_altered(found, scope)
            prove(self._holder, found)
            if scope is not None:
                return self._listing(found, ranges_of(self._table.table, scope), scope)
            return self._listing(
                found, cut(self._holder, found, self._table.table, self._table.split_rows, self._check)
            )

    def list_sent(self, sent: Iterable[tuple[SplitId, Mapping[str, Json]]]) -> Listing:
        """List the ranges that were sent, for an audit, in a snapshot of now."""
        with explained("the table could not be listed"):
            found = self._hold()
            splits = [split_of(self._table.table, split, bounds) for split, bounds in sent]
            self._refuse_other(found, [split.identity for split in splits])
            return self._listing(found, splits)

    def listed_only(self) -> TableSource:
        """Return the same source: it reads no row to tell a version."""
        return self

    def _hold(self) -> Found:
        """Begin the transaction whose snapshot the tasks read in, behind a lock on the table, and look the table up in it."""
        if self._holder is not None:
            self._holder.close()
        self._holder = connect(conninfo(self._table))
        self._holder.execute(READ_ONLY)
        with explained(f"{self._table.table} could not be locked in ACCESS SHARE MODE"):
            self._holder.execute(f"LOCK TABLE {self._table.table} IN ACCESS SHARE MODE".encode())
        return find(self._holder, self._table.table, self._table.key)

    def _listing(self, found: Found, splits: builtins.list[KeyRange], scope: Scope | None = None) -> Listing:
        if splits:
            name, seen = self._holder.execute("select pg_export_snapshot(), pg_current_snapshot()::text").fetchone()
            snapshot = Snapshot(name, seen)
            items = sorted(
                (TableRange(split, found.relation, snapshot) for split in splits), key=lambda item: item.name
            )
        else:
            items = []
            self._holder.close()  # nobody will read: vacuum need not wait
        notes = []
        if splits and not found.walkable:
            texts = any(key.type in TEXT_KEYS for key in found.relation.keys)
            order = ' (of texts: one with COLLATE "C")' if texts else ""
            notes.append(
                f"{found.relation.name} has no unique index on {found.relation.key_names}{order}: it is read as one range"
            )
        return Listing(
            tuple(items), notes=tuple(notes), scope=scope if scope is not None else frozen(found.relation, splits)
        )

    def _refuse_other(self, found: Found, known: Iterable[str]) -> None:
        for identity in known:
            if identity != found.relation.identity:
                raise changed.recreated(found.relation.name, identity, found.relation.identity)

    # ---- items and splits ------------------------------------------------------------------------------------------

    def version(self, item: Item, known: Iterable[Version] = ()) -> Version:
        """Return the table's identity: rows may change, and each is sent as the snapshot of the run that sends it shows it."""
        return {"table": as_range(item).split.identity}

    def unchanged(self, item: Item, recorded: Sequence[Version]) -> bool:
        """Say whether the table has the recorded identity."""
        return all(one == self.version(item) for one in recorded)

    def splits(self, item: Item, split_size: int) -> tuple[KeyRange, ...]:
        """Return the range: it was cut when the table was listed."""
        return (as_range(item).split,)

    def split_of(self, split: SplitId, bounds: Mapping[str, Json]) -> KeyRange:
        """Return the range that has this identity and these bounds."""
        return split_of(self._table.table, split, bounds)

    def item_of(self, split: SplitId) -> str:
        """Return the name of the range."""
        return split_of(self._table.table, split, {"to": "", "rows": 0}).item

    def covers(self, done: Iterable[tuple[SplitId, Mapping[str, Json]]], recorded: Version) -> bool:
        """Say whether there is a done split: a range has one."""
        return any(True for _ in done)

    def look_again(self, items: Iterable[Item]) -> builtins.list[str]:
        """Return nothing: the table was locked, and each task has proven that it read in the snapshot."""
        return []

    def missing(self, names: Iterable[str]) -> builtins.list[str]:
        """Return nothing, and ask nobody."""
        return []

    def columns_beside(self, items: Iterable[Item]) -> tuple[str, ...]:
        """Return nothing: all columns are the table's."""
        return ()

    def local_path(self, item: Item) -> Path | None:
        """Return None: a table is no local file."""
        return None

    def is_read_as_one(self, item: Item) -> bool:
        """Say no: a range is one split."""
        return False


def _refuse_altered(found: Found, scope: Scope) -> None:
    """Raise ChangedError where the columns or the key are not as they were frozen."""
    relation = found.relation
    if scope["columns"] != relation.typed:
        raise changed.altered(relation.name, f"its columns are {relation.typed} now, and were {scope['columns']}")
    if scope["key"] != relation.keyed:
        raise changed.altered(relation.name, f"the key is {relation.keyed} now, and was {scope['key']}")


def source_of(table: Table, directory: Path, check: Callable[[], None]) -> TableSource:
    """Make the source of a spec's `[source]`; `check` raises to end a long wait."""
    return TableSource(table, check)
