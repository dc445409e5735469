"""What a failure of Spark means for an audit: what may be better next time, what will not, and what is a bug of ours."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from eosingest.audit.session import SparkAuditor
from eosingest.errors import IncompleteError, TemporaryError

OTHER_PYTHON = (
    "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11, PySpark cannot run"
    " with different minor versions."
)
WORKER = "Traceback (most recent call last):\n  File x\neosingest.kafka.ports.KafkaFailure: "


@pytest.mark.parametrize(
    ("text", "exit_code", "code", "words"),
    [
        (
            WORKER + "read-deadline: orders-1 was read to offset 5 of 9, and no further",
            5,
            "kafka-uncertain",
            "offset 5 of 9",
        ),
        (WORKER + "_ALL_BROKERS_DOWN: 1/1 brokers are down", 5, "kafka-uncertain", "1/1 brokers are down"),
        (WORKER + "TOPIC_AUTHORIZATION_FAILED: not for you", 7, "kafka-refused", "not for you"),
        (OTHER_PYTHON, 7, "executor-environment", "the executors run Python 3.12, and this run Python 3.11"),
        ("java: [CAST_INVALID_INPUT] The value 'x' cannot be cast", 7, "bad-data", "CAST_INVALID_INPUT"),
        ("Traceback (most recent call last):\nKeyError: 5", 1, "bug", "KeyError: 5"),
        ("An error occurred while calling o1.\n: org.apache.spark.SparkException: lost", 5, "spark-job", "lost"),
    ],
)
def test_what_a_failure_means(text: str, exit_code: int, code: str, words: str) -> None:
    auditor = SparkAuditor(cast(Any, SimpleNamespace(log_file=None)))
    error = auditor._explain(text)
    assert (error.exit_code, error.code) == (exit_code, code)
    assert words in error.message


def test_a_jvm_that_is_gone_is_said() -> None:
    auditor = SparkAuditor(cast(Any, SimpleNamespace(log_file="the.log")))
    process = SimpleNamespace(returncode=137, wait=lambda timeout: 137, poll=lambda: 137)
    auditor._spark = SimpleNamespace(process=process)
    error = auditor._explain("Answer from Java side is empty")
    assert (error.exit_code, error.code) == (5, "jvm-ended")
    assert "137" in error.message
    assert "the.log" in error.hint


def test_a_spark_that_did_not_start_leaves_no_run_incomplete() -> None:
    """Breaks when `verify` ends with exit 3 and "nothing was sent; run again"."""

    def did_not_start() -> None:
        raise IncompleteError("Spark's JVM ended while it started (status -9)", code="jvm-ended", hint="run again")

    auditor = SparkAuditor(cast(Any, SimpleNamespace(log_file=None, check=lambda: None)))
    with pytest.raises(TemporaryError) as raised:
        auditor._in_thread(did_not_start)
    assert (raised.value.exit_code, raised.value.code) == (5, "jvm-ended")
    assert raised.value.hint == "the topic was not judged; verify again"


def test_a_jvm_of_spark_submit_is_not_ours_to_look_after() -> None:
    auditor = SparkAuditor(cast(Any, SimpleNamespace(log_file=None)))
    auditor._spark = SimpleNamespace(process=None)
    assert auditor._explain("java: [CAST_INVALID_INPUT] The value 'x' cannot be cast").code == "bad-data"
