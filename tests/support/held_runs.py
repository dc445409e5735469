"""Runs held, or killed, at a fail point (eosingest/host/failpoints.py)."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Mapping

from tests.support.commands import kill_group
from tests.support.harness import Job, wait_for


class Held:
    """Fail points for one run (see eosingest/host/failpoints.py), each acting once; `reached` tells when one has.

    `points` is the value of EOSINGEST_FAILPOINTS: "task-before-commit=sleep:20@2".
    """

    _count = itertools.count()

    def __init__(self, job: Job, points: str) -> None:
        self._folder = job.folder / f"points-{next(self._count)}"
        self._folder.mkdir()
        self._names = [entry.partition("=")[0] for entry in points.split(",")]
        self.env = {"EOSINGEST_FAILPOINTS": points, "EOSINGEST_FAILPOINT_DIR": str(self._folder)}

    def reached(self, point: str = "") -> bool:
        """Say whether all of the points have acted, or one of them."""
        return all((self._folder / name).exists() for name in ([point] if point else self._names))


def start_held(job: Job, points: str, *arguments: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start a run and return once its fail points have acted; it may use the warm JVM of the test process."""
    held = Held(job, points)
    process = job.start("run", *arguments, env={**held.env, **(env or {})})
    wait_for(lambda: held.reached() or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    return process


def run_killed_at(job: Job, point: str, *arguments: str) -> None:
    """Run until the fail point ("task-before-commit@2") kills the driver's whole process group."""
    name, _, hit = point.partition("@")
    held = Held(job, f"{name}=group-kill@{hit or 1}")
    command = [sys.executable, "-m", "eosingest", "run", str(job.spec), "--output", "json", *arguments]
    process = subprocess.Popen(
        ["sh", "-c", 'EOSINGEST_FAILPOINT_GROUP=$$ exec "$@"', "sh", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **held.env},
        cwd=job.folder,
        start_new_session=True,
    )
    try:
        answer = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        kill_group(process)
        raise
    assert process.returncode == -signal.SIGKILL and held.reached(), (point, process.returncode, answer)
