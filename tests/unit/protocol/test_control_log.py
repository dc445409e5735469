"""Two drivers that start at the same moment: what the one that is fenced before its claim says of the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from eosingest.errors import FencedError, TemporaryError
from eosingest.protocol.control_log import ControlLog
from eosingest.protocol.offsets import record, topic
from eosingest.protocol.offsets.record import ControlRecord
from tests.support.builders import control_record
from tests.support.memory_job import MemoryKafka

JOB = "job"


class Drivers:
    """A Kafka with an offsets topic, and drivers of one job; each wait of one of them is told `while_waiting`."""

    def __init__(self) -> None:
        self.kafka = MemoryKafka("offsets")
        self.kafka.cluster.create_topic("offsets", 5, {"cleanup.policy": "compact"})
        self.while_waiting: Callable[[], None] = lambda: None

    def driver(self) -> ControlLog:
        return ControlLog(
            JOB,
            self.kafka,
            offsets_topic="offsets",
            partition=topic.partition_of(JOB, 5),
            deadline_s=lambda: 30.0,
            now=self.kafka.now,
            sleep=self._sleep,
        )

    def _sleep(self, seconds: float) -> None:
        self.kafka.wait(seconds)
        self.while_waiting()


def claim(run: int, started: str) -> ControlRecord:
    return replace(control_record(run, record.CLAIMED), started=started)


def claimed_in_between(drivers: Drivers, *, run: int = 1) -> tuple[ControlLog, ControlLog]:
    """Return a driver, and another one that inits and claims between the first one's init and its read."""
    loser, winner = drivers.driver(), drivers.driver()
    loser.fence_earlier_driver("p.")
    winner.fence_earlier_driver("p.")
    winner.read_uncommitted()
    winner.commit(claim(run, "winner"))
    seen = loser.read_uncommitted().newest
    assert seen is not None
    assert seen.run == run
    return loser, winner


@pytest.mark.parametrize("state", [record.RUNNING, record.COMPLETE])
def test_a_claim_behind_that_of_the_run_that_fenced_it(state: str) -> None:
    """Breaks when only a higher number than the one asked for is a successor's: a live run would be called unknown (exit 5)."""
    drivers = Drivers()
    loser, winner = claimed_in_between(drivers)

    def goes_on() -> None:
        if drivers.kafka.now() > began + 20 and winner.mine.state == record.CLAIMED:
            winner.commit(replace(winner.mine, state=state))

    began, drivers.while_waiting = drivers.kafka.now(), goes_on
    with pytest.raises(FencedError, match=r"run 1 on .* over from this run, which had not claimed it yet"):
        loser.commit(claim(2, "loser"))


def test_a_run_that_claimed_and_says_no_more() -> None:
    """Breaks when a fence alone is exit 6, or when the message does not name the run that may be at work."""
    drivers = Drivers()
    loser, winner = claimed_in_between(drivers)
    began = drivers.kafka.now()
    with pytest.raises(TemporaryError) as caught:
        loser.commit(claim(2, "loser"))
    assert 30 < drivers.kafka.now() - began < 31
    assert f"Run 1 on {winner.mine.host} (pid {winner.mine.pid}) has claimed the job" in caught.value.hint


@pytest.mark.parametrize("ended", [record.COMPLETE, record.FAILED])
def test_fenced_by_a_driver_that_never_claims(ended: str) -> None:
    """Breaks when a run that has ended, which lies before the claim's read, is taken for the one that fenced."""
    drivers = Drivers()
    first = drivers.driver()
    first.fence_earlier_driver("p.")
    first.read_uncommitted()
    first.commit(claim(1, "first"))
    first.commit(replace(first.mine, state=ended))
    loser = drivers.driver()
    loser.fence_earlier_driver("p.")
    loser.read_uncommitted()
    drivers.driver().fence_earlier_driver("p.")
    began = drivers.kafka.now()
    with pytest.raises(TemporaryError) as caught:
        loser.commit(claim(2, "loser"))
    assert 5 < drivers.kafka.now() - began < 6
    assert "another run that ended before it claimed, or a foreign client" in caught.value.hint


def test_a_successor_that_claims_later() -> None:
    """Breaks when a fenced claim is not waited for: the successor's claim follows its fence."""
    drivers = Drivers()
    loser, successor = drivers.driver(), drivers.driver()
    loser.fence_earlier_driver("p.")
    loser.read_uncommitted()
    successor.fence_earlier_driver("p.")
    successor.read_uncommitted()

    def claims() -> None:
        if not hasattr(successor, "mine"):
            successor.commit(claim(1, "successor"))

    drivers.while_waiting = claims
    with pytest.raises(FencedError, match="from this run, which had not claimed it yet"):
        loser.commit(claim(1, "loser"))
