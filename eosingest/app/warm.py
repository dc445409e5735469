"""Starts, describes and ends the warm JVM (spark/warm/) on command."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from eosingest.app.assemble import assemble
from eosingest.app.settings import spark_log_file
from eosingest.errors import FatalError, TemporaryError
from eosingest.host import interruptible
from eosingest.host.other_process import OtherProcess
from eosingest.host.paths import unusable
from eosingest.kafka.config import ClientSettings
from eosingest.report.progress import Observer
from eosingest.sources.registry import FILES
from eosingest.spark import spark_defaults
from eosingest.spark.warm import channel
from eosingest.spark.warm.channel import Channel, InUseError, UnusableError
from eosingest.spec import Spec
from eosingest.spec.masters import is_local

_START_S, _END_S = 180.0, 15.0


@dataclass(frozen=True)
class WarmStatus:
    """The state of the warm JVM, which `runs` runs have used.

    `used_by` is the pid of the process that uses it. `differs` names the parts of its key that differ for a run from here,
    `unusable` any other reason why this run would not use it.
    """

    running: bool
    folder: Path
    pid: int | None = None
    since: float | None = None
    idle_s: float | None = None
    runs: int | None = None
    used_by: int | None = None
    differs: str | None = None
    unusable: str | None = None
    started_now: bool = False


@dataclass(frozen=True)
class _Wanted:
    """A run's requirements for the JVM: settings on its command line, and the key that must be equal (spark/warm/key.py)."""

    boot: Mapping[str, str]
    key: Mapping[str, str]


def up(spec: Spec | None, idle_s: float, observer: Observer, check: Callable[[], None]) -> WarmStatus:
    """Start the warm JVM, unless one with an equal key is running. `spec`: the job whose settings it gets.

    Raises FatalError if it cannot start, TemporaryError if it must replace one that a run uses.
    """
    if not channel.supported():
        raise FatalError("a warm JVM needs Linux", code="warm-jvm", hint="runs start separate JVMs")
    wanted = _wanted(spec, observer, check)
    place = channel.folder()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise unusable(place, error) from error
    found = _status(place, wanted)
    if found.running and found.differs is None and found.unusable is None:
        return found
    _end(place)
    interruptible.in_thread(lambda: _start(place, wanted, idle_s), check, "spark-warm")
    return replace(_status(place, wanted), used_by=None, started_now=True)


def down() -> WarmStatus:
    """End the warm JVM. Raises TemporaryError if a run uses it."""
    place = channel.folder()
    _end(place)
    return WarmStatus(False, place)


def status(spec: Spec | None, observer: Observer, check: Callable[[], None]) -> WarmStatus:
    """Return the warm JVM's state, and whether a run of the spec, from here, would use it."""
    found = _status(channel.folder(), _wanted(spec, observer, check))
    off = f"{channel.SWITCH} is off" if found.running and channel.is_off() else None
    return replace(found, unusable=off or found.unusable)


def _status(place: Path, wanted: _Wanted) -> WarmStatus:
    try:
        connection = _connected(place)
    except TimeoutError as error:
        return WarmStatus(True, place, unusable=str(error))
    if connection is None:
        return WarmStatus(False, place)
    try:
        answer = channel.ask(connection, ready_s=channel.ANSWER_S, verb="status", key=wanted.key)
    except UnusableError as error:
        return WarmStatus(True, place, unusable=str(error))
    finally:
        connection.close()
    return WarmStatus(True, place, **answer)


def _connected(place: Path) -> Channel | None:
    """Return a connection, None if there is no holder. Raises TimeoutError without an answer, FatalError if it is unusable."""
    try:
        return channel.connect(place, channel.ANSWER_S)
    except TimeoutError:
        raise
    except (UnusableError, OSError) as error:
        raise FatalError(
            f"the warm JVM is not used: {error}",
            code="warm-jvm",
            hint=f"let {channel.FOLDER_VARIABLE} name a folder of yours with mode 0700; runs start separate JVMs",
        ) from error


