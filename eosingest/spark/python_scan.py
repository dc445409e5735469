"""Reads splits in Python, as Arrow columns; uses Spark SQL only where the spec's expressions need it.

    records are bare columns ─▶ straight: the producer reads the columns of a batch in place; no JVM has rows
    anything else ───────────▶ PythonRows: range(n) ─▶ mapInArrow(reader) ─▶ record_columns.py ─▶ mapInArrow(task)

A kind provides an `ArrowReader` and the types of its columns; `PythonScan` is its `scan.Scan`. All sources have the same
expression language, Spark SQL. Both ways give the same records, positions and receipts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any, Protocol, cast

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, functions
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from eosingest.errors import EosingestError, FatalError, TemporaryError, listed
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.plan import Plan, PlannedSplit
from eosingest.protocol.source import Item
from eosingest.protocol.task_contract import Batch
from eosingest.records import checksum
from eosingest.records.encoding import Encoding
from eosingest.spark import plan_checks
from eosingest.spark.direct import deal
from eosingest.spark.failures import in_words
from eosingest.spark.record_columns import (
    CHECKSUM,
    HEADER,
    HEADERS,
    HEADERS_TYPE,
    METADATA,
    PARTITION,
    POSITION,
    SPLIT,
    TIMESTAMP,
    RecordSettings,
)
from eosingest.spark.scan import Direct, OtherRows, SplitFrame
from eosingest.spark.without_pandas import map_in_arrow
from eosingest.spark.worker import listed_headers, to_batch
from eosingest.spec.expressions import quote_name, tokens

SCAN_NODES = frozenset({"RangeExec", "MapInArrowExec"})
_BYTES = ("STRING", "BINARY")


@dataclass(frozen=True)
class PythonSplit:
    """A planned split and the item that it is cut from (`direct.DirectSplit`); `key` is its hash in the plan of the task."""

    key: int
    item: Item
    planned: PlannedSplit


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
    """The Scan of a kind whose splits are read in Python; `columns` maps their names to their Spark SQL types.

    `position` names the column with the position of each row (an offset of BIGINT, or a key of DECIMAL(19,0), STRING or a
    STRUCT of these, ascending in a split), None if rows are counted. `hidden` are columns of the reader, with their types, that
    expressions cannot name. `narrowed` returns a reader of only some columns; without it all columns are read.
    """

    records: RecordSettings
    reader: ArrowReader
    columns: Mapping[str, str]
    position: str | None = None
    hidden: Mapping[str, str] = field(default_factory=dict)
    narrowed: Callable[[frozenset[str]], ArrowReader] | None = None

    scan_nodes = SCAN_NODES

    @property
    def schema(self) -> str:
        """The columns as DDL."""
        return _ddl(self.columns)

    def spark_conf(self, split_size: int) -> Mapping[str, str]:
        """Return no settings: Spark does not read the source."""
        return {}

    def direct(self, plan: Plan) -> Direct | None:
        """Return how tasks read the splits if the records are bare columns, else None."""
        bare = bare_columns(self.records, self.columns)
        if bare is None:
            return None
        reader = self.narrowed(bare.names) if self.narrowed is not None else self.reader
        return Direct(StraightReader(reader, bare, self.position), planned_splits(plan), self.schema)

    def inspect(self, context: Any, plan: Plan, *, direct: bool, slots: int) -> None:
        """Do nothing: columns that have types cannot be misread."""

    def check_pinned_schema(self, spark: SparkSession, plan: Plan, pinned: str) -> None:
        """Do nothing: the columns are the kind's own, and no schema is inferred."""

    def frame(
        self, spark: SparkSession, plan: Plan, schema: str | None, most_tasks: int, *, resumed: bool = False
    ) -> PythonRows:
        """Return rows that the reader reads in Spark's tasks; done splits are not read."""
        pending = {planned.id for planned in plan.pending}
        splits = [split for split in planned_splits(plan) if split.planned.id in pending]
        tasks = deal(splits, most_tasks)
        read = StructType.fromDDL(_ddl({**self.columns, **self.hidden}))
        types = StructType([*cast(StructType, read), StructField(SPLIT, LongType())])
        function = _RowsOfTasks(self.reader, tasks, _arrow_schema(types), resumed and self.position is not None)
        rows = map_in_arrow(spark.range(0, len(tasks), 1, len(tasks)), function, types)
        return PythonRows(rows, tuple(self.columns), self.schema, splits, len(tasks), self.position)

    def for_audit(
        self, spark: SparkSession, plan: Plan, slots: int, *, by_another_reader: bool
    ) -> tuple[PythonScan, Plan, OtherRows | None]:
        """Return the whole plan for Spark, and no other rows: there is only one reader."""
        return self, plan, None

    def items_named_in(self, plan: Plan, text: str) -> str:
        """Name the pending items; the reader's own errors name theirs."""
        return listed([entry.item.name for entry in plan.pending_items], 10)

    def failure_of(self, plan: Plan, text: str) -> EosingestError | None:
        """Return None: readers in Python raise their errors themselves."""
        return None


