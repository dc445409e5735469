"""Performs a verb in a separate process, and waits for it in the caller's thread.

    perform ─▶ python -m eosingest.api.child ─▶ Note, Progress, Logged … ─▶ Answer
       └─ a stop, or an exception in the waiting thread ─▶ SIGTERM, SIGINT ─▶ the Answer of a verb that ended cleanly

This leaves the caller's Spark session, JVM, environment, signal handlers and log unchanged. Verbs may be performed in any
thread and concurrently. Nothing remains of a verb that has ended, however it ended.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing import Pipe
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any

import eosingest
from eosingest.api.messages import Answer, Call, Logged, Message, Note
from eosingest.errors import EosingestError, FatalError, IncompleteError, InterruptedRunError, TemporaryError
from eosingest.spec.model import Spec

_TICK_S = 0.1
_ORDERLY_END_S = 30.0  # a run ends within 10 s of its signal, its JVM within 5 s more
_EXIT_S = 10.0
_STDERR_LINES = 20
# PYTHONWARNINGS: the process imports libraries before it can set its filters (host/library_warnings.py).
_NOT_PASSED_ON = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "PYTHONWARNINGS")


def perform(
    verb: str,
    spec: Spec,
    options: dict[str, Any],
    *,
    on_progress: Callable[[Any], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    stop: threading.Event | None = None,
) -> Any:
    """Return the report of the verb, or raise its error. The callbacks are called in this thread.

    An exception in this thread (KeyboardInterrupt, or one of a signal handler or a callback) first ends the verb cleanly, and
    is then raised with a note on how the verb ended. A second exception, raised meanwhile, kills the verb.
    """
    log_level = logging.getLogger("eosingest").getEffectiveLevel()
    with tempfile.TemporaryFile() as stderr:
        child = _Child(verb, stderr)
        try:
            child.call(Call(verb, spec, options, os.getpid(), log_level))
            answer = child.wait(on_progress, on_note, stop)
        except BaseException as raised:
            child.end_in_order(raised)
            raise
        finally:
            child.close()
    if answer.error is not None:
        if answer.traceback:
            answer.error.add_note(answer.traceback)
        raise answer.error
    return answer.report


class _Child:
    """The process of one verb. A thread reads its messages, so that an exception in the caller's thread truncates none."""

    def __init__(self, verb: str, stderr: IO[bytes]) -> None:
        """Start the process; it waits for its Call."""
        self._verb = verb
        self._stderr = stderr
        self._messages: SimpleQueue[Message | None] = SimpleQueue()
        self._connection, its_end = Pipe()
        self._over = False
        self._asked: int | None = None  # the signal that was sent to end it
        try:
            self._process = subprocess.Popen(
                [sys.executable or "python3", "-P", "-m", "eosingest.api.child", str(its_end.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env=_environment(),
                pass_fds=[its_end.fileno()],
                start_new_session=True,  # a Ctrl-C of the terminal is for the caller alone
            )
        except OSError as error:
            self._connection.close()
            raise FatalError(f"a process cannot be started: {error}", code="no-process") from error
        finally:
            its_end.close()
        threading.Thread(target=self._read, name="eosingest-messages", daemon=True).start()

    def _read(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                self._messages.put(self._connection.recv())
        self._messages.put(None)

    def call(self, call: Call) -> None:
        """Send the Call."""
        with contextlib.suppress(OSError):  # it has ended: `wait` reports how
            self._connection.send(call)

    def wait(
        self,
        on_progress: Callable[[Any], None] | None = None,
        on_note: Callable[[str], None] | None = None,
        stop: threading.Event | None = None,
        within_s: float | None = None,
    ) -> Answer:
        """Return the Answer; pass on all other messages. Raises TemporaryError after `within_s` seconds."""
        deadline = None if within_s is None else time.monotonic() + within_s
        while True:
            if stop is not None and stop.is_set():
                stop = None
                self._signal(signal.SIGTERM)
            try:
                message = self._messages.get(timeout=_TICK_S)
            except Empty:
                if deadline is not None and time.monotonic() > deadline:
                    raise TemporaryError(f"{self._verb} has not ended within {within_s:.0f} s") from None
                continue
            if isinstance(message, Answer) or message is None:
                self._over = True
                return message if message is not None else Answer(error=self._lost())
            if isinstance(message, Logged):
                logging.getLogger(message.entry.name).handle(message.entry)
            elif isinstance(message, Note):
                if on_note is not None:
                    on_note(message.text)
            elif on_progress is not None:
                on_progress(message)

    def end_in_order(self, raised: BaseException) -> None:
        """Signal the process to end, wait for it, and note on the exception how it ended. Kill it if that fails."""
        if self._over:
            return
        try:
            self._signal(signal.SIGINT if isinstance(raised, KeyboardInterrupt) else signal.SIGTERM)
            said = _said(self._verb, self.wait(within_s=_ORDERLY_END_S))
        except BaseException as error:
            self._kill()
            raised.add_note(f"eosingest: {self._verb} was killed; {_KILLED}")
            if not isinstance(error, EosingestError):
                raise
        else:
            raised.add_note(f"eosingest: {said}")

    def close(self) -> None:
        """Wait until the process has ended; kill it if it does not."""
        try:
            self._process.wait(_EXIT_S if self._over else 0)
        except BaseException as error:
            self._kill()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
        finally:
            self._connection.close()

    def _signal(self, number: int) -> None:
        if self._process.poll() is None:
            self._asked = number
            self._process.send_signal(number)

    def _kill(self) -> None:
        """Kill the process and its JVM, which are a process group."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _lost(self) -> EosingestError:
        """Make the error for a process that ended without an Answer."""
        code = self._process.wait()
        if self._asked is not None and code == -self._asked:  # a run, an audit and a preview handle it once they begin
            name = signal.Signals(-code).name
            return InterruptedRunError(f"stopped by {name}; {self._verb} had sent nothing", signal_number=-code)
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").splitlines()[-_STDERR_LINES:]
        message = "\n".join([f"the process of {self._verb} {how} before it had reported", *lines])
        if self._verb == "run":
            return IncompleteError(message, code="process-ended", hint=_KILLED)
        return TemporaryError(message, code="process-ended", hint="nothing was sent; try again")


_KILLED = (
    "committed records are kept, nothing was sent twice; a transaction that is still open ends at its timeout, or by the next"
    " run: run again"
)


def _said(verb: str, answer: Answer) -> str:
    """Return the text on how a verb ended after the signal."""
    if answer.error is not None:
        return f"{answer.error.message}{'; ' if answer.error.hint else ''}{answer.error.hint}"
    errors = getattr(answer.report, "errors", ())
    if errors:
        return f"{errors[0].message}{'; ' if errors[0].hint else ''}{errors[0].hint}"
    return f"{verb} had ended already, without an error"


def _environment() -> dict[str, str]:
    """Return the environment of the process, which finds our package and all modules that this process finds.

    The process starts a separate Spark even under spark-submit and, by default, does not archive Spark's classes.
    """
    own = {str(Path(path).resolve()) for path in sysconfig.get_paths().values()}
    found = [str(Path(eosingest.__file__).parent.parent)]
    for entry in sys.path:
        if entry and str(Path(entry).resolve()) not in own:
            found.append(entry)
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_PASSED_ON}
    environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(found))
    environment.setdefault("EOSINGEST_PREPARE", "off")
    return environment
