"""What one Spark task does: the heart of the protocol (docs/protocol.md, The task).

    Arrow batches ─▶ rows by split ─▶ begin ─▶ produce … ─▶ flush ─▶ offset records last ─▶ commit ─▶ (again)
                                        ▲                                                     │
                        0 glance · 1 init_transactions · 2 read · 3 check ◀── any failure ────┘

The order is the law, at every start and restart of a producer:

    0. Is the run still mine? A look, before init: a woken zombie should not even disturb.
    1. `init_transactions` on the task's transactional id: earlier producers of it are fenced, their transaction decided.
    2. Read the job's records written since the plan, to the high watermark.
    3. Run number and run start still mine, no newer attempt's claim on this task? If not: stop, having written nothing.
    4. begin, produce, flush and check, offset records last, commit; repeat. An attempt's first transaction claims.

What it rests on:
- Input that ends proves nothing: Python sees a normal end also when the JVM failed or the job was cancelled. A split is
  ended when rows of the next one arrive. The last one is reported in the outcome, and the driver believes that only of
  tasks that Spark calls successful. An input that reads the bytes of its splits itself knows their ends, and says them.
- Whatever fails, the producer is closed and the way begins again at 0. The offset record tells whether a commit with an
  unknown outcome happened. Nothing is resent from memory, and Spark's input cannot be rewound: where what was in
  flight is gone the attempt ends (AttemptLostError), and Spark's retry starts over.
- Expected ends are values: an Outcome. Only AttemptLostError and bugs are raised.

Not handled here: that the planned splits are those Spark reads (spark/scan.py), and what a successful job proves (driver.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from eosingest.errors import (
    EXIT_FATAL,
    ChangedError,
    EosingestError,
    FatalError,
    FencedError,
    IncompleteError,
    TemporaryError,
)
from eosingest.host.failpoints import fail_point
from eosingest.kafka.protocols import REPEATED_COMMIT_S, FailureKind, KafkaFailure, Producer
from eosingest.protocol.offsets import record, topic
from eosingest.protocol.offsets.record import Claim, OffsetRecord
from eosingest.protocol.offsets.state import TaskState
from eosingest.protocol.plan import PlannedSplit
from eosingest.protocol.split_progress import SplitProgress
from eosingest.protocol.task_contract import (
    BAD_ROWS,
    Batch,
    Inputs,
    Outcome,
    Signal,
    SplitEnd,
    TaskKafka,
    TaskSettings,
)
from eosingest.records.limits import first_bad_row
from eosingest.records.runs import runs

_CHUNK_ROWS = 2_000  # rows between two looks at the clock
_BARREN_RESTARTS = 3  # restarts in a row without a commit before the task gives up
_IDLE_WAIT_S = 1.0


class AttemptLostError(EosingestError):
    """What was in flight is gone and the input cannot be rewound: Spark's next attempt starts from the committed positions."""

    default_code = "attempt-lost"


# What ends a task with an outcome. AttemptLostError is none of them: Spark tries the task again.
_ENDS = (ChangedError, FatalError, FencedError, IncompleteError, TemporaryError)