def _arrow_schema(types: StructType) -> pa.Schema:
    """Return the schema in Arrow's types, with timestamps in UTC. pyspark 4.3 requires their zone, 4.0 does not."""
    convert: Any = to_arrow_schema
    schema: pa.Schema = convert(types, **({"timezone": "UTC"} if "timezone" in signature(convert).parameters else {}))
    return schema


def _ddl(columns: Mapping[str, str]) -> str:
    return ",".join(f"{quote_name(name)} {kind}" for name, kind in columns.items())


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


# ---- straight to the producer ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BareColumns:
    """The source columns that are the records' key, value, headers, timestamp and partition.

    `header_column` has all headers of a record.
    """

    key: str | None
    value: str
    headers: Mapping[str, str]
    timestamp: str | None = None
    partition: str | None = None
    header_column: str | None = None

    @property
    def names(self) -> frozenset[str]:
        """The columns that are sent."""
        named = (self.key, self.value, self.timestamp, self.partition, self.header_column, *self.headers.values())
        return frozenset(name for name in named if name is not None)


def bare_columns(records: RecordSettings, columns: Mapping[str, str]) -> BareColumns | None:
    """Return the columns that a spec sends unchanged as the parts of a record; None for any other spec."""
    if records.where is not None or records.select != ("*",):
        return None
    names = {name.lower(): name for name in columns}
    if len(names) < len(columns):
        return None  # names that differ in case only: Spark decides which is meant
    missing = list[str | Encoding]()

    def bare(expression: str | Encoding | None, kinds: Sequence[str]) -> str | None:
        if expression is None:
            return None
        found = [] if isinstance(expression, Encoding) else tokens(expression)
        name = names.get(found[0].name) if len(found) == 1 else None
        if name is None or columns[name] not in kinds:
            missing.append(expression)
        return name

    made = BareColumns(
        bare(records.key, _BYTES),
        bare(records.value, _BYTES) or "",
        {name: bare(text, _BYTES) or "" for name, text in records.headers.items()},
        bare(records.timestamp, ("TIMESTAMP",)),
        bare(records.partition, ("INT",)),
        bare(records.header_column, (HEADERS_TYPE,)),
    )
    return None if missing else made


