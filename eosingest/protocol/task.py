"""Sends a Spark task's rows in transactions: the core of the protocol (docs/protocol.md, The task).

    Arrow batches ─▶ rows by split ─▶ begin ─▶ produce … ─▶ flush ─▶ offset records last ─▶ commit ─▶ (again)
                                        ▲                                                     │
                        0 look · 1 init_transactions · 2 read · 3 check ◀── any failure ──────┘

The steps at every start and restart of a producer, in this sequence, and the modules that take them:

    0. ownership.py      Is the run's epoch still current? Checked before init: a zombie that wakes up should fence none.
    1. transaction.py    `init_transactions` on the task's transactional id: earlier producers are fenced.
    2. ownership.py      Read the job's records written since the plan, to the high watermark.
    3. ownership.py      Still this run, and no newer attempt's claim on this task? If not: stop, having written nothing.
    4. transaction.py    begin, produce, flush, offset records last, commit; repeat. An attempt's first transaction claims.

This module has the loop over the input and the recovery from a failure; split_sequence.py says which rows are left to
send, and retry_policy.py when to stop retrying.

Why it is correct:
- End of input does not imply end of split: Python sees a normal end also when the JVM failed or the job was cancelled. A
  split has ended when rows of the next one arrive. The outcome reports the last one, and the driver accepts that only from
  tasks that Spark calls successful. An input that reads its source itself knows where splits end: it returns a SplitEnd.
- After any KafkaFailure the task closes its producer and begins again at step 0. The offset record shows whether a commit
  with an unknown outcome succeeded. No row is sent again from memory, and Spark's input cannot be rewound: where rows in
  flight are lost, the attempt ends (AttemptLostError), and Spark's retry starts over.
- Where one transaction has everything, it is committed only after the proof that the input has returned all rows (Signal.ALL),
  and not at all where a row can neither be sent nor become a dead letter, or where the transaction exceeds its limits.
- An expected failure is returned, as an Outcome. Only AttemptLostError and bugs are raised.

Not handled here: that the planned splits are those Spark reads (spark/scan.py), and what a successful job proves (verdict.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

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
from eosingest.kafka.ports import FailureKind, KafkaFailure
from eosingest.protocol.dead_letters import Letters, with_sizes
from eosingest.protocol.ownership import Ownership
from eosingest.protocol.partition_affinity import in_their_partition
from eosingest.protocol.rate_limit import Pace
from eosingest.protocol.retry_policy import Restarts
from eosingest.protocol.row_rejection import Unsendable
from eosingest.protocol.single_transaction import too_large, too_long
from eosingest.protocol.split_progress import SplitProgress
from eosingest.protocol.split_sequence import SplitSequence
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
from eosingest.protocol.transaction import Transaction
from eosingest.records.runs import runs


class AttemptLostError(EosingestError):
    """Rows in flight are lost and the input cannot be rewound: Spark's next attempt starts at the committed positions."""

    default_code = "attempt-lost"


_NAP_S = 1.0  # between two checks of the clock under a rate limit
_T = TypeVar("_T")
# Errors that end a task with an outcome. After an AttemptLostError Spark tries the task again.
_ENDS = (ChangedError, FatalError, FencedError, IncompleteError, TemporaryError)


