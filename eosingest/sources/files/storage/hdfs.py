"""Files of HDFS as a storage: read over WebHDFS by the id of exactly the file that was listed. Listing is in hdfs_places.py.

    SourceFile ─▶ HdfsStorage.open ─▶ ObjectStream (object_stream.py) ─▶ OPEN /.reserved/.inodes/ID ─▶ a data node

The id of a file is never given to another one, so what was renamed or written anew in its place is not read for it; what was
appended or cut off shows in length and modification time. By urllib3, which `eosingest[hdfs]` installs.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BufferedReader
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from eosingest.errors import EosingestError, FatalError, SpecError
from eosingest.sources.files.storage.object_stream import ObjectStream
from eosingest.sources.files.storage.port import NotAsListedError, Status, Stored, UnreachableError

_BUFFER_BYTES = 1 << 20
_CONNECT_S, _READ_S, _ATTEMPTS = 5, 30, 4
_PAUSE_S = 0.2  # doubled from try to try
_POOL = 32  # connections: of the looks at many files at a time
_SAID_BYTES = 1 << 20  # of an answer that is an error
# By the name of Hadoop's exception: those that another name node, or a later try, may not give.
_LATER = frozenset({"StandbyException", "RetriableException", "SafeModeException", "ServerTooBusyException"})
_LATER_TEXT = re.compile(
    r"Failed to find datanode|No active nodes contain|Could not obtain block|Zero blocklocations|ConnectException"
)
_REFUSED = frozenset({"AccessControlException", "SecurityException", "AuthorizationException"})
_BEYOND_END = re.compile(r"out of the range")
_BEING_WRITTEN = re.compile(r"is under construction")


class BeingWrittenError(Exception):
    """A file is open for writing, so its length and its content are not known."""


@dataclass(frozen=True)
class HdfsStorage:
    """How a name node is reached (`port.Store`): its web addresses, of which one is active, and the `user` who reads."""

    endpoints: tuple[str, ...]
    user: str

    def open(self, file: Stored, until: int | None = None) -> BufferedReader:
        """Open a file; see `port.Storage`. Nothing is asked before it is read."""
        data_nodes = _DataNodes(self, file.path, f"/.reserved/.inodes/{inode_of(file)}")
        return BufferedReader(ObjectStream(file.path, data_nodes.get, file.length, until), _BUFFER_BYTES)

    def is_changed(self, file: Stored, opened: BufferedReader) -> bool:
        """Say whether at the file's path there is another one now, or one of another length or modification time, or none."""
        return not self.is_as_listed(file)

    def is_as_listed(self, file: Stored) -> bool:
        """Ask whether a file is the one that was listed; False where it is another one, or gone. Raises as `ask` does."""
        now = self.status(file.path)
        return now is not None and (now.length, now.etag) == (file.length, file.etag)

    def status(self, path: str) -> Status | None:
        """Return what a file is now, None where there is no file at a path `hdfs://…`. Raises as `ask` does."""
        try:
            found = self.ask("GETFILESTATUS", path, below(path))["FileStatus"]
        except NotAsListedError:
            return None
        return None if found["type"] == "DIRECTORY" else status_of(path, found)

    def checksum(self, file: Stored) -> str | None:
        """Return the checksum that HDFS keeps of a file, with its kind; None where it gives none that tells contents apart.

        It is made of the CRCs of its chunks, and differs by the sizes of chunks and blocks. Raises NotAsListedError where the
        file is gone, BeingWrittenError, UnreachableError, FatalError.
        """
        address = f"/.reserved/.inodes/{inode_of(file)}"
        for attempt in range(_ATTEMPTS):
            try:
                with_body = _DataNodes(self, file.path, address).answer("GETFILECHECKSUM", {})
                found = json.loads(with_body.read(_SAID_BYTES))["FileChecksum"]
            except UnreachableError:
                if attempt + 1 == _ATTEMPTS:
                    raise
                time.sleep(_PAUSE_S * 2**attempt)
            except FatalError as error:
                if error.code == "storage-refused" and "Unsupported" in error.message:
                    return None
                raise
            else:
                return None if "NULL" in found["algorithm"] else f"{found['algorithm']}:{found['bytes']}"
        raise AssertionError("the last attempt returns or raises")

    def ask(self, op: str, path: str, address: str, **parameters: str) -> Any:
        """Return what the name node says of an `address` below its root, as JSON; `path` is its name for messages.

        Raises NotAsListedError where nothing is there, UnreachableError where no name node answers, FatalError where it
        refuses.
        """
        answer = self.answered(op, path, address, parameters)
        try:
            said = json.loads(answer.read())
        except ValueError as error:
            raise _no_webhdfs(path, answer) from error
        finally:
            answer.release_conn()
        return said

    def answered(self, op: str, path: str, address: str, parameters: Mapping[str, str]) -> Any:
        """Return the answer of the name node that is active: 200, or 307 to a data node. Raises as `ask` does."""
        query = urlencode({"op": op, "user.name": self.user, **parameters})
        last: Exception | None = None
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(_PAUSE_S * 2**attempt)
            for endpoint in self.endpoints:
                try:
                    return requested(f"{endpoint}/webhdfs/v1{quote(address)}?{query}", path)
                except UnreachableError as error:
                    last = error
        raise UnreachableError(str(last)) from last


