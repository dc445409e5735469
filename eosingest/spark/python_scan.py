"""Sources whose splits are read in Python, as Arrow columns: what of them needs Spark, and what does not.

    records are bare columns ─▶ straight: the columns of a batch go to the producer from where they lie; no JVM has rows
    anything else ───────────▶ PythonRows: range(n) ─▶ mapInArrow(reader) ─▶ record_columns.py ─▶ mapInArrow(task)

A kind brings an `ArrowReader` and the types of its columns; `PythonScan` is its `scan.Scan`. One expression language for all
sources: Spark SQL. Which way a job's rows went is not to be seen in its records, positions and receipts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from eosingest.spark import narrow
from eosingest.spark.direct import deal
from eosingest.spark.failures import in_words
from eosingest.spark.record_columns import CHECKSUM, HEADER, METADATA, SPLIT, RecordSettings
from eosingest.spark.scan import Apart, Direct, SplitFrame
from eosingest.spark.worker import to_batch
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
    """How a kind's splits are read. Pickled into the tasks."""

    def read(self, split: PythonSplit, committed: OffsetRecord | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split as the kind's columns, from the first row on, in order, always the same.

        The end of the iterator says that the split has ended: whatever else ends the reading is raised, as by a
        `direct.DirectReader`. What is `committed`, where that is known, is read as well.
        """


@dataclass(frozen=True)
class PythonScan:
    """How a kind is read whose splits are read in Python; `columns` are their names and types, as Spark SQL has them."""

    records: RecordSettings
    reader: ArrowReader
    columns: Mapping[str, str]

    scan_nodes = SCAN_NODES

    @property
    def schema(self) -> str:
        """The columns as DDL."""
        return ",".join(f"{quote_name(name)} {kind}" for name, kind in self.columns.items())

    def spark_conf(self, split_size: int) -> Mapping[str, str]:
        """Nothing of Spark has to do with how rows are read."""
        return {}

    def direct(self, plan: Plan) -> Direct | None:
        """Where the records are bare columns, tasks send them as they are."""
        bare = bare_columns(self.records, self.columns)
        return (
            Direct(StraightReader(self.reader, bare), planned_splits(plan), self.schema) if bare is not None else None
        )

    def inspect(self, context: Any, plan: Plan, *, direct: bool, slots: int) -> None:
        """Nothing misreads the columns: they have types."""

    def refuse_outgrown(self, spark: SparkSession, plan: Plan, pinned: str) -> None:
        """The columns are the kind's own, and no schema is inferred."""

    def frame(self, spark: SparkSession, plan: Plan, schema: str | None, most_tasks: int) -> PythonRows:
        """Have the reader read in Spark's tasks; what is done is not read."""
        pending = {planned.id for planned in plan.pending}
        splits = [split for split in planned_splits(plan) if split.planned.id in pending]
        tasks = deal(splits, most_tasks)
        types = StructType([*cast(StructType, StructType.fromDDL(self.schema)), StructField(SPLIT, LongType())])
        function = _RowsOfTasks(self.reader, tasks, to_arrow_schema(types))
        rows = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(function, types)
        return PythonRows(rows, tuple(self.columns), self.schema, splits, len(tasks))

    def apart(
        self, spark: SparkSession, plan: Plan, slots: int, *, by_another_reader: bool
    ) -> tuple[Plan, Apart | None]:
        """There is one reader."""
        return plan, None

    def blamed(self, plan: Plan, text: str) -> str:
        """Name the items that are read: the reader's own errors name theirs."""
        return listed([entry.item.name for entry in plan.pending_items], 10)


def planned_splits(plan: Plan) -> list[PythonSplit]:
    """Return everything planned of what is pending, done splits too. Raises FatalError where two hashes are equal."""
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
    """The columns that records are: of key, value, and each header."""

    key: str | None
    value: str
    headers: Mapping[str, str]


def bare_columns(records: RecordSettings, columns: Mapping[str, str]) -> BareColumns | None:
    """Return the columns that a spec sends as they are, as bytes; None where it asks for anything else of any row."""
    if (records.where, records.timestamp, records.partition) != (None, None, None) or records.select != ("*",):
        return None
    names = {name.lower(): name for name, kind in columns.items() if kind in _BYTES}
    if len({name.lower() for name in columns}) < len(columns):
        return None  # which of two is meant Spark says

    def bare(expression: str) -> str | None:
        found = tokens(expression)
        return names.get(found[0].name) if len(found) == 1 else None

    key = bare(records.key) if records.key is not None else None
    value = bare(records.value)
    headers = {name: column for name, text in records.headers.items() if (column := bare(text)) is not None}
    if value is None or (records.key is not None and key is None) or headers.keys() != records.headers.keys():
        return None
    return BareColumns(key, value, headers)


@dataclass(frozen=True)
class StraightReader:
    """Sends columns as they are (`direct.DirectReader`), with the hashes that Spark would give their records."""

    reader: ArrowReader
    bare: BareColumns

    def read(self, split: PythonSplit, committed: OffsetRecord | None, longest: int) -> Iterator[Batch]:
        """Yield the rows of a split; see the protocol."""
        rows = 0
        for found in self.reader.read(split, committed):
            if len(found):
                yield replace(to_batch(self._records(split.key, found), tuple(self.bare.headers)), first_row=rows)
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
        if self.bare.headers:
            of_headers = [_as_bytes(found.column(name)) for name in self.bare.headers.values()]
            columns |= {f"{HEADER}{index}": column for index, column in enumerate(of_headers)}
            columns[METADATA] = _signed(self._metadata(hashes, of_headers))
        return pa.RecordBatch.from_pydict(columns)

    def _metadata(self, hashes: Iterable[int], columns: Iterable[Any]) -> Iterator[int]:
        values = zip(*(column.to_pylist() for column in columns), strict=True)
        for found, row in zip(hashes, values, strict=True):
            headers = list(zip(self.bare.headers, row, strict=True))
            yield checksum.metadata_hash(found, headers, None, has_timestamp=False)


def _as_bytes(column: pa.Array[Any]) -> pa.Array[Any]:
    """Return a column of texts or bytes as bytes, over the same memory."""
    if pa.types.is_string(column.type):
        return column.cast(pa.binary())
    return column.cast(pa.large_binary()) if pa.types.is_large_string(column.type) else column


def _signed(hashes: Iterable[int]) -> pa.Array[Any]:
    return pa.array(np.fromiter(hashes, np.uint64).view(np.int64))


# ---- through Spark SQL -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PythonRows:
    """Rows that Python reads in Spark's tasks (`scan.SplitFrame`): each of `tasks` partitions those of its splits."""

    rows: DataFrame
    visible: tuple[str, ...]
    schema: str
    splits: Sequence[PythonSplit]
    tasks: int

    split_last = False

    @property
    def split(self) -> Column:
        """The reader's function says it with each row."""
        return functions.col(SPLIT)

    def fitted(self, records: DataFrame) -> SplitFrame:
        """Spark executes any of these plans."""
        return self

    def verified(self, records: DataFrame) -> tuple[Mapping[int, PlannedSplit], int]:
        """Each number of the range is in the plan once, in a partition of its own: so each task, and so each split."""
        plan = records._jdf.queryExecution().executedPlan()
        found = [
            (node.start(), node.end(), node.step(), node.numSlices())
            for node in narrow.nodes_of(plan)
            if node.getClass().getSimpleName() == "RangeExec"
        ]
        readers = sum(node.getClass().getSimpleName() == "MapInArrowExec" for node in narrow.nodes_of(plan))
        if found != [(0, self.tasks, 1, self.tasks)] or readers != 1:
            raise FatalError(
                f"Spark would read the source by {found}, {readers}", code="split-met-twice", hint="nothing was sent"
            )
        return {split.key: split.planned for split in self.splits}, self.tasks


@dataclass(frozen=True)
class _RowsOfTasks:
    """The function for `mapInArrow` over the numbers of tasks. Pickled into the tasks."""

    reader: ArrowReader
    tasks: Sequence[tuple[PythonSplit, ...]]
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the splits of the tasks whose numbers come, each with the hash of its split."""
        for batch in batches:
            for number in batch.column(0).to_numpy():
                for split in self.tasks[number]:
                    yield from _told(self._of(split))

    def _of(self, split: PythonSplit) -> Iterator[pa.RecordBatch]:
        for found in self.reader.read(split, split.planned.committed):
            keys = pa.array(np.full(len(found), split.key, np.int64))
            columns = [*(found.column(name) for name in self.schema.names[:-1]), keys]
            typed = [column.cast(field.type) for column, field in zip(columns, self.schema, strict=True)]
            yield pa.RecordBatch.from_arrays(typed, schema=self.schema)


class ReaderError(Exception):
    """What a reader said in a worker of Spark, which has no other way to the driver than its text (failures.py)."""


def _told(read: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield what is read. Raises ReaderError for what a reader may raise."""
    try:
        yield from read
    except EosingestError as error:
        raise ReaderError(in_words(error)) from error
    except OSError as error:
        raise ReaderError(
            in_words(TemporaryError(f"the source could not be read: {error}", code="source-unreadable"))
        ) from error
