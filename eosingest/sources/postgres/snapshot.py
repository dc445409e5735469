"""Holds the driver's transaction: the snapshot that all tasks of a run read in, and locks on everything that is read.

For source.py, it takes the locks (ACCESS SHARE) first. TRUNCATE, which empties a table for earlier snapshots too, ALTER and
DROP wait for its end.
"""

from __future__ import annotations

from typing import Any

from eosingest.sources.postgres.catalogue import Found, find
from eosingest.sources.postgres.connection import (
    LOCKING,
    READ_ONLY,
    Table,
    conninfo,
    explained,
    settle,
    transaction,
)
from eosingest.sources.postgres.connection import begin as begin_transaction
from eosingest.sources.postgres.incremental import sequence_of
from eosingest.sources.postgres.query import backend_of, find_query, lock, locked
from eosingest.sources.postgres.ranges import ExportedSnapshot

WAIT_S = 10  # for transactions that write to the table; meanwhile other writers wait, too
_SNAPSHOT = """
select pg_export_snapshot(), pg_current_snapshot()::text,
       (select virtualtransaction from pg_locks where locktype = 'virtualxid' and pid = pg_backend_pid())
"""


def look(connection: Any, table: Table) -> Found:
    """Look up the table or query in an open transaction, and prove the right to read it with a SELECT of no row.

    Raises SpecError, FatalError, psycopg's errors.
    """
    settle(connection)
    if table.query is None:
        found = find(connection, str(table.table), table.key)
        connection.execute(f"select * from {found.relation.name} limit 0".encode())
        if table.incremental:
            sequence_of(connection, found.relation)
        return found
    lock(connection, table.query, hides_keys=table.hide_keys)
    held = locked(connection, backend_of(connection))
    return find_query(connection, table.query, table.key, held, hides_keys=table.hide_keys)


def begin(connection: Any, table: Table, *, behind_writers: bool) -> Found:
    """Begin the transaction: lock the relations, take the snapshot, and look up the table or query there. Raises as `look`.

    `behind_writers`: for a table, once no key can be committed any more that is below one in the snapshot.
    """
    if behind_writers:
        return _begin_behind_writers(connection, table)
    what = f"{table.table or 'what the query reads'} could not be locked in ACCESS SHARE MODE"
    with explained(what, hides_keys=table.hide_keys):
        if table.query is None:
            return _begin_table(connection, table)
        # The server finds a query's relations by planning it, which takes a snapshot: so another connection locks them first.
        with transaction(conninfo(table), LOCKING) as first:
            settle(first)
            lock(first, table.query, hides_keys=table.hide_keys)
            begin_transaction(connection, READ_ONLY)
            settle(connection)
            held = locked(connection, backend_of(first))
            return find_query(connection, table.query, table.key, held, hides_keys=table.hide_keys)


def _begin_table(connection: Any, table: Table) -> Found:
    begin_transaction(connection, READ_ONLY)
    connection.execute(f"LOCK TABLE {table.table} IN ACCESS SHARE MODE".encode())
    settle(connection)
    return find(connection, str(table.table), table.key)


def _begin_behind_writers(connection: Any, table: Table) -> Found:
    """Take the snapshot while every writer that has drawn a key has committed or aborted; afterwards others may write again.

    Raises TemporaryError if a transaction that writes to the table stays open.
    """
    with transaction(conninfo(table), LOCKING) as first:
        what = f"{table.table}: transactions that write to it were open for {WAIT_S} s, and may commit lower keys"
        with explained(what, hides_keys=table.hide_keys):
            first.execute(f"SET LOCAL lock_timeout = '{WAIT_S}s'".encode())
            first.execute(f"LOCK TABLE {table.table} IN SHARE MODE".encode())
        return _begin_table(connection, table)  # its first query takes the snapshot


def exported(connection: Any) -> ExportedSnapshot:
    """Export the snapshot of the transaction."""
    return ExportedSnapshot(*connection.execute(_SNAPSHOT).fetchone())