class _DataNodes:
    """What data nodes give of one file; those that did not answer are not asked again."""

    def __init__(self, storage: HdfsStorage, path: str, address: str) -> None:
        self._storage = storage
        self._path = path
        self._address = address
        self._silent: dict[str, None] = {}

    def get(self, start: int, end: int) -> Any:
        """Return the body of the bytes [start, end). Raises as `Storage.open` says."""
        return self.answer("OPEN", {"offset": str(start), "length": str(end - start)})

    def answer(self, op: str, parameters: Mapping[str, str]) -> Any:
        """Return the body of an answer of a data node, to which the name node sends who asks."""
        others = {"excludedatanodes": ",".join(self._silent)} if self._silent else {}
        sent = self._storage.answered(op, self._path, self._address, {**parameters, **others})
        if sent.status != 307:
            return sent
        location = sent.headers.get("Location", "")
        sent.drain_conn()
        sent.release_conn()
        try:
            return requested(location, self._path)
        except UnreachableError:
            self._exclude(urlsplit(location).hostname or "")
            raise

    def _exclude(self, host: str) -> None:
        """Ask for no data node of a host again. The name node knows them by their addresses."""
        with contextlib.suppress(OSError):
            self._silent[socket.gethostbyname(host)] = None


def requested(url: str, path: str) -> Any:
    """Return an answer of 200 or 307, whose body is not read yet; raises for every other one, as `HdfsStorage.ask` says."""
    pool, failures = _pool(os.getpid())
    try:
        answer = pool.request("GET", url, redirect=False, preload_content=False)
    except failures as error:
        raise UnreachableError(f"{path}: {_host(url)} does not answer: {error}") from error
    if answer.status in (200, 307):
        return answer
    try:
        raise _error_of(answer, path, _host(url))
    finally:
        answer.release_conn()


def below(path: str) -> str:
    """Return what stands behind the name node in a path `hdfs://name/…`; "/" where nothing does."""
    return "/" + path.partition("://")[2].partition("/")[2]


def inode_of(file: Stored) -> int:
    """Return the id of a listed file."""
    return int(file.etag.partition("-")[0])


def status_of(path: str, found: Mapping[str, Any]) -> Status:
    """Return what WebHDFS says of a file. Its `etag` is the file's id, and its modification time.

    Raises FatalError where there is no id: then a file that replaces another is not told.
    """
    if not found.get("fileId"):
        raise FatalError(
            f"{path}: the server gives no ids of files, as HttpFS does not",
            code="storage-refused",
            hint="nothing was sent; let endpoint in storage of [source] name the web address of the name node itself",
        )
    mtime = int(found["modificationTime"])
    return Status(int(found["length"]), mtime, f"{int(found['fileId'])}-{mtime}")


@functools.lru_cache(maxsize=4)
def _pool(process: int) -> tuple[Any, tuple[type[Exception], ...]]:
    """Return what makes requests, once in a process (a fork must not share its connections), and what it raises."""
    try:
        import urllib3
    except ImportError as error:
        raise SpecError(
            "to read hdfs:// the package urllib3 is needed, and it is not installed",
            code="package-missing",
            hint="pip install 'eosingest[hdfs]'",
        ) from error
    timeout = urllib3.Timeout(connect=_CONNECT_S, read=_READ_S)
    pool = urllib3.PoolManager(num_pools=64, maxsize=_POOL, retries=False, timeout=timeout)
    return pool, (urllib3.exceptions.HTTPError, OSError)


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def _error_of(answer: Any, path: str, host: str) -> Exception:
    """Return our error for an answer that is one."""
    try:
        said = json.loads(answer.read(_SAID_BYTES))["RemoteException"]
        kind, message = str(said["exception"]), str(said.get("message", "")).splitlines()[0].rstrip(".")
    except (ValueError, KeyError, TypeError, IndexError):
        if answer.status == 401:
            return _refused(
                path, f"{host} asks for Kerberos", "Kerberos is not supported: read by a name node without it"
            )
        if answer.status >= 500:
            return UnreachableError(f"{path}: {host} answers {answer.status}")
        return _no_webhdfs(path, answer)
    if kind == "FileNotFoundException" or _BEYOND_END.search(message):
        return NotAsListedError(f"{path}: {message}")
    if _BEING_WRITTEN.search(message):
        return BeingWrittenError(path)
    if kind in _LATER or _LATER_TEXT.search(message):
        return UnreachableError(f"{path}: {host}: {kind}: {message}")
    if kind in _REFUSED or answer.status == 401:
        return _refused(
            path,
            f"{kind}: {message}",
            "give the user of this run the right to read it, and its folders",
        )
    return _refused(path, f"{kind}: {message}", "correct path or storage of [source]")


def _refused(path: str, said: str, way_out: str) -> EosingestError:
    return FatalError(
        f"{path}: HDFS refused: {said}",
        code="storage-refused",
        hint=f"what was committed is kept; {way_out}; then run again",
    )


def _no_webhdfs(path: str, answer: Any) -> EosingestError:
    return _refused(
        path,
        f"an answer that is not one of WebHDFS ({answer.status})",
        "let endpoint in storage of [source] name the web address of the name node, such as http://namenode:9870",
    )


def pages_of(storage: HdfsStorage, folder: str) -> Iterator[list[Mapping[str, Any]]]:
    """Yield what a folder `hdfs://…` holds, a page for each request. Raises as `HdfsStorage.ask` does."""
    after: dict[str, str] = {}
    while True:
        listing = storage.ask("LISTSTATUS_BATCH", folder, below(folder), **after)["DirectoryListing"]
        page = listing["partialListing"]["FileStatuses"]["FileStatus"]
        yield page
        if not listing["remainingEntries"] or not page:
            return
        after = {"startAfter": page[-1]["pathSuffix"]}
