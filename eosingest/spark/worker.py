"""Runs task.py inside Spark's Python workers. Input: Arrow batches, or splits to read; output: the task's outcome.

Everything that a task needs, secrets included, is in the pickled function objects and nowhere else.
"""

from __future__ import annotations

import functools
import itertools
import json
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import Accumulator, AccumulatorParam, TaskContext

from eosingest.errors import FatalError
from eosingest.kafka.columns import BinaryColumn
from eosingest.kafka.offsets_reader import LibrdkafkaOffsetsReader
from eosingest.kafka.ports import (
    ANY_PARTITION,
    LARGEST_RECORD_BYTES,
    NO_PARTITION,
    OffsetsReader,
    Producer,
    Records,
)
from eosingest.kafka.producer import LibrdkafkaProducer, ProducerSettings
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.plan import PlannedSplit
from eosingest.protocol.task import Task
from eosingest.protocol.task_contract import Batch, Inputs, Signal, TaskSettings
from eosingest.protocol.transactional_ids import task_id
from eosingest.records.json_schema import JsonSchemaCheck, checks_of
from eosingest.spark.corrupt_rows import Why, explained
from eosingest.spark.direct import Confirm, DirectInputs, DirectReader, DirectSplit, is_constant
from eosingest.spark.end_marker import until_end
from eosingest.spark.positions import positions_of
from eosingest.spark.read_ahead import ReadAhead
from eosingest.spark.record_settings import (
    CHECKSUM,
    CORRUPT,
    HEADER,
    HEADERS,
    METADATA,
    PARTITION,
    POSITION,
    SPLIT,
    TIMESTAMP,
    UNFIT,
)

OUTPUT_SCHEMA = "outcome string"
_HEADER_OVERHEAD = 10  # bytes: the two lengths of a header, as varints of at most five each


class Outcomes(AccumulatorParam[list[str]]):
    """Collects the outcomes of tasks as JSON. It has those of successful tasks only, also when the job fails."""

    def zero(self, value: list[str]) -> list[str]:
        """Return the empty list."""
        return []

    def addInPlace(self, value1: list[str], value2: list[str]) -> list[str]:  # noqa: N802 - pyspark's name
        """Concatenate the two lists."""
        value1.extend(value2)
        return value1


@dataclass(frozen=True)
class WorkerKafka:
    """Makes a task's clients (`task_contract.TaskKafka`)."""

    settings: TaskSettings
    producer_settings: ProducerSettings
    prefix: str

    def producer(self, task: int) -> Producer:
        """Make the transactional producer of a task."""
        return LibrdkafkaProducer(task_id(self.prefix, self.settings.job, task), self.producer_settings)

    def reader(self) -> OffsetsReader:
        """Make a reader of the job's partition of the offsets topic."""
        return LibrdkafkaOffsetsReader(
            self.settings.offsets_topic, self.settings.offsets_partition, self.producer_settings.client
        )


@dataclass(frozen=True)
class TaskFunction:
    """The function for `mapInArrow`: one call is one attempt of a task. `headers` are the names of the header columns.

    `several`: a source row may give several records, which then share its position. `json_schemas` has the JSON Schemas of
    `key` and `value`, as far as they have one. `why`: see `explained`. `confirm`: see `task_contract.Inputs`.
    """

    kafka: WorkerKafka
    headers: tuple[str, ...]
    outcomes: Accumulator[list[str]]
    several: bool = True
    json_schemas: Mapping[str, str] = field(default_factory=dict)
    why: Why | None = None
    confirm: Confirm = is_constant

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the task and yield one row, its outcome. Raises AttemptLostError, upon which Spark retries the task."""
        settings = self.kafka.settings
        fitting = JsonFit(self.json_schemas) if self.json_schemas else None
        inputs = ArrowInputs(
            batches,
            self.headers,
            several=self.several,
            fitting=fitting,
            whole=settings.whole,
            why=self.why,
            confirm=self.confirm,
        )
        yield pa.RecordBatch.from_pydict({"outcome": [_run_task(self.kafka, inputs, self.outcomes)]})


@dataclass(frozen=True)
class DirectTaskFunction:
    """The function for `mapPartitions` over tasks that read their splits themselves; otherwise as TaskFunction.

    A task receives only its own splits: the plan of 100,000 files takes some 50 MB.
    """

    kafka: WorkerKafka
    reader: DirectReader
    outcomes: Accumulator[list[str]]
    confirm: Confirm = is_constant

    def __call__(self, tasks: Iterable[tuple[DirectSplit, ...]]) -> Iterator[str]:
        """Run the task and yield its outcome. Raises AttemptLostError, upon which Spark retries the task."""
        (splits,) = tasks
        settings = replace(self.kafka.settings, splits={split.key: split.planned for split in splits})
        # A row that may become a dead letter is read further, up to the largest size of a record.
        longest = settings.limits.max_message_bytes if settings.dead_letters is None else LARGEST_RECORD_BYTES
        inputs = DirectInputs(self.reader, splits, longest, whole=settings.whole, confirm=self.confirm)
        yield _run_task(replace(self.kafka, settings=settings), inputs, self.outcomes)


def _run_task(kafka: WorkerKafka, inputs: Inputs, outcomes: Accumulator[list[str]]) -> str:
    """Run this attempt of the current Spark task; return its outcome as JSON."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver handles a terminal's Ctrl-C
        context = TaskContext.get()
        assert context is not None, "runs in a Spark task only"
        task = Task(
            kafka.settings,
            context.partitionId(),
            kafka,
            attempt=context.taskAttemptId(),
            attempt_number=context.attemptNumber(),
            now=time.monotonic,
            now_ms=lambda: int(time.time() * 1000),
        )
        outcome = json.dumps(task.run(inputs).to_json())
    finally:
        inputs.stop()
    outcomes.add([outcome])
    return outcome


