"""Reads splits in Python, as Arrow columns; uses Spark SQL only where the spec's expressions need it.

    records are bare columns ─▶ straight: the producer reads the columns of a batch in place; no JVM has rows
    anything else ───────────▶ PythonRows: range(n) ─▶ mapInArrow(reader) ─▶ record_columns.py ─▶ mapInArrow(task)

A kind provides an `ArrowReader` and the types of its columns (`scan.Scan.of`). All sources have the same expression language,
Spark SQL. Both ways give the same records, positions and receipts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any, Protocol, cast

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, functions
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from eosingest.errors import EosingestError, FatalError, TemporaryError
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.plan import Plan, PlannedSplit
from eosingest.protocol.source import Item
from eosingest.records import checksum
from eosingest.spark import plan_checks, volatile_casts
from eosingest.spark.bare_columns import StraightReader, bare_columns
from eosingest.spark.corrupt_rows import Why, why_of
from eosingest.spark.direct import Direct, deal
from eosingest.spark.failures import in_words
from eosingest.spark.record_settings import ITEM_COLUMN, SPLIT, RecordSettings
from eosingest.spark.without_pandas import map_in_arrow
from eosingest.spec.expressions import quote_name

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  # a name that Spark's own DDL does not quote


@dataclass(frozen=True)
class PythonSplit:
    """A planned split and the item that it is cut from (`direct.DirectSplit`); `key` is its hash in the plan of the task."""

    key: int
    item: Item
    planned: PlannedSplit


@dataclass(frozen=True)
class ItemColumn:
    """A column ITEM_COLUMN that expressions may name, with one value for all rows of an item. Pickled and sent to the tasks."""

    type: str
    value_of: Callable[[Item], Any]


class ArrowReader(Protocol):
    """Reads the splits of a kind of source, as Arrow batches. Pickled and sent to the tasks."""

    def read(self, split: PythonSplit, committed: OffsetRecord | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split as the kind's columns, from its first row, the same in the same order at every call.

        The iterator ends only at the end of the split; raises what `direct.DirectReader.read` raises. Rows that are
        `committed` (None also where that is not known) are read too, unless the kind has positions (`PythonScan.position`):
        then the rows begin after the committed position or, if `row_records` is not None, with the source row at it.
        """


@dataclass(frozen=True)
class PythonScan:
    """The columns of a plan's rows, by name with their Spark SQL types, and the `reader` of its splits.

    `position` names the column with the position of each row (an offset of BIGINT, or a key of DECIMAL(19,0), STRING or a
    STRUCT of these, ascending in a split), None if rows are counted. `hidden` are columns of the reader, with their types, that
    expressions cannot name. `narrowed` returns a reader of only some columns; without it all columns are read. `item_column` is
    the column ITEM_COLUMN, None if the kind has none.
    """

    records: RecordSettings
    reader: ArrowReader
    columns: Mapping[str, str]
    position: str | None = None
    hidden: Mapping[str, str] = field(default_factory=dict)
    narrowed: Callable[[frozenset[str]], ArrowReader] | None = None
    item_column: ItemColumn | None = None

    @property
    def schema(self) -> str:
        """The columns as DDL."""
        return _ddl(self.columns)

    def direct(self, plan: Plan) -> Direct | None:
        """Return how tasks read the splits if the records are bare columns, else None."""
        bare = bare_columns(self.records, self.columns)
        if bare is None:
            return None
        reader = self.narrowed(bare.names) if self.narrowed is not None else self.reader
        return Direct(StraightReader(reader, bare, self.position), planned_splits(plan), self.schema)

    def frame(self, spark: SparkSession, plan: Plan, most_tasks: int, *, resumed: bool = False) -> PythonRows:
        """Return the rows of the pending splits, which the reader reads in at most `most_tasks` tasks of Spark.

        `resumed`: where rows have positions, those that are committed are left out; else each split is read from its first
        row on. With `narrowed`, the columns that the records do not use are not read (`PythonRows.fitted`).
        """
        pending = {planned.id for planned in plan.pending}
        splits = [split for split in planned_splits(plan) if split.planned.id in pending]
        tasks = deal(splits, most_tasks)
        is_hidden = not self.records.names_item_column or ITEM_COLUMN in map(str.lower, self.columns)
        item_column = None if is_hidden else self.item_column
        more = {**self.hidden, **({ITEM_COLUMN: item_column.type} if item_column is not None else {})}

        def rows_of(reader: ArrowReader, columns: Mapping[str, str]) -> DataFrame:
            read = cast(StructType, StructType.fromDDL(_ddl({**columns, **more})))
            types = StructType([*read, StructField(SPLIT, LongType())])
            function = _RowsOfTasks(
                reader, tasks, arrow_schema(types), resumed and self.position is not None, item_column
            )
            return map_in_arrow(spark.range(0, len(tasks), 1, len(tasks)), function, types)

        def narrow(used: frozenset[str]) -> tuple[DataFrame, ArrowReader]:
            assert self.narrowed is not None
            reader = self.narrowed(used)
            rows = rows_of(reader, {name: kind for name, kind in self.columns.items() if name in used})
            return _with_nulls(rows, {name: kind for name, kind in self.columns.items() if name not in used}), reader

        rows = rows_of(self.reader, self.columns)
        narrowed, why = narrow if self.narrowed is not None else None, why_of(self.reader)
        return PythonRows(rows, tuple(self.columns), self.schema, splits, len(tasks), self.position, narrowed, why)


