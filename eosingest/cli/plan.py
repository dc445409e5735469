"""Implements `eosingest plan SPEC`, which shows what a run would do, and disturbs no other run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from eosingest.cli import formatting
from eosingest.cli.options import Output, Overrides, Params, Quiet, SpecFile, Verbose, load_spec
from eosingest.cli.progress import Watcher
from eosingest.cli.render import Renderer
from eosingest.cli.result import Action, Result
from eosingest.errors import EXIT_DONE, EXIT_WORK_PENDING, worst_exit_code
from eosingest.report.model import PlanReport

_ITEMS_SHOWN = 20
_STATES = ("done", "half done", "changed", "new")


def plan(
    spec: SpecFile = None,
    param: Params = None,
    set_: Overrides = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", envvar="EOSINGEST_EXIT_CODE", help="Exit with 20 when work is pending.")
    ] = False,
    output: Output = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> Action:
    """Show what a run would send: files, splits, bytes. Sends nothing, starts nothing and disturbs no other run."""

    def perform(renderer: Renderer) -> Result:
        from eosingest.app.inspect import plan as plan_job

        loaded = load_spec(spec, param, set_)
        with Watcher(renderer) as watcher:
            report = plan_job(loaded, watcher)
        return result_of(report, exit_code=exit_code, verbose=verbose)

    return Action("plan", perform, output, verbose, quiet)


def result_of(report: PlanReport, *, exit_code: bool, verbose: bool) -> Result:
    """Return the plan as a Result. With `exit_code`, pending work gives exit code 20; errors keep their own codes."""
    code = worst_exit_code(error.exit_code for error in report.errors)
    if code == EXIT_DONE and exit_code and report.work_pending:
        code = EXIT_WORK_PENDING
    return Result(
        "plan",
        data=report.to_json(),
        lines=tuple(_lines(report, verbose=verbose)),
        exit_code=code,
        errors=report.errors,
    )


def _lines(report: PlanReport, *, verbose: bool) -> Iterator[str]:
    pending = [item for item in report.items if item["splits_pending"]]
    if pending:
        yield (
            f"{report.job}: {len(pending):,} of {report.wording.count(len(report.items))} to send, "
            f"{report.splits_pending:,} of {formatting.count(report.splits, 'split')}."
        )
    else:
        yield f"{report.job}: nothing to do."
    yield from formatting.table(_rows(report))
    if pending:
        yield from _pending_lines(report, pending, verbose=verbose)


def _rows(report: PlanReport) -> list[tuple[str, str]]:
    states = Counter(item["state"] for item in report.items)
    items, unit = report.wording.items, report.wording.unit
    each = ", ".join(f"{states[state]:,} {state}" for state in _STATES if states[state])
    done = report.splits - report.splits_pending
    cut = "" if report.split_size is None else f"; {items} are cut every {formatting.size(report.split_size)}"
    rows = [
        ("topic", f"{report.topic} on {report.bootstrap_servers}"),
        (items, f"{len(report.items):,}: {each}" if each else "0"),
        ("splits", f"{report.splits:,}: {done:,} done, {report.splits_pending:,} pending{cut}"),
        ("to read", formatting.amount(report.size_to_read, unit)),
        (
            "to send",
            f"{_at_most(states)}{formatting.amount(report.size_to_send, unit)} of {formatting.amount(report.size_total, unit)}",
        ),
        ("committed", formatting.count(report.records_committed, "record")),
    ]
    return rows + [("left out", text) for text in [_left_out(report)] if text]


def _at_most(states: Counter[str]) -> str:
    """Return "at most " if items are half done: a partially committed split counts whole, as only its reader knows the rest."""
    return "at most " if states["half done"] else ""


def _left_out(report: PlanReport) -> str:
    counts = {why: what if isinstance(what, int) else len(what) for why, what in report.left_out.items()}
    counts["vanished"] = len(report.vanished)
    return ", ".join(f"{number:,} {what}" for what, number in counts.items() if number)


def _pending_lines(report: PlanReport, pending: list[dict[str, Any]], *, verbose: bool) -> Iterator[str]:
    shown = pending if verbose else pending[:_ITEMS_SHOWN]
    yield f"{report.wording.items.capitalize()} to send:"
    yield from formatting.table(
        [
            (
                str(item["name"]),
                f"{item['state']}, {item['splits_pending']:,} of {formatting.count(item['splits'], 'split')}, "
                f"{formatting.amount(item['size'], report.wording.unit)}",
            )
            for item in shown
        ]
    )
    if len(shown) < len(pending):
        yield f"  and {len(pending) - len(shown):,} more (--verbose shows them all)"
