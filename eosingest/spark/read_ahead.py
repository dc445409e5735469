"""Reading ahead in a thread of its own: what a task's input comes from, with a bounded queue in between.

Between an iterator of whatever there is to send (worker.py, direct.py) and the task, which must be able to
commit in time while nothing comes.
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
    """Reads an iterable in a thread; at most two items wait, and the thread holds one more."""

    def __init__(self, items: Iterable[_T]) -> None:
        """Start at once. A generator is closed where it was read, whenever that ends."""
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
        except BaseException as error:  # handed to the task, which raises it in its own thread
            self._put(error)
        finally:
            close = getattr(self._items, "close", None)  # a generator's: files that it holds open
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
        """Return the next item, TICK after `timeout_s` seconds without one, or END. Raises what reading raised."""
        try:
            item = self._queue.get(timeout=timeout_s) if timeout_s > 0 else self._queue.get_nowait()
        except queue.Empty:
            return Signal.TICK
        if isinstance(item, BaseException):
            raise item
        return item

    def stop(self) -> None:
        """End the thread, and wait for its end."""
        self._stopped.set()
        self._thread.join()
