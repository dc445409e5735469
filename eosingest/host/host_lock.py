"""One run of a job at a time on this host, as far as courtesy goes: what `if_running` asks. The truth is fencing.

A kernel lock (flock) on a file named after cluster and job: released also by `kill -9`, so there is nothing stale and
no command to unlock. A run that takes the job over has it as soon as the earlier one lets go.
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
    """Holds the lock while entered; `acquired` says whether it was free."""

    def __init__(self, cluster_id: str, job: str) -> None:
        """Name the lock; nothing is locked yet."""
        self.cluster_id = cluster_id
        digest = hashlib.sha256(f"{cluster_id}\0{job}".encode()).hexdigest()[:16]
        self._path = cache_directory() / "locks" / f"{job}-{digest}.lock"
        self._descriptor = -1
        self._left = threading.Event()
        self._waiting: threading.Thread | None = None
        self.acquired = False

    def __enter__(self) -> HostLock:
        """Try to lock, without waiting. Raises FatalError where the lock's file cannot be made."""
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
        """Lock in the background, once whoever holds it has let go, for as long as this context lasts."""
        self._waiting = threading.Thread(target=self._wait, name="host-lock", daemon=True)
        self._waiting.start()

    def _wait(self) -> None:
        while not self.acquired and not self._left.wait(_AGAIN_S):
            self._try()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Release. The file stays: to remove it would let two runs lock two files of one name."""
        self._left.set()
        if self._waiting is not None:
            self._waiting.join()
        os.close(self._descriptor)
