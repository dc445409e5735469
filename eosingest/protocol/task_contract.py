"""A task's settings, input and outcome: the values between Spark's workers, task.py and the driver.

`TaskSettings` is pickled into the task closure, batches come from implementations of `Inputs` in spark/, and the `Outcome` goes
back to the driver through an accumulator.
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
    """Where rows go that cannot be sent: a topic that takes records of `max_message_bytes`.

    `allowed` is the spec's `max`, and `left` how many of it are left: a task that would write more ends.
    """

    topic: str
    max_message_bytes: int
    allowed: int
    left: int


@dataclass(frozen=True)
class TaskSettings:
    """The settings of every task of a run. Frozen and picklable: they travel in the task closure.

    `run` and `started` say which run it is. `splits` is keyed by the signed hash in the batches' split column; `plan_end` is
    the offset up to which the driver read the job's partition of the offsets topic, whose id then was `offsets_topic_id`.
    `limits` are the sink topic's. `max_records` and `max_bytes` bound a transaction; `max_attempts` is how often Spark tries a
    task (`spark.task.maxFailures`). `wording` is the source's. `keeps_partitions`: a record without a key keeps the
    partition that it comes from (`Split.home`), where the sink topic has as many. `rate_limit`: the bytes of keys, values and
    headers that the task may send in a second, None for no limit. `dead_letters` None: a bad row ends its split. `whole`: the
    task sends all that it has in one transaction, or nothing. Times in seconds, sizes in bytes.
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

    `corrupt` has the bytes of each row that could not be parsed, None for the others; `unfit` why a row does not fit the
    schema by which it is encoded. `first_row` is the number of the first
    row in its split, counted from 0: only inputs that read the source themselves say it, and give rows of one split a batch.
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
        """Raise ValueError where a column is longer or shorter than the others: a receipt would not be of its records."""
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
        """Return the rows for which the mask is true, which need not be neighbours: without positions and row numbers."""
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

    `split` is its hash, `rows` how many rows it has given in all, committed ones included.
    """

    split: int
    rows: int


class Signal(enum.Enum):
    """What an input gives instead of a batch."""

    TICK = "tick"  # nothing came in time: look at the clock
    ALL = (
        "all"  # every row of every planned split was given: proven, and said only where all is sent in one transaction
    )
    END = "end"  # the input ended, which proves nothing


class Inputs(Protocol):
    """The task's input: the rows of one split after another.

    A split's rows come in order, and from its first row on, so that the committed ones can be proven. Only where the committed
    position is an offset, a row index or a key may a split begin later: with the source row at the position or an earlier one.
    An input that reads the source itself ends each split with a SplitEnd, and gives nothing of a split that is done; where
    `row_records` is None it begins after such a position.
    """

    def begin(self, committed: Callable[[PlannedSplit], OffsetRecord | None]) -> None:
        """Begin to read, unless begun: the task owns its transactional id now.

        `committed` gives the last offset record of a split; it may be called later, and in another thread.
        """

    def get(self, timeout_s: float) -> Batch | SplitEnd | Signal:
        """Return what comes next, TICK after `timeout_s` seconds without anything, or END.

        Raises ChangedError or FatalError where the source is not what was planned, or can never be read, OSError where
        it cannot be read now.
        """

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
    """How a task ended, for the driver. `exit_code` as in errors.py, 0 where all went well.

    `job`, `run` and `started` name the run of the task, as in `TaskSettings`: the driver ignores the outcomes of other runs.

    `error` is the class name of the error that ended the task, beside its code, message, hint and item; "" where none did: a
    bad row ends its split, not the task.

    `last_split` is (identity, rows seen) of the last split in the input, None where it is done already or had a bad row.
    `read_all` says that the input was read to its end and that all of it is committed, except splits with bad rows.
    `bad_rows` are dicts of split (identity), label, row (of the split after `where`, from 1), code, reason, letters (what
    would make it a dead letter: "raise max", "name a topic", or nothing), whole (whether nothing was sent because of it).
    `records`, `dead_letters` and `transactions` count what was committed, `restarts` the failures after which the task began
    again.
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
        """Note the error that ended the task."""
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
