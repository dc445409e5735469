"""Signals to a run under spark-submit: to its process group, as a terminal's Ctrl-C, and to spark-submit's JVM alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from eosingest.spark_submit import application
from tests.support.commands import RUN_TIMEOUT_S, kill_group
from tests.support.harness import Job, wait_for
from tests.support.held_runs import Held
from tests.support.job_checks import assert_exact, assert_positions, committed_state, open_transactions, write_files
from tests.support.processes import assert_gone, processes_below
from tests.support.spark_clusters import spark_home


def to_all(process: subprocess.Popen[str], number: int) -> None:
    kill_group(process, number)


def to_spark_submit(process: subprocess.Popen[str], number: int) -> None:
    process.send_signal(number)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("send", "number", "exit_code"),
    [
        (to_spark_submit, signal.SIGTERM, 143),
        (to_all, signal.SIGINT, 130),
        (to_spark_submit, signal.SIGINT, 130),
        (to_spark_submit, signal.SIGHUP, 129),
    ],
)
def test_a_signal_in_mid_transaction(
    job: Job,
    tmp_path: Path,
    send: Callable[[subprocess.Popen[str], int], None],
    number: signal.Signals,
    exit_code: int,
) -> None:
    """Breaks when spark-submit's JVM ends at once: Spark is gone under the run, and its answer finds no reader."""
    (tmp_path / "home").mkdir()
    home = spark_home(tmp_path / "home")
    write_files(job, files=3, rows=8_000)
    held = Held(job, "task-before-commit=sleep:30@2")
    process = subprocess.Popen(
        [str(home / "bin" / "spark-submit"), application.__file__, "run", str(job.spec), "--output", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYSPARK_DRIVER_PYTHON": sys.executable, "LC_ALL": "C.UTF-8", **held.env},
        cwd=job.folder,
        start_new_session=True,
    )
    try:
        wait_for(lambda: held.reached() or process.poll() is not None, timeout_s=300)
        assert process.poll() is None, process.communicate()
        assert open_transactions(job), "the signal is to come in mid-transaction"
        below = processes_below(process.pid)
        send(process, number)
        stdout, stderr = process.communicate(timeout=RUN_TIMEOUT_S)
    finally:
        kill_group(process)

    assert process.returncode == exit_code, (stdout, stderr)
    (line,) = [line for line in stdout.splitlines() if line.startswith('{"version"')]
    answer = json.loads(line)
    assert (answer["exit_code"], [error["code"] for error in answer["errors"]]) == (exit_code, ["interrupted"])
    assert "Traceback" not in stdout
    assert_gone(below)
    assert open_transactions(job) == []
    control = committed_state(job).control
    assert control is not None and control.state == "failed"
    assert 0 < len(job.records()) < 24_000
    assert_positions(job)
    assert job.run().exit_code == 0
    assert_exact(job)
