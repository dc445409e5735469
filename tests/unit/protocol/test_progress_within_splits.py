"""Progress inside a split: by bytes where positions are bytes, by the rows so far elsewhere; what earlier runs sent."""

from __future__ import annotations

from dataclasses import replace

from eosingest.cli.progress import line_of
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.plan import Plan
from eosingest.protocol.run_progress import RunProgress
from eosingest.protocol.source import PositionKind
from tests.support.builders import offset_record, planned_item, planned_split, source_file
from tests.support.builders import plan as plan_of


def offset(start: int, rows: int, *, done: bool = False, position: int | None = None) -> OffsetRecord:
    kind = PositionKind.ROWS if position is None else PositionKind.BYTES
    return offset_record("a", start, rows=rows, position=position, position_kind=kind, done=done)


def plan(*committed: OffsetRecord | None) -> Plan:
    splits = [planned_split("a", at * 100, committed=before) for at, before in enumerate(committed)]
    file = planned_item(source_file("a", 300), splits)
    return plan_of(file, committed_records=sum(each.records for each in committed if each))


def size_done(planned: Plan, *seen: OffsetRecord) -> int:
    progress = RunProgress(planned)
    progress.take(seen)
    return progress.after(10.0).size_done


def test_by_the_bytes_of_the_position() -> None:
    assert size_done(plan(None, None), offset(100, 7, position=140)) == 40
    assert size_done(plan(None, offset(100, 7, position=140)), offset(100, 9, position=160)) == 20  # of this run


def test_by_rows_of_the_size_that_rows_had_so_far() -> None:
    assert size_done(plan(None, None), offset(0, 10)) == 0  # of which size, nobody knows yet
    assert size_done(plan(None, None), offset(0, 10, done=True), offset(100, 5)) == 150
    assert size_done(plan(None, offset(100, 3)), offset(0, 10, done=True), offset(100, 5)) == 120


def test_by_rows_where_positions_are_no_bytes() -> None:
    """Breaks when the number of a row is taken for a byte: at first by a reader of rows, or by one that seeks a row."""
    sent = offset(0, 10, done=True)
    assert size_done(plan(None, None), sent, replace(offset(100, 5), position_kind=PositionKind.KEY)) == 150
    assert size_done(plan(None, offset(100, 3)), sent, offset(100, 5, position=140)) == 120


def test_never_a_whole_split_before_it_is_done() -> None:
    assert size_done(plan(None, None), offset(0, 10, done=True), offset(100, 50)) == 199
    assert size_done(plan(None), offset(0, 10, position=5000)) == 99  # of what is compressed in it


def test_what_earlier_runs_sent_is_said() -> None:
    progress = RunProgress(plan(offset(0, 3), None)).after(10.0)
    assert progress.records_before == 3
    assert "0 records (3 more by earlier runs)" in line_of(progress)
    assert "earlier" not in line_of(RunProgress(plan(None)).after(10.0))


def test_what_comes_in_two_looks_counts_as_in_one() -> None:
    """Breaks when a look counts a record again that an earlier one has counted, or forgets it."""
    planned = plan(offset(0, 3), None, None)
    seen = [offset(0, 5), offset(0, 9, done=True), offset(100, 4), offset(100, 6), offset(200, 7, done=True)]
    at_once, by_and_by = RunProgress(planned), RunProgress(planned)
    at_once.take(seen)
    for each in (*seen, seen[-1], seen[2], seen[3]):  # and a read that broke off begins again
        by_and_by.take([each])
    assert by_and_by.after(1.0) == at_once.after(1.0)
    assert (at_once.after(1.0).records_sent, at_once.after(1.0).splits_done) == (6 + 6 + 7, 2)


def test_splits_of_others_do_not_count() -> None:
    progress = RunProgress(plan(None))
    progress.take([offset(700, 5, done=True)])
    assert progress.after(1.0).records_sent == 0
