"""What the reader of the offsets topic makes of librdkafka's errors; the real thing is in tests/integration."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from eosingest.kafka import offsets_reader
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.offsets_reader import LibrdkafkaOffsetsReader
from eosingest.kafka.ports import FailureKind, KafkaFailure


class Consumer:
    """Gives its answers one after another, the last one for ever; a number is an error's code."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def get_watermark_offsets(self, _: Any, timeout: float) -> Any:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, int):
            raise KafkaException(KafkaError(answer))
        return answer

    def list_topics(self, topic: str, timeout: float) -> None:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))


def reader(*answers: Any) -> LibrdkafkaOffsetsReader:
    made = LibrdkafkaOffsetsReader("offsets", 3, ClientSettings("nobody:1"))
    made._consumers["read_uncommitted"] = Consumer(*answers)
    return made


def test_a_partition_without_a_leader_is_waited_for() -> None:
    """Breaks when a broker that was just killed makes the run fail for good: exit 7 (tests/chaos found it)."""
    assert reader(KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_PARTITION, (0, 7)).high_watermark() == 7


@pytest.mark.parametrize("code", [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.OFFSET_NOT_AVAILABLE])
def test_a_leader_that_moves_is_followed(code: int) -> None:
    """Breaks when a rolling restart of the brokers ends a run with 5."""
    assert reader(code, code, (0, 7)).high_watermark() == 7


def test_a_partition_that_stays_unknown_is_temporary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets_reader, "_LEADER_S", 0.05)
    with pytest.raises(KafkaFailure) as caught:
        reader(KafkaError._UNKNOWN_PARTITION).high_watermark()
    assert (caught.value.kind, caught.value.code) == (FailureKind.UNCERTAIN, "_UNKNOWN_PARTITION")


def test_a_topic_that_is_gone_is_said_at_once() -> None:
    with pytest.raises(KafkaFailure) as caught:
        reader(KafkaError.UNKNOWN_TOPIC_OR_PART).high_watermark()
    assert caught.value.kind is FailureKind.REFUSED


class Message:
    def __init__(self, offset: int) -> None:
        self._offset = offset

    def error(self) -> None:
        return None

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes:
        return b"k"

    def value(self) -> bytes:
        return b"v"

    def timestamp(self) -> tuple[int, int]:
        return 0, 0


class Slow:
    """Gives one message a second of a clock of its own, up to `last`, and nothing behind it."""

    def __init__(self, clock: list[float], last: int) -> None:
        self.clock, self.last, self.at = clock, last, 0

    def assign(self, _: Any) -> None:
        pass

    def unassign(self) -> None:
        pass

    def consume(self, count: int, timeout: float) -> list[Message]:
        if count > 1:
            return []
        self.clock[0] += 1
        if self.at == self.last:
            return []
        self.at += 1
        return [Message(self.at - 1)]

    def position(self, _: Any) -> Any:
        return [TopicPartition("offsets", 3, self.at)]


def slow_reader(monkeypatch: pytest.MonkeyPatch, last: int) -> LibrdkafkaOffsetsReader:
    clock = [0.0]
    monkeypatch.setattr(offsets_reader.time, "monotonic", lambda: clock[0])
    made = LibrdkafkaOffsetsReader("offsets", 3, ClientSettings("nobody:1"))
    made._consumers["read_committed"] = Slow(clock, last)
    return made


def test_a_read_that_goes_on_may_take_as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when the deadline counts from the read's start: a job of a million splits could not be gone on with."""
    made = slow_reader(monkeypatch, last=100)
    assert len(list(made.read(0, 100, committed=True, deadline_s=5))) == 100


def test_a_read_that_gets_no_further_ends_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    with pytest.raises(KafkaFailure) as caught:
        found.extend(slow_reader(monkeypatch, last=90).read(0, 100, committed=True, deadline_s=5))
    assert caught.value.code == "read-deadline"
    assert "90 of 100" in caught.value.detail
