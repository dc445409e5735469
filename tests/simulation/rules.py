"""Rules of the protocol that can be switched off by name: the production code with one line changed.

Each rule names the lines that hold it; where they are not there any more, `without` says so instead of changing nothing.
`python -m tests.simulation --without RULE` shows what the simulation then finds; test_simulation.py demands that it finds it.
"""

from __future__ import annotations
import __future__

import contextlib
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eosingest.protocol import (
    control_log,
    data_loss,
    merge_offsets,
    pins,
    scope,
    single_transaction,
    split_sequence,
    verdict,
)
from eosingest.protocol.control_log import ControlLog
from eosingest.protocol.driver import Driver
from eosingest.protocol.job_lease import OwnedJob
from eosingest.protocol.offsets import topic
from eosingest.protocol.offsets.record import RunRecord
from eosingest.protocol.offsets.state import JobState, TaskState
from eosingest.protocol.ownership import Ownership
from eosingest.protocol.plan import Plan
from eosingest.protocol.planning import Planning
from eosingest.protocol.sending import Sending
from eosingest.protocol.split_progress import SplitProgress
from eosingest.protocol.split_sequence import SplitSequence
from eosingest.protocol.takeover import Takeover
from eosingest.protocol.task import Task
from eosingest.protocol.transaction import Transaction
from tests.support.memory_kafka.clients import MemoryAdmin


@dataclass(frozen=True)
class Edit:
    """A function of a class or module, and what stands in it instead."""

    owner: Any
    name: str
    old: str
    new: str


