"""Files that are one value each: the row of a file has what Spark's reader of binaryFile documents."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eosingest.errors import ChangedError, FatalError
from eosingest.protocol.plan import make_plan
from eosingest.sources.files.listing.names import hadoop_text
from eosingest.sources.files.reading.folder_columns import FolderColumns
from eosingest.sources.files.reading.value_reader import CONTENT, TEXT, ValueReader
from eosingest.sources.files.source import FileSource
from eosingest.spark.python_scan import PythonSplit, planned_splits


def split_of(folder: Path) -> PythonSplit:
    options = {"wholetext": "true"}
    source = FileSource(format="text", paths=["*"], directory=folder, root=None, min_age_s=0, options=options)
    (split,) = planned_splits(make_plan(source, {}, 1 << 20, source.plan()))
    return split


def test_the_columns_of_a_file(tmp_path: Path) -> None:
    packed = gzip.compress(b"\xff\n")
    path = tmp_path / "ü b%20.gz"
    path.write_bytes(packed)
    os.utime(path, ns=(0, 1_600_000_000_123_999_999))
    split, folders = split_of(tmp_path), FolderColumns()
    (found,) = ValueReader(CONTENT, folders).read(split, None)
    assert found.to_pylist() == [
        {
            "path": f"file:{path}",
            "modificationTime": datetime(2020, 9, 13, 12, 26, 40, 123_000, UTC),
            "length": len(packed),
            "content": packed,
        }
    ]
    (found,) = ValueReader(CONTENT, folders).narrowed(frozenset(["length"])).read(split, None)
    assert "content" not in found.schema.names and len(found) == 1
    (found,) = ValueReader(TEXT, folders).read(split, None)
    assert found.column("value").view("binary").to_pylist() == [b"\xff\n"]


@pytest.mark.parametrize(
    ("path", "text"),
    [("/a b/ü%", "file:/a b/ü%"), ("s3://b/k y", "s3a://b/k y"), ("hdfs://n:8020/a b", "hdfs://n:8020/a b")],
)
def test_paths_are_those_of_hadoop(path: str, text: str) -> None:
    assert hadoop_text(path) == text


def test_a_file_that_changed_or_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"x" * 99)[:-2])
    split = split_of(tmp_path)
    with pytest.raises(FatalError, match=r"a\.gz: near byte"):
        list(ValueReader(TEXT, FolderColumns()).read(split, None))
    path.write_bytes(b"other")
    with pytest.raises(ChangedError):
        list(ValueReader(CONTENT, FolderColumns()).read(split, None))


def test_memory_of_a_large_file(tmp_path: Path) -> None:
    """Breaks when the bytes of a file are copied more often than once."""
    path = tmp_path / "a"
    path.touch()
    os.truncate(path, 200 << 20)
    code = (
        "import pathlib, resource, sys; from tests.unit.sources.test_value_reader import *;"
        "split = split_of(pathlib.Path(sys.argv[1])); before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "rows = list(ValueReader(CONTENT, FolderColumns()).read(split, None));"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    grown = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert int(grown.stdout) < 450 << 10, "kibibytes"