@dataclass(frozen=True)
class StraightReader:
    """Yields bare columns as record columns (`direct.DirectReader`), with the same record hashes as Spark's.

    `position` as in `PythonScan`.
    """

    reader: ArrowReader
    bare: BareColumns
    position: str | None = None

    def read(self, split: PythonSplit, committed: OffsetRecord | None, longest: int) -> Iterator[Batch]:
        """Yield the rows of a split; see `direct.DirectReader`."""
        rows = 0
        for found in self.reader.read(split, committed):
            if len(found):
                made = to_batch(self._records(split.key, found), tuple(self.bare.headers), several=False)
                yield replace(made, first_row=rows)
                rows += len(found)

    def _records(self, key: int, found: pa.RecordBatch) -> pa.RecordBatch:
        """Return the record columns (record_columns.py) of a batch."""
        values = _as_bytes(found.column(self.bare.value))
        columns = {"value": values, SPLIT: pa.array(np.full(len(found), key, np.int64))}
        keys: Sequence[bytes | None] = [None] * len(found)
        if self.bare.key is not None:
            columns["key"] = _as_bytes(found.column(self.bare.key))
            keys = columns["key"].to_pylist()
        hashes = checksum.record_hashes(zip(keys, values.to_pylist(), strict=True))
        columns[CHECKSUM] = _signed(hashes)
        if self.position is not None:
            columns[POSITION] = found.column(self.position)
        if self.bare.partition is not None:
            columns[PARTITION] = found.column(self.bare.partition)
        metadata = self._metadata_columns(found)
        if metadata:
            columns |= metadata
            columns[METADATA] = _signed(self._metadata(hashes, metadata))
        return pa.RecordBatch.from_pydict(columns)

    def _metadata_columns(self, found: pa.RecordBatch) -> dict[str, pa.Array[Any]]:
        """Return the record columns of headers and timestamp; none where the records have neither."""
        bare = self.bare
        columns = {
            f"{HEADER}{index}": _as_bytes(found.column(name)) for index, name in enumerate(bare.headers.values())
        }
        if bare.header_column is not None:
            columns[HEADERS] = found.column(bare.header_column)
        if bare.timestamp is not None:
            columns[TIMESTAMP] = _milliseconds(found.column(bare.timestamp))
        return columns

    def _metadata(self, hashes: Sequence[int], columns: Mapping[str, pa.Array[Any]]) -> Iterator[int]:
        """Yield the metadata hash of each row, as Spark computes it (record_columns.py)."""
        named = [columns[f"{HEADER}{index}"].to_pylist() for index, _ in enumerate(self.bare.headers)]
        rows = zip(*named, strict=True) if named else itertools.repeat((), len(hashes))
        listed = listed_headers(columns[HEADERS]) if HEADERS in columns else None
        has_timestamp = TIMESTAMP in columns
        times = columns[TIMESTAMP].to_pylist() if has_timestamp else itertools.repeat(None, len(hashes))
        more = listed if listed is not None else itertools.repeat((), len(hashes))
        for found, row, others, time in zip(hashes, rows, more, times, strict=True):
            headers = [*zip(self.bare.headers, row, strict=True), *others]
            yield checksum.metadata_hash(found, headers, time, has_timestamp=has_timestamp)


def _as_bytes(column: pa.Array[Any]) -> pa.Array[Any]:
    """Return a string or binary column as binary, without a copy."""
    if pa.types.is_string(column.type):
        return column.cast(pa.binary())
    return column.cast(pa.large_binary()) if pa.types.is_large_string(column.type) else column


def _milliseconds(column: pa.Array[Any]) -> pa.Array[Any]:
    """Return a column of timestamps as milliseconds since 1970, rounded down as Spark's unix_millis does."""
    if column.type.unit == "ms":
        return column.cast(pa.int64())
    units = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    given = units.is_valid().to_numpy(zero_copy_only=False)
    rounded: pa.Array[Any] = pa.array(units.fill_null(0).to_numpy() // 1000, mask=~given)
    return rounded


def _signed(hashes: Iterable[int]) -> pa.Array[Any]:
    return pa.array(np.fromiter(hashes, np.uint64).view(np.int64))


# ---- through Spark SQL -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PythonRows:
    """Rows that Python reads in Spark's tasks (`scan.SplitFrame`): each of the `tasks` partitions has its own splits."""

    rows: DataFrame
    visible: tuple[str, ...]
    schema: str
    splits: Sequence[PythonSplit]
    tasks: int
    position_column: str | None = None

    split_last = False
    check_items = check_all = None  # the reader proves what it reads

    @property
    def split(self) -> Column:
        """The column in which the reader's function gives each row's split."""
        return functions.col(SPLIT)

    @property
    def position(self) -> Column | None:
        """The column with each row's position, None if the kind has none."""
        return functions.col(quote_name(self.position_column)) if self.position_column is not None else None

    def fitted(self, records: DataFrame) -> SplitFrame:
        """Return this frame: Spark can execute any plan over it."""
        return self

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

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the splits of these tasks, each row with the hash of its split."""
        for batch in batches:
            for number in batch.column(0).to_numpy():
                for split in self.tasks[number]:
                    yield from _told(self._of(split))

    def _of(self, split: PythonSplit) -> Iterator[pa.RecordBatch]:
        for found in self.reader.read(split, split.planned.committed if self.resumed else None):
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
