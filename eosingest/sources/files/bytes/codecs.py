"""Decompresses text files and proves them: each stream to its last byte, by decoders that report all damage.

For the inspection (inspection.py), since Hadoop's decoders read some damage silently, and for the lines that tasks read
themselves (lines.py). All checks of a format are made: magic, structure, lengths and, if there are some, checksums
(docs/reading.md). Memory is bounded, regardless of the decompressed size.
"""

from __future__ import annotations

import bz2
import sys
import zlib
from collections.abc import Callable, Iterator
from io import SEEK_SET, BufferedIOBase, BufferedReader, RawIOBase
from typing import Protocol

import lz4.frame
import zstandard

from eosingest.sources.files.bytes import magic

PIECE_BYTES = 256 << 10  # numpy's arrays of a piece stay in the cache: text is scanned twice as fast as in MiB
_INPUT_BYTES = 1 << 17
_ZSTD_INPUT_BYTES = 1 << 11  # 4 bytes can decompress to 128 KiB, and its decoder has no other bound
_LZ4_MAGIC, _LZ4_HEAD_BYTES = b"\x04\x22\x4d\x18", 5  # the byte after the magic has a frame's flags
# Suffixes of Hadoop's codecs, regardless of case. A longer name's end counts, as `.csv.gz`.
_CODECS = {
    ".gz": "gzip",
    ".bz2": "bzip2",
    ".zst": "zstd",
    ".lz4": "lz4",
    ".deflate": "deflate",
    ".snappy": "snappy",
}
SUFFIXES = {codec: suffix for suffix, codec in _CODECS.items() if codec != "snappy"}
Readable = BufferedIOBase | RawIOBase


