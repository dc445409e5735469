"""All in one transaction (`transaction.boundary = "job"`), on a real broker: a reader sees all of a run, or nothing of it."""

from __future__ import annotations

import os
import re
import signal
import time

import pytest

from tests.support.commands import finish
from tests.support.harness import BOTH_INPUTS, COLD, Job, assert_done, assert_refused, assert_verified, wait_for
from tests.support.held_runs import run_killed_at, start_held
from tests.support.job_checks import (
    assert_exact,
    committed_state,
    high_watermarks,
    open_transactions,
    write_files,
)
from tests.support.processes import jvm_of

_FILES, _ROWS = 3, 4_000
_ALL = _FILES * _ROWS


@pytest.fixture
def whole(job: Job) -> Job:
    """A job of three files, several splits and two partitions of Spark, with limits that the other boundary would feel."""
    write_files(job, files=_FILES, rows=_ROWS)
    job.edit_spec("[transaction]", '[transaction]\nboundary = "job"')
    limits(job, _ALL)
    return job


def limits(job: Job, most: int) -> None:
    """Let a transaction have so many records at most."""
    job.spec.write_text(re.sub(r"max_records = \d+", f"max_records = {most}", job.spec.read_text()))


def seen(job: Job) -> int:
    """How many records a read_committed reader finds, once no transaction is open."""
    wait_for(lambda: not open_transactions(job), timeout_s=40)
    return len(job.numbers())


@pytest.mark.slow_cases("lines")
@BOTH_INPUTS
def test_all_at_once_and_nothing_by_a_rerun(whole: Job) -> None:
    assert_done(whole.run(), records_sent=_ALL)
    state = committed_state(whole)
    assert {offset.task for offset in state.offsets.values()} == {0} and all(o.done for o in state.offsets.values())
    assert {offset.sequence for offset in state.offsets.values()} == {0}, "each split has been written of once"
    assert_exact(whole)
    ends = high_watermarks(whole.servers, whole.name)
    assert_done(whole.run(), records_sent=0)
    assert high_watermarks(whole.servers, whole.name) == ends
    assert_verified(whole)


@pytest.mark.slow
@BOTH_INPUTS
@pytest.mark.parametrize("point", ["task-after-produce@3", "task-before-offsets", "task-before-commit"])
def test_killed_before_its_commit_nothing_is_there(whole: Job, point: str) -> None:
    run_killed_at(whole, point)
    assert seen(whole) == 0
    assert_done(whole.run(), records_sent=_ALL)
    assert_exact(whole)
    assert_verified(whole)


@pytest.mark.in_turns("one end of a run each")
@pytest.mark.slow
@BOTH_INPUTS
@pytest.mark.parametrize("point", ["task-after-commit", "task-at-end", "driver-before-verdict"])
def test_killed_behind_its_commit_everything_is_there(whole: Job, point: str) -> None:
    """What came to the source since goes in a transaction of its own."""
    run_killed_at(whole, point)
    assert seen(whole) == _ALL
    whole.write_numbers("part-8.jsonl", range(_ALL, _ALL + 10))
    assert_done(whole.run(), records_sent=10)
    assert_exact(whole)
    assert_verified(whole)


@pytest.mark.in_turns("one end of a run each")
def test_a_jvm_that_dies_in_the_middle_is_no_end(whole: Job) -> None:
    """Its task in Python sees a normal end of its input."""
    process = start_held(whole, "task-after-produce=sleep:6@2", env=COLD)
    os.kill(jvm_of(process), signal.SIGKILL)
    done = finish(process)
    assert done.exit_code == 3, done
    time.sleep(8)  # a worker that outlives the JVM wakes up, and finds no proof
    assert seen(whole) == 0
    assert_done(whole.run(), records_sent=_ALL)
    assert_exact(whole)


