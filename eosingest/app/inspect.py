"""Performs the read-only verbs check, plan and status, which claim and fence nothing, create no topic and start no JVM."""

from __future__ import annotations

import contextlib
import platform
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from eosingest import broker
from eosingest.app import encodings
from eosingest.app.assemble import Parts, assemble
from eosingest.app.connection import EMBEDDED, Connection, control_log
from eosingest.app.settings import source_of, wording_of
from eosingest.errors import ChangedError, EosingestError, FatalError, NoSuchJobError, SpecError
from eosingest.host import last_errors
from eosingest.host.java import find_java, java_major_version
from eosingest.kafka.librdkafka import refuse_properties
from eosingest.kafka.ports import Admin
from eosingest.protocol import corrected_items, data_loss, dead_letter_topic, pins, scope, single_transaction
from eosingest.protocol.control_log import ControlLog
from eosingest.protocol.driver_contract import DriverSettings
from eosingest.protocol.offsets import record, topic
from eosingest.protocol.offsets.record import ControlRecord, OffsetRecord
from eosingest.protocol.offsets.state import JobState
from eosingest.protocol.plan import Plan, PlannedItem, gone_note, half_done_items, make_plan, notes_of
from eosingest.protocol.source import Purpose, Snapshot, Source, SplitId
from eosingest.protocol.transactional_ids import control_id, task_id
from eosingest.report.model import PlanReport, StatusReport
from eosingest.report.progress import Observer
from eosingest.spark import spark_defaults
from eosingest.spec import Spec, resolve_properties
from eosingest.spec.masters import is_local

_ENDED = (record.COMPLETE, record.FAILED)


def check(spec: Spec) -> list[str]:
    """Check a loaded spec offline, and return notes. Raises SpecError; FatalError if Java is missing."""
    _refuse_offline(spec)
    java = find_java()
    notes = [f"Java {java_major_version(java)} at {java}"]
    master = master_of(spec)
    spark_defaults.refuse_embedded_elsewhere(spec, master)
    if not is_local(master):
        notes.append(
            f"spark.master: {master}: every executor must {wording_of(spec).on_executors}, and have a Python of this"
            f" minor version ({platform.python_version().rpartition('.')[0]}) with eosingest's dependencies"
        )
    notes += _not_lines(spec)
    return notes


def _refuse_offline(spec: Spec) -> None:
    """Raise SpecError for all that a run would refuse without a connection."""
    refused = list[SpecError]()
    for check_part in (_check_properties, encodings.check, lambda spec: source_of(spec).check_offline()):
        try:
            check_part(spec)
        except SpecError as error:
            refused.append(error)
    if len(refused) == 1:
        raise refused[0]
    if refused:
        problems = [problem for error in refused for problem in error.problems or (f"{error.message}; {error.hint}",)]
        raise SpecError("\n".join(problems), code="spec-invalid", problems=problems)


def _check_properties(spec: Spec) -> None:
    refuse_properties(resolve_properties(spec), "sink.properties", str(spec.file))


def master_of(spec: Spec) -> str:
    """Return the master that a run would use; under spark-submit, that of its JVM if the spec has none."""
    if spec.spark.master is not None or not spark_defaults.is_submitted():
        return spark_defaults.spark_master(spec)
    from eosingest.spark.session import submitted_master

    return spark_defaults.spark_master(spec, submitted_master())


def _not_lines(spec: Spec) -> list[str]:
    """Return a note if a run would fail at the first item because it is JSON that is not one record per line."""
    if not spec.source.is_local_json_lines:
        return []
    from eosingest.sniff import why_not_json_lines

    try:
        path = source_of(spec).plan(purpose=Purpose.SHOW).sample
        error = why_not_json_lines(path) if path is not None else None
    except EosingestError:  # while a spec is written the data may be missing
        return []
    return [f"{error.message}; {error.hint}"] if error is not None else []


