"""Items that changed after a part of them was sent: which may be accepted, and what must be proven of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eosingest.protocol import corrected_items
from eosingest.protocol.corrected_items import Corrections
from eosingest.protocol.offsets.record import DRIVER, FAILED, OffsetRecord
from eosingest.records.checksum import Totals
from tests.support.builders import by_split, control_record, fingerprint, offset_record, places, split, split_id
from tests.support.made_up_files import EvenSplits, MadeUpFiles

CONTROL = control_record(4, FAILED, pinned_since=3, pin_open=True, split_size=100)
OLD = fingerprint(250, content="old").to_json()


def _record(start: int, length: int, *, done: bool, rows: int = 5) -> OffsetRecord:
    made = offset_record("a", start, rows=rows, checksum=start + rows, run=3, done=done)
    return replace(made, bounds=split("a", start, length).bounds, version=OLD)


def _found(source: MadeUpFiles, records: Iterable[OffsetRecord]) -> Corrections | None:
    offsets = by_split(records)
    return corrected_items.corrections(source, source.plan(recorded=offsets.values()), offsets, CONTROL)


def _file(length: int) -> MadeUpFiles:
    source = MadeUpFiles()
    source.put("a", length, mtime_ms=2, content="new")
    return source


def test_the_records_of_a_corrected_file_get_its_version_and_its_last_split_its_length() -> None:
    found = _found(_file(280), [_record(0, 100, done=True), _record(200, 50, done=False)])
    assert found is not None
    first, last = found.records["a"]
    assert (first.done, first.bounds, last.done, last.bounds) == (True, {"length": 100}, False, {"length": 80})
    assert {(each.run, each.task, each.sequence) for each in (first, last)} == {(4, DRIVER, 1)}
    assert first.version == last.version == fingerprint(280, content="new", mtime_ms=2).to_json()
    assert places(found.rows.plan.pending) == [("a", 0), ("a", 200)], "the splits that were sent are read, no others"


def test_an_item_is_accepted_only_if_each_split_gives_its_receipt() -> None:
    """Breaks when one split that is as it was proves the others, too."""
    source = _file(280)
    found = _found(source, [_record(0, 100, done=True), _record(200, 50, done=False)])
    assert found is not None
    good = {split_id("a"): Totals(5, 5), split_id("a", 200): Totals(5, 205)}
    assert found.unproven(source, good) == {}
    for place in good:
        (units,) = found.unproven(source, {**good, place: Totals(5, 6)}).values()
        assert [unit.splits for unit in units] == [(place,)]


def test_other_cuts_are_never_accepted() -> None:
    """A done last split that became longer would lose rows; one beyond the end of the file cannot be read."""
    assert _found(_file(280), [_record(0, 100, done=False), _record(200, 50, done=True)]) is None
    assert _found(_file(150), [_record(0, 100, done=True), _record(200, 50, done=False)]) is None


def test_what_was_sent_whole_and_what_did_not_change_need_no_proof() -> None:
    whole = [_record(0, 100, done=True), _record(100, 100, done=True), _record(200, 50, done=True)]
    assert _found(_file(280), whole) is None
    source = MadeUpFiles()
    source.put("a", 250, content="old")
    assert _found(source, [_record(0, 100, done=True)]) is None


def test_a_kind_whose_items_cannot_be_corrected() -> None:
    class Ranges(EvenSplits):
        may_be_corrected = False

    source = _file(280)
    source.splits = Ranges()
    assert _found(source, [_record(0, 100, done=True)]) is None
