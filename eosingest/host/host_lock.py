"""Holds an advisory lock, so that one run of a job at a time works on this host (`if_running`).

Correctness depends on fencing, not on this lock. A kernel lock (flock) on a file named after cluster and job: the kernel
releases it even after `kill -9`, so that no lock is stale and no unlock command is needed. A run that takes the job over gets
the lock when the earlier run releases it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from types import TracebackType

from eosingest.host.paths import cache_directory, unusable

_AGAIN_S = 0.2


class HostLock:
    """Context manager that holds the lock; `acquired` says whether it has it."""

    def __init__(self, cluster_id: str, job: str) -> None:
        """Set the lock's file; nothing is locked yet."""
        self.cluster_id = cluster_id
        digest = hashlib.sha256(f"{cluster_id}\0{job}".encode()).hexdigest()[:16]
        self._path = cache_directory() / "locks" / f"{job}-{digest}.lock"
        self._descriptor = -1
        self._left = threading.Event()
        self._waiting: threading.Thread | None = None
        self.acquired = False

    def __enter__(self) -> HostLock:
        """Try to lock, without waiting. Raises FatalError if the lock file cannot be created."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise unusable(self._path.parent, error) from error
        self._try()
        return self

    def _try(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.acquired = True
        except BlockingIOError:
            self.acquired = False

    def keep_trying(self) -> None:
        """Acquire the lock in the background as soon as its holder releases it, until this context ends."""
        self._waiting = threading.Thread(target=self._wait, name="host-lock", daemon=True)
        self._waiting.start()

    def _wait(self) -> None:
        while not self.acquired and not self._left.wait(_AGAIN_S):
            self._try()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Release the lock. The file is not removed: otherwise two runs could lock two files of the same name."""
        self._left.set()
        if self._waiting is not None:
            self._waiting.join()
        os.close(self._descriptor)