def _wanted(spec: Spec | None, observer: Observer, check: Callable[[], None]) -> _Wanted:
    """Return the requirements of a run of the spec; prepare the environment as a run does."""
    from eosingest.spark import jvm, session
    from eosingest.spark.warm import key

    if spec is None:
        master, conf = spark_defaults.DEFAULT_MASTER, dict[str, str]()
        told = session.settings_of(master, conf, {})
    else:
        parts = assemble(spec, observer, check, asks_brokers=False)
        settings = parts.spark_settings(ClientSettings(spec.sink.bootstrap_servers), observer.note)  # never connected
        master, conf, told = settings.master, dict(settings.conf), settings.boot()
    if not is_local(master):
        raise FatalError(f"{master} starts no JVM that could stay warm", code="warm-jvm", hint="local masters alone do")
    jvm.prepare_environment(master, conf)
    boot = jvm.for_the_command_line({**told, "spark.master": master})
    return _Wanted(boot, key.key(boot, conf))


def _start(place: Path, wanted: _Wanted, idle_s: float) -> None:
    """Start the holder, and process a few rows as its first driver, so that the next one finds classes loaded and compiled."""
    from eosingest.spark import session
    from eosingest.spark.warm import attach, holder, key
    from eosingest.spark.warmup import exercise

    ours, theirs = socket.socketpair()
    folder_counts = any(name.startswith(key.FOLDER) for name in wanted.key)
    with theirs, open(os.open(place / holder.HOLDER_LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
        subprocess.Popen(
            [sys.executable, "-P", "-m", "eosingest.spark.warm.holder", str(place)],
            stdin=theirs.fileno(),
            stdout=output,
            stderr=output,
            env=key.environment(),
            cwd=None if folder_counts else "/",
            start_new_session=True,
        )
    log_file = spark_log_file("spark-up") or place / holder.JVM_LOG
    request = {"boot": wanted.boot, "idle_s": idle_s}
    try:
        gateway = attach.attach_by(Channel(ours), wanted.key, log_file, ready_s=_START_S, alive_s=_START_S, **request)
    except UnusableError as error:
        raise FatalError(
            f"the warm JVM did not start: {error}",
            code="warm-jvm",
            hint=f"runs start separate JVMs; more is in {place / holder.HOLDER_LOG} and {place / holder.JVM_LOG}",
        ) from error
    read = FILES.rehearsal()
    master = wanted.boot["spark.master"]
    spark = session.start(job="spark up", master=master, conf={}, of_source={}, log_file=log_file, gateway=gateway)
    try:
        with tempfile.TemporaryDirectory(prefix="eosingest-") as name:
            exercise(spark, read, Path(name))
    finally:
        spark.stop()
    attach.end_well()


def _end(place: Path) -> None:
    """End holder and JVM; kill those that do not answer. Raises TemporaryError if a run uses the JVM."""
    from eosingest.spark.warm import holder

    connection = None
    processes = list(_recorded(place / holder.PROCESSES))
    try:
        connection = _connected(place)
        if connection is None:  # the JVM of a killed holder may still run
            raise UnusableError("there is no holder")
        channel.ask(connection, ready_s=channel.READY_S, verb="end")
    except InUseError as error:
        raise TemporaryError(
            f"the warm JVM is in use: {error}", code="warm-jvm-busy", hint="when that has ended, try again"
        ) from error
    except (UnusableError, TimeoutError):
        for process in processes:
            process.kill()
    finally:
        if connection is not None:
            connection.close()
    deadline = time.monotonic() + _END_S
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
        process.kill()
        process.wait(_END_S)


def _recorded(processes: Path) -> Iterator[OtherProcess]:
    """Yield the recorded processes of a warm JVM that still run."""
    with suppress(OSError, ValueError):
        for pid, started in json.loads(processes.read_text()):
            with suppress(OSError):
                yield OtherProcess(pid, started)
