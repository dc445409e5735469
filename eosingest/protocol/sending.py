"""Takes steps 6 and 7 of a run: runs the Spark job, reads its progress from the offsets topic, commits the verdict.

Follows planning.py. `settling` commits only while this run owns the job, so the next fence hits no task of a later run.
After that fence no transaction of this run is open, and a zombie task commits nothing after the verdict: it was fenced, or
it finds that its run has ended.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from eosingest.errors import EosingestError, FatalError, FencedError, InterruptedRunError
from eosingest.host.failpoints import fail_point
from eosingest.kafka.ports import KafkaFailure
from eosingest.protocol import merge_offsets, single_transaction, verdict
from eosingest.protocol.driver_contract import Launcher, Prepared, Runtime
from eosingest.protocol.job_lease import OwnedJob
from eosingest.protocol.offsets import record, topic
from eosingest.protocol.offsets.state import JobState
from eosingest.protocol.plan import half_done_items
from eosingest.protocol.planning import Planned
from eosingest.protocol.run_progress import RunProgress
from eosingest.protocol.source import Source
from eosingest.protocol.task_contract import DeadLetterSettings, TaskSettings
from eosingest.protocol.verdict import JobResult
from eosingest.records.limits import topic_limits
from eosingest.report.progress import Observer

_TICK_S = 0.1
_LOOK_EVERY_S = 1.0
_LOOK_DEADLINE_S = 5.0
_TOO_MANY_LETTERS = "too-many-dead-letters"


class Sending:
    """Sends the planned splits, and commits the verdict."""

    def __init__(
        self,
        job: OwnedJob,
        planned: Planned,
        source: Source,
        launcher: Launcher,
        observer: Observer,
        runtime: Runtime,
        began: float,
        letters: int,
    ) -> None:
        """Starts nothing yet. `began` is when the run began, by the monotonic clock in seconds.

        `letters` is how many dead letters there were of the job then.
        """
        self._job = job
        self._log = job.log
        self._settings = job.settings
        self._planned = planned
        self._plan = planned.plan
        self._source = source
        self._launcher = launcher
        self._observer = observer
        self._runtime = runtime
        self._began = began
        self._letters = letters

    def run(self) -> list[EosingestError]:
        """Send the planned splits; return the errors that keep the job from being complete.

        Raises FencedError where another run has claimed the job, and the errors of errors.py where no verdict was committed.
        """
        digest = self._plan.list_digest
        prepared = self._launcher.prepare(
            self._plan,
            self._planned.control.schema,
            same_items=digest == self._planned.control.schema_files,
            encodings=self._planned.control.encodings,
        )
        self._runtime.interruption.check()
        fail_point("driver-before-running")
        plan_end = self._log.state.end
        self._commit_running(prepared, digest)
        self._runtime.interruption.disarm()
        fail_point("driver-after-running")
        result = JobResult([])
        if self._runtime.interruption.signal_number is None:
            self._launcher.start(self._task_settings(prepared, plan_end))
            found = self._watch(plan_end)
            result = found.of_run(self._settings.job, self._log.mine.run, self._log.mine.started)
        return self._settle(prepared.tasks, result)

    def _commit_running(self, prepared: Prepared, digest: str) -> None:
        control = self._planned.control
        running = replace(
            control,
            state=record.RUNNING,
            # Step 3 fenced all earlier producers: only this run's ids can be alive from here on.
            tasks_alive=prepared.tasks,
            pin_open=True,
            forgotten=False,
            schema=prepared.schema,
            schema_files=digest,
            encodings=prepared.encodings,
            by_parts_since=single_transaction.by_parts_since(control, whole=self._settings.whole),
            audit=replace(control.audit, end=None),
        )
        self._job.commit(
            running,
            tombstones=self._planned.tombstones,
            offsets=self._planned.offsets,
            scope=self._planned.scope,
            gaps=self._planned.accepted.gaps,
        )
        self._job.running = True

    def _task_settings(self, prepared: Prepared, plan_end: int) -> TaskSettings:
        settings = self._settings
        return TaskSettings(
            job=settings.job,
            run=self._log.mine.run,
            started=settings.started,
            topic=settings.topic,
            offsets_topic=settings.offsets_topic,
            offsets_topic_id=self._job.offsets_topic.topic_id,
            offsets_partition=self._log.partition,
            plan_end=plan_end,
            splits=prepared.splits,
            limits=topic_limits(self._planned.sink.config, self._planned.sink.partitions),
            transaction_timeout_s=settings.transaction_timeout_s,
            max_records=settings.max_records,
            max_bytes=settings.max_bytes,
            wording=self._plan.wording,
            keeps_partitions=settings.keeps_partitions,
            rate_limit=settings.rate_limit / prepared.at_once if settings.rate_limit is not None else None,
            dead_letters=self._planned.dead_letters,
            whole=settings.whole,
        )

    def _watch(self, plan_end: int) -> JobResult:
        """Wait for the Spark job, and show progress from the offsets topic.

        Cancels it on a signal, another run's claim, an unreadable record of the job, and too many dead letters.
        """
        seen, progress = JobState(self._settings.job, end=plan_end), RunProgress(self._plan)
        looked = self._runtime.now()
        while True:
            result = self._launcher.poll(_TICK_S)
            if result is not None:
                return result
            if self._runtime.interruption.signal_number is not None:
                self._launcher.cancel()
                return JobResult([])
            if self._runtime.now() - looked >= _LOOK_EVERY_S:
                try:
                    self._look(seen, progress)
                except (FatalError, FencedError) as error:
                    self._launcher.cancel()
                    if isinstance(error, FencedError):
                        raise
                    return JobResult([], error)  # `_settle` fences the tasks, and reads the record again
                looked = self._runtime.now()
                dead = self._planned.dead_letters
                if dead is not None and progress.dead_letters > dead.left:
                    self._launcher.cancel()
                    return JobResult([], _too_many_letters(dead, progress.dead_letters))

    def _look(self, seen: JobState, progress: RunProgress) -> None:
        # A failure is ignored: `_settle` reads again, and reports it. `_watch` handles a signal that ends this read.
        with contextlib.suppress(KafkaFailure, InterruptedRunError), self._runtime.interruption.armed(True):
            topic.read_to_last_stable_offset(self._log.reader, seen, deadline_s=_LOOK_DEADLINE_S)
        if seen.control is not None:
            self._log.refuse_other_run(seen)
        progress.take(seen.offsets.values())
        seen.offsets.clear()  # so that each read handles only new records
        self._observer.progress(progress.after(self._runtime.now() - self._began))

    def _settle(self, tasks: int, result: JobResult) -> list[EosingestError]:
        """Commit `settling`, fence our own ids, read back, mark proven splits as done, commit the verdict; return errors."""
        fail_point("driver-before-verdict")
        try:
            self._job.commit(replace(self._log.mine, state=record.SETTLING))
        except FatalError:
            self._job.refuse_other_offsets_topic()  # Kafka refuses records for a deleted topic
            raise
        fail_point("driver-after-settling")
        self._job.fence(tasks)
        self._log.read_back()
        self._job.refuse_other_offsets_topic()
        state = self._log.state
        changed = self._source.changed(entry.item for entry in self._plan.pending_items)
        marks = verdict.proven_done(self._plan, state, result, tasks=tasks, run=self._log.mine.run, changed=changed)
        state.offsets.update({mark.split: mark for mark in marks})
        errors = verdict.errors_of(
            self._plan,
            state,
            result,
            tasks=tasks,
            signal_number=self._runtime.interruption.signal_number,
            changed=changed,
            half_done=lambda: half_done_items(self._source.splits, state.offsets),
        )
        errors += self._too_many_letters(errors)
        errors += self._job.lost_topics(self._planned.sink)
        mine = replace(self._log.mine, records_total=state.records_total)
        if errors:
            self._job.commit(replace(mine, state=record.FAILED), offsets=marks)
        else:
            done = merge_offsets.folded(self._source.splits, state.offsets)
            self._job.commit_complete(mine, self._planned.sink, done, marks=marks)
        fail_point("driver-after-verdict")
        return errors

    def _too_many_letters(self, known: Sequence[EosingestError]) -> list[EosingestError]:
        """Return the error of too many dead letters, if the job ended before `_watch` found them and no `known` one says so."""
        dead = self._planned.dead_letters
        if dead is None or any(error.code == _TOO_MANY_LETTERS for error in known):
            return []
        written = self._log.state.dead_letters(self._log.mine.dead_letters).count - self._letters
        return [_too_many_letters(dead, written)] if written > dead.left else []


def _too_many_letters(dead: DeadLetterSettings, written: int) -> FatalError:
    """Make the error of a run whose tasks together wrote more dead letters than were left."""
    return FatalError(
        f"{written} rows of this run became dead letters in topic {dead.topic}; only {dead.left} of {dead.allowed} were left",
        code=_TOO_MANY_LETTERS,
        hint="committed records are kept, nothing was sent twice; inspect the dead letters; if they may stay, raise"
        " on_error.max, and run again",
    )
