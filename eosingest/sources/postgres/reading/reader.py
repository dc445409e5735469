"""Reads a range of a table in a task, by ADBC, as Arrow columns (`python_scan.ArrowReader`): in the snapshot of the run.

    lock ─▶ import the snapshot: its holder lives ─▶ prove to be in it ─▶ rows after the last key ─▶ prove it again

It begins after the committed key. Keys must ascend; else nothing of that batch is returned.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from eosingest.errors import FatalError
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.source import PositionKind
from eosingest.sources.postgres.connection import (
    INSTALL,
    LATER_STATES,
    READ_ONLY,
    SETTLE,
    one_line,
    opening,
    refuse_settings,
)
from eosingest.sources.postgres.keyset_sql import rows_query
from eosingest.sources.postgres.ranges import KEY_COLUMN, KeyValue, TableRange, as_range, key_of
from eosingest.spark.python_scan import PythonSplit

_BATCH_BYTES = {"adbc.postgresql.batch_size_hint_bytes": str(4 << 20)}
_LOCK_NOT_AVAILABLE, _NO_RIGHT = "55P03", "42501"
_CORRECT = "correct the row in the database, or source.query, and run again"
_LIVES = "select exists (select from pg_locks where locktype = 'virtualxid' and virtualtransaction"


@dataclass(frozen=True)
class RowsReader:
    """Reads the ranges of a table. `conninfo` holds the password: it is sent only in the task closure.

    `only` names the wanted columns, None for all: the server sends no others.
    """

    conninfo: str = field(repr=False)
    only: frozenset[str] | None = None

    def read(self, split: PythonSplit, committed: OffsetRecord | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a range after the committed ones; see `python_scan.ArrowReader`.

        Raises FatalError if the server refuses or keys do not ascend; OSError if it does not answer, or if the snapshot
        ended with the driver's connection.
        """
        item = as_range(split.item)
        last, again = _begin(committed)
        query = rows_query(item.relation, item.split, last, again=again, only=self.only)
        with _explained(item), contextlib.closing(_connect(self.conninfo)) as connection, connection.cursor() as cursor:
            _enter(cursor, item, query)
            cursor.adbc_statement.set_options(**_BATCH_BYTES)
            cursor.execute(query)
            for batch in cursor._results.reader:  # that of fetch_record_batch() has errors without their SQLSTATE
                if len(batch):
                    keys = _keys(item, batch)
                    refuse_disorder(item, keys, last, again=again)
                    last, again = tuple(str(key) for key in _at(keys, -1)), False
                    yield _with_positions(batch, keys)
            _prove(cursor, item)  # also that the stream did not end with the connection


def _begin(committed: OffsetRecord | None) -> tuple[KeyValue | None, bool]:
    """Return the last committed key, None for none, and whether its row must be read again."""
    if committed is None or committed.position_kind is PositionKind.ROWS:
        return None, False
    return key_of(committed.position), committed.row_records is not None


def _enter(cursor: Any, item: TableRange, query: str) -> None:
    """Enter the run's snapshot, and lock the relations while the snapshot's holder still has its locks."""
    for statement in opening(READ_ONLY):
        cursor.execute(statement)
    if item.relation.query is None:
        _lock(cursor, item, f"LOCK TABLE {item.relation.name} IN ACCESS SHARE MODE NOWAIT")
    try:
        cursor.execute(f"SET TRANSACTION SNAPSHOT '{item.snapshot.name}'")
    except _errors() as error:
        raise OSError(
            f"{item.split.label}: the snapshot of this run is gone: it ended with the driver's connection to PostgreSQL"
            f" ({one_line(error, hides_keys=item.relation.hides_keys)})"
        ) from None
    cursor.execute(SETTLE)
    settings = cursor.fetchall()
    if isinstance(settings[0][0], bytes):  # ADBC knows no types: it reads type names as it connects; they were quoted
        settings = [("quote_all_identifiers", "off", "on")]
    refuse_settings(settings)
    _prove(cursor, item)
    if item.relation.query is not None:
        cursor.execute("SET LOCAL lock_timeout = '1ms'")
        _lock(cursor, item, f"select * from (\n{query}\n) as q limit 0")  # only this finds the relations of a query
        cursor.execute(f"{_LIVES} = '{item.snapshot.holder}')")
        if cursor.fetchone() != (True,):
            raise OSError(f"{item.split.label}: the snapshot of this run ended while what the query reads was locked")


