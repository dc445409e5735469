"""A file as an item of its source: what the listing knows of it, and how it is spoken of."""

from __future__ import annotations

from dataclasses import dataclass

from eosingest.protocol.source import Item, Json


@dataclass(frozen=True)
class SourceFile:
    """One file as it was listed (a `protocol.source.Item`).

    `name` is its identity: what offset records are keyed by, on whatever machine. `path` is where it lies here,
    absolute. `length` is in bytes; `mtime_ms` in milliseconds since the epoch, as Spark's `_metadata` has it.
    """

    name: str
    path: str
    length: int
    mtime_ms: int
    splittable: bool

    @property
    def size(self) -> int:
        """The length."""
        return self.length

    @property
    def seen(self) -> tuple[Json, ...]:
        """The length and the modification time."""
        return (self.length, self.mtime_ms)


def as_file(item: Item) -> SourceFile:
    """Return an item as the file that it is: this kind lists no others."""
    assert isinstance(item, SourceFile), item
    return item
