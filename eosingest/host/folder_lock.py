"""Locks a file across processes and threads: with flock, which the kernel releases even after `kill -9`."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eosingest.errors import TemporaryError

_POLL_S = 0.05


@contextmanager
def locked(path: Path, deadline: float, *, what: str) -> Iterator[None]:
    """Context manager: hold a lock on the file `path`; wait for it until `deadline` (`time.monotonic()`).

    The file is never removed: a lock on a removed file excludes nobody. Raises TemporaryError at the deadline.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)  # not inheritable: no child process keeps the lock
    try:
        while not _try_lock(descriptor):
            if time.monotonic() > deadline:
                raise TemporaryError(
                    f"another process holds {path} and is busy with {what}",
                    code="broker-busy",
                    hint="try again when it has finished: eosingest broker status",
                )
            time.sleep(_POLL_S)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
