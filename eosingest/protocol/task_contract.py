"""Defines a task's settings, input and outcome: the values that Spark's workers, task.py and the driver exchange.

`TaskSettings` is pickled into the task closure, batches come from implementations of `Inputs` in spark/, and an accumulator
returns the `Outcome` to the driver.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from eosingest.errors import EXIT_DONE, EosingestError
from eosingest.kafka.ports import OffsetsReader, Producer, Records
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.plan import PlannedSplit
from eosingest.protocol.source import Positions, SplitId
from eosingest.records.limits import TopicLimits
from eosingest.report.wording import Wording

BAD_ROWS = "bad-rows"  # the code of an outcome with bad rows and no other error


@dataclass(frozen=True)
class DeadLetterSettings:
    """The dead-letter topic, which takes records of up to `max_message_bytes`.

    `allowed` is the spec's `max`, and `left` the part of it not yet used: a further bad row of a task ends its split.
    """

    topic: str
    max_message_bytes: int
    allowed: int
    left: int


@dataclass(frozen=True)
class TaskSettings:
    """The settings of every task of a run. Frozen and picklable: they travel in the task closure.

    `run` and `started` identify the run. `splits` is keyed by the signed hash in the batches' split column; `plan_end` is
    the offset up to which the driver read the job's partition of the offsets topic, whose id then was `offsets_topic_id`.
    `limits` are the sink topic's. `max_records` and `max_bytes` bound a transaction; `max_attempts` is how often Spark tries a
    task (`spark.task.maxFailures`). `wording` is the source's. `keeps_partitions`: a record without a key keeps its source
    partition (`Split.source_partition`), where the sink topic has as many partitions. `rate_limit`: the bytes of keys, values
    and headers that the task may send per second, None for no limit. `dead_letters` None: a bad row ends its split. `whole`:
    the task sends all its rows in one transaction, or none. Times in seconds, sizes in bytes.
    """

    job: str
    run: int
    started: str
    topic: str
    offsets_topic: str
    offsets_topic_id: str
    offsets_partition: int
    plan_end: int
    splits: Mapping[int, PlannedSplit]
    limits: TopicLimits
    transaction_timeout_s: float
    max_records: int
    max_bytes: int
    wording: Wording
    max_attempts: int = 4
    keeps_partitions: bool = False
    rate_limit: float | None = None
    dead_letters: DeadLetterSettings | None = None
    whole: bool = False


@dataclass(frozen=True)
class Batch:
    """Rows as columns of equal length: split hash, record, receipt hash, size in bytes, corrupt text, metadata hash.

    `corrupt` has the bytes of each row that could not be parsed, None for the others; `unfit` says why a row does not fit
    the schema by which it is encoded, or why a row is corrupt. `first_row` is the number of the batch's first row
    in its split, from 0: only inputs that read the source themselves set it, and their batches have rows of one split.
    `positions` has each row's position, from inputs that know it.
    """

    splits: npt.NDArray[np.int64]
    records: Records
    hashes: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    corrupt: list[bytes | None] | None = None
    first_row: int | None = None
    positions: Positions | None = None
    metadata: npt.NDArray[np.int64] | None = None
    unfit: list[str | None] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError where columns differ in length: a receipt would not match its records."""
        columns = (self.splits, self.records.keys, self.records.values, self.hashes, self.sizes)
        if len({len(column) for column in columns}) > 1:
            raise ValueError(f"columns of different lengths: {[len(column) for column in columns]}")

    def slice(self, start: int, end: int) -> Batch:
        """Return the rows [start, end)."""
        corrupt = self.corrupt[start:end] if self.corrupt is not None else None
        return Batch(
            self.splits[start:end],
            self.records.slice(start, end),
            self.hashes[start:end],
            self.sizes[start:end],
            corrupt,
            self.first_row + start if self.first_row is not None else None,
            self.positions.slice(start, end) if self.positions is not None else None,
            self.metadata[start:end] if self.metadata is not None else None,
            self.unfit[start:end] if self.unfit is not None else None,
        )

    def where(self, mask: npt.NDArray[np.bool_]) -> Batch:
        """Return the rows for which the mask is true, which need not be adjacent: without positions and row numbers."""
        return Batch(
            self.splits[mask],
            self.records.where(mask),
            self.hashes[mask],
            self.sizes[mask],
            metadata=self.metadata[mask] if self.metadata is not None else None,
        )


