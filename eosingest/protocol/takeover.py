"""Takes steps 1 to 4 of a run: claims the job, fences its earlier producers, reads its progress (docs/protocol.md).

Why it is correct: the claim is committed before any task is fenced, by a producer whose init fenced the earlier driver; every
id that may still be alive is fenced before the read; a task reads after its own init. So an earlier run's task that inits
after the fence sees the claim and stops, one that did before is fenced, and no earlier run commits after the read.
"""

from __future__ import annotations

from dataclasses import replace

from eosingest.host.failpoints import fail_point
from eosingest.protocol import pins
from eosingest.protocol.driver_contract import Runtime
from eosingest.protocol.job_lease import OwnedJob
from eosingest.protocol.offsets import record
from eosingest.protocol.offsets.record import ControlRecord
from eosingest.protocol.offsets.state import JobState
from eosingest.protocol.transactional_ids import control_id, stem_of, task_id
from eosingest.report.progress import Observer


class Takeover:
    """Takes a job over: after `run` no earlier run of it can commit anything."""

    def __init__(self, job: OwnedJob, observer: Observer, runtime: Runtime) -> None:
        """Reads and commits nothing yet."""
        self._job = job
        self._log = job.log
        self._settings = job.settings
        self._observer = observer
        self._runtime = runtime

    def run(self) -> None:
        """Claim, fence, read. The log's state then is the job's only progress.

        Raises ChangedError where progress was lost, SpecError where another job has the same transactional ids, FencedError
        where a newer run has claimed, TemporaryError where the brokers do not answer or a transaction blocks the read.
        """
        self._claim()
        fail_point("driver-after-claim")
        # Always task 0's id as well: so the cluster knows the id of every job that has claimed (pins.job_progress_lost).
        self._job.fence(max(1, self._log.mine.tasks_alive))
        fail_point("driver-after-fence")
        self._log.read_back()
        self._job.refuse_other_offsets_topic()  # the claim may be based on one topic and written to a recreated one

    def _claim(self) -> None:
        """Fence an earlier driver, then commit the claim of the next run number, with how many task ids may be alive."""
        settings = self._settings
        self._log.fence_earlier_driver(settings.prefix)
        seen = self._log.read_uncommitted()
        if seen.newest is None:
            self._refuse_other_partition()
        forgotten = seen.newest is None and self._knows_first_task()
        if forgotten:
            seen = self._log.read_uncommitted()  # a run that made that id known since had claimed before
            forgotten = seen.newest is None and seen.newest_run is None  # compaction keeps the run records
        if forgotten:
            self._refuse_same_ids()  # the cluster may know the id from another job that has it
        if forgotten and not settings.from_scratch:
            raise pins.job_progress_lost(settings.job, settings.offsets_topic)
        earlier = seen.newest
        if earlier is None:
            pinned = self._job.pinned_now(topic_id="", cluster_id="")
            alive = self._known_tasks() if forgotten else 0
            claim = ControlRecord(1, settings.started, record.CLAIMED, tasks_alive=alive, pinned=pinned, pinned_since=1)
            claim = replace(claim, forgotten=forgotten)
        else:
            if earlier.pinned.prefix != settings.prefix:
                seen = self._take_over_prefix(earlier)
                earlier = seen.newest or earlier
            if earlier.state not in (record.COMPLETE, record.FAILED):
                self._observer.note(_takes_over(earlier, self._runtime.now_ms() - seen.last_ms))
            claim = replace(earlier, run=earlier.run + 1, started=settings.started, state=record.CLAIMED)
            lost = pins.of_another_offsets_topic(earlier.pinned, self._job.offsets_topic.topic_id)
            claim = replace(claim, forgotten=seen.forgotten or lost)  # `earlier` may be an aborted record
        self._log.commit(self._job.stamped(claim))

    def _knows_first_task(self) -> bool:
        return self._job.admin.knows_transactional_id(task_id(self._settings.prefix, self._settings.job, 0))

    def _known_tasks(self) -> int:
        """Return how many task ids may be alive according to the coordinators: no record of the job is left."""
        stem = f"{stem_of(control_id(self._settings.prefix, self._settings.job))}."
        numbers = [name.removeprefix(stem) for name in self._job.admin.known_ids(stem)]
        return max((int(number) + 1 for number in numbers if number.isdecimal()), default=0)

    def _refuse_other_partition(self) -> None:
        """Raise ChangedError where the job is in another partition: the offsets topic had fewer when the job wrote to it."""
        partitions = self._job.offsets_topic.partitions
        found = self._log.look_elsewhere(partitions)
        if found is not None:
            raise pins.offsets_topic_grew(found[1].pinned.offsets_partitions, partitions)

    def _refuse_same_ids(self) -> None:
        """Raise SpecError where another job of the offsets topic has the same transactional ids."""
        settings = self._settings
        other = self._log.look_for_same_ids(settings.prefix, self._job.offsets_topic.partitions)
        if other is not None:
            raise pins.same_ids(settings.prefix, settings.job, *other)

    def _take_over_prefix(self, earlier: ControlRecord) -> JobState:
        """Refuse another transactional_id_prefix than the recorded one (ChangedError), or fence the ids under the old one.

        The old driver's id is fenced now, those of its tasks after the claim: a task that inits before the claim would find
        its own run in the control record, and continue. Returns the log's state after that fence: until then the old run may
        have committed `running`, with more tasks than were read.
        """
        old, settings = earlier.pinned.prefix, self._settings
        if not settings.from_scratch:
            pins.refuse_other_life(earlier.pinned, replace(earlier.pinned, prefix=settings.prefix))
        self._refuse_same_ids()
        self._job.admin.fence([control_id(old, settings.job)], timeout_s=self._job.deadline_s)
        self._job.prefixes = (old, settings.prefix)
        return self._log.read_uncommitted()


def _takes_over(earlier: ControlRecord, silent_ms: int) -> str:
    return (
        f"taking over from run {earlier.run}, {earlier.state} on {earlier.host} (pid {earlier.pid}) since {earlier.time};"
        f" it last wrote {silent_ms / 1000:.0f} s ago and is fenced now"
    )
