"""What is asked of a storage of files: of the driver, to find files; of all who read one, to open it as it was listed.

    path of the spec ─▶ Places.parse ─▶ Look.find, Look.status ─▶ SourceFile ─▶ Storage.open ─▶ bytes

local.py is the local file system, s3.py and s3_places.py are objects in buckets.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import BufferedReader
from typing import NamedTuple, Protocol

from eosingest.errors import SpecError, TemporaryError


class NotAsListedError(Exception):
    """What is read of a file would not be of the one that was listed: it was changed, or is gone."""


class UnreachableError(OSError):
    """A storage does not answer, after several requests. It may, later."""

    def error(self) -> TemporaryError:
        """Return it as an error of a run that has sent nothing."""
        return TemporaryError(
            str(self),
            code="storage-unreachable",
            hint="nothing was sent; check the network, and endpoint and region in storage of [source]; then run again",
        )


class Status(NamedTuple):
    """What a listing tells of a file: `length` in bytes, `mtime_ms` in milliseconds since 1970; of an object its `etag`."""

    length: int
    mtime_ms: int
    etag: str = ""


class Stored(Protocol):
    """A file as it was listed (`SourceFile`), as far as its storage needs it."""

    @property
    def path(self) -> str:
        """Where it lies."""

    @property
    def length(self) -> int:
        """Its length in bytes."""

    @property
    def mtime_ms(self) -> int:
        """When it was modified, in milliseconds since 1970."""

    @property
    def etag(self) -> str:
        """What its store calls this content; "" of a local file."""


class Storage(Protocol):
    """Opens listed files. Pickled into the tasks, with each file."""

    def open(self, file: Stored, until: int | None = None) -> BufferedReader:
        """Open a file to be read from any byte; `until`: no byte behind that one is likely to be read.

        Raises FileNotFoundError, NotAsListedError (also when it is read), or another OSError.
        """

    def is_changed(self, file: Stored, opened: BufferedReader) -> bool:
        """Say whether the file that was opened is another one than was listed."""


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
        """Return the files that a path of the spec stands for. Raises SpecError when it names nothing."""

    def is_glob(self, written: Written) -> bool:
        """Say whether a path is a glob, and nothing is called so."""

    def status(self, path: str) -> Status | None:
        """Return what a found file is now; None when it was deleted meanwhile. Raises FatalError where it cannot be read."""


class Places(Protocol):
    """A storage as the source of files lists it."""

    @property
    def storage(self) -> Storage:
        """What opens its files."""

    def parse(self, text: str) -> Written:
        """Take a path of the spec apart. Raises SpecError for one of another storage."""

    def look(self, check: Callable[[], None], *, glance: bool = False) -> Look:
        """Begin a listing. `check` is called in between, and raises to end it. `glance`: the beginning is enough."""

    @property
    def base(self) -> str:
        """What names of files are relative to where no `root` is given."""

    def joined(self, base: str, name: str) -> str:
        """Return the path of the file that has a name below `base`."""

    def missing(self, paths: Iterable[str]) -> builtins.list[str]:
        """Return those paths at which there is nothing."""

    def changed(self, files: Sequence[Stored]) -> builtins.list[Stored]:
        """Return those files that are not as they were listed, as far as a listing tells."""


def names_hidden(written: Written) -> SpecError:
    """Return the error for a file that is named, and never read."""
    return SpecError(
        f"'{written.text}' names a file that Spark hides: it begins with '_' or '.', or ends with '._COPYING_'.",
        code="path-hidden",
        hint="Rename the file.",
    )


def not_found(written: Written, hint: str) -> SpecError:
    """Return the error for a path at which there is nothing."""
    return SpecError(
        f"'{written.text}' names no file or folder; looked for {written.absolute}.", code="path-not-found", hint=hint
    )


def only_deeper(written: Written) -> SpecError:
    """Return the error for a folder all of whose files lie in folders of it."""
    return SpecError(
        f"'{written.text}' holds no file itself, and of the folders in it only column=value ones are read.",
        code="path-not-found",
        hint=f"To read all folders below it, write recursive = true in [source]; or a '*' for each level:"
        f' path = "{written.text.rstrip("/")}/*".',
    )