class ArrowInputs:
    """The input of a task whose rows Spark computes (`task_contract.Inputs`).

    Each split begins with its first row or, where rows have positions, at the position that the plan found committed.
    """

    def __init__(
        self,
        batches: Iterable[pa.RecordBatch],
        headers: tuple[str, ...],
        *,
        several: bool = True,
        fitting: JsonFit | None = None,
        whole: bool = False,
        why: Why | None = None,
        confirm: Confirm = is_constant,
    ) -> None:
        """Start reading at once: Spark computes rows while the producer is being made. `several`, `why` as in TaskFunction.

        `whole`: the batches end with the end row.
        """
        self.confirm = confirm
        self._fitting = fitting
        self._why = why
        self._headers = headers
        self._several = several
        self._ahead: ReadAhead[pa.RecordBatch | Signal] = ReadAhead(until_end(batches) if whole else batches)

    def begin(self, committed: Callable[[PlannedSplit], OffsetRecord | None]) -> None:
        """Do nothing: reading has started already."""

    def get(self, timeout_s: float) -> Batch | Signal:
        """Return the next batch; see `task_contract.Inputs`."""
        item = self._ahead.get(timeout_s)
        if isinstance(item, Signal):
            return item
        batch = explained(to_batch(item, self._headers, several=self._several), self._why)
        return batch if self._fitting is None else self._fitting(batch)

    def stop(self) -> None:
        """Stop the thread; wait until it has ended, even for a batch of the JVM: pyspark then reads from the same stream."""
        self._ahead.stop()


class JsonFit:
    """Finds the rows of a batch whose key or value does not conform to its JSON Schema in `schemas`."""

    def __init__(self, schemas: Mapping[str, str]) -> None:
        """Load nothing yet: an error in loading is then the task's error."""
        self._schemas = schemas

    def __call__(self, batch: Batch) -> Batch:
        """Return the batch with the reason for each unfit row. Raises FatalError without the extra."""
        reasons = batch.unfit or [None] * len(batch.splits)
        for name, column in (("key", batch.records.keys), ("value", batch.records.values)):
            if (check := self._checks.get(name)) is not None:
                found = map(check.why_not, column)
                reasons = [known or reason for known, reason in zip(reasons, found, strict=True)]
        return replace(batch, unfit=reasons if any(reasons) else None)

    @functools.cached_property
    def _checks(self) -> dict[str, JsonSchemaCheck]:
        try:
            return checks_of(self._schemas)
        except ImportError as error:
            raise FatalError(
                f"json_schema needs the Python package {error.name}, which an executor does not have",
                code="missing-extra",
                hint="install it there: pip install 'eosingest[json-schema]'",
            ) from error


