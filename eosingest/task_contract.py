"""What a task is told, what it reads, and what it returns: the values between Spark's workers, task.py and the driver.

All of it pickles. `TaskSettings` travels in the task closure, batches come from spark/worker.py, the `Outcome` goes back
to the driver through an accumulator.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from eosingest.errors import EXIT_DONE
from eosingest.kafka.protocols import OffsetsReader, Producer, Records
from eosingest.limits import TopicLimits
from eosingest.offsets.record import OffsetRecord
from eosingest.sources.base import Fingerprint


@dataclass(frozen=True)
class TaskSplit:
    """A planned split as a task knows it: identity, the file's fingerprint, and the offset record at planning time."""

    file: str
    start: int
    length: int
    fingerprint: Fingerprint
    committed: OffsetRecord | None


@dataclass(frozen=True)
class TaskSettings:
    """What every task of a run is told. Frozen and picklable: it travels in the task closure.

    `splits` is keyed by the signed hash in the batches' split column; `plan_end` is the offset up to which the driver
    read; `max_attempts` is how often Spark tries a task (`spark.task.maxFailures`). Times in seconds, sizes in bytes.
    """

    job: str
    run: int
    started: str
    topic: str
    offsets_topic: str
    offsets_partition: int
    plan_end: int
    splits: Mapping[int, TaskSplit]
    limits: TopicLimits
    transaction_timeout_s: float
    max_records: int
    max_bytes: int
    max_attempts: int = 4


@dataclass(frozen=True)
class Batch:
    """Rows of one Arrow batch as columns of equal length: split hash, record, receipt hash, size in bytes, corrupt text."""

    splits: npt.NDArray[np.int64]
    records: Records
    hashes: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    corrupt: list[str | None] | None = None

    def slice(self, start: int, end: int) -> Batch:
        """Return the rows [start, end)."""
        whole = self.records
        records = Records(
            whole.keys[start:end],
            whole.values[start:end],
            whole.timestamps_ms[start:end] if whole.timestamps_ms is not None else None,
            whole.headers[start:end] if whole.headers is not None else None,
        )
        corrupt = self.corrupt[start:end] if self.corrupt is not None else None
        return Batch(self.splits[start:end], records, self.hashes[start:end], self.sizes[start:end], corrupt)


class Signal(enum.Enum):
    """What an input gives instead of a batch."""

    TICK = "tick"  # nothing came in time: look at the clock
    END = "end"  # the input ended, which proves nothing


class Inputs(Protocol):
    """The task's input."""

    def get(self, timeout_s: float) -> Batch | Signal:
        """Return the next batch, TICK after `timeout_s` seconds without one, or END."""


class TaskKafka(Protocol):
    """Makes the task's clients. `transactional_id` is derived from job and task number by whoever implements it."""

    def producer(self, task: int) -> Producer:
        """Make the transactional producer of a task."""

    def reader(self) -> OffsetsReader:
        """Make a reader of the job's partition of the offsets topic."""


@dataclass
class Outcome:
    """How a task ended: what the driver is told. `exit_code` as in errors.py, 0 where all went well.

    `last_split` is (file, start, rows seen) of the last split whose input the task saw, None where it is not to be taken
    as ended. `read_all` says that the input was read to its end and that all of it is committed, but for bad rows.
    `bad_rows` are dicts of file, start (byte), row (of the split after `where`, from 1), code, reason.
    """

    task: int
    exit_code: int = EXIT_DONE
    code: str = ""
    message: str = ""
    hint: str = ""
    last_split: tuple[str, int, int] | None = None
    read_all: bool = False
    bad_rows: list[dict[str, Any]] = field(default_factory=list)
    records: int = 0
    transactions: int = 0
    restarts: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Outcome:
        """Read what `to_json` wrote."""
        last = value.get("last_split")
        return cls(**{**value, "last_split": tuple(last) if last else None})
