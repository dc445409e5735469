"""Defines a file as an item of its source: its listed properties, and the words for files in messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from eosingest.protocol.source import Item, Json, LeftOut
from eosingest.report.wording import Wording
from eosingest.sources.files.bytes.codecs import named_by_codec
from eosingest.sources.files.storage.local import LOCAL
from eosingest.sources.files.storage.port import Storage

WORDING = Wording(
    item="file",
    items="files",
    unit="bytes",
    not_named="not among the files that `path` names now",
    kept="its length and modification time",
    later="source.min_age",
    on_executors="see the files under the same path",
    corrected="correct them and run again: the run resumes if the rows that were sent stay as they are (in a file of several"
    " splits, keep the length of the line)",
)


@dataclass(frozen=True)
class SourceFile:
    """One file as it was listed (a `protocol.source.Item`).

    `name` is its identity: part of the keys of offset records, the same on every machine. `path` is the absolute path on this
    one. `length` is in bytes; `mtime_ms` in milliseconds since 1970, as in Spark's `_metadata`. `splittable`: Spark cuts it.
    `storage` opens it. `etag` is the store's name for its content, in HDFS id and time; "" if local. `compression`: the codec
    that the spec names.
    """

    name: str
    path: str
    length: int
    mtime_ms: int
    splittable: bool
    etag: str = ""
    storage: Storage = field(default=LOCAL, compare=False, repr=False)
    compression: str | None = None

    @property
    def coded_path(self) -> str:
        """The path, or one with the suffix of the codec that the spec names: codecs are chosen by suffixes."""
        return named_by_codec(self.path, self.compression)

    @property
    def size(self) -> int:
        """The length."""
        return self.length

    @property
    def seen(self) -> tuple[Json, ...]:
        """The length and the modification time; in a store the length and the ETag."""
        return (self.length, self.etag or self.mtime_ms)


def as_file(item: Item) -> SourceFile:
    """Return an item as a file: this source lists nothing else."""
    assert isinstance(item, SourceFile), item
    return item


def left_out(empty: Sequence[str], too_young: Sequence[str], hidden: int) -> tuple[LeftOut, ...]:
    """Return what a listing left out: files of zero bytes, those that may still be written, names that Spark hides."""
    are = "1 file is" if len(too_young) == 1 else f"{len(too_young):,} files are"
    young = f"{are} younger than source.min_age: left for a later run" if too_young else ""
    return (
        LeftOut("empty", tuple(empty), empty=True),
        LeftOut("too young", tuple(too_young), note=young),
        LeftOut("hidden", hidden),
    )
