"""Converts Spark's failures to our errors: Spark did not start, its JVM ended, a job failed.

Session, launcher, preview and audit raise these errors. causes.py finds the reason in Spark's text; executor_errors.py
recognises a Python on executors that cannot run our tasks.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from eosingest.errors import ChangedError, EosingestError, FatalError, IncompleteError, TemporaryError
from eosingest.host.java import find_java, java_major_version
from eosingest.protocol import pins
from eosingest.spark import causes, cluster
from eosingest.spark.executor_errors import environment_error

# Raised by calls of the JVM; py4j raises ConnectionError when it has no connection left.
FROM_THE_JVM = (Py4JError, PySparkException, ConnectionError)
_END_KNOWN_S = 2.0  # how long to wait for the exit status of a JVM whose py4j connection was lost
_TOO_NEW = "getSubject is not supported"  # by Java 23 and newer; the Hadoop in pyspark 4.0 needs it (HADOOP-19212)
_NO_SOCKET = "Connection refused"  # pyspark's text when the JVM no longer serves a job's result
_OF_A_READER = re.compile(r"\.ReaderError: (\{.*\})$", re.MULTILINE)
_OF_READERS: dict[str, type[EosingestError]] = {
    known.__name__: known for known in (ChangedError, FatalError, IncompleteError, TemporaryError)
}
_OF_EXPRESSIONS = (
    f"An expression is pinned in the middle of a job: with another one take a new job name{pins.from_scratch_hint()}"
)
_FROM_A_WORKER = "Traceback (most recent call last)"


def not_started(master: str, log_file: Path | None, error: Exception, process: Any) -> EosingestError:
    """Make the error for a Spark that did not start. If a signal ended the JVM (out of memory, say), a retry may help."""
    log = log_hint(log_file)
    with contextlib.suppress(subprocess.TimeoutExpired):
        if process is not None and process.wait(_END_KNOWN_S) < 0:
            return IncompleteError(
                f"Spark's JVM ended while it started (status {process.returncode})",
                code="jvm-ended",
                hint=f"nothing was sent; run again{log}",
            )
    if _TOO_NEW in str(error):
        java = find_java()
        return FatalError(
            f"Spark {pyspark.__version__} does not run on Java {java_major_version(java)} ({java})",
            code="java-too-new",
            hint="nothing was sent; point JAVA_HOME at Java 17 or 21",
        )
    reason = cluster.reason_in(log_file)
    if reason == cluster.UNRESPONSIVE:
        return cluster.unresponsive(master, reason)
    silent = cluster.silent_api_server(master, str(error))
    if silent is not None:
        return silent
    return FatalError(
        f"Spark did not start with master {master}: {reason or causes.first_line(str(error))}",
        code="spark-start",
        hint=f"nothing was sent{log}",
    )


def not_taken(master: str, log_file: Path | None, seconds: float) -> TemporaryError:
    """Make the error for a cluster that did not accept the application within `seconds`."""
    reason = cluster.reason_in(log_file) or cluster.starved_in(log_file)
    return TemporaryError(
        f"{master} did not take the application within {seconds:.0f} s" + (f": {reason}" if reason else ""),
        code="spark-master",
        hint=f"nothing was sent; check that the cluster is up, and run again{log_hint(log_file)}",
    )


def of_a_run(
    error: Exception,
    process: Any,
    items: Callable[[], str],
    log_file: Path | None,
) -> EosingestError:
    """Make the error for a failed Spark step or job of a run: bad data is fatal, most other failures may be retried.

    `process` is Spark's JVM, None if we did not start it; `items` returns the names of those that were to be read.
    """
    text = causes.text_of(error)
    log = log_hint(log_file)
    kept = "committed records are kept, nothing was sent twice"
    said = by_a_reader(text)
    if said is not None:
        return said
    expected = isinstance(error, (*FROM_THE_JVM, OSError))
    unanswered = isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError)
    ended = jvm_ended(process, wait=not expected or unanswered or _NO_SOCKET in text)
    if ended is not None:
        return IncompleteError(ended, code="jvm-ended", hint=f"{kept}; run again{log}")
    if not expected:
        traced = "".join(traceback.format_exception(error))
        return EosingestError(
            f"the Spark job failed because of a bug in eosingest:\n{traced[-3000:]}", hint=f"{kept}{log}"
        )
    reason = causes.innermost(text)
    if causes.out_of_memory(text):
        return FatalError(
            f"{items()}: the JVM's heap is too small for it: {reason}",
            code="out-of-memory",
            hint=f'{kept}; give it more, [spark] conf = {{ "spark.driver.memory" = "4g" }}, and run again{log}',
        )
    environment = environment_error(text, kept)
    if environment is not None:
        return environment
    if causes.is_lasting(text):
        return FatalError(
            f"{items()}: the data could not be read or computed: {reason}",
            code="bad-data",
            hint=f"{kept}; correct the data and run again. {_OF_EXPRESSIONS}{log}",
        )
    bug = bug_in_a_task(text, hint=f"{kept}{log}")
    return bug or IncompleteError(f"the Spark job failed: {reason}", code="spark-job", hint=f"{kept}; run again{log}")


def in_words(error: EosingestError) -> str:
    """Return a reader's error as JSON, the message of the worker's exception; `by_a_reader` reads it in the driver."""
    said = {"error": type(error).__name__, "message": error.message, "code": error.code, "hint": error.hint}
    return json.dumps({**said, "item": error.item})


def by_a_reader(text: str) -> EosingestError | None:
    """Return the error that a reader raised in a worker (see `in_words`), from the text of Spark's failure; else None."""
    found = _OF_A_READER.search(text)
    if found is None:
        return None
    said = json.loads(found.group(1))
    hint = said["hint"] or "committed records are kept, nothing was sent twice; correct the cause and run again"
    return _OF_READERS[said["error"]](said["message"], code=said["code"], hint=hint, item=said["item"])


def jvm_ended(process: Any, *, wait: bool) -> str | None:
    """Return the text for a JVM that has ended, None if it runs. `process` is None if we did not start it.

    With `wait`, after an error of py4j, wait a moment for the process to end.
    """
    if process is None:  # spark-submit's, or none yet
        return None
    if wait:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_KNOWN_S)
    return f"Spark's JVM ended (status {process.returncode})" if process.poll() is not None else None


def bug_in_a_task(text: str, hint: str) -> EosingestError | None:
    """Return the error for an exception of a Python worker that is not one of ours, or None."""
    if _FROM_A_WORKER not in text:
        return None
    return EosingestError(f"a Spark task failed because of a bug in eosingest:\n{text[-3000:]}", hint=hint)


def log_hint(log_file: Path | None) -> str:
    """Return the end of a hint that says where Spark's log is; "" if it went to stderr."""
    return f"; Spark's log: {log_file}" if log_file else ""