def plan(spec: Spec, observer: Observer) -> PlanReport:
    """Return the plan of a run. The report contains the errors with which the run would end."""
    parts = assemble(spec, observer)
    source = parts.source
    source.check()
    if spec.sink.bootstrap_servers == EMBEDDED and not broker.status().running:
        return _first_plan(parts)
    with parts.connected(start=False) as kafka:
        look = _look(spec, kafka, parts.observer)
        state = look.state
        settings = parts.driver_settings(kafka)
        errors = _pinned_errors(spec, kafka.admin, look, settings)
        control = state.settled
        in_force = control is not None and pins.in_force(control, state.offsets)
        pins.refuse_other_format(state, settings.format)
        split_size = control.split_size if control is not None and in_force else spec.source.split_size
        snapshot = scope.snapshot(source, control, state, Purpose.SHOW)
        offsets = state.offsets
        if control is not None and in_force and settings.on_change == "error":
            snapshot, offsets = _as_corrected(parts, snapshot, control, offsets)
        made = make_plan(source, offsets, split_size, snapshot)
        with _collected(errors):
            made.refuse_changes(settings.on_change)
        with _collected(errors):
            data_loss.refuse(source, snapshot.gaps)
        with _collected(errors):
            if settings.whole and control is not None:
                single_transaction.refuse_half_sent(control, made, state.offsets.values())
        with _collected(errors):
            _check_dead_letters(parts, kafka.admin, settings, state, made)
        report = _plan_report(spec, kafka.client.bootstrap_servers, made, errors)
    return _with_notes(report, made, parts)


def _as_corrected(
    parts: Parts, snapshot: Snapshot, control: ControlRecord, offsets: dict[SplitId, OffsetRecord]
) -> tuple[Snapshot, dict[SplitId, OffsetRecord]]:
    """Return snapshot and offset records as if a run had proven each changed item that it may accept, with notes on these."""
    found = corrected_items.corrections(parts.source, snapshot, offsets, control)
    if found is None:
        return snapshot, offsets
    for name in found.records:
        parts.observer.note(
            f"{name}: changed after a part of it was sent; run checks whether that part is unchanged, and then sends the rest,"
            " else it ends with exit 12"
        )
    snapshot, records = found.accepted(snapshot)
    return snapshot, {**offsets, **{each.split: each for each in records}}


def _check_dead_letters(parts: Parts, admin: Admin, settings: DriverSettings, state: JobState, made: Plan) -> None:
    """Note that no dead letter is left to write. Raises the errors of a run for the dead-letter topic."""
    order = settings.dead_letters
    if order is None:
        return
    pin, letters = state.dead_letter_pin, state.dead_letters(state.dead_letter_pin)
    dead_letter_topic.looked_up(admin, order, pin, letters)
    if made.pending and not dead_letter_topic.left(order, pin, letters):
        parts.observer.note(
            f"on_error.max: the {order.allowed:,} dead letters that it allows are written: the next row that cannot be sent"
            " ends its split, and the run with exit 7"
        )


def _first_plan(parts: Parts) -> PlanReport:
    """Plan as if nothing had been sent, since the embedded broker is down and a read-only verb does not start it."""
    parts.observer.note(
        "the embedded broker is not running, so the records sent to it are not known: this is the plan of a first run"
        " (start it with: eosingest broker up)"
    )
    made = parts.first_plan()
    return _with_notes(_plan_report(parts.spec, EMBEDDED, made, []), made, parts)


def _with_notes(report: PlanReport, made: Plan, parts: Parts) -> PlanReport:
    for note in notes_of(made, parts.source):
        parts.observer.note(note)
    return replace(report, notes=tuple(parts.observer.notes))


