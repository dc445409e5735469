"""Classifies the differences between topic and receipts, and claims no more than the numbers prove. Pure.

Records that are certainly lost, doubled or changed are a mismatch; a difference that retention, compaction or another producer
may explain is inconclusive. With the source each record is accounted for; without it, only the sums are.
"""

from __future__ import annotations

from eosingest.audit.receipts import (
    CHANGED,
    DOUBLED,
    FOREIGN,
    INCONCLUSIVE,
    LOST,
    MISMATCH,
    READERS_DIFFER,
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
)
from eosingest.records.checksum import Totals

_ASK_THE_SOURCE = "--against-source shows which"


def by_receipts(expected: Totals, found: Found, copies: Copies, circumstances: Circumstances) -> Judgement:
    """Return the verdict for a topic whose sums differ from the receipts', without the source."""
    judgement = Judgement()
    difference = found.total - expected
    if found.within == expected:
        _judge_late(judgement, found, copies, circumstances)
    elif difference.records > 0:
        _judge_surplus(judgement, difference, copies, circumstances)
    else:
        _judge_deficit(judgement, -difference.records, copies, circumstances)
    if judgement.verdict == INCONCLUSIVE:
        _name_removed(judgement, circumstances)
    return judgement


def _judge_late(judgement: Judgement, found: Found, copies: Copies, circumstances: Circumstances) -> None:
    """Judge the case that all records of the job are there, once, and others were written after the job was complete.

    Each of the others either equals one of the job's records (doubled) or does not (foreign).
    """
    foreign = found.late.records - copies.late
    if copies.late:
        text = "written again after the job was complete, by another producer"
        judgement.add(MISMATCH, Finding(DOUBLED, text, copies.late, examples=copies.examples))
    if foreign:
        text = "written by another producer after the job was complete; all records of the job are there, once"
        judgement.add(INCONCLUSIVE, Finding(FOREIGN, text + _named(circumstances), foreign))


def _judge_surplus(judgement: Judgement, surplus: Totals, copies: Copies, circumstances: Circumstances) -> None:
    number = surplus.records
    if circumstances.others:
        text = (
            f"more than this job and {', '.join(circumstances.others)} have sent: doubled, of another producer, or left by"
            " a run --from-scratch of one of them"
        )
        judgement.add(INCONCLUSIVE, Finding(SURPLUS, text + _named(circumstances), number))
    elif copies.copies == surplus or (number == 1 and copies.of_the_surplus > 1):
        text = "in the topic more often than sent: the checksum proves which"
        judgement.add(MISMATCH, Finding(DOUBLED, text, number, examples=copies.examples))
    elif not copies.copies.records or (number == 1 and copies.of_the_surplus == 1):
        text = "that the job did not write, without an equal one in the topic; the job's records among them cannot be audited"
        judgement.add(INCONCLUSIVE, Finding(FOREIGN, text + _named(circumstances), number))
    elif circumstances.writers or circumstances.removed:
        text = f"more than was sent, doubled or of another producer ({_ASK_THE_SOURCE})"
        judgement.add(INCONCLUSIVE, Finding(SURPLUS, text + _named(circumstances), number))
    else:
        text = f"more than was sent; {copies.copies.records} in the topic have an equal one before them ({_ASK_THE_SOURCE})"
        judgement.add(MISMATCH, Finding(SURPLUS, text, number, examples=copies.examples))


def _judge_deficit(judgement: Judgement, deficit: int, copies: Copies, circumstances: Circumstances) -> None:
    """Judge the case that the topic has as many records as were sent, or fewer, with other sums: some records of the job are
    certainly missing or changed.
    """
    verdict = INCONCLUSIVE if circumstances.removed else MISMATCH
    if deficit:
        text = f"at least: the receipts count more records than the topic has ({_ASK_THE_SOURCE})"
        judgement.add(verdict, Finding(LOST, text, deficit))
        return
    text = "as many records as were sent, but not the same: at least one is changed"
    if copies.copies.records or circumstances.writers:
        text += ", or as many are lost as are doubled or foreign"
    judgement.add(verdict, Finding(CHANGED, f"{text} ({_ASK_THE_SOURCE})", 1))


def by_source(
    expected: Totals, found: Found, copies: Copies, compared: Compared, circumstances: Circumstances
) -> Judgement:
    """Return the verdict for a topic that was compared with the source, record by record."""
    judgement = Judgement()
    if compared.whole:
        for entry in compared.of(DOUBLED):
            text = "in the topic more often than in the source"
            judgement.add(MISMATCH, Finding(DOUBLED, text, entry.records, entry.split, entry.examples))
        changed = _judge_lost(judgement, compared, circumstances)
        _judge_unknown(judgement, changed, compared, circumstances)
    elif found.total != expected:  # surplus records may be of rows that could not be read: the sums decide
        judgement = by_receipts(expected, found, copies, circumstances)
        if compared.of(LOST):
            judgement.findings = [finding for finding in judgement.findings if finding.kind not in (LOST, CHANGED)]
    if not compared.whole:
        _judge_lost(judgement, compared, circumstances)
    for split in compared.unlike:
        text = "its rows do not match its receipt"
        judgement.add(MISMATCH, Finding(UNLIKE, text, split=split))
    for reason in compared.unread:
        judgement.add(INCONCLUSIVE, Finding(UNREAD, reason))
    for text in compared.differ:
        judgement.add(INCONCLUSIVE, Finding(READERS_DIFFER, text))
    if judgement.verdict == VERIFIED and found.total != expected:
        # Source and topic agree with each other, but not with the receipts.
        return by_receipts(expected, found, copies, circumstances)
    if judgement.verdict == INCONCLUSIVE and found.total != expected:
        _name_removed(judgement, circumstances)
    return judgement


def _judge_lost(judgement: Judgement, compared: Compared, circumstances: Circumstances) -> int:
    """Judge rows without a record; return how many of the topic's unknown records count as these rows, changed."""
    lost = compared.of(LOST)
    number = sum(entry.records for entry in lost)
    if circumstances.removed:
        for entry in lost:
            text = "removed from the topic, or never in it"
            judgement.add(INCONCLUSIVE, Finding(LOST, text, entry.records, entry.split, entry.examples))
        return 0
    changed = min(number, compared.unknown) if compared.whole else 0
    left = changed
    for entry in lost:
        here = min(left, entry.records)
        left -= here
        if here:
            text = "not in the topic; as many records there belong to no row" + (
                "" if changed == number else ": changed ones of this split or of another one below"
            )
            examples = (*entry.examples, *compared.unknown_examples)
            judgement.add(MISMATCH, Finding(CHANGED, text, here, entry.split, examples))
        if entry.records > here:
            text = "not in the topic"
            judgement.add(MISMATCH, Finding(LOST, text, entry.records - here, entry.split, entry.examples))
    return changed


def _judge_unknown(judgement: Judgement, changed: int, compared: Compared, circumstances: Circumstances) -> None:
    foreign = compared.unknown - changed
    if foreign:
        text = "that the source does not have" + _named(circumstances)
        finding = Finding(FOREIGN, text, foreign, examples=compared.unknown_examples)
        judgement.add(INCONCLUSIVE, finding)


def _name_removed(judgement: Judgement, circumstances: Circumstances) -> None:
    if all(finding.kind != REMOVED for finding in judgement.findings):
        for text in circumstances.removed:
            judgement.add(INCONCLUSIVE, Finding(REMOVED, text))


def _named(circumstances: Circumstances) -> str:
    return (
        f"; writers of the topic that are not known as this job's: {', '.join(circumstances.writers)}"
        if circumstances.writers
        else ""
    )
