"""What an error of the Spark job means: a lost JVM and a full disk may be better next time, a bug of ours is said as one."""

from __future__ import annotations

import json
import threading
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from eosingest.errors import TemporaryError
from eosingest.spark.job import SparkLauncher
from tests.support.builders import outcome

OTHER_PYTHON = (
    "An error occurred while calling o1.\n: org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
    "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version:"
    " 3.12 than that in driver: 3.11, PySpark cannot run with different minor versions."
)
NO_PYTHON = (
    "An error occurred while calling o1.\n: org.apache.spark.SparkException: Job aborted\nCaused by: java.io.IOException:"
    ' Cannot run program "/no/python3": error=2, No such file or directory\n\tat java.lang.ProcessBuilder'
)


def launcher() -> SparkLauncher:
    return SparkLauncher(cast(Any, SimpleNamespace(log_file=None)))


@pytest.mark.parametrize(
    ("error", "exit_code", "code", "words"),
    [
        (KeyError("no such task"), 1, "bug", "Traceback"),
        (OSError(28, "No space left on device"), 3, "spark-job", "No space left on device"),
        (Py4JNetworkError("lost"), 3, "spark-job", "lost"),
        (Py4JError(OTHER_PYTHON), 7, "executor-environment", "the executors run Python 3.12, and this run Python 3.11"),
        (
            Py4JError(NO_PYTHON),
            7,
            "executor-environment",
            "cannot run the Python /no/python3: No such file or directory",
        ),
        (Py4JError(NO_PYTHON.replace("error=2,", "error=11,")), 3, "spark-job", "Cannot run program"),
        (Py4JError("ModuleNotFoundError: No module named 'numpy'"), 7, "executor-environment", "no module numpy"),
    ],
)
def test_a_job_that_cannot_be_built(
    error: Exception, exit_code: int, code: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when a bug of ours is reported as something that another run may mend."""

    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(SparkLauncher, "_job", fails)
    made = launcher()
    made._run(cast(Any, None))
    assert made._error is not None
    assert (made._error.exit_code, made._error.code) == (exit_code, code)
    assert words in made._error.message


class EndsWhenWaitedFor:
    """A JVM whose end is known a moment after py4j met it."""

    returncode: int | None = None

    def wait(self, timeout: float) -> None:
        self.returncode = 137

    def poll(self) -> int | None:
        return self.returncode


@pytest.mark.parametrize(
    "error",
    [
        KeyError("what py4j makes of it"),
        Py4JNetworkError("Answer from Java side is empty"),
        Py4JError("org.apache.spark.sql.functions.col does not exist in the JVM"),
    ],
)
def test_a_jvm_that_is_gone_is_said(error: Exception) -> None:
    made = launcher()
    made._spark = SimpleNamespace(process=EndsWhenWaitedFor())
    explained = made._explain(error)
    assert (explained.exit_code, explained.code) == (3, "jvm-ended")
    assert "137" in explained.message


def test_a_jvm_of_spark_submit_is_not_ours_to_look_after() -> None:
    """Breaks when a bad expression under spark-submit is exit 3, since the thread that explains it dies."""
    made = SparkLauncher(cast(Any, SimpleNamespace(log_file=None)))
    pending = SimpleNamespace(item=SimpleNamespace(name="a"))
    made._spark, made._plan = SimpleNamespace(process=None), cast(Any, SimpleNamespace(pending_items=[pending]))
    explained = made._explain(Py4JError("java: [CAST_INVALID_INPUT] The value 'x' cannot be cast"))
    assert (explained.exit_code, explained.code) == (7, "bad-data")


def test_a_job_whose_executors_are_gone_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a run waits without end for executors that were all lost."""
    cancelled: list[bool] = []
    monkeypatch.setattr(SparkLauncher, "cancel", lambda _: cancelled.append(True))
    made = launcher()
    ended = threading.Event()
    made._thread = threading.Thread(target=ended.wait, daemon=True)
    made._thread.start()
    made._losses = cast(Any, SimpleNamespace(error=None))
    assert made.poll(0.01) is None
    made._losses = cast(Any, SimpleNamespace(error=TemporaryError("no executor", code="no-executors")))
    result = made.poll(0.01)
    ended.set()
    assert cancelled == [True]
    assert result is not None
    assert result.error is not None
    assert result.error.code == "no-executors"


def test_an_outcome_of_another_run_hides_none_of_this_one() -> None:
    """Breaks when the launcher keeps one outcome of each task, before the driver has dropped those of other runs."""
    made = SparkLauncher(cast(Any, SimpleNamespace(log_file=None, master="spark://h:1")))
    own, foreign = outcome(run=2), outcome(run=1)
    made._outcomes = SimpleNamespace(value=[json.dumps(each.to_json()) for each in (own, foreign)])
    made._thread = threading.Thread(target=lambda: None)
    made._thread.start()
    result = made.poll(5)
    assert result is not None
    assert result.of_run(own.job, own.run, own.started).outcomes == [own]


@pytest.mark.parametrize(
    ("master", "error", "begun"),
    [("local[2]", None, 1), ("local[2]", TemporaryError("lost"), 0), ("spark://h:1", None, 0)],
)
def test_spark_stops_while_the_verdict_is_found(master: str, error: TemporaryError | None, begun: int) -> None:
    """Breaks when a run waits for Spark's end behind its verdict, or when tasks are torn that a failed job may still have."""
    made = SparkLauncher(cast(Any, SimpleNamespace(log_file=None, master=master)))
    stops: list[int] = []
    made._spark = SimpleNamespace(begin_to_stop=lambda: stops.append(1))
    made._error = error
    made._thread = threading.Thread(target=time.sleep, args=(0.2,))
    made._thread.start()
    assert made.poll(0.01) is None
    assert stops == []
    assert made.poll(5) is not None
    assert len(stops) == begun
