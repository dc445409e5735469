"""Which of the source's splits an audit reads, what their rows are compared with, and what it cannot compare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eosingest.protocol.audited_source import AuditedSource, audited_source
from eosingest.protocol.offsets.record import COMPLETE, OffsetRecord
from eosingest.protocol.offsets.state import SplitId
from eosingest.records.checksum import Totals
from eosingest.sources.files.listing.source_file import SourceFile
from tests.support.builders import (
    Place,
    by_split,
    control_record,
    fingerprint,
    listing,
    offset_record,
    places,
    source_file,
    split_id,
)
from tests.support.made_up_files import MadeUpFiles

CONTROL = control_record(3, COMPLETE, pinned_since=2, split_size=100)


def file(name: str, length: int = 250) -> SourceFile:
    return source_file(name, length)


def receipt(
    name: str, start: int, *, size: int = 100, done: bool = True, length: int = 250, run: int = 3
) -> OffsetRecord:
    here = min(size, length - start)
    return offset_record(
        name, start, here, rows=10, done=done, checksum=start + 1, read=fingerprint(length), run=run, sequence=3
    )


def audited(
    receipts: Iterable[OffsetRecord],
    files: Iterable[SourceFile],
    *,
    young: tuple[str, ...] = (),
    empty: tuple[str, ...] = (),
) -> AuditedSource:
    listed = listing(*files, too_young=young, empty=empty)
    source, receipts = MadeUpFiles(listed.items), [*receipts]
    return audited_source(source, source.compared(listed, receipts), by_split(receipts), CONTROL)


def read(source: AuditedSource) -> list[Place]:
    return places(source.plan.pending)


def a(start: int) -> SplitId:
    return split_id("a", start)


def test_every_split_with_a_receipt_is_read_done_or_not() -> None:
    source = audited([receipt("a", 0), receipt("a", 200, done=False)], [file("a"), file("new")])
    assert read(source) == [("a", 0), ("a", 200)]
    assert [planned.committed for planned in source.plan.pending] == [receipt("a", 0), receipt("a", 200, done=False)]
    assert [(unit.name, unit.receipt) for unit in source.units] == [
        ("a, split at byte 0", Totals(10, 1)),
        ("a, split at byte 200", Totals(10, 201)),
    ]
    assert source.unread == ()


def test_a_file_that_was_cut_by_another_size_is_compared_as_a_whole() -> None:
    source = audited([receipt("a", 0, size=150, run=2), receipt("a", 150, size=150)], [file("a")])
    assert read(source) == [("a", 0), ("a", 100), ("a", 200)]
    assert all(planned.committed and planned.committed.done for planned in source.plan.pending)
    (unit,) = source.units
    assert (unit.name, unit.receipt, unit.run) == ("a", Totals(20, 152), 2)
    rows = {a(0): Totals(12, 100), a(100): Totals(8, 50), a(200): Totals(0, 2)}
    assert source.unlike(rows) == []
    assert source.unlike({**rows, a(200): Totals(1, 2)}) == [unit]


def test_splits_whose_rows_do_not_give_their_receipt_are_unlike() -> None:
    source = audited([receipt("a", 0), receipt("a", 100), receipt("a", 200)], [file("a")])
    rows = {a(0): Totals(10, 1), a(100): Totals(10, 102), a(200): Totals(9, 201)}
    assert [unit.name for unit in source.unlike(rows)] == ["a, split at byte 100", "a, split at byte 200"]


def test_headers_and_timestamps_are_compared() -> None:
    """Breaks when rows with other headers give a receipt, of a split or of a file that is cut otherwise now."""
    sent = replace(receipt("a", 0), metadata_checksum=5)
    source = audited([sent], [file("a")])
    assert source.unlike({a(0): Totals(10, 1, 5)}) == []
    assert source.unlike({a(0): Totals(10, 1, 6)}) == [source.units[0]]

    parts = [replace(receipt("a", start, size=150), metadata_checksum=5) for start in (0, 150)]
    whole = audited(parts, [file("a")])
    assert whole.unlike({a(0): Totals(20, 152, 10), a(100): Totals(), a(200): Totals()}) == []
    assert whole.unlike({a(0): Totals(20, 152, 9), a(100): Totals(), a(200): Totals()}) == [whole.units[0]]


def test_what_cannot_be_read_is_named_with_its_reason() -> None:
    changed = replace(receipt("changed", 0), version=fingerprint(250, content="other", mtime_ms=0).to_json())
    receipts = [changed, receipt("young", 0), receipt("emptied", 0)]
    receipts += [receipt("gone", start) for start in (0, 100, 200)]
    source = audited(receipts, [file("changed")], young=("young",), empty=("emptied",))
    assert (read(source), source.units) == ([], ())
    assert source.unread == (
        "changed: changed since it was sent",
        "emptied: changed since it was sent",
        "gone: sent, and not among the files that `path` names now, like everything else that was sent",
        "young: left alone by source.min_age",
    )


def test_what_path_does_not_name_today_is_told_apart() -> None:
    """Breaks when a job that sends a day at a time can never be verified against its source."""
    source = audited([receipt("today", 0), receipt("yesterday", 0)], [file("today")])
    assert (read(source), source.unread, source.elsewhere) == ([("today", 0)], (), ("yesterday",))
