"""Runs that end early without a kill -9 of everything: a corrupt row, a signal, the JVM or a Python worker gone.

Input that ends proves nothing: in each of these the Python side sees a normal end of its input, in mid-split.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable

import pytest

from tests.support.builders import split_id
from tests.support.commands import finish, kill_group
from tests.support.harness import BOTH_INPUTS, COLD, Job, topic_exists, wait_for
from tests.support.held_runs import start_held
from tests.support.job_checks import (
    Line,
    assert_exact,
    assert_positions,
    committed_state,
    high_watermarks,
    open_transactions,
    source_lines,
    write_files,
)
from tests.support.processes import assert_gone, jvm_of, processes_below, signal_all, workers_of

MID_SPLIT = "task-before-commit=sleep:30@2"  # 2000 records are committed, 2000 more are in the open transaction


@pytest.mark.slow
def test_corrupt_rows_late_in_a_split_and_first_in_another(job: Job) -> None:
    """Breaks when a bad row ends the job, when its split is taken as ended there or as empty, or when it is named wrongly."""
    write_files(job, files=3, rows=8_000)
    whole = source_lines(job)
    late = next(line for line in whole if line.file.endswith("part-1.jsonl") and line.row == 1_300 and line.start)
    first = next(line for line in whole if line.file.endswith("part-2.jsonl") and line.row == 1 and line.start)
    for bad in (late, first):
        _corrupt(job, bad)
    ends = {(bad.file, bad.start): bad.row for bad in (late, first)}
    expected = [line for line in whole if line.row < ends.get((line.file, line.start), line.row + 1)]

    for number in (1, 2):
        done = job.run()

        assert (done.exit_code, done.codes) == (7, ["corrupt-row"]), done
        message = done.envelope["errors"][0]["message"]
        for bad in (late, first):
            assert f"{bad.file}, split at byte {bad.start}, row {bad.row}: " in message
        assert "xxxxx" in message
        assert done.data["run"] == number
        assert done.data["records_sent"] == (len(expected) if number == 1 else 0)
        assert "Traceback" not in done.stderr
        assert_exact(job, expected)
        offsets = committed_state(job).offsets
        assert [split for split, offset in offsets.items() if not offset.done] == [split_id(late.file, late.start)]
        assert split_id(first.file, first.start) not in offsets
        assert open_transactions(job) == []


def _corrupt(job: Job, line: Line) -> None:
    """Make a line unreadable and leave its length, so that the cuts stay where they are."""
    path = job.folder / line.file
    text = path.read_text()
    begin = text.index(f'{{"n": {line.number},')
    end = text.index("\n", begin)
    path.write_text(text[:begin] + "x" * (end - begin) + text[end:])


def _sigint(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)


def _sigterm(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)


def _terminal_ctrl_c(process: subprocess.Popen[str]) -> None:
    kill_group(process, signal.SIGINT)


def _sigterm_to_all(process: subprocess.Popen[str]) -> None:
    """As `timeout`, systemd and CI systems do: the JVM ends with us."""
    signal_all([process.pid, *(child.pid for child in processes_below(process.pid))], signal.SIGTERM)


def _terminal_closed(process: subprocess.Popen[str]) -> None:
    """The JVM ends with us."""
    kill_group(process, signal.SIGHUP)


@pytest.mark.slow_cases(
    "_sigint-130-rows",
    "_sigterm-143-lines",
    "_sigterm-143-rows",
    "_sigterm_to_all-143-lines",
    "_sigterm_to_all-143-rows",
    "_terminal_closed-129-rows",
    "_terminal_ctrl_c-130-rows",
)
@pytest.mark.in_turns("one signal each")
@BOTH_INPUTS
@pytest.mark.parametrize(
    ("send", "exit_code"),
    [(_sigint, 130), (_sigterm, 143), (_terminal_ctrl_c, 130), (_sigterm_to_all, 143), (_terminal_closed, 129)],
)
def test_signal_in_mid_split(job: Job, send: Callable[[subprocess.Popen[str]], None], exit_code: int) -> None:
    """Breaks when the driver waits for a task, leaves its transaction open (P8), or takes a cancelled task's split as done."""
    write_files(job, files=3, rows=8_000)
    process = start_held(job, MID_SPLIT, env=COLD)
    below = processes_below(process.pid)
    assert open_transactions(job), "the signal is to come in mid-transaction"

    send(process)
    began = time.monotonic()
    done = finish(process)

    assert time.monotonic() - began < 10
    assert (done.exit_code, done.codes) == (exit_code, ["interrupted"]), done
    assert "Traceback" not in done.stderr
    assert open_transactions(job) == []
    assert_gone(below)
    before = len(job.records())
    assert 0 < before < 24_000
    assert_positions(job)
    if send in (_terminal_ctrl_c, _sigterm_to_all):  # the positions are right in all four: two reruns are proof enough
        again = job.run()
        assert again.exit_code == 0, again
        assert again.data["records_sent"] == 24_000 - before
        assert_exact(job)