class DamagedError(Exception):
    """A file does not match its name, from about byte `at` on (None: at no known byte)."""

    def __init__(self, message: str, *, at: int | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.hint = hint

    def __str__(self) -> str:
        """Return place and message."""
        return self.message if self.at is None else f"near byte {self.at:,}: {self.message}"


def codec_of(path: str) -> str | None:
    """Return the codec of a name's suffix; None for a plain file, and for a suffix that Hadoop does not know."""
    name = path.lower()
    return next((codec for suffix, codec in _CODECS.items() if name.endswith(suffix)), None)


def named_by_codec(path: str, codec: str | None) -> str:
    """Return the path if its suffix is the codec's, or there is no codec; else with the codec's suffix after it."""
    return path if codec in (None, codec_of(path)) else path + SUFFIXES[str(codec)]


def pieces(file: Readable, path: str) -> Iterator[bytes]:
    """Yield the content of a file, decompressed by its name. Raises DamagedError, at the latest after the last piece."""
    codec = codec_of(path)
    if codec is None:
        return _plain(file)
    if codec not in _DECODERS:
        raise DamagedError(f"{codec} cannot be proven whole")
    return _decompressed(file, codec, _DECODERS[codec])


class Decompressed(BufferedIOBase):
    """The content of a compressed file, as a file to be read forwards; to seek back decompresses from the start again."""

    def __init__(self, file: BufferedReader, path: str) -> None:
        """Take the compressed file, which is closed with this one. `read` and `seek` raise DamagedError."""
        self._path = path
        self._file = file
        self._restart()

    def _restart(self) -> None:
        self._file.seek(0)
        self._pieces = pieces(self._file, self._path)
        self._rest = b""
        self._at = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next `size` bytes, fewer at the end only; everything if it is negative."""
        wanted = sys.maxsize if size is None or size < 0 else size
        found, length = [], 0
        while length < wanted:
            piece = self._rest or next(self._pieces, b"")
            if not piece:
                break
            found.append(piece[: wanted - length])
            self._rest = piece[wanted - length :]
            length += len(found[-1])
        self._at += length
        return found[0] if len(found) == 1 else b"".join(found)

    def seek(self, offset: int, whence: int = SEEK_SET, /) -> int:
        """Go to a byte, or to the end if there are fewer; return the position."""
        assert whence == SEEK_SET, "nobody seeks from elsewhere"
        if offset < self._at:
            self._restart()
        while self._at < offset and self.read(min(PIECE_BYTES, offset - self._at)):
            pass
        return self._at

    def readable(self) -> bool:
        """Say yes."""
        return True

    def seekable(self) -> bool:
        """Say yes."""
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


class _Decoder(Protocol):
    """A decoder of one stream, or frame, with the interface of Python's bz2."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes | None: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _plain(file: Readable) -> Iterator[bytes]:
    while piece := file.read(PIECE_BYTES):
        yield piece


def _decompressed(file: Readable, codec: str, new: Callable[[], _Decoder]) -> Iterator[bytes]:
    """Yield the content of all streams in sequence. Raises DamagedError if the file does not end with a stream's end."""
    decoder, begun, first, at, data = new(), False, True, 0, b""
    while True:
        if not data and decoder.needs_input:
            data = file.read(_INPUT_BYTES) or b""
            if not data:
                break
        begun, given, data = True, data, b""
        try:
            piece = decoder.decompress(given, PIECE_BYTES)
        except _ERRORS as error:
            raise DamagedError(f"it is damaged, or not {codec}: {error}", at=at) from error
        at += len(given)
        if piece:
            if first:
                _refuse_packed_again(piece)
            first = False
            yield piece
        if decoder.eof:
            data = decoder.unused_data or b""
            at -= len(data)
            decoder, begun = new(), False
    if begun:
        raise DamagedError(f"it ends in the middle of its {codec} stream", at=at)


def _refuse_packed_again(content: bytes) -> None:
    kind = magic.kind_of(content)
    if kind is not None:
        raise DamagedError(f"its decompressed content is {kind}, not text", hint=magic.RECOMPRESS)


class _Zlib:
    """zlib's decoder, of gzip or of bare zlib streams, with the interface of bz2's."""

    def __init__(self, window_bits: int) -> None:
        self._decoder = zlib.decompressobj(window_bits)

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    @property
    def needs_input(self) -> bool:
        return not self._decoder.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        return self._decoder.decompress(self._decoder.unconsumed_tail + data, max_length)


class _Zstd:
    """zstandard's decoder of one frame, with the interface of bz2's: it gets little input at a time, the rest is kept here."""

    def __init__(self) -> None:
        self._decoder = zstandard.ZstdDecompressor().decompressobj()
        self._rest = memoryview(b"")

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    @property
    def needs_input(self) -> bool:
        return not self._rest

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data + bytes(self._rest)

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        rest = memoryview(data) if data else self._rest
        found, length = [], 0
        while rest and length < max_length and not self._decoder.eof:
            found.append(self._decoder.decompress(rest[:_ZSTD_INPUT_BYTES]))
            length += len(found[-1])
            rest = rest[_ZSTD_INPUT_BYTES:]
        self._rest = rest
        return b"".join(found)


class _Lz4:
    """lz4's decoder of one frame, with the interface of bz2's. It refuses a frame that names a dictionary."""

    def __init__(self) -> None:
        self._decoder = lz4.frame.LZ4FrameDecompressor()
        self._head = b""

    @property
    def eof(self) -> bool:
        return bool(self._decoder.eof)

    @property
    def needs_input(self) -> bool:
        return bool(self._decoder.needs_input)

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data or b""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        if len(self._head) < _LZ4_HEAD_BYTES:
            self._head += data[: _LZ4_HEAD_BYTES - len(self._head)]
            if len(self._head) == _LZ4_HEAD_BYTES and self._head.startswith(_LZ4_MAGIC) and self._head[-1] & 1:
                raise DamagedError("a frame of it needs a dictionary, which is not in it", hint=magic.RECOMPRESS)
        return bytes(self._decoder.decompress(data, max_length))


_DECODERS: dict[str, Callable[[], _Decoder]] = {
    "bzip2": bz2.BZ2Decompressor,
    "gzip": lambda: _Zlib(16 + zlib.MAX_WBITS),
    "deflate": lambda: _Zlib(zlib.MAX_WBITS),
    "zstd": _Zstd,
    "lz4": _Lz4,
}
_ERRORS = (OSError, ValueError, RuntimeError, EOFError, zlib.error, zstandard.ZstdError)
