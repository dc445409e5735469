"""Splits that tasks read themselves, without a JVM: how they are dealt out, and the loop that gives a task what is read.

    planned splits ─▶ deal: a tuple of them for each task ─▶ DirectInputs, in the task ─▶ reader.read(split) ─▶ task.py

How a split is read a kind of source says by its `DirectReader`; nothing here knows what a source is. Beside the way through
Spark (worker.ArrowInputs), with the same records and receipts: such an input knows where a split ends, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np

from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.plan import PlannedSplit
from eosingest.protocol.task_contract import Batch, Signal, SplitEnd
from eosingest.spark.read_ahead import ReadAhead


class DirectSplit(Protocol):
    """A planned split, and whatever its reader has to know of it beside. Pickled into the task that reads it."""

    @property
    def key(self) -> int:
        """Its hash in the plan of the task, which stands in `Batch.splits`."""

    @property
    def planned(self) -> PlannedSplit:
        """The split as it is planned."""


class DirectReader(Protocol):
    """How a task reads a kind's splits. Pickled into the tasks."""

    def read(self, split: Any, committed: OffsetRecord | None, longest: int) -> Iterator[Batch]:
        """Yield the rows of a DirectSplit of the reader's own, from the first one on, each batch with its `first_row`.

        The end of the iterator says that the split has ended: whatever else ends the reading is raised. ChangedError where
        the source is not what was planned, FatalError where it can never be read, OSError where it cannot be read now.
        What is `committed` already is read as well: the task proves that it is what was sent. Of a row that has more than
        `longest` bytes, which nobody can send, no more need be read.
        """


_S = TypeVar("_S", bound=DirectSplit)


def deal(splits: Sequence[_S], most_tasks: int) -> tuple[tuple[_S, ...], ...]:
    """Deal splits out: neighbours to one task, about as much to read to each."""
    bounds = _bounds([split.planned.split.size for split in splits], min(most_tasks, len(splits)))
    return tuple(tuple(splits[first:end]) for first, end in pairwise(bounds))


def _bounds(sizes: Sequence[int], tasks: int) -> list[int]:
    """Return where to cut a row of things of these sizes into `tasks` parts of like size, none of them empty."""
    ends = np.cumsum(sizes)
    wanted = np.searchsorted(ends, ends[-1] * np.arange(1, tasks) / tasks) + 1
    least = np.arange(1, tasks)
    apart = np.maximum.accumulate(wanted - least) + least
    return [0, *np.minimum(np.maximum(apart, least), len(sizes) - tasks + least).tolist(), len(sizes)]


class DirectInputs:
    """What a task reads of its splits (`task_contract.Inputs`)."""

    def __init__(self, reader: DirectReader, splits: Sequence[DirectSplit], longest: int) -> None:
        """Read nothing yet: where to begin is in the offsets topic. `longest` as in `DirectReader.read`."""
        self._reader = reader
        self._splits = splits
        self._longest = longest
        self._ahead: ReadAhead[Batch | SplitEnd] | None = None

    def begin(self, committed: Callable[[PlannedSplit], OffsetRecord | None]) -> None:
        """Begin to read, knowing what is committed."""
        self._ahead = ReadAhead(self._items(committed))

    def get(self, timeout_s: float) -> Batch | SplitEnd | Signal:
        """Return what comes next; see the protocol."""
        assert self._ahead is not None, "begin comes first"
        return self._ahead.get(timeout_s)

    def stop(self) -> None:
        """End the reading."""
        if self._ahead is not None:
            self._ahead.stop()

    def _items(self, committed: Callable[[PlannedSplit], OffsetRecord | None]) -> Iterator[Batch | SplitEnd]:
        for split in self._splits:
            found = committed(split.planned)
            if found is None or not found.done:
                rows = 0
                for batch in self._reader.read(split, found, self._longest):
                    yield batch
                    rows += len(batch.splits)
                yield SplitEnd(split.key, rows)
