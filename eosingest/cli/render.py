"""The one place that writes: results to stdout, as text or as one line of JSON; everything else to stderr.

Nothing is wrapped, coloured or cut here, so that a cron mail and a terminal show the same. Control characters of data
(a corrupt row, the name of a file) are shown escaped, and never reach the terminal as such.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from eosingest.cli.result import Result
from eosingest.errors import EXIT_FATAL, EosingestError, SpecError

if TYPE_CHECKING:
    from rich.console import Console

ENVELOPE_VERSION = 1
REPORT_A_BUG = "this is a bug in eosingest, please report it"
_NOTEWORTHY = "eosingest.broker"
_ESCAPED = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


class Renderer:
    """Writes what a verb says. `output` is text or json; stdout holds the result and nothing else.

    A `quiet` one says errors only; what is written as JSON is asked for, and comes all the same.
    """

    def __init__(self, output: str, *, quiet: bool = False) -> None:
        self.output = output
        self.quiet = quiet

    # ---- stderr ----------------------------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """Say what the person who watches should know."""
        if not self.quiet:
            self.line(f"note: {text}")

    def line(self, text: str) -> None:
        """Write a plain line to stderr. Nobody listening there any more is no reason to end a run."""
        try:
            _write(sys.stderr, text.translate(_ESCAPED) + "\n")
        except OSError:
            _forget(sys.stderr)

    def line_from_signal_handler(self, text: str) -> None:
        """Write a line to stderr past Python's buffers, which the interrupted code may be in the middle of."""
        with contextlib.suppress(OSError):
            # On a terminal the cursor stands behind the bar, or behind the ^C that the terminal has echoed.
            os.write(2, f"{os.linesep if os.isatty(2) else ''}{text}{os.linesep}".encode())

    def bug(self) -> None:
        """Write the traceback of the exception at hand, and where to go with it."""
        self.line(f"{traceback.format_exc()}{REPORT_A_BUG}")

    def watched(self) -> bool:
        """Whether a person watches stderr, so that a live bar helps.

        Asked of the terminal itself: FORCE_COLOR and GITHUB_ACTIONS make Rich take a log file for one.
        """
        return (
            self.output == "text"
            and not self.quiet
            and sys.stderr is not None
            and sys.stderr.isatty()
            and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
            and not os.environ.get("CI")
        )

    def console(self) -> Console:
        """Return Rich's console on the terminal at stderr, for live bars only; it honours NO_COLOR."""
        from rich.console import Console

        return Console(stderr=True, force_terminal=True, force_interactive=True)

    # ---- stdout ----------------------------------------------------------------------------------------------------

    def result(self, result: Result) -> int:
        """Write the result, and return the exit code: the result's own, 7 where a good one could not be written."""
        try:
            if self.output == "json":
                _write(sys.stdout, _envelope(result) + "\n")
            else:
                self._text(result)
        except BrokenPipeError:
            _forget(sys.stdout)
        except OSError as error:
            _forget(sys.stdout)
            self.line(f"error: the result cannot be written to stdout: {error.strerror}")
            return result.exit_code if result.status == "error" else EXIT_FATAL
        return result.exit_code

    def _text(self, result: Result) -> None:
        try:
            if not self.quiet:
                _write(sys.stdout, "".join(f"{line.translate(_ESCAPED)}\n" for line in result.lines))
        finally:
            for note in result.notes:
                self.note(note)
            for error in result.errors:
                self.line(f"error: {error.message}")
                if error.hint:
                    self.line(f"hint: {error.hint}")


class LogHandler(logging.Handler):
    """Shows log records of the package on stderr: as notes what the embedded broker says, the rest with `verbose`."""

    def __init__(self, renderer: Renderer, *, verbose: bool) -> None:
        super().__init__(logging.DEBUG)
        self._renderer = renderer
        self._verbose = verbose
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record, or pass it over."""
        if record.name.startswith(_NOTEWORTHY) and record.levelno >= logging.INFO:
            self._renderer.note(record.getMessage())
        elif self._verbose:
            self._renderer.line(self.format(record))


@contextlib.contextmanager
def logging_to(renderer: Renderer, *, verbose: bool) -> Iterator[None]:
    """Show the package's log on stderr inside this context."""
    logger, handler = logging.getLogger("eosingest"), LogHandler(renderer, verbose=verbose)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbose else logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


def _envelope(result: Result) -> str:
    return json.dumps(
        {
            "version": ENVELOPE_VERSION,
            "command": result.command,
            "status": result.status,
            "exit_code": result.exit_code,
            "data": result.data,
            "errors": [each for error in result.errors for each in _errors(error, each=result.command == "check")],
        },
        default=str,
    )


def _errors(error: EosingestError, *, each: bool) -> list[dict[str, Any]]:
    """Return an error as an object; with `each` the problems of a spec each as one, with its place, for annotations.

    That is what `check` is for; the other verbs end with one error, as they always have.
    """
    if each and isinstance(error, SpecError) and error.details:
        places = ("code", "message", "hint", "file", "line", "key")
        return [{name: getattr(detail, name) for name in places} for detail in error.details]
    return [{"code": error.code, "message": error.message, "hint": error.hint}]


def _write(stream: TextIO | None, text: str) -> None:
    """Write and flush. What the stream's encoding lacks, such as a file name's stray byte, is written escaped."""
    if stream is None:  # closed by the caller, as in `eosingest … >&-`
        return
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _forget(stream: TextIO) -> None:
    """Let what is still in the stream's buffer, and Python's own flush at exit, go nowhere."""
    with contextlib.suppress(OSError, ValueError), Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())
