"""Fences and commits for the run that owns a job.

The steps of a run share it: takeover.py claims the job, planning.py and sending.py follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eosingest.errors import EosingestError, FatalError, TemporaryError
from eosingest.kafka.ports import Admin, TopicDescription
from eosingest.protocol import pins, sink_topic
from eosingest.protocol.control_log import ControlLog, DriverKafka
from eosingest.protocol.driver_contract import DriverSettings, Runtime
from eosingest.protocol.merge_offsets import Folded
from eosingest.protocol.offsets import record, topic
from eosingest.protocol.offsets.gap import GapRecord
from eosingest.protocol.offsets.record import ControlRecord, OffsetRecord, Pinned
from eosingest.protocol.transactional_ids import control_id, stem_of, task_id

_FENCE_EACH_S = 0.02  # for each id: replicas may take so long to acknowledge it, and one coordinator may have all ids
_INTERRUPTED_DEADLINE_S = 4.0  # a signal must end a run within 10 s, even where an open transaction blocks a read


class OwnedJob:
    """The job that a driver owns. `offsets_topic` is the topic as it was when the run began.

    `running` is true once this run has committed the control record `running`: from then on only the verdict ends the run.
    `prefixes` are the transactional id prefixes of producers that may be alive: the spec's, and the earlier run's if it had
    another one.
    """

    def __init__(
        self, settings: DriverSettings, kafka: DriverKafka, runtime: Runtime, offsets_topic: TopicDescription
    ) -> None:
        """Reads and commits nothing yet."""
        self.settings = settings
        self.offsets_topic = offsets_topic
        self.prefixes: tuple[str, ...] = (settings.prefix,)
        self.running = False
        self._kafka = kafka
        self._runtime = runtime
        self.log = ControlLog(
            settings.job,
            kafka,
            offsets_topic=settings.offsets_topic,
            partition=topic.partition_of(settings.job, offsets_topic.partitions),
            deadline_s=lambda: self.deadline_s,
            now=runtime.now,
            sleep=runtime.sleep,
        )

    @property
    def admin(self) -> Admin:
        """The admin client."""
        return self._kafka.admin

    @property
    def deadline_s(self) -> float:
        """How long a read may make no progress, or a fence may take, in seconds: less after a signal."""
        if self._runtime.interruption.signal_number is not None:
            return _INTERRUPTED_DEADLINE_S
        return topic.read_deadline_s(self.settings.transaction_timeout_s)

    def fence(self, tasks: int) -> None:
        """Fence the transactional ids of the tasks 0 to `tasks` - 1: no earlier producer of theirs can commit after this.

        Raises TemporaryError where an id could not be fenced in time, FatalError where Kafka refuses.
        """
        ids = [task_id(prefix, self.settings.job, task) for prefix in self.prefixes for task in range(tasks)]
        interrupted = self._runtime.interruption.signal_number is not None
        more_s = 0.0 if interrupted else _FENCE_EACH_S * len(ids)
        self.admin.fence(ids, timeout_s=self.deadline_s + more_s)

    def commit(
        self,
        control: ControlRecord,
        *,
        tombstones: Sequence[bytes] = (),
        offsets: Sequence[OffsetRecord] = (),
        folded: Sequence[bytes] = (),
        scope: Sequence[str] = (),
        gaps: Sequence[GapRecord] = (),
    ) -> None:
        """Commit our next control record, and the rest in the same transaction. Raises as `ControlLog.commit` does."""
        assert self.log.mine.may_become(control.state), f"{self.log.mine.state} -> {control.state}"
        with self._runtime.interruption.armed(False):  # a signal does not interrupt a commit that has begun
            stamped = self.stamped(control)
            self.log.commit(stamped, tombstones=tombstones, offsets=offsets, folded=folded, scope=scope, gaps=gaps)

    def stamped(self, control: ControlRecord) -> ControlRecord:
        """Return the record with this run's host, process id and versions, and the time."""
        settings = self.settings
        return replace(
            control, host=settings.host, pid=settings.pid, versions=dict(settings.versions), time=self._runtime.utc()
        )

    def commit_complete(
        self,
        control: ControlRecord,
        sink: TopicDescription,
        done: Folded,
        *,
        tombstones: Sequence[bytes] = (),
        marks: Sequence[OffsetRecord] = (),
    ) -> None:
        """Commit `complete` with merged records, done marks and tombstones. Raises as `commit` does."""
        gone = [record.split_key(self.settings.job, split) for split in done.gone]
        self.commit(self._completed(control, sink), tombstones=tombstones, offsets=[*marks, *done.records], folded=gone)

    def _completed(self, control: ControlRecord, sink: TopicDescription) -> ControlRecord:
        """Return the control record `complete`. The sink's high watermarks end the audit: we write no record after them."""
        audit = control.audit
        if audit.end is None:
            audit = replace(audit, end=sink_topic.ends(self.admin, sink))
        pin = control.dead_letters
        pin = None if pin is None else pin.completed(self.log.state.dead_letters(pin))
        closed = replace(control, state=record.COMPLETE, tasks_alive=0, pin_open=False, forgotten=False, audit=audit)
        return replace(closed, scope=None, dead_letters=pin, by_parts_since=0)

    def pinned_now(self, *, topic_id: str, cluster_id: str) -> Pinned:
        """Return this run's pins for the job's life."""
        settings = self.settings
        return Pinned(
            settings.format,
            settings.root,
            settings.topic,
            topic_id,
            cluster_id,
            self.offsets_topic.partitions,
            settings.prefix,
            offsets_topic_id=self.offsets_topic.topic_id,
        )

    def refuse_other_offsets_topic(self) -> None:
        """Raise ChangedError where the offsets topic was deleted or recreated since the run began, and its records with it."""
        found = self.admin.describe_topic(self.settings.offsets_topic)
        if found is None or found.topic_id != self.offsets_topic.topic_id:
            raise pins.offsets_topic_recreated(self.log.mine.run)

    def hanging(self, sink: TopicDescription) -> TemporaryError | None:
        """Return the error where a transaction of an id that we fenced is still open in the sink or dead-letter topic."""
        return self._hanging_in(sink, self._dead_letter_topic())

    def lost_topics(self, sink: TopicDescription) -> list[EosingestError]:
        """Return the errors of the topics that tasks wrote to, after the last task: one was deleted or recreated.

        Where none was, the error of `hanging` in them as they are now: partitions may have been added since.
        """
        now, pin = self.admin.describe_topic(sink.name), self.log.mine.dead_letters
        if now is None or now.topic_id != sink.topic_id:
            return [pins.written_topic_recreated(sink.name)]
        dead = self._dead_letter_topic()
        if (
            self.settings.dead_letters is not None
            and pin is not None
            and (dead is None or dead.topic_id != pin.topic_id)
        ):
            return [pins.written_topic_recreated(pin.topic)]
        hanging = self._hanging_in(now, dead)
        return [] if hanging is None else [hanging]

    def _dead_letter_topic(self) -> TopicDescription | None:
        """Return the dead-letter topic, None where it is missing or may not be seen."""
        pin = self.log.mine.dead_letters
        try:
            return None if pin is None else self.admin.describe_topic(pin.topic)
        except FatalError:  # of earlier runs, where the spec names none now
            if self.settings.dead_letters is not None:
                raise
            return None

    def _hanging_in(self, sink: TopicDescription, dead: TopicDescription | None) -> TemporaryError | None:
        stems = {stem_of(control_id(prefix, self.settings.job)) for prefix in self.prefixes}
        try:
            found = sink_topic.hanging(self.admin, sink, stems)
            return found if found is not None or dead is None else sink_topic.hanging(self.admin, dead, stems)
        except TemporaryError as error:  # a partition without a leader can neither answer nor take a marker
            return error

    def close(self) -> None:
        """Close the control producer and the reader."""
        self.log.close()
