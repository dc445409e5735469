"""Reads the footer of an ORC file, a protobuf message: pyarrow shows neither stripes nor calendar nor all types.

The messages are those of orc_proto.proto, from Apache ORC's specification.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import lz4.block
import pyarrow as pa
import zstandard

# Fields of messages: FileTail, Footer, StripeInformation, Type, StringPair, ColumnStatistics, TimestampStatistics.
_FOOTER = 2
_STRIPES, _TYPES, _STATISTICS, _ENCRYPTION, _CALENDAR = 3, 4, 7, 10, 11
_OFFSET, _INDEX_BYTES, _DATA_BYTES, _FOOTER_BYTES, _ROWS = 1, 2, 3, 4, 5
_KIND, _SUBTYPES, _NAMES, _PRECISION, _SCALE, _ATTRIBUTES = 1, 2, 3, 5, 6, 7
_NUMBER_OF_VALUES, _UNKNOWN = 1, b"\x08\x01"  # statistics of a file that has none: there is a value
_TIME_STATISTICS, _LEAST_OF_ZONE, _MOST_OF_ZONE, _LEAST, _MOST = 9, 1, 2, 3, 4
_PROLEPTIC = 2
_ZONE = 3  # of a StripeFooter
KINDS = (
    *("BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "STRING", "BINARY", "TIMESTAMP", "LIST", "MAP"),
    *("STRUCT", "UNION", "DECIMAL", "DATE", "VARCHAR", "CHAR", "TIMESTAMP_INSTANT", "GEOMETRY", "GEOGRAPHY"),
)


class Stripe(NamedTuple):
    """A stripe: its first byte, its length in bytes, its number of rows, and the length of its footer, its last bytes."""

    start: int
    length: int
    rows: int
    footer: int


@dataclass(frozen=True)
class OrcType:
    """A type: its kind, one of KINDS; the places of its parts in the list of all types, their `names` in a struct.

    `has_values`: a value is not null, as far as the file says. `times` are the least and the greatest time of the column, in
    milliseconds since 1970, None if the file does not say.
    """

    kind: str
    parts: tuple[int, ...]
    names: tuple[str, ...]
    precision: int
    scale: int
    attributes: Mapping[str, str]
    has_values: bool
    times: tuple[int, int] | None


@dataclass(frozen=True)
class OrcFooter:
    """The footer of a file. The first of `types` is that of rows. `is_proleptic`: dates are by today's calendar."""

    stripes: tuple[Stripe, ...]
    types: tuple[OrcType, ...]
    is_proleptic: bool
    is_encrypted: bool


def read_footer(tail: bytes) -> OrcFooter:
    """Return the footer in a file's tail, as pyarrow's `serialized_file_tail` returns it. Raises ValueError."""
    (footer,) = _messages(tail, _FOOTER)
    statistics = list(_messages(footer, _STATISTICS))
    types = list(_messages(footer, _TYPES))
    statistics += [_UNKNOWN] * (len(types) - len(statistics))
    return OrcFooter(
        tuple(_stripe(_numbers(each)) for each in _messages(footer, _STRIPES)),
        tuple(_type(each, of) for each, of in zip(types, statistics, strict=False)),
        _numbers(footer).get(_CALENDAR) == _PROLEPTIC,
        any(True for _ in _messages(footer, _ENCRYPTION)),
    )


def writer_zone(stripe_footer: bytes, codec: str, block: int) -> str:
    """Return the time zone in which a stripe's times were written, from the stripe's footer, compressed in blocks of a size.

    The text is empty if the zone is not known. Raises ValueError.
    """
    if codec != "UNCOMPRESSED":
        stripe_footer = b"".join(_chunks(stripe_footer, codec, block))
    return b"".join(_messages(stripe_footer, _ZONE)).decode()


