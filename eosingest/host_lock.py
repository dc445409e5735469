"""One run of a job at a time on this host, as far as courtesy goes: what `if_running` asks. The truth is fencing.

A kernel lock (flock) on a file named after cluster and job: released also by `kill -9`, so there is nothing stale and
no command to unlock.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from types import TracebackType

from eosingest.paths import cache_directory, unusable


class HostLock:
    """Holds the lock while entered; `acquired` says whether it was free."""

    def __init__(self, cluster_id: str, job: str) -> None:
        """Name the lock; nothing is locked yet."""
        digest = hashlib.sha256(f"{cluster_id}\0{job}".encode()).hexdigest()[:16]
        self._path = cache_directory() / "locks" / f"{job}-{digest}.lock"
        self._descriptor = -1
        self.acquired = False

    def __enter__(self) -> HostLock:
        """Try to lock, without waiting. Raises FatalError where the lock's file cannot be made."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise unusable(self._path.parent, error) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.acquired = True
        except BlockingIOError:
            self.acquired = False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Release. The file stays: to remove it would let two runs lock two files of one name."""
        os.close(self._descriptor)
