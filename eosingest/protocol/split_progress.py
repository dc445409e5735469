"""Tracks one split in a task: the rows read, handed to the producer and committed, and their receipt. Pure.

split_sequence.py keeps the progress of each split that the task's input enters. A commit writes it as the offset record.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass

from eosingest.protocol.dead_letters import NO_LETTERS, Letters
from eosingest.protocol.offsets.dead_letters import NO_DEAD_LETTERS, DeadLetters
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.plan import PlannedSplit
from eosingest.protocol.source import Position, PositionKind, Positions
from eosingest.protocol.task_contract import Batch
from eosingest.records import checksum
from eosingest.records.checksum import MODULUS


@dataclass
class SplitProgress:
    """The progress of one split. `seen` rows came in, and the first `rows` of the split are handed over to the producer.

    `committed` is the split's offset record in the log, None where it has none.
    `position`, of the kind `position_kind`, is that of the last row handed over; of the kind "rows" it equals `rows`.
    `row_records` is how many of the rows handed over are of the source row at the position, None where a source row is one
    record. `caught_up`: the input is past all rows that were committed before this attempt.
    `checksum` covers the `records` handed over, `dead` the rows that went to the dead-letter topic, `seen_checksum` all rows
    that came in: when `seen` reaches `rows` the first two together must equal it, or the split's rows are not those that were
    sent. `metadata` and `seen_metadata` are the same over headers and timestamps.
    """

    planned: PlannedSplit
    committed: OffsetRecord | None
    seen: int = 0
    rows: int = 0
    position: Position = 0
    position_kind: PositionKind = PositionKind.ROWS
    row_records: int | None = None
    caught_up: bool = False
    records: int = 0
    checksum: int = 0
    seen_checksum: int = 0
    metadata: int = 0
    seen_metadata: int = 0
    dead: DeadLetters = NO_DEAD_LETTERS
    ended: bool = False
    failed: bool = False

    @classmethod
    def begin(cls, planned: PlannedSplit, committed: OffsetRecord | None) -> SplitProgress:
        """Begin with a split whose last offset record is `committed`, None for none.

        Where committed rows are found by position they count as seen, except those of the source row at the position: an input
        that gives this source row again gives all of its records again.
        """
        made = cls(planned, committed)
        made.resume()
        if made.by_position:
            made.seen = made.rows - (0 if made.done else made.row_records or 0)
        return made

    @property
    def by_position(self) -> bool:
        """Whether committed rows are found by their position, and not by counting rows from the split's first one on."""
        return not self.position_kind.counted

    @property
    def done(self) -> bool:
        """Whether the log says that the split is done."""
        return self.committed is not None and self.committed.done

    @property
    def uncounted(self) -> bool:
        """Whether rows that come in are skipped and not counted: all of the split is committed, and rows have positions."""
        return self.done and self.by_position

    @property
    def committed_rows(self) -> int:
        """How many rows of the split are committed."""
        return self.committed.rows if self.committed is not None else 0

    @property
    def dirty(self) -> bool:
        """Whether there is something to commit: rows that were handed over, or the done mark."""
        return not self.done and (self.rows > self.committed_rows or (self.ended and not self.failed))

    def resume(self) -> None:
        """Take position and receipt from the committed record."""
        if self.committed is not None:
            self.rows = self.committed.rows
            self.position, self.position_kind = self.committed.position, self.committed.position_kind
            self.row_records = self.committed.row_records
            self.records = self.committed.records
            self.checksum = self.committed.checksum
            self.metadata = self.committed.metadata_checksum
            self.dead = self.committed.dead

    def take(self, rows: Batch, letters: Letters = NO_LETTERS) -> None:
        """Count rows as handed over, as dead letters or as records."""
        self._go_to(rows.positions, len(rows.splits))
        self.caught_up = True
        self.seen += len(rows.splits)
        self.rows += len(rows.splits)
        self.records += len(rows.splits) - len(letters)
        self.checksum = checksum.add(self.checksum, letters.without(rows.hashes))
        if rows.metadata is not None:
            self.metadata = checksum.add(self.metadata, letters.without(rows.metadata))
        self.dead += letters.receipt(rows)
        self.seen_checksum, self.seen_metadata = self._all_rows()

    def _all_rows(self) -> tuple[int, int]:
        """Return the sums over all rows handed over, records and dead letters."""
        return (self.checksum + self.dead.rows) % MODULUS, (self.metadata + self.dead.metadata) % MODULUS

    def _go_to(self, positions: Positions | None, count: int) -> None:
        """Take the position of the last of `count` rows that are handed over now."""
        counted = self.rows > 0 and not self.by_position
        if positions is None or (counted and not positions.kind.counted):
            # A split counted in rows stays so: how many of them were of the present source row is not known.
            self.position, self.position_kind, self.row_records = self.rows + count, PositionKind.ROWS, None
            return
        at, before = positions.at(count - 1), 0
        first = _first_at(positions, at, count)
        if first == 0 and at == self.position and positions.kind == self.position_kind:
            before = self.row_records or 0  # the source row began in an earlier batch
        self.position, self.position_kind = at, positions.kind
        self.row_records = before + count - first if positions.shared else None

    def place_in(self, positions: Positions) -> tuple[int, int]:
        """Return how many rows of a batch are before the source row at our position, and how many are of that source row."""
        until = positions.rows_up_to(self.position)
        before = _first_at(positions, self.position, until)
        return before, until - before

    def pass_over(self, rows: Batch) -> bool:
        """Skip committed rows; say whether the input's rows can be those: at the position they must give the receipt."""
        self.seen += len(rows.splits)
        self.seen_checksum = checksum.add(self.seen_checksum, rows.hashes)
        if rows.metadata is not None:
            self.seen_metadata = checksum.add(self.seen_metadata, rows.metadata)
        given = (self.seen_checksum, self.seen_metadata) == self._all_rows()
        return self.seen < self.rows or (self.seen == self.rows and given)

    def offset_record(self, run: int, task: int) -> OffsetRecord:
        """Return the offset record that the task's next commit writes for the split."""
        return OffsetRecord(
            split=self.planned.id,
            bounds=self.planned.split.bounds,
            position=self.position,
            position_kind=self.position_kind,
            done=self.ended and not self.failed,
            rows=self.rows,
            records=self.records,
            checksum=self.checksum,
            metadata_checksum=self.metadata,
            version=self.planned.version,
            run=run,
            task=task,
            sequence=0 if self.committed is None else self.committed.sequence + 1,
            row_records=self.row_records,
            dead=self.dead,
        )


def _first_at(positions: Positions, position: Position, end: int) -> int:
    """Return the first of the last rows of [0, end) that all have the position; `end` where the last one has another."""
    if end and not positions.shared:
        return end - 1 if positions.at(end - 1) == position else end
    return bisect.bisect_left(range(end), True, key=lambda row: positions.at(row) == position)
