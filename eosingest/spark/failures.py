"""Failures of Spark as errors of ours: what an error of its JVM means for whoever meets it.

Beside causes.py, which finds the reason in Spark's words. Here is what session, launcher, preview and audit say alike: that
Spark did not start, that its JVM ended, or that a task failed by a bug of ours.
"""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from typing import Any

import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from eosingest.errors import EosingestError, FatalError, IncompleteError, TemporaryError
from eosingest.host.java import find_java, java_major_version
from eosingest.spark import causes, cluster

# What a call of the JVM raises; py4j lets the last one through where no connection is left.
FROM_THE_JVM = (Py4JError, PySparkException, ConnectionError)
_END_KNOWN_S = 2.0  # a JVM that was lost over py4j has ended, or is about to
_TOO_NEW = "getSubject is not supported"  # by Java 23 and newer; the Hadoop in pyspark 4.0 needs it (HADOOP-19212)


def not_started(master: str, log_file: Path | None, error: Exception, process: Any) -> EosingestError:
    """Make the error for a Spark that did not start: a JVM that a signal ended (no memory left, say) may start next time."""
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
    """Make the error for a cluster that did not take the application in time."""
    reason = cluster.reason_in(log_file) or cluster.starved_in(log_file)
    return TemporaryError(
        f"{master} did not take the application within {seconds:.0f} s" + (f": {reason}" if reason else ""),
        code="spark-master",
        hint=f"nothing was sent; look whether the cluster is up, and run again{log_hint(log_file)}",
    )


def log_hint(log_file: Path | None) -> str:
    """Return the end of a hint that says where Spark's own output is; nothing where it went to stderr."""
    return f"; Spark's own words are in {log_file}" if log_file else ""
