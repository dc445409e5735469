"""A file as an item of its source: what the listing knows of it, and how it is spoken of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eosingest.protocol.source import Item, Json, LeftOut
from eosingest.report.wording import Wording

WORDING = Wording(
    item="file",
    items="files",
    unit="bytes",
    not_named="not among the files that `path` names now",
    kept="its length and modification time",
    later="source.min_age",
    on_executors="see the files under the same path",
)


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


def left_out(empty: Sequence[str], too_young: Sequence[str], hidden: int) -> tuple[LeftOut, ...]:
    """Say what was passed over: files of zero bytes, those that may still be written, names that Spark hides."""
    are = "1 file is" if len(too_young) == 1 else f"{len(too_young):,} files are"
    young = f"{are} younger than source.min_age: left for a later run" if too_young else ""
    return (
        LeftOut("empty", tuple(empty), empty=True),
        LeftOut("too young", tuple(too_young), note=young),
        LeftOut("hidden", hidden),
    )
