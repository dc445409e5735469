"""The local file system as a storage of files: paths and `file:` URIs, found as Spark finds them (walk.py)."""

from __future__ import annotations

import builtins
import os
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import BufferedReader

from eosingest.errors import FatalError, SpecError
from eosingest.sources.files.globs import is_plain, may_be_literal
from eosingest.sources.files.names import check_readable_name, is_hidden
from eosingest.sources.files.storage.port import Status, Stored, Written, names_hidden, not_found, only_deeper
from eosingest.sources.files.walk import Found, Walk, exists, unreadable

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):/")


@dataclass(frozen=True)
class LocalStorage:
    """Opens local files (`port.Storage`)."""

    def open(self, file: Stored, until: int | None = None) -> BufferedReader:
        """Open the file; see `port.Storage`."""
        return open(file.path, "rb")

    def is_changed(self, file: Stored, opened: BufferedReader) -> bool:
        """Say whether an open file has another length or modification time than it was listed with."""
        return not is_as_listed(file, os.fstat(opened.fileno()))


LOCAL = LocalStorage()


class LocalPlaces:
    """The local disk as it is listed (`port.Places`)."""

    storage = LOCAL

    def __init__(self, directory: str) -> None:
        """Relative paths start at `directory`, an absolute one."""
        self.base = directory

    def parse(self, text: str) -> Written:
        """Take a path apart. `.` and `..` are taken out of the text, as Hadoop does it, not resolved on the disk.

        Raises SpecError for a path that no local disk has (another URI scheme, a zero byte).
        """
        scheme = SCHEME.match(text)
        if scheme and scheme[1].lower() != "file":
            raise SpecError(
                f"'{text}': only local paths, file: URIs and buckets (s3://) are read in this version, not {scheme[1]}:.",
                code="path-scheme",
            )
        path = _local_part(text) if scheme else text
        if not path or "\0" in path:
            raise SpecError(f"{text!r} in [source] is not a path.", code="path")
        relative = not os.path.isabs(path)
        folder, pattern = (self.base if relative else "/"), _normalised(path).lstrip("/")
        while pattern == ".." or pattern.startswith("../"):
            folder, pattern = os.path.dirname(folder), pattern[3:]
        return Written(text, folder, "" if pattern == "." else pattern, relative)

    def look(self, check: Callable[[], None], *, glance: bool = False) -> LocalLook:
        """Begin a listing; a second for 100,000 files, so never a `glance`."""
        return LocalLook(check)

    def joined(self, base: str, name: str) -> str:
        """Return an absolute path; `name` may be one, or begin with `..`."""
        return os.path.normpath(os.path.join(base, name))

    def missing(self, paths: Iterable[str]) -> builtins.list[str]:
        """Return those paths at which there is nothing, not even a link."""
        return [path for path in paths if not exists(path)]

    def changed(self, files: Sequence[Stored]) -> builtins.list[Stored]:
        """Return those whose length or modification time differ now, or that are gone."""
        return [file for file in files if not _is_as_listed_now(file)]


class LocalLook:
    """One listing (`port.Look`)."""

    partial = False

    def __init__(self, check: Callable[[], None]) -> None:
        self._walk = Walk(check)

    @property
    def hidden(self) -> int:
        """How many names were left out."""
        return self._walk.hidden

    @hidden.setter
    def hidden(self, number: int) -> None:
        self._walk.hidden = number

    def find(self, written: Written, *, recursive: bool, may_match_nothing: bool) -> list[str]:
        """Return the files that one path of the spec stands for; SpecError when it names nothing."""
        walk = self._walk
        literal = may_be_literal(written.pattern) and exists(written.absolute)
        path = os.path.normpath(written.absolute)
        matches = [Found(path, os.path.isdir(path))] if literal else walk.match(written.folder, written.pattern)
        if literal and is_hidden(os.path.basename(path)) and not matches[0].is_folder:
            raise names_hidden(written)
        files, too_deep = list[str](), walk.too_deep
        for match in matches:
            if match.is_folder:
                files += walk.everything_below(match.path) if recursive else walk.folder(match.path)
            elif is_hidden(os.path.basename(match.path)):
                walk.hidden += 1
            else:
                files.append(match.path)
        if not matches and not (may_match_nothing and self.is_glob(written)):
            raise not_found(
                written,
                "Relative paths start at the folder of the spec. Correct path in [source], or create what it names.",
            )
        if not files and walk.too_deep > too_deep:
            raise only_deeper(written)
        return files

    def is_glob(self, written: Written) -> bool:
        """Say whether a path is a glob, and nothing is called so."""
        return not exists(written.absolute) and not is_plain(written.pattern)

    def status(self, path: str) -> Status | None:
        """Return what a file is now; None when it was deleted since its folder was read."""
        check_readable_name(path)
        try:
            status = os.stat(path)
        except FileNotFoundError as error:
            if not os.path.islink(path):
                return None
            raise FatalError(f"{path} is a link to nowhere.", code="file-unreadable") from error
        except OSError as error:
            raise unreadable(path, error) from error
        if not stat.S_ISREG(status.st_mode):
            raise FatalError(f"{path} is not a regular file.", code="file-unreadable")
        if not os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
            raise FatalError(f"{path} may not be read by the user of this run.", code="file-unreadable")
        return Status(status.st_size, to_milliseconds(status.st_mtime_ns))


def to_milliseconds(mtime_ns: int) -> int:
    """Return a modification time in milliseconds as Hadoop's local file system reports it."""
    return mtime_ns // 1_000_000


def is_as_listed(file: Stored, status: os.stat_result) -> bool:
    """Say whether a file has the length and the modification time that it was listed with."""
    return (status.st_size, to_milliseconds(status.st_mtime_ns)) == (file.length, file.mtime_ms)


def _is_as_listed_now(file: Stored) -> bool:
    try:
        status = os.stat(file.path)
    except OSError:
        return False
    return is_as_listed(file, status)


def _local_part(uri: str) -> str:
    """Return the path of a `file:` URI. Nothing in it is decoded: Hadoop takes `%20` for these three characters."""
    rest = uri.partition(":")[2]
    if not rest.startswith("//"):
        return rest
    host, slash, path = rest[2:].partition("/")
    if host not in ("", "localhost"):
        raise SpecError(
            f"'{uri}' names the host '{host}': a file: URI of this machine begins with file:///.", code="path-scheme"
        )
    return slash + path


def _normalised(path: str) -> str:
    """Take `.` and `..` out of the text, up to where braces begin: inside `{a,b/../c}` they are no segments."""
    if "{" not in path:
        return os.path.normpath(path)
    before, slash, after = path[: path.index("{")].rpartition("/")
    return (os.path.normpath(before) if before else "") + slash + after + path[path.index("{") :]