class Task:
    """One attempt of one task. Made and run once."""

    def __init__(
        self,
        settings: TaskSettings,
        number: int,
        kafka: TaskKafka,
        *,
        attempt: int,
        attempt_number: int,
        now: Callable[[], float],
        now_ms: Callable[[], int],
    ) -> None:
        """`attempt` is Spark's unique task attempt id, `attempt_number` counts this task's attempts from 0; clocks in s, ms."""
        self._settings = settings
        self._kafka = kafka
        self._attempt = attempt
        self._last_attempt = attempt_number + 1 >= settings.max_attempts
        self._now = now
        self._now_ms = now_ms
        self._outcome = Outcome(number)
        self._state = TaskState(settings.job, end=settings.plan_end, run=settings.run, task=number)
        self._reader = kafka.reader()
        self._producer: Producer | None = None
        self._progress: dict[int, SplitProgress] = {}
        self._current: SplitProgress | None = None
        self._claimed = False
        self._barren = 0
        self._begun_at: float | None = None
        self._open_records = 0
        self._open_bytes = 0

    # ---- the way of the attempt ------------------------------------------------------------------------------------

    def run(self, inputs: Inputs) -> Outcome:
        """Send what the input holds beyond the committed positions. Raises AttemptLostError, for Spark to try again."""
        try:
            self._start()
            inputs.begin(self._committed)
            self._consume_all(inputs)
            self._commit_if_dirty()
            fail_point("task-at-end")
            self._report_end()
        except _ENDS as error:
            self._outcome.end_with(error)
        finally:
            self._close_producer()
            self._reader.close()
        return self._outcome

    def _consume_all(self, inputs: Inputs) -> None:
        while True:
            item = self._next(inputs)
            if item is Signal.END:
                return
            if isinstance(item, Batch):
                self._consume(item)
            elif isinstance(item, SplitEnd):
                progress = self._enter(item.split)
                self._check_place(progress, item.rows)
                self._end(progress)
            self._commit_if_due()

    def _next(self, inputs: Inputs) -> Batch | SplitEnd | Signal:
        """Ask the input. What it says of the source ends the attempt; what cannot be read now is tried again."""
        try:
            return inputs.get(self._wait_s())
        except OSError as error:
            if self._last_attempt:
                raise TemporaryError(f"the source could not be read: {error}", code="source-unreadable") from error
            raise AttemptLostError(f"the source could not be read: {error}") from error

    def _report_end(self) -> None:
        """Everything that came in is committed. Whether the input's end was the last split's, Spark's verdict tells."""
        self._outcome.read_all = True
        last = self._current
        if last is not None and not last.failed and not last.done:
            self._outcome.last_split = (last.planned.id, last.seen)
        if self._outcome.bad_rows:
            self._outcome.exit_code, self._outcome.code = EXIT_FATAL, BAD_ROWS

    # ---- steps 0 to 3 ----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Go the way from 0 to 3, as often as the bound allows. Raises one of _ENDS where it ends otherwise."""
        while True:
            try:
                self._start_once()
                return
            except KafkaFailure as failure:
                self._close_producer()
                self._count_barren(failure)

    def _start_once(self) -> None:
        settings = self._settings
        deadline_s = topic.read_deadline_s(settings.transaction_timeout_s)
        topic.read_decided(self._reader, self._state, deadline_s=deadline_s)  # 0
        self._check_newest_run()
        if self._state.control is not None:  # None: hidden behind an open transaction, the check after init tells
            self._check_mine()
        fail_point("task-before-init")
        self._producer = self._kafka.producer(self._outcome.task)
        self._producer.init_transactions()  # 1
        fail_point("task-after-init")
        topic.read_to_end(self._reader, self._state, deadline_s=deadline_s)  # 2
        self._check_offsets_topic()
        self._check_mine()  # 3
        fail_point("task-after-check")
        for progress in self._progress.values():
            found = self._committed(progress.planned)
            if found != progress.committed:
                self._barren = 0  # a commit with an unknown outcome went through
            progress.committed = found
            if progress.committed_rows > progress.rows:
                progress.resume()

    def _check_offsets_topic(self) -> None:
        """Stop where another offsets topic has the name now: what was just read need not be all that is behind the plan."""
        if self._reader.topic_id() != self._settings.offsets_topic_id:
            raise ChangedError(
                f"the offsets topic {self._settings.offsets_topic} was deleted and made again while the run was at work",
                code="progress-lost",
            )

    def _check_mine(self) -> None:
        """Stop unless the control record names this run and says it is running, and no newer attempt claimed the task."""
        control, settings = self._state.control, self._settings
        if control is None:
            raise FatalError("the job's control record is gone from the offsets topic", code="control-lost")
        if (control.run, control.started) != (settings.run, settings.started):
            raise FencedError(f"the job belongs to run {control.run} on {control.host} now", code="fenced")
        self._check_newest_run()
        if control.state != record.RUNNING:
            raise IncompleteError(f"run {settings.run} has ended as {control.state}", code="run-ended")
        claim = self._state.claims.get(self._outcome.task)
        if claim is not None and (claim.run, claim.started) == (settings.run, settings.started):
            if claim.attempt > self._attempt:
                raise IncompleteError("a newer attempt of this task is at work", code="superseded")

    def _check_newest_run(self) -> None:
        """Stop where a run record tells of a newer run, or of our run's end: compaction may have hidden the control record."""
        newest, settings = self._state.newest_run, self._settings
        if newest is not None and newest.run > settings.run:
            raise FencedError(f"the job belongs to run {newest.run} now", code="fenced")
        if newest is not None and newest.run == settings.run and newest.ended:
            raise IncompleteError(f"run {settings.run} has ended", code="run-ended")

    def _committed(self, planned: PlannedSplit) -> OffsetRecord | None:
        """Return the split's last committed offset record. Stop where another task of this run wrote it."""
        other = self._state.elsewhere(planned.id)
        if other is not None:
            raise FatalError(
                f"{planned.label} is read by tasks {other} and {self._outcome.task} of one run",
                code="split-in-two-tasks",
            )
        return self._state.offsets.get(planned.id, planned.committed)

    def _recover(self, failure: KafkaFailure) -> None:
        """After a failure in a transaction: a new producer, and the log's word on what was committed."""
        once = self._outcome.transactions > 0 or self._timed_out()  # not again and again
        self._close_producer()
        self._count_barren(failure)
        self._start()
        lost = [progress for progress in self._progress.values() if progress.rows > progress.committed_rows]
        if lost and not self._last_attempt:
            raise AttemptLostError(f"{failure}; what was in flight was not committed")
        if lost and once and failure.kind is FailureKind.FENCED:
            raise IncompleteError(
                f"a transaction of task {self._outcome.task} was not committed, and Spark gives no further attempt: {failure}",
                code="attempt-lost",
                hint="what was committed is kept, nothing was sent twice; run again: it goes on from there",
            )
        if lost:
            raise self._given_up(failure)

    def _timed_out(self) -> bool:
        """Say whether the open transaction is older than its timeout: then nobody else need have fenced the producer."""
        return self._begun_at is not None and self._now() - self._begun_at >= self._settings.transaction_timeout_s

    def _count_barren(self, failure: KafkaFailure) -> None:
        """Count a failure without a commit in between. Stop where trying again would not help, or did not."""
        self._outcome.restarts += 1
        self._barren += 1
        if failure.kind is FailureKind.REFUSED:
            raise FatalError(f"Kafka refused: {failure}", code=failure.code)
        if failure.code == "read-deadline":
            raise TemporaryError(
                f"the offsets topic could not be read to its end: {failure.detail}", code="offsets-held-up"
            )
        if self._barren >= _BARREN_RESTARTS:
            raise self._given_up(failure)

    def _given_up(self, failure: KafkaFailure) -> FatalError | TemporaryError:
        if failure.kind is FailureKind.FENCED:
            return FatalError(
                f"the producer of task {self._outcome.task} was fenced again and again while run {self._settings.run}"
                " owned the job: either something else uses its transactional id (the same transactional_id_prefix and"
                " job name, with another offsets topic), or transaction.timeout is too small for this cluster",
                code="fenced-again-and-again",
                hint="give one of the two another sink.transactional_id_prefix, or raise transaction.timeout; then run again",
            )
        return TemporaryError(f"Kafka failed {self._barren} times in a row: {failure}", code="kafka-failed")

    # ---- rows ------------------------------------------------------------------------------------------------------

    def _consume(self, batch: Batch) -> None:
        for start, end in runs(batch.splits):
            rows = batch.slice(start, end)
            progress = self._enter(int(rows.splits[0]))
            if rows.first_row is not None:
                self._check_place(progress, rows.first_row)
            self._take(progress, rows)

    def _check_place(self, progress: SplitProgress, row: int) -> None:
        """Stop where the input is at another row than we are: rows would be lost or doubled, or an end come too early."""
        if progress.seen != row and not progress.failed:
            raise FatalError(
                f"{progress.planned.label}: row {row} came when {progress.seen} had been seen",
                code="row-out-of-place",
                hint="this is a bug in eosingest, please report it; what was committed is kept, nothing was sent twice",
            )

    def _enter(self, split_hash: int) -> SplitProgress:
        """Return the split's progress; if it is not the current one, the current one has ended: here is the proof."""
        progress = self._progress.get(split_hash)
        if progress is None:
            progress = self._begin_split(split_hash)
        elif progress is not self._current:
            raise FatalError(f"{progress.planned.label} was read twice by one task", code="split-met-twice")
        if self._current is not None and self._current is not progress:
            self._end(self._current)
        self._current = progress
        return progress

    def _end(self, progress: SplitProgress) -> None:
        """Take the split as ended. Fewer rows than are committed: it is not the split that was sent before."""
        if progress.seen < progress.rows:
            raise ChangedError(
                f"{progress.planned.label} gave {progress.seen} rows, and"
                f" {progress.rows} were committed by an earlier run: the same split must give the same rows",
                code="split-shrank",
                hint="nothing of it was sent again; was the file changed and its length and modification time kept?",
            )
        progress.ended = True

    def _begin_split(self, split_hash: int) -> SplitProgress:
        """Begin with a split, at its first row: what is committed of it is passed over, and proven on the way."""
        planned = self._settings.splits.get(split_hash)
        if planned is None:
            raise ChangedError(
                "a row came from a split, or from a version of a file, that is not in the plan: a file changed after it"
                " was listed",
                code="unplanned-split",
                hint="its rows were not sent; run again once nothing writes to the source any more (source.min_age)",
            )
        progress = self._progress[split_hash] = SplitProgress(planned, self._committed(planned))
        progress.resume()
        return progress

    def _take(self, progress: SplitProgress, rows: Batch) -> None:
        """Send the rows of one split that are not handed over yet; the others have to be those that were."""
        skip = len(rows.splits) if progress.done or progress.failed else max(0, progress.rows - progress.seen)
        skip = min(skip, len(rows.splits))
        if skip and not progress.failed:
            self._pass_over(progress, rows.slice(0, skip))
        if skip < len(rows.splits):
            fresh = self._without_bad_row(progress, rows.slice(skip, len(rows.splits)))
            for start, end in self._chunks(fresh):
                self._send(progress, fresh.slice(start, end))

    def _pass_over(self, progress: SplitProgress, rows: Batch) -> None:
        """Count rows that are committed. Stop where they do not give the receipt: what follows belongs to other rows."""
        if not progress.pass_over(rows):
            raise ChangedError(
                f"{progress.planned.label}: its first {progress.rows} rows are not those that were"
                " sent: they do not give the receipt",
                code="prefix-changed",
                hint="nothing more of it was sent; was the file edited and its length and modification time kept, or does an"
                " expression depend on the day, the host or a library's version? Restore what was and run again;"
                " or send everything again, beside what is in the topic, with: eosingest run SPEC --from-scratch",
            )

    def _without_bad_row(self, progress: SplitProgress, rows: Batch) -> Batch:
        """Cut the rows at the first one that cannot be sent, and give up the split there; the other splits go on."""
        bad = first_bad_row(
            self._settings.limits,
            keys=rows.records.keys,
            sizes=rows.sizes,
            timestamps_ms=rows.records.timestamps_ms,
            partitions=rows.records.partitions,
            corrupt=rows.corrupt,
            now_ms=self._now_ms(),
        )
        if bad is None:
            return rows
        progress.failed = True
        self._outcome.bad_rows.append(
            {
                "split": progress.planned.id,
                "label": progress.planned.label,
                "row": progress.seen + bad.index + 1,
                "code": bad.code,
                "reason": bad.reason,
            }
        )
        return rows.slice(0, bad.index)

    def _chunks(self, rows: Batch) -> Iterator[tuple[int, int]]:
        """Cut the rows into pieces that fit what is left of max_records and max_bytes; one record is always a piece."""
        ends = np.cumsum(rows.sizes)
        start = 0
        while start < len(ends):
            before = int(ends[start - 1]) if start else 0
            fit_bytes = int(np.searchsorted(ends, before + self._settings.max_bytes - self._open_bytes, side="right"))
            fit_records = start + self._settings.max_records - self._open_records
            end = max(start + 1, min(len(ends), start + _CHUNK_ROWS, fit_bytes, fit_records))
            yield start, end
            start = end

    # ---- step 4 ----------------------------------------------------------------------------------------------------

    def _send(self, progress: SplitProgress, rows: Batch) -> None:
        """Hand over rows of one split, in a transaction that is begun if need be and committed at its limits."""
        count, size = len(rows.splits), int(rows.sizes.sum())
        if self._open_records and self._open_bytes + size > self._settings.max_bytes:
            self._commit()
        if progress.rows != progress.seen:  # the log knows more than this attempt: somebody else was at work
            raise AttemptLostError(f"{progress.planned.label} is ahead of this attempt")
        # Before produce: what may have gone out counts as in flight if produce fails.
        progress.take(rows)
        try:
            self._begin_if_closed().produce(self._settings.topic, rows.records)
        except KafkaFailure as failure:
            self._recover(failure)
            return
        fail_point("task-after-produce")
        self._open_records += count
        self._open_bytes += size
        if self._open_records >= self._settings.max_records or self._open_bytes >= self._settings.max_bytes:
            self._commit()
        else:
            self._commit_if_due()

    def _begin_if_closed(self) -> Producer:
        assert self._producer is not None, "no way leads here without _start"
        if self._begun_at is None:
            self._producer.begin()
            self._begun_at = self._now()
            fail_point("task-after-begin")
        return self._producer

    def _wait_s(self) -> float:
        """Return how long the input may be waited for: until half of the transaction timeout has passed."""
        if self._begun_at is None:
            return _IDLE_WAIT_S
        return max(0.0, self._begun_at + self._settings.transaction_timeout_s / 2 - self._now())

    def _commit_if_due(self) -> None:
        if self._begun_at is not None and self._wait_s() == 0.0:
            self._commit()

    def _commit_if_dirty(self) -> None:
        if any(progress.dirty for progress in self._progress.values()):
            self._commit()

    def _commit(self) -> None:
        """Commit everything handed over, with the offset records of every split it touches."""
        try:
            slow = self._commit_once()
        except KafkaFailure as failure:
            self._recover(failure)  # went through all the same, or the attempt is lost
            if not any(progress.dirty for progress in self._progress.values()):
                return
            self._commit()  # only done marks are left: nothing of it is in memory alone
            return
        if slow:
            self._close_producer()
            self._start()

    def _commit_once(self) -> bool:
        """Flush, write the offset records, commit; return whether it was slow: then the producer must not go on."""
        producer = self._begin_if_closed()
        dirty = [progress for progress in self._progress.values() if progress.dirty]
        producer.flush()
        fail_point("task-before-offsets")
        written = [progress.offset_record(self._settings.run, self._outcome.task) for progress in dirty]
        self._write_offsets(producer, written)
        fail_point("task-before-commit")
        began = self._now()
        producer.commit()
        fail_point("task-after-commit")
        for progress, offset in zip(dirty, written, strict=True):
            progress.committed = offset
        self._claimed = True
        self._outcome.transactions += 1
        self._outcome.records += self._open_records
        self._barren = 0
        self._close_transaction()
        return self._now() - began >= REPEATED_COMMIT_S

    def _write_offsets(self, producer: Producer, written: list[OffsetRecord]) -> None:
        settings = self._settings
        entries = [(offset.key(settings.job), offset.encode()) for offset in written]
        if not self._claimed:
            claim = Claim(settings.run, settings.started, self._attempt)
            entries.append((record.claim_key(settings.job, self._outcome.task), claim.encode()))
        for key, value in entries:
            producer.produce_to_partition(settings.offsets_topic, settings.offsets_partition, key, value)

    def _close_transaction(self) -> None:
        self._begun_at = None
        self._open_records = self._open_bytes = 0

    def _close_producer(self) -> None:
        self._close_transaction()
        if self._producer is not None:
            self._producer.close()
            self._producer = None
