"""The proof of Avro's container files (avro_container.py): what it takes, and what it refuses, byte by byte."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest

from eosingest.sources.files.bytes.codecs import DamagedError
from eosingest.sources.files.formats import avro_container

_SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}, {"name": "b", "type": "bytes"}]}
_MARKER = bytes(range(200, 216))


def packed(rows: list[dict[str, Any]], codec: str = "null", interval: int = 200) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, _SCHEMA, rows, codec=codec, sync_interval=interval, sync_marker=_MARKER)
    return out.getvalue()


def prove(data: bytes, *, is_cut: bool = True) -> None:
    avro_container.prove(io.BufferedReader(io.BytesIO(data)), is_cut=is_cut)  # type: ignore[arg-type]


def _rows(count: int) -> list[dict[str, Any]]:
    return [{"n": n, "b": b"x" * (n % 7)} for n in range(count)]


@pytest.mark.parametrize("codec", avro_container.CODECS)
def test_whole_files(codec: str) -> None:
    """Breaks when a good file is refused, or its header is misread."""
    for count in (0, 1, 500):
        data = packed(_rows(count), codec)
        prove(data)
        header = avro_container.read_header(io.BufferedReader(io.BytesIO(data)))  # type: ignore[arg-type]
        assert (header.codec, header.marker) == (codec, _MARKER)
        assert data[header.end - 16 : header.end] == _MARKER


def test_every_cut() -> None:
    """A file that ends at a block's end is a file; one that ends at any other byte is not."""
    data = packed(_rows(200))
    ends = {at + 16 for at in range(len(data)) if data.startswith(_MARKER, at)}
    taken = set()
    for length in range(len(data)):
        try:
            prove(data[:length])
            taken.add(length)
        except DamagedError:
            pass
    assert len(ends) > 3
    assert taken == ends - {len(data)}


def test_every_flipped_bit_of_the_frame() -> None:
    """Lengths and markers are looked at; how many rows a block has, and what they are, is for Spark's decoder to say."""
    data = packed(_rows(60))
    header = avro_container.read_header(io.BufferedReader(io.BytesIO(data)))  # type: ignore[arg-type]
    second = data.index(_MARKER, header.end)
    for at in (*range(header.end + 1, header.end + 3), *range(second, second + 16)):
        for bit in range(8):
            with pytest.raises(DamagedError):
                prove(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])


@pytest.mark.parametrize("tail", [b"\0", bytes(8), bytes(18), b"\n", b"\2\0" + _MARKER[:-1], b"\xff" * 12, _MARKER])
def test_tails(tail: bytes) -> None:
    """Breaks when what stands behind the last block is passed over: of zero bytes Spark makes an empty block."""
    with pytest.raises(DamagedError):
        prove(packed(_rows(60)) + tail)


def test_empty_blocks() -> None:
    data = packed(_rows(60))
    end = avro_container.read_header(io.BufferedReader(io.BytesIO(data))).end  # type: ignore[arg-type]
    prove(data[:end] + b"\0\0" + _MARKER + data[end:] + b"\0\0" + _MARKER)


def test_a_marker_in_a_block() -> None:
    """Breaks when a split may begin at bytes that only look like a block's end."""
    data = packed([*_rows(30), {"n": 1, "b": b"y" * 20 + _MARKER + b"z" * 20}, *_rows(30)])
    prove(data, is_cut=False)
    with pytest.raises(DamagedError, match="in the middle of a block"):
        prove(data)


def test_a_marker_over_a_border_of_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    data = packed([*_rows(30), {"n": 1, "b": _MARKER}, *_rows(30)])
    for size in range(1, 60):
        monkeypatch.setattr(avro_container, "_PIECE_BYTES", size)
        with pytest.raises(DamagedError, match="in the middle of a block"):
            prove(data)


def test_markers_that_overlap() -> None:
    """Breaks when of two places only the first is seen: Spark's search begins where the split does."""
    out = io.BytesIO()
    fastavro.writer(out, _SCHEMA, [{"n": 1, "b": b"x\0"}] * 9, sync_interval=1, sync_marker=bytes(16))
    with pytest.raises(DamagedError, match="in the middle of a block"):
        prove(out.getvalue())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a,b\n1,2\n", "does not begin like one"),
        (b"\x1f\x8b\x08" + bytes(20), "those of gzip"),
        (b"Obj\x02" + bytes(20), "does not begin like one"),
        (b"Obj\x01", "ends in the middle"),
        (b"Obj\x01\0" + bytes(16), "no schema"),
        (b"Obj\x01" + b"\xff" * 12, "no end"),
        (b"Obj\x01\2\x7e" + bytes(9), "header is damaged"),
        (packed([]).replace(b"null", b"nul2"), "compressed with nul2"),
    ],
)
def test_headers_that_are_none(data: bytes, words: str) -> None:
    with pytest.raises(DamagedError, match=words):
        prove(data)
