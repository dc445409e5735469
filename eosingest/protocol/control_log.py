"""Commits a job's control records to the offsets topic, and reads the job's state back, for the driver.

The driver writes to the offsets topic through this module alone: the claim of the run number, control records, and
tombstones and offset records in the same transaction. One control producer commits every control record, so a fenced
driver can commit none (docs/protocol.md, The driver).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from eosingest.errors import EosingestError, FatalError, FencedError, TemporaryError
from eosingest.kafka.ports import Admin, FailureKind, KafkaFailure, OffsetsReader, Producer
from eosingest.protocol.offsets import record, scope_piece, topic
from eosingest.protocol.offsets.blocking import blocked_read
from eosingest.protocol.offsets.gap import GapRecord
from eosingest.protocol.offsets.record import ControlRecord, OffsetRecord, RunRecord
from eosingest.protocol.offsets.scope_piece import ScopePiece
from eosingest.protocol.offsets.state import JobState
from eosingest.protocol.permission_hints import hint_of
from eosingest.protocol.transactional_ids import control_id, sharing

_SUCCESSOR_WAIT_S = 5.0  # for the claim of another run, which follows its fence at once
_PLAN_WAIT_S = 30.0  # for the next control record of a run that has claimed and not ended: it may be planning
_AGAIN_S = 0.2
_RUNS_KEPT = 1_000


class DriverKafka(Protocol):
    """Makes the driver's clients; `admin` lives as long as the run."""

    @property
    def admin(self) -> Admin:
        """The admin client."""

    def control_producer(self, transactional_id: str) -> Producer:
        """Make the control producer."""

    def reader(self, partition: int) -> OffsetsReader:
        """Make a reader of one partition of the offsets topic."""


