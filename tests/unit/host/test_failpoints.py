"""Fail points: silent without the environment, exact with it; their names and the places in the source agree."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from eosingest.host.failpoints import NAMES

ROOT = Path(__file__).parents[3]
PASS_THREE_TIMES = """
from eosingest.host.failpoints import fail_point
for hit in range(1, 4):
    fail_point("task-after-begin")
    fail_point("task-after-commit")
    print(hit, flush=True)
"""


def run(spec: str | None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Pass two fail points three times in a process of its own; it prints how often it came through."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("EOSINGEST_FAILPOINT")}
    env.update(environment, PYTHONPATH=str(ROOT))
    if spec is not None:
        env["EOSINGEST_FAILPOINTS"] = spec
    return subprocess.run(
        [sys.executable, "-c", PASS_THREE_TIMES],
        capture_output=True,
        text=True,
        env=env,
        timeout=30,
        start_new_session=True,
    )


def test_every_name_is_passed_exactly_once_in_the_source() -> None:
    passed: Counter[str] = Counter()
    for path in (ROOT / "eosingest").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "fail_point":
                (argument,) = node.args
                assert isinstance(argument, ast.Constant), f"{path}:{node.lineno}: a name that cannot be searched for"
                passed[argument.value] += 1
    assert passed == Counter(NAMES)
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("spec", [None, "", "task-at-end=kill", "task-after=kill", "task-after-begin-x=kill"])
def test_nothing_happens_unless_the_very_name_is_asked_for(spec: str | None) -> None:
    done = run(spec)
    assert (done.returncode, done.stdout) == (0, "1\n2\n3\n")


@pytest.mark.parametrize(
    ("spec", "through"),
    [
        ("task-after-begin=kill", ""),
        ("task-after-begin=kill@1", ""),
        ("task-after-begin=kill@3", "1\n2\n"),
        ("task-at-end=kill,task-after-commit=kill@2", "1\n"),
        ("task-after-commit=kill@2,task-after-begin=kill@3", "1\n"),
    ],
)
def test_kills_at_the_hit(spec: str, through: str) -> None:
    done = run(spec)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, through)


def test_raises() -> None:
    done = run("task-after-begin=raise@2")
    assert (done.returncode, done.stdout) == (1, "1\n")
    assert "FailPointError: task-after-begin" in done.stderr


def test_sleeps_and_goes_on() -> None:
    began = time.monotonic()
    done = run("task-after-begin=sleep:0.5@2")
    assert (done.returncode, done.stdout) == (0, "1\n2\n3\n")
    assert time.monotonic() - began > 0.5


def test_stops_and_goes_on_when_woken() -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "EOSINGEST_FAILPOINTS": "task-after-begin=stop@2"}
    process = subprocess.Popen([sys.executable, "-c", PASS_THREE_TIMES], stdout=subprocess.PIPE, text=True, env=env)
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
    finally:
        process.send_signal(signal.SIGCONT)
    assert process.communicate(timeout=10)[0] == "1\n2\n3\n"


def test_group_kill_takes_the_named_group() -> None:
    victim = subprocess.Popen(["sleep", "30"], start_new_session=True)
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "EOSINGEST_FAILPOINTS": "task-after-begin=group-kill@2",
        "EOSINGEST_FAILPOINT_GROUP": str(victim.pid),
    }
    process = subprocess.Popen([sys.executable, "-c", PASS_THREE_TIMES], stdout=subprocess.PIPE, text=True, env=env)
    try:
        assert victim.wait(timeout=10) == -signal.SIGKILL
        assert process.poll() is None, "waits for its own end, and does not go on"
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
    finally:
        process.kill()
        assert process.communicate(timeout=10)[0] == ""


def test_acts_once_on_this_machine_where_a_folder_says_so(tmp_path: Path) -> None:
    environment = {"EOSINGEST_FAILPOINT_DIR": str(tmp_path)}
    assert run("task-after-begin=kill@2", **environment).stdout == "1\n"
    again = run("task-after-begin=kill@2", **environment)
    assert (again.returncode, again.stdout) == (0, "1\n2\n3\n")
    assert run("task-after-commit=kill", **environment).returncode == -signal.SIGKILL, "another name acts on its own"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["task-after-begin", "task-after-commit"]