def status(spec: Spec, observer: Observer) -> StatusReport:
    """Return the job's state in the offsets topic. Raises NoSuchJobError if the topic has none."""
    parts = assemble(spec, observer)
    source = parts.source
    with parts.connected(start=False) as kafka:
        look = _look(spec, kafka, observer)
        state = look.state
        control = state.control
        if control is None:
            raise NoSuchJobError(
                f"{spec.sink.offsets_topic} on {kafka.client.bootstrap_servers} holds nothing about job {spec.name}",
                hint="it has not run there yet: eosingest run SPEC",
            )
        pins.refuse_other_format(state, spec.source.format)
        ours = {control_id(control.pinned.prefix, spec.name)} | {
            task_id(control.pinned.prefix, spec.name, task) for task in range(control.tasks_alive)
        }
        open_now = kafka.admin.open_transactions(spec.sink.offsets_topic, look.partition)
        splits = source.splits
        items, left = {splits.item(split) for split in state.offsets}, half_done_items(splits, state.offsets)
        elsewhere = control.host if spec.source.is_of_one_host and control.host != socket.gethostname() else ""
        _note_gone(source, sorted(items - set(left)), elsewhere, observer)
        return StatusReport(
            job=spec.name,
            topic=control.pinned.topic,
            bootstrap_servers=kafka.client.bootstrap_servers,
            state=control.state,
            run=control.run,
            host=control.host,
            pid=control.pid,
            time=control.time,
            wording=source.wording,
            items=len(items),
            items_done=len(items) - len(left),
            splits=len(state.offsets),
            splits_done=sum(1 for offset in state.offsets.values() if offset.done),
            records_total=state.records_total,
            **_dead_letters(state),
            gaps=data_loss.told(state),
            open_transactions=tuple(
                {**entry._asdict(), "of_this_job": entry.transactional_id in ours} for entry in open_now
            ),
            versions=dict(control.versions),
            alive=last_errors.lives(control.host, control.pid) if control.state not in _ENDED else None,
            said=tuple(last_errors.recall(kafka.admin.cluster_id(), spec.name, control.host, control.pid)),
            refused=next(({"code": e.code, "message": e.message, "hint": e.hint} for e in _refused(look)), None),
        )


def _note_gone(source: Source, sent: list[str], elsewhere: str, observer: Observer) -> None:
    """Note which items that were sent whole no longer exist. A source that cannot be listed says nothing about that.

    `elsewhere` is the host of the last run if the items are those of a host, and this is another one.
    """
    if not sent:
        return
    try:
        gone = source.missing(sent)
        if gone and elsewhere:
            source.check()  # on a host without the source each item is missing
    except EosingestError as error:
        items = source.wording.items
        observer.note(
            f"the source cannot be listed here, so it is not known which {items} still exist: {error.message}"
        )
        return
    if gone:
        observer.note(gone_note(gone, source.wording, elsewhere))


def _dead_letters(state: JobState) -> dict[str, Any]:
    pin = state.dead_letter_pin
    if pin is None:
        return {}
    return {"dead_letters_total": state.dead_letters(pin).count, "dead_letter_topic": pin.topic}


def _refused(look: _Look) -> list[EosingestError]:
    """Return the errors with which a run would refuse the offsets topic."""
    if look.grew is not None:
        return [look.grew]
    errors: list[EosingestError] = []
    control = look.state.settled
    if control is not None and look.state.offsets:
        with _collected(errors):
            pins.refuse_other_life(control.pinned, replace(control.pinned, offsets_partitions=look.partitions))
    return errors


class _Look(NamedTuple):
    """A job's state up to the last stable offset, read from `partition` of the offsets topic, which has `partitions` (0: the
    topic does not exist). `grew`: the error of a run if partitions were added after the job's records were written.
    """

    state: JobState
    partition: int = 0
    partitions: int = 0
    grew: ChangedError | None = None


