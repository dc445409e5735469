"""Computes a run's progress in its plan from the offset records that its tasks commit. Pure.

sending.py reads the records and shows the progress. Each record is counted once: to walk a plan of a million splits every
second would keep the driver busy with nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable

from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.plan import Plan, PlannedSplit
from eosingest.protocol.source import SplitId
from eosingest.report.progress import Progress


class RunProgress:
    """Counts records, dead letters, done splits and sizes of one run."""

    def __init__(self, plan: Plan) -> None:
        """Nothing is sent yet."""
        self._left: dict[SplitId, PlannedSplit] = {planned.id: planned for planned in plan.pending}
        self._planned = len(self._left)
        self._size_planned = plan.size_to_send
        self._unit = plan.wording.unit
        self._records_before = plan.committed_records
        self._under_way: dict[SplitId, OffsetRecord] = {}  # of splits that are not done: mostly one for each task
        self._done = self._records_done = self._rows_done = self._size_done = self._letters_done = 0

    def take(self, offsets: Iterable[OffsetRecord]) -> None:
        """Count offset records of this run, in log order: a later one of a split replaces the earlier one."""
        for offset in offsets:
            split = offset.split
            planned = self._left.get(split)
            if planned is None:
                continue
            if not offset.done:
                self._under_way[split] = offset
                continue
            del self._left[split]
            self._under_way.pop(split, None)
            self._done += 1
            self._records_done += _sent(planned, offset)
            self._rows_done += offset.rows
            self._letters_done += _letters(planned, offset)
            self._size_done += planned.split.size

    @property
    def dead_letters(self) -> int:
        """How many dead letters the run has written."""
        under_way = ((self._left[split], offset) for split, offset in self._under_way.items())
        return self._letters_done + sum(_letters(planned, offset) for planned, offset in under_way)

    def after(self, seconds: float) -> Progress:
        """Return the progress as it is `seconds` after the run began."""
        row_size = self._size_done / self._rows_done if self._rows_done else 0.0
        under_way = [(self._left[split], offset) for split, offset in self._under_way.items()]
        return Progress(
            records_sent=self._records_done + sum(_sent(planned, offset) for planned, offset in under_way),
            splits_done=self._done,
            splits_planned=self._planned,
            size_done=self._size_done + sum(_size_within(planned, offset, row_size) for planned, offset in under_way),
            size_planned=self._size_planned,
            seconds=seconds,
            unit=self._unit,
            records_before=self._records_before,
        )


def _sent(planned: PlannedSplit, now: OffsetRecord) -> int:
    return now.records - (planned.committed.records if planned.committed is not None else 0)


def _letters(planned: PlannedSplit, now: OffsetRecord) -> int:
    return now.dead.count - (planned.committed.dead.count if planned.committed is not None else 0)


def _size_within(planned: PlannedSplit, now: OffsetRecord, row_size: float) -> int:
    """Return how much this run has sent of a split that is not done: by its positions, or by rows where these do not say."""
    split, before = planned.split, planned.committed
    reached = split.size_before(now.committed_position)
    began = 0 if before is None else split.size_before(before.committed_position)
    if reached is None or began is None:
        sent = round((now.rows - (before.rows if before is not None else 0)) * row_size)
    else:
        sent = reached - began
    return max(0, min(sent, split.size - 1))
