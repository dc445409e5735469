"""Where files are cut, and which are not."""

from __future__ import annotations

import pytest

from eosingest.sources.files.cuts import cut, is_splittable
from tests.support.builders import source_file


@pytest.mark.parametrize(
    ("length", "splittable", "expected"),
    [
        (0, True, []),
        (0, False, []),
        (1, True, [(0, 1)]),
        (10, True, [(0, 10)]),
        (11, True, [(0, 10), (10, 1)]),
        (20, True, [(0, 10), (10, 10)]),
        (21, False, [(0, 21)]),
    ],
)
def test_cut(length: int, splittable: bool, expected: list[tuple[int, int]]) -> None:
    file = source_file("n", length, splittable=splittable)
    assert [(split.start, split.length) for split in cut(file, 10)] == expected


@pytest.mark.parametrize(
    ("format", "path", "expected"),
    [
        ("json", "a.jsonl", True),
        ("json", "a.jsonl.gz", False),
        ("json", "A.GZ", False),
        ("text", "a.gz.txt", True),
        ("text", "gz", True),
        ("csv", "a.bz2", False),
        ("csv", "a.zst", False),
        ("csv", "a.zstd", True),
        ("csv", "a.lz4", False),
        ("csv", "a.snappy", False),
        ("csv", "a.deflate", False),
        ("parquet", "a.gz.parquet", True),
        ("parquet", "a.gz", True),
        ("orc", "a.snappy", True),
        ("avro", "a.gz", True),
    ],
)
def test_splittable(format: str, path: str, expected: bool) -> None:
    assert is_splittable(format, {}, path) is expected


@pytest.mark.parametrize(
    ("separator", "expected"), [("\n", True), ("\r\n", True), ("||", False), ("aba", False), ("é", True)]
)
def test_text_is_cut_unless_its_separator_overlaps_itself(separator: str, expected: bool) -> None:
    assert is_splittable("text", {"lineSep": separator}, "a.txt") is expected
