"""Implements `eosingest status SPEC`, which shows a job's state in the offsets topic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eosingest.cli import formatting
from eosingest.cli.options import Output, Overrides, Params, Quiet, SpecFile, Verbose, load_spec
from eosingest.cli.progress import Watcher
from eosingest.cli.render import Renderer
from eosingest.cli.result import Action, Result
from eosingest.report.model import StatusReport


def status(
    spec: SpecFile = None,
    param: Params = None,
    set_: Overrides = None,
    output: Output = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> Action:
    """Show how far a job is: its last run, files, splits, records. Exit 10 where it has not run yet."""

    def perform(renderer: Renderer) -> Result:
        from eosingest.app.inspect import status as status_of_job

        loaded = load_spec(spec, param, set_)
        with Watcher(renderer) as watcher:
            report = status_of_job(loaded, watcher)
        return result_of(report)

    return Action("status", perform, output, verbose, quiet)


def result_of(report: StatusReport) -> Result:
    """Return the status as a Result. A job that is not complete is no error of this verb."""
    return Result("status", data=report.to_json(), lines=tuple(_lines(report)))


def _lines(report: StatusReport) -> Iterator[str]:
    yield f"{report.job}: {report.state}, run {report.run}{_alive(report)}."
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    rows = [
        *((("said" if not number else ""), _said(error)) for number, error in enumerate(report.said)),
        ("since", f"{report.time} on {report.host} (pid {report.pid})"),
        ("topic", f"{report.topic} on {report.bootstrap_servers}"),
        (report.wording.items, f"{report.items_done:,} of {report.items:,} done" if report.items else "none begun yet"),
        ("splits", f"{report.splits_done:,} of {report.splits:,} done, of those that were begun"),
        ("records", f"{report.records_total:,} by all runs"),
        *_dead_letters(report),
        ("versions", versions or "not known"),
        *formatting.gaps(report.gaps),
    ]
    transactions = [_transaction(entry) for entry in report.open_transactions]
    if report.refused is not None:
        rows += [("the next run", f"would refuse: {_said(report.refused)}"), ("", report.refused["hint"])]
    names = ["open transactions", *[""] * len(transactions)]
    yield from formatting.table(rows + list(zip(names, transactions or ["none"], strict=False)))


def _dead_letters(report: StatusReport) -> list[tuple[str, str]]:
    if report.dead_letter_topic is None:
        return []
    return [("dead letters", f"{report.dead_letters_total:,} by all runs, in topic {report.dead_letter_topic}")]


def _alive(report: StatusReport) -> str:
    """Return the text on whether the process of a run without a verdict is still alive."""
    if report.alive is None:
        return ""
    if report.alive:
        return " (its process is alive)"
    return " (its process is gone: it was killed; the next run resumes after the committed records)"


def _said(error: dict[str, str]) -> str:
    first, *more = error["message"].splitlines() or [""]
    return f"{first}{' …' if more else ''} ({error['code']})"


def _transaction(entry: dict[str, Any]) -> str:
    whose = "" if entry["of_this_job"] else ", not of this job"
    hanging = ", hanging: no coordinator knows of it" if entry["hanging"] else ""
    return f"{entry['transactional_id']}, open for {formatting.duration(entry['age_s'])}{whose}{hanging}"
