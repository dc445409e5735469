"""spark-submit's JVM, which started us: it passes its signals on to us instead of ending.

Without that a SIGTERM to spark-submit ends Spark under the run and closes the way to spark-submit's stdout, before the run
has aborted what is open and said how it ended. With it Python ends the run in order, and spark-submit, which waits for it,
ends with its exit code.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable
from typing import Any, ClassVar

from pyspark.java_gateway import ensure_callback_server_started, launch_gateway

_NAMES = {signal.SIGINT: "INT", signal.SIGTERM: "TERM"}


class _Handler:
    """A `sun.misc.SignalHandler` of the JVM; py4j calls it from a thread of its own."""

    def __init__(self, number: int, take: Callable[[int], None]) -> None:
        self._number = number
        self._take = take

    def handle(self, _signal: Any) -> None:
        """Take the signal: the method that Java calls."""
        self._take(self._number)

    class Java:
        """What py4j asks a class for: the interfaces that it implements."""

        implements: ClassVar[list[str]] = ["sun.misc.SignalHandler"]


def relay_signals(take: Callable[[int], None]) -> None:
    """Have the JVM that started us hand SIGINT and SIGTERM to `take`; nothing where it does not answer (it is ending).

    Spark's executors stay: the run cancels its job itself. A JVM whose Python is frozen is ended by SIGKILL alone.
    """
    with contextlib.suppress(Exception):
        gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        misc = gateway.jvm.sun.misc
        for number, name in _NAMES.items():
            misc.Signal.handle(misc.Signal(name), _Handler(number, take))
