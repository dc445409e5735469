"""Cuts files into (file, start, length): the cuts inside a file depend on that file and the split size alone."""

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
from eosingest.sources.files.bytes.codecs import codec_of
from eosingest.sources.files.bytes.text_blocks import Layout, ambiguous_separator, layout
from eosingest.sources.files.formats.registry import FORMATS
from eosingest.sources.files.listing.source_file import SourceFile, as_file


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
    """Say whether this file is cut: none that is read whole, nor text that is compressed, or cannot be cut at any byte."""
    entry = FORMATS[format]
    if entry.is_whole(options):
        return False
    return entry.is_compressed_inside or (
        codec_of(path) is None and _is_cut_at_any_byte(layout(format, options), format)
    )


def _is_cut_at_any_byte(found: Layout, format: str) -> bool:
    """Say whether a line's end is found from any byte on: of text also one of several bytes, unless it overlaps itself."""
    return not ambiguous_separator(found.end) if format == "text" else found.ends_at_a_byte


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
