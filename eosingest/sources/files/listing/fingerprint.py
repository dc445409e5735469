"""Distinguishes a changed file from a copied one by its fingerprint, which offset records hold as the item's version.

Modification times change with every checkout and copy, lengths agree by chance: so a hash of the content decides if the
times differ. An edit that keeps length *and* modification time is not detected, nor one between the blocks of a sample.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import xxhash

from eosingest.protocol.source import Json, Version
from eosingest.sources.files.listing.errors import while_listed
from eosingest.sources.files.listing.file_tree import unreadable
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.storage.local import is_as_listed

MIB = 1024 * 1024
WHOLE_UP_TO = 64 * MIB
BLOCK = 64 * 1024
# One block per 32 MiB for any split size: the same content must hash alike in every run of the job.
STRIDE = 32 * MIB
_READ = MIB


@dataclass(frozen=True)
class Fingerprint:
    """The state of a file when its rows were read: kept in the offset records as the file's version.

    `content` is the hash of the content in hex: of all of it up to 64 MiB, of a sample above that.
    """

    length: int
    mtime_ms: int
    content: str

    def to_json(self) -> dict[str, Json]:
        """Return the form that goes into an offset record."""
        return {"length": self.length, "mtime": self.mtime_ms, "content": self.content}

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Fingerprint:
        """Read the form that `to_json` returns. Raises ValueError for anything else; it never guesses."""
        length, mtime_ms, content = value.get("length"), value.get("mtime"), value.get("content")
        if type(length) is not int or type(mtime_ms) is not int or type(content) is not str:
            raise ValueError(f"not a file fingerprint: {dict(value)!r}")
        return cls(length, mtime_ms, content)


class Fingerprints:
    """Makes the versions of a source's files, and compares them with recorded ones.

    The fingerprint of the last file is kept, so that consecutive calls for one file read it once.
    """

    def __init__(self, read: Callable[[SourceFile], Fingerprint]) -> None:
        """`read` reads a file, or a sample of it, and returns its fingerprint."""
        self._read = read
        self._last: tuple[SourceFile, Fingerprint] | None = None

    def version(self, file: SourceFile, known: Iterable[Version] = ()) -> Version:
        """Return a file's version now. A `known` one of its length and modification time is returned without reading it."""
        same = (version for version in known if _is_of(file, Fingerprint.from_json(version)))
        return next(same, None) or self._fingerprint(file).to_json()

    def unchanged(self, file: SourceFile, recorded: Sequence[Version]) -> bool:
        """Say whether a file has the length and the content of all recorded versions.

        It is read only if none of them has its modification time.
        """
        was = [Fingerprint.from_json(version) for version in recorded]
        if any(one.length != file.length for one in was):
            return False
        now = next((one for one in was if _is_of(file, one)), None) or self._fingerprint(file)
        return all(one.content == now.content for one in was)

    def _fingerprint(self, file: SourceFile) -> Fingerprint:
        if self._last is None or self._last[0] != file:
            self._last = (file, self._read(file))
        return self._last[1]


def _is_of(file: SourceFile, fingerprint: Fingerprint) -> bool:
    return (file.length, file.mtime_ms) == (fingerprint.length, fingerprint.mtime_ms)


def fingerprint_file(file: SourceFile) -> Fingerprint:
    """Hash the content of a listed file (XXH3, 128 bits): all of it up to 64 MiB, above that a sample.

    The sample is 64 KiB at every multiple of 32 MiB and the last 64 KiB. Raises ChangedError if the file is not the
    listed one, before or after it was read; FatalError if it cannot be read.
    """
    try:
        descriptor = os.open(file.path, os.O_RDONLY)
    except FileNotFoundError as error:
        raise while_listed(file, "is gone") from error
    except OSError as error:
        raise unreadable(file.path, error) from error
    try:
        _check_as_listed(file, descriptor)
        content = _hash(descriptor, file.length)
        _check_as_listed(file, descriptor)
    except OSError as error:
        raise unreadable(file.path, error) from error
    finally:
        os.close(descriptor)
    return Fingerprint(file.length, file.mtime_ms, content)


def _hash(descriptor: int, length: int) -> str:
    digest = xxhash.xxh3_128()
    for offset, size in _pieces(length):
        digest.update(os.pread(descriptor, size, offset))
    return digest.hexdigest()


def _pieces(length: int) -> list[tuple[int, int]]:
    """Return (offset, size) of the hashed pieces, ascending, without overlap."""
    if length <= WHOLE_UP_TO:
        return [(offset, min(_READ, length - offset)) for offset in range(0, length, _READ)]
    last = length - BLOCK
    return [(offset, min(BLOCK, last - offset)) for offset in range(0, last, STRIDE)] + [(last, BLOCK)]


def _check_as_listed(file: SourceFile, descriptor: int) -> None:
    if not is_as_listed(file, os.fstat(descriptor)):
        raise while_listed(file, "changed")