def to_batch(batch: pa.RecordBatch, headers: tuple[str, ...], *, several: bool = True) -> Batch:
    """Make a Batch from an Arrow batch of record columns. Columns of nulls may be missing (`record_columns.null_columns`)."""
    names = batch.schema.names
    key = binary_column(batch.column("key")) if "key" in names else BinaryColumn.nulls(len(batch))
    value = binary_column(batch.column("value"))
    corrupt, unfit = (_given(batch.column(name)) if name in names else None for name in (CORRUPT, UNFIT))
    header_columns = [batch.column(f"{HEADER}{index}") for index in range(len(headers))]
    timestamps = batch.column(TIMESTAMP).to_pylist() if TIMESTAMP in names else None
    sizes = key.lengths + value.lengths
    for name, column in zip(headers, header_columns, strict=True):
        sizes = sizes + binary_column(column).lengths + len(name.encode()) + _HEADER_OVERHEAD
    header_rows = _header_rows(headers, header_columns)
    if HEADERS in names:
        header_rows = listed_headers(batch.column(HEADERS))
        sizes = sizes + _sizes_of(header_rows, len(batch))
        unfit = _first_of(unfit, _without_names(header_rows))
    return Batch(
        splits=batch.column(SPLIT).to_numpy(zero_copy_only=False),
        records=Records(
            key,
            value,
            timestamps,
            header_rows,
            _partitions(batch.column(PARTITION)) if PARTITION in names else None,
        ),
        hashes=batch.column(CHECKSUM).to_numpy(zero_copy_only=False),
        sizes=sizes,
        corrupt=corrupt,
        positions=positions_of(batch.column(POSITION), shared=several) if POSITION in names else None,
        metadata=_numbers(batch, METADATA) if METADATA in names else None,
        unfit=unfit,
    )


def _numbers(batch: pa.RecordBatch, name: str) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = batch.column(name).to_numpy(zero_copy_only=False)
    return numbers


def binary_column(column: pa.Array[Any]) -> BinaryColumn:
    """Return the addresses of the values of an Arrow column of type binary or large_binary; nothing is copied."""
    wide = pa.types.is_large_binary(column.type)
    if not wide and not pa.types.is_binary(column.type):
        raise TypeError(f"a column of bytes is needed, not of {column.type}")
    if not len(column):
        return BinaryColumn(column, np.zeros(0, np.uint64), np.zeros(0, np.int64))
    _, offsets, data = column.buffers()
    assert offsets is not None, "a column with values has offsets"
    numbers: npt.NDArray[Any] = np.frombuffer(memoryview(offsets), "<i8" if wide else "<i4")
    valid = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
    return BinaryColumn.of(
        column,
        # If every value is empty there may be no data buffer: any address distinguishes an empty value from a null.
        data=(data or offsets).address,
        offsets=numbers[column.offset : column.offset + len(column) + 1],
        valid=valid,
    )


def _given(column: pa.Array[Any]) -> list[Any] | None:
    """Return the values of a column, most of which are null; None if all are."""
    return None if column.null_count == len(column) else column.to_pylist()


def _partitions(column: Any) -> npt.NDArray[np.int32]:
    """Return the partitions as `Records` has them. Null leaves the choice to the partitioner; a negative number is an error."""
    numbers: npt.NDArray[np.int32] = column.fill_null(0).to_numpy(zero_copy_only=False)
    given = column.is_valid().to_numpy(zero_copy_only=False)
    return np.where(given, np.where(numbers < 0, NO_PARTITION, numbers), ANY_PARTITION).astype(np.int32)


def listed_headers(column: Any) -> list[list[tuple[str, bytes | None]]] | None:
    """Return each row's headers, in their order, from the column of all headers; None if no row has any."""
    each = column.flatten()
    if not len(each):
        return None
    names, values = each.flatten()
    pairs = list(zip(names.to_pylist(), values.to_pylist(), strict=True))
    ends = np.cumsum(column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)).tolist()
    return [pairs[start:end] for start, end in itertools.pairwise([0, *ends])]


def _sizes_of(headers: list[list[tuple[str, bytes | None]]] | None, count: int) -> npt.NDArray[np.int64]:
    if headers is None:
        return np.zeros(count, np.int64)
    each = (sum(_HEADER_OVERHEAD + len((n or "").encode()) + len(value or b"") for n, value in row) for row in headers)
    return np.fromiter(each, np.int64, count)


def _without_names(headers: list[list[tuple[str, bytes | None]]] | None) -> list[str | None] | None:
    """Return a text for each row that has a header whose name is null or has a NUL, which would end it; None if none has."""
    found = [next(filter(None, (_why_no_name(name) for name, _ in row)), None) for row in headers or ()]
    return found if any(found) else None


def _why_no_name(name: str | None) -> str | None:
    if name is None:
        return "a header has no name"
    return "a header's name has the character NUL" if "\0" in name else None


def _first_of(texts: list[str | None] | None, others: list[str | None] | None) -> list[str | None] | None:
    """Return each row's text from `texts`, or else from `others`."""
    if texts is None or others is None:
        return others if texts is None else texts
    return [other if text is None else text for text, other in zip(texts, others, strict=True)]


def _header_rows(headers: tuple[str, ...], columns: list[Any]) -> list[list[tuple[str, Any]]] | None:
    if not headers:
        return None
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    return [list(zip(headers, row, strict=True)) for row in rows]
