"""Lists files of HDFS (`places.Places`): folder by folder over WebHDFS, without a JVM.

hdfs://namenode:8020/orders/2026-*/*.jsonl ─▶ LISTSTATUS_BATCH of each folder (file_tree.py) ─▶ paths, lengths, ids of files
"""

from __future__ import annotations

import builtins
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from eosingest.errors import FatalError, SpecError
from eosingest.host.interruptible import Threads
from eosingest.host.interruption import never
from eosingest.protocol.source import Version
from eosingest.sources.files.listing import etags
from eosingest.sources.files.listing.errors import while_listed
from eosingest.sources.files.listing.file_tree import Walk
from eosingest.sources.files.listing.folders import FolderLook, normalised
from eosingest.sources.files.listing.globs import is_plain
from eosingest.sources.files.listing.places import StorePlaces, Written, answered, waited
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.storage.hadoop_site import endpoints_of
from eosingest.sources.files.storage.hdfs import HdfsStorage, pages_of, status_of
from eosingest.sources.files.storage.port import NotAsListedError, Status
from eosingest.sources.files.storage.schemes import HDFS_URI, below, store_of
from eosingest.sources.files.storage.webhdfs import BeingWrittenError

_AT_A_TIME = 16
_ASKED_AHEAD = 64  # files whose checksums are requested, or received, before they are needed
_VIRTUAL = re.compile(r"[/{,]\.(?:snapshot|reserved)(?:[/},]|$)")
_ASKED_ONE_BY_ONE = 16  # files of one folder; of more, the folder is listed


def storage_of(paths: Iterable[str], endpoint: str | None) -> HdfsStorage:
    """Return the storage of the name node of such paths: at `endpoint`, else as the site configures it (hadoop_site.py).

    `endpoint` may name several, with commas between them. The user is the one of Hadoop's clients: HADOOP_USER_NAME, else that
    of this process.
    """
    given = [one.strip().rstrip("/") for one in (endpoint or "").split(",") if one.strip()]
    authorities = sorted({_authority(path) for path in paths})
    found = given or [one for authority in authorities for one in endpoints_of(authority)]
    return HdfsStorage(tuple(found), _user())


