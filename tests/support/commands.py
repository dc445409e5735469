"""Starts `eosingest` as a user does, and takes its answer."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import command_server

RUN_TIMEOUT_S = 180
_PYTHON_PATH = os.environ.get("PYTHONPATH")


@dataclass
class Done:
    """A finished command: exit code, what it printed, and the JSON envelope where stdout is one."""

    exit_code: int
    stdout: str
    stderr: str
    envelope: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, exit_code: int, stdout: str, stderr: str) -> Done:
        try:
            envelope = json.loads(stdout)
        except ValueError:
            envelope = {}
        return cls(exit_code, stdout, stderr, envelope)

    @property
    def data(self) -> dict[str, Any]:
        return self.envelope.get("data") or {}

    @property
    def codes(self) -> list[str]:
        return [error["code"] for error in self.envelope.get("errors", [])]

    @property
    def text(self) -> str:
        """Everything a person would have read."""
        return self.stdout + self.stderr


def start(*arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> subprocess.Popen[str]:
    """Start `eosingest ARGUMENTS` in a process group of its own: forked (command_server.py); with other `env` a new process.

    So is one for which a test has set Python's path, which matters while modules are imported.
    """
    is_same = os.environ.get("PYTHONPATH") == _PYTHON_PATH
    if is_same and all(name.startswith("EOSINGEST_") for name in env or ()):
        return command_server.start([*arguments], {**os.environ, **(env or {})}, cwd)
    return subprocess.Popen(
        [sys.executable, "-m", "eosingest", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str], timeout_s: float = RUN_TIMEOUT_S) -> Done:
    """Wait for a command and take its answer; past the time it is killed with its group, and the test fails."""
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        kill_group(process)
        stdout, stderr = process.communicate(timeout=30)
        raise AssertionError(f"no end after {timeout_s} s\n{stdout}\n{stderr}") from None
    return Done.of(process.returncode, stdout, stderr)


def kill_group(process: subprocess.Popen[str], number: int = signal.SIGKILL) -> None:
    """Send a signal to the driver's whole process group: driver and JVM."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
