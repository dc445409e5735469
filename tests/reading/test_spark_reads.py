"""What Spark makes of the compressed files that pass the inspection, in small splits too: exactly their rows. One session."""

from __future__ import annotations

import bz2
import gzip
import os
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import lz4.frame
import pytest
import zstandard
from pyspark.sql import SparkSession

from eosingest.errors import ChangedError, FatalError
from eosingest.host import interruptible
from eosingest.host.interruption import never
from eosingest.protocol.plan import Plan, make_plan
from eosingest.sources.files.reading.inspect_files import inspect_pending
from eosingest.sources.files.reading.rows import ReadSettings, file_rows
from eosingest.sources.files.reading.scan import spark_conf
from eosingest.sources.files.source import FileSource
from eosingest.spark import session
from eosingest.spark.record_columns import CORRUPT, record_frame
from eosingest.spark.scan import tasks_of
from eosingest.spark.session import Spark
from tests.support.compressed import COMPRESS, SKIPPABLE, independently, rows_of, text_of, zstd

SPLIT_BYTES = 25_000
HALF = 110_000  # of the text, roughly: behind a block


@pytest.fixture(scope="module")
def started() -> Iterator[Spark]:
    spark = interruptible.in_thread(
        lambda: session.start(
            job="reading", master="local[2]", conf={}, of_source=spark_conf(SPLIT_BYTES), log_file=None
        ),
        never,
        "spark",
    )
    spark.context.setLogLevel("OFF")
    yield spark
    spark.stop()


@pytest.fixture(scope="module")
def spark(started: Spark) -> SparkSession:
    return started.sql()


def settings_of(format: str, **options: str) -> ReadSettings:
    return ReadSettings(
        format=format,
        options=options,
        schema={"text": None, "json": "v STRING"}.get(format),
        where=None,
        select=("*",),
        key=None,
        value="value" if format == "text" else "v",
        headers={},
        timestamp=None,
    )


def plan_of(folder: Path, format: str) -> Plan:
    source = FileSource(format=format, paths=["*"], directory=folder, root=None, min_age_s=0)
    return make_plan(source, {}, SPLIT_BYTES, source.plan())


def read(spark: SparkSession, settings: ReadSettings, folder: Path) -> list[bytes]:
    """Return the values of the records of a folder's files, having looked at the files as a run does."""
    plan = plan_of(folder, settings.format)
    inspect_pending(tasks_of(spark.sparkContext), settings, plan, as_lines=False, slots=2)
    rows = record_frame(file_rows(spark, settings, plan, None), settings).records.select("value", CORRUPT).collect()
    assert all(row[CORRUPT] is None for row in rows)
    return [bytes(row.value) for row in rows]


def bz2_files(random: Random, text: bytes) -> Iterator[bytes]:
    """Yield one stream or many, blocks of each size, cut anywhere; lines longer than a block, and very short ones."""
    yield bz2.compress(text, 1)
    yield bz2.compress(text, 9)
    yield bz2.compress(text[:HALF], 1) + bz2.compress(text[HALF:], 1)
    yield bz2.compress(text[:HALF], 9) + bz2.compress(b"") + bz2.compress(text[HALF:], 1) + bz2.compress(b"")
    cuts = sorted(random.sample(range(len(text)), 12))
    yield b"".join(bz2.compress(text[a:b], 1) for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True))
    yield bz2.compress(text.replace(b"\n", b"-") + b"\n" + text, 1)
    yield bz2.compress(re.sub(rb"([^\n]{2})", rb"\1\n", text), 1)


