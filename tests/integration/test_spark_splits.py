"""Our listing and our cuts against Spark's own: same files, same (file, start, length), same names and times.

Nothing here needs Kafka. The plan is read back from the physical plan that Spark would run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from eosingest.errors import FatalError
from eosingest.protocol.source import Snapshot
from eosingest.sources.files.formats import FORMATS
from eosingest.sources.files.listing.names import is_hidden
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.source import FileSource, escape_for_spark, metadata_file_path
from tests.support.builders import listing as made
from tests.support.builders import passed_over, source_file
from tests.support.warm_spark import spark_with

SIZE = 1000
SCHEMAS = {"json": "a INT", "text": "value STRING"}
CODECS = ["", ".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate", ".GZ", ".Bz2", ".zstd", ".xz", ".gz.txt"]
ODD_NAMES = [
    "plain", "sp ace", " lead", "trail ", "h#x", "p%20q", "p%q", "a[1]", "a]b", "{a}", "a}b", "ünï", "e\u0301", "😀",
    "a+b", "a&b", "a=b", "q'q", 'q"q', "b\\s", "a?b", "a*b", "a^b", "a|b", "a<b>", "a;b", "a,b", "a$(b)", "a`b", "~a",
    "a!b", "a@b", "-x", "new\nline", "cr\rx", "tab\tx", "bell\x07", "del\x7f", "c1\x85", "nbsp\xa0x", "ls\u2028x",
    "bom\ufeffx", "x, range 0-1, partition values [y]",
]  # fmt: skip
_PIECE = re.compile(r"path: file://(\S+), range: (\d+)-(\d+), partition values: ")


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    settings = {
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.files.minPartitionNum": "1",
        "spark.sql.files.maxPartitionBytes": str(SIZE),
    }
    with spark_with(settings) as session:
        yield session


def listing_of(folder: Path, format: str, *paths: str) -> tuple[FileSource, Snapshot]:
    source = FileSource(format=format, paths=paths, directory=folder, root=None, min_age_s=0)
    return source, source.plan()


def read(spark: SparkSession, format: str, files: tuple[SourceFile, ...], base: str | None = None) -> DataFrame:
    reader = spark.read.format(FORMATS[format].reader or format).schema("a INT")
    if base is not None:
        reader = reader.option("basePath", base)
    return reader.load([escape_for_spark(file.path) for file in files])


def pieces(spark: SparkSession, frame: DataFrame) -> list[tuple[str, int, int]]:
    """Read (path, start, length) of every split back from the plan, ordered."""
    jvm: Any = spark._jvm
    scan = frame._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
    partitions = scan.inputRDD().filePartitions()
    texts = [jvm.scala.runtime.ScalaRunTime.stringOf(partitions.apply(i).files()) for i in range(partitions.size())]
    found = [match for text in texts for match in _PIECE.findall(text)]
    return sorted((path, int(start), int(end) - int(start)) for path, start, end in found)


def planned(source: FileSource, listing: Snapshot, size: int = SIZE) -> list[tuple[str, int, int]]:
    return sorted(
        (metadata_file_path(file.path).removeprefix("file:"), split.start, split.length)
        for file in listing.items
        for split in source.splits.cut(file, size)
    )


@pytest.mark.in_turns("one format each")
@pytest.mark.parametrize("format", SCHEMAS)
@pytest.mark.parametrize("size", [SIZE, 4096, 7_000_000])
def test_cuts_are_spark_s(spark: SparkSession, tmp_path: Path, format: str, size: int) -> None:
    """Plans only, so the bytes do not matter: every codec suffix, lengths around multiples, and many small files."""
    lengths = [1, size - 1, size, size + 1, 2 * size, 2 * size + 1, 3 * size - 1]
    for suffix in CODECS:
        for length in lengths:
            with (tmp_path / f"{length}.{format}{suffix}").open("wb") as file:
                file.truncate(length)
    for number in range(300):
        (tmp_path / f"small{number}").write_bytes(b"x" * (number % 7))
    source, listing = listing_of(tmp_path, format, "*")
    assert len(passed_over(listing, "empty")) == 43
    spark.conf.set("spark.sql.files.maxPartitionBytes", str(size))
    try:
        assert pieces(spark, read(spark, format, listing.items)) == planned(source, listing, size)
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", str(SIZE))


def test_cuts_of_a_file_do_not_depend_on_the_other_files(spark: SparkSession, tmp_path: Path) -> None:
    for name, length in [("a", 2500), ("b", 10), ("c", 999_999)]:
        (tmp_path / name).write_bytes(b"x" * length)
    source, listing = listing_of(tmp_path, "orc", "*")
    for files in (listing.items[:1], listing.items[:2], listing.items):
        part = made(*files)
        assert pieces(spark, read(spark, "orc", files)) == planned(source, part)


@pytest.mark.in_turns("one format each")
@pytest.mark.parametrize("format", SCHEMAS)
def test_rows_of_every_split_are_found_under_our_name_and_time(
    spark: SparkSession, tmp_path: Path, format: str
) -> None:
    """Real rows through real readers: `_metadata` must speak of the files and splits that we planned."""
    write_rows(spark, tmp_path, format)
    os.utime(tmp_path / "d" / os.listdir(tmp_path / "d")[0], ns=(10**18 + 999_999_999, 10**18 + 999_999_999))
    source, listing = listing_of(tmp_path, format, "d")
    frame = read(spark, format, listing.items)
    assert pieces(spark, frame) == planned(source, listing)
    meta = ["file_path", "file_block_start", "file_size", "unix_millis(_metadata.file_modification_time) t"]
    rows = frame.selectExpr(*(f"_metadata.{m}" if m.startswith("file") else m for m in meta)).collect()
    known = {
        (metadata_file_path(file.path), split.start, file.length, file.mtime_ms)
        for file in listing.items
        for split in source.splits.cut(file, SIZE)
    }
    assert len(rows) == 4 * 2000
    assert {tuple(row) for row in rows} <= known
    assert {row.file_path for row in rows} == {metadata_file_path(file.path) for file in listing.items}


def write_rows(spark: SparkSession, folder: Path, format: str) -> None:
    """Write four files of 2,000 rows each, compressed in several ways."""
    target = folder / "d"
    target.mkdir()
    content = b"".join((b'{"a":%d}\n' if format == "json" else b"%d\n") % number for number in range(2000))
    for name, data in [("1", content), ("ü 2", content), ("3.gz", gzip.compress(content))]:
        (target / name).write_bytes(data)
    (target / "4.bz2").write_bytes(bz2.compress(content))


@pytest.mark.parametrize("where", ["file", "folder"])
def test_odd_names_reach_the_file_they_mean(spark: SparkSession, tmp_path: Path, where: str) -> None:
    names = [name for name in ODD_NAMES if where == "file" or "=" not in name]  # 'k=v' folders have tests of their own
    for number, name in enumerate(names):
        path = tmp_path / (f"{name}.jsonl" if where == "file" else f"d{name}/x.jsonl")
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'{{"a":{number}}}\n')
    for decoy in ("a1", "a", "aXb", "bs"):
        path = tmp_path / (f"{decoy}.jsonl" if where == "file" else f"d{decoy}/x.jsonl")
        path.parent.mkdir(exist_ok=True)
        path.write_text('{"a":-1}\n')
    source, listing = listing_of(tmp_path, "json", "*" if where == "file" else "d*/*")
    files = tuple(file for file in listing.items if '"a":-1' not in Path(file.path).read_text())
    assert len(files) == len(names)
    frame = read(spark, "json", files)
    assert pieces(spark, frame) == planned(source, made(*files))
    rows = frame.selectExpr("a", "_metadata.file_path p").collect()
    assert sorted(row.a for row in rows) == list(range(len(names)))
    told = {row.p: row.a for row in rows}
    for file in files:
        assert f'"a":{told[metadata_file_path(file.path)]}}}' in Path(file.path).read_text()


@pytest.mark.parametrize(
    ("name", "readable"),
    [("a:b", False), (":b", False), ("b:", False), ("d:e/x", True), ("d:e/x[1]", False), ("{d}/e:f/x", False)],
)
def test_a_colon_is_refused_exactly_where_hadoop_fails(
    spark: SparkSession, tmp_path: Path, name: str, readable: bool
) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"a":1}\n')
    plain = source_file(name, 8, path=str(path))
    if readable:
        _, listing = listing_of(tmp_path, "json", name)
        assert read(spark, "json", listing.items).count() == 1
        return
    with pytest.raises(FatalError, match="':'"):
        listing_of(tmp_path, "json", name)
    with pytest.raises(Exception, match="URI"):
        read(spark, "json", (plain,)).collect()


def test_hidden_is_what_spark_hides(spark: SparkSession, tmp_path: Path) -> None:
    names = [
        "_a",
        "_a=1",
        ".a",
        "a._COPYING_",
        "_metadata",
        "_metadata.x",
        "_common_metadata",
        "_=",
        ".a=1",
        "a_",
        "a.",
    ]
    for name in [*names, "_a=1._COPYING_", "._COPYING_", "_metadata=1"]:
        (tmp_path / name).write_text("x\n")
    seen = {
        os.path.basename(row.p) for row in spark.read.text(str(tmp_path)).selectExpr("_metadata.file_path p").collect()
    }
    assert seen == {name for name in os.listdir(tmp_path) if not is_hidden(name)}
    _, listing = listing_of(tmp_path, "text", ".")
    assert {file.name for file in listing.items} == seen


@pytest.mark.parametrize(
    "files",
    [
        ["d/a", "d/b"],
        ["d/a", "d/s/b"],
        ["d/k=1/a", "d/k=2/s/b"],
        ["d/s/k=1/a", "d/s/k=2/a"],
        ["d/k=1/j=1/a", "d/K=2/j=x/a"],
        ["d/k=1/a", "d/_s/b", "d/.s/k=1/b", "d/k=1/_s/b"],
        ["d/k=a b%3Ac/a", "d/k=ü/a"],
        ["d/_k=1/a"],
    ],
)
def test_a_folder_means_to_us_what_it_means_to_spark(spark: SparkSession, tmp_path: Path, files: list[str]) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('{"a":1}\n')
    source, listing = listing_of(tmp_path, "json", "d")
    base = source.partition_base(listing.items)
    ours = read(spark, "json", listing.items, base).selectExpr("*", "_metadata.file_path p")
    theirs = spark.read.schema("a INT").json(str(tmp_path / "d")).selectExpr("*", "_metadata.file_path p")
    assert ours.columns == theirs.columns
    assert sorted(map(str, ours.collect())) == sorted(map(str, theirs.collect()))
    assert len(listing.items) == ours.count()


def test_the_base_of_a_tree_is_given_to_spark_unescaped(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "b[1] {a}%20 ü#*"
    for key in ("1", "2"):
        (folder / f"k={key}").mkdir(parents=True)
        (folder / f"k={key}" / "x[1].jsonl").write_text('{"a":1}\n')
    source, listing = listing_of(folder, "json", ".")
    frame = read(spark, "json", listing.items, source.partition_base(listing.items))
    assert sorted(str(row.k) for row in frame.collect()) == [
        "1",
        "2",
    ]  # a number, unless the JVM's first session said otherwise
    assert pieces(spark, frame) == planned(source, listing)
    one = read(spark, "json", listing.items[:1], source.partition_base(listing.items[:1]))
    assert [str(row.k) for row in one.collect()] == ["1"]


def test_times_before_1970_and_between_milliseconds(spark: SparkSession, tmp_path: Path) -> None:
    for ns in (1_700_000_000_123_456_789, 1_700_000_000_999_999_999, -1, -1_500_000_001, 1_999_999, 0):
        path = tmp_path / f"{ns}.jsonl"
        path.write_text('{"a":1}\n')
        os.utime(path, ns=(ns, ns))
    (tmp_path / "link.jsonl").symlink_to("0.jsonl")
    _, listing = listing_of(tmp_path, "json", "*")
    rows = read(spark, "json", listing.items).selectExpr(
        "_metadata.file_path p", "unix_millis(_metadata.file_modification_time) t"
    )
    expected = {metadata_file_path(file.path): file.mtime_ms for file in listing.items}
    assert {row.p: row.t for row in rows.collect()} == expected
    assert len(expected) == 7
