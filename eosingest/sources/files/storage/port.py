"""Defines how all readers of a file use its storage: they open it as it was listed. How files are found is in places.py.

    SourceFile ─▶ Storage.open ─▶ bytes

local.py is the local file system, s3.py are objects in buckets, hdfs.py is HDFS.
"""

from __future__ import annotations

from io import BufferedReader
from typing import NamedTuple, Protocol

from eosingest.errors import TemporaryError


class NotAsListedError(Exception):
    """The bytes of a file would not be those of the listed one: it was changed, or is gone."""


class UnreachableError(OSError):
    """A storage does not answer, after several requests. It may, later."""

    def error(self) -> TemporaryError:
        """Return it as an error of a run."""
        return TemporaryError(
            str(self),
            code="storage-unreachable",
            hint="committed records are kept; check the network, and storage of [source]; then run again",
        )


class GivenUpError(UnreachableError):
    """A storage does not answer, and was tried so often that the reader does not retry."""


class Status(NamedTuple):
    """The listed status of a file: `length` in bytes, `mtime_ms` in milliseconds since 1970; in a store also its `etag`."""

    length: int
    mtime_ms: int
    etag: str = ""

    def is_of(self, file: Stored) -> bool:
        """Say whether this is the listed status of a file of a store."""
        return (self.length, self.etag) == (file.length, file.etag)


class Stored(Protocol):
    """A file as it was listed (`SourceFile`), as far as its storage needs it."""

    @property
    def path(self) -> str:
        """Its path."""

    @property
    def length(self) -> int:
        """Its length in bytes."""

    @property
    def mtime_ms(self) -> int:
        """When it was modified, in milliseconds since 1970."""

    @property
    def etag(self) -> str:
        """The store's name for this content; "" for a local file."""


class Storage(Protocol):
    """Opens listed files. Pickled and sent to the tasks, with each file."""

    def need_packages(self) -> None:
        """Raise SpecError if a package is missing that requests need."""

    def open(self, file: Stored, until: int | None = None) -> BufferedReader:
        """Open a file to be read from any byte; `until`: no byte after that one is likely to be read.

        Raises FileNotFoundError, NotAsListedError (also when it is read), or another OSError.
        """

    def is_changed(self, file: Stored, opened: BufferedReader) -> bool:
        """Say whether the file that was opened is another one than the listed file."""

    def is_as_listed(self, file: Stored) -> bool:
        """Check whether a file is the listed one; False if it is another one, or gone. Raises as `open` does."""
