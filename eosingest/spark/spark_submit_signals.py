"""Receives SIGINT, SIGTERM and SIGHUP under spark-submit, whose JVM forwards them to this process instead of ending.

Otherwise a SIGTERM to spark-submit would stop Spark and close stdout before the run has aborted its open transactions and
reported its result. Instead this process ends the run cleanly, and spark-submit, which waits for it, exits with its exit code.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable
from typing import Any, ClassVar

from pyspark.java_gateway import ensure_callback_server_started, launch_gateway

_NAMES = {signal.SIGINT: "INT", signal.SIGTERM: "TERM", signal.SIGHUP: "HUP"}


class _Handler:
    """A `sun.misc.SignalHandler` for the JVM; py4j calls it in a separate thread."""

    def __init__(self, number: int, take: Callable[[int], None]) -> None:
        self._number = number
        self._take = take

    def handle(self, _signal: Any) -> None:
        """Handle the signal; Java calls this method."""
        self._take(self._number)

    class Java:
        """The Java interfaces that this class implements, as py4j expects them."""

        implements: ClassVar[list[str]] = ["sun.misc.SignalHandler"]


def relay_signals(take: Callable[[int], None]) -> None:
    """Have spark-submit's JVM pass its signals to `take`, except a SIGHUP that nohup has it ignore.

    Does nothing if that JVM does not answer (it is ending). Executors keep running: the run cancels its job itself. While this
    process is frozen only SIGKILL ends that JVM.
    """
    with contextlib.suppress(Exception):
        gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        misc = gateway.jvm.sun.misc
        for number, name in _NAMES.items():
            if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:  # this process is its child
                continue
            misc.Signal.handle(misc.Signal(name), _Handler(number, take))
