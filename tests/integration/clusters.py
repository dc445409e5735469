"""Spark beyond one JVM, for tests: a home of Spark that may be written to, and a standalone cluster on this machine."""

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

from tests.integration.harness import wait_for

LOCAL_CLUSTER = "local-cluster[2,1,1024]"  # two workers of one core and a gigabyte


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


@dataclass
class Standalone:
    """A standalone cluster: a master, and workers of one core and a gigabyte each."""

    folder: Path
    home: Path
    port: int
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start one of Spark's daemons, in a process group of its own with all that it starts."""
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(self.home / "bin" / "spark-class"), *arguments],
                stdout=log,
                stderr=log,
                env={**os.environ, **environment(self.home), "SPARK_DAEMON_MEMORY": "256m"},
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

    def close(self) -> None:
        for process in self.processes:
            _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)


@contextlib.contextmanager
def standalone(folder: Path, workers: int) -> Iterator[Standalone]:
    """Run a standalone cluster for as long as the body lasts."""
    (folder / "home").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    cluster = Standalone(folder, spark_home(folder / "home"), port)
    try:
        master = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        cluster.start("master", "org.apache.spark.deploy.master.Master", *master)
        wait_for(lambda: "I have been elected leader" in cluster.said("master"), timeout_s=90)
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        cluster.close()


def defaults(folder: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Write a spark-defaults.conf; return the environment that puts it in force."""
    folder.mkdir()
    text = "".join(f"{key} {value}\n" for key, value in settings.items())
    (folder / "spark-defaults.conf").write_text(text)
    return {"SPARK_CONF_DIR": str(folder)}
