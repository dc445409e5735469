"""Implements `eosingest broker up|down|status` for the embedded broker, a real Apache Kafka on this machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from eosingest.cli import formatting
from eosingest.cli.options import Output, Quiet, Verbose
from eosingest.cli.render import Renderer
from eosingest.cli.result import Action, Result

if TYPE_CHECKING:
    from eosingest.broker import BrokerStatus


def up(output: Output = None, verbose: Verbose = False, quiet: Quiet = False) -> Action:
    """Start the broker, or find it running. The first time Apache Kafka is fetched (44 MB)."""

    def perform(renderer: Renderer) -> Result:
        from eosingest import broker

        now = broker.up()
        what = "started" if now.started_now else "running already"
        return _result("broker up", now, f"Apache Kafka {now.version} {what} at {now.bootstrap_servers}.")

    return Action("broker up", perform, output, verbose, quiet)


def down(
    remove_data: Annotated[
        bool,
        typer.Option("--remove-data", envvar="EOSINGEST_REMOVE_DATA", help="Remove its topics and all their records."),
    ] = False,
    output: Output = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> Action:
    """End the broker. Its data is kept for the next start, unless --remove-data is given."""

    def perform(renderer: Renderer) -> Result:
        from eosingest import broker

        now = broker.down(remove_data=remove_data)
        kept = "its data is removed" if remove_data else "its data is kept"
        return _result("broker down", now, f"The embedded broker is down; {kept}.")

    return Action("broker down", perform, output, verbose, quiet)


def status(output: Output = None, verbose: Verbose = False, quiet: Quiet = False) -> Action:
    """Say whether the broker runs, and where."""

    def perform(renderer: Renderer) -> Result:
        from eosingest import broker

        now = broker.status()
        where = f"running at {now.bootstrap_servers}" if now.running else "not running"
        return _result("broker status", now, f"The embedded broker (Apache Kafka {now.version}) is {where}.")

    return Action("broker status", perform, output, verbose, quiet)


def _result(command: str, now: BrokerStatus, line: str) -> Result:
    data = {**asdict(now), "directory": str(now.directory), "log": str(now.log)}
    rows = [("pid", str(now.pid))] if now.running else []
    rows += [("folder", str(now.directory)), ("log", str(now.log))]
    return Result(command, data=data, lines=(line, *formatting.table(rows)))
