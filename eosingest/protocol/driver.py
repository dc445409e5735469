"""The driver's way through one run, from top to bottom (docs/protocol.md, The driver).

    claim ─▶ fence ─▶ read ─▶ plan ─┬─▶ nothing pending: complete, without a JVM
                                    └─▶ running ─▶ Spark job ─▶ settling ─▶ fence own ids ─▶ read back ─▶ verdict

Why it is right: the claim is committed before any fence, by a producer whose init fenced the earlier driver; every id
that may still be alive is fenced before the read; a task reads after its own init. So a task that inits after the fence
sees the claim and stops, one that did before is fenced, and what the read shows is all there is.

No pyspark here: Spark is behind `Launcher`, Kafka behind `DriverKafka`, time and signals come from outside.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from eosingest.errors import (
    EXIT_DONE,
    EosingestError,
    FatalError,
    FencedError,
    InterruptedRunError,
    TemporaryError,
    worst_exit_code,
)
from eosingest.host.failpoints import fail_point
from eosingest.kafka.protocols import KafkaFailure, TopicDescription
from eosingest.protocol import acceptance, pins, scope, sink_topic, verdict
from eosingest.protocol.audited_source import audited_source
from eosingest.protocol.control_log import ControlLog, DriverKafka
from eosingest.protocol.driver_contract import DriverSettings, Launcher, Prepared, Proof, Surroundings
from eosingest.protocol.offsets import record, topic
from eosingest.protocol.offsets.record import Audit, ControlRecord, Pinned
from eosingest.protocol.offsets.state import JobState
from eosingest.protocol.plan import Plan, half_done_items, left_out, make_plan, notes_of
from eosingest.protocol.run_progress import RunProgress
from eosingest.protocol.source import Listing, Source
from eosingest.protocol.task_contract import TaskSettings
from eosingest.protocol.transactional_ids import control_id, stem_of, task_id
from eosingest.protocol.verdict import JobResult
from eosingest.records.limits import topic_limits
from eosingest.report.model import Observer, RunReport

_TICK_S = 0.1
_LOOK_EVERY_S = 1.0
_LOOK_DEADLINE_S = 5.0
_FENCE_EACH_S = 0.02  # replicas may take so long to agree, and one coordinator may have all ids
_INTERRUPTED_DEADLINE_S = 4.0  # a signal ends a run within 10 s where the brokers answer, whoever holds a read up


class Driver:
    """One run of one job. Made and run once."""

    def __init__(
        self,
        settings: DriverSettings,
        kafka: DriverKafka,
        source: Source,
        launcher: Launcher,
        observer: Observer,
        surroundings: Surroundings,
    ) -> None:
        """Connects to nothing yet."""
        self._settings = settings
        self._kafka = kafka
        self._source = source
        self._launcher = launcher
        self._observer = observer
        self._around = surroundings
        self._began = surroundings.now()
        self._launched = False
        self._prefixes: tuple[str, ...] = (settings.prefix,)  # those that task ids which may be alive begin with

    # ---- from top to bottom ----------------------------------------------------------------------------------------

    def run(self) -> RunReport:
        """Go the whole way. Raises the errors of errors.py for what ended before the job; the rest is in the report."""
        self._source.check()  # before anybody is fenced
        self._log = self._open_log()
        try:
            self._claim()
            fail_point("driver-after-claim")
            # Task 0 always: the id of a job that has claimed is known to the cluster (pins.forgotten_job).
            self._fence(max(1, self._log.mine.tasks_alive))
            fail_point("driver-after-fence")
            self._log.read_back()
            self._refuse_other_offsets_topic()  # the claim may rest on the one, and lie in the other
            return self._run_read()
        finally:
            self._log.close()

    def _run_read(self) -> RunReport:
        """Go on from step 4; an error before the job is said in the control record too, under what is truly pinned."""
        self._log.mine = pins.carried_forward(self._log.mine, self._log.state.settled)
        try:
            return self._plan_and_send()
        except FencedError:
            raise
        except EosingestError:
            if not self._launched:
                with contextlib.suppress(EosingestError):
                    self._commit(replace(self._log.mine, state=record.FAILED))
            raise

    # ---- 1, 2, 3: claim and fence ----------------------------------------------------------------------------------

    def _open_log(self) -> ControlLog:
        settings = self._settings
        description, warnings = topic.ensure_topic(self._kafka.admin, settings.offsets_topic)
        for warning in warnings:
            self._observer.note(f"warning: {warning}")
        self._offsets = description
        return ControlLog(
            settings.job,
            self._kafka,
            offsets_topic=settings.offsets_topic,
            partition=topic.partition_of(settings.job, description.partitions),
            deadline_s=lambda: self._deadline_s,
            now=self._around.now,
            sleep=self._around.sleep,
        )

    def _claim(self) -> None:
        """Fence an earlier driver, then take the job's next run number, carrying forward all that may still be alive."""
        settings = self._settings
        self._log.fence_earlier_driver(settings.prefix)
        seen = self._log.read_undecided()
        if seen.newest is None:
            self._refuse_other_partition()
        forgotten = seen.newest is None and self._knows_first_task()
        if forgotten:
            seen = self._log.read_undecided()  # whoever made that id known in the meantime had claimed before
            forgotten = seen.newest is None and seen.newest_run is None  # compaction leaves the runs' own records
        if forgotten:
            self._refuse_same_ids()  # whose, if not an earlier run's of ours?
        if forgotten and not settings.from_scratch:
            raise pins.forgotten_job(settings.job, settings.offsets_topic)
        earlier = seen.newest
        if earlier is None:
            pinned = self._pinned_now(topic_id="", cluster_id="")
            claim = ControlRecord(1, settings.started, record.CLAIMED, tasks_alive=0, pinned=pinned, pinned_since=1)
            claim = replace(claim, forgotten=forgotten)
        else:
            if earlier.pinned.prefix != settings.prefix:
                self._take_over_prefix(earlier)
            if earlier.state not in (record.COMPLETE, record.FAILED):
                self._observer.note(_takes_over(earlier, self._around.now_ms() - seen.last_ms))
            claim = replace(earlier, run=earlier.run + 1, started=settings.started, state=record.CLAIMED)
            claim = replace(claim, forgotten=seen.forgotten)  # not as an aborted record has it
        self._log.commit(self._stamped(claim))

    def _knows_first_task(self) -> bool:
        return self._kafka.admin.knows_transactional_id(task_id(self._settings.prefix, self._settings.job, 0))

    def _refuse_other_partition(self) -> None:
        """Raise ChangedError where the job lies in another partition: the offsets topic had fewer when it was sent."""
        partitions = self._offsets.partitions
        found = self._log.look_elsewhere(partitions)
        if found is not None:
            raise pins.offsets_topic_grew(found[1].pinned.offsets_partitions, partitions)

    def _refuse_same_ids(self) -> None:
        """Raise SpecError where another job of the offsets topic has these ids."""
        settings = self._settings
        other = self._log.look_for_same_ids(settings.prefix, self._offsets.partitions)
        if other is not None:
            raise pins.same_ids(settings.prefix, settings.job, *other)

    def _take_over_prefix(self, earlier: ControlRecord) -> None:
        """Another transactional_id_prefix than recorded: refuse, or fence what lives under the old one as well.

        The driver now, its tasks behind the claim: one that inits before would find the job its own and go on.
        """
        old, settings = earlier.pinned.prefix, self._settings
        if not settings.from_scratch:
            pins.refuse_other_life(earlier.pinned, replace(earlier.pinned, prefix=settings.prefix))
        self._refuse_same_ids()
        self._kafka.admin.fence([control_id(old, settings.job)], timeout_s=self._deadline_s)
        self._prefixes = (old, settings.prefix)

    def _fence(self, tasks: int) -> None:
        ids = [task_id(prefix, self._settings.job, task) for prefix in self._prefixes for task in range(tasks)]
        interrupted = self._around.interruption.signal_number is not None
        more_s = 0.0 if interrupted else _FENCE_EACH_S * len(ids)
        self._kafka.admin.fence(ids, timeout_s=self._deadline_s + more_s)

    @property
    def _deadline_s(self) -> float:
        if self._around.interruption.signal_number is not None:
            return _INTERRUPTED_DEADLINE_S
        return topic.read_deadline_s(self._settings.transaction_timeout_s)

    # ---- 5: plan ---------------------------------------------------------------------------------------------------

    def _plan_and_send(self) -> RunReport:
        state, settings = self._log.state, self._settings
        if not settings.from_scratch:
            if self._log.mine.forgotten:
                raise pins.forgotten_job(settings.job, settings.offsets_topic)
            pins.refuse_lost_progress(state, self._log.mine, self._offsets.topic_id)
        tombstones = self._forget_progress() if settings.from_scratch else []
        pinned = self._check_life()
        in_force = pins.in_force(self._log.mine, state.offsets)
        newest = max(settings.digests)
        self._generation = pins.generation_of(
            self._log.mine, sent=bool(state.offsets), asked=settings.generation, newest=newest
        )
        if in_force and not settings.accept_change:
            pins.refuse_other_digest(self._log.mine, settings.digests[self._generation])
        listing = scope.listed(self._source, self._log.mine, state)
        if in_force and settings.accept_change:
            self._accept_change(listing)
        plan = make_plan(self._source, state.offsets, self._split_size(in_force), listing)
        plan.refuse_changes(settings.on_change)
        for note in (*notes_of(plan, self._source), *left_out(plan)):
            self._observer.note(note)
        audit = self._audit(pinned.topic_id, plan)
        tombstones += [record.split_key(settings.job, split) for split in plan.stale]
        for split in plan.stale:
            state.offsets.pop(split, None)
        control = replace(self._planned_control(pinned, in_force, plan), audit=audit)
        if not plan.pending:
            return self._nothing_to_do(plan, control, tombstones)
        if in_force:
            return self._send(plan, control, tombstones, ())
        pin, pieces = scope.pinned(listing.scope)
        return self._send(plan, replace(control, scope=pin), tombstones, pieces)

    def _accept_change(self, listing: Listing) -> None:
        """Take a changed spec in, behind the proof that all that was sent since the pin stays. Raises ChangedError.

        The new pins are committed with `running` alone: a newer claim in between fences this run, and nothing of it counts.
        """
        mine, digest = self._log.mine, self._settings.digests[self._generation]
        changed = pins.changed_parts(mine.digest, digest)
        if not changed:
            return
        sent = acceptance.sent_since_pinned(mine, self._log.state.offsets)
        acceptance.refuse_unprovable(changed, sent.values(), has_metadata=self._settings.has_metadata)
        rows = audited_source(self._source, listing, sent, mine)
        proof = self._launcher.prove(rows.plan, self._generation) if rows.plan.files else Proof({}, None)
        acceptance.refuse_unproven(rows, proof.sums)
        self._around.interruption.check()
        proven = sum(offset.records for offset in sent.values())
        self._observer.note(
            f"{', '.join(changed)}: changed; the {proven:,} records sent so far stay as they are, proven"
        )
        self._log.mine = replace(
            mine, digest=dict(digest), schema=proof.schema, schema_files="", generation=self._generation
        )

    def _forget_progress(self) -> list[bytes]:
        """Return tombstones for all of the job's offset records, and go on as if there were none."""
        keys = [record.split_key(self._settings.job, split) for split in self._log.state.offsets]
        self._log.state.offsets.clear()
        return keys

    def _check_life(self) -> Pinned:
        """Return what is pinned for the job's life. It binds once anything was sent: ChangedError where it differs."""
        settings, old = self._settings, self._log.mine.pinned
        sent = bool(self._log.state.offsets)
        new = self._pinned_now(topic_id=old.topic_id, cluster_id=self._kafka.admin.cluster_id())
        if sent:
            pins.refuse_other_life(old, new)
        self._sink = sink_topic.opened(self._kafka.admin, settings.topic, settings.create, may_create=not sent)
        if sent and self._sink.topic_id != old.topic_id:
            raise pins.topic_made_again(settings.topic)
        hanging = self._hanging(self._sink) if self._log.mine.run > 1 else None
        if hanging is not None:
            raise hanging
        return replace(new, topic_id=self._sink.topic_id)

    def _pinned_now(self, *, topic_id: str, cluster_id: str) -> Pinned:
        settings = self._settings
        return Pinned(
            settings.format,
            settings.root,
            settings.topic,
            topic_id,
            cluster_id,
            self._offsets.partitions,
            settings.prefix,
            offsets_topic_id=self._offsets.topic_id,
        )

    def _audit(self, topic_id: str, plan: Plan) -> Audit:
        """Return from where on the sink topic holds the job's records, with the receipts of what is to be sent again.

        Everything earlier is fenced, so where the audit starts anew the high watermark parts the old from the new.
        """
        mine, offsets = self._log.mine, self._log.state.offsets
        scratch = self._settings.from_scratch
        if pins.audit_starts_anew(mine, topic_id, from_scratch=scratch, sent=bool(offsets)):
            return Audit(start=self._sink_ends())
        return pins.retired(mine.audit, (offsets[split] for split in plan.stale if split in offsets))

    def _sink_ends(self) -> tuple[int, ...]:
        return sink_topic.ends(self._kafka.admin, self._sink)

    def _completed(self, control: ControlRecord) -> ControlRecord:
        """Return the record that closes the job: from here on nothing of ours comes behind the sink's ends."""
        audit = control.audit if control.audit.end is not None else replace(control.audit, end=self._sink_ends())
        closed = replace(control, state=record.COMPLETE, tasks_alive=0, pin_open=False, forgotten=False, audit=audit)
        return replace(closed, scope=None)

    def _split_size(self, in_force: bool) -> int:
        """Return the split size to cut with: the pinned one in the middle of a job, or done pieces would go twice."""
        wanted, pinned = self._settings.split_size, self._log.mine.split_size
        if in_force and pinned != wanted:
            self._observer.note(
                f"source.split_size: {pinned} bytes, pinned by the unfinished run {self._log.mine.pinned_since}, are used"
                f" instead of {wanted} until the job is complete"
            )
            return pinned
        return wanted

    def _planned_control(self, pinned: Pinned, in_force: bool, plan: Plan) -> ControlRecord:
        """Return our control record with what this run pins; what was pinned before stays where it is in force, and where
        nothing is to be sent: it says what the records in the topic were made from.
        """
        mine = replace(self._log.mine, pinned=pinned, records_total=self._log.state.records_total)
        if in_force or not plan.pending:
            return mine
        return replace(
            mine,
            pinned_since=mine.run,
            digest=dict(self._settings.digests[self._generation]),
            split_size=plan.split_size,
            schema=None,
            generation=self._generation,
            schema_files="",
        )

    def _nothing_to_do(self, plan: Plan, control: ControlRecord, tombstones: list[bytes]) -> RunReport:
        for error in verdict.half_done_error(self._half_done()):
            raise error
        self._commit(self._completed(control), tombstones=tombstones)
        return self._report(plan, before=self._log.state.records_total, errors=[])

    # ---- 6: the job ------------------------------------------------------------------------------------------------

    def _send(self, plan: Plan, control: ControlRecord, tombstones: list[bytes], pieces: Sequence[str]) -> RunReport:
        before = self._log.state.records_total
        files = plan.list_digest
        prepared = self._launcher.prepare(
            plan, control.schema, generation=self._generation, same_files=files == control.schema_files
        )
        self._around.interruption.check()
        fail_point("driver-before-running")
        plan_end = self._log.state.end
        self._commit(
            replace(
                control,
                state=record.RUNNING,
                # Everything older was fenced in step 3: only this run's ids can be alive from here on.
                tasks_alive=prepared.tasks,
                pin_open=True,
                forgotten=False,
                schema=prepared.schema,
                schema_files=files,
                audit=replace(control.audit, end=None),
            ),
            tombstones=tombstones,
            scope_pieces=pieces,
        )
        self._launched = True
        self._around.interruption.disarm()
        fail_point("driver-after-running")
        result = JobResult([])
        if self._around.interruption.signal_number is None:
            self._launcher.start(self._task_settings(prepared, plan_end))
            result = self._watch(plan, plan_end)
        return self._settle(plan, prepared.tasks, result, before)

    def _task_settings(self, prepared: Prepared, plan_end: int) -> TaskSettings:
        settings = self._settings
        return TaskSettings(
            job=settings.job,
            run=self._log.mine.run,
            started=settings.started,
            topic=settings.topic,
            offsets_topic=settings.offsets_topic,
            offsets_topic_id=self._offsets.topic_id,
            offsets_partition=self._log.partition,
            plan_end=plan_end,
            splits=prepared.splits,
            limits=topic_limits(self._sink.config, self._sink.partitions),
            transaction_timeout_s=settings.transaction_timeout_s,
            max_records=settings.max_records,
            max_bytes=settings.max_bytes,
        )

    def _watch(self, plan: Plan, plan_end: int) -> JobResult:
        """Wait for the job, showing progress from the offsets topic; cancel it on a signal, or when another run claims."""
        seen, progress = JobState(self._settings.job, end=plan_end), RunProgress(plan)
        looked = self._around.now()
        while True:
            result = self._launcher.poll(_TICK_S)
            if result is not None:
                return result
            if self._around.interruption.signal_number is not None:
                self._launcher.cancel()
                return JobResult([])
            if self._around.now() - looked >= _LOOK_EVERY_S:
                self._look(seen, progress)
                looked = self._around.now()

    def _look(self, seen: JobState, progress: RunProgress) -> None:
        # Only a look: the verdict reads again, and says what fails. Who watches sees the signal that ends one.
        with contextlib.suppress(KafkaFailure, InterruptedRunError), self._around.interruption.armed(True):
            topic.read_decided(self._log.reader, seen, deadline_s=_LOOK_DEADLINE_S)
        if seen.control is not None:
            try:
                self._log.refuse_other_run(seen)
            except FencedError:
                self._launcher.cancel()
                raise
        progress.take(seen.offsets.values())
        seen.offsets.clear()  # a look costs what is new since the last one, however many splits there are
        self._observer.progress(progress.after(self._around.now() - self._began))

    # ---- 7: the verdict --------------------------------------------------------------------------------------------

    def _settle(self, plan: Plan, tasks: int, result: JobResult, before: int) -> RunReport:
        """Let no task start any more, fence our own ids, read back, mark what Spark's word proves, say how the run ended.

        `settling` commits only while the job is ours, so no successor's task is disturbed. After the fence nothing of ours
        is open, and an orphaned worker commits nothing after the verdict: it was fenced, or finds a run that is over.
        """
        fail_point("driver-before-verdict")
        try:
            self._commit(replace(self._log.mine, state=record.SETTLING))
        except FatalError:
            self._refuse_other_offsets_topic()  # Kafka refuses what is sent to a topic that is gone
            raise
        fail_point("driver-after-settling")
        self._fence(tasks)
        self._log.read_back()
        self._refuse_other_offsets_topic()
        state = self._log.state
        changed = self._source.look_again(entry.file for entry in plan.pending_files)
        marks = verdict.proven_done(plan, state, result, tasks=tasks, run=self._log.mine.run, changed=changed)
        state.offsets.update({mark.split: mark for mark in marks})
        errors = verdict.errors_of(
            plan,
            state,
            result,
            tasks=tasks,
            signal_number=self._around.interruption.signal_number,
            changed=changed,
            half_done=self._half_done,
        )
        sink = self._kafka.admin.describe_topic(self._settings.topic)
        if sink is None or sink.topic_id != self._sink.topic_id:
            errors.append(pins.topic_made_again(self._settings.topic))
        else:
            hanging = self._hanging(sink)  # it may have been given partitions since
            errors += [hanging] if hanging is not None else []
        mine = replace(self._log.mine, records_total=state.records_total)
        self._commit(replace(mine, state=record.FAILED) if errors else self._completed(mine), marks=marks)
        fail_point("driver-after-verdict")
        return self._report(plan, before=before, errors=errors)

    def _refuse_other_offsets_topic(self) -> None:
        """The offset records that prove what was sent must lie in the topic that was read when the run began."""
        found = self._kafka.admin.describe_topic(self._settings.offsets_topic)
        if found is None or found.topic_id != self._offsets.topic_id:
            raise pins.offsets_topic_made_again(self._log.mine.run)

    def _hanging(self, sink: TopicDescription) -> TemporaryError | None:
        """Return the error where a transaction that we fenced is still open in the sink topic."""
        stems = {stem_of(control_id(prefix, self._settings.job)) for prefix in self._prefixes}
        try:
            return sink_topic.hanging(self._kafka.admin, sink, stems)
        except TemporaryError as error:  # a partition without a leader cannot tell, nor take a marker
            return error

    def _half_done(self) -> list[str]:
        return half_done_items(self._source, self._log.state.offsets)

    # ---- helpers ---------------------------------------------------------------------------------------------------

    def _commit(
        self,
        control: ControlRecord,
        *,
        tombstones: list[bytes] | None = None,
        marks: list[record.OffsetRecord] | None = None,
        scope_pieces: Sequence[str] = (),
    ) -> None:
        assert self._log.mine.may_become(control.state), f"{self._log.mine.state} -> {control.state}"
        with self._around.interruption.armed(False):  # what is begun is ended, where the brokers answer
            self._log.commit(self._stamped(control), tombstones=tombstones or (), marks=marks or (), scope=scope_pieces)

    def _stamped(self, control: ControlRecord) -> ControlRecord:
        settings = self._settings
        return replace(
            control, host=settings.host, pid=settings.pid, versions=dict(settings.versions), time=self._around.utc()
        )

    def _report(self, plan: Plan, *, before: int, errors: list[EosingestError]) -> RunReport:
        state = self._log.state
        left = verdict.unfinished(plan, state)
        files_left = {planned.split.item for planned in left}
        return RunReport(
            job=self._settings.job,
            run=self._log.mine.run,
            topic=self._settings.topic,
            bootstrap_servers=self._settings.bootstrap_servers,
            exit_code=worst_exit_code(error.exit_code for error in errors) if errors else EXIT_DONE,
            files=len(plan.files) + len(plan.empty),
            files_done=len(plan.files) + len(plan.empty) - len(files_left),
            splits_planned=len(plan.pending),
            splits_done=len(plan.pending) - len(left),
            records_sent=state.records_total - before,
            records_total=state.records_total,
            seconds=self._around.now() - self._began,
            errors=tuple(errors),
            records_resent=self._log.mine.audit.retired_records,
        )


def _takes_over(earlier: ControlRecord, silent_ms: int) -> str:
    return (
        f"taking over from run {earlier.run}, {earlier.state} on {earlier.host} (pid {earlier.pid}) since {earlier.time};"
        f" it last wrote {silent_ms / 1000:.0f} s ago and is fenced now"
    )
