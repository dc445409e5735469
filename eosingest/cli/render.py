"""Prints results to stdout, as text or as one line of JSON, and everything else to stderr. No other module prints.

Nothing is wrapped, coloured or cut, so that a cron mail and a terminal show the same. Control characters in data (a corrupt
row, a file's name) are escaped.
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
from eosingest.errors import EXIT_FATAL, REPORT_A_BUG, EosingestError, SpecError

if TYPE_CHECKING:
    from rich.console import Console

ENVELOPE_VERSION = 1
_NOTEWORTHY = ("eosingest.broker", "eosingest.host.ivy")
_ESCAPED = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


class Renderer:
    """Prints a verb's notes and its result. `output` is "text" or "json"; only the result goes to stdout.

    With `quiet`, it prints only errors and, with `output` "json", the result.
    """

    def __init__(self, output: str, *, quiet: bool = False) -> None:
        self.output = output
        self.quiet = quiet

    # ---- stderr ----------------------------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """Print a note for the user, unless quiet."""
        if not self.quiet:
            self.line(f"note: {text}")

    def line(self, text: str) -> None:
        """Write a plain line to stderr. A failure to write there is ignored: it must not end a run."""
        try:
            _write(sys.stderr, text.translate(_ESCAPED) + "\n")
        except OSError:
            _forget(sys.stderr)

    def line_from_signal_handler(self, text: str) -> None:
        """Write a line to stderr, bypassing Python's buffers: the interrupted code may be writing to them."""
        with contextlib.suppress(OSError):
            # On a terminal the cursor is after the bar, or after the ^C that the terminal has echoed.
            os.write(2, f"{os.linesep if os.isatty(2) else ''}{text}{os.linesep}".encode())

    def bug(self) -> None:
        """Write the traceback of the current exception, and where to report it."""
        self.line(f"{traceback.format_exc()}{REPORT_A_BUG}")

    def watched(self) -> bool:
        """Say whether stderr is a terminal on which to show a live bar.

        Checks the stream itself, because with FORCE_COLOR or GITHUB_ACTIONS set, Rich treats a log file as a terminal.
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
        """Return Rich's console on stderr, for live bars only; it respects NO_COLOR."""
        from rich.console import Console

        return Console(stderr=True, force_terminal=True, force_interactive=True)

    # ---- stdout ----------------------------------------------------------------------------------------------------

    def result(self, result: Result) -> int:
        """Write the result; return its exit code, or 7 if a successful result could not be written."""
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
    """Shows the package's log records on stderr: those of the embedded broker and of Ivy as notes, others if `verbose`."""

    def __init__(self, renderer: Renderer, *, verbose: bool) -> None:
        super().__init__(logging.DEBUG)
        self._renderer = renderer
        self._verbose = verbose
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record, or ignore it."""
        if record.name.startswith(_NOTEWORTHY) and record.levelno >= logging.INFO:
            self._renderer.note(record.getMessage())
        elif self._verbose:
            self._renderer.line(self.format(record))


@contextlib.contextmanager
def logging_to(renderer: Renderer, *, verbose: bool) -> Iterator[None]:
    """Context manager: show the package's log on stderr, and with `verbose` the libraries' warnings."""
    logger, handler = logging.getLogger("eosingest"), LogHandler(renderer, verbose=verbose)
    level = logger.level
    for each in (logger, logging.getLogger()):
        each.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbose else logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        for each in (logger, logging.getLogger()):
            each.removeHandler(handler)


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
    """Return the error as a JSON object; with `each` (for `check`), one object per problem of the spec, with its place.

    CI annotations use the places.
    """
    if each and isinstance(error, SpecError) and error.details:
        places = ("code", "message", "hint", "file", "line", "key")
        return [{name: getattr(detail, name) for name in places} for detail in error.details]
    return [{"code": error.code, "message": error.message, "hint": error.hint}]


def _write(stream: TextIO | None, text: str) -> None:
    """Write and flush. Escape characters that the stream's encoding lacks, such as a file name's stray byte."""
    if stream is None:  # closed by the caller, as in `eosingest … >&-`
        return
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _forget(stream: TextIO) -> None:
    """Redirect the stream to the null device, so that Python's flush at exit does not fail."""
    with contextlib.suppress(OSError, ValueError), Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())
