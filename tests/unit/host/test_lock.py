"""The lock on this host: one of two processes has it, and `kill -9` gives it back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from eosingest.host.host_lock import HostLock
from tests.support.harness import wait_for

ROOT = Path(__file__).parents[3]
HOLD = """
import sys
from eosingest.host.host_lock import HostLock
with HostLock("cluster", "job") as lock:
    print(lock.acquired, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EOSINGEST_HOME", str(tmp_path))
    return tmp_path


def start() -> tuple[subprocess.Popen[str], str]:
    """Start a process that tries to lock and waits; return it and what it said."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def acquired(cluster: str = "cluster", job: str = "job") -> bool:
    with HostLock(cluster, job) as lock:
        return lock.acquired


def test_one_of_two_processes_has_it_until_it_ends() -> None:
    first, said = start()
    try:
        assert said == "True"
        second, said = start()
        second.communicate(timeout=10)
        assert said == "False"
        assert not acquired()
    finally:
        first.communicate(timeout=10)
    assert first.returncode == 0
    assert acquired()


def test_kill_9_releases_it() -> None:
    process, said = start()
    assert said == "True"
    assert not acquired()
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=10)
    assert acquired()


def test_other_clusters_and_jobs_are_other_locks() -> None:
    with HostLock("cluster", "job") as lock:
        assert lock.acquired
        assert acquired("another cluster")
        assert acquired(job="another-job")
        assert not acquired()


def test_a_failed_try_takes_nothing_and_breaks_nothing() -> None:
    with HostLock("cluster", "job"):
        assert not acquired()
        assert not acquired(), "the first refusal did not release the holder's lock"
    assert acquired()


def test_released_when_the_body_raises() -> None:
    with pytest.raises(ZeroDivisionError), HostLock("cluster", "job"):
        raise ZeroDivisionError
    assert acquired()


def test_the_file_is_named_after_the_job_and_stays(home: Path) -> None:
    assert acquired(job="a" * 100)
    (path,) = (home / "locks").iterdir()
    assert path.name.startswith("a" * 100 + "-")


def test_a_child_that_outlives_the_holder_does_not_hold_it() -> None:
    with HostLock("cluster", "job") as lock:
        assert lock.acquired
        child = subprocess.Popen(["sleep", "30"], close_fds=False)
    try:
        assert acquired()
    finally:
        child.kill()
        child.wait()


def test_who_takes_over_has_it_once_the_holder_lets_go() -> None:
    """Breaks when a run that fenced the holder is seen by nobody: `skip` would start a third one on top of it."""
    holder, said = start()
    assert said == "True"
    with HostLock("cluster", "job") as newer:
        assert not newer.acquired
        newer.keep_trying()
        holder.communicate(timeout=10)
        wait_for(lambda: newer.acquired, 10)
        assert not acquired()
    assert acquired()


def test_a_wait_for_it_ends_with_its_context() -> None:
    with HostLock("cluster", "job"):
        with HostLock("cluster", "job") as newer:
            newer.keep_trying()
        assert not acquired()
    assert acquired()
