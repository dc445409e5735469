"""What an error of the Spark job means: a lost JVM and a full disk may be better next time, a bug of ours is said as one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from eosingest.spark.job import SparkLauncher


def launcher() -> SparkLauncher:
    return SparkLauncher(cast(Any, SimpleNamespace(log_file=None)))


@pytest.mark.parametrize(
    ("error", "exit_code", "code", "words"),
    [
        (KeyError("no such task"), 1, "bug", "Traceback"),
        (OSError(28, "No space left on device"), 3, "spark-job", "No space left on device"),
        (Py4JNetworkError("lost"), 3, "spark-job", "lost"),
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
