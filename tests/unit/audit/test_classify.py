"""What differences prove. Topics are made here from real hashes, and the sums from the records, so that nothing is assumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from eosingest.audit.classify import by_receipts, by_source
from eosingest.audit.receipts import (
    CHANGED,
    DOUBLED,
    FOREIGN,
    INCONCLUSIVE,
    LOST,
    MISMATCH,
    REMOVED,
    SURPLUS,
    UNLIKE,
    UNREAD,
    VERIFIED,
    Circumstances,
    Compared,
    Copies,
    Finding,
    Found,
    Judgement,
    Missing,
)
from eosingest.records.checksum import Totals, record_hash

Record = tuple[bytes | None, bytes | None]
ALONE = Circumstances()


def totals(records: Sequence[Record]) -> Totals:
    return sum((Totals(1, record_hash(*record)) for record in records), Totals())


def copies_of(found: Sequence[Record], late: Sequence[Record], expected: Sequence[Record]) -> Copies:
    """As audit/scan.py counts them."""
    count = Counter(record_hash(*record) for record in [*found, *late])
    late_count = Counter(record_hash(*record) for record in late)
    surplus = totals([*found, *late]) - totals(expected)
    return Copies(
        sum((Totals(n - 1, h * (n - 1)) for h, n in count.items() if n > 1), Totals()),
        count[surplus.checksum] if surplus.records == 1 else 0,
        sum(n for h, n in late_count.items() if count[h] > n),
        ("partition 0, offset 7",),
    )


def judged(
    expected: Sequence[Record],
    found: Sequence[Record],
    late: Sequence[Record] = (),
    circumstances: Circumstances = ALONE,
) -> Judgement:
    assert Counter(expected) != Counter([*found, *late]), "equal sums are verified without a judgement"
    return by_receipts(
        totals(expected), Found(totals(found), totals(late)), copies_of(found, late, expected), circumstances
    )


def kinds(judgement: Judgement) -> list[tuple[str, int]]:
    return [(finding.kind, finding.records) for finding in judgement.findings]


OURS: list[Record] = [(b"k", str(n).encode()) for n in range(20)]
EQUAL: list[Record] = [(None, b"heartbeat")] * 5 + [(b"k", None)] * 3 + [(None, None)] * 2
THEIRS: list[Record] = [(b"foreign", str(n).encode()) for n in range(4)]
RETENTION = Circumstances(removed=("partition 0 begins at offset 7",))


# ---- by the receipts alone -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [OURS, OURS + EQUAL], ids=["all different", "with equal rows"])
class TestByReceipts:
    def test_lost(self, source: list[Record]) -> None:
        for lost in (1, 5, len(source)):
            judgement = judged(source, source[lost:])
            assert (judgement.verdict, kinds(judgement)) == (MISMATCH, [(LOST, lost)])

    def test_changed(self, source: list[Record]) -> None:
        judgement = judged(source, [(b"k", b"changed"), *source[1:]])
        assert (judgement.verdict, kinds(judgement)) == (MISMATCH, [(CHANGED, 1)])

    def test_one_doubled(self, source: list[Record]) -> None:
        for record in (source[0], source[-1]):
            judgement = judged(source, [*source, record])
            assert (judgement.verdict, kinds(judgement)) == (MISMATCH, [(DOUBLED, 1)])
            assert judgement.findings[0].examples == ("partition 0, offset 7",)

    def test_one_foreign(self, source: list[Record]) -> None:
        judgement = judged(source, [*source, THEIRS[0]])
        assert (judgement.verdict, kinds(judgement)) == (INCONCLUSIVE, [(FOREIGN, 1)])

    def test_late_records_are_told_one_by_one(self, source: list[Record]) -> None:
        judgement = judged(source, source, [*THEIRS, source[0], source[3]])
        assert (judgement.verdict, kinds(judgement)) == (MISMATCH, [(DOUBLED, 2), (FOREIGN, 4)])
        judgement = judged(source, source, [*THEIRS, *THEIRS])
        assert (judgement.verdict, kinds(judgement)) == (INCONCLUSIVE, [(FOREIGN, 8)])

    def test_what_the_brokers_may_have_removed_is_not_lost(self, source: list[Record]) -> None:
        judgement = judged(source, source[3:], circumstances=RETENTION)
        assert (judgement.verdict, kinds(judgement)) == (INCONCLUSIVE, [(LOST, 3), (REMOVED, 0)])
        assert "partition 0 begins at offset 7" in judgement.findings[-1].text
        judgement = judged(source, [THEIRS[0], *source[1:]], circumstances=RETENTION)
        assert judgement.verdict == INCONCLUSIVE

    def test_retention_does_not_excuse_a_double(self, source: list[Record]) -> None:
        assert judged(source, [*source, source[0]], circumstances=RETENTION).verdict == MISMATCH


def test_several_doubled_are_proven_where_the_source_has_no_equal_rows() -> None:
    judgement = judged(OURS, [*OURS, *OURS[:7]])
    assert (judgement.verdict, kinds(judgement)) == (MISMATCH, [(DOUBLED, 7)])


def test_several_foreign_are_proven_where_nothing_in_the_topic_is_equal() -> None:
    judgement = judged(OURS, [*OURS, *THEIRS], circumstances=Circumstances(writers=("app-7",)))
    assert (judgement.verdict, kinds(judgement)) == (INCONCLUSIVE, [(FOREIGN, 4)])
    assert "app-7" in judgement.findings[0].text


def test_a_surplus_that_the_sums_do_not_explain_is_said_as_such() -> None:
    """Doubled rows among rows that are equal anyway: which of both is too many cannot be told."""
    found = [*OURS, *EQUAL, OURS[0], OURS[1]]
    judgement = judged(OURS + EQUAL, found)
    assert (judgement.verdict, kinds(judgement)) == (MISMATCH, [(SURPLUS, 2)])
    assert "--against-source" in judgement.findings[0].text
    judgement = judged(OURS + EQUAL, found, circumstances=Circumstances(writers=("app-7",)))
    assert (judgement.verdict, kinds(judgement)) == (INCONCLUSIVE, [(SURPLUS, 2)])


def test_as_many_foreign_records_as_there_are_copies_are_not_called_doubled() -> None:
    foreign: list[Record] = [(b"foreign", str(n).encode()) for n in range(7)]
    assert copies_of(OURS + EQUAL, [], []).copies.records == 7
    judgement = judged(OURS + EQUAL, [*OURS, *EQUAL, *foreign])
    assert kinds(judgement) == [(SURPLUS, 7)]


def test_as_many_lost_as_doubled_is_no_proof_of_a_change() -> None:
    judgement = judged(OURS, [*OURS[1:], OURS[5]])
    assert (judgement.verdict, kinds(judgement)) == (MISMATCH, [(CHANGED, 1)])
    assert "or as many are lost as are doubled" in judgement.findings[0].text
    assert "or as many" not in judged(OURS, [THEIRS[0], *OURS[1:]]).findings[0].text


def test_lost_hidden_by_a_copy_that_came_later_is_found() -> None:
    """The topic as a whole has the number it should, the job's own part has not."""
    judgement = judged(OURS, OURS[1:], [OURS[5]])
    assert judgement.verdict == MISMATCH