@pytest.mark.in_turns("one end of a run each")
@pytest.mark.slow_cases("rows")
@BOTH_INPUTS
def test_a_row_that_cannot_be_sent_keeps_all_from_being_sent(whole: Job) -> None:
    """With dead letters it goes there, in the one transaction."""
    limits(whole, _ALL + 1)
    bad = whole.data / "part-1.jsonl"
    good = bad.read_bytes()
    is_lines = 'format = "text"' in whole.spec.read_text()
    line, code = (b"7" * 1_100_000, "record-too-large") if is_lines else (b"7 {", "corrupt-row")
    bad.write_bytes(good + line + b"\n")
    done = whole.run()
    assert_refused(done, 7, code, "part-1.jsonl", "nothing was sent, since everything goes in one")
    assert seen(whole) == 0
    whole.edit_spec(
        "[source]", f'on_error = {{ topic = "{whole.dead}", max = 1, create = {{ partitions = 1 }} }}\n[source]'
    )
    assert_done(whole.run(), records_sent=_ALL)
    whole.bad = {7: code}
    assert len(whole.letters()) == 1 and seen(whole) == _ALL
    assert_verified(whole)


@pytest.mark.in_turns("one end of a run each")
@pytest.mark.slow_cases("rows")
@BOTH_INPUTS
def test_above_its_limits_it_is_refused(whole: Job) -> None:
    limits(whole, _ALL - 1)
    assert_refused(whole.run(), 7, "too-large-for-one-transaction", f"{_ALL - 1:,} records", "nothing was sent")
    assert seen(whole) == 0
    limits(whole, _ALL)
    assert_done(whole.run(), records_sent=_ALL)


@pytest.mark.slow
def test_one_that_takes_longer_than_its_transaction_may_be_open_is_refused(whole: Job) -> None:
    whole.edit_spec("[sink]", '[sink]\nrate_limit = "4KiB"')
    assert_refused(whole.run(), 7, "too-large-for-one-transaction", "time out (10 s)", "transaction.max.timeout.ms")
    assert seen(whole) == 0


@pytest.mark.in_turns("one end of a run each")
def test_what_was_sent_in_part_is_not_sent_at_once(whole: Job) -> None:
    whole.edit_spec('boundary = "job"', 'boundary = "limits"')
    limits(whole, 1_000)
    run_killed_at(whole, "task-before-commit@3")
    sent = seen(whole)
    assert 0 < sent < _ALL
    whole.edit_spec('boundary = "limits"', 'boundary = "job"')
    assert_refused(whole.run(), 12, "half-sent", 'boundary = "limits"', "--from-scratch")
    assert seen(whole) == sent
    assert "half-sent" in whole.run("plan").codes
    whole.edit_spec('boundary = "job"', 'boundary = "limits"')
    assert_done(whole.run())
    assert_exact(whole)
    whole.edit_spec('boundary = "limits"', 'boundary = "job"')
    whole.write_numbers("part-8.jsonl", range(_ALL, _ALL + 10))
    assert_done(whole.run(), records_sent=10)
    assert_exact(whole)
    assert_verified(whole)


@pytest.mark.slow
@BOTH_INPUTS
def test_a_run_that_wakes_up_behind_its_successor_sends_nothing(whole: Job) -> None:
    process = start_held(whole, "task-before-commit=sleep:8")
    assert_done(whole.run(), records_sent=_ALL)
    assert finish(process).codes == ["fenced"]
    assert_exact(whole)
    assert_verified(whole)


@pytest.mark.in_turns("one end of a run each")
@pytest.mark.slow_cases("lines")
@BOTH_INPUTS
def test_a_file_that_changes_while_it_is_sent_keeps_all_from_being_sent(whole: Job) -> None:
    """It is checked after the last row, before the commit: no later check could take the records back."""
    process = start_held(whole, "task-after-produce=sleep:4@2")
    with (whole.data / "part-0.jsonl").open("a") as file:
        file.write('{"n": 77}\n')
    done = finish(process)
    assert_refused(done, 12, "changed-while-read", "part-0.jsonl", "nothing of it was sent; run again")
    assert done.codes == ["changed-while-read"] and seen(whole) == 0
