"""What a signal does to those who wait: at once, or after the time in which what is begun may end."""

from __future__ import annotations

import signal
import threading

import pytest
from confluent_kafka import TopicPartition

from eosingest.errors import InterruptedRunError
from eosingest.host.interruptible import Threads, in_thread, result_of
from eosingest.host.interruption import SETTLE_S, Interruption, never
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.offsets_reader import LibrdkafkaOffsetsReader
from tests.support.harness import wait_for


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
    with pytest.raises(InterruptedRunError, match="stopped by SIGTERM; open transactions were aborted"):
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
    assert "records are kept" in caught.value.hint
    with pytest.raises(InterruptedRunError, match="open transactions were aborted"):  # armed again behind it
        made.interruption.check()


def test_a_call_in_a_thread_gives_what_it_gives() -> None:
    assert in_thread(lambda: 7, never, "test") == 7
    with pytest.raises(ZeroDivisionError):
        in_thread(lambda: 1 // 0, never, "test")


def test_several_calls_at_a_time() -> None:
    """Breaks when a thread stays, when more calls run at a time than were wanted, or when an error is another call's."""
    together = threading.Barrier(3)

    def call(number: int) -> int:
        together.wait(timeout=10)  # three at a time: with fewer this would break, and no fourth one is let in
        assert _threads("several") == 3
        return 10 // (number - 4)

    with Threads(3, "several") as threads:
        begun = [threads.begin(lambda number=number: call(number)) for number in range(9)]  # type: ignore[misc]
        assert [result_of(each, never) for each in begun[:4]] == [-3, -4, -5, -10]
        with pytest.raises(ZeroDivisionError):
            result_of(begun[4], never)
        assert result_of(begun[8], never) == 2
    wait_for(lambda: not _threads("several"), timeout_s=10)


def test_no_call_begins_behind_the_body() -> None:
    held, called = threading.Event(), list[int]()

    def call(number: int) -> None:
        called.append(number)
        held.wait(timeout=10)

    with Threads(2, "behind") as threads:
        for number in range(9):
            threads.begin(lambda number=number: call(number))  # type: ignore[misc]
        wait_for(lambda: len(called) == 2, timeout_s=10)
    assert _threads("behind") == 2, "the body's end waits for no call"
    held.set()
    wait_for(lambda: not _threads("behind"), timeout_s=10)
    assert len(called) == 2


def _threads(name: str) -> int:
    return sum(thread.name == name for thread in threading.enumerate())


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