# ---- record by record, against the source --------------------------------------------------------------------------

EXPECTED, OTHER = Totals(20, 99), Found(Totals(19, 1))


def against(
    *missing: Missing,
    unknown: int = 0,
    circumstances: Circumstances = ALONE,
    found: Found = OTHER,
    unlike: tuple[str, ...] = (),
    unread: tuple[str, ...] = (),
    whole: bool = True,
    copies: Copies = Copies(),  # noqa: B008 - frozen
) -> Judgement:
    compared = Compared(missing, unknown, ("partition 1, offset 4",) if unknown else (), unlike, unread, whole)
    return by_source(EXPECTED, found, copies, compared, circumstances)


A, B = "data/a, split at byte 0", "data/b, split at byte 65,536"


def lines(judgement: Judgement) -> list[tuple[str, int, str | None]]:
    return [(finding.kind, finding.records, finding.split) for finding in judgement.findings]


def test_lost_and_doubled_are_named_by_split() -> None:
    judgement = against(Missing(LOST, A, 2, ("row 7",)), Missing(DOUBLED, B, 3, ("partition 0, offset 9",)))
    assert judgement.verdict == MISMATCH
    assert lines(judgement) == [(DOUBLED, 3, B), (LOST, 2, A)]
    assert [finding.examples for finding in judgement.findings] == [("partition 0, offset 9",), ("row 7",)]


def test_a_missing_row_and_a_record_of_nobody_are_one_that_changed() -> None:
    judgement = against(Missing(LOST, A, 1, ("row 7",)), unknown=1)
    assert (judgement.verdict, lines(judgement)) == (MISMATCH, [(CHANGED, 1, A)])
    assert judgement.findings[0].examples == ("row 7", "partition 1, offset 4")