class ControlLog:
    """One driver's control producer and its view of the job. `mine` is its last control record, with pins for the next.

    Every method that calls the brokers may raise TemporaryError, where an outcome or the end of the log could not be read, and
    FatalError, where Kafka refuses. FencedError means that the log names another run.
    """

    mine: ControlRecord

    def __init__(
        self,
        job: str,
        kafka: DriverKafka,
        *,
        offsets_topic: str,
        partition: int,
        deadline_s: Callable[[], float],
        now: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        """`deadline_s` returns how long a read may make no progress; `now` and `sleep` are the clock; all in seconds."""
        self.state = JobState(job)
        self._job = job
        self._kafka = kafka
        self._topic = offsets_topic
        self.partition = partition
        self._deadline_s = deadline_s
        self._now = now
        self._sleep = sleep
        self.reader = kafka.reader(partition)
        self._producer: Producer | None = None
        self._claimed_from = 0  # end of the read for the claim

    def fence_earlier_driver(self, prefix: str) -> None:
        """Call `init_transactions` on the control id, once in this driver's life: a second call would fence a successor."""
        with self.kafka_errors("claiming the job"):
            self._producer = self._kafka.control_producer(control_id(prefix, self._job))
            self._producer.init_transactions()

    def read_uncommitted(self) -> JobState:
        """Return the job's state with open and aborted transactions, without offset records: for claims only.

        A read_committed reader would wait for the transactions that are fenced next. A run number or a number of tasks from
        an aborted record is at worst too high, which does no harm.
        """
        seen = self._read_uncommitted(self.reader)
        self._claimed_from = seen.end
        return seen

    def _read_uncommitted(self, reader: OffsetsReader) -> JobState:
        seen = JobState(self._job, with_offsets=False)
        with self.kafka_errors("claiming the job"):
            topic.read_uncommitted(reader, seen, deadline_s=self._deadline_s())
        return seen

    def look_elsewhere(self, partitions: int) -> tuple[int, ControlRecord] | None:
        """Search for the job where it would be if the offsets topic had had fewer than its `partitions`.

        Returns the partition and its control record, None where no partition has one.
        """
        others = {topic.partition_of(self._job, fewer) for fewer in range(1, partitions)} - {self.partition}
        for partition in sorted(others):
            with contextlib.closing(self._kafka.reader(partition)) as reader:
                found = self._read_uncommitted(reader).newest
            if found is not None:
                return partition, found
        return None

    def look_for_same_ids(self, prefix: str, partitions: int) -> tuple[str, str] | None:
        """Return prefix and name of another job with the transactional ids that this job has with `prefix`, or None.

        Reads all `partitions` of the offsets topic.
        """
        prefixes = {record.control_key(name): (other, name) for other, name in sharing(prefix, self._job)}
        for partition in range(partitions):
            with contextlib.closing(self._kafka.reader(partition)) as reader, self.kafka_errors("claiming the job"):
                bounds = reader.log_start(), reader.high_watermark()
                for entry in reader.read(*bounds, committed=False, deadline_s=self._deadline_s()):
                    if found := prefixes.get(entry.key):
                        state = JobState(found[1])
                        state.fold([entry], reader.place)
                        if state.control is not None and state.control.pinned.prefix == found[0]:
                            return found
        return None

    def read_back(self) -> None:
        """Read the job's records to the high watermark. Raises FencedError where the control record is another run's."""
        with self.kafka_errors("reading the offsets topic"):
            topic.read_to_high_watermark(self.reader, self.state, deadline_s=self._deadline_s())
        self.refuse_other_run(self.state)

    def refuse_other_run(self, state: JobState, own: ControlRecord | None = None) -> None:
        """Raise FencedError where the state's control record is of another run than `own` (by default `mine`).

        Raises FatalError where there is no control record.
        """
        found, committed, own = state.control, own is None, own or self.mine
        if found is None:
            raise FatalError(
                "this run's control record is not in the offsets topic",
                code="control-lost",
                hint=f"nothing more was sent; check what deletes records of {self._topic}",
            )
        if (found.run, found.started) != (own.run, own.started):
            # A run that was fenced before it committed its claim has no number: the other run took that number, or had
            # claimed already.
            number = own.run if committed or own.state != record.CLAIMED else "which had not claimed it yet"
            raise FencedError(
                f"run {found.run} on {found.host} (pid {found.pid}) has taken job {self._job} over from this run, {number}",
                hint="nothing was lost or sent twice; do not retry: the newer run resumes after the committed records",
            )

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
        """Commit a control record, with tombstones, offset records, pieces of a new scope and gaps, in one transaction.

        `folded` are keys to tombstone after the offset records into which theirs were merged.

        An unknown outcome is resolved by reading, since another init of the control id would fence a successor. Raises
        FencedError where another run has claimed, TemporaryError where the outcome stays unknown.
        """
        entries: list[tuple[bytes, bytes | None]] = [(key, None) for key in tombstones]
        entries += [(offset.key(self._job), offset.encode()) for offset in offsets]
        entries += [(key, None) for key in folded]
        entries += [(gap.key(self._job), gap.encode()) for gap in gaps]
        entries += self._scope_entries(control, scope)
        entries += self._control_entries(control)
        entries += self._run_entries(control)
        try:
            self._commit_entries(entries)
        except KafkaFailure as failure:
            self._resolve(control, failure)
        self.mine = control

    def _control_entries(self, control: ControlRecord) -> list[tuple[bytes, bytes | None]]:
        """Return the control record and, unless it is a claim, its copy under the `settled` key, which no claim overwrites.

        The copy is second: where compaction removed it, it removed the first one too, and a reader reads further.
        """
        value = control.encode()
        entries: list[tuple[bytes, bytes | None]] = [(record.control_key(self._job), value)]
        if control.state != record.CLAIMED:
            entries.append((record.settled_key(self._job), value))
        return entries

    def _scope_entries(self, control: ControlRecord, pieces: Sequence[str]) -> list[tuple[bytes, bytes | None]]:
        """Return the pieces of a new scope, and tombstones for those that the control record's scope does not have."""
        written = [
            (scope_piece.key(self._job, number), ScopePiece(text).encode()) for number, text in enumerate(pieces)
        ]
        kept = control.scope.pieces if control.scope is not None else 0
        return [
            *written,
            *((scope_piece.key(self._job, number), None) for number in self.state.scope if number >= kept),
        ]

    def _run_entries(self, control: ControlRecord) -> list[tuple[bytes, bytes | None]]:
        """Return the run record of a claim or of the run's end: each key is written once, so that compaction keeps it.

        A claim also tombstones the run records of the run 1,000 earlier.
        """
        if control.state == record.CLAIMED:
            return self._claim_entries(control)
        if control.state == record.RUNNING or self.mine.state == record.SETTLING:
            return []
        end = RunRecord(control.run, control.started, ended=True)
        return [(end.key(self._job), end.encode())]

    def _claim_entries(self, control: ControlRecord) -> list[tuple[bytes, bytes | None]]:
        claim = RunRecord(control.run, control.started, ended=False)
        dropped = control.run - _RUNS_KEPT
        old = [record.run_key(self._job, dropped, ended=ended) for ended in (False, True)] if dropped > 0 else []
        return [(claim.key(self._job), claim.encode()), *((key, None) for key in old)]

    def _commit_entries(self, entries: list[tuple[bytes, bytes | None]]) -> None:
        producer = self._producer
        assert producer is not None, "nothing is committed before fence_earlier_driver"
        producer.begin()
        for key, value in entries:
            producer.produce_to_partition(self._topic, self.partition, key, value)
        producer.flush()
        producer.commit()

    def _resolve(self, control: ControlRecord, failure: KafkaFailure) -> None:
        """Read, for some seconds, until the log shows that our commit succeeded, or that a later run has claimed.

        A control record after the read for the claim is ours or a later run's, even with a lower number: a run that fenced
        us before that read may have claimed before it too, and then our number is the one after its own.
        """
        if failure.kind is FailureKind.REFUSED:
            raise _kafka_error("writing the control record", failure, self._topic)
        began = self._now()
        while True:
            with self.kafka_errors("reading the offsets topic"):
                topic.read_to_high_watermark(self.reader, self.state, deadline_s=self._deadline_s())
            found = self.state.control
            if found is not None and self.state.control_at >= self._claimed_from:
                self.refuse_other_run(self.state, control)
                if found.state == control.state:
                    return
            other = self._other_at_work(control) if failure.kind is FailureKind.FENCED else None
            if self._now() - began > (_SUCCESSOR_WAIT_S if other is None else _PLAN_WAIT_S):
                raise _kafka_error("writing the control record", failure, self._topic, other)
            self._sleep(_AGAIN_S)

    def _other_at_work(self, own: ControlRecord) -> ControlRecord | None:
        """Return the control record of a run that claimed before we could, and has not ended."""
        found = self.state.control
        if found is None or found.started == own.started or found.state in (record.COMPLETE, record.FAILED):
            return None
        return found

    @contextlib.contextmanager
    def kafka_errors(self, doing: str) -> Iterator[None]:
        """Turn KafkaFailure into an error of errors.py. After a read deadline it names the open transactions."""
        try:
            yield
        except KafkaFailure as failure:
            if failure.code == "read-deadline":
                what = f"the offsets topic could not be read to its end: {failure.detail}"
                raise blocked_read(
                    self._kafka.admin, self._topic, [self.partition], what, code="offsets-held-up", again="run again"
                ) from failure
            raise _kafka_error(doing, failure, self._topic) from failure

    def close(self) -> None:
        """Close the control producer and the reader."""
        if self._producer is not None:
            self._producer.close()
        self.reader.close()


def _kafka_error(doing: str, failure: KafkaFailure, offsets: str, other: ControlRecord | None = None) -> EosingestError:
    """Return the error for a KafkaFailure. A fence alone is not exit 6 (FencedError): only the control record proves that.

    `offsets` is the offsets topic; `other` is a run that may have fenced this one, which had not claimed yet.
    """
    if failure.kind is FailureKind.REFUSED:
        return FatalError(
            f"{doing}: Kafka refused: {failure}", code="kafka-refused", hint=hint_of(failure.code, offsets=offsets)
        )
    hint = "committed records are kept, nothing was sent twice; run again"
    if other is not None:
        hint = (
            f"this run sent nothing. Run {other.run} on {other.host} (pid {other.pid}) has claimed the job and may be running:"
            " check with `status`, and run again when it has ended"
        )
    elif failure.kind is FailureKind.FENCED:
        hint += ". This job's control id was used by another run that ended before it claimed, or a foreign client"
    elif doing == "claiming the job":
        hint += (
            ". If this persists: transaction.state.log.replication.factor and .min.isr must fit the number of brokers"
        )
    return TemporaryError(f"{doing}: {failure}", code="kafka-uncertain", hint=hint)
