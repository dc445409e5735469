"""Defines every error that a user can meet, with its exit code. Imports no other module of ours, so that all may import it.

    EosingestError            1   a bug, unless a class below says otherwise
    ├─ SpecError              2   usage or spec: fix the file or the command line
    ├─ IncompleteError        3   some splits are not done; running again finishes them
    ├─ MismatchError          4   verify: the topic is not what the receipts say
    ├─ TemporaryError         5   the broker or the network: a retry may help
    ├─ FencedError            6   a newer run owns the job: do not retry
    ├─ FatalError             7   bad data, rights, unsupported broker: a retry will not help
    ├─ NoSuchJobError        10   the job has no progress on this cluster
    ├─ ActiveRunError        11   another run is active and `if_running = "fail"`
    ├─ ChangedError          12   source, spec or topic differs from the pinned one
    └─ InterruptedRunError 128+N  a signal ended the run after a clean abort

The exit codes mean the same for every verb (README, Exit codes). When several apply, `worst_exit_code` decides.
All classes pickle with their fields, because they pass from Spark's Python workers to the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

EXIT_DONE = 0
EXIT_BUG = 1
EXIT_SPEC = 2
EXIT_INCOMPLETE = 3
EXIT_MISMATCH = 4
EXIT_TEMPORARY = 5
EXIT_FENCED = 6
EXIT_FATAL = 7
EXIT_NO_SUCH_JOB = 10
EXIT_ACTIVE_RUN = 11
EXIT_CHANGED = 12
EXIT_WORK_PENDING = 20
EXIT_SIGNAL_BASE = 128

REPORT_A_BUG = "this is a bug in eosingest, please report it"

_PRECEDENCE = (EXIT_BUG, EXIT_FENCED, EXIT_FATAL, EXIT_CHANGED, EXIT_MISMATCH, EXIT_INCOMPLETE, EXIT_TEMPORARY)


class EosingestError(Exception):
    """An error with a stable `code` (a word for scripts), a message for people, and a `hint`: the next command or edit.

    `exit_code` is the exit code of the process. The message says what happened and where (file, line, key, split) and,
    if records may have been sent, which next step is safe. `item` names the source's item that it is about, "" for none.
    The Python API sets `report` if the verb made a report before it failed: a RunReport, VerifyReport, PlanReport or
    PreviewReport.
    """

    exit_code: ClassVar[int] = EXIT_BUG
    default_code: ClassVar[str] = "bug"
    item: str = ""
    report: Any = None

    def __init__(self, message: str, *, code: str = "", hint: str = "", item: str = "") -> None:
        super().__init__(message)
        self.item = item
        self.message = message
        self.code = code or self.default_code
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        # The fields come last: `report` may hold this error, too.
        return _rebuild, (type(self), self.message, self.code, self.hint), dict(self.__dict__)


def _rebuild(cls: type[EosingestError], message: str, code: str, hint: str) -> EosingestError:
    """Rebuild an error without calling its subclass's constructor; pickle then sets its fields."""
    error = cls.__new__(cls)
    EosingestError.__init__(error, message, code=code, hint=hint)
    return error


@dataclass(frozen=True)
class SpecProblem:
    """A problem of a spec, with its place, for an editor or a CI annotation, and a hint on how to fix it.

    `file` and `line` are None for a value that a flag gave; `line` and `key` are None also for a problem without either.
    """

    message: str
    code: str = "spec-invalid"
    file: str | None = None
    line: int | None = None
    key: str | None = None
    hint: str = ""


class SpecError(EosingestError):
    """The spec or the command line is wrong. `problems` lists every problem, so that all can be fixed at once.

    `details` are the same problems as objects, if they have a place in a file.
    """

    exit_code = EXIT_SPEC
    default_code = "spec"

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        hint: str = "",
        problems: Iterable[str] = (),
        details: Iterable[SpecProblem] = (),
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.problems = list(problems)
        self.details = list(details)


class IncompleteError(EosingestError):
    """Some splits are not done, and a new run can finish them."""

    exit_code = EXIT_INCOMPLETE
    default_code = "incomplete"


class MismatchError(EosingestError):
    """An audit found lost, duplicate or changed records. Reported only if nothing else explains the difference."""

    exit_code = EXIT_MISMATCH
    default_code = "mismatch"


class TemporaryError(EosingestError):
    """The broker or the network did not answer in time, or the outcome of a control commit is unknown."""

    exit_code = EXIT_TEMPORARY
    default_code = "temporary"


class FencedError(EosingestError):
    """The control record names another run. Raised only on this evidence, never on a client library's error alone."""

    exit_code = EXIT_FENCED
    default_code = "fenced"


class FatalError(EosingestError):
    """A retry fails in the same way: bad data, missing rights, a broker without a required feature."""

    exit_code = EXIT_FATAL
    default_code = "fatal"


class NoSuchJobError(EosingestError):
    """The offsets topic holds nothing about this job."""

    exit_code = EXIT_NO_SUCH_JOB
    default_code = "no-such-job"


class ActiveRunError(EosingestError):
    """Another run of the job holds the lock on this host, and `if_running` is "fail"."""

    exit_code = EXIT_ACTIVE_RUN
    default_code = "active-run"


class ChangedError(EosingestError):
    """Source, spec or topic differ from the pins in the control record or the offset records."""

    exit_code = EXIT_CHANGED
    default_code = "changed"


class InterruptedRunError(EosingestError):
    """A signal ended the run; open transactions have been aborted, and committed records are kept."""

    default_code = "interrupted"

    def __init__(self, message: str, *, signal_number: int, code: str = "", hint: str = "") -> None:
        super().__init__(message, code=code, hint=hint)
        self.signal_number = signal_number

    @property
    def exit_code(self) -> int:  # type: ignore[override]
        """128 plus the signal's number, as shells report it."""
        return EXIT_SIGNAL_BASE + self.signal_number


def listed(texts: Sequence[str], most: int, *, separator: str = ", ", rest: str = " and {} more") -> str:
    """Return the first `most` texts in one line; `rest` follows, with the number of the others in place of its braces."""
    first = separator.join(texts[:most])
    return first + rest.format(len(texts) - most) if len(texts) > most else first


def worst_exit_code(codes: Iterable[int]) -> int:
    """Return the exit code that wins when several apply: signal > bug > 6 > 7 > 12 > 4 > 3 > 5; 0 where there is none."""
    seen = {code for code in codes if code != EXIT_DONE}
    signals = [code for code in seen if code > EXIT_SIGNAL_BASE]
    if signals:
        return max(signals)
    return next((code for code in _PRECEDENCE if code in seen), max(seen, default=EXIT_DONE))
