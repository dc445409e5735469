"""Performs one run of a job, from claim to verdict (docs/protocol.md, The driver).

    claim ─▶ fence ─▶ read ─▶ plan ─┬─▶ nothing pending: complete, without a JVM
                                    └─▶ running ─▶ Spark job ─▶ settling ─▶ fence own ids ─▶ read back ─▶ verdict

    takeover.py: claim, fence, read     planning.py: plan     sending.py: running to verdict

No pyspark and no Kafka client here: `Launcher` wraps Spark, `DriverKafka` wraps Kafka, `Runtime` has clock and signals.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

from eosingest.errors import EXIT_DONE, EosingestError, FencedError, worst_exit_code
from eosingest.protocol import data_loss, merge_offsets, pins, verdict
from eosingest.protocol.control_log import DriverKafka
from eosingest.protocol.driver_contract import DriverSettings, Launcher, Runtime
from eosingest.protocol.job_lease import OwnedJob
from eosingest.protocol.offsets import record, topic
from eosingest.protocol.plan import Plan, half_done_items
from eosingest.protocol.planning import Planned, Planning
from eosingest.protocol.sending import Sending
from eosingest.protocol.source import Source
from eosingest.protocol.takeover import Takeover
from eosingest.report.model import RunReport
from eosingest.report.progress import Observer


class Driver:
    """One run of one job: create one for each run, and call `run` once."""

    def __init__(
        self,
        settings: DriverSettings,
        kafka: DriverKafka,
        source: Source,
        launcher: Launcher,
        observer: Observer,
        runtime: Runtime,
    ) -> None:
        """Connects to nothing yet."""
        self._settings = settings
        self._kafka = kafka
        self._source = source
        self._launcher = launcher
        self._observer = observer
        self._runtime = runtime
        self._began = runtime.now()

    def run(self) -> RunReport:
        """Perform the run, and return its report, which holds the errors of the Spark job and its tasks.

        Raises the errors of errors.py for any other failure: before the Spark job starts, or where no verdict could be
        committed (another run has claimed the job, the brokers do not answer).
        """
        if self._settings.accept_gap:
            data_loss.refuse_without_use(self._source)
        self._source.check()  # before any fence
        self._job = self._open()
        try:
            Takeover(self._job, self._observer, self._runtime).run()
            return self._run_read()
        finally:
            self._job.close()

    def _open(self) -> OwnedJob:
        """Create the offsets topic if it does not exist, and return the job that is kept in it."""
        description, warnings = topic.ensure_topic(self._kafka.admin, self._settings.offsets_topic)
        for warning in warnings:
            self._observer.note(f"warning: {warning}")
        return OwnedJob(self._settings, self._kafka, self._runtime, description)

    def _run_read(self) -> RunReport:
        """Continue after step 4. An error before the Spark job is also committed: `failed`, with the pins in force."""
        log = self._job.log
        log.mine = pins.carried_forward(log.mine, log.state.settled)
        try:
            return self._plan_and_send()
        except FencedError:
            raise
        except EosingestError:
            if not self._job.running:
                with contextlib.suppress(EosingestError):
                    self._job.commit(replace(log.mine, state=record.FAILED))
            raise

    def _plan_and_send(self) -> RunReport:
        planned = Planning(self._job, self._source, self._launcher, self._observer, self._runtime).run()
        state = self._job.log.state
        before, letters = state.records_total, state.dead_letters(planned.control.dead_letters).count
        if not planned.plan.pending:
            self._complete(planned)
            return self._report(planned.plan, before=before, letters=letters, errors=[])
        sending = Sending(
            self._job, planned, self._source, self._launcher, self._observer, self._runtime, self._began, letters
        )
        return self._report(planned.plan, before=before, letters=letters, errors=sending.run())

    def _letters(self) -> int:
        """Return how many dead letters the job has written so far."""
        return self._job.log.state.dead_letters(self._job.log.mine.dead_letters).count

    def _complete(self, planned: Planned) -> None:
        """Commit `complete` where nothing is pending. Raises IncompleteError where an item outside the plan is half sent."""
        self._job.log.state.offsets.update({each.split: each for each in planned.corrected})
        half_done = half_done_items(self._source.splits, self._job.log.state.offsets)
        for error in verdict.half_done_error(half_done, planned.plan.wording):
            raise error
        done = merge_offsets.folded(self._source.splits, self._job.log.state.offsets)
        self._job.commit_complete(
            planned.control, planned.sink, done, tombstones=planned.tombstones, marks=planned.corrected
        )

    def _report(self, plan: Plan, *, before: int, letters: int, errors: list[EosingestError]) -> RunReport:
        state, total = self._job.log.state, self._letters()
        left = verdict.unfinished(plan, state)
        items = len(plan.items) + len(plan.empty)
        items_left = {planned.split.item for planned in left}
        return RunReport(
            job=self._settings.job,
            run=self._job.log.mine.run,
            topic=self._settings.topic,
            bootstrap_servers=self._settings.bootstrap_servers,
            exit_code=worst_exit_code(error.exit_code for error in errors) if errors else EXIT_DONE,
            wording=plan.wording,
            items=items,
            items_done=items - len(items_left),
            splits_planned=len(plan.pending),
            splits_done=len(plan.pending) - len(left),
            records_sent=state.records_total - before,
            records_total=state.records_total,
            seconds=self._runtime.now() - self._began,
            errors=tuple(errors),
            records_resent=self._job.log.mine.audit.retired_records,
            dead_letters=total - letters,
            dead_letters_total=total,
            dead_letter_topic=pin.topic if (pin := self._job.log.mine.dead_letters) is not None else None,
        )
