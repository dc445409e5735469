"""What a signal does to those who wait: at once, or after the time in which what is begun may end."""

from __future__ import annotations

import signal
import threading

import pytest
from confluent_kafka import TopicPartition

from eosingest.errors import InterruptedRunError
from eosingest.host.interruption import SETTLE_S, Interruption, never
from eosingest.host.waiting import in_thread
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.offsets_reader import LibrdkafkaOffsetsReader


class Interrupted:
    """An interruption with a signal and a clock of the test's."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.time = 0.0
        self.interruption = Interruption(lambda: self.signal, lambda: self.time)


def test_an_armed_wait_ends_at_once() -> None:
    made = Interrupted()
    made.interruption.check()
    made.signal = signal.SIGTERM
    with pytest.raises(InterruptedRunError, match="stopped by SIGTERM; what was open was aborted"):
        made.interruption.check()


def test_what_is_begun_has_its_time_from_the_signal_on() -> None:
    """Breaks when a run that settles is ended by the signal that made it settle, or waits without a bound."""
    made = Interrupted()
    with made.interruption.armed(False):
        made.time = 100.0  # before the signal nothing counts
        made.interruption.check()
        made.signal = signal.SIGINT
        made.interruption.check()
        made.time += SETTLE_S
        made.interruption.check()
        made.time += 0.1
        with pytest.raises(InterruptedRunError, match="is not recorded") as caught:
            made.interruption.check()
    assert caught.value.exit_code == 130
    assert "is kept" in caught.value.hint
    with pytest.raises(InterruptedRunError, match="what was open was aborted"):  # armed again behind it
        made.interruption.check()


def test_a_call_in_a_thread_gives_what_it_gives() -> None:
    assert in_thread(lambda: 7, never, "test") == 7
    with pytest.raises(ZeroDivisionError):
        in_thread(lambda: 1 // 0, never, "test")


class _Silent:
    """A consumer of brokers that do not answer."""

    def __init__(self) -> None:
        self.answer = threading.Event()
        self.closed = False

    def get_watermark_offsets(self, _: TopicPartition, timeout: float) -> tuple[int, int]:
        self.answer.wait(timeout)
        return 0, 0

    def close(self) -> None:
        self.closed = True


def test_a_reader_that_no_broker_answers_hears_of_a_signal() -> None:
    """Breaks when the client's own time-out is waited for, or a consumer is closed under the thread that waits for it."""
    made, consumer = Interrupted(), _Silent()
    made.signal = signal.SIGINT
    reader = LibrdkafkaOffsetsReader("offsets", 3, ClientSettings("nobody:1"), made.interruption.check)
    reader._consumers["read_uncommitted"] = consumer
    with pytest.raises(InterruptedRunError):
        reader.high_watermark()
    reader.close()
    assert not consumer.closed
    consumer.answer.set()
