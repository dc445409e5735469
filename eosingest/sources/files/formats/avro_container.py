"""Reads the header and the blocks of Avro's object container files, and verifies the blocks to the file's end.

    header: magic, schema, codec, marker ─▶ block: rows, bytes, data, marker ─▶ … ─▶ end of the file

A marker is the sync marker of Avro's specification: 16 bytes, the same after the header and every block of a file. A split has
the blocks whose preceding marker begins in it, as with Avro's reader in Java.

The inspection (inspection.py) verifies all blocks before anything is sent; a task reads those of its split
(reading/avro_reader.py). Source: https://avro.apache.org/docs/1.12.0/specification/#object-container-files
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import SEEK_CUR, SEEK_END, BufferedReader

from eosingest.sources.files.bytes import magic
from eosingest.sources.files.bytes.codecs import DamagedError

MAGIC = b"Obj\x01"
MARKER_BYTES = 16
HEAD_BYTES = 64 << 10  # which nearly all headers are in, and nearly all blocks
CODECS = ("null", "deflate", "snappy", "bzip2", "xz", "zstandard")
_VARINT_BYTES = 10  # the most bytes of a long
_LARGEST_BLOCK = (1 << 31) - 1  # the limit of Avro's reader in Java
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class Header:
    """The header of a file: `schema` (JSON), `codec`, `marker` and all its entries; the first block begins at byte `end`."""

    schema: str
    codec: str
    marker: bytes
    end: int
    entries: Mapping[bytes, bytes]


@dataclass(frozen=True)
class Block:
    """A block of `rows` rows, which begins at byte `at`; `data` is compressed by the file's codec."""

    at: int
    rows: int
    data: bytes


def read_header(file: BufferedReader) -> Header:
    """Read the header, from the file's first byte on. Raises DamagedError."""
    length = file.seek(0, SEEK_END)
    file.seek(0)
    head = file.read(len(MAGIC))
    if head != MAGIC:
        raise _no_avro(head + file.read(magic.HEAD_BYTES))
    said: dict[bytes, bytes] = {}
    while count := _long(file):
        if count < 0:  # the size of this part in bytes follows
            count = -count
            _long(file)
        for _ in range(count):
            name = _bytes(file, length)
            said[name] = _bytes(file, length)
    marker = file.read(MARKER_BYTES)
    if len(marker) < MARKER_BYTES:
        raise _cut_short(file)
    codec = said.get(b"avro.codec", b"null").decode("utf-8", "replace")
    if codec not in CODECS:
        raise DamagedError(
            f"its blocks are compressed with {codec}, which is no codec of Avro's",
            hint=f"write it with one of {', '.join(CODECS[1:])}",
        )
    if b"avro.schema" not in said:
        raise DamagedError("its header has no schema")
    try:
        schema = said[b"avro.schema"].decode()
    except UnicodeDecodeError as error:
        raise DamagedError("the schema in its header is no UTF-8") from error
    return Header(schema, codec, marker, file.tell(), said)


def prove(file: BufferedReader, *, is_cut: bool) -> None:
    """Verify each block to the end of the file. Raises DamagedError.

    `is_cut`: the file is cut into several splits. A task searches for the marker from the start of its split, and would also
    accept these bytes in the middle of a block.
    """
    header = read_header(file)
    ends = set(_block_ends(file, header))
    if not is_cut:
        return
    for at in _found_at(file, header.marker, 0, file.seek(0, SEEK_END)):
        if at + MARKER_BYTES not in ends:
            raise DamagedError(
                "the bytes of its marker are in the middle of a block, where a split could begin",
                at=at,
                hint="write the file again, or set source.split_size above its size",
            )


def blocks(file: BufferedReader, header: Header, start: int, end: int) -> Iterator[Block]:
    """Yield the blocks whose preceding marker begins in the bytes [start, end). Raises DamagedError.

    The file was proven (`prove`): where the marker's bytes are, a block ends.
    """
    length = file.seek(0, SEEK_END)
    at: int | None = header.end
    if start > header.end - MARKER_BYTES:
        found = next(_found_at(file, header.marker, start, min(length, end + MARKER_BYTES - 1)), None)
        at = None if found is None else found + MARKER_BYTES
    while at is not None and at < length and at - MARKER_BYTES < end:
        file.seek(at)
        rows, size = _frame(file, length)
        data = file.read(size)
        _end_block(file, header, at)
        yield Block(at, rows, data)
        at = file.tell()


def _block_ends(file: BufferedReader, header: Header) -> Iterator[int]:
    """Yield the bytes at which the header and each block end, their marker included."""
    length = file.seek(0, SEEK_END)
    at = file.seek(header.end)
    yield at
    while at < length:
        _, size = _frame(file, length)
        file.seek(size, SEEK_CUR)
        _end_block(file, header, at)
        at = file.tell()
        yield at


def _frame(file: BufferedReader, length: int) -> tuple[int, int]:
    """Read how many rows and bytes the next block has."""
    at = file.tell()
    rows, size = _long(file), _long(file)
    if rows < 0 or not 0 <= size <= _LARGEST_BLOCK:
        raise DamagedError(f"there is no block of {rows:,} rows in {size:,} bytes", at=at)
    if file.tell() + size + MARKER_BYTES > length:
        raise DamagedError("it ends in the middle of a block, or other bytes follow the last block", at=at)
    return rows, size


def _end_block(file: BufferedReader, header: Header, at: int) -> None:
    if file.read(MARKER_BYTES) != header.marker:
        raise DamagedError("a block does not end with the file's marker", at=at)


def _found_at(file: BufferedReader, marker: bytes, start: int, end: int) -> Iterator[int]:
    """Yield each position of the marker in the bytes [start, end), also if two of them overlap."""
    begin, kept = file.seek(start), b""
    while piece := file.read(min(_PIECE_BYTES, end - begin - len(kept))):
        data = kept + piece
        at = data.find(marker)
        while at >= 0:
            yield begin + at
            at = data.find(marker, at + 1)
        kept = data[1 - len(marker) :]
        begin += len(data) - len(kept)


def _long(file: BufferedReader) -> int:
    """Read a long as Avro writes it: variable-length zigzag, seven bits a byte, the lowest first."""
    value = 0
    for place in range(_VARINT_BYTES):
        byte = file.read(1)
        if not byte:
            raise _cut_short(file)
        value |= (byte[0] & 0x7F) << (7 * place)
        if byte[0] < 0x80:
            return (value >> 1) ^ -(value & 1)
    raise DamagedError("a number of it has no end", at=file.tell())


def _bytes(file: BufferedReader, length: int) -> bytes:
    size = _long(file)
    if not 0 <= size <= length:
        raise DamagedError("its header is damaged", at=file.tell())
    data = file.read(size)
    if len(data) < size:
        raise _cut_short(file)
    return data


def _cut_short(file: BufferedReader) -> DamagedError:
    return DamagedError("it ends in the middle of its header or of a block", at=file.tell())


def _no_avro(head: bytes) -> DamagedError:
    kind = magic.kind_of(head)
    if kind is None:
        return DamagedError("it is no Avro file: it does not begin like one")
    return DamagedError(
        f"it is no Avro file: its first bytes are those of {kind}",
        hint="decompress it: Avro compresses its blocks itself",
    )
