"""A disk of a broker's own that can be filled: a small tmpfs where it may be mounted, else a limit on file sizes.

On the tmpfs a ballast file takes the space: writes fail with ENOSPC. Without the right to mount, RLIMIT_FSIZE of the
broker's process is lowered: its files cannot grow, and writes fail with EFBIG. Kafka takes both as a failed log folder.
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
from pathlib import Path

_SIZE_BYTES = 96 << 20


class Disk:
    """The file system of one folder. `kind` says which of the two it is."""

    def __init__(self, folder: Path) -> None:
        """Mount, where that is allowed."""
        folder.mkdir(parents=True)
        self._folder = folder
        command = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE_BYTES}", "eosingest-chaos", str(folder)]
        mounted = os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0
        self.kind = "tmpfs" if mounted else "RLIMIT_FSIZE"

    def fill(self, pid: int | None, leave_bytes: int) -> None:
        """Leave so many bytes of space: on the whole disk, or in every file of the process."""
        if self.kind == "tmpfs":
            with self._ballast.open("wb", buffering=0) as ballast:
                with contextlib.suppress(OSError):  # full
                    while ballast.write(bytes(1 << 16)):
                        pass
                ballast.truncate(max(0, ballast.tell() - leave_bytes))
        elif pid is not None:
            hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (leave_bytes + 1, hard))

    def empty(self) -> None:
        """Give the space back; a limit goes with its process."""
        self._ballast.unlink(missing_ok=True)

    def unmount(self) -> None:
        """Take the file system away."""
        if self.kind == "tmpfs":
            subprocess.run(["umount", "--lazy", str(self._folder)], capture_output=True)

    @property
    def _ballast(self) -> Path:
        return self._folder / "ballast"
