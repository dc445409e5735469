"""Lists a table or a query as a source: cuts it into ranges of its key, freezes them, holds the snapshot for a run's tasks.

begin (snapshot.py) ─▶ Found ─▶ prove, cut (keyset_sql.py) ─▶ the scope ─▶ items: a range, a split, the snapshot's name
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from eosingest.protocol.source import Item, Purpose, Recorded, Scope, Snapshot, Source
from eosingest.sources.base import of_known_versions
from eosingest.sources.postgres import errors
from eosingest.sources.postgres.catalogue import Found
from eosingest.sources.postgres.connection import READ_ONLY, Table, connect, conninfo, explained, transaction
from eosingest.sources.postgres.incremental import last_sent, refuse_keys_ahead
from eosingest.sources.postgres.keyset_sql import cut, prove
from eosingest.sources.postgres.query import NAME
from eosingest.sources.postgres.ranges import (
    TEXT_KEYS,
    WORDING,
    KeyRange,
    KeySplits,
    TableRange,
    frozen,
    ranges_of,
)
from eosingest.sources.postgres.snapshot import begin, exported, look


class TableSource(Source):
    """A table or a query as a source. Methods that query the server raise TemporaryError if none answers."""

    def __init__(self, table: Table, check: Callable[[], None]) -> None:
        """Connect to nothing yet. `check` raises to end a long walk."""
        self.wording = replace(WORDING, hides_keys=table.hide_keys)
        self._table = table
        self._name = table.table or NAME
        self.splits = KeySplits(self._name, hides_keys=table.hide_keys)
        self._check = check
        self._holder: Any = None  # the connection whose snapshot the items name

    # ---- the listing -----------------------------------------------------------------------------------------------

    def check_offline(self) -> None:
        """Raise SpecError for a URL that libpq does not accept, and for a missing package."""
        conninfo(self._table)

    def check(self) -> None:
        """Connect, look up the table or query, its key and columns, and prove the right to read it with a SELECT of no row."""
        with (
            explained(f"{self._name} could not be looked up", hides_keys=self._table.hide_keys),
            transaction(conninfo(self._table), READ_ONLY) as connection,
        ):
            look(connection, self._table)

    def plan(
        self, scope: Scope | None = None, recorded: Collection[Recorded] = (), purpose: Purpose = Purpose.RUN
    ) -> Snapshot:
        """Return the ranges of the scope, or cut the table; nothing if all of it was sent once, unless it is `incremental`.

        For an audit the recorded ranges, in a current snapshot. Raises ChangedError for another table of the same name, or
        other columns than an unfinished run has frozen.
        """
        # Rows may change, and each is sent as in the snapshot of the run that sends it: the version is the table's identity.
        snapshot = self._snapshot(scope, recorded, purpose)
        return of_known_versions(snapshot, self.splits, recorded, lambda item: {"table": item.split.identity})

    def _snapshot(self, scope: Scope | None, recorded: Collection[Recorded], purpose: Purpose) -> Snapshot:
        is_audit = purpose is Purpose.AUDIT
        sent = self.splits.recorded(recorded, done=not is_audit)
        with explained(f"{self._name} could not be listed", hides_keys=self._table.hide_keys):
            found = self._hold(behind_writers=self._table.incremental and scope is None and purpose is Purpose.RUN)
            self._refuse_other(found, [str(scope["table"])] if scope is not None else [one.identity for one in sent])
            if is_audit:
                return self._listing(found, sent)
            if scope is None and sent and not self._table.incremental:
                return replace(self._listing(found, []), notes=(_sent_once(self._name),))
            if scope is not None:
                _refuse_altered(found, scope)
            prove(self._holder, found)
            if scope is not None:
                return self._listing(found, ranges_of(self._name, scope), scope)
            return self._listing(found, self._cut(found, sent))

    def _cut(self, found: Found, sent: list[KeyRange]) -> list[KeyRange]:
        last = last_sent(found.relation, sent) if self._table.incremental else None
        ranges = cut(self._holder, found, self._name, self._table.split_rows, self._check, last)
        if not self._table.incremental:
            return ranges
        refuse_keys_ahead(self._holder, found.relation, last)
        return [replace(split, settled=True) for split in ranges]

    def _hold(self, *, behind_writers: bool = False) -> Found:
        """Begin the transaction whose snapshot the tasks read in, and look up the table or query in it."""
        if self._holder is not None:
            self._holder.close()
        self._holder = connect(conninfo(self._table))
        found = begin(self._holder, self._table, behind_writers=behind_writers)
        return replace(found, relation=replace(found.relation, hides_keys=self._table.hide_keys))

    def _listing(self, found: Found, splits: list[KeyRange], scope: Scope | None = None) -> Snapshot:
        if splits:
            snapshot = exported(self._holder)
            named = (TableRange(self.splits.shown(split), found.relation, snapshot) for split in splits)
            items = sorted(named, key=lambda item: item.name)
        else:
            items = []
            self._holder.close()  # no task will read: vacuum need not wait
        notes = (as_one_range(found),) if splits and not found.walkable else ()
        return Snapshot(tuple(items), notes=notes, scope=scope if scope is not None else frozen(found.relation, splits))

    def _refuse_other(self, found: Found, known: Iterable[str]) -> None:
        for identity in known:
            if identity != found.relation.identity:
                raise errors.another(found.relation, identity)

    def changed(self, items: Iterable[Item]) -> list[str]:
        """Return nothing: the table was locked, and each task has proven that it read in the snapshot."""
        return []


def as_one_range(found: Found) -> str:
    """Say that the table or query is not cut into ranges, and why."""
    relation = found.relation
    if relation.query is not None:
        return (
            f"the query cannot be computed in the order of {relation.key_names} without a sort: it is read as one range"
        )
    texts = any(key.type in TEXT_KEYS for key in relation.keys)
    order = ' (of texts: one with COLLATE "C")' if texts else ""
    return f"{relation.name} has no unique index on {relation.key_names}{order}: it is read as one range"


def _sent_once(name: str) -> str:
    """Say that the table or query was sent, and that rows written since then are not read."""
    return (
        f"{name} was sent as it was in an earlier run, and rows written since then are not read; --from-scratch sends all"
        " of it again, a new job with incremental = true would continue with new rows"
    )


def _refuse_altered(found: Found, scope: Scope) -> None:
    """Raise ChangedError if the columns or the key differ from the frozen ones."""
    relation = found.relation
    if scope["columns"] != relation.typed:
        raise errors.altered(relation, f"its columns are {relation.typed} now, and were {scope['columns']}")
    if scope["key"] != relation.keyed:
        raise errors.altered(relation, f"the key is {relation.keyed} now, and was {scope['key']}")


def source_of(table: Table, directory: Path, check: Callable[[], None]) -> TableSource:
    """Make the source of a spec's `[source]`; `check` raises to end a long wait."""
    return TableSource(table, check)
