"""A job as its driver has it: its control log, and what only the owner of the job may do, to fence its ids and to commit.

What the steps of a run share: takeover.py makes it the driver's own, planning.py and sending.py work on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eosingest.errors import TemporaryError
from eosingest.kafka.protocols import Admin, TopicDescription
from eosingest.protocol import pins, sink_topic
from eosingest.protocol.control_log import ControlLog, DriverKafka
from eosingest.protocol.driver_contract import DriverSettings, Runtime
from eosingest.protocol.offsets import record, topic
from eosingest.protocol.offsets.record import ControlRecord, OffsetRecord, Pinned
from eosingest.protocol.transactional_ids import control_id, stem_of, task_id

_FENCE_EACH_S = 0.02  # replicas may take so long to agree, and one coordinator may have all ids
_INTERRUPTED_DEADLINE_S = 4.0  # a signal ends a run within 10 s where the brokers answer, whoever holds a read up


class OwnedJob:
    """One job in one driver's hands. `offsets_topic` is as it was found when the run began.

    `running`: such a record of ours is committed, and how the run ended is for the verdict to say.
    `prefixes` are those that ids which may be alive begin with: of the earlier run, too, where it had another one.
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
        """How long a read or a fence may take now, in seconds."""
        if self._runtime.interruption.signal_number is not None:
            return _INTERRUPTED_DEADLINE_S
        return topic.read_deadline_s(self.settings.transaction_timeout_s)

    def fence(self, tasks: int) -> None:
        """Fence the ids of so many tasks, from 0 on: none of them commits anything after this."""
        ids = [task_id(prefix, self.settings.job, task) for prefix in self.prefixes for task in range(tasks)]
        interrupted = self._runtime.interruption.signal_number is not None
        more_s = 0.0 if interrupted else _FENCE_EACH_S * len(ids)
        self.admin.fence(ids, timeout_s=self.deadline_s + more_s)

    def commit(
        self,
        control: ControlRecord,
        *,
        tombstones: Sequence[bytes] = (),
        marks: Sequence[OffsetRecord] = (),
        scope: Sequence[str] = (),
    ) -> None:
        """Commit our next control record, and with it what else there is (`ControlLog.commit`)."""
        assert self.log.mine.may_become(control.state), f"{self.log.mine.state} -> {control.state}"
        with self._runtime.interruption.armed(False):  # what is begun is ended, where the brokers answer
            self.log.commit(self.stamped(control), tombstones=tombstones, marks=marks, scope=scope)

    def stamped(self, control: ControlRecord) -> ControlRecord:
        """Return the record with who writes it, and when."""
        settings = self.settings
        return replace(
            control, host=settings.host, pid=settings.pid, versions=dict(settings.versions), time=self._runtime.utc()
        )

    def completed(self, control: ControlRecord, sink: TopicDescription) -> ControlRecord:
        """Return the record that closes the job: from here on nothing of ours comes behind the sink's ends."""
        audit = control.audit
        if audit.end is None:
            audit = replace(audit, end=sink_topic.ends(self.admin, sink))
        closed = replace(control, state=record.COMPLETE, tasks_alive=0, pin_open=False, forgotten=False, audit=audit)
        return replace(closed, scope=None)

    def pinned_now(self, *, topic_id: str, cluster_id: str) -> Pinned:
        """Return what this run would pin for the job's life."""
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
        """The offset records that prove what was sent must lie in the topic that was read when the run began."""
        found = self.admin.describe_topic(self.settings.offsets_topic)
        if found is None or found.topic_id != self.offsets_topic.topic_id:
            raise pins.offsets_topic_recreated(self.log.mine.run)

    def hanging(self, sink: TopicDescription) -> TemporaryError | None:
        """Return the error where a transaction that we fenced is still open in the sink topic."""
        stems = {stem_of(control_id(prefix, self.settings.job)) for prefix in self.prefixes}
        try:
            return sink_topic.hanging(self.admin, sink, stems)
        except TemporaryError as error:  # a partition without a leader cannot tell, nor take a marker
            return error

    def close(self) -> None:
        """Let go of the clients."""
        self.log.close()
