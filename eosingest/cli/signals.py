"""SIGINT and SIGTERM during a run: the first is written down for the driver to see, the second ends the process at once.

The driver asks `received` between its steps and ends the run in order: Spark job cancelled, open transactions aborted,
the verdict written. Behind the result there is nothing to end any more: a signal is ignored.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

from eosingest.errors import EXIT_SIGNAL_BASE

HANDLED = (signal.SIGINT, signal.SIGTERM)
FIRST_WORDS = "note: stopping after a clean abort; a second signal ends at once"

# A parent that forwards the terminal's Ctrl-C to its whole process group makes two of one.
_SAME_SIGNAL_S = 0.5


class Signals:
    """Remembers the first signal. `say` writes a line from inside a signal handler."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._received: int | None = None
        self._at = 0.0

    def install(self) -> None:
        """Put our handlers in place; again where somebody has replaced them. Main thread only."""
        for number in HANDLED:
            if signal.getsignal(number) != self._handle:
                signal.signal(number, self._handle)

    def received(self) -> int | None:
        """Return the number of the first signal received, None while there is none.

        In the main thread it also looks after our handlers: pyspark replaces the one for SIGINT when it makes a context.
        """
        if threading.current_thread() is threading.main_thread():
            self.install()
        return self._received

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._received is None:
            self._received, self._at = number, time.monotonic()
            self._say(FIRST_WORDS)
        elif time.monotonic() - self._at >= _SAME_SIGNAL_S:
            os._exit(EXIT_SIGNAL_BASE + number)


def ignore_signals() -> None:
    """Ignore further signals. Main thread only.

    Python puts the default handlers back while it ends, which takes a while, unless the signals are ignored: a command
    that has told its success would die of a signal that comes then.
    """
    for number in HANDLED:
        signal.signal(number, signal.SIG_IGN)