@dataclass(frozen=True)
class SplitEnd:
    """The proof that a split has ended, from an input that reads the source itself.

    `split` is the split's hash, `rows` the number of its rows, committed ones included.
    """

    split: int
    rows: int


class Signal(enum.Enum):
    """A signal that an input returns instead of a batch."""

    TICK = "tick"  # no row came in time: check the clock
    ALL = "all"  # proof that every row of every planned split was returned; only where one transaction has everything
    END = "end"  # the input ended, which proves nothing


class Inputs(Protocol):
    """The task's input: the rows of one split after another.

    A split's rows come in their sequence from the first row on, so that committed rows can be verified. Only where the
    committed position is an offset or a key may a split begin later: at the source row of the position, or at an
    earlier one. An input that reads the source itself ends each split with a SplitEnd, and returns no row of a done split;
    after a committed offset or key whose `row_records` is None, it begins with the next source row.
    """

    def begin(self, committed: Callable[[PlannedSplit], OffsetRecord | None]) -> None:
        """Begin to read, unless begun: the task owns its transactional id now.

        `committed` returns the last offset record of a split; it may be called later, and in another thread.
        """

    def get(self, timeout_s: float) -> Batch | SplitEnd | Signal:
        """Return the next batch, SplitEnd or signal; TICK where none comes within `timeout_s` seconds.

        Raises ChangedError or FatalError where the source differs from the plan or can never be read, OSError where it
        cannot be read now.
        """

    def confirm(self) -> None:
        """Check again, before a commit that has everything, that the items are as planned. Raises as `get` does."""

    def stop(self) -> None:
        """Stop reading: the attempt is over."""


class TaskKafka(Protocol):
    """Makes the task's clients. The implementation derives the transactional id from prefix, job and task number."""

    def producer(self, task: int) -> Producer:
        """Make the transactional producer of a task."""

    def reader(self) -> OffsetsReader:
        """Make a reader of the job's partition of the offsets topic."""


@dataclass
class Outcome:
    """How a task ended, for the driver. `exit_code` as in errors.py, 0 for success.

    `job`, `run` and `started` name the run of the task, as in `TaskSettings`: the driver ignores the outcomes of other runs.

    `error` is the class name of the error that ended the task, next to its code, message, hint and item; "" for none: a bad
    row ends its split, not the task.

    `last_split` is (identity, rows seen) of the last split in the input, None where it is done already or had a bad row.
    `read_all` says that the input was read to its end and that all of it is committed, except splits with bad rows.
    `bad_rows` are dicts of split (identity), label, row (of the split after `where`, from 1), code, reason, letters (the
    change that would make it a dead letter: "raise max", "name a topic", or ""), whole (true: nothing was sent because of it).
    `records`, `dead_letters` and `transactions` count committed ones; `restarts` counts KafkaFailures.
    """

    task: int
    job: str
    run: int
    started: str
    exit_code: int = EXIT_DONE
    code: str = ""
    error: str = ""
    message: str = ""
    hint: str = ""
    item: str = ""
    last_split: tuple[SplitId, int] | None = None
    read_all: bool = False
    bad_rows: list[dict[str, Any]] = field(default_factory=list)
    records: int = 0
    dead_letters: int = 0
    transactions: int = 0
    restarts: int = 0

    def end_with(self, error: EosingestError) -> None:
        """Record the error that ended the task."""
        self.exit_code, self.code, self.error = error.exit_code, error.code, type(error).__name__
        self.message, self.hint, self.item = error.message, error.hint, error.item

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Outcome:
        """Read what `to_json` wrote."""
        last = value.get("last_split")
        return cls(**{**value, "last_split": tuple(last) if last else None})
