"""Compares the dead-letter topic with the receipts: each dead letter of the job is there, once.

app/verify.py calls it after reading the sink topic. Dead letters are few (`on_error.max`), and those of other jobs may be in
the same topic: so the driver reads them here, and selects the job's own by their header `eosingest.job`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eosingest.audit.await_stable import wait_until_decided
from eosingest.audit.receipts import CHANGED, DOUBLED, INCONCLUSIVE, LOST, MISMATCH, REMOVED, Finding, Judgement
from eosingest.errors import FatalError
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.ports import FailureKind, KafkaFailure
from eosingest.kafka.topic_reader import TopicReader
from eosingest.protocol import pins
from eosingest.protocol.dead_letters import JOB_HEADER
from eosingest.protocol.offsets.dead_letters import DeadLetterPin, DeadLetters
from eosingest.protocol.offsets.state import JobState
from eosingest.records import checksum
from eosingest.records.checksum import Totals

if TYPE_CHECKING:
    from eosingest.kafka.kafka_python import KafkaPythonAdmin


@dataclass(frozen=True)
class FoundLetters:
    """The job's dead letters in the topic; `removed` offsets after their first are gone from it."""

    total: Totals
    removed: int


@dataclass(frozen=True)
class Reading:
    """How the topic is read: `patience_s` for the next record, and `check` is called with each batch."""

    admin: KafkaPythonAdmin
    client: ClientSettings
    patience_s: float
    check: Callable[[], None]


def audited(
    reading: Reading, pin: DeadLetterPin | None, state: JobState, verdict: Judgement, job: str
) -> dict[str, Any] | None:
    """Compare the dead-letter topic with the receipts; return its part of the report, None without dead letters.

    Adds differences to the verdict. Raises ChangedError if the topic was deleted or recreated, FatalError if it may not be
    read, TemporaryError if open transactions block the read, KafkaFailure.
    """
    if pin is None:
        return None
    expected = state.dead_letters(pin)
    topic = reading.admin.describe_topic(pin.topic)
    if topic is None or topic.topic_id != pin.topic_id:
        if not expected.count:
            return None
        raise pins.written_topic_recreated(pin.topic)
    ends = [place.end for place in reading.admin.offset_ranges(topic.name, topic.partitions)]
    # Other jobs write to the topic, too: dead letters after an open transaction of theirs would seem lost.
    wait_until_decided(
        reading.admin,
        topic,
        dict(enumerate(ends)),
        "dead-letter topic",
        patience_s=reading.patience_s,
        check=reading.check,
    )
    try:
        found = _read(reading, pin, ends, job)
    except KafkaFailure as failure:
        if failure.kind is not FailureKind.REFUSED:
            raise
        raise _unreadable(pin.topic, failure) from failure
    judge(verdict, pin.topic, expected, found)
    return {"topic": pin.topic, "expected": expected.count, "found": found.total.records}


def _read(reading: Reading, pin: DeadLetterPin, ends: Sequence[int], job: str) -> FoundLetters:
    """Read the topic from the first offset of the job's dead letters to the ends of its partitions."""
    total, removed = Totals(), 0
    with contextlib.closing(TopicReader(pin.topic, reading.client, patience_s=reading.patience_s)) as reader:
        for partition, end in enumerate(ends):
            begin = pin.start[partition] if partition < len(pin.start) else 0
            first, _ = reader.bounds(partition)
            removed += max(0, first - begin)
            for messages in reader.read(partition, max(begin, first), end):
                reading.check()
                ours = [
                    (message.key(), message.value())
                    for message in messages
                    if dict(message.headers() or ()).get(JOB_HEADER) == job.encode()
                ]
                total += Totals(len(ours), sum(checksum.record_hashes(ours)) % checksum.MODULUS)
    return FoundLetters(total, removed)


def _unreadable(topic: str, failure: KafkaFailure) -> FatalError:
    return FatalError(
        f"the dead-letter topic {topic} could not be read, Kafka refused: {failure}",
        code="kafka-refused",
        hint=f"nothing was changed; the sink's user needs Read on it: kafka-acls --add --operation Read --topic {topic};"
        " then verify again",
    )


def judge(judgement: Judgement, topic: str, expected: DeadLetters, found: FoundLetters) -> None:
    """Add the findings about the dead letters to the verdict."""
    difference = found.total.records - expected.count
    if difference == 0 and found.total.checksum == expected.checksum:
        return
    if found.removed and difference < 0:
        gone = (
            f"topic {topic}: {found.removed} offsets of the job's time are gone (retention, or a deletion of records)"
        )
        text = f"{gone}: {found.total.records} of {expected.count} dead letters are left"
        judgement.add(INCONCLUSIVE, Finding(REMOVED, text))
        return
    kind = LOST if difference < 0 else DOUBLED if difference else CHANGED
    text = f"dead letters in topic {topic}, of {expected.count} by the receipts"
    judgement.add(MISMATCH, Finding(kind, text, abs(difference) or 1))
