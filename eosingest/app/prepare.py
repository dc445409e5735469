"""Writes Spark's class data archive (spark/class_archive.py), with which Spark starts sooner: on command or in the background.

    a local Spark ran without one ─▶ begin_in_background ─▶ python -m eosingest.app.prepare ─▶ later runs use it

The background process is independent of the run that started it: it has a separate session, none of the run's streams, locks
or folders, and the lowest priority, and it ends within half an hour. Only one runs at a time. After a failure or a kill, the
next one starts a day later at the earliest.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import eosingest
from eosingest.app.settings import spark_log_file
from eosingest.errors import EosingestError, FatalError
from eosingest.host.host_lock import HostLock
from eosingest.host.interruption import Interruption
from eosingest.host.paths import cache_directory
from eosingest.sources.registry import FILES
from eosingest.spark import spark_defaults
from eosingest.spec import Spec

VARIABLE = "EOSINGEST_PREPARE"
_OFF = ("off", "0", "false", "no")
_AT_MOST_S = 1800.0
_LOWEST_PRIORITY = 19
_BY_HAND = "eosingest prepare writes it"
_NOT_ENDED = "a process that was to write it in the background has not ended yet, or was ended from outside"

log = logging.getLogger(__name__)


def prepare(*, verbose: bool, interrupted: Callable[[], int | None]) -> tuple[Path, bool]:
    """Return the archive, and whether it was written now or existed already. Raises the errors of errors.py."""
    log_file = None if verbose else spark_log_file("prepare")
    return _archive(log_file, Interruption(interrupted).check)


def _archive(log_file: Path | None, check: Callable[[], None]) -> tuple[Path, bool]:
    from eosingest.spark import class_archive
    from eosingest.spark.warmup import Training

    found = class_archive.find()
    return (found, False) if found is not None else (Training(FILES.rehearsal(), log_file, check).write_archive(), True)


def begin_in_background(spec: Spec, note: Callable[[str], None]) -> None:
    """Start writing the archive in the background if runs of this spec would use one and there is none; `note` says so.

    Called at the end of verbs that start Spark. A failure to start is logged; nothing is raised.
    """
    from eosingest.spark import class_archive

    try:
        if class_archive.find() is not None:
            return
        reason = _why_not(spec)
        if reason is None:
            class_archive.remember_failure(_NOT_ENDED)  # stays if the process is killed, perhaps with its container
            _start()
    except (EosingestError, OSError) as error:
        reason = str(error)
    if reason is not None:
        log.info("Spark's classes are not archived: %s", reason)
        return
    note(
        "archiving Spark's classes in the background, once, so that later runs begin sooner"
        f" (160 MiB; {VARIABLE}=off prevents it)"
    )


def _why_not(spec: Spec) -> str | None:
    from eosingest.spark import class_archive, jvm

    if os.environ.get(VARIABLE, "").strip().lower() in _OFF:
        return f"{VARIABLE} says so; {_BY_HAND}"
    if not jvm.takes_archive(spark_defaults.spark_master(spec), spec.spark.conf):
        return "the JVM is not of a local Spark, its options name another archive, or its class path has a folder"
    failed = class_archive.failure()
    return f"{failed}; {_BY_HAND}" if failed is not None else None


def _start() -> None:
    package_folder = str(Path(eosingest.__file__).parent.parent)
    python_path = os.pathsep.join(filter(None, (package_folder, os.environ.get("PYTHONPATH"))))
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "eosingest.app.prepare"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",  # the current folder may be removed or unmounted
        env={**os.environ, "PYTHONPATH": python_path, "EOSINGEST_HOME": str(cache_directory())},
        start_new_session=True,
    )
    try:  # before it starts a thread or a JVM, which inherit both settings
        os.setpriority(os.PRIO_PROCESS, process.pid, _LOWEST_PRIORITY)
        os.sched_setscheduler(process.pid, os.SCHED_IDLE, os.sched_param(0))  # makes its I/O priority idle, too
    except (OSError, AttributeError):  # macOS has no such scheduler
        pass


def _in_background() -> None:
    """Write the archive; on failure store the reason. The main function of the process that `_start` starts."""
    from eosingest.spark import class_archive

    interruption = Interruption(_signals())
    deadline = time.monotonic() + _AT_MOST_S

    def check() -> None:
        interruption.check()
        if time.monotonic() > deadline:
            raise FatalError(f"it was not written within {_AT_MOST_S / 60:.0f} minutes", code="no-archive")

    with HostLock("", "prepare") as lock:
        if not lock.acquired:
            return
        try:
            _archive(spark_log_file("prepare"), check)
        except Exception as error:
            class_archive.remember_failure(str(error))


def _signals() -> Callable[[], int | None]:
    """Install signal handlers; return a function that returns the first signal received, or None."""
    received: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: received.append(number))
    signal.alarm(round(_AT_MOST_S) + 60)  # ends the process, and so its JVM, if nothing else has
    return lambda: received[0] if received else None


if __name__ == "__main__":
    _in_background()
