"""One `eosingest` process tree of a round: started, hit with signals, waited for, and its answer read.

Its output goes to files, so that a process that was killed or frozen holds nobody up, and so that a failing round leaves
what was said. A run is a session of its own: driver, JVM, Python daemon and workers are found by it, orphans too.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.support.commands import Done
from tests.support.harness import Job
from tests.support.held_runs import Held
from tests.support.processes import signal_all

ROOT = Path(__file__).parents[2]


class Process(NamedTuple):
    """A process of a run's session."""

    pid: int
    parent: int
    state: str
    command: str


class Run:
    """A started command. `killed` says that a signal of ours may have ended its driver."""

    def __init__(
        self, job: Job, number: int, verb: str, arguments: tuple[str, ...], env: Mapping[str, str], points: str = ""
    ) -> None:
        """Start `eosingest VERB spec.toml --output json`; `points` are fail points, which may kill its process group."""
        self._held = Held(job, points) if points else None
        env = {**env, **self._held.env} if self._held else env
        self.number = number
        self.killed = False
        self._stdout = job.folder / f"{number}-{verb}.out"
        self._stderr = job.folder / f"{number}-{verb}.err"
        command = [sys.executable, "-m", "eosingest", verb, str(job.spec), "--output", "json", *arguments]
        paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        with self._stdout.open("wb") as stdout, self._stderr.open("wb") as stderr:
            self.process = subprocess.Popen(
                ["sh", "-c", 'EOSINGEST_FAILPOINT_GROUP=$$ exec "$@"', "sh", *command],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env={**os.environ, "PYTHONPATH": paths, **env},
                cwd=job.folder,
                start_new_session=True,
            )
        self.began = time.monotonic()

    @property
    def pid(self) -> int:
        """The driver's process id, which is also its session's and its group's."""
        return self.process.pid

    @property
    def ended(self) -> bool:
        """Whether the driver has ended."""
        return self.process.poll() is not None

    def reached(self) -> bool:
        """Whether all of its fail points have acted."""
        return self._held is not None and self._held.reached()

    def wait(self, timeout_s: float) -> Done | None:
        """Wait for the driver's end and return its answer, None where it does not end in time."""
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        stdout, stderr = (path.read_text(errors="replace") for path in (self._stdout, self._stderr))
        try:
            envelope = json.loads(stdout)
        except ValueError:
            envelope = {}
        return Done(self.process.returncode, stdout, stderr, envelope)

    # ---- its processes ---------------------------------------------------------------------------------------------

    def processes(self) -> list[Process]:
        """Return all living processes of the session."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                state, parent, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(session) == self.pid and state != "Z":
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found.append(Process(int(entry.name), int(parent), state, command))
        return found

    def jvms(self) -> list[int]:
        """Return the JVM's pid, nothing where there is none (yet, or any more)."""
        return [process.pid for process in self.processes() if process.command.split(" ")[0].endswith("java")]

    def workers(self) -> list[int]:
        """Return the pids of Spark's Python workers: children of the daemon, pyspark's or ours."""
        daemons = [process for process in self.processes() if "spark.daemon" in process.command]
        parents = {process.pid for process in daemons}
        return [process.pid for process in daemons if process.parent in parents]

    # ---- what is done to it ----------------------------------------------------------------------------------------

    def signal(self, number: int) -> None:
        """Send a signal to the driver alone."""
        self.killed = self.killed or number == signal.SIGKILL
        signal_all([self.pid] if not self.ended else [], number)

    def kill_everybody(self) -> None:
        """`kill -9` for driver, JVM and workers."""
        self.killed = True
        signal_all([process.pid for process in self.processes()], signal.SIGKILL)

    def freeze(self) -> list[int]:
        """SIGSTOP for everybody; return whom."""
        pids = [process.pid for process in self.processes()]
        signal_all(pids, signal.SIGSTOP)
        return pids

    def clear_away(self) -> None:
        """Leave nothing behind, whatever state it is in."""
        for _ in range(10):  # a daemon may be forking just now
            left = [process.pid for process in self.processes()]
            if not left:
                break
            signal_all(left, signal.SIGKILL)
            time.sleep(0.05)
        self.process.wait(10)
