"""Opens files of the local disk (`port.Storage`). Listing is in local_places.py."""

from __future__ import annotations

import os
from dataclasses import dataclass
from io import BufferedReader, FileIO
from typing import Any

from eosingest.sources.files.storage.port import NotAsListedError, Stored

_BUFFER_BYTES = 64 << 10


class _ListedFile(FileIO):
    """A file whose bytes are returned only while it is as listed. Raises NotAsListedError."""

    def __init__(self, file: Stored) -> None:
        super().__init__(file.path, "rb")
        self._listed = file

    def readinto(self, buffer: Any) -> int | None:
        """Read bytes; those of a file that was edited meanwhile are not returned."""
        count = super().readinto(buffer)
        self._check()
        return count

    def readall(self) -> bytes:
        """Read the rest of the file; see `readinto`."""
        found = super().readall()
        self._check()
        return found or b""

    def _check(self) -> None:
        if not is_as_listed(self._listed, os.fstat(self.fileno())):
            raise NotAsListedError(self._listed.path)


@dataclass(frozen=True)
class LocalStorage:
    """Opens local files (`port.Storage`)."""

    def need_packages(self) -> None:
        """Need none."""

    def open(self, file: Stored, until: int | None = None) -> BufferedReader:
        """Open the file; see `port.Storage`."""
        return BufferedReader(_ListedFile(file), _BUFFER_BYTES)

    def is_changed(self, file: Stored, opened: BufferedReader) -> bool:
        """Say whether an open file has another length or modification time than listed."""
        return not is_as_listed(file, os.fstat(opened.fileno()))

    def is_as_listed(self, file: Stored) -> bool:
        """Check whether a file now has the length and the modification time that it was listed with."""
        try:
            return is_as_listed(file, os.stat(file.path))
        except OSError:
            return False


LOCAL = LocalStorage()


def to_milliseconds(mtime_ns: int) -> int:
    """Return a modification time in milliseconds as Hadoop's local file system reports it."""
    return mtime_ns // 1_000_000


def is_as_listed(file: Stored, status: os.stat_result) -> bool:
    """Say whether a file has the length and the modification time that it was listed with."""
    return (status.st_size, to_milliseconds(status.st_mtime_ns)) == (file.length, file.mtime_ms)
