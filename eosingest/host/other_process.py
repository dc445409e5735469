"""Handles a process that is no child of ours: its start time, its end, signals to it and to no later process with its id.

Linux only (pidfd, /proc).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

_UNKNOWN = -1


def started(pid: int) -> int | None:
    """Return when a process started, in clock ticks since the boot; None if there is no such process, or it has ended."""
    fields = _stat(pid)
    return None if not fields or fields[0] in (b"Z", b"X") else int(fields[19])


def of_session(session: int) -> Iterator[int]:
    """Yield the ids of the processes of a session; its id is that of the process that began it."""
    for entry in Path("/proc").glob("[0-9]*"):
        fields = _stat(int(entry.name))
        if fields and int(fields[3]) == session:
            yield int(entry.name)


def _stat(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat after the name; the first one is the state."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].split()
    return []


class OtherProcess:
    """The process with this id and this start time. It has the methods of Popen that errors of Spark use."""

    def __init__(self, pid: int, start: int) -> None:
        """Find the process. Raises ProcessLookupError if it has ended."""
        self.pid = pid
        self.returncode: int | None = None
        self._descriptor = os.pidfd_open(pid)
        if started(pid) != start:
            os.close(self._descriptor)
            raise ProcessLookupError(pid)

    def poll(self) -> int | None:
        """Return None while the process runs, then -1: only its parent gets the exit status."""
        if self.returncode is None and select.select([self._descriptor], [], [], 0)[0]:
            self.returncode = _UNKNOWN
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process. Raises subprocess.TimeoutExpired."""
        if not select.select([self._descriptor], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        self.returncode = _UNKNOWN
        return _UNKNOWN

    def kill(self) -> None:
        """Send SIGKILL, if the process still runs."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
