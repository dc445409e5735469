"""Implements `eosingest preview SPEC`, which shows the schema and the first records that a run would send; sends nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from eosingest.cli import formatting, records
from eosingest.cli.options import Output, Overrides, Params, Quiet, SpecFile, Verbose, load_spec
from eosingest.cli.progress import Watcher
from eosingest.cli.render import Renderer
from eosingest.cli.result import Action, Result
from eosingest.cli.signals import Signals
from eosingest.errors import worst_exit_code
from eosingest.report.model import PreviewReport


def preview(
    spec: SpecFile = None,
    param: Params = None,
    set_: Overrides = None,
    rows: Annotated[
        int, typer.Option("--rows", "-n", min=1, max=1000, envvar="EOSINGEST_ROWS", help="How many records to show.")
    ] = 5,
    output: Output = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> Action:
    """Show the first records as they would be sent, and the schema. Sends nothing.

    It contacts the source (of a topic its brokers) and a schema registry, and reads no progress of the job.
    """

    def perform(renderer: Renderer) -> Result:
        signals = Signals(renderer.line_from_signal_handler)
        signals.install()
        from eosingest.app.preview import preview as preview_job

        loaded = load_spec(spec, param, set_)
        with Watcher(renderer) as watcher:
            report = preview_job(loaded, rows, watcher, signals.received)
        return result_of(report)

    return Action("preview", perform, output, verbose, quiet)


def result_of(report: PreviewReport) -> Result:
    """Return the preview as a Result; a corrupt row in it is an error, as in a run."""
    return Result(
        "preview",
        data=report.to_json(),
        lines=tuple(_lines(report)),
        exit_code=worst_exit_code(error.exit_code for error in report.errors),
        errors=report.errors,
    )


def _lines(report: PreviewReport) -> Iterator[str]:
    of = f"of {report.wording.count(report.items)} for topic {report.topic}"
    if not report.items:
        yield f"{report.job}: there is no {report.wording.item} with data in it; nothing would be sent."
        return
    yield f"{report.job}: the first {formatting.count(len(report.records), 'record')} {of}; nothing was sent."
    if report.schema and report.format != "text":
        from eosingest.spec import toml_string

        if report.lacks_schema:
            yield "The schema, to be written under [source]:"
            yield f"schema = {toml_string(report.schema)}"
        else:
            yield f"The columns: {report.schema}"
    for number, record in enumerate(report.records, start=1):
        yield from records.lines_of(record, f"Record {number} ({record.item})")
