"""Compressed files in whole runs: read exactly and verified, or refused before anything is sent."""

from __future__ import annotations

import bz2
import gzip
from random import Random

from tests.integration.harness import LINES_SPEC, Job, assert_done, assert_refused
from tests.reading.files import SKIPPABLE, lz4_frame, zstd


def numbered(name: str, count: int = 3000) -> list[bytes]:
    random = Random(name)
    return [f"{name}-{number}-{random.getrandbits(200):x}".encode() for number in range(count)]


def test_lines_of_every_codec_that_tasks_read(job: Job) -> None:
    """Breaks when a run sends other lines than are in these files, or its audit takes them for other ones."""
    job.write_spec(LINES_SPEC.replace("data/*.jsonl", "data/*"))
    expected = []
    for name, compress in {
        "a.zst": zstd,
        "b.zst": lambda data: SKIPPABLE + zstd(data[:999], window_log=24) + zstd(data[999:]),
        "c.lz4": lz4_frame,
        "d.LZ4": lambda data: lz4_frame(data[:999]) + lz4_frame(data[999:]),
        "e.gz": gzip.compress,
        "f.gz": lambda data: gzip.compress(data) + b"\0" * 700,
        "g.txt": bytes,
    }.items():
        lines = numbered(name)
        (job.data / name).write_bytes(compress(b"\n".join(lines) + b"\n"))
        expected += lines
    assert_done(job.run(), len(expected))
    assert sorted(record.value or b"" for record in job.records()) == sorted(expected)
    verified = job.run("verify", "--against-source")
    assert verified.exit_code == 0, verified
    assert verified.data["source_splits"] >= 7
    assert_done(job.run(), 0)


def test_what_spark_does_not_read_exactly_is_not_begun(job: Job) -> None:
    """Breaks when part of a damaged file is sent, or the run cannot go on once the file is mended."""
    rows = [b'{"n": %d, "pad": "%s"}' % (n, line) for n, line in enumerate(numbered("a"))]
    good = bz2.compress(b"\n".join(rows) + b"\n", 1)
    job.write_spec(job.spec.read_text().replace("{", "{{").replace("}", "}}").replace("data/*.jsonl", "data/*"))
    (job.data / "a.json.bz2").write_bytes(good[:-30_000])
    (job.data / "plain.json").write_bytes(rows[0] + b"\n")
    assert_refused(job.run(), 7, "bad-data", "data/a.json.bz2", "bzip2 stream", "nothing of this run was sent")
    (job.data / "a.json.bz2").write_bytes(good)
    (job.data / "b.lz4").write_bytes(lz4_frame(rows[0] + b"\n"))
    (job.data / "c.json").write_bytes(gzip.compress(rows[0] + b"\n"))
    assert_refused(job.run(), 7, "bad-data", "data/b.lz4: .lz4 is read only", "data/c.json: it is gzip-compressed")
    assert job.records() == []
    (job.data / "b.lz4").unlink()
    (job.data / "c.json").rename(job.data / "c.json.gz")
    assert_done(job.run(), len(rows) + 2)
    assert sorted(job.numbers()) == sorted([*range(len(rows)), 0, 0])
