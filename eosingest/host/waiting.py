"""Makes blocking calls interruptible: the start of a JVM, a client's call that no broker answers.

The call runs in a thread of its own; the waiting thread sees a signal meanwhile. The call is made once only, so a slow answer
is not lost. A call that was given up goes on until its own timeout, or until the process ends, since its thread is a daemon.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

_T = TypeVar("_T")

_TICK_S = 0.1


def in_thread(step: Callable[[], _T], check: Callable[[], None], name: str) -> _T:
    """Run `step` in a thread, and return or raise its result. `check` is called meanwhile, and raises to end the wait."""
    future = begin(step, name)
    while not wait([future], timeout=_TICK_S).done:
        check()
    return future.result()


def begin(step: Callable[[], _T], name: str) -> Future[_T]:
    """Start `step` in a daemon thread; what it returns or raises is the future's result."""
    future: Future[_T] = Future()
    threading.Thread(target=_into, args=(future, step), name=name, daemon=True).start()
    return future


def _into(future: Future[_T], step: Callable[[], _T]) -> None:
    try:
        future.set_result(step())
    except BaseException as error:  # `result()` raises it
        future.set_exception(error)
