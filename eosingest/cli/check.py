"""Implements `eosingest check SPEC`, which checks a spec for mistakes, offline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from eosingest.cli import formatting
from eosingest.cli.options import Output, Overrides, Params, Quiet, SpecFile, Verbose, load_spec, spec_file
from eosingest.cli.progress import Watcher
from eosingest.cli.render import Renderer
from eosingest.cli.result import Action, Result
from eosingest.cli.signals import Signals

if TYPE_CHECKING:
    from eosingest.report.wording import Wording
    from eosingest.spec import Spec
    from eosingest.spec.encodings import Encoded
    from eosingest.spec.model import Create
    from eosingest.spec.tables import SourceTable


def check(
    spec: SpecFile = None,
    param: Params = None,
    set_: Overrides = None,
    with_spark: Annotated[
        bool,
        typer.Option(
            "--spark",
            envvar="EOSINGEST_SPARK",
            help="Let Spark check schema, options and expressions too, with the existing data.",
        ),
    ] = False,
    read: Annotated[
        bool,
        typer.Option(
            "--read",
            envvar="EOSINGEST_READ",
            help="Read the source as a run would, and report what a run would refuse. Requests go to the source only.",
        ),
    ] = False,
    output: Output = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> Action:
    """Check a spec, offline: all mistakes at once, each with its line; expressions too. --spark and --read read the source."""

    def perform(renderer: Renderer) -> Result:
        from eosingest.app.inspect import check as check_spec

        loaded = load_spec(spec, param, set_, thorough=True)
        notes = tuple(check_spec(loaded))
        if with_spark:
            notes += (_ask_spark(loaded, renderer),)
        if read:
            notes += tuple(_read(loaded, renderer))
        file = spec_file(spec)
        data = {"file": str(file), "valid": True, **_values(loaded), "notes": list(notes)}
        lines = (f"{file}: the spec is valid", *formatting.table(_summary(loaded)))
        return Result("check", data=data, lines=lines, notes=notes)

    return Action("check", perform, output, verbose, quiet)


def _ask_spark(spec: Spec, renderer: Renderer) -> str:
    """Return a note on the schema that Spark resolved. Raises SpecError, with the line, for a key that Spark refuses."""
    from eosingest.app.preview import ask_spark

    signals = Signals(renderer.line_from_signal_handler)
    signals.install()
    with Watcher(renderer) as watcher:
        return ask_spark(spec, watcher, signals.received)


def _read(spec: Spec, renderer: Renderer) -> list[str]:
    """Return notes on the files that were read. Raises the error with which a run would end before it sends anything."""
    from eosingest.app.read_check import read_source

    signals = Signals(renderer.line_from_signal_handler)
    signals.install()
    with Watcher(renderer) as watcher:
        return read_source(spec, watcher, signals.received)


def _values(spec: Spec) -> dict[str, Any]:
    """Return the effective values that cannot be secrets: no values of client properties, Spark settings or expressions."""
    return {
        "name": spec.name,
        "format": spec.source.format,
        "path": list(spec.source.places()),
        "split_size": spec.source.split_size if spec.source.cut_by_size else None,
        "bootstrap_servers": spec.sink.bootstrap_servers,
        "topic": spec.sink.topic,
        "offsets_topic": spec.sink.offsets_topic,
        "dead_letter_topic": None if spec.on_error == "fail" else spec.on_error.topic,
        "transactional_id_prefix": spec.sink.transactional_id_prefix,
        "properties": sorted(spec.sink.properties),
        "if_running": spec.if_running,
    }


def _summary(spec: Spec) -> list[tuple[str, str]]:
    from eosingest.app.settings import wording_of

    source, sink, limits, wording = spec.source, spec.sink, spec.transaction, wording_of(spec)
    return [
        ("job", f"{spec.name}; while an earlier run is alive: {spec.if_running}"),
        ("source", f"{source.format}: {', '.join(source.places())}"),
        ("splits", _splits(source, wording)),
        ("schema", _schema(spec)),
        ("rows", _rows(spec)),
        ("record", _record(spec)),
        ("topic", f"{sink.topic} on {sink.bootstrap_servers}{_created(sink.create)}"),
        ("bad rows", _bad_rows(spec)),
        ("properties", ", ".join(sorted(sink.properties)) or "none"),
        ("progress", f"in {sink.offsets_topic}; transactional ids {sink.transactional_id_prefix}{spec.name}.*"),
        (
            "transaction",
            f"{'one for all of a run: ' if limits.whole else ''}{formatting.duration(limits.timeout)}, "
            f"{formatting.count(limits.max_records, 'record')}, {formatting.size(limits.max_bytes)} at most",
        ),
        ("spark", ", ".join([_master(spec), *sorted(spec.spark.conf)])),
    ]


def _created(create: Create | None) -> str:
    return f", created with {formatting.count(create.partitions, 'partition')} where missing" if create else ""


def _bad_rows(spec: Spec) -> str:
    dead = spec.on_error
    if dead == "fail":
        return "one that cannot be sent ends its split, and the run with exit 7"
    return (
        f"to {dead.topic}{_created(dead.create)}, {formatting.count(dead.max, 'row')} at most until the job is complete"
    )


def _splits(source: SourceTable, wording: Wording) -> str:
    if not source.cut_by_size:
        return f"one for each {wording.item}"
    return f"{formatting.size(source.split_size)}; a changed {wording.item}: {source.on_change}"


def _master(spec: Spec) -> str:
    from eosingest.app.inspect import master_of

    return spec.spark.master or f"{master_of(spec)} (the spec names no master)"


def _schema(spec: Spec) -> str:
    return "as given" if spec.source.given_schema is not None else spec.source.schema_note()


def _rows(spec: Spec) -> str:
    rows = "those for which `where` is true" if spec.transform.where is not None else "all"
    columns = (
        "all columns" if spec.transform.select == ("*",) else formatting.count(len(spec.transform.select), "column")
    )
    return f"{rows}; {columns}"


def _record(spec: Spec) -> str:
    record = spec.record
    key = "without a key" if record.key is None else f"with a key{_encoding(record.key)}"
    timestamp = "the row's timestamp" if record.timestamp is not None else "the time of sending"
    partition = ", partitions by the row" if record.partition is not None else ""
    listed = isinstance(record.headers, str)
    headers = "the row's headers" if listed else formatting.count(len(record.headers), "header")
    value = f", the value{_encoding(record.value)}" if not isinstance(record.value, str) else ""
    return f"{key}{value}, {headers}, {timestamp}{partition}"


def _encoding(part: str | Encoded) -> str:
    if isinstance(part, str):
        return ""
    return f" in {'Avro' if part.avro else 'JSON, by a schema'} (subject {part.by.subject})"
