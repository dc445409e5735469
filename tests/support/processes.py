"""The processes below a driver: which there are, signals to them, and whether they are gone."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# A quick JVM for short jobs: the first compiler only, and the plainest collector.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@dataclass(frozen=True)
class Process:
    """A process below a driver."""

    pid: int
    parent: int
    command: str


def processes_below(pid: int) -> list[Process]:
    """Return all descendants of a process, parents first."""
    by_parent: dict[int, list[Process]] = defaultdict(list)
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if state != "Z":
                by_parent[int(parent)].append(Process(int(entry.name), int(parent), command))
    found = list(by_parent[pid])
    for process in found:  # grows while it is walked
        found += by_parent[process.pid]
    return found


def jvm_of(process: subprocess.Popen[str]) -> int:
    """Return the pid of the driver's JVM; what the JVM starts lies in Java's folder too, or has its name for a moment."""
    found = {child.pid: child for child in processes_below(process.pid) if "java" in child.command.split(" ")[0]}
    (jvm,) = [pid for pid, child in found.items() if child.parent not in found]
    return jvm


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """Return the pids of Spark's Python workers: children of the daemon, pyspark's or ours."""
    daemons = [child for child in processes_below(process.pid) if "spark.daemon" in child.command]
    parents = {child.pid for child in daemons}
    return [child.pid for child in daemons if child.parent in parents]


def stopped(pids: Iterable[int]) -> list[int]:
    """Return those of the processes that a SIGSTOP holds."""
    return [pid for pid in pids if _state(pid) == "T"]


def signal_all(pids: Iterable[int], number: int) -> None:
    """Send a signal to each process that is still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def assert_gone(processes: Iterable[Process], within_s: float = 10) -> None:
    """Check that processes have ended, or end soon."""
    deadline = time.monotonic() + within_s
    left = list(processes)
    while left:
        left = [process for process in left if _state(process.pid) not in ("", "Z")]
        assert not left or time.monotonic() < deadline, f"still running: {left}"
        time.sleep(0.1)


def _state(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""
