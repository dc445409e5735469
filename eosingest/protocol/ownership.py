"""Decides by the offsets topic alone whether a task attempt may write, and from which positions: its steps 0, 2 and 3.

    0 look ─▶ (1 init_transactions: transaction.py) ─▶ 2 read_back ─▶ 3 check

The steps are in docs/protocol.md (The task); task.py calls them. Nothing is written here.
"""

from __future__ import annotations

from eosingest.errors import ChangedError, FatalError, FencedError, IncompleteError
from eosingest.kafka.ports import OffsetsReader
from eosingest.protocol.offsets import record, topic
from eosingest.protocol.offsets.record import Claim, OffsetRecord
from eosingest.protocol.offsets.state import TaskState
from eosingest.protocol.plan import PlannedSplit
from eosingest.protocol.task_contract import TaskSettings


class Ownership:
    """An attempt's view of its run's epoch, of rival attempts, and of its splits' committed offset records.

    An attempt may write while the control record names its run and says that it is running, no run record shows a newer
    run or this one's end, no newer attempt has claimed the task, and the offsets topic is the one of the plan.
    """

    def __init__(self, settings: TaskSettings, task: int, attempt: int, reader: OffsetsReader) -> None:
        """Nothing is read yet. `attempt` is Spark's unique id of the task attempt: a later attempt has a higher one."""
        self._settings = settings
        self._task = task
        self._attempt = attempt
        self._reader = reader
        self._state = TaskState(settings.job, end=settings.plan_end, run=settings.run, task=task)
        self._deadline_s = topic.read_deadline_s(settings.transaction_timeout_s)

    def look(self) -> None:
        """Step 0: read to the last stable offset, and stop a zombie before it fences. Raises as `check`, and KafkaFailure."""
        topic.read_to_last_stable_offset(self._reader, self._state, deadline_s=self._deadline_s)
        self._check_newest_run()
        self._check_claim()
        if self._state.control is not None:  # None: hidden by an open transaction; `check` follows the init
            self._check_run()

    def read_back(self) -> None:
        """Step 2: read what the job has written since the plan, to the high watermark. Raises KafkaFailure."""
        topic.read_to_high_watermark(self._reader, self._state, deadline_s=self._deadline_s)

    def check(self) -> None:
        """Step 3: stop unless this attempt may write.

        Raises FencedError where the job belongs to another run, IncompleteError where the run has ended or a newer attempt
        is at work, ChangedError or FatalError where progress is lost.
        """
        self._check_offsets_topic()
        self._check_run()

    def committed(self, planned: PlannedSplit) -> OffsetRecord | None:
        """Return the split's last committed offset record. Raises FatalError where another task of this run wrote it."""
        other = self._state.elsewhere(planned.id)
        if other is not None:
            raise FatalError(
                f"{planned.label} is read by tasks {other} and {self._task} of one run",
                code="split-in-two-tasks",
            )
        return self._state.offsets.get(planned.id, planned.committed)

    def claim(self) -> tuple[bytes, bytes]:
        """Return key and value of this attempt's claim on its task, for its first transaction."""
        settings = self._settings
        claim = Claim(settings.run, settings.started, self._attempt)
        return record.claim_key(settings.job, self._task), claim.encode()

    def close(self) -> None:
        """Close the reader."""
        self._reader.close()

    def _check_offsets_topic(self) -> None:
        """Stop where the offsets topic was recreated: the last read may lack records written since the plan."""
        if self._reader.topic_id() != self._settings.offsets_topic_id:
            raise ChangedError(
                f"the offsets topic {self._settings.offsets_topic} was recreated during the run",
                code="progress-lost",
            )

    def _check_run(self) -> None:
        """Stop unless the control record names this run and says it is running, and no newer attempt claimed the task."""
        control, settings = self._state.control, self._settings
        if control is None:
            raise FatalError("the job's control record is gone from the offsets topic", code="control-lost")
        if (control.run, control.started) != (settings.run, settings.started):
            raise FencedError(f"the job belongs to run {control.run} on {control.host} now", code="fenced")
        self._check_newest_run()
        if control.state != record.RUNNING:
            raise IncompleteError(f"run {settings.run} has ended as {control.state}", code="run-ended")
        self._check_claim()

    def _check_claim(self) -> None:
        """Stop where a newer attempt of our run has claimed the task."""
        claim, settings = self._state.claims.get(self._task), self._settings
        if claim is not None and (claim.run, claim.started) == (settings.run, settings.started):
            if claim.attempt > self._attempt:
                raise IncompleteError("a newer attempt of this task is running", code="superseded")

    def _check_newest_run(self) -> None:
        """Stop where a run record shows a newer run, or our run's end: compaction may have removed the control record."""
        newest, settings = self._state.newest_run, self._settings
        if newest is not None and newest.run > settings.run:
            raise FencedError(f"the job belongs to run {newest.run} now", code="fenced")
        if newest is not None and newest.run == settings.run and newest.ended:
            raise IncompleteError(f"run {settings.run} has ended", code="run-ended")
