"""Implements `eosingest spark up|status|down`: a warm JVM, in which the next commands start Spark within a second."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eosingest.cli import formatting
from eosingest.cli.options import Output, Overrides, Params, Quiet, Verbose, load_spec
from eosingest.cli.progress import Watcher
from eosingest.cli.render import Renderer
from eosingest.cli.result import Action, Result
from eosingest.cli.signals import Signals
from eosingest.errors import SpecError

if TYPE_CHECKING:
    from eosingest.app.warm import WarmStatus

JobSpec = Annotated[
    Path | None,
    typer.Argument(
        metavar="SPEC",
        help="The job whose settings count; without it, the settings of no job. - for standard input.",
        show_default=False,
    ),
]
Idle = Annotated[
    str,
    typer.Option(
        "--idle", envvar="EOSINGEST_IDLE", metavar="DURATION", help="End it when it was not used for so long."
    ),
]


def up(
    spec: JobSpec = None,
    param: Params = None,
    set_: Overrides = None,
    idle: Idle = "30m",
    output: Output = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> Action:
    """Start a JVM that stays warm, with the settings of SPEC if it is given. Local runs from this shell use it.

    It replaces a warm JVM that differs.
    """

    def perform(renderer: Renderer) -> Result:
        signals = Signals(renderer.line_from_signal_handler)
        signals.install()
        from eosingest.app.warm import up as start
        from eosingest.host.interruption import Interruption
        from eosingest.spec.units import parse_duration

        try:
            idle_s = parse_duration(idle)
        except ValueError as error:
            raise SpecError(f"--idle: {error}", code="usage", hint="as in --idle 30m") from None
        loaded = load_spec(spec, param, set_) if spec is not None else None
        with Watcher(renderer) as watcher:
            now = start(loaded, idle_s, watcher, Interruption(signals.received).check)
        what = "is warm" if now.started_now else "was warm already"
        return _result(
            "spark up", now, f"A JVM {what}; it ends after {formatting.duration(now.idle_s or 0)} without a run."
        )

    return Action("spark up", perform, output, verbose, quiet)


def down(output: Output = None, verbose: Verbose = False, quiet: Quiet = False) -> Action:
    """End the warm JVM, unless a run uses it. One that does not answer is killed, even during a run."""

    def perform(renderer: Renderer) -> Result:
        from eosingest.app.warm import down as end

        return _result("spark down", end(), "There is no warm JVM.")

    return Action("spark down", perform, output, verbose, quiet)


def status(
    spec: JobSpec = None,
    param: Params = None,
    set_: Overrides = None,
    output: Output = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> Action:
    """Say whether a JVM is warm, and whether a run from this shell, of SPEC if it is given, would use it."""

    def perform(renderer: Renderer) -> Result:
        from eosingest.app.warm import status as state
        from eosingest.host.interruption import never

        loaded = load_spec(spec, param, set_) if spec is not None else None
        with Watcher(renderer) as watcher:
            now = state(loaded, watcher, never)
        return _result("spark status", now, usable(now))

    return Action("spark status", perform, output, verbose, quiet)


def usable(now: WarmStatus) -> str:
    """Say whether a run would use the warm JVM."""
    if not now.running:
        return "There is no warm JVM."
    reason = now.unusable or (f"it differs in {now.differs}" if now.differs is not None else "")
    if not reason and now.used_by is not None:
        reason = f"the process {now.used_by} uses it"
    return (
        f"A JVM is warm; a run from here would not use it: {reason}."
        if reason
        else "A JVM is warm; a run from here uses it."
    )


def _result(command: str, now: WarmStatus, line: str) -> Result:
    rows = [("pid", str(now.pid))] if now.pid is not None else []
    rows += [("used by", f"process {now.used_by}")] if now.used_by is not None else []
    rows += [("folder", str(now.folder))]
    return Result(command, data={**vars(now), "folder": str(now.folder)}, lines=(line, *formatting.table(rows)))
