"""Offers the verbs as functions, which raise the error that the command line would exit with; its `report` is the verb's.

Each verb is performed in a separate process (process.py). Nothing is printed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal, TypeVar, overload

from eosingest.api.process import perform
from eosingest.errors import worst_exit_code
from eosingest.report.model import PlanReport, PreviewReport, RunReport, StatusReport, VerifyReport
from eosingest.report.progress import AuditProgress, Progress
from eosingest.spec.model import Spec

_Report = TypeVar("_Report", PlanReport, PreviewReport, RunReport, VerifyReport)


def plan(spec: Spec, *, on_note: Callable[[str], None] | None = None) -> PlanReport:
    """Return the plan of a run now. Nothing is written, no Spark is started, and no other run is disturbed.

    Raises the error with which a run would end before it sends anything, as far as reading shows it; its `report` is the plan.
    `on_note` receives notes for the user, which are in the report too.
    """
    report: PlanReport = perform("plan", spec, {}, on_note=on_note)
    return _complete(report)


def preview(
    spec: Spec,
    *,
    rows: int = 5,
    on_note: Callable[[str], None] | None = None,
    stop: threading.Event | None = None,
) -> PreviewReport:
    """Return the schema and the first `rows` records as a run would make them. Starts Spark; does not contact the sink.

    Raises the errors that a run would raise before it sends anything. `on_note` and `stop` as for `run`.
    """
    report: PreviewReport = perform("preview", spec, {"rows": rows}, on_note=on_note, stop=stop)
    return _complete(report)


@overload
def run(
    spec: Spec,
    *,
    from_scratch: bool = False,
    accept_change: bool = False,
    accept_gap: bool = False,
    if_running: Literal["fence", "fail"],
    on_progress: Callable[[Progress], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    stop: threading.Event | None = None,
) -> RunReport: ...


@overload
def run(
    spec: Spec,
    *,
    from_scratch: bool = False,
    accept_change: bool = False,
    accept_gap: bool = False,
    if_running: Literal["fence", "fail", "skip"] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    stop: threading.Event | None = None,
) -> RunReport | None: ...


def run(
    spec: Spec,
    *,
    from_scratch: bool = False,
    accept_change: bool = False,
    accept_gap: bool = False,
    if_running: Literal["fence", "fail", "skip"] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    stop: threading.Event | None = None,
) -> RunReport | None:
    """Send the rows that are not yet sent, exactly once, and return the report of a complete run.

    Return None if `if_running` is "skip" (here, or in the spec where it is None here) and another run of the job is active on
    this host.

    Raises the errors of the command line, each with its `exit_code`, `code`, `message` and `hint`; `report` is the RunReport if
    the Spark job had begun and a verdict was committed. After IncompleteError, TemporaryError or ActiveRunError, run again.

    `from_scratch`, `accept_change`, `accept_gap`: as --from-scratch, --accept-change and --accept-gap.
    `on_progress` receives the progress about once a second, `on_note` notes for the user; both are called in this thread.
    `stop`: once it is set, the run ends cleanly within seconds, and InterruptedRunError is raised. An exception in this thread
    meanwhile, such as KeyboardInterrupt, also ends the run cleanly, and is then raised.
    """
    options = {
        "from_scratch": from_scratch,
        "accept_change": accept_change,
        "accept_gap": accept_gap,
        "if_running": if_running,
    }
    report: RunReport | None = perform("run", spec, options, on_progress=on_progress, on_note=on_note, stop=stop)
    return None if report is None else _complete(report)


def status(spec: Spec, *, on_note: Callable[[str], None] | None = None) -> StatusReport:
    """Return the job's state in the offsets topic. Nothing is written, no Spark is started.

    A job that is not complete is no error. Raises NoSuchJobError if it has not run on this cluster.
    """
    report: StatusReport = perform("status", spec, {}, on_note=on_note)
    return report


def verify(
    spec: Spec,
    *,
    against_source: bool = False,
    on_progress: Callable[[AuditProgress], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    stop: threading.Event | None = None,
) -> VerifyReport:
    """Audit the topic, and return the report if every sent record is there, once and unchanged.

    Raises MismatchError if not, FatalError (code "inconclusive") if the audit cannot decide, TemporaryError if a run is
    writing; `report` of each is the VerifyReport. `against_source`: read the source too, and compare it with the topic
    record by record. `on_progress`, `on_note` and `stop` as for `run`.
    """
    options = {"against_source": against_source}
    report: VerifyReport = perform("verify", spec, options, on_progress=on_progress, on_note=on_note, stop=stop)
    return _complete(report)


def _complete(report: _Report) -> _Report:
    """Return the report, or raise the error in it that the command line would exit with."""
    if not report.errors:
        return report
    worst = worst_exit_code(error.exit_code for error in report.errors)
    error = next(error for error in report.errors if error.exit_code == worst)
    error.report = report
    raise error
