"""Reads what an audit reads by other code than a run: the lines of text, and the names of `k=v` folders.

A run cuts lines with numpy, in the blocks of a file (bytes/lines.py), and decompresses with bytes/codecs.py. Here a regular
expression finds the ends of lines, and the readers of the codecs' own libraries decompress. The rules are the same.
"""

from __future__ import annotations

import bz2
import gzip
import itertools
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from io import BufferedReader
from typing import Any

import lz4.frame
import zstandard

from eosingest.errors import FatalError
from eosingest.sources.files.bytes.codecs import codec_of
from eosingest.sources.files.cuts import FileSplit
from eosingest.sources.files.listing.errors import opened_as_listed, while_sent
from eosingest.sources.files.listing.source_file import SourceFile

_PIECE_BYTES = 1 << 20
_DEFLATED_BYTES = 1 << 16  # a byte may hold a thousand
_MARK = b"\xef\xbb\xbf"
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError, RuntimeError, PermissionError)


def decoded_again(text: str) -> str:
    """Return what a folder's name holds, without the decoder of the run: each `%XX` is a byte of UTF-8."""
    parts = re.split(rb"%([0-9A-Fa-f]{2})", text.encode())
    parts[1::2] = (bytes.fromhex(digits.decode()) for digits in parts[1::2])
    return b"".join(parts).decode(errors="replace")


def lines_again(file: SourceFile, cut: FileSplit, separator: bytes | None) -> Iterator[list[bytes]]:
    """Yield the lines of a split, as `line_reader.lines_of` does."""
    codec = codec_of(file.coded_path)
    start, end = (cut.start, cut.start + cut.length) if codec is None else (0, sys.maxsize)
    begin = max(0, start - len(separator or b"\n") + 1)
    try:
        with opened_as_listed(file, while_sent) as opened:
            opened.seek(begin)
            yield from _cut(_CONTENT[codec](opened), begin, start > 0, end, separator)
    except _DAMAGED as error:
        raise FatalError(
            f"{file.name}: the data could not be read: {error}",
            code="bad-data",
            hint="nothing was changed; restore the file, then verify again",
        ) from error


def _cut(
    content: Iterator[bytes], begin: int, skips_first: bool, end: int, separator: bytes | None
) -> Iterator[list[bytes]]:
    """Yield the lines that begin at byte `end` at the latest; `content` begins at byte `begin`."""
    ends = re.compile(rb"\r\n|\n|\r" if separator is None else re.escape(separator))
    rest, is_first = b"", True
    for piece in itertools.chain(content, (b"",)):
        data, is_last = rest + piece, not piece
        # A line feed may follow a carriage return that is the last byte.
        known = len(data) - (separator is None and data.endswith(b"\r") and not is_last)
        lines, at = list[bytes](), 0
        for match in ends.finditer(data, 0, known):
            if begin + at > end:
                break
            lines.append(data[at : match.start()])
            at = match.end()
        begin, rest = begin + at, data[at:]
        if is_last and begin <= end and rest not in (b"", _MARK if begin == 0 else b""):
            lines.append(rest)
        if lines and is_first:
            is_first = False
            lines = lines[1:] if skips_first else [lines[0].removeprefix(_MARK), *lines[1:]]
        if lines:
            yield lines
        if begin > end:
            return


def _pieces(opened: Any) -> Iterator[bytes]:
    return iter(lambda: opened.read(_PIECE_BYTES), b"")


def _inflated(opened: BufferedReader) -> Iterator[bytes]:
    """Yield the content of zlib streams."""
    decoder = zlib.decompressobj()
    while data := opened.read(_DEFLATED_BYTES):
        while data:
            if piece := decoder.decompress(data):
                yield piece
            data = decoder.unused_data
            decoder = zlib.decompressobj() if decoder.eof else decoder


_CONTENT: Mapping[str | None, Callable[[BufferedReader], Iterator[bytes]]] = {
    None: _pieces,
    "gzip": lambda opened: _pieces(gzip.GzipFile(fileobj=opened)),
    "bzip2": lambda opened: _pieces(bz2.BZ2File(opened)),
    "zstd": lambda opened: _pieces(zstandard.ZstdDecompressor().stream_reader(opened, read_across_frames=True)),
    "lz4": lambda opened: _pieces(lz4.frame.open(opened)),
    "deflate": _inflated,
}