class HdfsPlaces(StorePlaces):
    """The files of a name node as the source of files lists them."""

    def __init__(self, storage: HdfsStorage, check: Callable[[], None]) -> None:
        """`check` is called for each request, and raises to end a run that was interrupted."""
        self.storage = storage
        self._check = check
        self._authority: str | None = None
        self._ahead: _Ahead | None = None

    def parse(self, text: str) -> Written:
        """Parse a path. Nothing in it is decoded; `.` and `..` are resolved in the text.

        Raises SpecError for a path not of HDFS, or virtual, and for no name node or another one than in earlier paths.
        """
        if HDFS_URI.match(text) is None:
            raise SpecError(
                f"'{text}' is no path of HDFS, and others of [source] are: hdfs:// cannot be mixed with other paths.",
                code="path-scheme",
                hint="Give local files and those of HDFS a job each.",
            )
        authority = _authority(text)
        if not authority or not is_plain(authority) or "@" in authority or "\0" in text:
            raise SpecError(
                f"{text!r} in [source] names no name node.", code="path", hint='Write "hdfs://namenode:8020/folder/*".'
            )
        if _VIRTUAL.search(text):
            raise SpecError(
                f"'{text}' is in a folder that HDFS makes up: a file there shares its id with another one, which may differ.",
                code="path",
                hint="Copy the files of a snapshot to a folder, and name that.",
            )
        if self._authority not in (None, authority):
            raise SpecError(
                f"'{text}' is of another name node than {self._authority}.",
                code="path-scheme",
                hint="Give the files of each name node a separate job.",
            )
        self._authority = authority
        pattern = normalised(below(text)).lstrip("/")
        return Written(text, f"hdfs://{authority}", "" if pattern == "." else pattern, relative=False)

    def look(self, check: Callable[[], None], *, glance: bool = False) -> HdfsLook:
        """Begin a listing. It sends a request for each folder, also for a `glance`."""
        return HdfsLook(self.storage, f"hdfs://{self._authority}", check)

    def version(self, file: SourceFile, known: Iterable[Version]) -> Version:
        """Return length, id and checksum of a file; see `places.Places.version`. That of a `known` version is not requested."""
        for version in known:
            if _is_as_listed(file, version):
                return version
        seen, checksum = etags.version_of(file), self._checksum(file)
        return seen if checksum is None else {**seen, "checksum": checksum}

    def unchanged(self, file: SourceFile, recorded: Sequence[Version]) -> bool:
        """Say whether a file is unchanged since it was recorded: by its id and time, else by the checksum of HDFS."""
        if not all(etags.is_of_object(version) and version.get("length") == file.length for version in recorded):
            return False
        others = {str(version.get("checksum", "")) for version in recorded if version.get("etag") != file.etag}
        return not others or others == {self._checksum(file)}

    @contextmanager
    def ahead(self, files: Iterable[tuple[SourceFile, Sequence[Version]]]) -> Iterator[None]:
        """Prefetch the checksums of several files at a time in the body; see `places.Places.ahead`."""
        unknown = (
            file
            for file, recorded in files
            if not recorded or not all(_is_as_listed(file, version) for version in recorded)
        )
        with Threads(_AT_A_TIME, "store") as threads:
            self._ahead = _Ahead(self.storage, unknown, threads)
            try:
                yield
            finally:
                self._ahead = None

    def _checksum(self, file: SourceFile) -> str | None:
        asked = None if self._ahead is None else self._ahead.asked(file)
        try:
            if asked is None:
                return waited(lambda: self.storage.checksum(file), self._check)
            self._check()
            return answered(asked, self._check)
        except NotAsListedError as error:
            raise while_listed(file) from error
        except BeingWrittenError as error:
            raise FatalError(
                f"{file.path} is still being written: HDFS reports neither its length nor its modification time.",
                code="file-open",
                hint="nothing of this run was sent; run again when it is closed, or leave it out by a narrower path",
            ) from error

    def now(self, paths: builtins.list[str]) -> dict[str, Status]:
        """Return the current status of files that exist. A folder with many of the files is listed."""
        by_folder: dict[str, builtins.list[str]] = defaultdict(builtins.list)
        for path in paths:
            by_folder[path.rpartition("/")[0]].append(path)
        found: dict[str, Status] = {}
        alone = builtins.list[str]()
        for folder, inside in by_folder.items():
            if len(inside) <= _ASKED_ONE_BY_ONE:
                alone += inside
                continue
            tree = HdfsTree(self.storage, store_of(folder), self._check)
            if tree.is_folder(below(folder)):
                tree.entries(below(folder))
                found.update((path, status) for path in inside if (status := tree.status(path)) is not None)
        with Threads(_AT_A_TIME, "store") as threads:
            asked = [threads.begin(partial(self.storage.status, path)) for path in alone]
            statuses = [answered(each, self._check) for each in asked]
        return found | {path: now for path, now in zip(alone, statuses, strict=True) if now is not None}


class _Ahead:
    """Prefetches the checksums of `files`, for a few files after the needed one."""

    def __init__(self, storage: HdfsStorage, files: Iterator[SourceFile], threads: Threads) -> None:
        """Request the first ones."""
        self._storage = storage
        self._files = files
        self._threads = threads
        self._asked: dict[SourceFile, Future[str | None]] = {}  # in the order of `files`
        self._go_on()

    def asked(self, file: SourceFile) -> Future[str | None] | None:
        """Return the request for a file's checksum; None if there is none. The last one may be needed again, none before it."""
        if file not in self._asked:
            return None
        while next(iter(self._asked)) != file:
            del self._asked[next(iter(self._asked))]
        self._go_on()
        return self._asked[file]

    def _go_on(self) -> None:
        for file in islice(self._files, _ASKED_AHEAD - len(self._asked)):
            self._asked[file] = self._threads.begin(partial(self._storage.checksum, file))


