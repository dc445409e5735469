"""Files for the tests of reading: compressed by each codec, damaged in every kind of way, told by an independent reader."""

from __future__ import annotations

import bz2
import gzip
import io
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import lz4.block
import lz4.frame
import zstandard

from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.source import FileSource

SKIPPABLE = b"\x51\x2a\x4d\x18" + struct.pack("<I", 5) + b"hello"


def zstd(data: bytes, *, window_log: int = 0, level: int = 3) -> bytes:
    parameters = zstandard.ZstdCompressionParameters.from_level(level, window_log=window_log, write_checksum=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return compressor.compress(data) + compressor.flush()


def lz4_frame(data: bytes) -> bytes:
    return lz4.frame.compress(data, content_checksum=True, block_checksum=True)  # type: ignore[no-any-return]


def hadoop_lz4(data: bytes) -> bytes:
    """Hadoop's framing: a block's length, then the lengths and bytes of its chunks."""
    chunk = lz4.block.compress(data, store_size=False)
    return struct.pack(">II", len(data), len(chunk)) + chunk


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "bz2": lambda data: bz2.compress(data, 1),
    "gz": lambda data: gzip.compress(data, mtime=0),
    "zst": zstd,
    "lz4": lz4_frame,
    "deflate": zlib.compress,
}


def rows_of(format: str, count: int, seed: int = 7) -> list[bytes]:
    """Return rows that do not compress well, so that a file of some hundred kilobytes has more than one block."""
    random = Random(seed)
    words = [b"%d" % number + b"-" + random.randbytes(random.randint(0, 60)).hex().encode() for number in range(count)]
    if format == "json":
        return [b'{"v": "' + word + b'"}' for word in words]
    return words


def text_of(format: str, count: int) -> bytes:
    return b"".join(row + b"\n" for row in rows_of(format, count))


def damages(suffix: str, text: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield what may have happened to a file, and what is in it then. None of it is the file that was written."""
    compress = COMPRESS[suffix]
    good = compress(text)
    for cut in (1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 100, len(good) // 2, len(good) - 20, len(good) - 3, len(good) - 1):
        yield f"cut {cut} before its end", good[:-cut]
    for tail in (b"x", b"\0", b"\0" * 64, b"garbage" * 40, good[:1], good[:3], good[:12], good[:-1]):
        yield f"{len(tail)} bytes {tail[:4].hex()} behind it", good + tail
    yield "plain text", text
    yield "one line of text", b"a\n"
    yield "another codec", (gzip.compress if suffix != "gz" else bz2.compress)(text)
    yield "a second stream cut", good + good[:-9]
    yield "packed twice", compress(compress(text))
    random = Random(11)
    for place in range(40):
        flipped = bytearray(good)
        flipped[random.randrange(len(good))] ^= 1 << random.randrange(8)
        yield f"bit flipped {place}", bytes(flipped)
    if suffix == "bz2":
        yield from _bz2_damages(good, text)


def _bz2_damages(good: bytes, text: bytes) -> Iterator[tuple[str, bytes]]:
    """Blocks begin at any bit: cut behind each, and spoil the magic of each."""
    starts = _block_starts(good)
    assert len(starts) > 2, "the file must have several blocks"
    for number, start in enumerate(starts):
        yield f"bit flipped in the magic of block {number}", _flip(good, start + 13)
        yield f"bit flipped in the CRC of block {number}", _flip(good, start + 60)
        for more in range(7):
            if start // 8 + more > 4:
                yield f"cut at block {number} + {more}", good[: start // 8 + more]
    half = text.index(b"\n", len(text) // 2) + 1
    two = bz2.compress(text[:half], 1), bz2.compress(text[half:], 1)
    yield "the second stream is text", two[0] + text[half:]
    yield "the second stream's level is wrong", two[0] + b"BZh0" + two[1][4:]


def _block_starts(good: bytes) -> list[int]:
    """Return the bits that blocks begin at: their magic, wherever in a byte it begins."""
    found = []
    for shift in range(8):
        moved = (int.from_bytes(good, "big") << shift).to_bytes(len(good) + 1, "big")[1:]
        found += [match.start() * 8 + shift for match in re.finditer(rb"1AY&SY", moved)]
    return sorted(found)


def _flip(data: bytes, bit: int) -> bytes:
    flipped = bytearray(data)
    flipped[bit // 8] ^= 0x80 >> bit % 8
    return bytes(flipped)


def independently(suffix: str, data: bytes) -> bytes | None:
    """Return what the reference reader of a codec makes of a file; None where it refuses it."""
    try:
        if suffix == "bz2":
            return _all_frames(bz2.BZ2Decompressor, data)
        if suffix == "gz":
            return gzip.GzipFile(fileobj=io.BytesIO(data)).read()
        if suffix == "zst":
            return _all_frames(zstandard.ZstdDecompressor().decompressobj, data)
        if suffix == "lz4":
            return _all_frames(lz4.frame.LZ4FrameDecompressor, data)
        return _all_frames(zlib.decompressobj, data)
    except (OSError, EOFError, ValueError, RuntimeError, zlib.error, zstandard.ZstdError):
        return None


def _all_frames(new: Callable[[], object], data: bytes) -> bytes | None:
    found = b""
    while data:
        decoder = new()
        found += decoder.decompress(data)  # type: ignore[attr-defined]
        if not decoder.eof:  # type: ignore[attr-defined]
            return None
        data = decoder.unused_data or b""  # type: ignore[attr-defined]
    return found


def listed(folder: Path, name: str, format: str = "text") -> SourceFile:
    (file,) = FileSource(format=format, paths=[name], directory=folder, root=None, min_age_s=0).plan().items
    return file
