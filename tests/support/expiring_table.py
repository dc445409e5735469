"""Tables whose first rows go by themselves, as those of a topic by its retention; a source row makes several records.

The rows of a range are found by the offset of their source row (`source_row`), which is the same whenever the range is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from eosingest.errors import ChangedError
from eosingest.protocol.source import CommittedPosition, Gap, Position, PositionKind, Recorded
from tests.support.frozen_table import FrozenTables, KeyRange, Tables

_RECORDS_OF_ROWS = (2, 3, 1)  # which source rows make, one after another, where one may make several


def source_row(row: int) -> tuple[int, int]:
    """Return the offset of the source row that a record is made of, and which of that one's records it is, from 0."""
    number = 0
    while row >= (made := _RECORDS_OF_ROWS[number % len(_RECORDS_OF_ROWS)]):
        row, number = row - made, number + 1
    return number * 5 + 3, row


def rows_up_to(position: Position) -> int:
    """Return how many records are made of the source rows up to an offset."""
    row = 0
    while source_row(row)[0] <= cast(int, position):
        row += 1
    return row


def first_unread(committed: CommittedPosition | None) -> int:
    """Return the record at which a reader begins: with the source row at the position, where some of its records are sent."""
    if committed is None or committed.kind != PositionKind.OFFSET:
        return 0
    return rows_up_to(cast(int, committed.position) - (0 if committed.row_records is None else 1))


def gone_in(tables: Tables, split: KeyRange) -> int:
    """Return how many of the first records of a range are gone: all of a source row, or none."""
    lengths = tables.rows.lengths
    before = sum(rows for (table, at), rows in lengths.items() if table == split.table and at < split.start)
    gone = min(max(0, tables.gone[split.table] - before), sum(lengths[part] for part in split.parts))
    while gone and source_row(gone)[1]:
        gone -= 1
    return gone


class ExpiringTables(FrozenTables):
    """The same, whose first rows go."""

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables)
        self.splits.unread = lambda texts: ChangedError(f"{texts[0]}: deleted unread", code="source-records-deleted")

    def gaps(self, ranges: Iterable[KeyRange], recorded: Iterable[Recorded]) -> tuple[Gap, ...]:
        records = {each.split: each for each in recorded}
        found = []
        for split in ranges:
            record = records.get(split.id)
            first = first_unread(None if record is None else record.committed_position)
            end = gone_in(self.tables, split)
            if first < end and (record is None or not record.done):
                text = f"{split.label}, records {first} to {end - 1}"
                at = source_row(end - 1)[0]
                found.append(Gap(split.id, f"{split.item}+{first}", text, end - first, at, PositionKind.OFFSET))
        return tuple(found)
