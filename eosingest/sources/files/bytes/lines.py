"""Cuts lines of a text file from its bytes as Spark's text reader cuts them: no JVM, no Python object per line.

Used by the readers of text, CSV and JSON (reading/). The rules are those of Hadoop's LineRecordReader;
tests/integration/test_lines.py compares the two:

- A line ends at `\\n`, `\\r` or `\\r\\n`, or at a given separator alone; text after the last end is a line unless it is empty.
- A line belongs to the split that it begins in, or at whose very end it begins; so every split but a file's first one skips
  its first line.
- A byte order mark of UTF-8 at the beginning of a file belongs to no line.

A position is the offset in bytes of the next line's first byte, in the decompressed content of the file. A file is cut into
splits only if its separator cannot overlap itself (`text_blocks.ambiguous_separator`).
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedIOBase, BufferedReader

import numpy as np
import numpy.typing as npt

from eosingest.sources.files.bytes.codecs import Decompressed, codec_of

_BLOCK_BYTES = 1 << 20
BEYOND_BYTES = 1 << 14  # most lines end at most so far after their split
_LF, _CR = 10, 13
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Lines:
    """Consecutive lines: each is data[start:end], without its end of line; its position is that after its end of line."""

    data: bytes
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts)

    def values(self, separator: bytes | None) -> list[bytes]:
        """Return the lines one by one; `separator` as in `read_lines`."""
        if not len(self):
            return []
        first, count = int(self.starts[0]), len(self)
        if separator is not None or b"\r" not in self.data:
            # The data is not copied if it begins with the first line.
            lines = self.data[first:].split(separator or b"\n", count)
            return lines[:count]
        # Ends the last line: splitlines would drop an empty one. A "\r" does not join the end of line before it.
        return (self.data[first : int(self.ends[-1])] + b"\r").splitlines()

    def between(self, first: int, end: int) -> Lines:
        """Return the lines [first, end), over the same data."""
        return Lines(self.data, self.starts[first:end], self.ends[first:end], self.positions[first:end])


def decompressed(file: BufferedReader, path: str) -> BufferedIOBase:
    """Return an open file for reading from any position; a compressed one is decompressed, by its suffix.

    Reading raises DamagedError, or an error of gzip, if the file does not match its name.
    """
    if not is_compressed(path):
        return file
    return gzip.open(file, "rb") if codec_of(path) == "gzip" else Decompressed(file, path)


def open_file(path: str) -> BufferedIOBase:
    """Open a local file as `decompressed` does."""
    return gzip.open(path, "rb") if codec_of(path) == "gzip" else decompressed(open(path, "rb"), path)


def is_compressed(path: str) -> bool:
    """Say whether a file is decompressed here: then positions are not those of the file's own bytes."""
    return codec_of(path) is not None


@dataclass(frozen=True)
class Bounds:
    """The part of a file to read: the split [start, end), where `end` None is the file's end. All in bytes.

    `length` is the file's as it was listed, None if it is not known; nothing after it is read. `position` is where an
    earlier reader of the split stopped, None to begin with the split. A line is not read further than `longest`.
    """

    start: int
    end: int | None
    length: int | None = None
    position: int | None = None
    longest: int = 1 << 30


def read_lines(file: BufferedIOBase, bounds: Bounds, separator: bytes | None) -> Iterator[Lines]:
    """Yield the lines of a split. `separator` ends a line; None for line feeds and carriage returns.

    A line that is longer than `bounds.longest` bytes is cut off and comes last: it cannot be sent.
    """
    passes_over = bounds.position is None and bounds.start > 0
    # An end of line that the split's first byte is in ends the line that is skipped.
    within = min(len(separator) - 1, bounds.start) if separator and passes_over else 0
    at = file.seek((bounds.start if bounds.position is None else bounds.position) - within)
    rest = b""
    while bounds.end is None or at <= bounds.end:
        block = file.read(_block_bytes(bounds, at, len(rest)))
        endless = len(rest) > bounds.longest and not passes_over
        lines = _cut(rest + block, at, separator, ended=not block or endless)
        lines = lines.between(0, 1) if endless else lines
        begin, at = at, int(lines.positions[-1]) if len(lines) else at
        rest = lines.data[at - begin :]
        mine = lines.between(0, _beginning_before(bounds.end, begin, lines))
        if passes_over and len(mine):
            mine, passes_over = mine.between(1, len(mine)), False
        elif passes_over and len(rest) > bounds.longest:  # a line of the previous split: only its end is needed
            kept = max(1, within)
            at, rest = at + len(rest) - kept, rest[-kept:]
        if len(mine):
            yield mine
        if not block or endless:
            return


def _block_bytes(bounds: Bounds, at: int, rest: int) -> int:
    """Return how many bytes to read: not far beyond the split; at least as many as a long line has, to copy it less often."""
    wanted = _BLOCK_BYTES
    if bounds.end is not None:
        wanted = min(wanted, max(0, bounds.end - at - rest) + BEYOND_BYTES)
    wanted = max(wanted, rest)
    return wanted if bounds.length is None else min(wanted, max(0, bounds.length - at - rest))


def _beginning_before(end: int | None, begin: int, lines: Lines) -> int:
    """Return how many lines, of which the first one begins at `begin`, are of a split that ends at `end`."""
    if end is None or not len(lines) or lines.positions[-1] <= end:
        return len(lines)
    begins = np.concatenate(([begin], lines.positions[:-1]))
    return int(np.searchsorted(begins, end, side="right"))


def _cut(data: bytes, at: int, separator: bytes | None, *, ended: bool) -> Lines:
    """Cut the lines that end in `data`, which begins at position `at` of the file; all lines if the file ended."""
    found = np.frombuffer(data, np.uint8)
    if separator is None and b"\r" in data:
        ends, behind = _ends_with_carriage_returns(found, ended)
    elif separator is None or len(separator) == 1:
        ends = np.flatnonzero(found == (separator or b"\n")[0])
        behind = ends + 1
    else:
        matches = re.finditer(re.escape(separator), data)
        ends = np.fromiter((match.start() for match in matches), np.int64)
        behind = ends + len(separator)
    if ended and len(data) > (behind[-1] if len(behind) else 0):
        ends, behind = np.append(ends, len(data)), np.append(behind, len(data))
    starts = np.concatenate((np.zeros(min(1, len(ends)), np.int64), behind[:-1]))
    if at == 0 and len(starts) and data.startswith(_BYTE_ORDER_MARK, 0, int(ends[0])):
        starts[0] = len(_BYTE_ORDER_MARK)
        if len(data) == len(_BYTE_ORDER_MARK):  # Hadoop gives no line for a file of nothing else
            return Lines(data, starts[:0], ends[:0], behind[:0])
    return Lines(data, starts, ends, behind + at)


def _ends_with_carriage_returns(
    found: npt.NDArray[np.uint8], ended: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the ends of lines, and the starts of the next ones."""
    at = np.flatnonzero((found == _LF) | (found == _CR))
    after_cr = (found[at] == _LF) & (at > 0) & (found[at - 1] == _CR)  # the second byte of an end of line
    ends = at[~after_cr]
    if len(ends) and ends[-1] == len(found) - 1 and found[-1] == _CR and not ended:
        ends = ends[:-1]  # a line feed may follow
    following = found[np.minimum(ends + 1, len(found) - 1)] == _LF
    pairs = (found[ends] == _CR) & following & (ends + 1 < len(found))
    return ends, ends + 1 + pairs
