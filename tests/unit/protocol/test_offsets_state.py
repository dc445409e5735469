"""A job's state folded from its log: the latest record wins, tombstones erase, other jobs are not there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eosingest.errors import FatalError
from eosingest.kafka.ports import LogRecord
from eosingest.protocol.offsets import record
from eosingest.protocol.offsets.record import (
    CLAIMED,
    COMPLETE,
    FAILED,
    RUNNING,
    Claim,
)
from eosingest.protocol.offsets.state import JobState, TaskState
from tests.support.builders import control_record, offset_record, place, places, split_id


def control(run: int, state: str, job: str = "job") -> LogRecord:
    return LogRecord(0, record.control_key(job), control_record(run, state, tasks_alive=2).encode())


def settled(run: int, state: str) -> LogRecord:
    return control(run, state)._replace(key=record.settled_key("job"))


def claim(task: int, attempt: int, job: str = "job") -> LogRecord:
    return LogRecord(0, record.claim_key(job, task), Claim(1, "s", attempt).encode())


def offset(
    position: int, *, sequence: int, file: str = "f", start: int = 0, done: bool = False, job: str = "job", at: int = 0
) -> LogRecord:
    written = offset_record(file, start, rows=position, done=done, sequence=sequence)
    return LogRecord(at, written.key(job), written.encode())


def tombstone(entry: LogRecord) -> LogRecord:
    return entry._replace(value=None)


def folded(*entries: LogRecord, job: str = "job") -> JobState:
    state = JobState(job)
    state.fold(entries)
    return state


def test_nothing() -> None:
    assert folded() == JobState("job")
    assert not folded().is_done(split_id("f", 0))
    assert folded().records_total == 0


def test_the_latest_of_each_key_wins() -> None:
    state = folded(
        control(1, RUNNING),
        claim(0, 5),
        claim(1, 6),
        offset(10, sequence=0),
        offset(3, sequence=0, start=100),
        claim(0, 9),
        offset(20, sequence=1),
        control(1, COMPLETE),
    )
    assert state.control is not None
    assert state.control.state == COMPLETE
    assert {task: found.attempt for task, found in state.claims.items()} == {0: 9, 1: 6}
    assert {place(split): found.position for split, found in state.offsets.items()} == {("f", 0): 20, ("f", 100): 3}
    assert state.records_total == 23


def test_folding_in_pieces_is_folding_at_once() -> None:
    entries = [control(1, RUNNING), offset(1, sequence=0), claim(0, 1), offset(2, sequence=1), control(2, CLAIMED)]
    state = JobState("job")
    for entry in entries:
        state.fold(iter([entry]))
    assert state == folded(*entries)


def test_done() -> None:
    state = folded(offset(10, sequence=0), offset(3, sequence=0, start=100, done=True))
    assert not state.is_done(split_id("f", 0))
    assert state.is_done(split_id("f", 100))
    assert not state.is_done(("g", 100))


def test_tombstones_erase() -> None:
    state = folded(
        control(1, COMPLETE),
        claim(0, 5),
        offset(10, sequence=7, done=True),
        tombstone(offset(0, sequence=0)),
        tombstone(claim(0, 0)),
        tombstone(control(1, COMPLETE)),
        tombstone(offset(0, sequence=0, file="never there")),
        tombstone(claim(8, 0)),
    )
    assert state == JobState("job", newest=state.newest)


def test_after_a_tombstone_a_split_begins_anew() -> None:
    state = folded(offset(10, sequence=7), tombstone(offset(0, sequence=0)), offset(1, sequence=0))
    assert state.offsets[split_id("f", 0)].position == 1


def test_a_sequence_that_goes_back_is_an_error() -> None:
    with pytest.raises(FatalError) as caught:
        folded(offset(10, sequence=7), offset(5, sequence=6, at=1234))
    assert (caught.value.exit_code, caught.value.code) == (7, "sequence-went-back")
    for word in (split_id("f", 0), "7", "6", "1234"):
        assert word in caught.value.message


def test_a_newer_run_may_begin_anew() -> None:
    """Breaks a reader that slept over `--from-scratch` and a compaction, which took the tombstone in between (simulation)."""
    again = offset(5, sequence=0)
    assert again.value is not None
    again = again._replace(value=again.value.replace(b'"run":1', b'"run":2'))
    assert folded(offset(10, sequence=7), again).offsets[split_id("f", 0)].sequence == 0


def test_sequences_of_different_splits_have_nothing_to_do_with_each_other() -> None:
    folded(offset(10, sequence=7), offset(5, sequence=6, start=100), offset(5, sequence=0, file="g"))


def test_gaps_in_a_sequence_are_what_compaction_leaves() -> None:
    assert folded(offset(10, sequence=7), offset(90, sequence=70)).offsets[split_id("f", 0)].sequence == 70


@pytest.mark.parametrize("other", ["jo", "job2", "job.1", "j", "xjob", "JOB"])
def test_records_of_other_jobs_are_not_there(other: str) -> None:
    entries = [control(1, RUNNING, other), claim(0, 1, other), offset(9, sequence=9, job=other)]
    assert folded(*entries) == JobState("job")
    assert folded(offset(1, sequence=5), *entries).offsets[split_id("f", 0)].sequence == 5
    assert folded(*entries, job=other).records_total == 9


@pytest.mark.parametrize("key", [b"", b"job", b"{}", b"\xff\xfe", b'["job"]', b'["job2",{"file":1'])
def test_keys_that_are_not_ours_are_passed_over(key: bytes) -> None:
    assert folded(LogRecord(0, key, b"whatever")) == JobState("job")


def test_settled_is_the_latest_control_record_that_is_more_than_a_claim() -> None:
    """Also when compaction has left nothing but claims of the control records."""
    state = folded(settled(1, RUNNING), settled(1, FAILED), control(3, CLAIMED))
    assert state.control is not None
    assert (state.control.run, state.control.state) == (3, CLAIMED)
    assert state.settled is not None
    assert (state.settled.run, state.settled.state) == (1, FAILED)


def test_settled_is_none_while_there_were_only_claims() -> None:
    assert folded(control(1, CLAIMED), control(2, CLAIMED)).settled is None


def test_settled_is_not_control() -> None:
    """A record under one key says nothing of the other: they are committed together, or one is a claim."""
    state = folded(control(1, RUNNING), settled(1, RUNNING), control(2, CLAIMED))
    assert state.control is not None and state.control.run == 2
    assert state.settled is not None and state.settled.run == 1


def test_two_states_share_nothing() -> None:
    first, second = JobState("job"), JobState("job")
    first.fold([offset(1, sequence=0), claim(0, 1)])
    assert second == JobState("job")


def test_a_same_sequence_is_taken() -> None:
    """A retried commit cannot write a record twice, but reading a prefix again (a later `end`) must not fail."""
    state = folded(offset(10, sequence=7), offset(10, sequence=7))
    assert state.offsets[split_id("f", 0)] == replace(state.offsets[split_id("f", 0)], position=10, sequence=7)


def test_newest_is_the_highest_run_in_whatever_order() -> None:
    runs = [control_record(run) for run in (7, 6)]
    state = JobState("job")
    state.fold(LogRecord(at, record.control_key("job"), entry.encode()) for at, entry in enumerate(runs))
    assert state.newest is not None
    assert state.control is not None
    assert (state.newest.run, state.control.run) == (7, 6)


def test_a_task_keeps_its_own_offset_records_and_of_others_who_wrote_last() -> None:
    """Breaks when each of an executor's workers holds the records of a million splits that it never reads."""
    state = TaskState("job", run=1, task=0)
    theirs = [written(task, start) for task in (1, 2) for start in (0, 100)]
    state.fold([*theirs, written(0, 200), written(3, 300, run=0)])
    assert set(places(state.offsets)) == {("f", 200), ("f", 300)}, (
        "those of an earlier run are what this one goes on from"
    )
    assert [state.elsewhere(split_id("f", start)) for start in (0, 100, 200, 300, 400)] == [2, 2, None, None, None]


def written(task: int, start: int, run: int = 1) -> LogRecord:
    record = offset_record("f", start, rows=7, done=True, run=run, task=task)
    return LogRecord(0, record.key("job"), record.encode())
