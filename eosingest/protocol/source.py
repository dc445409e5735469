"""What a source promises, and the values it hands on: spec -> Source -> files and splits -> Plan.

A split is identified by (file, start byte). Given the same split size the cuts of a file depend on that file alone, and
its fingerprint says whether the bytes behind the identity are still those that the offset records speak of.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class SourceFile:
    """One file as it was listed.

    `name` is its identity: what offset records are keyed by, on whatever machine. `path` is where it lies here,
    absolute. `length` is in bytes; `mtime_ms` in milliseconds since the epoch, as Spark's `_metadata` has it.
    """

    name: str
    path: str
    length: int
    mtime_ms: int
    splittable: bool


@dataclass(frozen=True)
class Fingerprint:
    """What a file looked like when its rows were read: kept in the offset records, compared by `fingerprint.compare`.

    `content` is the hash of the content in hex: of all of it up to 64 MiB, of a sample above that.
    """

    length: int
    mtime_ms: int
    content: str

    def to_json(self) -> dict[str, int | str]:
        """Return the form that goes into an offset record."""
        return {"length": self.length, "mtime": self.mtime_ms, "content": self.content}

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Fingerprint:
        """Read what `to_json` wrote. Raises ValueError for anything else: never a guess at what was meant."""
        length, mtime_ms, content = value.get("length"), value.get("mtime"), value.get("content")
        if type(length) is not int or type(mtime_ms) is not int or type(content) is not str:
            raise ValueError(f"not a file fingerprint: {dict(value)!r}")
        return cls(length, mtime_ms, content)


@dataclass(frozen=True)
class Split:
    """`length` bytes of a file from `start` on. Which rows lie in it is decided by Spark's readers, always alike."""

    file: str
    start: int
    length: int

    @property
    def key(self) -> dict[str, int | str]:
        """The split's identity as it stands in the key of its offset record."""
        return {"file": self.file, "start": self.start}


@dataclass(frozen=True)
class Listing:
    """What a source holds at one moment. Only `files` has rows to send; each of them is sorted by name.

    `hidden` counts names passed over because Spark hides them. `too_young` are names left alone by `min_age`; `empty`
    are files of zero bytes, which have no split. Neither of the two is in `files`, and neither has vanished.
    `nothing` are the paths, as written, that name no file at all.
    """

    files: tuple[SourceFile, ...]
    hidden: int
    too_young: tuple[str, ...]
    empty: tuple[str, ...]
    nothing: tuple[str, ...] = field(default=(), compare=False)


class Source(Protocol):
    """List, identify, cut and look again. Every method may raise the classes of `errors`, each naming the file."""

    def list(self) -> Listing:
        """Look at the source once. The plan and everything after it works from this look."""

    def fingerprint(self, file: SourceFile) -> Fingerprint:
        """Read as much of the file as tells its content from another one of the same length."""

    def splits(self, file: SourceFile, split_size: int) -> tuple[Split, ...]:
        """Cut the file as Spark will: `split_size` in bytes, in order of start. An empty file has no split."""

    def look_again(self, files: Iterable[SourceFile]) -> builtins.list[str]:
        """Return the names of those whose length or modification time differ now, or that are gone."""


@runtime_checkable
class Rememberable(Protocol):
    """A source that can find again what it once listed by its name alone."""

    def missing(self, names: Iterable[str]) -> builtins.list[str]:
        """Return the names of files that are not there any more, named by the spec or not."""
