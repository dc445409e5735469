"""A broker that tests share, and what it said where it is gone: the tests behind it fail without a reason of their own."""

from __future__ import annotations

import contextlib
import re
import resource
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from eosingest import broker

_FOLDERS = pytest.StashKey[list[Path]]()
_REASON = re.compile(r" (ERROR|FATAL) |^Error|^Caused by|Exception|Error: ")
_LINES = 12  # of each file, and so many characters of each line: all of it is seen where a test's output is cut
_WIDTH = 200
NOT_RUNNING = "the broker is not running"  # how the heading of its last words begins

# Transactions that time out are aborted soon after, not up to 10 s later.
PROPERTIES = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}


@contextlib.contextmanager
def running_broker(
    session: pytest.Session, tmp_path_factory: pytest.TempPathFactory, properties: Mapping[str, str] | None = None
) -> Iterator[broker.BrokerStatus]:
    """Run a broker in a folder of its own for as long as the body lasts. One that died meanwhile keeps its folder."""
    folder = tmp_path_factory.mktemp("broker")
    folders = session.stash.setdefault(_FOLDERS, [])
    folders.append(folder)
    try:
        yield broker.up(directory=folder, properties={**PROPERTIES, **(properties or {})})
    finally:
        folders.remove(folder)
        broker.down(directory=folder, remove_data=broker.status(directory=folder).running)


def dead_brokers(session: pytest.Session) -> list[tuple[str, str]]:
    """Return a heading and the last words of each shared broker that is not running."""
    return [
        (f"{NOT_RUNNING}; it was in {folder}", last_words(folder))
        for folder in session.stash.get(_FOLDERS, [])
        if not broker.status(directory=folder).running
    ]


def last_words(folder: Path) -> str:
    """Return what the JVM of a dead broker said, and the end of what the broker did."""
    return "\n".join(_last_words(folder))


def _last_words(folder: Path) -> Iterator[str]:
    """Yield what the JVM said, where it crashed, and the broker's last errors, each once, and its end; the newest last."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield f"open files of the tests: {soft}, at most {hard}"
    for file in sorted(folder.glob("broker.log*"), key=lambda file: file.stat().st_mtime)[-2:]:
        lines = file.read_text(errors="replace").splitlines()
        # Without its time, so that an error that comes again and again is one line.
        errors = list(dict.fromkeys(re.sub(r"^\[[^]]*\] ", "", line) for line in lines if _REASON.search(line)))
        yield from (f"{file.name}: {line[:_WIDTH]}" for line in [*errors[-_LINES:], *lines[-_LINES:]])
    for file in (folder / "broker.out", *folder.glob("hs_err*.log")):
        yield from (f"{file.name}: {line[:_WIDTH]}" for line in file.read_text(errors="replace").splitlines()[:_LINES])
