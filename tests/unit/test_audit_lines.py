"""Which files of lines an audit reads itself, so that none is read by the reader that sent it, where there are two."""

from __future__ import annotations

from eosingest.audit.scan_lines import parted
from eosingest.protocol.offsets.record import POSITION_KIND_BYTES, POSITION_KIND_ROWS, OffsetRecord
from eosingest.protocol.plan import Plan, PlannedFile, PlannedSplit
from eosingest.protocol.source import Fingerprint, SourceFile, Split

SIZE = 100


def planned(name: str, kinds: list[str], *, done: bool = True) -> PlannedFile:
    content = Fingerprint(SIZE * len(kinds), 1, "same")
    splits = []
    for index, kind in enumerate(kinds):
        start = index * SIZE
        record = OffsetRecord(
            name, start, SIZE, 10, done, 10, 10, 1, content, run=1, task=0, sequence=1, position_kind=kind
        )
        splits.append(PlannedSplit(Split(name, start, SIZE), content, record))
    file = SourceFile(name, f"/data/{name}", content.length, 1, splittable=True)
    return PlannedFile(file, len(kinds), tuple(splits), started=True)


def here(*files: PlannedFile, by_another_reader: bool = True) -> list[str]:
    by_spark, by_lines = parted(None, Plan(SIZE, files), 2, by_another_reader=by_another_reader)
    assert {entry.file.name for entry in (*by_spark.files, *by_lines.files)} == {entry.file.name for entry in files}
    return [entry.file.name for entry in by_lines.files]


def test_what_spark_sent_is_read_here_and_what_tasks_sent_by_spark() -> None:
    """Breaks when the reader of the run is asked whether it read right."""
    rows, lines = [POSITION_KIND_ROWS] * 3, [POSITION_KIND_BYTES] * 3
    files = [planned("a.bz2", rows), planned("b.txt", rows), planned("c.txt", lines)]
    assert here(*files) == ["a.bz2", "b.txt"]
    assert here(*files, by_another_reader=False) == []


def test_a_file_of_both_readers_or_half_a_bz2_is_left_to_spark() -> None:
    both = [POSITION_KIND_ROWS, POSITION_KIND_BYTES]
    assert here(planned("a.txt", both), planned("b.bz2", [POSITION_KIND_ROWS], done=False)) == []
