"""Cuts plain text files into parts of whole lines, so that several tasks can inspect one large file (inspection.py).

A part has the lines that begin in it. Parts are cut after line feeds only: a file without any is one part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader

from eosingest.sources.files.bytes.codecs import PIECE_BYTES

_PART_BYTES = 32 << 20


@dataclass(frozen=True)
class FilePart:
    """The lines that begin in the bytes [start, end) of a file; `end` None: to its end."""

    start: int
    end: int | None


WHOLE = FilePart(0, None)


def of_length(length: int, size: int = _PART_BYTES) -> list[FilePart]:
    """Return the parts of a file of `length` bytes, of `size` bytes each; the last one extends to the file's end."""
    starts = range(0, max(1, length), size)
    return [FilePart(start, start + size if start + size < length else None) for start in starts]


def pieces(opened: BufferedReader, part: FilePart) -> Iterator[bytes]:
    """Yield the bytes of a part's lines."""
    end = None if part.end is None else _line_begin(opened, part.end)
    at = _line_begin(opened, part.start)
    opened.seek(at)
    while (end is None or at < end) and (
        piece := opened.read(PIECE_BYTES if end is None else min(PIECE_BYTES, end - at))
    ):
        at += len(piece)
        yield piece


def lines_before(opened: BufferedReader, part: FilePart) -> int:
    """Return how many lines end before a part: at a line feed, a carriage return, or both together."""
    left = _line_begin(opened, part.start)
    opened.seek(0)
    lines, returned = 0, False
    while left and (piece := opened.read(min(PIECE_BYTES, left))):
        left -= len(piece)
        pairs = piece.count(b"\r\n") + (returned and piece.startswith(b"\n"))
        lines += piece.count(b"\n") + piece.count(b"\r") - pairs
        returned = piece.endswith(b"\r")
    return lines


def _line_begin(opened: BufferedReader, at: int) -> int:
    """Return the start of the first line that begins at byte `at` or later, else the file's end."""
    if at == 0:
        return 0
    opened.seek(at - 1)
    while (piece := opened.readline(PIECE_BYTES)) and not piece.endswith(b"\n"):
        pass
    return opened.tell()
