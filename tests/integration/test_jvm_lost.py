"""A JVM that is killed while Spark starts, or when the job is over: nothing is wrong with the spec, and little is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.integration.harness import Job, assert_quiet, finish
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
