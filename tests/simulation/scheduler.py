"""Who moves next: actors as greenlets, one virtual clock, one order. Nothing here knows Kafka.

An actor belongs to a process. A process can be killed (its actors never go on, whatever they were about to do) or frozen
(its actors go on later, without knowing). Everything random comes from the one generator of the schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Any

from greenlet import getcurrent, greenlet


class Killed(BaseException):
    """Thrown into the actors of a killed process, and again at whatever they still try to do."""


class DoesNotEndError(Exception):
    """P10: the schedule went on beyond every bound."""


class Process:
    """A process: it lives until it ends or is killed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dead = False
        self.frozen_until = 0.0
        self.on_kill: Callable[[], None] = lambda: None

    def __repr__(self) -> str:
        return self.name


class Actor:
    """A thread of a process."""

    __slots__ = ("due", "ended", "greenlet", "process", "waiters")

    def __init__(self, process: Process, body: Callable[[], None], hub: greenlet) -> None:
        self.process = process
        self.ended = False
        self.due = 0  # number of the entry that moves it next: a wake-up makes the earlier one void
        self.waiters: list[Actor] = []
        self.greenlet = greenlet(lambda: self._run(body), hub)

    def _run(self, body: Callable[[], None]) -> None:
        try:
            if not self.process.dead:
                body()
        except Killed:
            pass
        self.ended = True


class Scheduler:
    """Runs actors and timed events in the order of a virtual clock, in seconds."""

    def __init__(self, random: Random, *, most_steps: int, trace: list[str] | None = None) -> None:
        """`trace` takes a line for everything that is told."""
        self.random = random
        self.now = 1_000.0
        self.steps = 0
        self._most_steps = most_steps
        self._trace = trace
        self._heap: list[tuple[float, int, Any]] = []
        self._pushed = 0
        self._hub = getcurrent()
        self.current: Actor | None = None

    # ---- for actors ------------------------------------------------------------------------------------------------

    def pause(self, seconds: float) -> None:
        """Let others move for a time."""
        actor = self.current
        assert actor is not None
        if actor.process.dead:
            raise Killed
        self._push(self.now + seconds, actor)
        self._hub.switch()
        if actor.process.dead:
            raise Killed

    def wait_for(self, other: Actor, timeout: float) -> bool:
        """Wait until an actor has ended or its process is dead; say whether it has."""
        actor = self.current
        assert actor is not None
        if not (other.ended or other.process.dead):
            other.waiters.append(actor)
            self.pause(timeout)
            if actor in other.waiters:
                other.waiters.remove(actor)
        return other.ended or other.process.dead

    # ---- for whoever arranges things -------------------------------------------------------------------------------

    def start(self, process: Process, body: Callable[[], None], after: float = 0.0) -> Actor:
        """Start an actor."""
        actor = Actor(process, body, self._hub)
        self._push(self.now + after, actor)
        return actor

    def later(self, seconds: float, event: Callable[[], None]) -> None:
        """Call a function, which must not pause, after a time."""
        self._push(self.now + seconds, event)

    def kill(self, process: Process) -> None:
        """End a process where it stands."""
        if not process.dead:
            process.dead = True
            process.frozen_until = 0.0
            self.tell(f"kill -9 {process}")
            process.on_kill()

    def freeze(self, process: Process, seconds: float) -> None:
        """Stop a process for a time."""
        if not process.dead:
            process.frozen_until = self.now + seconds
            self.tell(f"freeze {process} for {seconds:.1f} s")

    def tell(self, text: str) -> None:
        """Write a line of the trace."""
        if self._trace is not None:
            who = self.current.process.name if self.current is not None else "world"
            self._trace.append(f"{self.now:12.4f} {self.steps:6d} {who:18s} {text}")

    @property
    def traced(self) -> bool:
        """Whether anybody reads the trace."""
        return self._trace is not None

    def run(self) -> None:
        """Go on until nothing is left to do."""
        heap = self._heap
        while heap:
            at, number, item = heappop(heap)
            if item.__class__ is Actor and item.due != number:
                continue
            if at > self.now:
                self.now = at
            self.steps += 1
            if self.steps > self._most_steps:
                raise DoesNotEndError(f"no end after {self.steps} steps")
            if item.__class__ is Actor:
                self._move(item)
            else:
                item()

    def _move(self, actor: Actor) -> None:
        process = actor.process
        if process.frozen_until > self.now and not process.dead:
            self._push(process.frozen_until, actor)
            return
        self.current = actor
        actor.greenlet.switch()
        self.current = None
        if actor.ended or actor.process.dead:
            actor.ended = True
            for waiter in actor.waiters:
                self._push(self.now, waiter)
            actor.waiters.clear()

    def _push(self, at: float, item: Any) -> None:
        self._pushed += 1
        if item.__class__ is Actor:
            item.due = self._pushed
        heappush(self._heap, (at, self._pushed, item))
