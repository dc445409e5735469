"""What an Avro file says, by Apache's library for Python: a run decodes rows by fastavro, and opens files by itself."""

from __future__ import annotations

import datetime
import io
import json
import lzma
import warnings
from functools import cache
from typing import Any

import avro.codecs
import avro.datafile
import avro.io
import avro.schema
import cramjam

_EPOCH = datetime.datetime(1970, 1, 1)
_UNITS = {"local-timestamp-millis": 1000, "local-timestamp-micros": 1}


class _Unpacked(avro.codecs.NullCodec):
    """A codec that the library does not have: snappy needs a package with a C library, xz is none of its own."""

    @classmethod
    def decompress(cls, readers_decoder: avro.io.BinaryDecoder) -> avro.io.BinaryDecoder:
        return avro.io.BinaryDecoder(io.BytesIO(cls.unpacked(readers_decoder.read_bytes())))

    @staticmethod
    def unpacked(data: bytes) -> bytes:
        raise NotImplementedError


class _Xz(_Unpacked):
    @staticmethod
    def unpacked(data: bytes) -> bytes:
        return lzma.decompress(data)


class _Snappy(_Unpacked):
    @staticmethod
    def unpacked(data: bytes) -> bytes:
        content = bytes(cramjam.snappy.decompress_raw(data[:-4]))
        avro.codecs._check_crc32(content, data[-4:])
        return content


avro.codecs.KNOWN_CODECS |= {"xz": _Xz, "snappy": _Snappy}


class _Values(avro.io.DatumReader):
    """Reads times without a zone too, for which the library has no type."""

    def read_data(self, writers_schema: Any, readers_schema: Any, decoder: Any) -> Any:
        value: Any = super().read_data(writers_schema, readers_schema, decoder)
        unit = _UNITS.get(str(writers_schema.get_prop("logicalType")))
        return value if unit is None else _EPOCH + datetime.timedelta(microseconds=value * unit)


@cache
def avro_rows(data: bytes) -> tuple[list[str], list[Any]]:
    """Return the names of the columns, and the rows. Raises an error of any class for a file that is damaged."""
    with warnings.catch_warnings(action="ignore"):  # at logical types that it does not have
        reader = avro.datafile.DataFileReader(io.BytesIO(data), _Values())
    schema = json.loads(reader.schema)
    rows = list(reader)
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("rows that are no records")
    return [field["name"] for field in schema["fields"]], rows