def _look(spec: Spec, kafka: Connection, observer: Observer) -> _Look:
    """Read the job's state up to the last stable offset; claim and fence nothing, create no topic."""
    found = kafka.admin.describe_topic(spec.sink.offsets_topic)
    if found is None:
        return _Look(JobState(spec.name))
    with contextlib.closing(control_log(spec, kafka, found)) as log:
        state = _read_to_last_stable_offset(spec, log, observer)
        elsewhere = log.look_elsewhere(found.partitions) if state.control is None else None
    if elsewhere is None:
        return _Look(state, log.partition, found.partitions)
    partition, control = elsewhere
    with contextlib.closing(control_log(spec, kafka, found, partition)) as log:
        state = _read_to_last_stable_offset(spec, log, observer)
    grew = pins.offsets_topic_grew(control.pinned.offsets_partitions, found.partitions)
    return _Look(state, partition, found.partitions, grew)


def _read_to_last_stable_offset(spec: Spec, log: ControlLog, observer: Observer) -> JobState:
    state = JobState(spec.name)
    with log.kafka_errors("reading the offsets topic"):
        topic.read_to_last_stable_offset(log.reader, state, deadline_s=topic.read_deadline_s(spec.transaction.timeout))
        if log.reader.high_watermark() > state.end:
            observer.note("a transaction is open in the offsets topic: it may hide newer progress")
    return state


@contextlib.contextmanager
def _collected(errors: list[EosingestError]) -> Iterator[None]:
    try:
        yield
    except EosingestError as error:
        errors.append(error)


def _pinned_errors(spec: Spec, admin: Admin, look: _Look, settings: DriverSettings) -> list[EosingestError]:
    """Return the errors with which a run would end before its job, as far as reading alone shows."""
    if look.grew is not None:
        return [look.grew]  # a run stops here, too
    errors: list[EosingestError] = []
    state = look.state
    control, sink = state.settled, admin.describe_topic(spec.sink.topic)
    if control is None or not state.offsets:
        if sink is None and settings.create is None:
            errors.append(FatalError(f"topic {spec.sink.topic} does not exist", code="topic-missing"))
        return errors
    now = replace(
        control.pinned,
        format=settings.format,
        root=settings.root,
        topic=settings.topic,
        offsets_partitions=look.partitions,
        prefix=settings.prefix,
        cluster_id=admin.cluster_id(),
    )
    with _collected(errors):
        pins.refuse_other_life(control.pinned, now)
        if sink is None or sink.topic_id != control.pinned.topic_id:
            raise pins.written_topic_recreated(spec.sink.topic)
    with _collected(errors):
        found = admin.describe_topic(spec.sink.offsets_topic)
        pins.refuse_lost_progress(state, control, found.topic_id if found is not None else "")
    if pins.in_force(control, state.offsets):
        with _collected(errors):
            pins.refuse_other_digest(control, settings.digest)
    return errors


def _plan_report(spec: Spec, servers: str, made: Plan, errors: list[EosingestError]) -> PlanReport:
    return PlanReport(
        job=spec.name,
        topic=spec.sink.topic,
        bootstrap_servers=servers,
        wording=made.wording,
        items=tuple(_item_line(entry, made) for entry in made.items),
        splits=sum(entry.splits for entry in made.items),
        splits_pending=len(made.pending),
        size_total=sum(entry.item.size for entry in made.items),
        size_to_read=made.size_to_read,
        size_to_send=made.size_to_send,
        split_size=made.split_size if spec.source.cut_by_size else None,
        records_committed=made.committed_records,
        left_out={out.why: out.what for out in made.left_out},
        vanished=made.vanished,
        errors=tuple(errors),
    )


def _item_line(entry: PlannedItem, made: Plan) -> dict[str, Any]:
    if entry.item.name in made.changed:
        state = "changed"
    elif entry.half_done:
        state = "half done"
    else:
        state = "done" if entry.done else "new"
    return {
        "name": entry.item.name,
        "size": entry.item.size,
        "splits": entry.splits,
        "splits_pending": len(entry.pending),
        "state": state,
    }
