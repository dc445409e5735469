"""Spark beyond one JVM, for tests: a home of Spark that may be written to, and a standalone cluster on this machine.

The processes of an executor are found below its Spark Worker: its JVM, pyspark's daemon and the Python workers that this forks.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from tests.support.commands import kill_group
from tests.support.harness import Job, wait_for
from tests.support.processes import QUICK_JVM, Process, processes_below, signal_all, stopped

LOCAL_CLUSTER = "local-cluster[2,1,1024]"  # two workers of one core and a gigabyte

QUICK_EXECUTORS = f'"spark.executor.extraJavaOptions" = "{QUICK_JVM}", '


def spark_home(folder: Path) -> Path:
    """Make a home of Spark of links to pyspark's own: a local cluster writes into its home, which is site-packages else."""
    pips = Path(pyspark.__file__).parent
    for name in ("bin", "jars", "python", "sbin"):
        if (pips / name).exists():
            (folder / name).symlink_to(pips / name)
    return folder


def environment(home: Path) -> dict[str, str]:
    """Return what a driver, master or worker needs: this Python on executors, and addresses that this machine has."""
    return {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}


def python_that(folder: Path, code: str) -> Path:
    """Make a Python that first runs some code: one that is not as a run needs it."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(code)
    program = folder / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    program.chmod(0o755)
    return program


def on(job: Job, master: str, more: str = "", conf: str = "") -> Job:
    """Have the job run on a master, in small executors."""
    job.edit_spec('master = "local[2]"', f'master = "{master}"\n{more}')
    job.edit_spec("conf = {", f'conf = {{ "spark.executor.memory" = "512m", {conf}')
    return job


@dataclass(frozen=True)
class Executor:
    """The processes of an executor, and the pid of the Spark Worker that started it."""

    worker: int
    jvm: Process
    daemons: tuple[Process, ...]
    pythons: tuple[Process, ...]  # the workers of Python that the daemons forked

    @property
    def processes(self) -> list[Process]:
        return [self.jvm, *self.daemons, *self.pythons]

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self.processes]

    @property
    def stopped(self) -> list[int]:
        """The workers of Python that have stopped themselves, at a fail point."""
        return stopped(python.pid for python in self.pythons)

    def kill(self) -> None:
        """`kill -9` of all of it, as the loss of its machine would."""
        signal_all(self.pids, signal.SIGKILL)


def executors_below(pid: int) -> list[Executor]:
    """Return the executors that a process has started: a Spark Worker, or the driver's JVM of a local cluster."""
    below = processes_below(pid)
    python = [process for process in below if "pyspark.daemon" in process.command]
    found = []
    for jvm in below:
        if "CoarseGrainedExecutorBackend" in jvm.command:
            daemons = tuple(process for process in python if process.parent == jvm.pid)
            parents = {daemon.pid for daemon in daemons}
            found.append(Executor(pid, jvm, daemons, tuple(one for one in python if one.parent in parents)))
    return found


@dataclass
class Standalone:
    """A standalone cluster: a master, and workers of one core and a gigabyte each."""

    folder: Path
    home: Path
    port: int
    size: int = 0  # how many workers it has when it is whole
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    masters: list[subprocess.Popen[bytes]] = field(default_factory=list)
    runs: list[subprocess.Popen[str]] = field(default_factory=list)  # drivers that are not to outlive their test

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def start_master(self) -> None:
        name = f"master-{len(self.masters)}"
        self.masters.append(
            self.start(
                name,
                "org.apache.spark.deploy.master.Master",
                *("--host", "127.0.0.1", "--port", str(self.port), "--webui-port", "0"),
            )
        )
        wait_for(lambda: "I have been elected leader" in self.said(name), timeout_s=90)

    def start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start one of Spark's daemons, in a process group of its own with all that it starts."""
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(self.home / "bin" / "spark-class"), *arguments],
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    **environment(self.home),
                    "SPARK_DAEMON_MEMORY": "256m",
                    "SPARK_DAEMON_JAVA_OPTS": QUICK_JVM,
                },
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def said(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def add_worker(self) -> None:
        name = f"worker-{len(self.workers)}"
        worker = self.start(
            name,
            "org.apache.spark.deploy.worker.Worker",
            *("--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g"),
            *("--work-dir", str(self.folder / name), self.master),
        )
        self.workers.append(worker)
        wait_for(lambda: "Successfully registered with master" in self.said(name), timeout_s=90)

    def kill_workers(self) -> None:
        """Kill workers and their executors, as a power cut would."""
        for worker in self.workers:
            _kill(worker)

    def kill_master(self) -> None:
        _kill(self.masters[-1])

    def executors(self) -> list[Executor]:
        """Return the executors that run now."""
        return [one for worker in self.workers if worker.poll() is None for one in executors_below(worker.pid)]

    def held(self) -> list[Executor]:
        """Return the executors that stand at a fail point."""
        return [one for one in self.executors() if one.stopped]

    def lost_workers(self) -> int:
        """Return how many workers it lacks."""
        return self.size - sum(worker.poll() is None for worker in self.workers)

    def have_workers(self) -> None:
        """Start as many workers as it lacks."""
        for _ in range(self.lost_workers()):
            self.add_worker()

    def heal(self) -> None:
        """Let nothing of an earlier run live on, and have a master and all workers."""
        for run in self.runs:
            kill_group(run)
        self.runs.clear()
        signal_all([worker.pid for worker in self.workers if worker.poll() is None], signal.SIGCONT)
        for executor in self.executors():
            executor.kill()
        if self.masters[-1].poll() is not None:
            self.kill_workers()
            self.start_master()
        self.have_workers()
        wait_for(lambda: not self.executors(), timeout_s=30)

    def close(self) -> None:
        for executor in self.executors():  # pyspark's daemon has a process group of its own
            executor.kill()
        for process in self.processes:
            _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)


@contextlib.contextmanager
def standalone(folder: Path, workers: int) -> Iterator[Standalone]:
    """Run a standalone cluster for as long as the body lasts."""
    cluster = start_standalone(folder, workers)
    try:
        yield cluster
    finally:
        cluster.close()


def start_standalone(folder: Path, workers: int) -> Standalone:
    """Start a standalone cluster; its `close` ends it."""
    (folder / "home").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    cluster = Standalone(folder, spark_home(folder / "home"), port, workers)
    try:
        cluster.start_master()
        cluster.have_workers()
    except BaseException:
        cluster.close()
        raise
    return cluster


def defaults(folder: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Write a spark-defaults.conf; return the environment that puts it in force."""
    folder.mkdir()
    text = "".join(f"{key} {value}\n" for key, value in settings.items())
    (folder / "spark-defaults.conf").write_text(text)
    return {"SPARK_CONF_DIR": str(folder)}
