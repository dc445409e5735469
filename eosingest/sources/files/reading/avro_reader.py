"""Reads Avro files in tasks as Arrow columns (`python_scan.ArrowReader`).

    a split ─▶ its blocks (avro_container.py) ─▶ decompressed ─▶ fastavro: rows ─▶ avro_values.py: columns
            ─▶ columnar_values.py: the schema's types ─▶ + columns of `k=v` folders

fastavro decodes the rows of a block alone. What it does not check is checked here: that a block has as many rows as it says,
and no byte more; the checksum of snappy; that compressed data ends where the block does.
"""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from io import BufferedReader
from typing import Any, cast

import pyarrow as pa

from eosingest.sources.files.bytes.codecs import DamagedError
from eosingest.sources.files.cuts import FileSplit
from eosingest.sources.files.formats import avro_container
from eosingest.sources.files.formats.avro_container import Block
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.reading.avro_columns import AvroColumn, SchemaError, record_of
from eosingest.sources.files.reading.avro_values import array_of
from eosingest.sources.files.reading.columnar import Stored
from eosingest.sources.files.reading.columnar_reader import (
    BATCH_BYTES,
    MOST_ROWS,
    ColumnarReader,
    SchemaColumns,
    Source,
    batch_of,
)
from eosingest.sources.files.reading.columnar_values import UnfitValueError

_ROWS_WITHOUT_BYTES = 1 << 20  # of a block: their columns are all null
_CHECKSUM_BYTES = 4
_END = b"\0"  # of Avro's arrays, as which the rows of a block are decoded


@dataclass(frozen=True)
class AvroReader(ColumnarReader):
    """Reads the blocks of a split. With `narrowed`, the values of other columns are not checked against their types."""

    def batches(self, file: SourceFile, source: Source, cut: FileSplit) -> Iterator[pa.RecordBatch]:
        """See `ColumnarReader.batches`."""
        yield from _Reading(self, file, source.opened).batches(cut)


class _Reading:
    """One read of a file: its header, and its columns that are read."""

    def __init__(self, reader: AvroReader, file: SourceFile, opened: BufferedReader) -> None:
        import fastavro  # the driver and workers for other formats load this module without it

        self._opened = opened
        self._header = avro_container.read_header(opened)
        rules = replace(reader.rules, calendars=reader.rules.calendars.of_file(self._header.entries))
        try:
            record = record_of(self._header.schema)
        except SchemaError as error:
            raise DamagedError(str(error)) from error
        self._columns = SchemaColumns(reader, file, record.parts, rules)
        self._decode = fastavro.schemaless_reader
        self._wire = fastavro.parse_schema({"type": "array", "items": record.wire})

    def batches(self, cut: FileSplit) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split; those of small blocks are in one batch."""
        rows, size, held = list[Any](), 0, list[Block]()
        for block in avro_container.blocks(self._opened, self._header, cut.start, cut.start + cut.length):
            data = self._unpacked(block)
            rows += self._rows(block, data)
            size += len(data)
            held.append(block)
            if len(rows) >= MOST_ROWS or size >= BATCH_BYTES:
                yield from self._of_schema(rows, size, held)
                rows, size, held = [], 0, []
        yield from self._of_schema(rows, size, held)

    def _unpacked(self, block: Block) -> bytes:
        try:
            return _UNPACK[self._header.codec](block.data)
        except Exception as error:  # the codecs have no class in common for damage
            message = error.message if isinstance(error, DamagedError) else f"a block is not {self._header.codec}"
            raise DamagedError(message, at=block.at) from error

    def _rows(self, block: Block, data: bytes) -> list[Any]:
        """Return the rows of a block, each a dictionary of its values by the names in the wire schema."""
        if block.rows > max(len(data), _ROWS_WITHOUT_BYTES):
            raise DamagedError(f"a block cannot have {block.rows:,} rows in {len(data):,} bytes", at=block.at)
        source = io.BytesIO(_varint(block.rows) + data + _END * (block.rows > 0))
        try:
            rows: Any = self._decode(source, self._wire, None)
        except Exception as error:  # any error of fastavro, for bytes that are none of the schema
            raise DamagedError("the rows of a block cannot be decoded", at=block.at) from error
        if len(rows) != block.rows or source.read(1):
            raise DamagedError(f"a block has other rows than the {block.rows:,} that it says", at=block.at)
        return list(rows)

    def _of_schema(self, rows: list[Any], size: int, held: list[Block]) -> Iterator[pa.RecordBatch]:
        """Yield rows as batches of the schema's columns."""
        where = f"after byte {held[0].at:,}" if held else ""
        step = max(1, min(MOST_ROWS, len(rows) * BATCH_BYTES // max(1, size)))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            found = (
                self._array([row[f"f{at}"] for row in part], column, where) for at, column in self._columns.read.items()
            )
            yield from self._columns.typed(batch_of(list(found), len(part)), where)

    def _array(self, values: list[Any], column: Stored, where: str) -> Any:
        try:
            return array_of(values, cast(AvroColumn, column))
        except UnfitValueError as unfit:
            raise self._columns.unfit(column.name, str(unfit), where) from None


def _varint(number: int) -> bytes:
    """Return a number as Avro writes a long."""
    left, found = number << 1, bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])


# ---- codecs ------------------------------------------------------------------------------------------------------------


def _null(data: bytes) -> bytes:
    return data


def _deflate(data: bytes) -> bytes:
    found = zlib.decompressobj(-zlib.MAX_WBITS)
    content = found.decompress(data)
    # Avro's library for Python leaves a part of zlib's checksum after the data.
    if not found.eof or not zlib.adler32(content).to_bytes(4, "big").startswith(found.unused_data):
        raise DamagedError("the compressed data of a block does not end where the block does")
    return content


def _snappy(data: bytes) -> bytes:
    packed, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
    content: bytes = pa.Codec("snappy").decompress(packed, _snappy_length(packed), asbytes=True)
    if zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, "big") != checksum:
        raise DamagedError("the checksum of a block is wrong")
    return content


def _snappy_length(data: bytes) -> int:
    """Return the length of the content, with which snappy's data begins: seven bits a byte, the lowest first."""
    length = 0
    for place, byte in enumerate(data[:5]):
        length |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return length
    raise DamagedError("a block is not snappy")


def _to_the_end(decompressor: Any, data: bytes) -> bytes:
    content: bytes = decompressor.decompress(data)
    if not decompressor.eof or decompressor.unused_data:
        raise DamagedError("the compressed data of a block does not end where the block does")
    return content


def _zstandard(data: bytes) -> bytes:
    import zstandard  # workers for other formats do without it

    return _to_the_end(zstandard.ZstdDecompressor().decompressobj(), data)


_UNPACK: Mapping[str, Callable[[bytes], bytes]] = {
    "null": _null,
    "deflate": _deflate,
    "snappy": _snappy,
    "bzip2": lambda data: _to_the_end(bz2.BZ2Decompressor(), data),
    "xz": lambda data: _to_the_end(lzma.LZMADecompressor(lzma.FORMAT_XZ), data),
    "zstandard": _zstandard,
}