def _lock(cursor: Any, item: TableRange, statement: str) -> None:
    """Lock without waiting: after a waiter for the holder, which waits for us, it would be a deadlock unseen by the server."""
    try:
        cursor.execute(statement)
    except _errors() as error:
        if getattr(error, "sqlstate", None) == _LOCK_NOT_AVAILABLE:
            raise OSError(
                f"{item.split.label}: somebody waits to alter, truncate or drop {item.relation.said}, which this run has locked"
            ) from None
        raise


def _prove(cursor: Any, item: TableRange) -> None:
    """Raise OSError if the transaction is not in the run's snapshot."""
    cursor.execute("select pg_current_snapshot()::text, current_setting('transaction_isolation')")
    if (found := cursor.fetchone()) != (item.snapshot.seen, "repeatable read"):
        raise OSError(f"{item.split.label}: read in {found}, and not in the run's snapshot {item.snapshot.seen}")


def _keys(item: TableRange, batch: pa.RecordBatch) -> list[pa.Array[Any]]:
    """Return the columns of the key, with types that compare in the server's order."""
    columns = batch.columns[-len(item.relation.keys) :]
    return [
        column.cast(pa.int64() if key.is_whole else pa.string())
        for column, key in zip(columns, item.relation.keys, strict=True)
    ]


def _at(keys: Sequence[pa.Array[Any]], row: int) -> tuple[Any, ...]:
    return tuple(key[row].as_py() for key in keys)


def _with_positions(batch: pa.RecordBatch, keys: Sequence[pa.Array[Any]]) -> pa.RecordBatch:
    """Return the batch with its keys as positions: whole numbers as decimals, several columns as one (`KeyPositions`)."""
    parts = [key.cast(pa.decimal128(19, 0)) if pa.types.is_integer(key.type) else key for key in keys]
    position = parts[0] if len(parts) == 1 else pa.StructArray.from_arrays(parts, [f"c{n}" for n in range(len(parts))])
    names = batch.schema.names[: -len(keys)]
    return pa.RecordBatch.from_arrays([*batch.columns[: -len(keys)], position], [*names, KEY_COLUMN])


def refuse_disorder(item: TableRange, keys: Sequence[pa.Array[Any]], last: KeyValue | None, *, again: bool) -> None:
    """Raise FatalError if a key is not greater than the one before."""
    ascends = not any(key.null_count for key in keys) and _ascend(keys)
    if ascends and last is not None:
        first = _at(keys, 0)
        before = tuple(int(text) if key.is_whole else text for text, key in zip(last, item.relation.keys, strict=True))
        ascends = first > before or (again and first == before)
    if not ascends:
        raise FatalError(
            f"{item.split.label}: a key is not greater than the one before it: its index or its collation is damaged",
            code="source-key-order",
            hint="committed records are kept; check the table's index (amcheck, REINDEX) and run again",
            item=item.name,
        )


def _ascend(keys: Sequence[pa.Array[Any]]) -> bool:
    """Say whether each row's key is greater than the one before: in a column, if all columns before it are equal."""
    import pyarrow.compute as pc  # takes 0.1 s, which workers of other sources, whose daemon loads this module, save

    greater = pc.greater(keys[-1][1:], keys[-1][:-1])
    for key in reversed(keys[:-1]):
        above = pc.greater(key[1:], key[:-1])
        greater = pc.or_(above, pc.and_(pc.equal(key[1:], key[:-1]), greater))
    return pc.all(greater).as_py() in (True, None)


@contextlib.contextmanager
def _explained(item: TableRange) -> Iterator[None]:
    """Turn ADBC's errors into errors of the source, which name the range."""
    try:
        yield
    except pa.ArrowException as error:
        said = type(error).__name__ if item.relation.hides_keys else one_line(error)
        raise OSError(f"{item.split.label}: {said}") from None
    except _errors() as error:
        state, said = error.sqlstate, one_line(error, hides_keys=item.relation.hides_keys)
        if state is None or state[:2] in LATER_STATES:
            raise OSError(f"{item.split.label}: {said}") from None
        remedy = "the role needs SELECT on each relation" if state == _NO_RIGHT else _CORRECT
        raise FatalError(
            f"{item.split.label}: PostgreSQL refused: {said}",
            code="postgres-refused",
            hint=f"committed records are kept; {remedy}",
            item=item.name,
        ) from None


def _connect(conninfo: str) -> Any:
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError as error:
        raise FatalError(
            f'format = "postgres" needs {error.name}, which an executor has not', code="missing-extra", hint=INSTALL
        ) from error
    return dbapi.connect(conninfo)


def _errors() -> Any:
    import adbc_driver_manager

    return adbc_driver_manager.Error
