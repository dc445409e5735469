"""A broker's process is known by its arguments, from the moment that it is there until it has ended."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from eosingest.broker.server import Server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


# Becomes itself again and again: $1 is the marker, $2 counts.
_BECOMING = 'n=${2:-0}; [ $n -ge 2000 ] && exec sleep 5; exec /bin/sh -c "$0" "$0" "$1" $((n + 1))'


def start(server: Server, script: str) -> subprocess.Popen[bytes]:
    """Start a shell that has the marker among its arguments."""
    process = subprocess.Popen(["/bin/sh", "-c", script, script, server._marker])
    (server.directory / "broker.pid").write_text(f"{process.pid}\n")
    return process


def test_a_process_that_becomes_another_program_is_not_taken_for_dead(tmp_path: Path) -> None:
    """It has no arguments for a moment: breaks (in one of some dozen looks) when the first answer is believed."""
    server = Server(tmp_path)
    process = start(server, _BECOMING)
    try:
        looks, until = 0, time.monotonic() + 0.3
        while time.monotonic() < until:
            assert server.running_pid() == process.pid, f"after {looks} looks"
            looks += 1
        assert looks > 100
    finally:
        process.kill()
        process.wait()


def test_one_that_has_ended_is_dead_at_once(tmp_path: Path) -> None:
    server = Server(tmp_path)
    process = start(server, "sleep 60; true")
    assert server.running_pid() == process.pid
    process.kill()
    began = time.monotonic()
    while server.running_pid() is not None:
        assert time.monotonic() < began + 1
    assert time.monotonic() < began + 0.5, "a zombie, as long as nobody waits for it"
    process.wait()
    assert server.running_pid() is None


def test_another_program_with_the_number_is_not_taken_for_the_broker(tmp_path: Path) -> None:
    process = subprocess.Popen(["/bin/sh", "-c", "sleep 60"])
    (tmp_path / "broker.pid").write_text(f"{process.pid}\n")
    assert Server(tmp_path).running_pid() is None
    process.kill()
    process.wait()
