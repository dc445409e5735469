"""Steps of Spark in threads of their own, so that a signal ends the wait for them at once.

Under all that start Spark or ask its JVM, which listens to nobody while it works: launcher, preview, audit and training.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

_TICK_S = 0.1
_T = TypeVar("_T")


def in_thread(step: Callable[[], _T], check: Callable[[], None], name: str) -> _T:
    """Return what a step returns, and raise what it raises, having asked `check` all the while, which raises to end the wait.

    A JVM that starts or works listens to nobody. The thread is a daemon, and the JVM ends with its standard input, when we do.
    """
    future = begin(step, name)
    while not wait([future], timeout=_TICK_S).done:
        check()
    return future.result()


def begin(step: Callable[[], _T], name: str) -> Future[_T]:
    """Begin a step in a thread of its own; what it returns or raises is the future's result."""
    future: Future[_T] = Future()
    threading.Thread(target=_into, args=(future, step), name=name, daemon=True).start()
    return future


def _into(future: Future[_T], step: Callable[[], _T]) -> None:
    try:
        future.set_result(step())
    except BaseException as error:  # raised again where the result is asked for
        future.set_exception(error)
