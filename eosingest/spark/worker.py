"""Inside Spark's Python workers: Arrow batches in, the task's outcome out. The glue around task.py.

A thread reads the Arrow stream into a bounded queue, so that the task can commit in time while no row comes (a filter
may let none through for minutes). What the task needs travels in this object, secrets included, and nowhere else.
"""

from __future__ import annotations

import json
import queue
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Accumulator, AccumulatorParam, TaskContext

from eosingest.kafka.librdkafka import LibrdkafkaOffsetsReader, LibrdkafkaProducer, ProducerSettings
from eosingest.kafka.protocols import OffsetsReader, Producer, Records
from eosingest.names import task_id
from eosingest.spark.read import CHECKSUM, CORRUPT, HEADER, SPLIT, TIMESTAMP
from eosingest.task import Task
from eosingest.task_contract import Batch, Signal, TaskSettings

OUTPUT_SCHEMA = "outcome string"
_QUEUED_BATCHES = 2
_HEADER_OVERHEAD = 10  # bytes: the two lengths of a header, as varints of at most five each


class Outcomes(AccumulatorParam[list[str]]):
    """Collects the outcomes of tasks as JSON. Spark sends updates of successful tasks only, also when the job fails."""

    def zero(self, value: list[str]) -> list[str]:
        """Return the empty list."""
        return []

    def addInPlace(self, value1: list[str], value2: list[str]) -> list[str]:  # noqa: N802 - pyspark's name
        """Append."""
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
    """The function for `mapInArrow`: one call is one attempt of one task. `headers` are the header names, in order."""

    kafka: WorkerKafka
    headers: tuple[str, ...]
    outcomes: Accumulator[list[str]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the task and yield one row: its outcome. Raises AttemptLostError, for Spark to try again."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the driver to handle
        context = TaskContext.get()
        assert context is not None, "runs in a Spark task only"
        task = Task(
            self.kafka.settings,
            context.partitionId(),
            self.kafka,
            attempt=context.taskAttemptId(),
            attempt_number=context.attemptNumber(),
            now=time.monotonic,
            now_ms=lambda: int(time.time() * 1000),
        )
        inputs = ArrowInputs(batches, self.headers)
        try:
            outcome = json.dumps(task.run(inputs).to_json())
        finally:
            inputs.stop()
        self.outcomes.add([outcome])
        yield pa.RecordBatch.from_pydict({"outcome": [outcome]})


class ArrowInputs:
    """Reads an iterator of Arrow batches in a thread of its own (`task_contract.Inputs`); at most two batches wait."""

    def __init__(self, batches: Iterable[pa.RecordBatch], headers: tuple[str, ...]) -> None:
        """Start reading at once: Spark works while the producer is still being made."""
        self._batches = batches
        self._headers = headers
        self._queue: queue.Queue[pa.RecordBatch | Signal | BaseException] = queue.Queue(_QUEUED_BATCHES)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._read, name="arrow-input", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            for batch in self._batches:
                if not self._put(batch):
                    return
            self._put(Signal.END)
        except BaseException as error:  # handed to the task, which raises it in its own thread
            self._put(error)

    def _put(self, item: pa.RecordBatch | Signal | BaseException) -> bool:
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def get(self, timeout_s: float) -> Batch | Signal:
        """Return the next batch; see the protocol. Raises what reading the stream raised."""
        try:
            item = self._queue.get(timeout=timeout_s) if timeout_s > 0 else self._queue.get_nowait()
        except queue.Empty:
            return Signal.TICK
        if isinstance(item, BaseException):
            raise item
        return item if isinstance(item, Signal) else to_batch(item, self._headers)

    def stop(self) -> None:
        """End the thread. It may be waiting for the JVM's next batch: Spark's own reading must not begin before."""
        self._stopped.set()
        self._thread.join()


def to_batch(batch: pa.RecordBatch, headers: tuple[str, ...]) -> Batch:
    """Turn an Arrow batch of record columns into the task's form."""
    key, value, corrupt = batch.column("key"), batch.column("value"), batch.column(CORRUPT)
    header_columns = [batch.column(f"{HEADER}{index}") for index in range(len(headers))]
    timestamps = batch.column(TIMESTAMP).to_pylist() if TIMESTAMP in batch.schema.names else None
    sizes = _lengths(key) + _lengths(value)
    for name, column in zip(headers, header_columns, strict=True):
        sizes = sizes + _lengths(column) + len(name.encode()) + _HEADER_OVERHEAD
    return Batch(
        splits=batch.column(SPLIT).to_numpy(zero_copy_only=False),
        records=Records(key.to_pylist(), value.to_pylist(), timestamps, _header_rows(headers, header_columns)),
        hashes=batch.column(CHECKSUM).to_numpy(zero_copy_only=False),
        sizes=sizes,
        corrupt=None if corrupt.null_count == len(corrupt) else [_text(row) for row in corrupt.to_pylist()],
    )


def _text(row: bytes | None) -> str | None:
    """Return the text of a corrupt row for people; bytes that are not UTF-8 as escapes."""
    return None if row is None else row.decode("utf-8", "backslashreplace")


def _lengths(column: Any) -> npt.NDArray[np.int64]:
    lengths = pc.fill_null(pc.binary_length(column), 0)
    return lengths.to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


def _header_rows(headers: tuple[str, ...], columns: list[Any]) -> list[list[tuple[str, Any]]] | None:
    if not headers:
        return None
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    return [list(zip(headers, row, strict=True)) for row in rows]
