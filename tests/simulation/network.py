"""The network between one process and the Kafka in memory: every request is a chance for others to move, and to break."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from tests.support.memory_kafka.clients import NoAnswerError
from tests.support.memory_kafka.log import BrokerError

if TYPE_CHECKING:
    from tests.simulation.schedule import World
    from tests.simulation.scheduler import Process

_T = TypeVar("_T")
LOSE_REQUEST, LOSE_ANSWER, LATE_REQUEST = "lose-request", "lose-answer", "late-request"
LOSE_COMMIT_ANSWER, LATE_COMMIT = "lose-commit-answer", "late-commit"


class SimulatedNetwork:
    """A `memory_clients.Network` of one process."""

    def __init__(self, world: World, process: Process) -> None:
        self.world = world
        self.process = process

    def now(self) -> float:
        return self.world.scheduler.now

    def wait(self, seconds: float) -> None:
        self.world.scheduler.pause(seconds)

    def send(self, request: str, apply: Callable[[], _T]) -> _T:
        """On its way, carried out, answered; the process may be killed or frozen on either way."""
        world = self.world
        world.scheduler.pause(world.latency())
        what = world.faults.point(self.process, request=request)
        if what is not None or self.process in world.disconnected:
            self._broken(what, request, apply)
        try:
            answer = apply()
        except BrokerError as error:
            if world.scheduler.traced:
                world.scheduler.tell(f"{request}: {error.code}")
            raise
        if world.scheduler.traced:
            world.scheduler.tell(f"{request}: {_short(answer)}")
        world.scheduler.pause(world.latency())
        if world.faults.point(self.process, answer=request) is not None:
            world.scheduler.tell(f"the answer to {request} is lost")
            raise NoAnswerError
        return answer

    def _broken(self, what: str | None, request: str, apply: Callable[[], _T]) -> None:
        """Lose the request, or let it arrive when nobody waits for it any more."""
        world = self.world
        if what in (LATE_REQUEST, LATE_COMMIT):
            delay = world.random.choice((0.01, 0.1, 0.81, 0.83, 0.9, 1.2, 2.0, 30.0, 300.0))
            world.scheduler.tell(f"{request} is delayed by {delay} s")
            world.scheduler.later(delay, lambda: self._arrive(request, apply))
        else:
            world.scheduler.tell(f"{request} is lost")
        raise NoAnswerError

    def _arrive(self, request: str, apply: Callable[[], _T]) -> None:
        self.world.scheduler.tell(f"late from {self.process}: {request}")
        try:
            apply()
        except BrokerError as error:
            self.world.scheduler.tell(f"late {request}: {error.code}")


def _short(answer: object) -> str:
    text = repr(answer)
    return text if len(text) < 100 else text[:100] + " …"
