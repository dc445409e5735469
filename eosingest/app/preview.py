"""Shows the schema and the first records as a run would make them (`preview`), and sends nothing.

    snapshot ─▶ the plan of a first run ─▶ Spark: record columns of all items ─▶ schema
                                               └─ of one item after the other ─▶ the first rows

The offsets topic is not read, so the records that were sent already are not known. Nothing is claimed or written. Requests go
to the source, whose brokers may be the sink's, and to a schema registry.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from eosingest.app.assemble import Parts, assemble
from eosingest.app.encodings import NOT_REGISTERED, resolved
from eosingest.app.prepare import begin_in_background
from eosingest.errors import FatalError, InterruptedRunError, SpecError, SpecProblem
from eosingest.host import interruptible
from eosingest.kafka.config import ClientSettings
from eosingest.protocol.plan import Plan, notes_of
from eosingest.report.model import PreviewReport, ShownRecord
from eosingest.report.progress import Observer
from eosingest.spec import Spec

if TYPE_CHECKING:
    from eosingest.spark.preview import SparkPreviewer

_KEY = re.compile(r"((?:source|transform|record)\.[\w.]+): ")
_ITEMS_AT_MOST = 20  # if `where` takes no row of these, stop: the user is waiting


def preview(spec: Spec, rows: int, observer: Observer, interrupted: Callable[[], int | None]) -> PreviewReport:
    """Return the schema and the first `rows` records. Raises the errors that a run would raise before it sends anything."""
    parts = assemble(spec, observer, check_of(interrupted), asks_brokers=False)
    plan = parts.first_plan()
    report = PreviewReport(
        job=spec.name,
        topic=spec.sink.topic,
        format=spec.source.format,
        wording=plan.wording,
        items=len(plan.items),
        schema=None,
        lacks_schema=spec.source.lacks_schema,
        log=str(parts.log_file) if parts.log_file is not None else None,
    )
    for note in notes_of(plan, parts.source):
        parts.observer.note(note)
    if plan.items:
        observer.note("starting Spark; nothing is sent")
        report = _look(parts, rows, plan, report, observer)
        if not report.errors:
            begin_in_background(spec, observer.note)
    return replace(report, notes=tuple(parts.observer.notes) + report.notes)


def ask_spark(spec: Spec, observer: Observer, interrupted: Callable[[], int | None]) -> str:
    """Have Spark resolve schema and expressions over the existing data (`check --spark`), and return a note.

    Raises the errors that a run would raise; a SpecError about a key of the spec names its line.
    """
    parts = assemble(spec, observer, check_of(interrupted), asks_brokers=False)
    plan = parts.first_plan()
    if not plan.items:
        return f"Spark was not started: there is no {plan.wording.item} with data in it"
    if spec.source.given_schema is not None:
        plan = replace(plan, items=plan.items[:1])  # more items would not change the result
    observer.note("starting Spark; nothing is sent")
    spark = _previewer(parts, observer)
    try:
        schema = spark.open(plan)
    except SpecError as error:
        raise _with_line(error, spec) from error
    finally:
        spark.close()
    return f"Spark takes schema and expressions; the schema is {schema}"


def _with_line(error: SpecError, spec: Spec) -> SpecError:
    """Return the error with file and line added, if its text begins with a key of the spec."""
    found = _KEY.match(error.message)
    line = spec.line_of(found[1]) if found is not None else None
    if found is None or line is None:
        return error
    message = f"{spec.file}:{line}: {error.message}"
    detail = SpecProblem(message, error.code, str(spec.file), line, found[1], error.hint)
    return SpecError(message, code=error.code, hint=error.hint, problems=[message], details=[detail])


def check_of(interrupted: Callable[[], int | None]) -> Callable[[], None]:
    """Return a function that raises InterruptedRunError once there was a signal."""

    def check() -> None:
        number = interrupted()
        if number is not None:
            name = signal.Signals(number).name
            raise InterruptedRunError(f"stopped by {name}; nothing was sent", signal_number=number)

    return check


def _previewer(parts: Parts, observer: Observer) -> SparkPreviewer:
    from eosingest.spark.preview import SparkPreviewer

    client = ClientSettings(parts.spec.sink.bootstrap_servers)  # never connected
    found = interruptible.in_thread(lambda: resolved(parts.spec, "", unknown="show"), parts.check, "registry")
    for encoding in found.values():
        if encoding.id == NOT_REGISTERED:
            parts.observer.note(
                f"subject {encoding.subject} does not have the schema yet: a run registers it; its id is shown as 0"
            )
    return SparkPreviewer(parts.spark_settings(client, observer.note, encodings=found))


def _look(parts: Parts, rows: int, plan: Plan, report: PreviewReport, observer: Observer) -> PreviewReport:
    spark = _previewer(parts, observer)
    try:
        schema = spark.open(plan)
        records: list[ShownRecord] = []
        for single in _one_by_one(plan):
            if len(records) >= rows:
                break
            records += spark.first_records(single, schema, rows - len(records))
    finally:
        spark.close()
    notes: tuple[str, ...] = ()
    if len(records) < rows and len(plan.items) > _ITEMS_AT_MOST:
        notes = (f"only the first {_ITEMS_AT_MOST} of {plan.wording.count(len(plan.items))} were read",)
    return replace(report, schema=schema, records=tuple(records), errors=tuple(_corrupt(records, plan)), notes=notes)


def _one_by_one(plan: Plan) -> Iterator[Plan]:
    """Yield plans of one item each, in the plan's order, since from a plan of many items Spark reads the largest first."""
    for entry in plan.items[:_ITEMS_AT_MOST]:
        yield replace(plan, items=(entry,))


def _corrupt(records: Iterable[ShownRecord], plan: Plan) -> Iterator[FatalError]:
    for number, record in enumerate(records, start=1):
        if record.unfit is not None:
            yield FatalError(
                f"{record.item}: record {number} of the preview: the row does not fit the schema: {record.unfit}",
                code="does-not-fit",
                hint=f"nothing was sent; correct the {plan.wording.item}, the schema or avro.columns. A run would stop here",
            )
            return
        if record.corrupt is not None:
            why = f" ({record.why})" if record.why else ""
            yield FatalError(
                f"{record.item}: record {number} of the preview: the row cannot be parsed by the schema{why}:"
                f" {record.corrupt[:200]}",
                code="corrupt-row",
                hint=f"nothing was sent; correct the {plan.wording.item}, source.schema or source.options."
                " A run would stop here",
            )
            return
