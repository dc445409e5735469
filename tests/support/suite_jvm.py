"""Runs commands of a test process on one warm JVM, so that the suite does not start some 300 JVMs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from eosingest.spark.warm import channel
from tests.support.warm_jvm import WarmJvm

IDLE = "10m"
_STARTS = 5  # of one test process: a JVM ends after some hundred runs, or when it cannot be cleaned
_VERBS = ("preview", "run", "verify")
_jvm: WarmJvm | None = None
_starts = 0


def environment_for(verb: str, env: Mapping[str, str], write_spec: Callable[[Path], object]) -> Mapping[str, str]:
    """Return the variables with which a command uses the warm JVM; none if its verb or its variables do not fit one.

    Starts the JVM if there is none: `write_spec` writes a spec with the settings of the suite's jobs.
    """
    global _jvm, _starts
    decided = channel.SWITCH in env or os.environ.get(channel.SWITCH) != "off"  # by the test, for a JVM of its own
    if decided or verb not in _VERBS or any(not name.startswith("EOSINGEST_") for name in env):
        return {}
    if _jvm is None:
        _jvm = WarmJvm(Path(tempfile.mkdtemp(prefix="eosingest-warm-")))
    if not (_jvm.folder / channel.SOCKET).is_socket() and _starts < _STARTS:
        _starts += 1
        spec = _jvm.folder / "spec.toml"
        write_spec(spec)
        _jvm.up(spec, "--idle", IDLE)
    return _jvm.env


def end() -> None:
    """End the JVM of this process."""
    if _jvm is not None:
        done = _jvm.down()
        assert done.exit_code == 0, done
