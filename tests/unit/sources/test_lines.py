"""Cutting lines by Hadoop's rules, against the same told anew byte by byte; tests/integration/test_lines.py compares Spark."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from random import Random

import numpy as np
import pytest

from eosingest.protocol.source import PositionKind
from eosingest.sources.files.bytes import lines
from eosingest.sources.files.bytes.lines import Bounds, open_file, read_lines
from eosingest.sources.files.positions import BytePositions


def simple_lines(data: bytes, separator: bytes | None) -> list[tuple[int, bytes, int]]:
    """All lines of a file as (begin, line, position behind it)."""
    found, begin, at = [], 0, 0
    while at < len(data):
        ends = (b"\r\n", b"\n", b"\r") if separator is None else (separator,)
        length = next((len(end) for end in ends if data.startswith(end, at)), 0)
        if not length:
            at += 1
            continue
        found.append((begin, data[begin:at], at + length))
        begin = at = at + length
    if begin < len(data):
        found.append((begin, data[begin:], len(data)))
    return found


def of_split(data: bytes, start: int, end: int, separator: bytes | None) -> list[tuple[bytes, int]]:
    """The lines that begin behind the first byte of a split, the first of a file too, and at its end at the latest."""
    if start == 0:
        return [(line, behind) for begin, line, behind in simple_lines(data, separator) if begin <= end]
    # A split knows nothing of what is before it: a line feed behind a carriage return is an end of line to it.
    before = min(start, len(separator) - 1) if separator else 0
    inside = simple_lines(data[start - before :], separator)[1:]
    shifted = [(begin + start - before, line, behind + start - before) for begin, line, behind in inside]
    return [(line, behind) for begin, line, behind in shifted if begin <= end]


def read(
    data: bytes, start: int, end: int | None, separator: bytes | None, position: int | None = None
) -> list[tuple[bytes, int]]:
    found = []
    for piece in read_lines(io.BytesIO(data), Bounds(start, end, len(data), position), separator):
        lines = [piece.data[a:b] for a, b in zip(piece.starts, piece.ends, strict=True)]
        assert piece.values(separator) == lines
        found += zip(lines, piece.positions.tolist(), strict=True)
    return found


@pytest.mark.parametrize("seed", range(300))
def test_random_bytes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a line is lost, doubled or cut at the border of a split or of a block, or resumed elsewhere."""
    random = Random(seed)
    monkeypatch.setattr(lines, "_BLOCK_BYTES", random.choice((1, 2, 3, 7, 64)))
    monkeypatch.setattr(lines, "BEYOND_BYTES", random.choice((1, 2, 5)))
    separator = random.choice((None, None, b";", b"\r\n", b"abb"))
    data = bytes(random.choices(b"ab\r\n;", (3, 3, 1, 1, 1), k=random.randint(1, 60)))
    data = data.replace(b";", b"\r\n") if separator == b"\r\n" else data
    size = random.randint(1, len(data))
    found = []
    for start in range(0, len(data), size):
        end = min(len(data), start + size)
        expected = of_split(data, start, end, separator)
        assert read(data, start, end, separator) == expected, (data, start, end)
        found += expected
        for index, (_, position) in enumerate(expected):
            assert read(data, start, end, separator, position) == expected[index + 1 :], (data, start, end, position)
    whole = of_split(data, 0, len(data), separator)
    assert read(data, 0, None, separator) == whole
    assert separator is None or found == whole


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\xef\xbb\xbfa\nb", [b"a", b"b"]),
        (b"\xef\xbb\xbf\nb", [b"", b"b"]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\na", [b"\xef\xbb", b"a"]),
        (b"a\n\xef\xbb\xbfb", [b"a", b"\xef\xbb\xbfb"]),
        (b"\n\n", [b"", b""]),
        (b"\xff\x00\n", [b"\xff\x00"]),
    ],
)
def test_byte_order_mark_and_odd_bytes(data: bytes, expected: list[bytes]) -> None:
    assert [line for line, _ in read(data, 0, len(data), None)] == expected


def test_compressed(tmp_path: Path) -> None:
    """Breaks when only the first member of a file that was compressed in pieces is read."""
    path = tmp_path / "lines.GZ"
    path.write_bytes(gzip.compress(b"a\nb\n") + gzip.compress(b"c\nd"))
    with open_file(str(path)) as file:
        found = list(read_lines(file, Bounds(0, None, position=4), None))
    assert [piece.data[a:b] for piece in found for a, b in zip(piece.starts, piece.ends, strict=True)] == [b"c", b"d"]


def test_a_long_line_is_not_copied_with_each_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a line of n blocks costs n² / 2 of them."""
    monkeypatch.setattr(lines, "_BLOCK_BYTES", 1 << 10)
    reads: list[int] = []

    class Counted(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            reads.append(size or 0)
            return super().read(size)

    data = b"x" * (1 << 20) + b"\n"
    found = list(read_lines(Counted(data), Bounds(0, None), None))
    assert [len(piece) for piece in found] == [1]
    assert len(reads) < 20


@pytest.mark.parametrize("block", range(1, 8))
def test_the_end_of_a_long_line_of_the_split_before(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """Breaks when its separator, which ends in another block than it begins in, is not found."""
    monkeypatch.setattr(lines, "_BLOCK_BYTES", block)
    data = b"x" * 50 + b"abb" + b"y" + b"abb"
    found = list(read_lines(io.BytesIO(data), Bounds(20, len(data), longest=5), b"abb"))
    assert [line for piece in found for line in piece.values(b"abb")] == [b"y"]


def test_nothing_behind_the_listed_length_is_read() -> None:
    """Breaks when what is appended while the file is read becomes part of its last split."""
    found = list(read_lines(io.BytesIO(b"one\ntwo\nthree\n"), Bounds(0, 8, length=8), None))
    assert [line for piece in found for line in piece.values(None)] == [b"one", b"two"]


@pytest.mark.parametrize("start", [0, 5])
def test_a_line_without_an_end_is_not_read_whole(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a file of some other kind is taken into memory before its row is called too large; or the line of another
    split, which is passed over, whole or in parts."""
    monkeypatch.setattr(lines, "_BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(lines, "BEYOND_BYTES", 1 << 10)
    data = b"x" * (1 << 20) + b"\r\nnext\n"
    file = io.BytesIO(data)
    found = list(read_lines(file, Bounds(start, 1 << 20, len(data), longest=10_000), None))
    if start == 0:
        assert [len(line) > 10_000 for piece in found for line in piece.values(None)] == [True]
        assert file.tell() < 100_000
    else:
        assert found == []
        longer = Bounds(start, len(data), len(data), longest=10_000)
        assert [line for piece in read_lines(file, longer, None) for line in piece.values(None)] == [b"next"]


def test_positions_of_lines() -> None:
    """Breaks when a position is no plain number (it goes into the offsets topic), or a line at it counts as behind it."""
    found = BytePositions(np.array([8, 10, 16], dtype=np.int64))
    assert (found.kind, json.dumps([found.at(row) for row in range(3)])) == (PositionKind.BYTES, "[8, 10, 16]")
    assert [found.rows_up_to(byte) for byte in (0, 7, 8, 9, 10, 16, 99)] == [0, 0, 1, 1, 2, 3, 3]
    assert found.slice(1, 3).at(0) == 10
