"""Runs commands of a test process on one warm JVM, so that the suite does not start some 300 JVMs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from eosingest.spark.warm import channel

IDLE = "10m"
_STARTS = 5  # of one test process: a JVM ends after some hundred runs, or when it cannot be cleaned
_VERBS = ("preview", "run", "verify")
_folder: Path | None = None
_starts = 0


def environment_for(verb: str, env: Mapping[str, str], write_spec: Callable[[Path], object]) -> dict[str, str]:
    """Return the variables with which a command uses the warm JVM; none if its verb or its variables do not fit one.

    Starts the JVM if there is none: `write_spec` writes a spec with the settings of the suite's jobs.
    """
    global _folder, _starts
    decided = channel.SWITCH in env or os.environ.get(channel.SWITCH) != "off"  # by the test, for a JVM of its own
    if decided or verb not in _VERBS or any(not name.startswith("EOSINGEST_") for name in env):
        return {}
    if _folder is None:
        _folder = Path(tempfile.mkdtemp(prefix="eosingest-warm-"))
    used = {channel.SWITCH: "on", channel.FOLDER_VARIABLE: str(_folder)}
    if not (_folder / channel.SOCKET).is_socket() and _starts < _STARTS:
        _starts += 1
        spec = _folder / "spec.toml"
        write_spec(spec)
        _command("up", str(spec), "--idle", IDLE, env=used)
    return used


def end() -> None:
    """End the JVM of this process."""
    if _folder is not None:
        _command("down", env={channel.FOLDER_VARIABLE: str(_folder)})


def _command(*arguments: str, env: Mapping[str, str]) -> None:
    line = [sys.executable, "-m", "eosingest", "spark", *arguments]
    done = subprocess.run(line, env={**os.environ, **env}, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done
