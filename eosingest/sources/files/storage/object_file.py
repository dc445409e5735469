"""One object as a data file that somebody names, for `init --from`: with the part of pathlib's interface that sniff/ uses."""

from __future__ import annotations

from io import BufferedReader
from pathlib import Path, PurePosixPath

from eosingest.sources.files.storage.port import Status
from eosingest.sources.files.storage.s3 import S3_URI, S3Storage
from eosingest.sources.files.storage.s3_places import head


def data_file(text: str) -> Path | ObjectFile:
    """Return a file by its path, or an object by `s3://…`, which is asked for as the SDK finds store and credentials.

    Raises what a listing raises where the store refuses or does not answer.
    """
    scheme = S3_URI.match(text)
    if scheme is None:
        return Path(text)
    path = f"s3://{text[scheme.end() :]}"
    storage = S3Storage()
    return ObjectFile(storage, path, head(storage, path))


class ObjectFile:
    """An object (a `port.Stored`); `status` None: there is none."""

    def __init__(self, storage: S3Storage, path: str, status: Status | None) -> None:
        self._storage = storage
        self._status = status
        self.path = path
        self.length, self.mtime_ms, self.etag = status or Status(0, 0)
        name = PurePosixPath(path.rpartition("/")[2])
        self.name, self.stem, self.suffix = name.name, name.stem, name.suffix

    def __str__(self) -> str:
        """Return its path."""
        return self.path

    def exists(self) -> bool:
        """Say whether it is there."""
        return self._status is not None

    def is_dir(self) -> bool:
        """Say whether it stands for a folder."""
        return self.path.endswith("/")

    def open(self, mode: str = "rb") -> BufferedReader:
        """Open it to be read, as it was when it was asked for."""
        return self._storage.open(self)
