"""What `verify --against-source` makes of a source that does not hold still."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from eosingest.app.verify import _Verification
from eosingest.audit.classify import by_source
from eosingest.audit.receipts import INCONCLUSIVE, Circumstances, Compared, Copies, Found
from eosingest.protocol.audited_source import audited_source
from eosingest.protocol.offsets.record import COMPLETE
from eosingest.protocol.source import Item
from eosingest.records.checksum import Totals
from tests.support.builders import by_split, control_record, fingerprint, listing, offset_record, source_file, split_id
from tests.support.made_up_files import MadeUpFiles

CONTROL = control_record(3, COMPLETE, split_size=100)


class Moving(MadeUpFiles):
    """Of its files some change while they are read."""

    changing: tuple[str, ...] = ()

    def changed(self, items: Iterable[Item]) -> list[str]:
        return [item.name for item in items if item.name in self.changing]


@pytest.mark.parametrize("changing", [(), ("b",)])
def test_an_item_that_changes_while_it_is_read_is_not_held_against_its_receipts(changing: tuple[str, ...]) -> None:
    """Breaks when what is read of the new content is called a mismatch with what was sent."""
    listed = listing(source_file("a", 100), source_file("b", 100))
    receipts = [offset_record(name, rows=10, checksum=1, done=True, read=fingerprint(100), run=3) for name in "ab"]
    source = Moving(listed.items)
    source.changing = changing
    rows = audited_source(source, listed, by_split(receipts), CONTROL)
    audit = object.__new__(_Verification)
    audit._source, audit._control = source, CONTROL
    sums = {split_id("a"): Totals(10, 1), split_id("b"): Totals(9, 2)}
    found = audit._read_source(SimpleNamespace(read_source=lambda *_, **__: sums, other_code=lambda plan: ""), rows)
    if changing:
        assert found == Compared(unlike=(), unread=("b: changed while it was read",), whole=False)
    else:
        assert found == Compared(unlike=("b, split at byte 0",), whole=True)


def test_a_split_that_two_readers_read_differently_is_judged_by_the_reader_of_a_run() -> None:
    """Breaks when a habit of another reader is called a loss (rule 39), or when a loss is called a habit."""
    listed = listing(*(source_file(name, 100) for name in "abc"))
    receipts = [offset_record(name, rows=10, checksum=1, done=True, read=fingerprint(100), run=3) for name in "abc"]
    source = Moving(listed.items)
    rows = audited_source(source, listed, by_split(receipts), CONTROL)
    audit = object.__new__(_Verification)
    audit._source, audit._control = source, CONTROL
    right, wrong = Totals(10, 1), Totals(10, 2)
    sums = {
        True: {split_id("a"): right, split_id("b"): wrong, split_id("c"): wrong},
        False: {split_id("a"): right, split_id("b"): right, split_id("c"): wrong},
    }
    spark = SimpleNamespace(
        other_code=lambda plan: "another reader",
        read_source=lambda *_, by_other=False: sums[by_other],
        first_differences=lambda: {split_id("b"): 7},
    )
    found = audit._read_source(spark, rows)
    assert found.unlike == ("c, split at byte 0",) and found.whole
    (differ,) = found.differ
    assert differ.startswith("b, split at byte 0: the readers differ, first in row 7: ") and "another reader" in differ
    judgement = by_source(Totals(30, 3), Found(Totals(30, 3)), Copies(), replace(found, unlike=()), Circumstances())
    assert judgement.verdict == INCONCLUSIVE
    assert [(each.kind, each.text) for each in judgement.findings] == [("readers-differ", differ)]
