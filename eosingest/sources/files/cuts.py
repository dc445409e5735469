"""Cuts files into the same (file, start, length) as Spark's file scan, without a JVM.

Holds for sessions with `spark.sql.files.minPartitionNum=1` and `spark.sql.files.maxPartitionBytes=<split size>`: then
the cuts inside a file depend on that file alone. tests/integration/test_spark_splits.py compares with Spark's plan.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from eosingest.protocol.source import (
    CommittedPosition,
    Item,
    Json,
    Kept,
    PositionKind,
    Split,
    SplitId,
    SplitKind,
    Version,
)
from eosingest.sources.files.bytes.text_blocks import layout
from eosingest.sources.files.formats import FORMATS
from eosingest.sources.files.listing.source_file import SourceFile, as_file

# Suffixes of Hadoop's codecs, regardless of case. bzip2, which is not here, is the only codec that can be cut.
_UNSPLITTABLE_SUFFIXES = (".gz", ".deflate", ".snappy", ".lz4", ".zst")


@dataclass(frozen=True)
class FileSplit(Split):
    """`length` bytes of a file from `start` on. Spark's readers decide which rows belong to it, and always decide alike."""

    file: str
    start: int
    length: int

    @property
    def item(self) -> str:
        """The file's name."""
        return self.file

    @property
    def key(self) -> dict[str, Json]:
        """File and start."""
        return {"file": self.file, "start": self.start}

    @property
    def bounds(self) -> dict[str, Json]:
        """The length."""
        return {"length": self.length}

    @property
    def size(self) -> int:
        """The length in bytes."""
        return self.length

    @property
    def label(self) -> str:
        """The file, and the split's first byte."""
        return f"{self.file}, split at byte {self.start}"

    def size_before(self, committed: CommittedPosition) -> int | None:
        """The number of bytes of the split before a position in bytes."""
        return cast(int, committed.position) - self.start if committed.kind is PositionKind.BYTES else None


def split_of(split: SplitId, bounds: Mapping[str, Json]) -> FileSplit:
    """Return the split of a file that has this identity and these bounds."""
    key = json.loads(split)
    return FileSplit(key["file"], key["start"], cast(int, bounds["length"]))


def file_split(split: Split) -> FileSplit:
    """Return a split as a split of a file: this source has no others."""
    assert isinstance(split, FileSplit), split
    return split


def is_splittable(format: str, options: Mapping[str, str], path: str) -> bool:
    """Say whether this file is cut: none that is read whole, nor a compressed one, unless its format compresses inside.

    Of text that Python reads, none whose lines do not end with one byte, nor a .bz2: only Hadoop cuts these.
    """
    entry = FORMATS[format]
    if entry.is_whole(options):
        return False
    if (
        entry.is_read_in_python
        and entry.is_text
        and (is_cut_by_codec(path) or not layout(format, options).ends_at_a_byte)
    ):
        return False
    return entry.is_compressed_inside or not path.lower().endswith(_UNSPLITTABLE_SUFFIXES)


def is_cut_by_codec(path: str) -> bool:
    """Say whether this is a compressed text file that is cut (.bz2). Only Hadoop knows where a split's rows begin in it."""
    return path.lower().endswith(".bz2")


def cut(file: SourceFile, split_size: int) -> tuple[FileSplit, ...]:
    """Cut at every multiple of `split_size` bytes; an unsplittable file is one split, an empty one has none."""
    step = split_size if file.splittable else max(file.length, 1)
    return tuple(FileSplit(file.name, start, min(step, file.length - start)) for start in range(0, file.length, step))


class FileSplits(SplitKind):
    """Files as splits (`protocol.source.SplitKind`)."""

    may_be_corrected = True

    def cut(self, item: Item, split_size: int) -> tuple[FileSplit, ...]:
        """Cut the file as Spark does; `split_size` in bytes."""
        return cut(as_file(item), split_size)

    def split(self, split: SplitId, bounds: Mapping[str, Json]) -> FileSplit:
        """Return the split of a file that has this identity and these bounds."""
        return split_of(split, bounds)

    def item(self, split: SplitId) -> str:
        """Return the name of a split's file."""
        return str(json.loads(split)["file"])

    def covers(self, done: Iterable[Kept], version: Version) -> bool:
        """Say whether splits cover all bytes of the file, regardless of the split size."""
        length = version.get("length")
        if type(length) is not int:
            raise ValueError(f"not the version of a file: {dict(version)!r}")
        reached = 0
        for split in sorted((split_of(*kept) for kept in done), key=lambda split: split.start):
            if split.start <= reached:
                reached = max(reached, split.start + split.length)
        return reached >= length
