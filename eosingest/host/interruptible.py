"""Makes blocking calls interruptible: the start of a JVM, a client's call that no broker answers.

The call runs in a separate thread; the waiting thread receives signals meanwhile. The call is made only once, so a slow answer
is not lost. An abandoned call continues until its own timeout, or until the process ends, since its thread is a daemon.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

_T = TypeVar("_T")

_TICK_S = 0.1


def in_thread(step: Callable[[], _T], check: Callable[[], None], name: str) -> _T:
    """Run `step` in a thread, and return or raise its result. `check` is called meanwhile, and raises to end the wait."""
    return result_of(begin(step, name), check)


def result_of(future: Future[_T], check: Callable[[], None]) -> _T:
    """Wait for a result, and return or raise it. `check` as for `in_thread`."""
    while not wait([future], timeout=_TICK_S).done:
        check()
    return future.result()


def begin(step: Callable[[], _T], name: str) -> Future[_T]:
    """Start `step` in a daemon thread; its result or error becomes the future's."""
    future: Future[_T] = Future()
    threading.Thread(target=_into, args=(future, step), name=name, daemon=True).start()
    return future


class Threads:
    """A context manager: at most `number` daemon threads, for calls of which many may be made at a time.

    After it no further call begins. A call that has begun continues as the module says, and its thread ends with it: the
    threads of concurrent.futures would keep the process alive until then.
    """

    def __init__(self, number: int, name: str) -> None:
        """Start no thread yet."""
        self._number = number
        self._name = name
        self._started = 0
        self._steps: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()

    def begin(self, step: Callable[[], _T]) -> Future[_T]:
        """Queue a call (FIFO) for a free thread; its result or error becomes the future's."""
        future: Future[_T] = Future()
        self._steps.put((future, step))
        if self._started < self._number:
            self._started += 1
            threading.Thread(target=self._work, name=self._name, daemon=True).start()
        return future

    def _work(self) -> None:
        while (next_one := self._steps.get()) is not None:
            _into(*next_one)

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *raised: object) -> None:
        with suppress(Empty):
            while True:
                self._steps.get_nowait()
        for _ in range(self._started):
            self._steps.put(None)


def _into(future: Future[_T], step: Callable[[], _T]) -> None:
    try:
        future.set_result(step())
    except BaseException as error:  # `result()` raises it
        future.set_exception(error)
