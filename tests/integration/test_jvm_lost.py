"""A JVM that is killed while Spark starts, or when the job is over: nothing is wrong with the spec, and little is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import Done, finish
from tests.support.harness import COLD, Job, assert_done, assert_quiet
from tests.support.held_runs import start_held
from tests.support.job_checks import assert_exact, write_files
from tests.support.processes import jvm_of

pytestmark = pytest.mark.slow

KILL_AND_START = """
import sys
from pathlib import Path
from eosingest.errors import EosingestError
from eosingest.spark import session

context = session.SparkContext

def killed(conf, gateway):
    gateway.proc.kill()
    return context(conf=conf, gateway=gateway)

session.SparkContext = killed
try:
    session.start(job="job", master="local[1,4]", conf={}, of_source={}, log_file=Path(sys.argv[1]))
except EosingestError as error:
    print(error.exit_code, error.code)
"""


def test_jvm_killed_while_spark_starts(tmp_path: Path) -> None:
    """Breaks when the end of the JVM counts as a fault of the spec (exit 7: "a retry will not help")."""
    command = [sys.executable, "-c", KILL_AND_START, str(tmp_path / "spark.log")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "3 jvm-ended", done


def test_jvm_killed_when_the_job_is_over(job: Job) -> None:
    """Breaks when pyspark's accumulator server says with a traceback that it has lost the JVM."""
    write_files(job, files=1, rows=2_000)
    process = start_held(job, "driver-before-verdict=sleep:3", env=COLD)
    os.kill(jvm_of(process), signal.SIGKILL)

    done = finish(process)

    assert done.exit_code == 0, done
    assert_quiet(done)
    assert_exact(job)


KILLED_WHEN_IT_IS_ASKED = """
import sys
from eosingest.cli.main import main
from eosingest.spark import python_scan, session
from pyspark import SparkContext

module, step = sys.argv.pop().split(".")
ask = getattr(globals()[module], step)

def killed(*given):
    process = SparkContext._gateway.proc
    process.kill()
    process.wait()
    return ask(*given)

setattr(globals()[module], step, killed)
main()
"""

KILLED_AT_A_CALL = """
import sys
import threading
from py4j.java_gateway import GatewayClient
from eosingest.cli.main import main
from eosingest.spark import session

last, calls, jvm = int(sys.argv.pop()), 0, None
launch, send = session.launch_gateway, GatewayClient.send_command

def launched(*arguments, **keywords):
    global jvm
    gateway = launch(*arguments, **keywords)
    jvm = gateway.proc
    return gateway

def killed(client, command, *others, **keywords):
    global calls
    if jvm is not None and threading.current_thread().name.startswith("spark-"):
        calls += 1
        if calls == last:
            jvm.kill()
    return send(client, command, *others, **keywords)

session.launch_gateway = launched
GatewayClient.send_command = killed
try:
    main()
finally:
    print("calls of the JVM:", calls, file=sys.stderr)
"""


def run_with(script: str, job: Job, argument: str) -> Done:
    command = [sys.executable, "-c", script, "run", str(job.spec), "--output", "json", argument]
    return finish(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=job.folder))


@pytest.mark.parametrize("step", ["session.SparkSession", "python_scan.map_in_arrow"])
def test_jvm_killed_before_a_step(job: Job, step: str) -> None:
    """Breaks when py4j's own errors, a bare ConnectionRefusedError among them, are taken for a bug, or the spec for wrong."""
    write_files(job, files=1, rows=2_000)
    done = run_with(KILLED_WHEN_IT_IS_ASKED, job, step)

    assert (done.exit_code, done.codes) == (3, ["jvm-ended"]), done
    assert_quiet(done)
    assert_done(job.run(), 2_000)


def test_jvm_killed_at_its_calls(job: Job) -> None:
    """Breaks where a step says its own of a lost JVM: kills it at calls all over the run, from the start to the job."""
    write_files(job, files=1, rows=2_000)
    done = run_with(KILLED_AT_A_CALL, job, "0")
    assert_done(done, 2_000)
    calls = int(done.stderr.rpartition("calls of the JVM:")[2])
    job.write_numbers("part-9.jsonl", range(90_000, 91_000))
    for call in range(1, calls - calls // 12, calls // 6):  # at the very last ones the job is over, and its exit code 0
        done = run_with(KILLED_AT_A_CALL, job, str(call))
        assert (done.exit_code, done.codes) == (3, ["jvm-ended"]), (call, done)
        assert_quiet(done)
    assert_done(job.run(), 1_000)
