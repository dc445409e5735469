"""What `verify --against-source` makes of a source that does not hold still."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace

import pytest

from eosingest.app.verify import _Verification
from eosingest.audit.receipts import Compared
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
    found = audit._read_source(SimpleNamespace(read_source=lambda *_, **__: sums), rows)
    if changing:
        assert found == Compared(unlike=(), unread=("b: changed while it was read",), whole=False)
    else:
        assert found == Compared(unlike=("b, split at byte 0",), whole=True)
