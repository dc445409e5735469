"""Assigns splits to tasks that read them in Python, without the JVM, and provides the tasks' input.

    planned splits ─▶ deal: a tuple of them for each task ─▶ DirectInputs, in the task ─▶ reader.read(split) ─▶ task.py

Each kind of source reads its splits with a `DirectReader`; this module depends on no kind. The alternative is
worker.ArrowInputs, whose rows Spark computes. Both give the same records and receipts; only this one reports a split's end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.plan import PlannedSplit
from eosingest.protocol.task_contract import Batch, Signal, SplitEnd
from eosingest.spark.read_ahead import ReadAhead


class DirectSplit(Protocol):
    """A planned split, with further data for its reader. Pickled and sent to the task that reads it."""

    @property
    def key(self) -> int:
        """The split's hash in the task's plan, as in `Batch.splits`."""

    @property
    def planned(self) -> PlannedSplit:
        """The planned split."""


class DirectReader(Protocol):
    """Reads the splits of a kind of source in a task. Pickled and sent to the tasks."""

    def read(self, split: Any, committed: OffsetRecord | None, longest: int) -> Iterator[Batch]:
        """Yield the rows of a split (of the reader's own DirectSplit class), from its first row, each batch with `first_row`.

        Rows that are already `committed` are read too: the task proves that they are the rows that were sent. A row longer
        than `longest` bytes can never be sent, so its rest need not be read. The iterator ends only at the end of the split.
        Raises ChangedError if the source differs from the plan, FatalError if it can never be read, OSError if it cannot be
        read now.
        """


@dataclass(frozen=True)
class Direct:
    """How tasks read the source themselves: the planned splits, done ones too, their reader, and the columns as DDL."""

    reader: DirectReader
    splits: Sequence[DirectSplit]
    schema: str


Confirm: TypeAlias = Callable[[], None]  # see `task_contract.Inputs.confirm`. Pickled and sent to the tasks.


def is_constant() -> None:
    """Do nothing: the items cannot change while they are read, or each reader has proven what it read."""


_S = TypeVar("_S", bound=DirectSplit)


def deal(splits: Sequence[_S], most_tasks: int) -> tuple[tuple[_S, ...], ...]:
    """Assign splits to at most `most_tasks` tasks: neighbouring splits to one task, about the same total size to each."""
    bounds = _bounds([split.planned.split.size for split in splits], min(most_tasks, len(splits)))
    return tuple(tuple(splits[first:end]) for first, end in pairwise(bounds))


def _bounds(sizes: Sequence[int], tasks: int) -> list[int]:
    """Return the indexes that cut a sequence of these sizes into `tasks` parts of about equal size, none of them empty."""
    ends = np.cumsum(sizes)
    wanted = np.searchsorted(ends, ends[-1] * np.arange(1, tasks) / tasks) + 1
    least = np.arange(1, tasks)
    apart = np.maximum.accumulate(wanted - least) + least
    return [0, *np.minimum(np.maximum(apart, least), len(sizes) - tasks + least).tolist(), len(sizes)]


class DirectInputs:
    """The input of a task that reads its splits itself (`task_contract.Inputs`)."""

    def __init__(
        self,
        reader: DirectReader,
        splits: Sequence[DirectSplit],
        longest: int,
        *,
        whole: bool = False,
        confirm: Confirm = is_constant,
    ) -> None:
        """Read nothing yet: the committed positions are not known before `begin`. `longest` as in `DirectReader.read`.

        `whole`: return Signal.ALL after the last split.
        """
        self.confirm = confirm
        self._reader = reader
        self._splits = splits
        self._longest = longest
        self._whole = whole
        self._ahead: ReadAhead[Batch | SplitEnd | Signal] | None = None

    def begin(self, committed: Callable[[PlannedSplit], OffsetRecord | None]) -> None:
        """Start reading. `committed` returns the offset record of a split, None if it has none."""
        self._ahead = ReadAhead(self._items(committed))

    def get(self, timeout_s: float) -> Batch | SplitEnd | Signal:
        """Return the next batch or end of a split; see `task_contract.Inputs`."""
        assert self._ahead is not None, "begin comes first"
        return self._ahead.get(timeout_s)

    def stop(self) -> None:
        """Stop reading."""
        if self._ahead is not None:
            self._ahead.stop()

    def _items(self, committed: Callable[[PlannedSplit], OffsetRecord | None]) -> Iterator[Batch | SplitEnd | Signal]:
        for split in self._splits:
            found = committed(split.planned)
            if found is None or not found.done:
                rows = 0
                for batch in self._reader.read(split, found, self._longest):
                    yield batch
                    rows += len(batch.splits)
                yield SplitEnd(split.key, rows)
        if self._whole:
            yield Signal.ALL
