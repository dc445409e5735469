"""SIGINT and SIGTERM during a run: the first is written down for the driver to see, the second ends the process at once.

The driver asks `received` between its steps and ends the run in order: Spark job cancelled, open transactions aborted,
the verdict written. Behind the result there is nothing to end any more: a signal is ignored. Under spark-submit its JVM
passes on what it receives: a signal to spark-submit alone ends the run as one to the run does.
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

_relay: Callable[[Callable[[int], None]], None] | None = None
_over = False  # the result is told


def relay_by(relay: Callable[[Callable[[int], None]], None]) -> None:
    """Have signals that another process receives for us handed on by `relay`, which is given who takes their numbers."""
    global _relay
    _relay = relay


class Signals:
    """Remembers the first signal. `say` writes a line from inside a signal handler."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._received: int | None = None
        self._at = 0.0
        self._relayed: int | None = None
        self._relays = False

    def install(self) -> None:
        """Put our handlers in place; again where somebody has replaced them. Main thread only."""
        if not self._relays:
            self._relays = True
            if _relay is not None:
                _relay(self.take_relayed)
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

    def take_relayed(self, number: int) -> None:
        """Take a signal that spark-submit's JVM received; a terminal's Ctrl-C has reached us, too, and is the same one."""
        if _over:
            return
        if self._relayed is not None:
            os._exit(EXIT_SIGNAL_BASE + number)
        self._relayed = number
        if self._received is None:
            self._received, self._at = number, time.monotonic()
            self._say(FIRST_WORDS)

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
    global _over
    _over = True
    for number in HANDLED:
        signal.signal(number, signal.SIG_IGN)
