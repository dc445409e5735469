"""Reads a range of a table in a task, by ADBC, as Arrow columns (`python_scan.ArrowReader`): in the snapshot of the run.

    lock ─▶ import the snapshot: its holder lives ─▶ prove to be in it ─▶ rows behind the last key ─▶ prove it again

It begins behind the committed key. Keys must ascend: else nothing of that batch is given.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from eosingest.errors import FatalError
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.source import POSITION_KIND_ROWS
from eosingest.sources.postgres.connection import INSTALL, READ_ONLY, one_line
from eosingest.sources.postgres.ranges import KEY_COLUMN, WHOLE_KEYS, KeyValue, TableRange, as_range
from eosingest.sources.postgres.walk import rows_query
from eosingest.spark.python_scan import PythonSplit

_BATCH_BYTES = {"adbc.postgresql.batch_size_hint_bytes": str(4 << 20)}
_LOCK_NOT_AVAILABLE = "55P03"
# Classes of SQLSTATE: connection, resources, operator intervention, system, rollback. A retry may help.
_LATER = ("08", "53", "57", "58", "40")


@dataclass(frozen=True)
class RowsReader:
    """Reads the ranges of a table. `conninfo` holds the password: it travels in the task closure only."""

    conninfo: str = field(repr=False)

    def read(self, split: PythonSplit, committed: OffsetRecord | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a range behind those that are committed; see `python_scan.ArrowReader`.

        Raises FatalError where the server refuses or keys do not ascend; OSError where it does not answer, or where the
        snapshot is gone with the driver's connection.
        """
        item = as_range(split.item)
        last, again = _begin(committed)
        query = rows_query(item.relation, item.split, last, again=again)
        with _explained(item), contextlib.closing(_connect(self.conninfo)) as connection, connection.cursor() as cursor:
            _enter(cursor, item)
            cursor.adbc_statement.set_options(**_BATCH_BYTES)
            cursor.execute(query)
            for batch in cursor.fetch_record_batch():
                if len(batch):
                    keys = batch.column(KEY_COLUMN).cast(_kind(item))
                    _refuse_disorder(item, keys, last, again=again)
                    last, again = str(keys[-1].as_py()), False
                    yield _with_positions(batch, keys)
            _prove(cursor, item)  # also that the stream did not end with the connection


def _begin(committed: OffsetRecord | None) -> tuple[KeyValue | None, bool]:
    """Return the last key that is committed, None for none, and whether its row must come again."""
    if committed is None or committed.position_kind == POSITION_KIND_ROWS:
        return None, False
    return cast(KeyValue, committed.position), committed.row_records is not None


def _enter(cursor: Any, item: TableRange) -> None:
    """Enter the run's snapshot, with a lock on the table that was taken while the holder's was there."""
    cursor.execute(READ_ONLY)
    try:
        # Not behind who waits for the lock of the run's own connection, which waits for us: the server sees no deadlock there.
        cursor.execute(f"LOCK TABLE {item.relation.name} IN ACCESS SHARE MODE NOWAIT")
    except _errors() as error:
        if getattr(error, "sqlstate", None) == _LOCK_NOT_AVAILABLE:
            raise OSError(
                f"{item.split.label}: somebody waits to alter, truncate or drop {item.relation.name}, which this run has locked"
            ) from error
        raise
    try:
        cursor.execute(f"SET TRANSACTION SNAPSHOT '{item.snapshot.name}'")
    except _errors() as error:
        raise OSError(
            f"{item.split.label}: the snapshot of this run is gone: it ended with the driver's connection to PostgreSQL"
            f" ({one_line(error)})"
        ) from error
    _prove(cursor, item)


def _prove(cursor: Any, item: TableRange) -> None:
    """Raise OSError where the transaction does not see what the holder of the snapshot sees."""
    cursor.execute("select pg_current_snapshot()::text, current_setting('transaction_isolation')")
    if (found := cursor.fetchone()) != (item.snapshot.seen, "repeatable read"):
        raise OSError(f"{item.split.label}: read in {found}, and not in the run's snapshot {item.snapshot.seen}")


def _kind(item: TableRange) -> pa.DataType:
    """Return the type in which the range's keys compare as the server orders them."""
    return pa.int64() if item.relation.key_type in WHOLE_KEYS else pa.string()


def _with_positions(batch: pa.RecordBatch, keys: pa.Array[Any]) -> pa.RecordBatch:
    """Return the batch with its keys as positions: whole numbers as such (`spark.positions.KeyPositions`)."""
    if not pa.types.is_integer(keys.type):
        return batch
    return batch.set_column(batch.schema.get_field_index(KEY_COLUMN), KEY_COLUMN, keys.cast(pa.decimal128(19, 0)))


def _refuse_disorder(item: TableRange, keys: pa.Array[Any], last: KeyValue | None, *, again: bool) -> None:
    """Raise FatalError where a key is not greater than the one before."""
    ascends = keys.null_count == 0 and pc.all(pc.greater(keys[1:], keys[:-1])).as_py() in (True, None)
    if ascends and last is not None:
        compare = pc.greater_equal if again else pc.greater
        ascends = compare(keys[0], pa.scalar(last).cast(keys.type)).as_py()
    if not ascends:
        raise FatalError(
            f"{item.split.label}: a key is not greater than the one before it: its index or its collation is damaged",
            code="source-key-order",
            hint="what was committed is kept; check the table's index (amcheck, REINDEX) and run again",
            item=item.name,
        )


@contextlib.contextmanager
def _explained(item: TableRange) -> Iterator[None]:
    """Turn ADBC's errors into errors of the source."""
    try:
        yield
    except pa.ArrowException as error:
        raise OSError(f"{item.split.label}: {one_line(error)}") from error
    except _errors() as error:
        state = getattr(error, "sqlstate", None)
        if state is None or state[:2] in _LATER:
            raise OSError(f"{item.split.label}: {one_line(error)}") from error
        raise FatalError(
            f"{item.split.label}: PostgreSQL refused: {one_line(error)}",
            code="postgres-refused",
            hint="what was committed is kept; the role needs SELECT on the table",
            item=item.name,
        ) from error


def _connect(conninfo: str) -> Any:
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError as error:
        raise FatalError(
            f'format = "postgres" needs {error.name}, which an executor has not', code="missing-extra", hint=INSTALL
        ) from error
    return dbapi.connect(conninfo)


def _errors() -> type[Exception]:
    import adbc_driver_manager

    error: type[Exception] = adbc_driver_manager.Error
    return error
