"""Reads files of HDFS (`port.Storage`) over WebHDFS, by the id of exactly the listed file. Listing is in hdfs_places.py.

    SourceFile ─▶ HdfsStorage.open ─▶ ObjectStream (object_stream.py) ─▶ OPEN /.reserved/.inodes/ID ─▶ a data node

No other file ever gets the id of a file, so a file that was moved or written to its path is not read instead. Length
and modification time show if it was appended to or cut off. webhdfs.py interprets the answers.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from eosingest.errors import FatalError, SpecError
from eosingest.sources.files.storage import webhdfs
from eosingest.sources.files.storage.object_stream import ObjectStream
from eosingest.sources.files.storage.port import GivenUpError, NotAsListedError, Status, Stored, UnreachableError
from eosingest.sources.files.storage.schemes import below
from eosingest.sources.files.storage.webhdfs import NoneLeftError, NotSupportedError

_Answer = TypeVar("_Answer")
_BUFFER_BYTES = 1 << 20
_ATTEMPTS = 3
_START_AFTER = "startafter"  # WebHDFS of Hadoop 3.5 knows names of parameters in lower case only
_PAUSE_S = 0.3  # doubled with each attempt


@dataclass(frozen=True)
class HdfsStorage:
    """The connection to a name node (`port.Storage`): its web addresses, of which one is active, and the `user`."""

    endpoints: tuple[str, ...]
    user: str

    def need_packages(self) -> None:
        """Raise SpecError if urllib3 is missing."""
        webhdfs.urllib3_of_hdfs()

    def open(self, file: Stored, until: int | None = None) -> BufferedReader:
        """Open a file; see `port.Storage`. No request is sent before it is read."""
        return BufferedReader(ObjectStream(file.path, _Blocks(self, file).get, file.length, until), _BUFFER_BYTES)

    def is_changed(self, file: Stored, opened: BufferedReader) -> bool:
        """Say whether the file's path now has another file, or one of another length or modification time, or none."""
        return not self.is_as_listed(file)

    def is_as_listed(self, file: Stored) -> bool:
        """Check whether a file is the listed one; False if it is another one, or gone. Raises as `ask` does."""
        with _on_executors(file.path):
            now = self.status(file.path)
        return now is not None and now.is_of(file)

    def status(self, path: str, address: str = "") -> Status | None:
        """Return the current status of a file, None if there is none: at a path `hdfs://…`, or at a separate `address`.

        Raises as `ask` does.
        """
        try:
            found = self.ask("GETFILESTATUS", path, address or below(path), "FileStatus")
        except NotAsListedError:
            return None
        return None if found["type"] == "DIRECTORY" else status_of(path, found)

    def checksum(self, file: Stored) -> str | None:
        """Return the checksum that HDFS keeps of a file, with its kind; None if it gives none.

        It is computed from the CRCs of chunks, and differs by the sizes of chunks and blocks. Raises NotAsListedError if the
        file is gone, BeingWrittenError, UnreachableError, FatalError.
        """
        blocks = _Blocks(self, file)
        for attempt in range(_ATTEMPTS):
            try:
                found = blocks.told("GETFILECHECKSUM", "FileChecksum")
            except NotSupportedError:
                return None
            except GivenUpError:
                raise  # each name node was already tried as often
            except UnreachableError:
                if attempt + 1 == _ATTEMPTS:
                    raise
                time.sleep(_PAUSE_S * 2**attempt)
            else:
                return f"{found['algorithm']}:{found['bytes']}" if found else None
        raise AssertionError("the last attempt returns or raises")

    def ask(self, op: str, path: str, address: str, key: str, **parameters: str) -> Any:
        """Return the value of `key` in the active name node's answer for an `address` below its root; messages call it `path`.

        Raises NotAsListedError if nothing exists there, GivenUpError if no name node answers, FatalError if it refuses.
        """
        try:
            return self.asked(op, path, address, parameters, lambda answer, url: webhdfs.told(answer, url, path, key))
        except NotSupportedError as error:
            raise webhdfs.refused(path, f"{op} is not supported", "read by a name node of Hadoop 3") from error

    def asked(
        self, op: str, path: str, address: str, parameters: Mapping[str, str], take: Callable[[Any, str], _Answer]
    ) -> _Answer:
        """Return the result of `take` for the active name node's answer: 200, or 307 to a data node. Raises as `ask` does."""
        query = urlencode({"op": op, "user.name": self.user, **parameters})
        last: Exception | None = None
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(_PAUSE_S * 2**attempt)
            for endpoint in self.endpoints:
                url = f"{endpoint}/webhdfs/v1{quote(address)}?{query}"
                try:
                    return take(webhdfs.get(url, path), url)
                except NoneLeftError:
                    raise
                except UnreachableError as error:
                    last = error
        raise GivenUpError(str(last)) from last


