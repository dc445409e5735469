"""Implements `eosingest run SPEC`, which sends the rows not yet sent, exactly once; the exit code reports the outcome."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Annotated, Literal

import typer

from eosingest.cli import formatting
from eosingest.cli.options import Output, Overrides, Params, Quiet, SpecFile, Verbose, load_spec
from eosingest.cli.progress import Watcher
from eosingest.cli.render import Renderer
from eosingest.cli.result import Action, Result
from eosingest.cli.signals import Signals
from eosingest.errors import EXIT_FENCED, EXIT_INCOMPLETE, EXIT_SIGNAL_BASE, EosingestError, InterruptedRunError
from eosingest.report.model import RunReport

IfRunning = Literal["fence", "fail", "skip"]


IfRunningOption = Annotated[
    IfRunning | None,
    typer.Option(
        "--if-running",
        envvar="EOSINGEST_IF_RUNNING",
        metavar="fence|fail|skip",
        help="While an earlier run of the job is alive on this host: fence it off, fail with exit 11, or skip this run "
        "(the default is the spec's if_running).",
        show_default=False,
    ),
]
FromScratch = Annotated[
    bool,
    typer.Option(
        "--from-scratch",
        envvar="EOSINGEST_FROM_SCRATCH",
        help="Forget the job's progress and send everything again, also records that are already in the topic.",
    ),
]
AcceptChange = Annotated[
    bool,
    typer.Option(
        "--accept-change",
        envvar="EOSINGEST_ACCEPT_CHANGE",
        help="Resume with a spec that was changed in the middle of the job, once it is proven that the sent records stay "
        "as they are; otherwise exit 12, naming the splits.",
    ),
]
AcceptGap = Annotated[
    bool,
    typer.Option(
        "--accept-gap",
        envvar="EOSINGEST_ACCEPT_GAP",
        help="Resume after records of a topic that were deleted before they were read (retention), instead of exit 12. The "
        "job records the gap: status and verify name it.",
    ),
]
MaxBytesPerSecond = Annotated[
    str | None,
    typer.Option(
        "--max-bytes-per-second",
        envvar="EOSINGEST_MAX_BYTES_PER_SECOND",
        metavar="SIZE",
        help="Send no more than this in a second, as in 10MiB, all tasks together: sink.rate_limit for this run.",
        show_default=False,
    ),
]


def run(
    spec: SpecFile = None,
    param: Params = None,
    set_: Overrides = None,
    if_running: IfRunningOption = None,
    from_scratch: FromScratch = False,
    accept_change: AcceptChange = False,
    accept_gap: AcceptGap = False,
    max_bytes_per_second: MaxBytesPerSecond = None,
    output: Output = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> Action:
    """Send the data that is not yet sent, exactly once. Run it again to send only new or remaining data."""

    def perform(renderer: Renderer) -> Result:
        signals = Signals(renderer.line_from_signal_handler)
        signals.install()
        from eosingest.app.run import run as run_job
        from eosingest.app.settings import RunOptions

        limit = [f"sink.rate_limit={max_bytes_per_second}"] if max_bytes_per_second is not None else []
        loaded = load_spec(spec, param, [*(set_ or ()), *limit])
        options = RunOptions(from_scratch, accept_change, accept_gap, if_running)
        try:
            with Watcher(renderer) as watcher:
                report = run_job(loaded, options, watcher, signals.received)
        except EosingestError as error:
            number = signals.received()
            if number is None or isinstance(error, InterruptedRunError):
                raise
            return interrupted(error, number)
        return skipped(loaded.name) if report is None else result_of(report, verbose=verbose)

    return Action("run", perform, output, verbose, quiet)


def skipped(job: str) -> Result:
    """Return the Result of a run that was skipped because another run is active."""
    line = f"{job}: skipped, another run of it is active on this host; nothing was sent."
    return Result("run", data={"job": job, "skipped": True, "records_sent": 0}, lines=(line,))


def interrupted(error: EosingestError, number: int) -> Result:
    """Return the Result of a run that failed after a signal: the exit code is the signal's, and both are reported."""
    stopped = InterruptedRunError(f"stopped by {signal.Signals(number).name}", signal_number=number)
    return Result("run", exit_code=stopped.exit_code, errors=(stopped, error))


def result_of(report: RunReport, *, verbose: bool = False) -> Result:
    """Return the report of a run as a Result."""
    return Result(
        "run",
        data=report.to_json(),
        lines=tuple(_lines(report, verbose=verbose)),
        exit_code=report.exit_code,
        errors=report.errors,
    )


def _lines(report: RunReport, *, verbose: bool) -> Iterator[str]:
    name = f"{report.job} run {report.run}"
    if report.complete and not report.splits_planned:
        total = formatting.count(report.records_total, "record")
        yield f"{name}: nothing to do. {total} in topic {report.topic} by all runs{_resent(report)}."
        if report.dead_letters_total:
            yield f"Dead letters: {report.dead_letters_total:,} in topic {report.dead_letter_topic} by all runs."
        if report.items:
            yield f"{report.wording.items.capitalize()} {report.items_done:,} of {report.items:,} done."
        return
    a_second = report.records_sent / report.seconds if report.seconds else 0.0
    rate = f" ({a_second:,.0f} records/s)" if a_second >= 1 else ""
    yield (
        f"{name}: {_outcome(report)}. {formatting.count(report.records_sent, 'record')} sent to topic {report.topic} in "
        f"{formatting.duration(report.seconds)}{rate}; {report.records_total:,} by all runs{_resent(report)}."
    )
    yield (
        f"{report.wording.items.capitalize()} {report.items_done:,} of {report.items:,} done, splits {report.splits_done:,} of "
        f"{report.splits_planned:,}{_left(report)}."
    )
    if report.dead_letters_total:
        letters = formatting.count(report.dead_letters, "row")
        yield f"Dead letters: {letters} to topic {report.dead_letter_topic}; {report.dead_letters_total:,} by all runs."
    if report.records_total or report.records_resent:
        yield "Read it with isolation.level=read_committed (not the default of the Java client)."
    if report.log is not None and (verbose or not report.complete):
        yield f"Spark's log: {report.log}"


def _resent(report: RunReport) -> str:
    """Return the text on the job's old records in the topic: those of items that were later sent again as a whole."""
    if not report.records_resent:
        return ""
    records = formatting.count(report.records_resent, "record")
    return f", in addition to {records} of {report.wording.items} as they were before they were sent again"


def _outcome(report: RunReport) -> str:
    if report.complete:
        letters = formatting.count(report.dead_letters, "dead letter")
        return f"complete, with {letters}" if report.dead_letters else "complete"
    if report.exit_code > EXIT_SIGNAL_BASE:
        return "interrupted"
    return {EXIT_INCOMPLETE: "incomplete", EXIT_FENCED: "fenced"}.get(report.exit_code, "failed")


def _left(report: RunReport) -> str:
    items, splits = report.items - report.items_done, report.splits_planned - report.splits_done
    if not items and not splits:
        return ""
    return f"; left to send: {formatting.count(splits, 'split')} of {report.wording.count(items)}"
