"""Defines named fail points: places in the protocol where a test may kill the process, stop it, or make it wait.

No-op unless `EOSINGEST_FAILPOINTS` is set, to a comma-separated list of `name=action[@hit]`: the hit-th time (default: the
first) that this process passes the point `name`, do `kill` (SIGKILL to itself), `group-kill` (SIGKILL to the driver's process
group, whose id is `EOSINGEST_FAILPOINT_GROUP`), `stop` (SIGSTOP to itself), `raise`, or `sleep:SECONDS`. If
`EOSINGEST_FAILPOINT_DIR` is a folder, each point acts only once per machine, which a marker file in the folder records.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

NAMES = (
    "driver-after-claim",
    "driver-after-fence",
    "driver-before-running",
    "driver-after-running",
    "driver-before-verdict",
    "driver-after-settling",
    "driver-after-verdict",
    "task-before-init",
    "task-after-init",
    "task-after-check",
    "task-after-begin",
    "task-after-produce",
    "task-before-offsets",
    "task-before-commit",
    "task-after-commit",
    "task-at-end",
)

_VARIABLE = (
    "EOSINGEST_FAILPOINTS"  # read at each point: a fork of a process that has imported this has its own environment
)
_hits: dict[str, int] = {}


class FailPointError(Exception):
    """The error of the action `raise`."""


def fail_point(name: str) -> None:
    """Perform the action that the environment sets for this point; nothing in production."""
    if _handler is not None:
        _handler(name)


def handle_with(handler: Callable[[str], None] | None) -> None:
    """Call `handler` with the name of each point passed, for simulations in one process. None: call no handler."""
    global _handler
    _handler = handler


def _act(name: str) -> None:
    for entry in os.environ.get(_VARIABLE, "").split(","):
        wanted, _, action = entry.partition("=")
        action, _, hit = action.partition("@")
        if wanted == name:
            _hits[name] = _hits.get(name, 0) + 1
            if _hits[name] == int(hit or 1) and _first_on_this_machine(name):
                _do(action, name)


def _first_on_this_machine(name: str) -> bool:
    folder = os.environ.get("EOSINGEST_FAILPOINT_DIR")
    if not folder:
        return True
    try:
        (Path(folder) / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _do(action: str, name: str) -> None:
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "group-kill":
        os.killpg(int(os.environ["EOSINGEST_FAILPOINT_GROUP"]), signal.SIGKILL)
        time.sleep(60)  # a worker outside the group ends with the JVM, and must do nothing until then
    elif action == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif action.startswith("sleep:"):
        time.sleep(float(action.removeprefix("sleep:")))
    else:
        raise FailPointError(name)


_handler: Callable[[str], None] | None = _act
