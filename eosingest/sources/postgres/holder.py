"""The transaction of the driver whose snapshot all tasks of a run read in, behind locks on all that is read.

Between the connection and source.py: it takes the locks (ACCESS SHARE) first. TRUNCATE, which empties a table for earlier
snapshots too, ALTER and DROP wait for its end.
"""

from __future__ import annotations

from typing import Any

from eosingest.sources.postgres.catalogue import Found, find
from eosingest.sources.postgres.connection import LOCKING, READ_ONLY, Table, connect, conninfo, explained
from eosingest.sources.postgres.query import find_query, lock, locked
from eosingest.sources.postgres.ranges import Snapshot

_SNAPSHOT = """
select pg_export_snapshot(), pg_current_snapshot()::text,
       (select virtualtransaction from pg_locks where locktype = 'virtualxid' and pid = pg_backend_pid())
"""


def look(connection: Any, table: Table) -> Found:
    """Look up what is read, and ask for no row of it, which needs the right to read it. Raises SpecError, psycopg's errors."""
    if table.query is None:
        found = find(connection, str(table.table), table.key)
        connection.execute(f"select * from {found.relation.name} limit 0".encode())
        return found
    connection.execute(READ_ONLY)
    lock(connection, table.query)
    return find_query(connection, table.query, table.key, locked(connection, connection.info.backend_pid))


def begin(connection: Any, table: Table) -> Found:
    """Begin the transaction: lock what is read, take the snapshot, and look it up there. Raises as `look`."""
    with explained("what is read could not be locked in ACCESS SHARE MODE"):
        if table.query is None:
            connection.execute(READ_ONLY)
            connection.execute(f"LOCK TABLE {table.table} IN ACCESS SHARE MODE".encode())
            return find(connection, str(table.table), table.key)
        # What a query reads the server finds out by planning it, for which it takes a snapshot: so another one locks it first.
        with connect(conninfo(table)) as first:
            first.execute(LOCKING)
            lock(first, table.query)
            connection.execute(READ_ONLY)
            held = locked(connection, first.info.backend_pid)
            return find_query(connection, table.query, table.key, held)


def exported(connection: Any) -> Snapshot:
    """Export the snapshot of the transaction."""
    return Snapshot(*connection.execute(_SNAPSHOT).fetchone())