def _chunks(data: bytes, codec: str, block: int) -> Iterator[bytes]:
    """Yield the contents of chunks, each with a header of three bytes: its length, and whether it is not compressed."""
    while data:
        header = int.from_bytes(data[:3], "little")
        chunk, data = data[3 : 3 + (header >> 1)], data[3 + (header >> 1) :]
        if header & 1:
            yield chunk
        elif codec in _DECOMPRESS:
            yield _DECOMPRESS[codec](chunk, block)


def _snappy(chunk: bytes, block: int) -> bytes:
    return bytes(pa.Codec("snappy").decompress(chunk, _number(chunk, 0)[0], asbytes=True))


_DECOMPRESS: Mapping[str, Callable[[bytes, int], bytes]] = {
    "ZLIB": lambda chunk, block: zlib.decompress(chunk, -zlib.MAX_WBITS),
    "SNAPPY": _snappy,
    "ZSTD": lambda chunk, block: zstandard.ZstdDecompressor().decompress(chunk, max_output_size=block),
    "LZ4": lambda chunk, block: lz4.block.decompress(chunk, uncompressed_size=block),
}


def _stripe(found: Mapping[int, int]) -> Stripe:
    length = sum(found.get(each, 0) for each in (_INDEX_BYTES, _DATA_BYTES, _FOOTER_BYTES))
    return Stripe(found.get(_OFFSET, 0), length, found.get(_ROWS, 0), found.get(_FOOTER_BYTES, 0))


def _type(message: bytes, statistics: bytes) -> OrcType:
    found = _numbers(message)
    parts = [place for each in _messages(message, _SUBTYPES) for place in _packed(each)]
    parts += [value for field, value in _fields(message) if field == _SUBTYPES and isinstance(value, int)]
    attributes = dict(_pair(each) for each in _messages(message, _ATTRIBUTES))
    names = tuple(each.decode() for each in _messages(message, _NAMES))
    kind = found.get(_KIND, 0)
    words = KINDS[kind] if kind < len(KINDS) else f"type {kind}"
    has_values = _numbers(statistics).get(_NUMBER_OF_VALUES, 0) > 0
    digits = found.get(_PRECISION, 0), found.get(_SCALE, 0)
    return OrcType(words, tuple(parts), names, *digits, attributes, has_values, _times(statistics))


def _pair(message: bytes) -> tuple[str, str]:
    key, value = (b"".join(_messages(message, field)).decode() for field in (1, 2))
    return key, value


def _times(statistics: bytes) -> tuple[int, int] | None:
    for message in _messages(statistics, _TIME_STATISTICS):
        found = {field: (value >> 1) ^ -(value & 1) for field, value in _numbers(message).items()}
        least, most = found.get(_LEAST, found.get(_LEAST_OF_ZONE)), found.get(_MOST, found.get(_MOST_OF_ZONE))
        if least is not None and most is not None:
            return least, most
    return None


# ---- protobuf --------------------------------------------------------------------------------------------------------


def _messages(message: bytes, field: int) -> Iterator[bytes]:
    return (value for number, value in _fields(message) if number == field and isinstance(value, bytes))


def _numbers(message: bytes) -> dict[int, int]:
    return {number: value for number, value in _fields(message) if isinstance(value, int)}


def _packed(numbers: bytes) -> Iterator[int]:
    at = 0
    while at < len(numbers):
        value, at = _number(numbers, at)
        yield value


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field: an integer, or the bytes of any other value."""
    at = 0
    while at < len(message):
        tag, at = _number(message, at)
        if tag & 7 == 0:
            value, at = _number(message, at)
            yield tag >> 3, value
            continue
        length, at = _number(message, at) if tag & 7 == 2 else ({1: 8, 5: 4}.get(tag & 7, -1), at)
        if length < 0 or at + length > len(message):
            raise ValueError("no protobuf message")
        yield tag >> 3, message[at : at + length]
        at += length


def _number(message: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at a byte, and the byte after it."""
    found = shift = 0
    while at < len(message):
        found |= (message[at] & 0x7F) << shift
        if message[at] < 0x80:
            return found, at + 1
        at, shift = at + 1, shift + 7
    raise ValueError("no protobuf message")