RULES: dict[str, tuple[Edit, ...]] = {
    # ---- the driver ------------------------------------------------------------------------------------------------
    "control-producer-fences-the-earlier-driver": (
        Edit(ControlLog, "fence_earlier_driver", "control_id(prefix, self._job)", "f'{prefix}{id(self)}'"),
    ),
    "unknown-control-commit-is-read-not-repeated": (
        Edit(
            ControlLog,
            "commit",
            "self._resolve(control, failure)",
            "self._producer.init_transactions(); self._commit_entries(entries)",
        ),
    ),
    "a-control-record-is-ours-only-once-it-is-read": (
        Edit(
            ControlLog,
            "_resolve",
            "self.refuse_other_run(self.state, control)",
            "self.mine = control; self.refuse_other_run(self.state)",
        ),
    ),
    "task-ids-are-carried-forward": (
        Edit(
            Takeover,
            "_claim",
            "run=earlier.run + 1, started=settings.started, state=record.CLAIMED",
            "run=earlier.run + 1, started=settings.started, state=record.CLAIMED, tasks_alive=0",
        ),
    ),
    "every-earlier-id-is-fenced": (
        Edit(Takeover, "run", "self._job.fence(max(1, self._log.mine.tasks_alive))", "self._job.fence(1)"),
    ),
    "task-0-is-always-fenced": (
        Edit(Takeover, "run", "max(1, self._log.mine.tasks_alive)", "self._log.mine.tasks_alive"),
    ),
    "an-earlier-prefix-is-fenced": (
        Edit(Takeover, "_take_over_prefix", "self._job.prefixes = (old, settings.prefix)", "pass"),
    ),
    "the-driver-of-an-earlier-prefix-is-fenced": (
        Edit(Takeover, "_take_over_prefix", "self._job.admin.fence([control_id(old, settings.job)]", "dict(ids=[]"),
    ),
    "claim-before-fence": (
        Edit(Takeover, "run", "self._job.fence(max(1, self._log.mine.tasks_alive))", "self._job.fence(1)"),
        Edit(
            Takeover,
            "_claim",
            "self._log.commit(self._job.stamped(claim))",
            "self._job.fence(claim.tasks_alive); self._log.commit(self._job.stamped(claim))",
        ),
    ),
    "fence-before-read": (
        Edit(
            Takeover,
            "run",
            "self._job.fence(max(",
            "self._log.read_back(); self._job.fence(max(",
        ),
        Edit(Takeover, "run", "    self._log.read_back()\n", ""),
    ),
    "concurrent-transactions-is-not-success": (
        Edit(
            MemoryAdmin,
            "_init",
            "self._cluster.init_producer_id(transactional_id, 60.0)",
            "with __import__('contextlib').suppress(BrokerError): self._cluster.init_producer_id(transactional_id, 60.0)",
        ),
    ),
    "read-to-the-high-watermark": (
        Edit(topic, "read_to_high_watermark", "reader.high_watermark()", "reader.last_stable_offset()"),
    ),
    "read-on-where-compaction-took-the-control-record": (
        Edit(topic, "read_to_high_watermark", "while state.control is None and", "while False and"),
    ),
    "read-on-before-a-claim-too": (
        Edit(topic, "read_uncommitted", "while state.newest is None and", "while False and"),
    ),
    "digest-is-pinned": (
        Edit(
            Planning,
            "run",
            "pins.refuse_other_digest(self._log.mine, settings.digest)",
            "pass",
        ),
    ),
    "a-changed-spec-is-proven": (
        Edit(Planning, "_accept_change", "accept_change.refuse_unproven(rows, proof.sums)", "pass"),
    ),
    "a-corrected-item-is-proven": (
        Edit(Planning, "_accept_corrections", "unproven = found.unproven(self._source, proof.sums)", "unproven = {}"),
    ),
    "pins-come-from-a-committed-record": (
        Edit(Driver, "_run_read", "pins.carried_forward(log.mine, log.state.settled)", "log.mine"),
    ),
    "pins-outlive-compaction": (
        Edit(JobState, "_take", "self.settled = _decoded", "later_only = _decoded"),
        Edit(
            JobState,
            "_take_control",
            "self.control = _decoded(ControlRecord, entry)",
            "self.control = _decoded(ControlRecord, entry)\n"
            "    if self.control is None or self.control.state != record.CLAIMED: self.settled = self.control",
        ),
    ),
    "sink-topic-id-is-pinned": (
        Edit(Planning, "_check_life", "if sent and self._sink.topic_id != old.topic_id:", "if False:"),
    ),
    "sink-topic-id-is-checked-at-the-end": (
        Edit(OwnedJob, "lost_topics", "if now is None or now.topic_id != sink.topic_id:", "if False:"),
    ),
    "known-task-id-without-control-record-is-lost-progress": (
        Edit(Takeover, "_claim", "if forgotten and not settings", "if False and not settings"),
        Edit(Planning, "run", "if self._log.mine.forgotten:", "if False:"),
    ),
    "a-claim-from-scratch-hides-no-lost-progress": (
        Edit(Planning, "run", "if self._log.mine.forgotten:", "if False:"),
    ),
    "a-claim-over-that-of-a-lost-topic-says-so": (
        Edit(Takeover, "_claim", "forgotten=seen.forgotten or lost", "forgotten=seen.forgotten"),
    ),
    "lost-progress-is-asked-for-twice": (
        Edit(Takeover, "_claim", "seen = self._log.read_uncommitted()  # a run", "pass  # a run"),
    ),
    "control-record-knows-its-offsets-topic": (
        Edit(
            pins, "refuse_lost_progress", "if of_another_offsets_topic(control.pinned, offsets_topic_id):", "if False:"
        ),
    ),
    "another-offsets-topic-is-no-progress": (  # the claim has to lie in the one that it rests on, and each task looks
        Edit(Takeover, "run", "self._job.refuse_other_offsets_topic()  # the claim", "pass  # the claim"),
        Edit(
            Ownership,
            "_check_offsets_topic",
            "if self._reader.topic_id() != self._settings.offsets_topic_id:",
            "if False:",
        ),
    ),
    "offsets-topic-id-is-checked-at-the-end": (
        Edit(Sending, "_settle", "self._job.refuse_other_offsets_topic()", "pass"),
    ),
    "settling-before-the-last-fence": (
        Edit(
            Sending,
            "_settle",
            "self._job.commit(replace(self._log.mine, state=record.SETTLING))",
            "self._log.mine = replace(self._log.mine, state=record.SETTLING)",
        ),
    ),
    "own-ids-are-fenced-before-the-verdict": (Edit(Sending, "_settle", "self._job.fence(tasks)", "pass"),),
    "verdict-reads-back": (Edit(Sending, "_settle", "self._log.read_back()", "pass"),),
    "exit-6-only-when-the-log-names-another-run": (
        Edit(
            control_log,
            "_kafka_error",
            "if failure.kind is FailureKind.FENCED:",
            "if failure.kind is FailureKind.FENCED: raise FencedError('')\n    if 0:",
        ),
    ),
    "empty-only-when-every-task-read-all": (
        Edit(
            verdict,
            "_all_read",
            "result.error is None and {o.task for o in result.outcomes if o.read_all} == set(range(tasks))",
            "result.error is None",
        ),
    ),
    "an-outcome-of-another-run-is-ignored": (
        Edit(
            Sending,
            "run",
            "found.of_run(self._settings.job, self._log.mine.run, self._log.mine.started)",
            "found",
        ),
    ),
    "a-scope-is-pinned": (
        Edit(scope, "snapshot", "whole(control.scope, state.scope) if", "None if"),
        Edit(scope, "snapshot", "if in_force and snapshot", "if False and snapshot"),
    ),
    "a-new-scope-is-what-done-splits-do-not-cover": (Edit(scope, "snapshot", "state.offsets.values()", "()"),),
    # ---- the task --------------------------------------------------------------------------------------------------
    "look-before-init": (Edit(Ownership, "look", "self._check_newest_run()", "return"),),
    "init-before-read": (
        Edit(
            Task,
            "_start_once",
            "self._transaction.start()  # 1",
            "self._ownership.read_back(); self._transaction.start()",
        ),
        Edit(Task, "_start_once", "self._ownership.read_back()  # 2", "pass"),
    ),
    "run-checked-after-init": (Edit(Ownership, "check", "self._check_run()", "pass"),),
    "run-must-be-running": (  # the control record says so, and the run's own record
        Edit(Ownership, "_check_run", "if control.state != record.RUNNING:", "if False:"),
        Edit(Ownership, "_check_newest_run", "newest.run == settings.run and newest.ended", "False"),
    ),
    "run-records-outlive-compaction": (Edit(Ownership, "_check_run", "self._check_newest_run()", "pass"),),
    "claim-and-end-of-a-run-have-keys-of-their-own": (Edit(RunRecord, "key", "ended=self.ended", "ended=False"),),
    "a-look-sees-newer-claims-without-a-control-record": (Edit(Ownership, "look", "self._check_claim()", "pass"),),
    "the-end-of-a-run-is-written-once": (
        Edit(ControlLog, "_run_entries", "or self.mine.state == record.SETTLING", ""),
    ),
    "newer-claim-stops-an-attempt": (
        Edit(Ownership, "_check_claim", "if claim.attempt > self._attempt:", "if False:"),
    ),
    "offset-records-in-the-same-transaction": (
        Edit(Transaction, "commit", "self._write_offsets(producer, offsets)", "pass"),
        Edit(
            Transaction,
            "commit",
            "producer.commit()",
            "producer.commit(); producer.begin(); self._write_offsets(producer, offsets); producer.flush(); producer.commit()",
        ),
    ),
    "lost-input-ends-the-attempt": (
        Edit(Task, "_recover", "if lost and not self._last_attempt:", "if False:"),
        Edit(Task, "_recover", "if lost:", "if False:"),
    ),
    "new-producer-after-a-slow-commit": (
        Edit(Transaction, "commit", "self._now() - began >= REPEATED_COMMIT_S", "False"),
    ),
    "done-only-on-proof": (
        Edit(
            Task,
            "_consume_all",
            "if item is Signal.END:",
            "if item is Signal.END and self._splits.current is not None: self._splits.current.ended = True\n"
            "        if item is Signal.END:",
        ),
    ),
    "resuming-proves-its-prefix": (
        Edit(
            SplitSequence,
            "_pass_over",
            "if not progress.pass_over(rows):",
            "if not progress.pass_over(rows) and False:",
        ),
    ),
    "a-position-counts-the-records-of-its-source-row": (
        Edit(split_sequence, "_sent_by_position", "return before + again", "return before"),
    ),
    "an-earlier-prefix-is-read-again-behind-its-fence": (
        Edit(Takeover, "_claim", "seen = self._take_over_prefix(earlier)", "self._take_over_prefix(earlier)"),
    ),
    "tasks-of-a-lost-job-are-fenced-too": (Edit(Takeover, "_claim", "self._known_tasks() if forgotten else 0", "0"),),
    "a-changed-item-is-refused": (
        Edit(Plan, "refuse_changes", 'if self.changed and on_change == "error":', "if False:"),
    ),
    "a-fold-has-the-sum-of-its-parts": (
        Edit(merge_offsets, "_joined", "records=sum(part.records for part in parts)", "records=parts[-1].records"),
    ),
    "what-is-folded-is-tombstoned-with-it": (Edit(OwnedJob, "commit_complete", "folded=gone", "folded=()"),),
    "a-gap-is-refused-unless-it-is-accepted": (
        Edit(Planning, "_behind_gaps", "if not self._settings.accept_gap:", "if False:"),
    ),
    "what-is-missing-is-recorded": (Edit(Sending, "_commit_running", "gaps=self._planned.accepted.gaps,", ""),),
    "a-position-behind-a-gap-is-committed-with-running": (
        Edit(Sending, "_commit_running", "offsets=self._planned.offsets,", ""),
    ),
    "what-the-driver-wrote-is-for-any-task": (
        Edit(TaskState, "_is_of_another_task", "task not in (self.task, record.DRIVER)", "task != self.task"),
    ),
    "the-rest-of-a-source-row-is-gone-with-it": (Edit(data_loss, "_moved", "        row_records=None,", "#"),),
    # ---- dead letters ----------------------------------------------------------------------------------------------
    "a-dead-letter-is-in-its-offset-record": (
        Edit(SplitProgress, "take", "self.dead += letters.receipt(rows)", "pass"),
    ),
    "a-dead-letter-is-sent-with-its-offset-record": (
        Edit(Transaction, "send", "producer.produce(dead.topic, letters)", "pass"),
    ),
    "a-dead-letter-is-not-a-record-as-well": (
        Edit(Task, "_send", "self._transaction.send(letters.others(rows),", "self._transaction.send(rows,"),
    ),
    "a-prefix-is-proven-with-its-dead-letters": (
        Edit(
            SplitProgress,
            "pass_over",
            "== self._all_rows()",
            "== (self.checksum, self.metadata)",
        ),
    ),
    "dead-letters-are-carried-forward": (Edit(SplitProgress, "resume", "self.dead = self.committed.dead", "pass"),),
    "a-receipt-is-that-of-the-log-not-of-memory": (
        Edit(
            SplitSequence,
            "catch_up",
            "if progress.committed_rows >= progress.rows:",
            "if progress.committed_rows > progress.rows:",
        ),
    ),
    # ---- all in one transaction ------------------------------------------------------------------------------------
    "all-is-committed-behind-a-proof-of-the-end": (Edit(Task, "_end_all", "if not all_given:", "if False:"),),
    "what-is-half-sent-is-not-sent-as-one": (
        Edit(
            Planning,
            "run",
            "single_transaction.refuse_half_sent(self._log.mine, plan, state.offsets.values())",
            "pass",
        ),
    ),
    "a-run-that-sends-by-parts-says-so": (
        Edit(Sending, "_commit_running", "whole=self._settings.whole)", "whole=True)"),
    ),
    "rows-of-runs-before-the-first-by-parts-are-no-part": (
        Edit(single_transaction, "refuse_half_sent", "offset.run >= first", "offset.run >= control.pinned_since"),
    ),
    "the-first-run-by-parts-counts": (
        Edit(single_transaction, "by_parts_since", "control.by_parts_since or control.run", "control.run"),
    ),
    "one-transaction-for-all-ends-what-was-by-parts": (
        Edit(single_transaction, "by_parts_since", "0 if whole else", "control.by_parts_since if whole else"),
    ),
    "complete-ends-what-was-by-parts": (Edit(OwnedJob, "_completed", ", by_parts_since=0", ""),),
    "nothing-is-sent-where-a-row-cannot-be": (
        Edit(Task, "_consume_all", "while not self._sends_nothing:", "while True:"),
        Edit(Task, "run", "if not self._sends_nothing:", "if True:"),
    ),
    "one-transaction-is-not-ended-by-its-age": (Edit(Task, "_commit_if_due", "if self._settings.whole:", "if False:"),),
    "what-another-attempt-ended-is-read": (Edit(SplitSequence, "_end", "and not progress.uncounted", ""),),
    "rows-only-at-the-attempts-own-position": (Edit(Task, "_send", "if progress.rows != progress.seen:", "if False:"),),
}


@contextlib.contextmanager
def without(rule: str) -> Iterator[None]:
    """Switch a rule off inside the context."""
    originals = [(edit.owner, edit.name, getattr(edit.owner, edit.name)) for edit in RULES[rule]]
    try:
        for owner, name in dict.fromkeys((edit.owner, edit.name) for edit in RULES[rule]):
            edits = [edit for edit in RULES[rule] if (edit.owner, edit.name) == (owner, name)]
            setattr(owner, name, _edited(getattr(owner, name), edits))
        yield
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)


def _edited(function: Any, edits: list[Edit]) -> Any:
    """Return the function with its text changed."""
    source = textwrap.dedent(inspect.getsource(function))
    for edit in edits:
        assert edit.old in source, f"{edit.name}: {edit.old!r} is not there any more"
        source = source.replace(edit.old, edit.new)
    names: dict[str, Any] = {}
    code = compile(source, f"<{function.__qualname__}>", "exec", flags=__future__.annotations.compiler_flag)
    exec(code, function.__globals__, names)
    return names[function.__name__]
