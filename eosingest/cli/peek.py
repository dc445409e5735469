"""Implements `eosingest topic peek TOPIC|SPEC`, which shows records of a topic as a read_committed consumer reads them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eosingest.cli import formatting, records
from eosingest.cli.options import Output, Overrides, Params, Quiet, Verbose, load_spec
from eosingest.cli.render import Renderer
from eosingest.cli.result import Action, Result
from eosingest.errors import SpecError
from eosingest.report.model import PeekReport

if TYPE_CHECKING:
    from eosingest.app.peek import PeekSettings

_EMBEDDED = "embedded"


def peek(
    target: Annotated[
        str,
        typer.Argument(metavar="TOPIC|SPEC", help="A topic, or a job's TOML file: then the topic that it writes to."),
    ],
    number: Annotated[
        int, typer.Option("--number", "-n", min=1, max=10_000, envvar="EOSINGEST_NUMBER", help="How many records.")
    ] = 10,
    last: Annotated[
        bool, typer.Option("--last", envvar="EOSINGEST_LAST", help="The newest records, instead of the oldest.")
    ] = False,
    servers: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-servers",
            envvar="EOSINGEST_BOOTSTRAP_SERVERS",
            metavar="HOST:PORT,…",
            help="The cluster: by default the spec's, and for a TOPIC the embedded broker. What needs a login needs a SPEC.",
            show_default=False,
        ),
    ] = None,
    param: Params = None,
    set_: Overrides = None,
    output: Output = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> Action:
    """Show records of a topic, read with isolation.level=read_committed: key, value, headers, partition, offset, time."""

    def perform(renderer: Renderer) -> Result:
        from eosingest.app.peek import peek as peek_topic

        return result_of(peek_topic(_settings(target, servers, number, param, set_, last=last)))

    return Action("topic peek", perform, output, verbose, quiet)


def _settings(
    target: str, servers: str | None, number: int, param: Params, set_: Overrides, *, last: bool
) -> PeekSettings:
    """Return the settings for the spec's topic if the target is a file or ends with .toml, else for the topic of that name."""
    from eosingest.app.peek import PeekSettings, settings_of

    if target.endswith(".toml") or Path(target).is_file():
        return settings_of(load_spec(Path(target), param, set_), servers, number, last=last)
    if param or set_:
        raise SpecError("--param and --set are for a SPEC, and this is a topic", code="usage")
    return PeekSettings(target, servers or _EMBEDDED, {}, number, last)


def result_of(report: PeekReport) -> Result:
    """Return the report as a Result; an empty topic is no error."""
    return Result("topic peek", data=report.to_json(), lines=tuple(_lines(report)), notes=report.notes)


def _lines(report: PeekReport) -> Iterator[str]:
    where = f"topic {report.topic} on {report.bootstrap_servers} ({formatting.count(report.partitions, 'partition')})"
    if not report.records:
        yield f"{where} holds no record that read_committed shows."
        return
    which = "last" if report.last else "first"
    yield f"{where}: the {which} {formatting.count(len(report.records), 'record')}, oldest first."
    for record in report.records:
        yield from records.lines_of(record, f"Partition {record.partition}, offset {record.offset}")
