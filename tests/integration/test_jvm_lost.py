"""A JVM that is killed while Spark starts, or when the job is over: nothing is wrong with the spec, and little is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.integration.harness import Job, assert_done, assert_quiet, finish
from tests.integration.witness import assert_exact, jvm_of, start_held, write_files

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
    session.start(job="job", master="local[1,4]", conf={}, split_size=1 << 20, log_file=Path(sys.argv[1]))
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
    process = start_held(job, "driver-before-verdict=sleep:3")
    os.kill(jvm_of(process), signal.SIGKILL)

    done = finish(process)

    assert done.exit_code == 0, done
    assert_quiet(done)
    assert_exact(job)


KILLED_WHEN_IT_IS_ASKED = """
from eosingest.cli.main import main
from eosingest.spark import job

ask = job.{step}

def killed(spark, *others):
    process = spark.sparkContext._gateway.proc
    process.kill()
    process.wait()
    return ask(spark, *others)

job.{step} = killed
main()
"""


def test_jvm_killed_while_the_plan_is_made(job: Job) -> None:
    """Breaks when py4j's own errors, a bare ConnectionRefusedError among them, are taken for a bug, or the spec for wrong."""
    write_files(job, files=1, rows=2_000)
    script = KILLED_WHEN_IT_IS_ASKED.format(step="record_frame")
    command = [sys.executable, "-c", script, "run", str(job.spec), "--output", "json"]
    done = finish(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=job.folder))

    assert (done.exit_code, done.codes) == (3, ["jvm-ended"]), done
    assert_quiet(done)
    assert_done(job.run(), 2_000)


def test_jvm_killed_before_the_job_is_started(job: Job) -> None:
    """Breaks when the run does not give its verdict: it has said `running`, and no task has come to anything."""
    write_files(job, files=1, rows=2_000)
    process = start_held(job, "driver-before-running=sleep:3")
    os.kill(jvm_of(process), signal.SIGKILL)

    done = finish(process)

    assert (done.exit_code, done.codes) == (3, ["jvm-ended"]), done
    assert_quiet(done)
    assert_done(job.run(), 2_000)
    assert_exact(job)