class _Blocks:
    """Requests one file from data nodes, by its id. One that did not answer is not used again while there are others."""

    def __init__(self, storage: HdfsStorage, file: Stored) -> None:
        self._storage = storage
        self._file = file
        self._address = f"/.reserved/.inodes/{file.etag.partition('-')[0]}"
        self._silent: dict[str, None] = {}

    def get(self, start: int, end: int) -> Any:
        """Return the body of the bytes [start, end) of the file that was listed. Raises as `Storage.open` does."""
        with _on_executors(self._file.path):
            body, _ = self._answer("OPEN", {"offset": str(start), "length": str(end - start)})
            now = self._storage.status(self._file.path, self._address)
        if now is None or not now.is_of(self._file):
            body.close()
            raise NotAsListedError(self._file.path)
        return body

    def told(self, op: str, key: str) -> Any:
        """Return the value of a key in a data node's answer, as JSON."""
        answer, url = self._answer(op, {})
        return webhdfs.told(answer, url, self._file.path, key)

    def _answer(self, op: str, parameters: Mapping[str, str]) -> tuple[Any, str]:
        """Return the answer and its URL: of a data node if the name node redirects to one, else of the name node."""
        others = {"excludedatanodes": ",".join(self._silent)} if self._silent else {}
        path = self._file.path
        try:
            sent, url = self._storage.asked(
                op, path, self._address, {**parameters, **others}, lambda answer, url: (answer, url)
            )
        except NoneLeftError:
            self._silent.clear()
            raise
        if sent.status != 307:
            return sent, url
        location = sent.headers.get("Location", "")
        sent.drain_conn()
        sent.release_conn()
        try:
            return webhdfs.get(location, path), location
        except UnreachableError:
            self._exclude(urlsplit(location).hostname or "")
            raise

    def _exclude(self, host: str) -> None:
        """Exclude the data nodes of a host from now on. The name node knows them by their addresses."""
        with contextlib.suppress(OSError):
            self._silent[socket.gethostbyname(host)] = None


def status_of(path: str, found: Mapping[str, Any]) -> Status:
    """Return the status of a file in WebHDFS. Its `etag` is the file's id, and its modification time.

    Raises FatalError if there is no id: then a file that replaces another is not detected.
    """
    if not found.get("fileId"):
        raise FatalError(
            f"{path}: the server gives no ids of files, as HttpFS does not",
            code="storage-refused",
            hint="nothing was sent; let endpoint in storage of [source] name the web address of the name node itself",
        )
    mtime = int(found["modificationTime"])
    return Status(int(found["length"]), mtime, f"{int(found['fileId'])}-{mtime}")


def pages_of(storage: HdfsStorage, folder: str) -> Iterator[list[Mapping[str, Any]]]:
    """Yield the entries of a folder `hdfs://…`, a page for each request. Raises as `HdfsStorage.ask` does.

    Raises FatalError if a page does not follow the one before it: some servers ignore parameters that they do not know.
    """
    after: dict[str, str] = {}
    while True:
        listing = storage.ask("LISTSTATUS_BATCH", folder, below(folder), "DirectoryListing", **after)
        page = listing["partialListing"]["FileStatuses"]["FileStatus"]
        if page and page[-1]["pathSuffix"] == after.get(_START_AFTER):
            raise FatalError(
                f"{folder}: the name node gives the same page of the listing again",
                code="storage-refused",
                hint="nothing was sent; list the files of smaller folders, or raise dfs.ls.limit of the name node",
            )
        yield page
        if not listing["remainingEntries"] or not page:
            return
        after = {_START_AFTER: page[-1]["pathSuffix"]}


@contextmanager
def _on_executors(path: str) -> Iterator[None]:
    """Turn errors of the installation into a task's error: other packages may be installed than on the driver."""
    try:
        yield
    except SpecError as error:
        raise FatalError(f"{path}: {error.message}", code=error.code, hint=error.hint) from error
