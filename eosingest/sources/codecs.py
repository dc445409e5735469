"""Compressed text files: what a name and the first bytes say a file is, and its bytes decompressed and proven.

Under the inspection (inspection.py), before Spark reads a file: Hadoop's decoders take some damage without a word. The
decoders here are those of other libraries, and everything a format has to prove itself by is checked to the last byte.
"""

from __future__ import annotations

import bz2
from collections.abc import Iterator
from io import BufferedIOBase, RawIOBase

PIECE_BYTES = 1 << 20


class DamagedError(Exception):
    """A file is not what its name says, from about byte `at` on (None: from somewhere on)."""

    def __init__(self, message: str, *, at: int | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.hint = hint


def codec_of(path: str) -> str | None:
    """Return the codec that a name's suffix stands for, without regard to case as Hadoop; None for a plain file."""
    return "bz2" if path.lower().endswith(".bz2") else None


def pieces(file: BufferedIOBase | RawIOBase, path: str) -> Iterator[bytes]:
    """Yield what a file holds, decompressed as its name says. Raises DamagedError, at the latest behind the last piece."""
    return _bz2_pieces(file) if codec_of(path) == "bz2" else _plain_pieces(file)


def _plain_pieces(file: BufferedIOBase | RawIOBase) -> Iterator[bytes]:
    while piece := file.read(PIECE_BYTES):
        yield piece


def _bz2_pieces(file: BufferedIOBase | RawIOBase) -> Iterator[bytes]:
    decoder, at = bz2.BZ2Decompressor(), 0
    data = file.read(PIECE_BYTES) or b""
    while data:
        try:
            piece = (
                decoder.decompress(data, PIECE_BYTES) if decoder.needs_input else decoder.decompress(b"", PIECE_BYTES)
            )
        except OSError as error:
            raise DamagedError(f"not bzip2, or damaged: {error}", at=at) from error
        if piece:
            yield piece
        if decoder.eof:
            at, data = at + len(data) - len(decoder.unused_data), decoder.unused_data
            data = data or file.read(PIECE_BYTES) or b""
            decoder = bz2.BZ2Decompressor() if data else decoder
        elif decoder.needs_input:
            at, data = at + len(data), file.read(PIECE_BYTES) or b""
    if not decoder.eof:
        raise DamagedError("it ends in the middle of a bzip2 stream", at=at)