class Task:
    """One attempt of one task: create one for each attempt, and call `run` once."""

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
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`attempt` is Spark's unique task attempt id, `attempt_number` counts this task's attempts from 0; clocks in s, ms."""
        self._settings = settings
        self._last_attempt = attempt_number + 1 >= settings.max_attempts
        self._outcome = Outcome(number, settings.job, settings.run, settings.started)
        self._unsendable = Unsendable(settings, now_ms, self._outcome.bad_rows)
        self._ownership = Ownership(settings, number, attempt, kafka.reader())
        self._transaction = Transaction(settings, number, kafka, now)
        self._splits = SplitSequence(settings.splits, self._ownership.committed, settings.wording)
        dead = settings.dead_letters
        written = settings.topic if dead is None else f"{settings.topic} and {dead.topic}"
        self._restarts = Restarts(number, settings.run, written, settings.offsets_topic)
        self._pace = Pace(settings.rate_limit, now)
        self._sleep = sleep
        self._claimed = False

    # ---- one attempt -----------------------------------------------------------------------------------------------

    def run(self, inputs: Inputs) -> Outcome:
        """Send the input's rows after the committed positions. Raises AttemptLostError, for Spark to retry."""
        try:
            self._start()
            inputs.begin(self._ownership.committed)
            self._consume_all(inputs)
            if not self._sends_nothing:
                if self._splits.dirty():
                    self._commit()
                fail_point("task-at-end")
                self._report_end()
            if self._outcome.bad_rows:
                self._outcome.exit_code, self._outcome.code = EXIT_FATAL, BAD_ROWS
        except _ENDS as error:
            self._outcome.end_with(error)
        finally:
            self._transaction.close()
            self._ownership.close()
        self._outcome.restarts = self._restarts.total
        return self._outcome

    def _consume_all(self, inputs: Inputs) -> None:
        all_given = False
        while not self._sends_nothing:
            item = self._next(inputs)
            if item is Signal.END:
                if self._settings.whole:
                    self._end_all(inputs, all_given)
                return
            all_given = all_given or item is Signal.ALL
            if isinstance(item, Batch):
                self._consume(item)
            elif isinstance(item, SplitEnd):
                self._splits.end(item)
            self._commit_if_due()

    @property
    def _sends_nothing(self) -> bool:
        """Whether nothing may be committed: one transaction has everything, and a row of it cannot be sent."""
        return self._settings.whole and bool(self._outcome.bad_rows)

    def _end_all(self, inputs: Inputs, all_given: bool) -> None:
        """Mark every split as ended, if every item still is as planned.

        Raises AttemptLostError without proof that the input gave all rows: the JVM failed.
        """
        if not all_given:
            raise AttemptLostError("the input ended before all rows were read")
        self._of_source(inputs.confirm)
        self._splits.end_all()

    def _next(self, inputs: Inputs) -> Batch | SplitEnd | Signal:
        """Return the input's next item."""
        return self._of_source(lambda: inputs.get(self._transaction.wait_s))

    def _of_source(self, read: Callable[[], _T]) -> _T:
        """Return what `read` returns. After an OSError Spark retries, unless this is the last attempt."""
        try:
            return read()
        except OSError as error:
            if self._last_attempt:
                raise TemporaryError(f"the source could not be read: {error}", code="source-unreadable") from error
            raise AttemptLostError(f"the source could not be read: {error}") from error

    def _report_end(self) -> None:
        """Report that all input is committed. This ends the last split only if Spark calls the task successful."""
        self._outcome.read_all = True
        last = self._splits.current
        if last is not None and not last.failed and not last.done:
            self._outcome.last_split = (last.planned.id, last.seen)

    # ---- steps 0 to 3, and again after a failure -------------------------------------------------------------------

    def _start(self) -> None:
        """Take steps 0 to 3; retry after a KafkaFailure as long as retry_policy.py allows. Raises one of _ENDS."""
        while True:
            try:
                self._start_once()
                return
            except KafkaFailure as failure:
                self._transaction.close()
                self._restarts.count(failure)

    def _start_once(self) -> None:
        self._ownership.look()  # 0
        fail_point("task-before-init")
        self._transaction.start()  # 1
        fail_point("task-after-init")
        self._ownership.read_back()  # 2
        self._ownership.check()  # 3
        fail_point("task-after-check")
        if self._splits.catch_up():
            self._restarts.committed()

    def _recover(self, failure: KafkaFailure) -> None:
        """After a failure in a transaction: make a new producer, and read the committed offset records.

        Raises AttemptLostError where rows in flight are lost; one of _ENDS on the last attempt or if `whole` timed out.
        """
        timed_out = self._transaction.timed_out
        once = self._outcome.transactions > 0 or timed_out  # fenced once, not again and again
        self._transaction.close()
        self._restarts.count(failure)
        self._start()
        lost = self._splits.in_flight()
        if lost and timed_out and self._settings.whole:
            raise too_long(self._settings)
        if lost and not self._last_attempt:
            raise AttemptLostError(f"{failure}; records in flight were not committed")
        if lost and once and failure.kind is FailureKind.FENCED:
            raise IncompleteError(
                f"a transaction of task {self._outcome.task} was not committed, and Spark makes no further attempt: {failure}",
                code="attempt-lost",
                hint="committed records are kept, nothing was sent twice; run again: it resumes there",
            )
        if lost:
            raise self._restarts.given_up(failure)

    # ---- rows ------------------------------------------------------------------------------------------------------

    def _consume(self, batch: Batch) -> None:
        for start, end in runs(batch.splits):
            rows = batch.slice(start, end)
            progress = self._splits.enter(int(rows.splits[0]), rows.first_row)
            left = in_their_partition(
                self._splits.beyond(progress, rows), progress.planned.split.source_partition, self._settings
            )
            if len(left.splits):
                self._send_all(progress, left)

    def _send_all(self, progress: SplitProgress, rows: Batch) -> None:
        """Send rows of one split piece by piece: as records or as dead letters."""
        rows, letters = self._unsendable.told_apart(progress, rows)
        at = 0
        for piece in self._transaction.pieces(with_sizes(rows, letters)):
            self._send(progress, piece, letters.between(at, at + len(piece.splits)))
            at += len(piece.splits)

    # ---- step 4 ----------------------------------------------------------------------------------------------------

    def _send(self, progress: SplitProgress, rows: Batch, letters: Letters) -> None:
        """Send rows of one split, or their dead letters, in a transaction that is committed when it is full or old enough."""
        size = int(rows.sizes.sum())
        self._keep_pace()
        self._make_room(len(rows.splits), size)
        if progress.rows != progress.seen:  # the log is ahead of this attempt: another one has written
            raise AttemptLostError(f"{progress.planned.label} is ahead of this attempt")
        # Before produce: if that fails, rows that may have been sent count as in flight.
        progress.take(rows, letters)
        try:
            self._transaction.send(letters.others(rows), letters.records, size)
        except KafkaFailure as failure:
            self._recover(failure)
            return
        self._pace.sent(size)
        self._commit_if_due()

    def _make_room(self, rows: int, size: int) -> None:
        """Commit the open transaction where these rows exceed its limits. Raises FatalError where it has everything."""
        if self._transaction.has_room_for(rows, size):
            return
        if self._settings.whole:
            raise too_large(self._settings)
        self._commit()

    def _keep_pace(self) -> None:
        """Wait as long as the rate limit requires; commit an open transaction meanwhile when it is due."""
        while (left := self._pace.wait_s) > 0:
            self._sleep(min(left, self._transaction.wait_s, _NAP_S))
            self._commit_if_due()

    def _commit_if_due(self) -> None:
        if not self._transaction.due:
            return
        if self._settings.whole:
            raise too_long(self._settings)
        self._commit()

    def _commit(self) -> None:
        """Commit everything handed over, with the offset records of every split it touches."""
        try:
            slow = self._commit_once()
        except KafkaFailure as failure:
            self._recover(failure)  # raises where the commit did not go through and rows are lost
            if self._splits.dirty():
                self._commit()  # only done marks are left, which need no rows from memory
            return
        if slow:
            self._transaction.close()
            self._start()

    def _commit_once(self) -> bool:
        """Commit, and record the committed state; return whether it was slow: a new producer must follow."""
        dirty, records, letters = self._splits.dirty(), self._transaction.records, self._transaction.letters
        written = [progress.offset_record(self._settings.run, self._outcome.task) for progress in dirty]
        entries = [(offset.key(self._settings.job), offset.encode()) for offset in written]
        if not self._claimed:
            entries.append(self._ownership.claim())
        slow = self._transaction.commit(entries)
        for progress, offset in zip(dirty, written, strict=True):
            progress.committed = offset
        self._claimed = True
        self._outcome.transactions += 1
        self._outcome.records += records
        self._outcome.dead_letters += letters
        self._restarts.committed()
        return slow