def _is_as_listed(file: SourceFile, version: Version) -> bool:
    """Say whether the listing alone shows that a file has a version."""
    seen = etags.version_of(file)
    return {name: version.get(name) for name in seen} == seen


class HdfsLook(FolderLook):
    """One listing (`places.Look`)."""

    def __init__(self, storage: HdfsStorage, prefix: str, check: Callable[[], None]) -> None:
        """List nothing yet."""
        self._tree = HdfsTree(storage, prefix, check)
        super().__init__(
            Walk(check, self._tree), prefix, "Nothing was sent. Correct path in [source], or put files there."
        )

    def status(self, path: str) -> Status | None:
        """Return the listed status of a file."""
        return self._tree.status(path)


@dataclass(frozen=True)
class _Entry:
    """An entry of a folder (`file_tree.Entry`)."""

    name: str
    path: str
    is_folder: bool

    def is_dir(self) -> bool:
        return self.is_folder


class HdfsTree:
    """Folders of HDFS (a `file_tree.Tree`), by paths without `prefix` (hdfs://name). A known status is not requested again."""

    def __init__(self, storage: HdfsStorage, prefix: str, check: Callable[[], None] = never) -> None:
        """Send no request yet."""
        self._storage = storage
        self._prefix = prefix
        self._check = check
        self._files: dict[str, Status] = {}
        self._folders: dict[str, bool] = {}  # of known paths: whether it is a folder

    def entries(self, folder: str) -> list[_Entry]:
        """Return the entries of a folder."""
        folder = os.path.normpath(folder)
        path = f"{self._prefix}{folder}"
        try:
            found = waited(lambda: [each for page in pages_of(self._storage, path) for each in page], self._check)
        except NotAsListedError as error:
            raise FatalError(
                f"{path} is gone since the folder above it was listed.",
                code="file-unreadable",
                hint="committed records are kept; run again",
            ) from error
        return [self._entry(folder, each) for each in found]

    def exists(self, path: str) -> bool:
        """Say whether a path is a file or a folder."""
        return self.is_folder(path) or os.path.normpath(path) in self._files

    def is_folder(self, path: str) -> bool:
        """Say whether a path is a folder."""
        path = os.path.normpath(path)
        if path not in self._folders and path not in self._files:
            self._folders[path] = False
            address = f"{self._prefix}{path}"
            try:
                found = waited(lambda: self._storage.ask("GETFILESTATUS", address, path, "FileStatus"), self._check)
            except NotAsListedError:
                return False
            self._keep(path, found)
        return self._folders.get(path, False)

    def identity(self, folder: str) -> str:
        """Return the path: there are no links."""
        return folder

    def status(self, path: str) -> Status | None:
        """Return the known status of a file `hdfs://…`; None if there is none."""
        return self._files.get(path.removeprefix(self._prefix))

    def _entry(self, folder: str, found: Mapping[str, Any]) -> _Entry:
        name = str(found["pathSuffix"])
        path = f"{folder.rstrip('/')}/{name}"
        self._keep(path, found)
        return _Entry(name, path, self._folders.get(path, False))

    def _keep(self, path: str, found: Mapping[str, Any]) -> None:
        if found["type"] == "DIRECTORY":
            self._folders[path] = True
        else:
            self._files[path] = status_of(f"{self._prefix}{path}", found)


def _authority(path: str) -> str:
    scheme = HDFS_URI.match(path)
    return path[scheme.end() :].partition("/")[0] if scheme is not None else ""


def _user() -> str:
    """Return the user's name as Hadoop's clients find it without Kerberos."""
    import pwd

    given = os.environ.get("HADOOP_USER_NAME")
    if given:
        return given
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a user id of a container, which has no name
        return str(os.geteuid())
