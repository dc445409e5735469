"""The splits of a task one after another: which one is current, what proves that it has ended, what of it is left to send.

Between the task's input and its transactions (task.py). End of input does not imply end of split: a split has ended when
rows of the next one arrive, or when an input that reads its bytes says so. No Kafka in here; what is committed is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from eosingest.errors import ChangedError, FatalError
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.plan import PlannedSplit
from eosingest.protocol.split_progress import SplitProgress
from eosingest.protocol.task_contract import Batch, SplitEnd


class SplitSequence:
    """The splits that a task has met, in order. Every method may raise ChangedError or FatalError, naming the split."""

    def __init__(
        self, planned: Mapping[int, PlannedSplit], committed: Callable[[PlannedSplit], OffsetRecord | None]
    ) -> None:
        """`planned` is keyed by the hash in the batches' split column; `committed` gives a split's last offset record."""
        self._planned = planned
        self._committed = committed
        self._met: dict[int, SplitProgress] = {}
        self.current: SplitProgress | None = None

    def enter(self, split: int, row: int | None) -> SplitProgress:
        """Return the progress of the split that the next rows are of; the split before it has ended: here is the proof.

        `row` is where in the split the input is, counted from 0; None where it does not say.
        """
        progress = self._met.get(split)
        if progress is None:
            progress = self._begin(split)
        elif progress is not self.current:
            raise FatalError(f"{progress.planned.label} was read twice by one task", code="split-met-twice")
        if self.current is not None and self.current is not progress:
            self._end(self.current)
        self.current = progress
        if row is not None:
            _check_place(progress, row)
        return progress

    def end(self, told: SplitEnd) -> None:
        """Take a split as ended because the input, which reads its bytes, says so."""
        self._end(self.enter(told.split, told.rows))

    def beyond(self, progress: SplitProgress, rows: Batch) -> Batch:
        """Return those of the rows that are not handed over yet. The others must be those that were."""
        count = len(rows.splits)
        skip = count if progress.done or progress.failed else min(count, max(0, progress.rows - progress.seen))
        if skip and not progress.failed:
            self._pass_over(progress, rows.slice(0, skip))
        return rows.slice(skip, count)

    def dirty(self) -> list[SplitProgress]:
        """Return those of which the log does not know all that is known here."""
        return [progress for progress in self._met.values() if progress.dirty]

    def in_flight(self) -> bool:
        """Say whether rows were handed over that are not committed."""
        return any(progress.rows > progress.committed_rows for progress in self._met.values())

    def catch_up(self) -> bool:
        """Take what the log has as committed now; say whether it is other than before: a commit had gone through."""
        moved = False
        for progress in self._met.values():
            found = self._committed(progress.planned)
            moved = moved or found != progress.committed
            progress.committed = found
            if progress.committed_rows > progress.rows:
                progress.resume()
        return moved

    def _begin(self, split: int) -> SplitProgress:
        """Begin with a split, at its first row: what is committed of it is passed over, and proven on the way."""
        planned = self._planned.get(split)
        if planned is None:
            raise ChangedError(
                "a row came from a split, or from a version of a file, that is not in the plan: a file changed after it"
                " was listed",
                code="unplanned-split",
                hint="its rows were not sent; run again once nothing writes to the source any more (source.min_age)",
            )
        progress = self._met[split] = SplitProgress(planned, self._committed(planned))
        progress.resume()
        return progress

    def _end(self, progress: SplitProgress) -> None:
        """Take the split as ended. Fewer rows than are committed: it is not the split that was sent before."""
        if progress.seen < progress.rows:
            raise ChangedError(
                f"{progress.planned.label} gave {progress.seen} rows, and"
                f" {progress.rows} were committed by an earlier run: the same split must give the same rows",
                code="split-shrank",
                hint="nothing of it was sent again; was the file changed and its length and modification time kept?",
            )
        progress.ended = True

    def _pass_over(self, progress: SplitProgress, rows: Batch) -> None:
        """Count rows that are committed. Stop where they do not give the receipt: what follows belongs to other rows."""
        if not progress.pass_over(rows):
            raise ChangedError(
                f"{progress.planned.label}: its first {progress.rows} rows are not those that were"
                " sent: they do not give the receipt",
                code="prefix-changed",
                hint="nothing more of it was sent; was the file edited and its length and modification time kept, or does an"
                " expression depend on the day, the host or a library's version? Restore what was and run again;"
                " or send everything again, beside what is in the topic, with: eosingest run SPEC --from-scratch",
            )


def _check_place(progress: SplitProgress, row: int) -> None:
    """Stop where the input is at another row than we are: rows would be lost or doubled, or an end come too early."""
    if progress.seen != row and not progress.failed:
        raise FatalError(
            f"{progress.planned.label}: row {row} came when {progress.seen} had been seen",
            code="row-out-of-place",
            hint="this is a bug in eosingest, please report it; what was committed is kept, nothing was sent twice",
        )
