"""What is to be read for an audit, and what it is compared with: sums, extents, shares."""

from __future__ import annotations

import random

import pytest

from eosingest.audit.receipts import Extent, Slice, expected_of, extents, shares
from eosingest.kafka.ports import OffsetRange
from eosingest.protocol.offsets.record import Audit, OffsetRecord
from eosingest.records.checksum import MODULUS, Totals, record_hash, record_hashes
from tests.support.builders import offset_record


def receipt(records: int, checksum: int) -> OffsetRecord:
    return offset_record(rows=5, records=records, checksum=checksum)


# ---- sums ----------------------------------------------------------------------------------------------------------


def test_receipts_add_up_with_what_was_sent_again_since() -> None:
    audit = Audit(retired_records=7, retired_checksum=MODULUS - 1)
    assert expected_of([receipt(2, 5), receipt(3, 6)], audit) == Totals(12, 10)
    assert expected_of([], Audit()) == Totals(0, 0)


def test_sums_and_differences_stay_below_the_modulus() -> None:
    high = Totals(1, MODULUS - 1)
    assert high + high == Totals(2, MODULUS - 2)
    assert Totals(1, 3) - Totals(2, 5) == Totals(-1, MODULUS - 2)
    assert (high + Totals(4, 9)) - high == Totals(4, 9)


def test_many_hashes_are_those_of_single_records() -> None:
    records = [(None, None), (b"", b""), (None, b"v"), (b"k", None), (b"k", b"v" * 1000), (b"", None), (None, b"")]
    assert record_hashes(records) == [record_hash(key, value) for key, value in records]
    assert len(set(record_hashes(records))) > 4, "a null key is not an empty one"


# ---- extents -------------------------------------------------------------------------------------------------------


def read(audit: Audit, *ranges: tuple[int, int]) -> list[list[Slice]]:
    return [extent.slices() for extent in extents(audit, [OffsetRange(*held) for held in ranges])]


def test_the_jobs_records_lie_between_start_and_end_and_what_follows_is_late() -> None:
    audit = Audit(start=(10, 0, 5), end=(20, 7, 5))
    assert read(audit, (0, 25), (0, 7), (0, 5)) == [
        [Slice(0, 10, 20), Slice(0, 20, 25, late=True)],
        [Slice(1, 0, 7)],
        [],
    ]


def test_while_the_job_is_not_complete_everything_may_be_its_own() -> None:
    assert read(Audit(start=(10,)), (0, 25)) == [[Slice(0, 10, 25)]]


def test_without_a_known_start_the_topic_is_read_from_where_it_begins() -> None:
    assert read(Audit(), (0, 25), (3, 9)) == [[Slice(0, 0, 25)], [Slice(1, 3, 9)]]


def test_a_partition_that_was_added_later_belongs_to_the_job() -> None:
    assert read(Audit(start=(10,), end=(20,)), (0, 20), (0, 4)) == [[Slice(0, 10, 20)], [Slice(1, 0, 4)]]


@pytest.mark.parametrize(
    ("held", "removed", "slices"),
    [
        ((0, 20), 0, [Slice(0, 10, 20)]),
        ((10, 20), 0, [Slice(0, 10, 20)]),
        ((11, 20), 1, [Slice(0, 11, 20)]),
        ((20, 20), 10, []),
        ((22, 25), 12, [Slice(0, 22, 25, late=True)]),
        ((0, 15), 0, [Slice(0, 10, 15)]),
        ((0, 5), 0, []),
    ],
    ids=["before us", "up to us", "one of ours", "all", "beyond", "a log cut short", "cut short before us"],
)
def test_what_the_partition_no_longer_holds(held: tuple[int, int], removed: int, slices: list[Slice]) -> None:
    (extent,) = extents(Audit(start=(10,), end=(20,)), [OffsetRange(*held)])
    assert extent.removed == removed
    assert extent.slices() == slices


def test_no_slice_is_empty_or_goes_back() -> None:
    for seed in range(500):
        choose = random.Random(seed)
        begins, start, end, high = (choose.randrange(6) for _ in range(4))
        for part in Extent(0, begins, max(begins, start), end, high).slices():
            assert max(begins, start) <= part.start < part.end <= high
            assert part.late is (part.start >= end)


# ---- shares --------------------------------------------------------------------------------------------------------


def test_every_offset_is_dealt_out_once_in_even_shares() -> None:
    for seed in range(300):
        choose = random.Random(seed)
        parts = [Slice(n, 5, 5 + choose.randrange(1, 50), bool(n % 2)) for n in range(choose.randrange(1, 6))]
        tasks = choose.randrange(1, 8)
        dealt = shares(parts, tasks)
        offsets = [(s.partition, offset, s.late) for share in dealt for s in share for offset in range(s.start, s.end)]
        assert offsets == [(s.partition, offset, s.late) for s in parts for offset in range(s.start, s.end)]
        sizes = [sum(s.end - s.start for s in share) for share in dealt]
        assert len(sizes) <= tasks
        assert all(sizes)
        assert max(sizes) <= -(-sum(sizes) // tasks)


def test_nothing_to_read_is_no_share() -> None:
    assert shares([], 4) == []
