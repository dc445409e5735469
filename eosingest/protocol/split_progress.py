"""One split on its way through a task: what came in, what is handed over, what is committed, and the receipt of it. Pure.

Kept by task.py, one for each split that its input enters, and written down as the split's offset record with each commit.
"""

from __future__ import annotations

from dataclasses import dataclass

from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.plan import PlannedSplit
from eosingest.protocol.source import POSITION_KIND_ROWS, Position
from eosingest.protocol.task_contract import Batch
from eosingest.records import checksum


@dataclass
class SplitProgress:
    """One split on its way: `seen` rows came in, the first `rows` are handed over, `committed` is in the log.

    `position` is where those rows end, of the kind `position_kind`; where rows are all that is counted, their number.
    `checksum` covers the rows handed over, `seen_checksum` those that came in: where as many came in as are handed over the
    two are equal, or the split's rows are not those that were sent. `metadata` is the same over headers and timestamps, None
    where the receipt of an earlier release says nothing of them.
    """

    planned: PlannedSplit
    committed: OffsetRecord | None
    seen: int = 0
    rows: int = 0
    position: Position = 0
    position_kind: str = POSITION_KIND_ROWS
    records: int = 0
    checksum: int = 0
    seen_checksum: int = 0
    metadata: int | None = 0
    seen_metadata: int = 0
    ended: bool = False
    failed: bool = False

    @property
    def done(self) -> bool:
        """Whether the log says that the split is done."""
        return self.committed is not None and self.committed.done

    @property
    def committed_rows(self) -> int:
        """How many rows of it the log has as committed."""
        return self.committed.rows if self.committed is not None else 0

    @property
    def dirty(self) -> bool:
        """Whether the log does not say yet what is known here."""
        return not self.done and (self.rows > self.committed_rows or (self.ended and not self.failed))

    def resume(self) -> None:
        """Take position and receipt from the committed record."""
        if self.committed is not None:
            self.rows = self.committed.rows
            self.position, self.position_kind = self.committed.position, self.committed.position_kind
            self.records = self.committed.records
            self.checksum = self.committed.checksum
            self.metadata = self.committed.metadata_checksum if self.committed.rows else 0

    def take(self, rows: Batch) -> None:
        """Count rows as handed over."""
        self.seen += len(rows.splits)
        self.rows += len(rows.splits)
        self.records += len(rows.splits)
        if rows.positions is None:
            self.position, self.position_kind = self.rows, POSITION_KIND_ROWS
        else:
            self.position, self.position_kind = rows.positions.at(len(rows.splits) - 1), rows.positions.kind
        self.checksum = self.seen_checksum = checksum.add(self.checksum, rows.hashes)
        if rows.metadata is not None and self.metadata is not None:
            self.metadata = self.seen_metadata = checksum.add(self.metadata, rows.metadata)

    def pass_over(self, rows: Batch) -> bool:
        """Count rows that were sent before; say whether they can be those: at their end they have to give the receipt."""
        self.seen += len(rows.splits)
        self.seen_checksum = checksum.add(self.seen_checksum, rows.hashes)
        if rows.metadata is not None:
            self.seen_metadata = checksum.add(self.seen_metadata, rows.metadata)
        given = self.seen_checksum == self.checksum and self.metadata in (None, self.seen_metadata)
        return self.seen < self.rows or (self.seen == self.rows and given)

    def offset_record(self, run: int, task: int) -> OffsetRecord:
        """Return what a commit of the task writes down for the split."""
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
        )