@pytest.mark.slow_cases("any end")
@pytest.mark.parametrize("separator", [None, "7"], ids=["any end", "7"])
def test_bzip2_is_cut_right(tmp_path: Path, spark: SparkSession, separator: str | None) -> None:
    """Breaks when a row at the border of a block or of a split is lost or doubled."""
    text = text_of("text", 3600)
    expected: list[bytes] = []
    for number, data in enumerate(bz2_files(Random(3), text)):
        (tmp_path / f"f{number}.BZ2").write_bytes(data)
        lines = bz2.decompress(data).split(b"\n" if separator is None else separator.encode())
        expected += lines if lines[-1] else lines[:-1]
    plan = plan_of(tmp_path, "text")
    assert len(plan.pending) > 3 * len(plan.items)
    found = read(spark, settings_of("text", **({} if separator is None else {"lineSep": separator})), tmp_path)
    assert len(found) == len(expected)
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("format", ["text", "json"])
def test_every_codec_that_spark_reads(tmp_path: Path, spark: SparkSession, format: str) -> None:
    """Breaks when a codec is not registered with Spark, or reads something else than its library."""
    rows, text = rows_of(format, 3000), text_of(format, 3000)
    half = text.index(b"\n", len(text) // 2) - 3
    known_size = zstandard.ZstdCompressor(write_content_size=True).compress
    for suffix in ("gz", "bz2", "zst", "lz4", "deflate"):
        compress = COMPRESS[suffix]
        (tmp_path / f"a.{suffix}").write_bytes(compress(text))
        (tmp_path / f"b.{suffix.upper()}").write_bytes(compress(text[:half]) + compress(b"") + compress(text[half:]))
    (tmp_path / "c.zst").write_bytes(known_size(text) + zstd(text, window_log=23, level=19))
    found = read(spark, settings_of(format), tmp_path)
    values = [row[7:-2] if format == "json" else row for row in rows]
    assert len(found) == 12 * len(rows)
    assert sorted(found) == sorted(values * 12)


def lz4_frames(random: Random, text: bytes) -> bytes:
    """Some frames of any kind the tool or the library writes, written at once or in pieces, skippable ones between them."""
    cuts = sorted(random.sample(range(len(text)), random.randrange(3)))
    found = b""
    for part in (text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)):
        found += random.choice([b"", b"", SKIPPABLE])
        compressor = lz4.frame.LZ4FrameCompressor(
            block_size=random.choice([0, 4, 5, 6, 7]),
            block_linked=random.random() < 0.6,
            compression_level=random.choice([-5, 0, 1, 3, 9, 12]),
            content_checksum=random.random() < 0.5,
            block_checksum=random.random() < 0.5,
            auto_flush=random.random() < 0.5,
        )
        found += compressor.begin(source_size=random.choice([0, len(part)]))
        step = random.choice([1_000, 66_000, 500_000])
        found += b"".join(compressor.compress(part[at : at + step]) for at in range(0, len(part), step))
        found += compressor.flush()
    return found


def test_frames_of_lz4(tmp_path: Path, spark: SparkSession) -> None:
    """Breaks when our codec reads a frame otherwise than lz4's own library does."""
    random, expected = Random(4), []
    kinds = (
        lambda: random.randbytes(60).hex().encode(),
        lambda: b"ab" * random.randrange(3000),
        lambda: b"one and the same",
    )
    for number in range(40):
        make, size = random.choice(kinds), random.choice([1, 60, 3_000])
        rows = [b"%d %s" % (number, make()[: 9_000 if size < 3_000 else 200]) for _ in range(size)]
        data = lz4_frames(random, b"\n".join(rows))
        assert independently("lz4", data) == b"\n".join(rows)
        (tmp_path / f"f{number:02}.lz4").write_bytes(data)
        expected += rows
    assert sorted(read(spark, settings_of("text"), tmp_path)) == sorted(expected)


def test_files_from_before_1970(tmp_path: Path, spark: SparkSession) -> None:
    """Breaks when a file is called changed for ever since its modification time is a negative number."""
    times_ns = [-1, -1_000_000, -999_001, -1_000_500_000, -86_400_123_456_789, 0, 1_999_999]
    for number, time_ns in enumerate(times_ns):
        (tmp_path / f"f{number}").write_bytes(b'{"v": "x"}\n')
        os.utime(tmp_path / f"f{number}", ns=(0, time_ns))
    plan = plan_of(tmp_path, "json")
    files = file_rows(spark, settings_of("json"), plan, None)
    splits, _ = files.verified(record_frame(files, settings_of("json")).records)
    assert len(splits) == len(times_ns)


def test_damage_is_found_by_tasks(tmp_path: Path, spark: SparkSession) -> None:
    """Breaks when a run goes on with a damaged file, or calls a file damaged that has changed."""
    good = bz2.compress(text_of("json", 2000), 1)
    for number in range(6):
        (tmp_path / f"f{number}.bz2").write_bytes(good if number % 2 else good[: -number - 1])
    (tmp_path / "plain.json").write_bytes(text_of("json", 10))
    plan = plan_of(tmp_path, "json")
    with pytest.raises(FatalError) as caught:
        inspect_pending(tasks_of(spark.sparkContext), settings_of("json"), plan, as_lines=False, slots=2)
    assert caught.value.code == "bad-data"
    assert caught.value.message.count("bzip2 stream") == 3
    assert all(f"f{number}.bz2: near byte" in caught.value.message for number in (0, 2, 4))
    (tmp_path / "f0.bz2").write_bytes(gzip.compress(b"x"))
    with pytest.raises(ChangedError):
        inspect_pending(tasks_of(spark.sparkContext), settings_of("json"), plan, as_lines=False, slots=2)
