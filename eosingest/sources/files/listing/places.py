"""Defines how the driver uses a storage of files: finds files, determines their versions, and compares them with the listing.

    path of the spec ─▶ Places.parse ─▶ Look.find, Look.status ─▶ SourceFile ─▶ Places.version

local_places.py is the local file system, s3_places.py are buckets, hdfs_places.py is HDFS.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol, TypeVar

from eosingest.errors import SpecError
from eosingest.host.interruptible import begin, result_of
from eosingest.protocol.source import Version
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.storage.port import Status, Storage, UnreachableError

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class Written:
    """A path of the spec: as written (`text`), and as a glob `pattern` below an absolute `folder`, which is no glob."""

    text: str
    folder: str
    pattern: str
    relative: bool

    @property
    def absolute(self) -> str:
        """The path as a whole."""
        return f"{self.folder.rstrip('/')}/{self.pattern}"


class Look(Protocol):
    """One listing of the storage. `hidden` counts names that were left out; `partial`: it was not read to its end."""

    hidden: int
    partial: bool

    def find(self, written: Written, *, recursive: bool, may_match_nothing: bool) -> list[str]:
        """Return the files that a path of the spec names. Raises SpecError if it names nothing."""

    def is_glob(self, written: Written) -> bool:
        """Say whether a path is a glob, and not also an existing name."""

    def status(self, path: str) -> Status | None:
        """Return the current status of a found file; None if it was deleted. Raises FatalError if it cannot be read."""


class Places(Protocol):
    """A storage as the source of files lists it."""

    @property
    def storage(self) -> Storage:
        """The storage that opens its files."""

    def parse(self, text: str) -> Written:
        """Parse a path of the spec. Raises SpecError for one of another storage."""

    def look(self, check: Callable[[], None], *, glance: bool = False) -> Look:
        """Begin a listing. `check` is called meanwhile, and raises to end it. `glance`: the beginning is enough."""

    @property
    def base(self) -> str:
        """The base of file names if no `root` is given."""

    def joined(self, base: str, name: str) -> str:
        """Return the path of the file that has a name below `base`."""

    def missing(self, paths: Iterable[str]) -> builtins.list[str]:
        """Return the paths at which nothing exists."""

    def changed(self, files: Sequence[SourceFile]) -> builtins.list[SourceFile]:
        """Return the files that have changed since they were listed, as far as a listing shows."""

    def version(self, file: SourceFile, known: Iterable[Version]) -> Version:
        """Return a listed file's version, as offset records keep it; `known` are the versions that they have.

        Raises ChangedError if the file changed since it was listed, FatalError if it cannot be read.
        """

    def unchanged(self, file: SourceFile, recorded: Sequence[Version]) -> bool:
        """Say whether a file has the content of all recorded versions. Raises as `version` does."""

    def ahead(self, files: Iterable[tuple[SourceFile, Sequence[Version]]]) -> AbstractContextManager[None]:
        """Prefetch for `unchanged` and `version` in the body, called in this order; each file has its recorded versions."""


class StorePlaces:
    """The common part of stores (`Places`): names are paths, and `now` returns the status of files."""

    base = ""

    def now(self, paths: builtins.list[str]) -> dict[str, Status]:
        """Return the current status of files that exist."""
        raise NotImplementedError

    def ahead(self, files: Iterable[tuple[SourceFile, Sequence[Version]]]) -> AbstractContextManager[None]:
        """Prefetch nothing."""
        return nullcontext()

    def joined(self, base: str, name: str) -> str:
        """Return the path of a file: its name, or that below `base`."""
        return f"{base.rstrip('/')}/{name}" if base else name

    def missing(self, paths: Iterable[str]) -> builtins.list[str]:
        """Return the paths at which no file exists."""
        wanted = builtins.list(paths)
        there = self.now(wanted)
        return [path for path in wanted if path not in there]

    def changed(self, files: Sequence[SourceFile]) -> builtins.list[SourceFile]:
        """Return the files that have another length or ETag now, or that are gone."""
        there = self.now([file.path for file in files])
        return [file for file in files if (found := there.get(file.path)) is None or not found.is_of(file)]


def waited(ask: Callable[[], _Answer], check: Callable[[], None]) -> _Answer:
    """Query a store in another thread, so that `check` can end the wait. An UnreachableError becomes a TemporaryError."""
    check()
    return answered(begin(ask, "store"), check)


def answered(asked: Future[_Answer], check: Callable[[], None]) -> _Answer:
    """Return or raise the answer of a store to another thread, as `waited` does."""
    try:
        return result_of(asked, check)
    except UnreachableError as error:
        raise error.error() from error


def names_hidden(written: Written) -> SpecError:
    """Return the error for a file that is named, and never read."""
    return SpecError(
        f"'{written.text}' names a file that Spark hides: it begins with '_' or '.', or ends with '._COPYING_'.",
        code="path-hidden",
        hint="Rename the file.",
    )


def not_found(written: Written, hint: str) -> SpecError:
    """Return the error for a path at which nothing exists."""
    return SpecError(
        f"'{written.text}' names no file or folder; looked for {written.absolute}.", code="path-not-found", hint=hint
    )


def only_deeper(written: Written) -> SpecError:
    """Return the error for a folder that has files only in its subfolders."""
    return SpecError(
        f"'{written.text}' holds no file itself, and of the folders in it only column=value ones are read.",
        code="path-not-found",
        hint=f"To read all folders below it, write recursive = true in [source]; or a '*' for each level:"
        f' path = "{written.text.rstrip("/")}/*".',
    )
