"""Keeps the errors of a job's last run on this host, for `status`; and checks whether a run's process is alive.

A convenience only: the state of a job is in the offsets topic alone. This file may be missing; nothing depends on it.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import xxhash

from eosingest.errors import EosingestError
from eosingest.host.paths import cache_directory

_KEPT_AT_MOST = 10


def keep(cluster_id: str, job: str, errors: Iterable[EosingestError]) -> None:
    """Store the errors with which this process's run of the job ended, in place of earlier ones."""
    said = [{"code": each.code, "message": each.message, "hint": each.hint} for each in errors]
    file = _file(cluster_id, job)
    with contextlib.suppress(OSError):  # a full disk, say: the errors are on stderr nevertheless
        if not said:
            file.unlink(missing_ok=True)
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps({"pid": os.getpid(), "errors": said[:_KEPT_AT_MOST]}), encoding="utf-8")
        unfinished.replace(file)


def recall(cluster_id: str, job: str, host: str, pid: int) -> list[dict[str, str]]:
    """Return the errors (code, message, hint) of the run with this host and process id; empty if they are not known here."""
    if host != socket.gethostname():
        return []
    try:
        kept: dict[str, Any] = json.loads(_file(cluster_id, job).read_text(encoding="utf-8"))
        return [dict(error) for error in kept["errors"]] if kept["pid"] == pid else []
    except (OSError, ValueError, KeyError, TypeError):
        return []


def lives(host: str, pid: int) -> bool | None:
    """Say whether a run's process is alive; None if it was started on another host."""
    if host != socket.gethostname() or pid <= 0:
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # another user's process
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return True
    return not arguments or b"eosingest" in arguments or b"python" in arguments  # else another program has the id now


def _file(cluster_id: str, job: str) -> Path:
    name = xxhash.xxh3_64_hexdigest(json.dumps([cluster_id, job]).encode())
    return cache_directory() / "runs" / f"{name}.json"
