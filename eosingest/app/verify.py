"""Wires an audit together (`verify`): receipts from the offsets topic, records of the sink topic, rows of the source.

    receipts ─▶ may this topic be audited? ─▶ sums of the topic, and of the source ─▶ equal: verified
                                                     └─ differ ─▶ hash by hash ─▶ judgement
    receipts again: moved? ─▶ a run is writing: inconclusive

Claims nothing, fences nothing, writes nothing.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from eosingest.app import prepare
from eosingest.app.assemble import Parts, assemble
from eosingest.app.co_writers import OtherJobs
from eosingest.app.connection import Connection, control_log
from eosingest.app.encodings import resolved
from eosingest.audit import await_stable, classify, dead_letters, findings, receipts
from eosingest.audit.co_writers import SisterJob, together
from eosingest.audit.receipts import Circumstances, Compared, Copies, Found, Judgement
from eosingest.errors import (
    InterruptedRunError,
    NoSuchJobError,
    listed,
)
from eosingest.host.interruptible import in_thread
from eosingest.kafka.ports import TopicDescription
from eosingest.protocol import data_loss, pins
from eosingest.protocol.audited_source import AuditedSource, Unit, audited_source
from eosingest.protocol.control_log import ControlLog
from eosingest.protocol.offsets import topic
from eosingest.protocol.offsets.record import ControlRecord
from eosingest.protocol.offsets.state import JobState
from eosingest.protocol.source import Purpose, SplitId
from eosingest.records.encoding import Encoding
from eosingest.report.model import VerifyReport
from eosingest.report.progress import AuditObserver, AuditProgress
from eosingest.spec import Spec

_COUNTED = (receipts.LOST, receipts.DOUBLED, receipts.CHANGED, receipts.FOREIGN)


@dataclass(frozen=True)
class VerifyOptions:
    """The options of an audit that are not in the spec."""

    against_source: bool = False


def verify(
    spec: Spec, options: VerifyOptions, observer: AuditObserver, interrupted: Callable[[], int | None]
) -> VerifyReport:
    """Audit the topic. The findings are in the report; raises the errors of errors.py if the audit itself failed."""

    def check() -> None:
        number = interrupted()
        if number is not None:
            name = signal.Signals(number).name
            raise InterruptedRunError(f"stopped by {name}; the topic was not judged", signal_number=number)

    parts = assemble(spec, observer, check)
    also = " and source" if options.against_source else ""
    observer.note(f"reading the receipts, then topic{also} with Spark")  # not kept in the report
    with parts.connected(start=False) as kafka:
        description = kafka.admin.describe_topic(spec.sink.offsets_topic)
        if description is None:
            raise _no_such_job(spec, kafka)
        log = control_log(spec, kafka, description)
        try:
            report = _Verification(parts, options, kafka, log, description, observer.audited).run()
        finally:
            log.close()
    if not report.errors:
        prepare.begin_in_background(spec, observer.note)
    return replace(report, notes=tuple(parts.observer.notes))


class _Verification:
    """One audit, used once."""

    def __init__(
        self,
        parts: Parts,
        options: VerifyOptions,
        kafka: Connection,
        log: ControlLog,
        offsets_topic: TopicDescription,
        tell: Callable[[AuditProgress], None],
    ) -> None:
        self._parts = parts
        self._spec, self._source = parts.spec, parts.source
        self._tell = tell
        self._observer = parts.observer
        self._sisters: tuple[SisterJob, ...] = ()
        self._options = options
        self._kafka = kafka
        self._log = log
        self._offsets_topic = offsets_topic
        self._check = parts.check
        self._letters: dict[str, Any] | None = None
        self._other_reader = ""
        self._began = time.monotonic()
        self._patience_s = topic.read_deadline_s(parts.spec.transaction.timeout)

    # ---- from top to bottom ----------------------------------------------------------------------------------------

    def run(self) -> VerifyReport:
        """Run the audit and return its report."""
        self._read_receipts()
        state = self._log.state
        control = self._refuse_no_progress(state)
        # A job that has sent nothing yet has pinned no split size.
        self._control = control = replace(control, split_size=control.split_size or self._spec.source.split_size)
        self._sink = self._refuse_changes(state, control)
        self._other_jobs = OtherJobs(
            self._kafka, self._log, self._offsets_topic, self._spec.name, self._sink, self._patience_s
        )
        self._before = (state.control, dict(state.offsets))
        self._expected = receipts.expected_of(state.offsets.values(), control.audit)
        ranges = self._kafka.admin.offset_ranges(self._sink.name, self._sink.partitions)
        self._extents = receipts.extents(control.audit, ranges)
        self._wait_until_decided()
        rows = None
        if self._options.against_source:
            snapshot = self._source.plan(None, state.offsets.values(), Purpose.AUDIT)
            rows = audited_source(self._source, snapshot, state.offsets, control)
            self._note_elsewhere(rows)
        found, verdict = self._audit(rows)
        with self._log.kafka_errors("reading the dead-letter topic"):
            reading = dead_letters.Reading(self._kafka.admin, self._kafka.client, self._patience_s, self._check)
            self._letters = dead_letters.audited(reading, control.dead_letters, state, verdict, self._spec.name)
        return self._report(found, verdict, rows, self._live_run() or self._other_jobs.moved(self._sisters))

    def _read_receipts(self) -> None:
        with self._log.kafka_errors("reading the offsets topic"):
            topic.read_to_high_watermark(self._log.reader, self._log.state, deadline_s=self._patience_s)

    def _refuse_no_progress(self, state: JobState) -> ControlRecord:
        """Return the last settled control record. Raises an error if there is none: a claim alone has no progress to audit."""
        control = state.settled
        elsewhere = self._log.look_elsewhere(self._offsets_topic.partitions) if state.control is None else None
        if elsewhere is not None:
            raise pins.offsets_topic_grew(elsewhere[1].pinned.offsets_partitions, self._offsets_topic.partitions)
        if control is None or not control.pinned.topic_id:
            raise _no_such_job(self._spec, self._kafka)
        return control

    def _refuse_changes(self, state: JobState, control: ControlRecord) -> TopicDescription:
        """Return the sink topic. Raises ChangedError if it was recreated, or if the spec does not agree with the pins."""
        settings = self._parts.driver_settings(self._kafka)
        now = replace(
            control.pinned,
            format=settings.format,
            root=settings.root,
            topic=settings.topic,
            offsets_partitions=self._offsets_topic.partitions,
            prefix=settings.prefix,
            cluster_id=self._kafka.admin.cluster_id(),
        )
        pins.refuse_other_life(control.pinned, now)
        sink = self._kafka.admin.describe_topic(settings.topic)
        if sink is None or sink.topic_id != control.pinned.topic_id:
            raise pins.written_topic_recreated(settings.topic)
        pins.refuse_lost_progress(state, control, self._offsets_topic.topic_id)
        if self._options.against_source and control.digest:
            pins.refuse_other_meaning(control, settings.digest)
        return sink

    def _wait_until_decided(self) -> None:
        """Wait until no transaction is open in the ranges to read; see `await_stable.wait_until_decided`."""
        ends = {part.partition: part.high_watermark for part in self._extents if part.slices()}
        admin, patience_s, check = self._kafka.admin, self._patience_s, self._check
        await_stable.wait_until_decided(admin, self._sink, ends, "topic", patience_s=patience_s, check=check)

    def _encodings(self) -> dict[str, Encoding]:
        pinned = self._control.encodings
        return in_thread(lambda: resolved(self._spec, pinned, unknown="refuse"), self._check, "registry")

    # ---- reading and judging ---------------------------------------------------------------------------------------

    def _audit(self, rows: AuditedSource | None) -> tuple[Found, Judgement]:
        from eosingest.audit.session import SparkAuditor

        encodings = self._encodings() if rows is not None else {}
        settings = self._parts.spark_settings(self._kafka.client, self._observer.note, encodings)
        spark = SparkAuditor(settings, self._tell)
        try:
            spark.start()
            self._other_reader = spark.other_reader if rows is not None else ""
            parts = [part for extent in self._extents for part in extent.slices()]
            found = spark.read_topic(self._sink.name, parts, patience_s=self._patience_s)
            if found.total != self._expected and self._count_sisters():
                parts = [part for extent in self._extents for part in extent.slices()]
                found = spark.read_topic(self._sink.name, parts, patience_s=self._patience_s)
            compared = self._read_source(spark, rows) if rows is not None else Compared(whole=False)
            if found.total == self._expected and not compared.unlike:
                return found, classify.by_source(self._expected, found, Copies(), compared, Circumstances())
            copies, counted = spark.compare(found.total - self._expected, found.total.records)
        finally:
            spark.close()
        circumstances = self._circumstances()
        if rows is None:
            return found, classify.by_receipts(self._expected, found, copies, circumstances)
        compared = replace(
            compared,
            whole=compared.whole and not self._sisters,  # this job's source does not have the other jobs' records
            missing=counted.missing,
            unknown=counted.unknown,
            unknown_examples=counted.unknown_examples,
        )
        return found, classify.by_source(self._expected, found, copies, compared, circumstances)

    def _read_source(self, spark: Any, rows: AuditedSource) -> Compared:
        """Read the source's rows and compare each split with its receipt."""
        differing, differ = self._differing(spark, rows) if rows.plan.items else ([], ())
        changed = set(self._source.changed(entry.item for entry in rows.plan.items))
        unread = [*rows.unread, *(f"{name}: changed while it was read" for name in sorted(changed))]
        unlike = []
        for unit in differing:
            if self._source.splits.item(unit.splits[0]) in changed:
                continue
            if unit.run < self._control.pinned_since:
                unread.append(f"{unit.name}: sent by run {unit.run}, and not as the spec of a later run makes it")
            else:
                unlike.append(unit.name)
        whole = not unread and not rows.elsewhere and not self._control.audit.retired_records
        return Compared(unlike=tuple(unlike), unread=tuple(unread), differ=differ, whole=whole)

    def _differing(self, spark: Any, rows: AuditedSource) -> tuple[list[Unit], tuple[str, ...]]:
        """Return the units that do not match their receipts, and findings on those that do by the reader of a run alone.

        Other code reads first, if the kind has any. Only the reader of a run, which read the sent rows, proves a loss.
        """
        schema, other = self._control.schema, spark.other_code(rows.plan)
        found = rows.unlike(spark.read_source(rows.plan, schema, by_other=bool(other)))
        if not other or not found:
            return found, ()
        unlike = rows.unlike(spark.read_source(rows.plan, schema))
        differ = [unit for unit in found if unit not in unlike]
        first = spark.first_differences() if differ else {}
        return unlike, tuple(_differ(unit, other, first) for unit in differ)

    def _circumstances(self) -> Circumstances:
        jobs = [(self._control.pinned.prefix, self._spec.name), *((job.prefix, job.name) for job in self._sisters)]
        ours = re.compile("|".join(re.escape(f"{prefix}{job}.") + r"\d+" for prefix, job in jobs))
        writers = self._kafka.admin.writers(self._sink.name, self._sink.partitions)
        return Circumstances(
            removed=tuple(findings.removed(self._sink, self._extents)),
            writers=tuple(sorted(name for name in writers if not ours.fullmatch(name))),
            others=tuple(job.name for job in self._sisters),
        )

    # ---- other jobs of ours in the topic ---------------------------------------------------------------------------

    def _count_sisters(self) -> bool:
        """Add the receipts of other eosingest jobs that wrote among this job's records; say whether there are any."""
        sisters, ranges = self._other_jobs.look()
        joined, self._sisters = together(receipts.extents(self._control.audit, ranges), sisters)
        if self._sisters:
            self._extents = joined
            self._wait_until_decided()
            self._expected = sum((job.expected for job in self._sisters), self._expected)
            names = ", ".join(job.name for job in self._sisters)
            self._observer.note(
                f"counted with what other jobs wrote to topic {self._sink.name}, by their receipts: {names}"
            )
        return bool(self._sisters)

    def _note_elsewhere(self, rows: AuditedSource) -> None:
        if rows.elsewhere:
            wording = rows.plan.wording
            names = listed(rows.elsewhere, 1, rest=f" and {{}} more {wording.items}")
            self._observer.note(f"{names}: sent, and {wording.not_named}; checked by the receipts alone")

    def _live_run(self) -> str | None:
        """Return the run that has written since the receipts were read; None if there is none."""
        self._read_receipts()
        state = self._log.state
        sink = self._kafka.admin.describe_topic(self._sink.name)
        if sink is None or sink.topic_id != self._sink.topic_id:
            raise pins.written_topic_recreated(self._sink.name)
        if (state.control, state.offsets) == self._before:
            return None
        number = state.control.run if state.control is not None else self._control.run
        return f"run {number} of job {self._spec.name}"

    # ---- the report ------------------------------------------------------------------------------------------------

    def _report(
        self, found: Found, verdict: Judgement, rows: AuditedSource | None, live_run: str | None
    ) -> VerifyReport:
        if live_run is not None:
            verdict = Judgement(receipts.INCONCLUSIVE)
        error = (
            findings.still_written(live_run)
            if live_run is not None
            else findings.error_of(verdict, self._sink.name, against_source=self._options.against_source)
        )
        return VerifyReport(
            job=self._spec.name,
            topic=self._sink.name,
            bootstrap_servers=self._kafka.client.bootstrap_servers,
            run=self._control.run,
            state=self._control.state,
            verdict=verdict.verdict,
            expected=self._expected.to_json(),
            found=found.total.to_json(),
            found_late=found.late.to_json(),
            counts={kind: verdict.count(kind) for kind in _COUNTED},
            findings=tuple(finding.to_json() for finding in verdict.findings),
            partitions=tuple(findings.read_of(extent) for extent in self._extents),
            source_splits=len(rows.units) if rows is not None else None,
            source_reader=self._other_reader,
            seconds=time.monotonic() - self._began,
            gaps=data_loss.told(self._log.state),
            dead_letters=self._letters,
            errors=(error,) if error is not None else (),
        )


def _differ(unit: Unit, other: str, first: Mapping[SplitId, int]) -> str:
    """Return the finding on a unit that two readers read differently."""
    rows = [first[split] for split in unit.splits if split in first]
    place = f", first in row {rows[0]:,}" if rows else ""
    return (
        f"{unit.name}: the readers differ{place}: its receipt is that of the run's reader, and not of {other};"
        " compare the row with its record"
    )


def _no_such_job(spec: Spec, kafka: Connection) -> NoSuchJobError:
    return NoSuchJobError(
        f"{spec.sink.offsets_topic} on {kafka.client.bootstrap_servers} knows of nothing that job {spec.name} has sent",
        hint="there is nothing to verify yet: eosingest run SPEC",
    )
