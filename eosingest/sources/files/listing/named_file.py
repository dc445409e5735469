"""Opens one named file of a store for `init --from`, with the part of pathlib's interface that sniff/ uses."""

from __future__ import annotations

import os
from io import BufferedReader
from pathlib import Path, PurePosixPath

from eosingest.host.interruption import never
from eosingest.sources.files.listing.hdfs_places import HdfsPlaces, HdfsTree, storage_of
from eosingest.sources.files.listing.names import check_readable_name
from eosingest.sources.files.listing.s3_places import head
from eosingest.sources.files.storage.port import Status, Storage
from eosingest.sources.files.storage.s3 import S3Storage
from eosingest.sources.files.storage.schemes import HDFS_URI, S3_URI


def data_file(text: str) -> Path | NamedFile:
    """Return a file by its path, an object by `s3://…`, or a file of HDFS by `hdfs://…`.

    The SDK finds the bucket's store and credentials, the site's configuration the name node (hadoop_site.py). Raises the
    errors of a listing if the store refuses or does not answer, SpecError for a path of HDFS without a name node, and
    FatalError for a local name that Spark cannot open.
    """
    if (scheme := S3_URI.match(text)) is not None:
        path = f"s3://{text[scheme.end() :]}"
        return NamedFile(S3Storage(), path, head(S3Storage(), path))
    if HDFS_URI.match(text) is not None:
        storage = storage_of([text], None)
        written = HdfsPlaces(storage, never).parse(text)
        tree, place = HdfsTree(storage, written.folder), f"/{written.pattern}"
        is_folder = tree.is_folder(place)
        return NamedFile(storage, written.absolute, tree.status(written.absolute), is_folder=is_folder)
    check_readable_name(os.path.abspath(text))
    return Path(text)


class NamedFile:
    """A file of a store (a `port.Stored`); `status` None: it does not exist."""

    def __init__(self, storage: Storage, path: str, status: Status | None, *, is_folder: bool = False) -> None:
        self._is_folder = is_folder or path.endswith("/")
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
        """Say whether it exists."""
        return self._status is not None or self._is_folder

    def is_dir(self) -> bool:
        """Say whether it is a folder."""
        return self._is_folder

    def open(self, mode: str = "rb") -> BufferedReader:
        """Open it for reading, as it was when its status was read."""
        return self._storage.open(self)
