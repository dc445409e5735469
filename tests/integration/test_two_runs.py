"""Two runs of one job: at the same time, one frozen while the other works, and one after the other with another spec."""

from __future__ import annotations

import signal
import subprocess
from itertools import pairwise

import pytest

from tests.support.commands import finish, kill_group
from tests.support.harness import BOTH_INPUTS, COLD, Job, wait_for
from tests.support.held_runs import run_killed_at, start_held
from tests.support.job_checks import (
    SPLIT_BYTES,
    assert_exact,
    assert_positions,
    committed_state,
    high_watermarks,
    open_transactions,
    source_lines,
    write_files,
)
from tests.support.processes import processes_below, signal_all, stopped, workers_of


@pytest.mark.slow_cases("rows")
@BOTH_INPUTS
def test_started_together(job: Job) -> None:
    """Breaks when a run does not look for its successor before it fences, sends, or gives its verdict."""
    write_files(job, files=3, rows=12_000)
    first, second = job.popen(), job.popen()
    done = [finish(first), finish(second)]

    last = committed_state(job).control
    assert last is not None and last.state == "complete"
    exits = sorted(one.exit_code for one in done)
    assert exits in ([0, 6], [0, 0]), done
    winner = max(done, key=lambda one: one.data.get("records_sent", 0))
    assert winner.exit_code == 0
    if exits == [0, 0]:
        assert min(one.data["records_sent"] for one in done) == 0, done
    else:
        loser = next(one for one in done if one.exit_code == 6)
        assert loser.codes == ["fenced"]
        # Run 2 where the loser had claimed the job before; run 1 where it was fenced before its claim.
        assert f"run {last.run} on" in loser.envelope["errors"][0]["message"]
    assert_exact(job)
    assert_positions(job)
    assert open_transactions(job) == []


@pytest.mark.slow
@BOTH_INPUTS
def test_frozen_in_mid_transaction_and_woken_after_its_successor(job: Job) -> None:
    """P7. Breaks when a successor does not fence the earlier task ids, or when a woken run writes before it looks."""
    write_files(job, files=3, rows=12_000)
    job.edit_spec('timeout = "10s"', 'timeout = "60s"')  # only fencing ends the frozen transactions in time
    first = job.popen(env={"EOSINGEST_FAILPOINTS": "task-before-offsets=stop@2"})
    wait_for(lambda: len(stopped(workers_of(first))) == 2)
    everybody = [first.pid, *(child.pid for child in processes_below(first.pid))]
    signal_all(everybody, signal.SIGSTOP)
    job.edit_spec("local[2]", "local[1]")  # the second run has no task 1 of its own
    try:
        assert {name.rpartition(".")[2] for name in open_transactions(job)} == {"0", "1"}
        second = job.run()
        after_second = high_watermarks(job.servers, job.name)
        assert second.exit_code == 0, second
        assert "taking over from run 1" in second.stderr
        assert_exact(job)
    finally:
        signal_all(everybody, signal.SIGCONT)
    done = finish(first)

    assert (done.exit_code, done.codes) == (6, ["fenced"]), done
    assert "do not retry" in done.envelope["errors"][0]["hint"]
    assert high_watermarks(job.servers, job.name) == after_second, "the woken run wrote to the topic"
    state = committed_state(job)
    assert state.control is not None
    assert (state.control.run, state.control.state) == (2, "complete")
    assert open_transactions(job) == []


@pytest.mark.slow
def test_if_running(job: Job) -> None:
    """Breaks when the lock is not held for the whole run, is not looked at, or outlives a kill -9."""
    write_files(job, files=1, rows=100)
    first = start_held(job, "driver-after-claim=sleep:60", env=COLD)
    failed = job.run("run", "--if-running", "fail")
    skipped = job.run("run", "--if-running", "skip")
    assert first.poll() is None
    _kill(first)

    assert (failed.exit_code, failed.codes) == (11, ["active-run"]), failed
    assert (skipped.exit_code, skipped.data["skipped"], skipped.data["records_sent"]) == (0, True, 0), skipped
    assert committed_state(job).control.run == 1  # type: ignore[union-attr]
    assert job.run("run", "--if-running", "fail").exit_code == 0
    assert_exact(job)


@pytest.mark.slow
@BOTH_INPUTS
def test_another_master_in_the_middle_of_a_job(job: Job) -> None:
    """Breaks when a split's progress hangs on the task that sent it, or when only today's task ids are fenced."""
    write_files(job, files=3, rows=24_000)
    masters = ["local[2]", "local[1]", "local[4]"]
    for master, following in pairwise(masters):
        run_killed_at(job, "task-after-commit")  # early: each of the four tasks of the last run finds something to send
        job.edit_spec(f'master = "{master}"', f'master = "{following}"')

    done = job.run()

    assert done.exit_code == 0, done
    assert {offset.task for offset in committed_state(job).offsets.values()} >= {2, 3}
    assert_exact(job)
    assert_positions(job)


@pytest.mark.slow
@BOTH_INPUTS
def test_another_split_size(job: Job) -> None:
    """Breaks when a half-done job is cut anew, or when pieces of the new size of done files count as pending."""
    write_files(job, files=3, rows=12_000)
    run_killed_at(job, "task-after-commit@3")
    job.edit_spec('split_size = "64KiB"', 'split_size = "48KiB"')

    done = job.run()

    assert done.exit_code == 0, done
    assert "source.split_size: 65536 bytes" in done.stderr
    assert {offset.bounds["length"] for offset in committed_state(job).offsets.values()} >= {SPLIT_BYTES}
    assert_exact(job)
    assert_positions(job)

    job.edit_spec('split_size = "48KiB"', 'split_size = "100KiB"')
    before = high_watermarks(job.servers, job.name)
    done = job.run()
    assert (done.exit_code, done.data["records_sent"], done.data["splits_planned"]) == (0, 0, 0), done
    assert high_watermarks(job.servers, job.name) == before

    earlier = source_lines(job)
    job.write_numbers("part-9.jsonl", range(90_000, 95_000))
    done = job.run()
    assert (done.exit_code, done.data["records_sent"]) == (0, 5_000), done
    assert "split_size" not in done.stderr
    new = [line for line in source_lines(job, 100 << 10) if line.number >= 90_000]
    assert_exact(job, [*earlier, *new])


def _kill(process: subprocess.Popen[str]) -> None:
    kill_group(process)
    process.communicate(timeout=30)