def test_more_missing_than_unknown_are_lost_and_more_unknown_are_foreign() -> None:
    judgement = against(Missing(LOST, A, 2), Missing(LOST, B, 2), unknown=3)
    assert (judgement.verdict, lines(judgement)) == (MISMATCH, [(CHANGED, 2, A), (CHANGED, 1, B), (LOST, 1, B)])
    judgement = against(Missing(LOST, A, 1), unknown=3)
    assert (judgement.verdict, lines(judgement)) == (MISMATCH, [(CHANGED, 1, A), (FOREIGN, 2, None)])


def test_foreign_records_alone_are_inconclusive() -> None:
    judgement = against(unknown=3, circumstances=Circumstances(writers=("app-7",)))
    assert (judgement.verdict, lines(judgement)) == (INCONCLUSIVE, [(FOREIGN, 3, None)])
    assert "app-7" in judgement.findings[0].text


def test_retention_explains_what_is_missing_and_nothing_else() -> None:
    judgement = against(Missing(LOST, A, 2), circumstances=RETENTION)
    assert (judgement.verdict, lines(judgement)) == (INCONCLUSIVE, [(LOST, 2, A), (REMOVED, 0, None)])
    judgement = against(Missing(LOST, A, 2), Missing(DOUBLED, B, 1), circumstances=RETENTION)
    assert judgement.verdict == MISMATCH
    judgement = against(Missing(LOST, A, 2), unknown=1, circumstances=RETENTION)
    assert lines(judgement) == [(LOST, 2, A), (FOREIGN, 1, None), (REMOVED, 0, None)], (
        "no pairing: it need not be that row"
    )


def test_a_split_that_does_not_give_its_receipt_is_a_mismatch_though_the_topic_agrees_with_the_receipts() -> None:
    judgement = against(Missing(LOST, A, 1), found=Found(EXPECTED), unlike=(A,))
    assert (judgement.verdict, lines(judgement)) == (MISMATCH, [(LOST, 1, A), (UNLIKE, 0, A)])
    assert against(found=Found(EXPECTED), unlike=(A,)).verdict == MISMATCH


def test_files_that_could_not_be_read_leave_it_open() -> None:
    judgement = against(found=Found(EXPECTED), unread=("data/c: changed since it was sent",), whole=False)
    assert (judgement.verdict, lines(judgement)) == (INCONCLUSIVE, [(UNREAD, 0, None)])
    assert judgement.findings[0].text == "data/c: changed since it was sent"


def test_a_loss_is_named_also_where_not_all_files_could_be_read() -> None:
    judgement = against(Missing(LOST, A, 1), unknown=5, unread=("data/c: gone",), whole=False)
    assert (judgement.verdict, lines(judgement)) == (MISMATCH, [(LOST, 1, A), (UNREAD, 0, None)])


def test_where_not_all_can_be_read_the_sums_decide_on_what_is_too_many() -> None:
    judgement = against(
        Missing(DOUBLED, A, 1),
        found=Found(Totals(21, 99 + 7)),
        copies=Copies(Totals(1, 7), 2, 0, ("partition 0, offset 9",)),
        whole=False,
    )
    assert (judgement.verdict, lines(judgement)) == (MISMATCH, [(DOUBLED, 1, None)])


def test_what_was_removed_is_named_once() -> None:
    judgement = against(Missing(LOST, A, 1), circumstances=RETENTION, unread=("data/c: gone",), whole=False)
    assert lines(judgement) == [(REMOVED, 0, None), (LOST, 1, A), (UNREAD, 0, None)]


def test_what_was_sent_again_as_a_whole_needs_no_source() -> None:
    assert against(found=Found(EXPECTED), whole=False).verdict == VERIFIED


def test_sums_that_differ_are_never_verified() -> None:
    """No difference by hash, and sums that are not equal: the receipts decide."""
    assert against().verdict == MISMATCH
    assert against(whole=False).verdict == MISMATCH


# ---- the verdict ---------------------------------------------------------------------------------------------------


def test_a_mismatch_stays_one() -> None:
    judgement = Judgement()
    assert judgement.verdict == VERIFIED
    judgement.add(INCONCLUSIVE, Finding(FOREIGN, "", 2))
    assert judgement.verdict == INCONCLUSIVE
    judgement.add(MISMATCH, Finding(LOST, "", 1))
    judgement.add(INCONCLUSIVE, Finding(FOREIGN, "", 3))
    assert judgement.verdict == MISMATCH
    assert (judgement.count(FOREIGN), judgement.count(LOST), judgement.count(CHANGED)) == (5, 1, 0)
