"""Compressed files in whole runs: read exactly and verified, or refused before anything is sent."""

from __future__ import annotations

import bz2
import gzip
import signal
import zlib
from random import Random

import lz4.frame
import pytest

from tests.support.commands import finish
from tests.support.compressed import SKIPPABLE, hadoop_lz4, lz4_frame, zstd
from tests.support.harness import LINES_SPEC, Job, assert_done, assert_refused, wait_for
from tests.support.processes import assert_gone, processes_below, workers_of


def numbered(name: str, count: int = 3000) -> list[bytes]:
    random = Random(name)
    return [f"{name}-{number}-{random.getrandbits(200):x}".encode() for number in range(count)]


@pytest.mark.slow
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
        "h.bz2": lambda data: bz2.compress(data[:999]) + bz2.compress(data[999:]),
        "i.deflate": zlib.compress,
    }.items():
        lines = numbered(name)
        (job.data / name).write_bytes(compress(b"\n".join(lines) + b"\n"))
        expected += lines
    assert_done(job.run(), len(expected))
    assert sorted(record.value or b"" for record in job.records()) == sorted(expected)
    verified = job.run("verify", "--against-source")
    assert verified.exit_code == 0, verified
    assert verified.data["source_splits"] >= 9
    assert_done(job.run(), 0)


@pytest.mark.slow
def test_what_spark_does_not_read_exactly_is_not_begun(job: Job) -> None:
    """Breaks when part of a damaged file is sent, or the run cannot go on once the file is mended."""
    rows = [b'{"n": %d, "pad": "%s"}' % (n, line) for n, line in enumerate(numbered("a"))]
    good = bz2.compress(b"\n".join(rows) + b"\n", 1)
    job.write_spec(job.spec.read_text().replace("{", "{{").replace("}", "}}").replace("data/*.jsonl", "data/*"))
    (job.data / "a.json.bz2").write_bytes(good[:-30_000])
    (job.data / "plain.json").write_bytes(rows[0] + b"\n")
    assert_refused(job.run(), 7, "bad-data", "data/a.json.bz2", "bzip2 stream", "nothing of this run was sent")
    (job.data / "a.json.bz2").write_bytes(good)
    (job.data / "b.lz4").write_bytes(hadoop_lz4(rows[0] + b"\n"))
    (job.data / "c.json").write_bytes(gzip.compress(rows[0] + b"\n"))
    assert_refused(
        job.run(), 7, "bad-data", "data/b.lz4: it is not in lz4's frame format", "data/c.json: it is gzip-compressed"
    )
    assert job.records() == []
    (job.data / "b.lz4").unlink()
    (job.data / "c.json").rename(job.data / "c.json.gz")
    assert_done(job.run(), len(rows) + 2)
    assert sorted(job.numbers()) == sorted([*range(len(rows)), 0, 0])


@pytest.mark.slow
def test_rows_of_lz4_frames(job: Job) -> None:
    """Breaks when a run, one that infers again, or an audit has another decoder for .lz4."""
    job.write_spec(job.spec.read_text().replace("{", "{{").replace("}", "}}").replace("data/*.jsonl", "data/*"))
    job.edit_spec('schema = "n BIGINT, pad STRING"\n', "")
    rows = [b'{"n": %d, "pad": "%s"}\n' % (n, line) for n, line in enumerate(numbered("a"))]
    text, more = b"".join(rows[:2900]), b"".join(rows[2900:])
    (job.data / "a.json.lz4").write_bytes(
        lz4.frame.compress(text[:100_000], block_size=lz4.frame.BLOCKSIZE_MAX64KB)
        + SKIPPABLE
        + lz4.frame.compress(text[100_000:], block_linked=False, store_size=False)
    )
    (job.data / "b.json.lz4").write_bytes(lz4_frame(more)[:-9])
    assert_refused(job.run(), 7, "bad-data", "data/b.json.lz4", "lz4 stream", "nothing of this run was sent")
    (job.data / "b.json.lz4").write_bytes(lz4_frame(b"no json\n" + more))
    assert_refused(job.run(), 7, "corrupt-row", "data/b.json.lz4", "no json")
    (job.data / "b.json.lz4").write_bytes(lz4_frame(more))
    assert_done(job.run(), 100)
    assert sorted(job.numbers()) == list(range(len(rows)))
    verified = job.run("verify", "--against-source")
    assert verified.exit_code == 0, verified
    (shown,) = job.run("preview", "--rows", "1").data["records"]
    assert shown["value"] == "0"


@pytest.mark.slow
def test_a_signal_ends_the_inspection(job: Job) -> None:
    """Breaks when a run that reads a large file to prove it cannot be stopped, or leaves processes behind."""
    job.write_spec(job.spec.read_text().replace("{", "{{").replace("}", "}}").replace("data/*.jsonl", "data/*"))
    stream = bz2.compress(b"".join(b'{"n": %d, "pad": "%d"}\n' % (n, n % 7) for n in range(40_000)))
    with (job.data / "a.bz2").open("wb") as file:
        for _ in range(1_000):  # a gigabyte of content: the inspection of it outlasts this test
            file.write(stream)
    process = job.popen()
    wait_for(lambda: workers_of(process), timeout_s=120)
    below = processes_below(process.pid)
    process.send_signal(signal.SIGINT)
    done = finish(process)
    assert done.exit_code == 130, done
    assert done.codes == ["interrupted"]
    assert job.records() == []
    assert_gone(below)
