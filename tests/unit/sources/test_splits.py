"""Cuts and names: the tables that tests/integration/test_spark_splits.py holds against Spark itself."""

from __future__ import annotations

import pytest

from eosingest.sources.files.cuts import cut, is_splittable
from eosingest.sources.files.source import escape_for_spark, metadata_file_path
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


def test_escape_for_spark() -> None:
    assert escape_for_spark("/a b/[1]{x}*?^\\#%é") == r"/a b/\[1\]\{x\}\*\?\^\\#%é"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/plain-_.!~*'();:@&=+$,", "file:/plain-_.!~*'();:@&=+$,"),
        ("/sp ace/ünï#", "file:/sp%20ace/ünï%23"),
        ('/p%20q/[1]{a}"<>`|^\\?', "file:/p%2520q/%5B1%5D%7Ba%7D%22%3C%3E%60%7C%5E%5C%3F"),
        ("/\n\x7f\x85\xa0\u2028", "file:/%0A%7F%C2%85%C2%A0%E2%80%A8"),
        ("/😀\ufeff", "file:/😀\ufeff"),
    ],
)
def test_metadata_file_path(path: str, expected: str) -> None:
    assert metadata_file_path(path) == expected
