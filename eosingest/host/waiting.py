"""Waiting for what does not wait in steps by itself: a JVM that starts, a client's call that no broker answers.

The call goes on in a thread of its own, and who waits for it hears of a signal meanwhile. Nothing is asked twice, so a slow
answer is no lost one. A call that was given up goes on until its own time-out, or until the process ends, as its thread is a
daemon.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

_T = TypeVar("_T")

_TICK_S = 0.1


def in_thread(step: Callable[[], _T], check: Callable[[], None], name: str) -> _T:
    """Return what a step returns, and raise what it raises. Meanwhile `check` is asked, which raises to end the wait."""
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
