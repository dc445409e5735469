"""Performs one verb for a caller of the Python API: the main function of the verb's process.

    caller: process.py ─▶ Call ─▶ app/ ─▶ Note, Progress, Logged … ─▶ Answer ─▶ caller

SIGINT or SIGTERM from the caller ends the verb cleanly, and so does the caller's end: no run continues without a caller.
Spark's JVMs end before the answer is sent.
"""

from __future__ import annotations

import contextlib
import logging
import logging.handlers
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from eosingest.api.messages import Answer, Call, Logged, Message, Note
from eosingest.errors import REPORT_A_BUG, EosingestError, InterruptedRunError
from eosingest.host.garbage import collect_rarely
from eosingest.host.library_warnings import keep_off_the_terminal
from eosingest.report.progress import AuditProgress, Progress
from eosingest.spec.secrets import keep_from_children

_HANDLED = (signal.SIGINT, signal.SIGTERM)
_JVM_END_S = 5.0
_CALL_WITHIN_S = 60.0


class _Caller:
    """The connection to the caller (`report.AuditObserver`). Messages to a caller that is gone are dropped."""

    def __init__(self, connection: Connection[Any, Any]) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def send(self, message: Message) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._connection.send(message)

    def note(self, text: str) -> None:
        self.send(Note(text))

    def progress(self, progress: Progress) -> None:
        self.send(progress)

    def audited(self, progress: AuditProgress) -> None:
        self.send(progress)


class _LogHandler(logging.handlers.QueueHandler):
    """Passes the package's log records on to the caller's log."""

    def __init__(self, caller: _Caller) -> None:
        super().__init__(caller)  # type: ignore[arg-type]
        self._caller = caller

    def enqueue(self, record: logging.LogRecord) -> None:
        self._caller.send(Logged(record))


class _Received:
    """Returns the first signal received; SIGTERM if the caller's process has ended."""

    def __init__(self, caller: int) -> None:
        self._caller = caller
        self.number: int | None = None

    def install(self) -> None:
        for number in _HANDLED:
            signal.signal(number, self._handle)

    def _handle(self, number: int, _frame: object) -> None:
        if self.number is None:
            self.number = number

    def __call__(self) -> int | None:
        if self.number is None and os.getppid() != self._caller:
            self.number = signal.SIGTERM
        return self.number


def _run(call: Call, caller: _Caller, received: _Received) -> Any:
    from eosingest.app.run import run
    from eosingest.app.settings import RunOptions

    received.install()
    try:
        return run(call.spec, RunOptions(**call.options), caller, received)
    except EosingestError as error:
        if received.number is None or isinstance(error, InterruptedRunError):
            raise
        name = signal.Signals(received.number).name
        raise InterruptedRunError(
            f"stopped by {name}; {error.message}", signal_number=received.number, hint=error.hint
        ) from error


def _verify(call: Call, caller: _Caller, received: _Received) -> Any:
    from eosingest.app.verify import VerifyOptions, verify

    received.install()
    return verify(call.spec, VerifyOptions(**call.options), caller, received)


def _preview(call: Call, caller: _Caller, received: _Received) -> Any:
    from eosingest.app.preview import preview

    received.install()
    return preview(call.spec, call.options["rows"], caller, received)


def _plan(call: Call, caller: _Caller, _received: _Received) -> Any:
    from eosingest.app.inspect import plan

    return plan(call.spec, caller)


def _status(call: Call, caller: _Caller, _received: _Received) -> Any:
    from eosingest.app.inspect import status

    return status(call.spec, caller)


_VERBS: dict[str, Callable[[Call, _Caller, _Received], Any]] = {
    "plan": _plan,
    "preview": _preview,
    "run": _run,
    "status": _status,
    "verify": _verify,
}


def _answer(call: Call, caller: _Caller) -> Answer:
    try:
        return Answer(report=_VERBS[call.verb](call, caller, _Received(call.caller)))
    except EosingestError as error:
        return Answer(error=error)
    except Exception as error:
        bug = EosingestError(f"{type(error).__name__}: {error}", hint=REPORT_A_BUG)
        return Answer(error=bug, traceback=traceback.format_exc())


def main(descriptor: int) -> None:
    """Receive one Call on the connection with this file descriptor, perform it, and send its Answer."""
    keep_off_the_terminal()
    os.set_inheritable(descriptor, False)
    for number in _HANDLED:  # plan and status end at once; the other verbs install handlers
        signal.signal(number, signal.SIG_DFL)
    collect_rarely()
    with Connection(descriptor) as connection:
        try:
            if not connection.poll(_CALL_WITHIN_S):
                return  # an exception prevented the caller from sending its call
            call = connection.recv()
        except EOFError:
            return  # the caller has ended
        keep_from_children(call.spec, os.environ)
        caller = _Caller(connection)
        log = logging.getLogger("eosingest")
        log.setLevel(call.log_level)
        log.addHandler(_LogHandler(caller))
        answer = _answer(call, caller)
        for number in _HANDLED:
            signal.signal(number, signal.SIG_IGN)
        if "eosingest.spark.session" in sys.modules:
            from eosingest.spark.session import end_jvms

            end_jvms(_JVM_END_S)
        caller.send(answer)


if __name__ == "__main__":
    main(int(sys.argv[1]))
