"""A warm JVM in a folder of its own, as `eosingest spark up` starts it, and what a test asks of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eosingest.host.other_process import of_session, started
from eosingest.spark.warm import holder
from tests.support.commands import Done, finish, start


class WarmJvm:
    """`env` has commands use it. `folder` need not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {"EOSINGEST_SPARK": "on", "EOSINGEST_SPARK_DIR": str(folder)}

    def command(
        self, verb: str, *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> Done:
        """Run `eosingest spark VERB`."""
        return finish(start("spark", verb, *arguments, "--output", "json", env={**self.env, **(env or {})}, cwd=cwd))

    def up(self, spec: Path, *arguments: str) -> None:
        """Start it with the settings of the spec, or find it running with these."""
        done = self.command("up", str(spec), *arguments)
        assert done.exit_code == 0, done

    def status(self, spec: Path, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> dict[str, Any]:
        done = self.command("status", str(spec), env=env, cwd=cwd)
        assert done.exit_code == 0, done
        return done.data

    def down(self) -> Done:
        return self.command("down")

    @property
    def pids(self) -> list[int]:
        """The processes that are recorded: the holder, the JVM, the worker server."""
        return [pid for pid, _ in json.loads((self.folder / holder.PROCESSES).read_text())]

    @property
    def jvm(self) -> int:
        return self.pids[1]

    def workers(self) -> list[int]:
        """Return the Python workers and their daemons."""
        ours = self.pids
        return [pid for pid in of_session(ours[0]) if pid not in ours]


def has_ended(pid: int) -> bool:
    return started(pid) is None
