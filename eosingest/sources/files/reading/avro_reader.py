"""Reads Avro files in tasks as Arrow columns (`python_scan.ArrowReader`).

    a split ─▶ its blocks (avro_container.py) ─▶ decompressed ─▶ fastavro: rows ─▶ avro_values.py: columns
            ─▶ parquet_values.py: the schema's types ─▶ + columns of `k=v` folders

fastavro decodes the rows of a block alone. What it does not check is checked here: that a block has as many rows as it says,
and no byte more; the checksum of snappy; that compressed data ends where the block does.
"""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from io import BufferedReader
from typing import Any

import pyarrow as pa

from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.sources.files.bytes.codecs import DamagedError
from eosingest.sources.files.cuts import FileSplit, file_split
from eosingest.sources.files.formats import avro_container
from eosingest.sources.files.formats.avro_container import Block
from eosingest.sources.files.listing.source_file import SourceFile, as_file
from eosingest.sources.files.reading.avro_columns import SchemaError, record_of
from eosingest.sources.files.reading.avro_values import array_of
from eosingest.sources.files.reading.folder_columns import FolderColumns
from eosingest.sources.files.reading.open_file import bad_data, opened_to_read
from eosingest.sources.files.reading.parquet_reader import BATCH_BYTES, cut_by_bytes, of_schema
from eosingest.sources.files.reading.parquet_values import Rules, UnfitValueError, converted
from eosingest.spark.python_scan import PythonSplit

_MOST_ROWS = 16_384  # of a batch
_ROWS_WITHOUT_BYTES = 1 << 20  # of a block: their columns are all null
_CHECKSUM_BYTES = 4
_END = b"\0"  # of Avro's arrays, as which the rows of a block are decoded


@dataclass(frozen=True)
class AvroReader:
    """Reads the blocks of a split. `schema` has the columns to read with their types; those of `folders` are the last.

    `rules` say how values are read.
    """

    schema: pa.Schema
    folders: FolderColumns = field(default_factory=FolderColumns)
    rules: Rules = field(default_factory=Rules)

    def narrowed(self, names: frozenset[str]) -> AvroReader:
        """Return a reader of only these columns. The values of others are not checked against their types."""
        fields = [field for field in self.schema if field.name in names]
        return replace(self, schema=pa.schema(fields), folders=self.folders.narrowed(names))

    def read(self, split: PythonSplit, committed: OffsetRecord | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split, including committed ones; see `python_scan.ArrowReader`."""
        file, cut = as_file(split.item), file_split(split.planned.split)
        with opened_to_read(file, cut.start + cut.length + avro_container.HEAD_BYTES) as opened:
            yield from _Reading(self, file, opened).batches(cut)


class _Reading:
    """One read of a file: its header, and its columns that are read."""

    def __init__(self, reader: AvroReader, file: SourceFile, opened: BufferedReader) -> None:
        import fastavro  # the driver and workers for other formats load this module without it

        self._file = file
        self._opened = opened
        self._schema = reader.schema
        self._folders = reader.folders.of(file)
        self._header = avro_container.read_header(opened)
        self._rules = replace(reader.rules, calendars=reader.rules.calendars.of_file(self._header.entries))
        try:
            record = record_of(self._header.schema)
        except SchemaError as error:
            raise DamagedError(str(error)) from error
        self._columns = {self._rules.folded(part.name): (f"f{at}", part) for at, part in enumerate(record.parts)}
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
            if len(rows) >= _MOST_ROWS or size >= BATCH_BYTES:
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
        step = max(1, min(_MOST_ROWS, len(rows) * BATCH_BYTES // max(1, size)))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            made = partial(self._made, part, held)
            yield from cut_by_bytes(of_schema(self._file, self._schema, self._folders, len(part), made))

    def _made(self, rows: list[Any], held: list[Block], wanted: Any) -> Any:
        """Return a column of the schema, None if the file does not have it."""
        name, column = self._columns.get(self._rules.folded(wanted.name), ("", None))
        if column is None:
            return None
        try:
            return self._converted([row[name] for row in rows], column, wanted.type)
        except UnfitValueError as unfit:
            way_out = "write the file again, or list the columns to read in source.schema, without this one"
            where = f"after byte {held[0].at:,}"
            raise bad_data(self._file, f"{where}: column {column.name}: {unfit}", way_out) from None

    def _converted(self, values: list[Any], column: Any, target: Any) -> Any:
        return converted(array_of(values, column), column, target, self._rules)


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
