"""All in one transaction (`transaction.boundary = "job"`): when a task commits, and what it refuses.

Kafka is as in test_task.py.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from eosingest.errors import ChangedError
from eosingest.kafka.ports import FailureKind, KafkaFailure
from eosingest.protocol import single_transaction
from eosingest.protocol.offsets.record import ControlRecord, OffsetRecord
from eosingest.protocol.pins import carried_forward
from eosingest.protocol.task import AttemptLostError
from eosingest.protocol.task_contract import Outcome, Signal, SplitEnd
from eosingest.protocol.verdict import outcome_errors
from tests.support.builders import (
    WORDING,
    control_record,
    fingerprint,
    offset_record,
    plan,
    planned_item,
    planned_split,
    source_file,
)
from tests.unit.protocol.test_task import ATTEMPT, DEAD, UNCERTAIN, A, B, C, World, later, rows, run, through, values

ALL = Signal.ALL


@pytest.fixture
def world() -> World:
    return World()


def refused(outcome: Outcome) -> str:
    assert outcome.exit_code == 7, outcome
    return outcome.code


def test_one_transaction_for_all_and_every_split_is_done_with_it(world: World) -> None:
    """Also the one of which no row came, and the last one."""
    outcome = run(world, rows(A, 0, 700), rows(A, 700, 900), rows(B, 0, 3), ALL, whole=True, max_records=1000)
    assert world.transactions == [[*values(A, 0, 900), *values(B, 0, 3)]]
    assert world.offsets() == {0: (900, True), 100: (3, True), 200: (0, True)}
    assert (outcome.exit_code, outcome.transactions, outcome.records, outcome.last_split) == (0, 1, 903, None)


def test_an_end_without_the_proof_commits_nothing(world: World) -> None:
    """Python sees a normal end also where the JVM failed."""
    with pytest.raises(AttemptLostError, match="before all rows"):
        run(world, rows(A, 0, 5), rows(B, 0, 3), whole=True)
    assert "commit" not in world.calls and world.sent == []


def test_a_file_that_changed_before_the_commit_keeps_all_from_being_sent(world: World) -> None:
    """A later check could not take the records back. A source that does not answer is tried again."""
    world.will("confirm", ChangedError("f: changed", code="changed-while-read", item="f"))
    outcome = run(world, rows(A, 0, 5), ALL, whole=True)
    assert (outcome.exit_code, outcome.code, outcome.item) == (12, "changed-while-read", "f")
    assert world.calls.count("confirm") == 1 and "commit" not in world.calls
    unreachable = World()
    unreachable.will("confirm", OSError("no answer"))
    with pytest.raises(AttemptLostError, match="no answer"):
        run(unreachable, rows(A, 0, 5), ALL, whole=True)
    assert "commit" not in unreachable.calls
    by_parts = World()
    run(by_parts, rows(A, 0, 5), rows(B, 0, 1))
    assert "confirm" not in by_parts.calls and "commit" in by_parts.calls, "the driver checks, before it marks splits"


def test_no_row_at_all(world: World) -> None:
    outcome = run(world, ALL, whole=True)
    assert world.offsets() == {0: (0, True), 100: (0, True), 200: (0, True)}
    assert (outcome.exit_code, world.transactions) == (0, [[]])


@pytest.mark.parametrize("size", [10, 600])
def test_more_than_one_transaction_may_have_is_refused(world: World, size: int) -> None:
    limits = {"max_records": 3, "max_bytes": 1000}
    batches = [rows(A, 0, 2, size=size // 2), rows(A, 2, 4, size=size)]
    outcome = run(world, *batches, ALL, whole=True, **limits)
    assert refused(outcome) == "too-large-for-one-transaction"
    assert "3 records or 1,000 bytes" in outcome.message and "nothing was sent" in outcome.hint
    assert "commit" not in world.calls


def test_as_much_as_one_transaction_may_have(world: World) -> None:
    run(world, rows(A, 0, 2), rows(A, 2, 3, size=980), ALL, whole=True, max_records=3, max_bytes=1000)
    assert world.transactions == [values(A, 0, 3)]


def test_it_may_be_open_for_most_of_its_timeout(world: World) -> None:
    """Elsewhere a transaction is committed at half of its timeout."""
    run(world, rows(A, 0, 2), later(world, 8.9), rows(B, 0, 1), ALL, whole=True)
    assert len(world.transactions) == 1
    another = World()
    outcome = run(another, rows(A, 0, 2), later(another, 9.1), ALL, whole=True)
    assert refused(outcome) == "too-large-for-one-transaction"
    assert "10 s" in outcome.message and "transaction.max.timeout.ms" in outcome.hint
    assert "commit" not in another.calls


def test_a_commit_behind_its_timeout_is_told_as_such(world: World) -> None:
    """The coordinator has fenced the producer: as often as it is tried."""

    def late(_: object) -> None:
        world.time += 10
        raise UNCERTAIN

    world.will("commit", late)
    assert refused(run(world, rows(A, 0, 2), ALL, whole=True)) == "too-large-for-one-transaction"


def test_a_row_that_cannot_be_sent_keeps_all_from_being_sent(world: World) -> None:
    outcome = run(world, rows(A, 0, 5), rows(B, 0, 3, corrupt=(1,)), rows(C, 0, 1), ALL, whole=True)
    assert (outcome.exit_code, outcome.code, outcome.read_all, outcome.last_split) == (7, "bad-rows", False, None)
    assert "commit" not in world.calls and world.sent == []
    (error,) = outcome_errors([outcome], WORDING)
    assert error.hint.startswith("nothing was sent, since everything goes in one transaction; ")


def test_more_dead_letters_than_are_allowed(world: World) -> None:
    """None of them is written: the hint must not say so."""
    few = replace(DEAD, allowed=1, left=1)
    outcome = run(world, rows(A, 0, 3, corrupt=(1, 2)), ALL, whole=True, dead_letters=few)
    assert "commit" not in world.calls and world.letters == []
    (error,) = outcome_errors([outcome], WORDING)
    assert "nothing was sent" in error.hint and "raise it and run again" in error.hint and "written" not in error.hint


def test_dead_letters_go_in_the_same_transaction(world: World) -> None:
    run(world, rows(A, 0, 5), rows(B, 0, 3, corrupt=(1,)), ALL, whole=True, dead_letters=DEAD)
    assert len(world.transactions) == 1 and len(world.sent) == 7 and len(world.letters) == 1
    assert world.offset(B).dead.count == 1 and world.offset(B).done


def test_a_commit_whose_answer_is_lost_is_not_made_again(world: World) -> None:
    world.will("commit", through(UNCERTAIN))
    outcome = run(world, rows(A, 0, 5), ALL, whole=True)
    assert (outcome.exit_code, world.sent) == (0, values(A, 0, 5))


def test_what_failed_is_sent_by_another_attempt_and_what_was_committed_is_passed_over(world: World) -> None:
    world.will("flush", KafkaFailure(FailureKind.UNCERTAIN, "_TIMED_OUT", "no answer"))
    with pytest.raises(AttemptLostError):
        run(world, rows(A, 0, 5), ALL, whole=True)
    assert world.sent == []
    for attempt in (1, 2):
        run(world, rows(A, 0, 5), rows(B, 0, 2), ALL, whole=True, attempt=ATTEMPT + attempt, attempt_number=attempt)
    assert world.transactions == [[*values(A, 0, 5), *values(B, 0, 2)]]


def test_splits_that_are_done_need_not_come_again(world: World) -> None:
    """An input that reads the source itself gives nothing of them."""
    run(world, rows(A, 0, 5), SplitEnd(A, 5), ALL, whole=True)
    outcome = run(world, ALL, whole=True, attempt=ATTEMPT + 1, attempt_number=1)
    assert (outcome.exit_code, len(world.transactions)) == (0, 1)


def test_the_rate_limit_does_not_cut_it(world: World) -> None:
    outcome = run(world, rows(A, 0, 100, size=10), rows(B, 0, 1), ALL, whole=True, rate_limit=100.0)
    assert refused(outcome) == "too-large-for-one-transaction" and "commit" not in world.calls
    outcome = run(World(), rows(A, 0, 100, size=10), rows(B, 0, 1), ALL, whole=True, rate_limit=150.0)
    assert (outcome.exit_code, outcome.transactions) == (0, 1)


def left(*sent: OffsetRecord) -> tuple[object, list[OffsetRecord]]:
    split = planned_split("a", now=fingerprint())
    return plan(planned_item(source_file("a"), [split])), list(sent)


def test_what_was_sent_in_part_is_not_sent_at_once() -> None:
    control = control_record(3, pin_open=True, pinned_since=1, by_parts_since=2)
    pending, sent = left(offset_record("b", rows=1, run=2))
    with pytest.raises(ChangedError, match="1 split is left") as refusal:
        single_transaction.refuse_half_sent(control, pending, sent)
    assert refusal.value.code == "half-sent" and '"limits"' in refusal.value.hint
    for no_run_by_parts in (0, 3):  # or none that has sent a row
        single_transaction.refuse_half_sent(replace(control, by_parts_since=no_run_by_parts), pending, sent)
    single_transaction.refuse_half_sent(control, pending, left(offset_record("b", rows=0, run=2))[1])
    single_transaction.refuse_half_sent(control, plan(), sent)  # nothing is left


@pytest.mark.parametrize(
    ("since", "whole", "expected"), [(0, False, 5), (3, False, 3), (0, True, 0), (3, True, 0), (5, False, 5)]
)
def test_which_run_is_the_first_by_parts(since: int, whole: bool, expected: int) -> None:
    assert single_transaction.by_parts_since(control_record(5, by_parts_since=since), whole=whole) == expected


def test_a_control_record_keeps_the_first_run_by_parts() -> None:
    made = control_record(3, by_parts_since=2)
    assert ControlRecord.decode(made.encode()) == made
    assert carried_forward(control_record(4), made).by_parts_since == 2
