"""Implements `eosingest verify SPEC`, which audits the topic against the receipts of sent records, and against the source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from eosingest.cli import formatting
from eosingest.cli.options import Output, Overrides, Params, Quiet, SpecFile, Verbose, load_spec
from eosingest.cli.progress import Watcher
from eosingest.cli.render import Renderer
from eosingest.cli.result import Action, Result
from eosingest.cli.signals import Signals
from eosingest.errors import worst_exit_code
from eosingest.report.model import VerifyReport

_FINDINGS_SHOWN = 20


def verify(
    spec: SpecFile = None,
    param: Params = None,
    set_: Overrides = None,
    against_source: Annotated[
        bool,
        typer.Option(
            "--against-source",
            envvar="EOSINGEST_AGAINST_SOURCE",
            help="Read the source too, and compare it with the topic record by record.",
        ),
    ] = False,
    output: Output = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> Action:
    """Audit the topic: is everything there that was sent, once and unchanged? Exit 4 where it is not."""

    def perform(renderer: Renderer) -> Result:
        signals = Signals(renderer.line_from_signal_handler)
        signals.install()
        from eosingest.app.verify import VerifyOptions
        from eosingest.app.verify import verify as verify_job

        loaded = load_spec(spec, param, set_)
        options = VerifyOptions(against_source=against_source)
        with Watcher(renderer) as watcher:
            report = verify_job(loaded, options, watcher, signals.received)
        return result_of(report, verbose=verbose)

    return Action("verify", perform, output, verbose, quiet)


def result_of(report: VerifyReport, *, verbose: bool = False) -> Result:
    """Return the audit as a Result."""
    return Result(
        "verify",
        data=report.to_json(),
        lines=tuple(_lines(report, verbose=verbose)),
        exit_code=worst_exit_code(error.exit_code for error in report.errors),
        errors=report.errors,
    )


def _lines(report: VerifyReport, *, verbose: bool) -> Iterator[str]:
    yield (
        f"{report.job}: {report.verdict}. {formatting.count(report.found['records'], 'record')} read in "
        f"{formatting.duration(report.seconds)} ({report.records_per_second:,.0f} records/s)."
    )
    offsets = sum(part["high_watermark"] - part["start"] for part in report.partitions)
    rows = [
        (
            "topic",
            f"{report.topic} on {report.bootstrap_servers}, {formatting.count(len(report.partitions), 'partition')}",
        ),
        ("receipts", f"{_totals(report.expected)}, to run {report.run} ({report.state})"),
        ("found", f"{_totals(report.found)}, at {offsets:,} offsets"),
    ]
    if report.found_late["records"]:
        rows.append(("of these", f"{_totals(report.found_late)} written after the job was complete"))
    if report.source_splits is not None:
        reader = report.source_reader or "the reader of a run"
        rows.append(("source", f"{formatting.count(report.source_splits, 'split')} read again, by {reader}"))
    if report.dead_letters is not None:
        told = report.dead_letters
        rows.append(("dead letters", f"{told['found']:,} of {told['expected']:,} in topic {told['topic']}"))
    rows += formatting.gaps(report.gaps)
    yield from formatting.table(rows)
    shown = report.findings if verbose else report.findings[:_FINDINGS_SHOWN]
    for finding in shown:
        yield from _finding(finding)
    if len(shown) < len(report.findings):
        yield f"  and {len(report.findings) - len(shown):,} more (--verbose shows them all)"


def _totals(totals: dict[str, Any]) -> str:
    return f"{formatting.count(totals['records'], 'record')}, checksum {totals['checksum']}"


def _finding(finding: dict[str, Any]) -> Iterator[str]:
    number = f"{formatting.count(finding['records'], 'record')}: " if finding["records"] else ""
    where = f"{finding['split']}: " if finding["split"] else ""
    yield f"{finding['kind']}: {where}{number}{finding['text']}"
    if finding["examples"]:
        yield f"  {'; '.join(finding['examples'])}"