def arrow_schema(types: StructType) -> pa.Schema:
    """Return the schema in Arrow's types, with timestamps in UTC. pyspark 4.3 requires their zone, 4.0 does not."""
    convert: Any = to_arrow_schema
    schema: pa.Schema = convert(types, **({"timezone": "UTC"} if "timezone" in signature(convert).parameters else {}))
    return schema


def _with_nulls(rows: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """Return the rows with columns of nulls: all in one expression, since each takes a call into the JVM."""
    struct = ", ".join(f"{quote_name(name)}: {kind}" for name, kind in columns.items())
    nulls = functions.expr(f"CAST(NULL AS STRUCT<{struct}>)").alias(volatile_casts.NULLS)
    return rows.select("*", nulls).select(
        functions.expr(f"* EXCEPT ({volatile_casts.NULLS})"), functions.expr(f"{volatile_casts.NULLS}.*")
    )


def _ddl(columns: Mapping[str, str]) -> str:
    return ",".join(f"{name_in_ddl(name)} {kind}" for name, kind in columns.items())


def name_in_ddl(name: str) -> str:
    """Return the name of a column or a field as DDL has it: in back-quotes only if it needs them."""
    return name if _PLAIN.fullmatch(name) else quote_name(name)


def planned_splits(plan: Plan) -> list[PythonSplit]:
    """Return all splits, done ones too, of the pending items. Raises FatalError if two have the same hash."""
    found: dict[int, PythonSplit] = {}
    for entry in plan.pending_items:
        for planned in (*entry.pending, *entry.skipped):
            key = checksum.signed_hash((planned.id.encode(),))
            if key in found:
                raise FatalError(f"the hashes of two splits are equal ({planned.label})", code="hash-collision")
            found[key] = PythonSplit(key, entry.item, planned)
    return list(found.values())


# ---- through Spark SQL -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PythonRows:
    """Rows that Python reads in Spark's tasks: each of the `tasks` partitions has its own splits.

    `narrow` returns the same rows with values in only some columns, null in the others, and their reader.
    """

    rows: DataFrame
    visible: tuple[str, ...]
    schema: str
    splits: Sequence[PythonSplit]
    tasks: int
    position_column: str | None = None
    narrow: Callable[[frozenset[str]], tuple[DataFrame, ArrowReader]] | None = None
    why: Why | None = None

    @property
    def split(self) -> Column:
        """The column in which the reader's function gives each row's split."""
        return functions.col(SPLIT)

    @property
    def position(self) -> Column | None:
        """The column with each row's position, None if the kind has none."""
        return functions.col(quote_name(self.position_column)) if self.position_column is not None else None

    def fitted(self, records: DataFrame) -> PythonRows:
        """Return these rows, or those that have only the columns that the records use."""
        if self.narrow is None:
            return self
        used = plan_checks.referenced(records, self.rows) & set(self.visible)
        if len(used) == len(self.visible):
            return self
        rows, reader = self.narrow(frozenset(used))
        return replace(self, rows=rows, narrow=None, why=why_of(reader))

    def verified(self, records: DataFrame) -> tuple[Mapping[int, PlannedSplit], int]:
        """Check that the plan has each number of the range once, in a separate partition: each split is read once."""
        plan = records._jdf.queryExecution().executedPlan()
        found = [
            (node.start(), node.end(), node.step(), node.numSlices())
            for node in plan_checks.nodes_of(plan)
            if node.getClass().getSimpleName() == "RangeExec"
        ]
        readers = sum(node.getClass().getSimpleName() == "MapInArrowExec" for node in plan_checks.nodes_of(plan))
        if found != [(0, self.tasks, 1, self.tasks)] or readers != 1:
            raise FatalError(
                f"Spark would read the source by {found}, {readers}", code="split-met-twice", hint="nothing was sent"
            )
        return {split.key: split.planned for split in self.splits}, self.tasks


@dataclass(frozen=True)
class _RowsOfTasks:
    """The function for `mapInArrow` over the numbers of tasks. Pickled and sent to the tasks.

    `resumed`: splits begin after the rows that were committed when they were planned. Rows committed later are read again.
    """

    reader: ArrowReader
    tasks: Sequence[tuple[PythonSplit, ...]]
    schema: pa.Schema
    resumed: bool
    item_column: ItemColumn | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the splits of these tasks, each row with the hash of its split."""
        for batch in batches:
            for number in batch.column(0).to_numpy():
                for split in self.tasks[number]:
                    yield from _told(self._of(split))

    def _of(self, split: PythonSplit) -> Iterator[pa.RecordBatch]:
        for found in self.reader.read(split, split.planned.committed if self.resumed else None):
            if self.item_column is not None:
                value = pa.scalar(self.item_column.value_of(split.item), self.schema.field(ITEM_COLUMN).type)
                found = found.append_column(ITEM_COLUMN, pa.repeat(value, len(found)))
            keys = pa.array(np.full(len(found), split.key, np.int64))
            columns = [*(found.column(name) for name in self.schema.names[:-1]), keys]
            typed = [column.cast(field.type) for column, field in zip(columns, self.schema, strict=True)]
            yield pa.RecordBatch.from_arrays(typed, schema=self.schema)


class ReaderError(Exception):
    """A reader's error in a Spark worker. Only its text reaches the driver, which recreates the error from it (failures.py)."""


def _told(read: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a reader; its errors are raised as ReaderError."""
    try:
        yield from read
    except EosingestError as error:
        raise ReaderError(in_words(error)) from error
    except OSError as error:
        raise ReaderError(
            in_words(TemporaryError(f"the source could not be read: {error}", code="source-unreadable"))
        ) from error
