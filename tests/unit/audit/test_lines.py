"""Which files of lines an audit reads itself, so that none is read by the reader that sent it, where there are two."""

from __future__ import annotations

from eosingest.protocol.plan import PlannedItem
from eosingest.protocol.source import PositionKind
from eosingest.sources.files.reading.audit_reader import split_for_audit
from tests.support.builders import fingerprint, offset_record, plan, planned_item, planned_split, source_file

SIZE = 100


def planned(name: str, kinds: list[str], *, done: bool = True) -> PlannedItem:
    content = fingerprint(SIZE * len(kinds))
    splits = []
    for index, kind in enumerate(kinds):
        place = (name, index * SIZE, SIZE)
        record = offset_record(*place, rows=10, done=done, checksum=1, read=content, sequence=1, position_kind=kind)
        splits.append(planned_split(*place, now=content, committed=record))
    return planned_item(source_file(name, SIZE * len(kinds)), splits, started=True)


def here(*files: PlannedItem, by_another_reader: bool = True) -> list[str]:
    by_spark, by_lines = split_for_audit(None, plan(*files, split_size=SIZE), 2, by_another_reader=by_another_reader)
    assert {entry.item.name for entry in (*by_spark.items, *by_lines.items)} == {entry.item.name for entry in files}
    return [entry.item.name for entry in by_lines.items]


def test_what_spark_sent_is_read_here_and_what_tasks_sent_by_spark() -> None:
    """Breaks when the reader of the run is asked whether it read right."""
    rows, lines = [PositionKind.ROWS] * 3, [PositionKind.BYTES] * 3
    files = [planned("a.bz2", rows), planned("b.txt", rows), planned("c.txt", lines)]
    assert here(*files) == ["a.bz2", "b.txt"]
    assert here(*files, by_another_reader=False) == []


def test_a_file_of_both_readers_or_half_a_bz2_is_left_to_spark() -> None:
    both = [PositionKind.ROWS, PositionKind.BYTES]
    assert here(planned("a.txt", both), planned("b.bz2", [PositionKind.ROWS], done=False)) == []
