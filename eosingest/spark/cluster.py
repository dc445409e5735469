"""Inspects a cluster: whether its master answers, how many executors are registered, which failures Spark's log reports.

Used by session.py, which starts Spark, and executors.py, which waits for executors. Spark reports most problems of a cluster
only in its log, or not at all: if the master does not answer, Spark fails after minutes with "stopped SparkContext".
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eosingest.errors import FatalError, TemporaryError
from eosingest.spark import spark_defaults
from eosingest.spec.masters import addresses

_CONNECT_S = 10.0
_END_S = 5.0
_LOG_TAIL = 1 << 18  # bytes
UNRESPONSIVE = "All masters are unresponsive"
_NO_HADOOP_CONF = "either HADOOP_CONF_DIR or YARN_CONF_DIR must be set in the environment"
# The first pattern that matches anything is used; its last match in the log is the reason.
_REASONS = (
    re.compile(rf"({UNRESPONSIVE})"),
    re.compile(rf"({_NO_HADOOP_CONF})"),
    re.compile(r"Application has been killed\. Reason: (.+)"),
    re.compile(r'Exception in thread "main" (?:[a-z][\w$]*\.)*(.+)'),
    re.compile(r"^(?:Error: |Unrecognized |Invalid )(.+)", re.MULTILINE),
    re.compile(r"KubernetesClientException: .*?Message: (.+?)\.? Received status"),
)
# The cause in the stack trace of the Kubernetes client when the API server does not answer.
_SILENT = re.compile(
    r"Caused by: [\w.$]*(?:ConnectException|UnknownHostException|NoRouteToHostException|TimeoutException)(?:: (.+))?"
)
_STARVED = re.compile(
    r"\b(?:WARN|ERROR) (?:TaskSchedulerImpl|\w*SchedulerBackend\S*|\w*Allocator\S*|\w*AppClient\S*): (.+)"
)
_MASTER_LOST = re.compile(r"\bWARN \w*AppClient\S*: (Connection to \S+ failed; waiting for master to reconnect)")


@dataclass(frozen=True)
class Registered:
    """How many executors are registered, and how many task slots they have together."""

    executors: int
    slots: int


def registered(context: Any) -> Registered:
    """Return the active executors and their slots, as Spark counts them. For clusters only."""
    jvm = context._jsc.sc()
    profile = jvm.resourceProfileManager().defaultResourceProfile()
    return Registered(jvm.schedulerBackend().getExecutorIds().size(), jvm.maxNumConcurrentTasks(profile))


def refuse_unready(master: str) -> None:
    """Raise FatalError if YARN is not configured here, TemporaryError if no master of a standalone cluster answers."""
    if master == "yarn":
        _refuse_no_hadoop_conf()
    failures = []
    for host, port in addresses(master):
        try:
            with socket.create_connection((host, port), timeout=_CONNECT_S):
                return
        except OSError as error:
            failures.append(f"{host}:{port}: {error.strerror or error}")
    if failures:
        raise unresponsive(master, "; ".join(failures))


def unresponsive(master: str, reason: str) -> TemporaryError:
    """Make the error for a standalone cluster none of whose masters answers."""
    return TemporaryError(
        f"no master of the Spark cluster {master} answers: {reason}",
        code="spark-master",
        hint="nothing was sent; check that the cluster is up, and run again",
    )


def silent_api_server(master: str, text: str) -> TemporaryError | None:
    """Return the error for a Kubernetes API server that did not answer; None if the error `text` shows another reason."""
    causes = _SILENT.findall(text) if master.startswith("k8s://") and "KubernetesClientException" in text else []
    if not causes:
        return None
    return TemporaryError(
        f"the API server of {master} does not answer: {causes[-1].strip() or 'no answer in time'}",
        code="spark-master",
        hint="nothing was sent; check that the address is right and can be reached from here, and run again",
    )


def _refuse_no_hadoop_conf() -> None:
    folder = spark_defaults.conf_folder()
    named = spark_defaults.hadoop_folders()
    if named or (folder is not None and (folder / "spark-env.sh").is_file()):  # which may set one of them
        return
    raise FatalError(
        f"Spark finds no YARN: {_NO_HADOOP_CONF}",
        code="no-hadoop-conf",
        hint="nothing was sent; point HADOOP_CONF_DIR at the folder with yarn-site.xml and core-site.xml",
    )


def reason_in(log_file: Path | None) -> str | None:
    """Return why Spark ended, from its log; None if the log gives no reason."""
    text = _tail(log_file)
    for pattern in _REASONS:
        found = pattern.findall(text)
        if found:
            return str(found[-1]).strip()
    return None


def starved_in(log_file: Path | None) -> str | None:
    """Return the last warning of Spark's scheduler in its log; None if there is none.

    A lost master takes precedence over later warnings, which follow from it: without its master a standalone cluster replaces
    no executor.
    """
    text = _tail(log_file)
    found = _MASTER_LOST.findall(text) or _STARVED.findall(text)
    return str(found[-1]).strip() if found else None


def _tail(log_file: Path | None) -> str:
    if log_file is None:
        return ""
    with contextlib.suppress(OSError), log_file.open("rb") as log:
        log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG_TAIL))
        return log.read().decode(errors="replace")
    return ""


class Bound:
    """A timeout for a blocking call of the JVM: when it expires, the JVM is terminated, so the call returns."""

    def __init__(self, process: Any, seconds: float) -> None:
        """Set the timeout; `running` starts it. If `process` is None, there is no JVM to end, and no timeout."""
        self._process = process
        self.expired = False
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Apply the timeout to the body. `expired` says whether it ended the JVM."""
        if self._process is not None:
            self._timer.start()
        try:
            yield
        finally:
            self._timer.cancel()

    def _end(self) -> None:
        self.expired = True
        self._process.terminate()
        with contextlib.suppress(Exception):
            self._process.wait(_END_S)
        self._process.kill()
