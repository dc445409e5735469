"""Takes step 5 of a run: checks the pins, lists the source, and plans the splits left to send.

Between takeover.py, which has read the progress, and sending.py. Commits nothing: the run's pins are committed with its next
control record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eosingest.kafka.ports import TopicDescription
from eosingest.protocol import (
    accept_change,
    corrected_items,
    data_loss,
    dead_letter_topic,
    partition_affinity,
    pins,
    scope,
    single_transaction,
    sink_topic,
)
from eosingest.protocol.audited_source import audited_source
from eosingest.protocol.driver_contract import Launcher, Proof, Runtime
from eosingest.protocol.job_lease import OwnedJob
from eosingest.protocol.offsets import record
from eosingest.protocol.offsets.dead_letters import NO_DEAD_LETTERS, DeadLetterPin
from eosingest.protocol.offsets.record import Audit, ControlRecord, OffsetRecord, Pinned
from eosingest.protocol.plan import Plan, left_out, make_plan, notes_of
from eosingest.protocol.source import Gap, Snapshot, Source
from eosingest.protocol.task_contract import DeadLetterSettings
from eosingest.report.progress import Observer


@dataclass(frozen=True)
class Planned:
    """The result of planning: the plan, our next control record, and the records to commit with it.

    `tombstones` are keys of records to be tombstoned, `scope` the pieces of a new scope, `accepted` the gaps that the run
    skips, `corrected` the offset records of corrected items. `sink` is the sink topic as it was found. `dead_letters` has the
    tasks' settings of the dead-letter topic, None without one.
    """

    plan: Plan
    control: ControlRecord
    tombstones: list[bytes]
    scope: tuple[str, ...]
    accepted: data_loss.Accepted
    sink: TopicDescription
    dead_letters: DeadLetterSettings | None = None
    corrected: tuple[OffsetRecord, ...] = ()

    @property
    def offsets(self) -> tuple[OffsetRecord, ...]:
        """The offset records to commit with the control record."""
        return (*self.accepted.moved, *self.corrected)


class Planning:
    """Makes a plan from the committed progress and the source's snapshot."""

    def __init__(self, job: OwnedJob, source: Source, launcher: Launcher, observer: Observer, runtime: Runtime) -> None:
        """Reads nothing yet."""
        self._job = job
        self._log = job.log
        self._settings = job.settings
        self._source = source
        self._launcher = launcher
        self._observer = observer
        self._runtime = runtime

    def run(self) -> Planned:
        """Check the pins, list, plan. Raises the errors of errors.py.

        Offset records that are to be tombstoned are removed from the log's state.
        """
        state, settings = self._log.state, self._settings
        if not settings.from_scratch:
            if self._log.mine.forgotten:
                raise pins.job_progress_lost(settings.job, settings.offsets_topic)
            pins.refuse_lost_progress(state, self._log.mine, self._job.offsets_topic.topic_id)
        tombstones = self._forget_progress() if settings.from_scratch else []
        pinned = self._check_life()
        in_force = pins.in_force(self._log.mine, state.offsets)
        if in_force and not settings.accept_change:
            pins.refuse_other_digest(self._log.mine, settings.digest)
        snapshot, corrected = scope.snapshot(self._source, self._log.mine, state), tuple[OffsetRecord, ...]()
        if in_force and settings.accept_change:
            self._accept_change(snapshot)
        elif in_force and settings.on_change == "error":
            snapshot, corrected = self._accept_corrections(snapshot)
        offsets = {**state.offsets, **{each.split: each for each in corrected}}
        plan = make_plan(self._source, offsets, self._split_size(in_force), snapshot)
        plan.refuse_changes(settings.on_change)
        if settings.whole:
            single_transaction.refuse_half_sent(self._log.mine, plan, state.offsets.values())
        plan, accepted = self._behind_gaps(plan, snapshot.gaps)
        for note in (*notes_of(plan, self._source), *left_out(plan), *self._spread(plan)):
            self._observer.note(note)
        audit = self._audit(pinned.topic_id, plan)
        pin, dead_letters = self._dead_letters(plan)
        tombstones += [record.split_key(settings.job, split) for split in plan.stale]
        for split in plan.stale:
            state.offsets.pop(split, None)
        control, pieces = self._control(pinned, in_force, plan, snapshot)
        control = replace(control, audit=audit, dead_letters=pin)
        return Planned(plan, control, tombstones, pieces, accepted, self._sink, dead_letters, corrected)

    def _spread(self, plan: Plan) -> tuple[str, ...]:
        if not self._settings.keeps_partitions:
            return ()
        note = partition_affinity.spread_note(
            (each.split for each in plan.pending), self._sink.name, self._sink.partitions
        )
        return (note,) if note is not None else ()

    def _forget_progress(self) -> list[bytes]:
        """Return the keys of all offset records and gaps of the job, to be tombstoned, and remove these from the state."""
        job, state = self._settings.job, self._log.state
        keys = [record.split_key(job, split) for split in state.offsets]
        keys += [gap.key(job) for gap in state.gaps.values()]
        state.offsets.clear()
        state.gaps.clear()
        return keys

    def _behind_gaps(self, plan: Plan, found: Sequence[Gap]) -> tuple[Plan, data_loss.Accepted]:
        """Return the plan that resumes after gaps. Raises ChangedError unless gaps are to be accepted."""
        if not self._settings.accept_gap:
            data_loss.refuse(self._source, found)
        for gap in found:
            self._observer.note(
                f"{gap.text}: deleted before they were read, and accepted as missing: status and verify name them"
            )
        return data_loss.accepted(plan, found, run=self._log.mine.run, time=self._runtime.utc())

    def _check_life(self) -> Pinned:
        """Return this run's pins for the job's life. Raises ChangedError where they differ, once anything was sent.

        Raises TemporaryError where a transaction of ours hangs in the sink or dead-letter topic.
        """
        settings, old, admin = self._settings, self._log.mine.pinned, self._job.admin
        sent = bool(self._log.state.offsets)
        new = self._job.pinned_now(topic_id=old.topic_id, cluster_id=admin.cluster_id())
        if sent:
            pins.refuse_other_life(old, new)
        self._sink = sink_topic.opened(admin, settings.topic, settings.create, may_create=not sent)
        if sent and self._sink.topic_id != old.topic_id:
            raise pins.written_topic_recreated(settings.topic)
        hanging = self._job.hanging(self._sink) if self._log.mine.run > 1 else None
        if hanging is not None:
            raise hanging
        return replace(new, topic_id=self._sink.topic_id)

    def _accept_change(self, snapshot: Snapshot) -> None:
        """Accept a changed spec, once it is proven to give the rows sent since the pin again. Raises ChangedError.

        The new pins are committed with our next control record: a run that is fenced before that has changed nothing.
        """
        mine, digest = self._log.mine, self._settings.digest
        changed = pins.changed_parts(mine.digest, digest)
        if not changed:
            return
        sent = accept_change.sent_since_pinned(mine, self._log.state.offsets)
        accept_change.refuse_unprovable(changed)
        rows = audited_source(self._source, snapshot, sent, mine)
        proof = self._launcher.prove(rows.plan, None, "") if rows.plan.items else Proof({}, None)
        accept_change.refuse_unproven(rows, proof.sums)
        self._runtime.interruption.check()
        proven = sum(offset.records for offset in sent.values())
        self._observer.note(
            f"{', '.join(changed)}: changed; the {proven:,} records sent so far are proven to stay as they are"
        )
        self._log.mine = replace(
            mine,
            digest=dict(digest),
            schema=proof.schema,
            schema_files="",
            encodings=proof.encodings,
        )

    def _accept_corrections(self, snapshot: Snapshot) -> tuple[Snapshot, tuple[OffsetRecord, ...]]:
        """Return the snapshot in which corrected items are not changed, with the offset records of their new versions.

        An item is corrected if it was sent in part, and what was sent of it is proven to be as it was.
        """
        mine = self._log.mine
        found = corrected_items.corrections(self._source, snapshot, self._log.state.offsets, mine)
        if found is None:
            return snapshot, ()
        proof = self._launcher.prove(found.rows.plan, mine.schema, mine.encodings)
        self._runtime.interruption.check()
        unproven = found.unproven(self._source, proof.sums)
        for unit in (unit for units in unproven.values() for unit in units):
            self._observer.note(f"{unit.name}: gives other rows now than those that were sent")
        for name, records in found.records.items():
            if name not in unproven:
                sent = sum(each.records for each in records)
                self._observer.note(f"{name}: changed; the {sent:,} records sent of it are proven to stay as they are")
        return found.accepted(snapshot, unproven)

    def _split_size(self, in_force: bool) -> int:
        """Return the split size in bytes: in an unfinished job the pinned one, or rows of done splits would go twice."""
        wanted, pinned = self._settings.split_size, self._log.mine.split_size
        if in_force and pinned != wanted:
            self._observer.note(
                f"source.split_size: {pinned} bytes, pinned by the unfinished run {self._log.mine.pinned_since}, are used"
                f" instead of {wanted} until the job is complete"
            )
            return pinned
        return wanted

    def _audit(self, topic_id: str, plan: Plan) -> Audit:
        """Return the data for audits: where in the sink topic our records begin, and the receipts of items sent again.

        Earlier producers are fenced, so where the audit starts over, all records of the job follow the high watermarks.
        """
        mine, offsets = self._log.mine, self._log.state.offsets
        scratch = self._settings.from_scratch
        if pins.audit_starts_anew(mine, topic_id, from_scratch=scratch, sent=bool(offsets)):
            return Audit(start=sink_topic.ends(self._job.admin, self._sink))
        return pins.retired(mine.audit, (offsets[split] for split in plan.stale if split in offsets))

    def _dead_letters(self, plan: Plan) -> tuple[DeadLetterPin | None, DeadLetterSettings | None]:
        """Return the pin of the dead-letter topic, and the tasks' settings of it.

        Where the spec names none, the pin stays: dead letters of earlier runs stay where they are. The pin is committed with
        the tombstones of stale splits, whose dead letters it counts: a run that fails before keeps the pin that it found.
        """
        offsets, order = self._log.state.offsets, self._settings.dead_letters
        pin = None if self._settings.from_scratch else self._log.mine.dead_letters
        if pin is not None:
            pin = pin.retiring(offsets[split].dead for split in plan.stale if split in offsets)
        if order is None:
            return pin, None
        stay = (offset.dead for split, offset in offsets.items() if split not in plan.stale)
        letters = NO_DEAD_LETTERS if pin is None else pin.total(stay)
        pin, found = dead_letter_topic.opened(self._job.admin, order, pin, letters)
        return pin, dead_letter_topic.settings(order, found, pin, letters)

    def _control(
        self, pinned: Pinned, in_force: bool, plan: Plan, snapshot: Snapshot
    ) -> tuple[ControlRecord, tuple[str, ...]]:
        """Return our control record with this run's pins, and the pieces of its scope where that is new.

        Earlier pins stay where they are in force, and where nothing is to be sent: the records in the topic were made
        under them.
        """
        mine = replace(self._log.mine, pinned=pinned, records_total=self._log.state.records_total)
        if in_force or not plan.pending:
            return mine, ()
        pin, pieces = scope.pinned(snapshot.scope)
        control = replace(
            mine,
            pinned_since=mine.run,
            digest=dict(self._settings.digest),
            split_size=plan.split_size,
            schema=None,
            schema_files="",
            encodings="",
            scope=pin,
        )
        return control, pieces
