"""Prefetches a task's input, in a separate thread, into a bounded queue.

The iterator of batches (worker.py, direct.py) may block for long; the task must nevertheless commit before the transaction
timeout.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable
from typing import Generic, TypeVar

from eosingest.protocol.task_contract import Signal

_QUEUED_ITEMS = 2
_LOOK_S = 0.1
_T = TypeVar("_T")


class ReadAhead(Generic[_T]):
    """Reads an iterable in a thread; at most two items are queued, and the thread holds one more."""

    def __init__(self, items: Iterable[_T]) -> None:
        """Start reading at once. A generator is closed in the reading thread, when that ends."""
        self._items = items
        self._queue: queue.Queue[_T | Signal | BaseException] = queue.Queue(_QUEUED_ITEMS)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._read, name="read-ahead", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            for item in self._items:
                if not self._put(item):
                    return
            self._put(Signal.END)
        except BaseException as error:  # `get` raises it in the task's own thread
            self._put(error)
        finally:
            close = getattr(self._items, "close", None)  # a generator may hold files open
            if close is not None:
                close()

    def _put(self, item: _T | Signal | BaseException) -> bool:
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=_LOOK_S)
                return True
            except queue.Full:
                continue
        return False

    def get(self, timeout_s: float) -> _T | Signal:
        """Return the next item, TICK after `timeout_s` seconds without one, or END. Raises what the iterable raised."""
        try:
            item = self._queue.get(timeout=timeout_s) if timeout_s > 0 else self._queue.get_nowait()
        except queue.Empty:
            return Signal.TICK
        if isinstance(item, BaseException):
            raise item
        return item

    def stop(self) -> None:
        """Stop the thread and wait until it has ended."""
        self._stopped.set()
        self._thread.join()
