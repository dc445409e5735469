"""What makes runs begin sooner: the class data archive of Spark (spark/class_archive.py), asked for or not.

    a local Spark ran without one ─▶ begin_in_background ─▶ python -m eosingest.app.prepare ─▶ later runs use it

The process in the background is nobody's child for long: it has a session of its own, no stream, no lock and no folder of
whoever began it, the lowest priority, and ends within half an hour. One works at a time. It is begun again only a day after it
failed, or was ended from outside.
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
from eosingest.spark import site
from eosingest.spec import Spec

VARIABLE = "EOSINGEST_PREPARE"
_OFF = ("off", "0", "false", "no")
_AT_MOST_S = 1800.0
_LOWEST_PRIORITY = 19
_BY_HAND = "eosingest prepare writes it"
_NOT_ENDED = "a process that was to write it in the background has not ended yet, or was ended from outside"

log = logging.getLogger(__name__)


def prepare(*, verbose: bool, interrupted: Callable[[], int | None]) -> tuple[Path, bool]:
    """Return the archive, and whether it was written now: one that fits may be there. Raises the errors of errors.py."""
    log_file = None if verbose else spark_log_file("prepare")
    return _archive(log_file, Interruption(interrupted).check)


def _archive(log_file: Path | None, check: Callable[[], None]) -> tuple[Path, bool]:
    from eosingest.spark import class_archive
    from eosingest.spark.training import Training

    found = class_archive.find()
    return (found, False) if found is not None else (Training(FILES.rehearsal(), log_file, check).write_archive(), True)


def begin_in_background(spec: Spec, note: Callable[[str], None]) -> None:
    """Begin to write the archive where runs of this spec would use one and there is none, and say so.

    For the end of what started Spark. What keeps it from beginning is logged; nothing is raised.
    """
    from eosingest.spark import class_archive

    try:
        if class_archive.find() is not None:
            return
        reason = _why_not(spec)
        if reason is None:
            class_archive.remember_failure(_NOT_ENDED)  # stays where the process is killed, with its unit or container
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
    if not jvm.takes_archive(site.spark_master(spec), spec.spark.conf):
        return "the JVM is not of a local Spark, or is told another archive"
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
        cwd="/",  # ours may be removed, or unmounted
        env={**os.environ, "PYTHONPATH": python_path, "EOSINGEST_HOME": str(cache_directory())},
        start_new_session=True,
    )
    try:  # before it has started a thread or a JVM, which inherit both
        os.setpriority(os.PRIO_PROCESS, process.pid, _LOWEST_PRIORITY)
        os.sched_setscheduler(process.pid, os.SCHED_IDLE, os.sched_param(0))  # with which its I/O is idle, too
    except (OSError, AttributeError):  # macOS has no such scheduler
        pass


def _in_background() -> None:
    """Write the archive, as the process that `_start` started; keep the reason where there is none in the end."""
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
    """Return what gives the first signal that this process has received, if any."""
    received: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: received.append(number))
    signal.alarm(round(_AT_MOST_S) + 60)  # ends the process, and so its JVM, where nothing else has
    return lambda: received[0] if received else None


if __name__ == "__main__":
    _in_background()
