"""What a failed run said, kept on its host for `status`; and whether a run that has not ended is alive."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from eosingest.errors import FatalError
from eosingest.host import last_errors

HERE = socket.gethostname()
ERROR = FatalError("a.csv: row 2: no", code="corrupt-row", hint="mend it")


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EOSINGEST_HOME", str(tmp_path))


def test_kept_and_said_again_of_the_same_run_alone() -> None:
    last_errors.keep("c", "orders", [ERROR])
    said = [{"code": "corrupt-row", "message": "a.csv: row 2: no", "hint": "mend it"}]
    assert last_errors.recall("c", "orders", HERE, os.getpid()) == said
    assert last_errors.recall("c", "orders", HERE, os.getpid() + 1) == []
    assert last_errors.recall("c", "orders", "elsewhere", os.getpid()) == []
    assert last_errors.recall("c", "others", HERE, os.getpid()) == []
    assert last_errors.recall("d", "orders", HERE, os.getpid()) == []


def test_forgotten_when_all_went_well() -> None:
    last_errors.keep("c", "orders", [ERROR])
    last_errors.keep("c", "orders", [])
    assert last_errors.recall("c", "orders", HERE, os.getpid()) == []


def test_nothing_rests_on_it(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file where a folder should be")
    last_errors.keep("c", "orders", [ERROR])
    assert last_errors.recall("c", "orders", HERE, os.getpid()) == []
    (tmp_path / "runs").unlink()
    last_errors.keep("c", "orders", [ERROR])
    for file in (tmp_path / "runs").iterdir():
        file.write_text("{")
    assert last_errors.recall("c", "orders", HERE, os.getpid()) == []


def test_alive() -> None:
    assert last_errors.lives("elsewhere", os.getpid()) is None
    assert last_errors.lives(HERE, os.getpid()) is True
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert last_errors.lives(HERE, process.pid) is False
