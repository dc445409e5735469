"""Removes a driver's traces from the warm JVM: its gateway, SparkContext, workers, tasks, files, clients, settings.

Only the holder calls it. If a trace cannot be removed in time, the JVM is ended.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from eosingest.host import other_process

CLEANED_S = 30.0  # a SparkContext that a dead driver was making is complete by then
_POLL_S = 0.05
_OF_A_TASK = "Executor task launch worker"


@dataclass(frozen=True)
class Before:
    """The JVM as it was before the first driver: its system properties, and its log level."""

    properties: str
    level: str


def state_of(jvm: Any) -> Before:
    """Return the JVM's state, for `clean` to restore."""
    writer = jvm.java.io.StringWriter()
    jvm.java.lang.System.getProperties().store(writer, None)
    root = jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel()
    of_a_shell = _module(
        jvm.org.apache.spark.internal, "Logging"
    ).sparkShellThresholdLevel()  # `setLogLevel` forgets it
    return Before(str(writer.toString()), str((of_a_shell or root).toString()))


def gateway_for_a_run(jvm: Any) -> tuple[Any, int, str]:
    """Start a gateway with a fresh secret; return it, its port and its secret."""
    server = jvm.org.apache.spark.api.python.Py4JServer(jvm.SparkConf(False))
    server.start()
    return server, int(server.getListeningPort()), str(server.secret())


def clean(jvm: Any, before: Before, server: Any, kept: Collection[int]) -> None:
    """Remove the traces of the last driver. Raises what py4j raises; TimeoutError."""
    if server is not None:
        server.shutdown()  # and with it all objects that its driver held
    deadline = time.monotonic() + CLEANED_S / 2
    for _ in range(2):  # twice: a thread may have received a command to make one, and not have begun
        _until(deadline, "a SparkContext does not stop", lambda: _contexts_stopped(jvm))
        time.sleep(_POLL_S)
    kill_the_rest(kept)
    _until(deadline, "a task does not end", lambda: _OF_A_TASK not in _threads(jvm))
    utils = _module(jvm.org.apache.spark.util, "Utils")
    for folder in utils.getOrCreateLocalRootDirs(jvm.SparkConf(False)):
        shutil.rmtree(folder, ignore_errors=True)
    utils.clearLocalRootDirs()
    session = jvm.org.apache.spark.sql.classic.SparkSession
    session.clearActiveSession()
    session.clearDefaultSession()
    jvm.org.apache.hadoop.fs.FileSystem.closeAll()
    jvm.org.apache.hadoop.security.UserGroupInformation.reset()
    properties = jvm.java.util.Properties()
    properties.load(jvm.java.io.StringReader(before.properties))
    jvm.java.lang.System.setProperties(properties)
    utils.setLogLevel(jvm.org.apache.logging.log4j.Level.toLevel(before.level))


def _until(deadline: float, what: str, reached: Callable[[], bool]) -> None:
    while not reached():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(_POLL_S)


def _contexts_stopped(jvm: Any) -> bool:
    """Stop the active SparkContext; say whether none is left, and none is being made."""
    companion = _module(jvm.org.apache.spark, "SparkContext")
    active = companion.getActive()
    if active.isDefined():
        active.get().cancelAllJobs()
        active.get().stop()
        return False
    constructed = companion.getClass().getDeclaredField("contextBeingConstructed")
    constructed.setAccessible(True)
    return not constructed.get(None).isDefined()


def _threads(jvm: Any) -> str:
    return str(jvm.java.lang.Thread.getAllStackTraces().keySet().toString())


def kill_the_rest(kept: Collection[int]) -> None:
    """Kill all processes of this process's session except the `kept` ones: Python workers and their daemons."""
    for pid in other_process.of_session(os.getsid(0)):
        if pid not in kept:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def heap_used(jvm: Any) -> float:
    """Return the used part of the heap, from 0 to 1; after a collection, if it seems to be more than a half."""
    runtime = jvm.java.lang.Runtime.getRuntime()

    def used() -> float:
        return float((runtime.totalMemory() - runtime.freeMemory()) / runtime.maxMemory())

    if used() > 0.5:
        jvm.java.lang.System.gc()
    return used()


def _module(package: Any, name: str) -> Any:
    """Return a Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")