@pytest.mark.slow
def test_signal_before_anything_is_sent(job: Job) -> None:
    """Breaks when a signal while Spark starts is lost (pyspark puts its own handler in place), or is answered late."""
    write_files(job, files=1, rows=1_000)
    process = start_held(job, "driver-before-running=sleep:3", env=COLD)
    kill_group(process, signal.SIGINT)
    began = time.monotonic()
    done = finish(process)
    assert time.monotonic() - began < 10
    assert (done.exit_code, done.codes) == (130, ["interrupted"]), done
    assert job.records() == []
    assert open_transactions(job) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_behind_the_result(job: Job, number: signal.Signals) -> None:
    """Breaks when a run that has told its success dies of a signal, or complains of it: Python takes a while to end."""
    write_files(job, files=1, rows=10)
    assert job.run().exit_code == 0
    process = job.popen()
    assert process.stdout is not None
    assert process.stderr is not None
    assert '"complete"' in process.stdout.readline()
    while process.poll() is None:
        process.send_signal(number)
        time.sleep(0.001)
    assert process.returncode == 0
    assert "Traceback" not in process.stderr.read()


# Rows that take the JVM some milliseconds each, in small batches: the Python worker waits for input nearly all the time.
_TRICKLE = "CAST(n + 0 * aggregate(sequence(0L, 20000L + n % 2), 0L, (sum, x) -> sum + x) AS STRING)"


def _start_trickling(job: Job, rows: int) -> subprocess.Popen[str]:
    """Start a run whose rows come one by one, and return once some of them are committed."""
    write_files(job, files=2, rows=rows)
    job.edit_spec('value = "CAST(n AS STRING)"', f'value = "{_TRICKLE}"')
    job.edit_spec("conf = { ", 'conf = { "spark.sql.execution.arrow.maxRecordsPerBatch" = "100", ')
    job.edit_spec("max_records = 2000", "max_records = 300")
    process = job.popen()
    wait_for(lambda: topic_exists(job.servers, job.name) and sum(high_watermarks(job.servers, job.name)) > 600)
    return process


@pytest.mark.slow
def test_signal_while_rows_trickle(job: Job) -> None:
    """Breaks when the normal end that a cancelled job gives to its workers is taken for the end of the split."""
    process = _start_trickling(job, rows=8_000)
    process.send_signal(signal.SIGTERM)
    done = finish(process)
    assert done.exit_code == 143, done
    assert 0 < len(job.records()) < 16_000
    assert_positions(job)
    assert open_transactions(job) == []


@pytest.mark.slow
def test_jvm_killed_while_rows_trickle(job: Job) -> None:
    """Breaks when the end of the input that a dying JVM gives is taken for the end of the split."""
    process = _start_trickling(job, rows=3_000)
    below = processes_below(process.pid)

    os.kill(jvm_of(process), signal.SIGKILL)
    done = finish(process, timeout_s=60)

    assert (done.exit_code, done.codes) == (3, ["jvm-ended"]), done
    assert "Traceback" not in done.stderr
    assert open_transactions(job) == []
    assert_gone(below)
    assert_positions(job)
    again = job.run()
    assert again.exit_code == 0, again
    assert_exact(job)


@pytest.mark.slow
def test_expression_that_fails_late_in_a_split(job: Job) -> None:
    """Breaks when the input's end that a failing row leaves behind in the worker is taken for the end of the split."""
    write_files(job, files=1, rows=20_000)
    job.edit_spec("local[2]", "local[1]")
    job.edit_spec('key = "CAST(n % 100 AS STRING)"', 'key = "CAST(100 DIV (n - 15000) AS STRING)"')
    for _ in range(2):
        done = job.run()
        assert (done.exit_code, done.codes) == (7, ["bad-data"]), done
        assert "DIVIDE_BY_ZERO" in done.envelope["errors"][0]["message"]
        assert "Traceback" not in done.text
        assert len(job.records()) < 15_000  # none, where the job was over before the first commit
        assert_positions(job)


@pytest.mark.slow
@BOTH_INPUTS
def test_python_workers_killed_in_mid_split(job: Job) -> None:
    """Breaks when Spark's retry of the task starts from what was in flight instead of what was committed."""
    write_files(job, files=3, rows=8_000)
    process = start_held(job, MID_SPLIT, env=COLD)
    workers = workers_of(process)
    assert workers

    signal_all(workers, signal.SIGKILL)
    done = finish(process)

    assert done.exit_code == 0, done
    assert max(claim.attempt for claim in committed_state(job).claims.values()) >= 2, "no task was tried again"
    assert_exact(job)
    assert_positions(job)
    assert open_transactions(job) == []


@pytest.mark.slow
@BOTH_INPUTS
def test_workers_that_always_die(job: Job) -> None:
    """Breaks when tries without end are made, or when it is called bad data or a bug, and not a run to be repeated."""
    write_files(job, files=1, rows=3_000)

    done = job.run(env={"EOSINGEST_FAILPOINTS": "task-before-commit=kill"})  # each new worker dies at its first commit

    assert (done.exit_code, done.codes) == (3, ["spark-job"]), done
    assert "Traceback" not in done.text
    assert job.records() == []
    assert open_transactions(job) == []
    assert job.run().exit_code == 0
    assert_exact(job)
