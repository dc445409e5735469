"""The planned splits as columns: every one comes back as it went in, and a million of them stay small."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.plan import PlannedSplit
from eosingest.protocol.source import PositionKind
from eosingest.protocol.split_table import SplitTable
from eosingest.sources.files.listing.fingerprint import Fingerprint
from tests.support.builders import fingerprint, offset_record, place, planned_split

ONE = fingerprint(300, mtime_ms=1_700_000_000_123, content="ab" * 16)
OTHER = fingerprint(2**40, mtime_ms=5, content="")


def committed(split: PlannedSplit) -> OffsetRecord:
    return offset_record(
        *place(split),
        rows=7,
        records=6,
        position=41,
        position_kind=PositionKind.BYTES,
        checksum=2**64 - 1,
        metadata_checksum=3,
        read=Fingerprint.from_json(split.version),
        run=2,
        task=3,
        sequence=9,
    )


def splits() -> dict[int, PlannedSplit]:
    plain = [
        planned_split(name, start, now=now)
        for name, now in (("a/b", ONE), ("ünï\u2028 c", OTHER), ("a/b2", ONE), ("\udcff", ONE))
        for start in (0, 100, 2**41)
    ]
    keys = (-(2**63), 2**63 - 1, 0, -1, 1, 17, -99, 5, 6, 7, 8, 9)
    return dict(zip(keys, plain, strict=True))


def test_every_split_comes_back_as_it_went_in() -> None:
    """Breaks when a row finds another split than its own: its records would be counted, or left out, by a wrong offset."""
    known = splits()
    known[17] = replace(known[17], committed=committed(known[17]))
    table = pickle.loads(pickle.dumps(SplitTable(known)))
    assert dict(table) == known


@pytest.mark.parametrize("key", [2, -2, 2**63 - 2, -(2**63) + 1])
def test_a_hash_of_no_planned_split_is_not_found(key: int) -> None:
    assert SplitTable(splits()).get(key) is None
    assert SplitTable({}).get(key) is None


def test_a_file_is_told_once() -> None:
    """Breaks when splits become objects again: a million took a GB in each worker."""
    name = "n" * 50
    many = {number: planned_split(name, number * 100, now=ONE) for number in range(10_000)}
    assert len(pickle.dumps(SplitTable(many))) < 40 * len(many)
