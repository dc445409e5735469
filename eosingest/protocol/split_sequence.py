"""Follows a task through its splits: which split is current, which proof ends it, which rows are left to send.

task.py uses it between input and transactions. End of input does not imply end of split: a split has ended when rows of the
next one arrive, or when an input that reads its source itself says so. No Kafka client here: a function returns the
committed offset records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from eosingest.errors import ChangedError, FatalError
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.plan import PlannedSplit
from eosingest.protocol.split_progress import SplitProgress
from eosingest.protocol.task_contract import Batch, SplitEnd
from eosingest.report.wording import Wording


class SplitSequence:
    """The splits that a task has met. Every method may raise ChangedError or FatalError, naming the split."""

    def __init__(
        self,
        planned: Mapping[int, PlannedSplit],
        committed: Callable[[PlannedSplit], OffsetRecord | None],
        wording: Wording,
    ) -> None:
        """`planned` is keyed by the hash in the batches' split column; `committed` returns a split's last offset record.

        `wording` is the source's.
        """
        self._wording = wording
        self._planned = planned
        self._committed = committed
        self._met: dict[int, SplitProgress] = {}
        self.current: SplitProgress | None = None

    def enter(self, split: int, row: int | None) -> SplitProgress:
        """Return the progress of the next rows' split. Rows of another split prove that the current one has ended.

        `row` is how many rows of the split the input has read before; None where it does not say.
        """
        progress = self._met.get(split)
        if progress is None:
            progress = self._begin(split)
        elif progress is not self.current:
            raise FatalError(f"{progress.planned.label} was read twice by one task", code="split-met-twice")
        if self.current is not None and self.current is not progress:
            self._end(self.current)
        self.current = progress
        if row is not None and not progress.by_position:  # else the input may begin at any row
            _check_place(progress, row)
        return progress

    def end(self, told: SplitEnd) -> None:
        """Mark a split as ended: an input that reads the source itself says so."""
        self._end(self.enter(told.split, told.rows))

    def end_all(self) -> None:
        """Mark every planned split as ended, even one without rows: the input has returned all rows of all of them.

        It may have returned no row of a split that is done by now.
        """
        for split in self._planned:
            progress = self._met.get(split) or self._begin(split)
            if progress.seen or not progress.done:
                self._end(progress)

    def beyond(self, progress: SplitProgress, rows: Batch) -> Batch:
        """Return the rows that are not handed over yet. Skipped rows must give the receipt, unless found by position."""
        count = len(rows.splits)
        if progress.failed or progress.uncounted:
            return rows.slice(count, count)
        if progress.by_position:
            return rows.slice(_sent_by_position(progress, rows, self._wording), count)
        skip = count if progress.done else min(count, max(0, progress.rows - progress.seen))
        if skip:
            self._pass_over(progress, rows.slice(0, skip))
        return rows.slice(skip, count)

    def dirty(self) -> list[SplitProgress]:
        """Return the splits that have something to commit."""
        return [progress for progress in self._met.values() if progress.dirty]

    def in_flight(self) -> bool:
        """Say whether rows were handed over that are not committed."""
        return any(progress.rows > progress.committed_rows for progress in self._met.values())

    def catch_up(self) -> bool:
        """Take the offset records that are in the log now; say whether one is new: a commit had succeeded."""
        moved = False
        for progress in self._met.values():
            found = self._committed(progress.planned)
            moved = moved or found != progress.committed
            progress.committed = found
            ahead = progress.committed_rows > progress.rows
            if progress.committed_rows >= progress.rows:
                progress.resume()  # of as many rows, too: another attempt may have made other rows dead letters
            if ahead:
                progress.caught_up = True  # skips no input: `rows` above `seen` ends the attempt
        return moved

    def _begin(self, split: int) -> SplitProgress:
        """Begin a split from its last offset record. Raises ChangedError for a split that is not in the plan."""
        planned = self._planned.get(split)
        if planned is None:
            item, later = self._wording.item, self._wording.later
            raise ChangedError(
                f"a row came from a split, or from a version of a {item}, that is not in the plan: a {item} changed after it"
                " was listed",
                code="unplanned-split",
                hint="its rows were not sent; run again once nothing writes to the source any more"
                + (f" ({later})" if later else ""),
            )
        self._met[split] = SplitProgress.begin(planned, self._committed(planned))
        return self._met[split]

    def _end(self, progress: SplitProgress) -> None:
        """Mark the split as ended. Raises ChangedError where it gave fewer rows than are committed."""
        if progress.seen < progress.rows and not progress.uncounted:
            raise ChangedError(
                f"{progress.planned.label} gave {progress.seen} rows, and"
                f" {progress.rows} were committed by an earlier run: the same split must give the same rows",
                code="split-shrank",
                hint=f"nothing of it was sent again; was the {self._wording.item} changed and {self._wording.kept} kept?",
            )
        progress.ended = True

    def _pass_over(self, progress: SplitProgress, rows: Batch) -> None:
        """Skip committed rows. Raises ChangedError where they do not give the receipt: the split has changed."""
        if not progress.pass_over(rows):
            edited = f"{self._wording.item} edited and {self._wording.kept} kept"
            raise ChangedError(
                f"{progress.planned.label}: its first {progress.rows} rows are not those that were"
                " sent: they do not match the receipt",
                code="prefix-changed",
                hint=f"nothing more of it was sent; was the {edited}, or does an"
                " expression depend on the day, the host or a library's version? Restore the earlier state and run again;"
                " or send everything again, in addition to the records in the topic, with: eosingest run SPEC --from-scratch",
            )


def _check_place(progress: SplitProgress, row: int) -> None:
    """Raise FatalError where the input is at another row: rows would be lost or doubled, or the split end too early."""
    if progress.seen != row and not progress.failed:
        raise _out_of_place(f"{progress.planned.label}: row {row} came after {progress.seen} rows")


def _sent_by_position(progress: SplitProgress, rows: Batch, wording: Wording) -> int:
    """Return how many of the rows were sent: those before the source row at the position, and its first `row_records`.

    Raises FatalError where positions are missing or go back, ChangedError where that source row gives fewer records now.
    """
    positions, label = rows.positions, progress.planned.label
    if positions is None or positions.kind != progress.position_kind:
        raise _out_of_place(
            f"{label}: rows came without the kind of position ({progress.position_kind}) that is committed"
        )
    before, of_row = progress.place_in(positions)
    if progress.caught_up:
        went_back = before or (of_row and not positions.shared)
        if went_back and progress.seen == progress.rows:
            raise _out_of_place(
                f"{label}: {wording.place(positions.at(0))} came after {wording.place(progress.position)}"
            )
        return 0
    if progress.row_records is None:  # the source row at the position was one record, and was sent
        return before + of_row
    again = min(of_row, progress.rows - progress.seen)
    progress.seen += again
    if progress.seen < progress.rows and before + of_row < len(rows.splits):
        raise ChangedError(
            f"{label}: {progress.row_records} records of the source row at {wording.place(progress.position)} were sent, and"
            f" now it gives {progress.row_records - progress.rows + progress.seen}: the same row must give the same records",
            code="prefix-changed",
            hint="nothing more of it was sent; restore the row, or send everything again, in addition to the records in the"
            " topic, with: eosingest run SPEC --from-scratch",
        )
    return before + again


def _out_of_place(message: str) -> FatalError:
    return FatalError(
        message,
        code="row-out-of-place",
        hint="this is a bug in eosingest, please report it; committed records are kept, nothing was sent twice",
    )
