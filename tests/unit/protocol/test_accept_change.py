"""A changed spec in the middle of a job: taken in only where every receipt since the pin is given again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eosingest.errors import ChangedError
from eosingest.protocol import accept_change
from eosingest.protocol.audited_source import AuditedSource, Unit
from eosingest.protocol.offsets.record import FAILED
from eosingest.records.checksum import Totals
from tests.support.builders import by_split, control_record, moved, offset_record, places, plan, split_id

CONTROL = control_record(4, FAILED, pinned_since=3, pin_open=True)
RECEIPT = offset_record("a", rows=5, checksum=77, run=3)
ROWS = AuditedSource(plan(), (Unit("a, split at byte 0", (split_id("a"),), Totals(5, 77), 3),), ())


def refused(rows: AuditedSource, **sums: Totals) -> str:
    with pytest.raises(ChangedError) as raised:
        accept_change.refuse_unproven(rows, {split_id(name): total for name, total in sums.items()})
    assert raised.value.code == "change-not-proven"
    assert "nothing was sent" in raised.value.hint
    return raised.value.message


def test_what_earlier_jobs_sent_needs_no_proof() -> None:
    """Breaks when the files of a run that was complete must agree with a spec that came after it."""
    offsets = by_split([RECEIPT, moved(RECEIPT, "old", run=2), moved(RECEIPT, "new", run=4)])
    assert places(accept_change.sent_since_pinned(CONTROL, offsets)) == [("a", 0), ("new", 0)]


def test_receipts_that_are_given_again() -> None:
    accept_change.refuse_unproven(ROWS, {split_id("a"): Totals(5, 77)})


@pytest.mark.parametrize("found", [Totals(5, 78), Totals(6, 77), Totals()])
def test_a_split_that_gives_other_rows_is_named(found: Totals) -> None:
    assert "a, split at byte 0: the changed spec gives other rows than were sent" in refused(ROWS, a=found)


def test_what_cannot_be_read_is_not_proven() -> None:
    """Breaks when a file that vanished, changed or is too young counts as proven."""
    unread = replace(ROWS, unread=("b: changed since it was sent",), elsewhere=("c",))
    message = refused(unread, a=Totals(5, 77))
    assert "b: changed since it was sent" in message
    assert "c: sent, and not among the files" in message


@pytest.mark.parametrize("part", ["record.partition", "sink.partitioner"])
def test_where_a_record_went_no_receipt_says(part: str) -> None:
    with pytest.raises(ChangedError, match=part):
        accept_change.refuse_unprovable(["record.value", part])
    accept_change.refuse_unprovable(["record.value", "record.headers", "record.timestamp", "source.options"])
