"""What an audit makes of the dead-letter topic: lost, doubled or changed is a mismatch, what retention explains is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from eosingest.audit import dead_letters
from eosingest.audit.dead_letters import FoundLetters, Reading, judge
from eosingest.audit.receipts import INCONCLUSIVE, MISMATCH, VERIFIED, Judgement
from eosingest.errors import ChangedError, TemporaryError
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.ports import OffsetRange, OpenTransaction, TopicDescription
from eosingest.protocol.offsets.dead_letters import DeadLetterPin, DeadLetters
from eosingest.protocol.offsets.state import JobState
from eosingest.records.checksum import Totals

PIN = DeadLetterPin("dead", "id", (0,))


@pytest.mark.parametrize(
    ("found", "checksum", "removed", "verdict", "kinds"),
    [
        (3, 7, 0, VERIFIED, []),
        (3, 7, 5, VERIFIED, []),  # what is gone were others' letters
        (2, 7, 0, MISMATCH, ["lost"]),
        (4, 7, 0, MISMATCH, ["doubled"]),
        (4, 7, 5, MISMATCH, ["doubled"]),
        (3, 8, 0, MISMATCH, ["changed"]),
        (2, 8, 5, INCONCLUSIVE, ["removed"]),
    ],
)
def test_verdicts(found: int, checksum: int, removed: int, verdict: str, kinds: list[str]) -> None:
    judgement = Judgement(VERIFIED)
    judge(judgement, "dead", DeadLetters(3, checksum=7), FoundLetters(Totals(found, checksum), removed))
    assert (judgement.verdict, [finding.kind for finding in judgement.findings]) == (verdict, kinds)


@dataclass
class Brokers:
    """An admin client: a topic of one partition with 9 offsets, of which `stable` are decided."""

    topic_id: str = "id"
    stable: int = 9

    def describe_topic(self, name: str) -> TopicDescription | None:
        return TopicDescription(name, self.topic_id, 1, {}) if self.topic_id else None

    def offset_ranges(self, name: str, partitions: int) -> tuple[OffsetRange, ...]:
        return (OffsetRange(0, 9),)

    def last_stable_offsets(self, name: str, partitions: int) -> list[int]:
        return [self.stable]

    def open_transactions(self, name: str, partition: int) -> list[OpenTransaction]:
        return [OpenTransaction("another job", 4, 3.0)]


def audited(brokers: Brokers, pin: DeadLetterPin | None, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any] | None:
    monkeypatch.setattr(dead_letters, "_read", lambda reading, pin, ends, job: FoundLetters(Totals(ends[0], 0), 0))
    reading = Reading(cast(Any, brokers), ClientSettings("b:9092", {}), 0.0, lambda: None)
    return dead_letters.audited(reading, pin, JobState("job"), Judgement(VERIFIED), "job")


def test_a_job_without_a_dead_letter_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    assert audited(Brokers(), None, monkeypatch) is None


def test_letters_that_no_receipt_has_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert audited(Brokers(), PIN, monkeypatch) == {"topic": "dead", "expected": 0, "found": 9}


@pytest.mark.parametrize("topic_id", ["", "another"])
def test_a_recreated_topic(topic_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mismatch of all, told as what it is; without letters nothing is missing."""
    assert audited(Brokers(topic_id), PIN, monkeypatch) is None
    lost = PIN.retiring([DeadLetters(2)])
    with pytest.raises(ChangedError, match="topic dead was deleted, or recreated"):
        audited(Brokers(topic_id), lost, monkeypatch)


def test_an_open_transaction_of_another_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when letters behind it are called lost."""
    with pytest.raises(TemporaryError, match=r"dead-letter topic cannot be read to its end.*another job"):
        audited(Brokers(stable=4), PIN, monkeypatch)
