"""Handles SIGINT, SIGTERM and SIGHUP during a run: records the first for the driver; the second ends the process at once.

The driver calls `received` between its steps. After a signal it ends the run cleanly: it cancels the Spark job, aborts open
transactions and commits the verdict. Once the result is printed, signals are ignored. Under spark-submit, the JVM forwards its
signals to this process, so that a signal to spark-submit alone has the same effect.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

from eosingest.errors import EXIT_SIGNAL_BASE

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FIRST_WORDS = "note: stopping after a clean abort; a second signal ends at once"

# One Ctrl-C arrives twice if a parent process forwards it to the process group.
_SAME_SIGNAL_S = 0.5

_relay: Callable[[Callable[[int], None]], None] | None = None
_over = False  # the result is printed


def relay_by(relay: Callable[[Callable[[int], None]], None]) -> None:
    """Register `relay`, which `install` calls with the function that takes the numbers of another process's signals."""
    global _relay
    _relay = relay


class Signals:
    """Records the first signal. `say` writes a line; signal handlers call it."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._received: int | None = None
        self._at = 0.0
        self._relayed_at: float | None = None
        self._relays = False

    def install(self) -> None:
        """Install our handlers, or reinstall those that another library has replaced. Main thread only."""
        if not self._relays:
            self._relays = True
            if _relay is not None:
                _relay(self.take_relayed)
        for number in HANDLED:
            if signal.getsignal(number) != self._handle and not _is_of_nohup(number):
                signal.signal(number, self._handle)

    def received(self) -> int | None:
        """Return the number of the first signal received, or None.

        In the main thread it also reinstalls our handlers: pyspark replaces the one for SIGINT when it creates a context.
        """
        if threading.current_thread() is threading.main_thread():
            self.install()
        return self._received

    def take_relayed(self, number: int) -> None:
        """Record a signal that spark-submit's JVM received. A terminal's Ctrl-C, sent to both processes, counts once."""
        if _over:
            return
        if self._relayed_at is not None:
            if time.monotonic() - self._relayed_at >= _SAME_SIGNAL_S:
                os._exit(EXIT_SIGNAL_BASE + number)
            return
        self._relayed_at = time.monotonic()
        if self._received is None:
            self._received, self._at = number, time.monotonic()
            self._say(FIRST_WORDS)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._received is None:
            self._received, self._at = number, time.monotonic()
            self._say(FIRST_WORDS)
        elif time.monotonic() - self._at >= _SAME_SIGNAL_S:
            os._exit(EXIT_SIGNAL_BASE + number)


def _is_of_nohup(number: int) -> bool:
    """Say whether the signal is a SIGHUP that this process ignores: nohup lets a command outlive its terminal."""
    return number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN


def ignore_signals() -> None:
    """Ignore further signals. Main thread only.

    At exit, which takes a while, Python restores the default handlers unless the signals are ignored. A signal would then kill
    a command that has already printed its success.
    """
    global _over
    _over = True
    for number in HANDLED:
        signal.signal(number, signal.SIG_IGN)
