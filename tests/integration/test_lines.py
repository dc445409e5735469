"""Lines cut from the bytes of a file: against Spark's own text reader, byte by byte, and in a job whose file changes."""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from eosingest.sources.files.bytes.lines import Bounds, is_compressed, open_file, read_lines
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.source import FileSource
from tests.support.commands import finish
from tests.support.harness import LINES_SPEC, Job
from tests.support.held_runs import start_held
from tests.support.job_checks import write_files
from tests.support.warm_spark import spark_with

SIZES = [7, 64, 1 << 20]
_ENDS = [b"\n", b"\r", b"\r\n"]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    settings = {
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
        "spark.sql.files.minPartitionNum": "1",
        "spark.sql.files.openCostInBytes": "0",
        "spark.hadoop.mapreduce.input.linerecordreader.line.maxlength": str(2**31 - 1),
    }
    with spark_with(settings) as session:
        yield session


def random_bytes(random: Random) -> bytes:
    """Short lines with every way to end one, odd bytes, and now and then a byte order mark or a long line."""
    mark = b"\xef\xbb\xbf" if random.random() < 0.2 else b""
    kinds = [b"a", b"b", b";", b"\x00", b"\xff", b"\xef\xbb\xbf", *_ENDS]
    weights = (6, 6, 2, 1, 1, 1, *random.choice([(3, 0, 0), (0, 3, 0), (0, 0, 3), (2, 2, 2)]))
    text = b"".join(random.choices(kinds, weights, k=random.randint(0, 120)))
    return mark + text + (b"x" * 300 if random.random() < 0.1 else b"")


def write_odd_files(folder: Path, random: Random) -> None:
    edges = [
        b"\xef\xbb\xbf",
        b"\n",
        b"\r",
        b"\r\n",
        b"a",
        b"a\r",
        b"aaaaaa\r\nb\n",
        b"aaaaaaa\n",
        b"aaaaa\r\n" * 9,
        b"a\n\r\n",
    ]
    for index, data in enumerate([*edges, *(random_bytes(random) for _ in range(120))]):
        (folder / f"f{index:03}.txt").write_bytes(data)
        if index % 4 == 0:
            middle = len(data) // 2
            (folder / f"g{index:03}.gz").write_bytes(gzip.compress(data[:middle]) + gzip.compress(data[middle:]))


def spark_lines(
    spark: SparkSession, files: tuple[SourceFile, ...], size: int, separator: str | None
) -> dict[tuple[str, int], list[bytes]]:
    """Return what Spark reads of each split, in order."""
    spark.conf.set("spark.sql.files.maxPartitionBytes", str(size))
    reader = spark.read.format("text")
    if separator is not None:
        reader = reader.option("lineSep", separator)
    rows = reader.load([file.path for file in files]).selectExpr(
        "_metadata.file_name", "_metadata.file_block_start", "CAST(value AS BINARY)"
    )
    found: dict[tuple[str, int], list[bytes]] = defaultdict(list)
    for name, start, value in rows.coalesce(2).collect():
        found[name, start].append(bytes(value))
    return dict(found)


def by_file(lines: dict[tuple[str, int], list[bytes]]) -> dict[tuple[str, int], list[bytes]]:
    """Return the lines of each file, in order."""
    found: dict[tuple[str, int], list[bytes]] = defaultdict(list)
    for name, start in sorted(lines):
        found[name, 0] += lines[name, start]
    return dict(found)


@pytest.mark.slow_cases("7-*")
@pytest.mark.parametrize("separator", [None, ";", "\r", "a;"])
@pytest.mark.parametrize("size", SIZES)
def test_lines_are_spark_s(spark: SparkSession, tmp_path: Path, size: int, separator: str | None) -> None:
    """Breaks when a split has other lines than Spark's: another end of line, border, byte order mark, or compression."""
    write_odd_files(tmp_path, Random(size))
    source = FileSource(format="text", paths=["."], directory=tmp_path, root=None, min_age_s=0)
    files = source.plan().items
    found = {}
    for file in files:
        for split in source.splits.cut(file, size):
            end = separator.encode() if separator else None
            bounds = Bounds(split.start, split.start + split.length, file.length)
            if is_compressed(file.path):
                bounds = Bounds(0, None)
            with open_file(file.path) as opened:
                lines = [line for piece in read_lines(opened, bounds, end) for line in piece.values(end)]
            if lines:
                found[split.file, split.start] = lines
    expected = spark_lines(spark, files, size, separator)
    if separator == "a;":  # of an end of line across a border Hadoop gives the next line to the split before
        found, expected = by_file(found), by_file(expected)
    assert expected
    assert found == expected


@pytest.mark.slow
def test_a_file_that_changes_under_the_run(job: Job) -> None:
    """Breaks when bytes of another content go out under the fingerprint of the one that was listed."""
    job.write_spec(LINES_SPEC)
    write_files(job, files=1, rows=9_000)
    process = start_held(job, "task-after-check=sleep:3", "--set", "spark.master=local[1]")  # one task: one is held
    path = job.data / "part-0.jsonl"
    path.write_bytes(path.read_bytes().upper())
    done = finish(process)

    assert (done.exit_code, done.codes) == (12, ["changed-while-read"]), done
    assert job.records() == []
