"""Damaged files, format by codec by damage: refused before anything is sent, or read as the independent reader reads them."""

from __future__ import annotations

import bz2
import functools
import gzip
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import lz4.frame
import pytest
import xxhash

from eosingest.errors import ChangedError, FatalError
from eosingest.protocol.plan import make_plan
from eosingest.sources.files.bytes import codecs
from eosingest.sources.files.bytes.lines import open_file
from eosingest.sources.files.formats import inspection
from eosingest.sources.files.formats.inspection import inspect, needs_inspection
from eosingest.sources.files.listing.errors import opened_as_listed, while_sent
from eosingest.sources.files.reading.inspect_files import inspect_pending
from eosingest.sources.files.source import FileSource
from tests.support.compressed import COMPRESS, SKIPPABLE, damages, hadoop_lz4, independently, listed, text_of

HALF = 110_000  # of the text, roughly: behind a block
TEXT = text_of("text", 4000)

look = functools.partial(inspection.look, format="text", options={})


def lines_way(folder: Path, name: str) -> bytes | None:
    """Return what a task reads of a file where lines are sent as they are; None where it refuses it."""
    file = listed(folder, name)
    if look(file) is not None:
        return None
    try:
        with open_file(file.path) as opened:
            return opened.read()
    except (codecs.DamagedError, OSError, EOFError, zlib.error):
        return None


@pytest.mark.parametrize(("format", "suffix"), [("json", "bz2"), ("csv", "zst"), ("json", "lz4")])
def test_what_hadoop_takes_silently_is_proven_before(tmp_path: Path, format: str, suffix: str) -> None:
    """Breaks when a damaged file gets to Spark, or a good one does not."""
    name = f"a.{suffix}"
    text = text_of(format, 4000)
    taken = []
    for what, data in [("good", COMPRESS[suffix](text)), *damages(suffix, text)]:
        (tmp_path / name).write_bytes(data)
        file = listed(tmp_path, name, format)
        assert needs_inspection(format, {}, file.path)
        found = look(file) or inspect(file, format, {})
        known = independently(suffix, data)
        if what == "packed twice":
            assert found is not None and "decompressed content" in found.message
            continue
        assert (found is None) == (known == text), (
            f"{what}: {found}, the independent reader finds {known and len(known)}"
        )
        if found is None:
            taken.append(what)
    assert taken[0] == "good"
    assert len(taken) < 5, "bits that mean nothing are few"


@pytest.mark.parametrize("suffix", ["gz", "bz2", "zst", "lz4"])
def test_lines_are_those_of_a_whole_file(tmp_path: Path, suffix: str) -> None:
    """Breaks when a task ends a damaged file as if it were whole, or takes other bytes from it."""
    name = f"a.{suffix}"
    good = COMPRESS[suffix](TEXT)
    (tmp_path / name).write_bytes(good)
    assert lines_way(tmp_path, name) == TEXT
    for what, data in damages(suffix, TEXT):
        (tmp_path / name).write_bytes(data)
        known = None if what == "packed twice" else independently(suffix, data)
        assert lines_way(tmp_path, name) == known, what
        assert known in (None, TEXT), what


@pytest.mark.parametrize("suffix", sorted(COMPRESS))
def test_streams_in_a_row_are_one_file(tmp_path: Path, suffix: str) -> None:
    compress, half = COMPRESS[suffix], len(TEXT) // 2
    data = compress(TEXT[:half]) + compress(b"") + compress(TEXT[half:]) + compress(b"")
    (tmp_path / f"a.{suffix}").write_bytes(data)
    file = listed(tmp_path, f"a.{suffix}")
    assert look(file) is None
    assert inspect(file, "text", {}) is None
    with open(file.path, "rb") as opened:
        assert b"".join(codecs.pieces(opened, file.path)) == TEXT


@pytest.mark.parametrize("suffix", ["zst", "lz4"])
def test_going_back_and_forth_in_what_was_decompressed(tmp_path: Path, suffix: str) -> None:
    """Breaks when a task that goes on at a committed position gets the bytes of another place."""
    (tmp_path / f"a.{suffix}").write_bytes(COMPRESS[suffix](TEXT))
    with open_file(str(tmp_path / f"a.{suffix}")) as opened:
        assert opened.read(10) == TEXT[:10]
        assert opened.seek(100_000) == 100_000
        assert opened.read(7) == TEXT[100_000:100_007]
        assert opened.seek(3) == 3
        assert opened.read() == TEXT[3:]
        assert opened.read(5) == b""
        assert opened.seek(len(TEXT) + 9) == len(TEXT)


@pytest.mark.parametrize("name", ["a.snappy", "a.SNAPPY", "a.lz4", "b.json.LZ4"])
def test_framings_without_a_checksum_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(hadoop_lz4(TEXT))
    found = look(listed(tmp_path, name))
    assert found is not None
    assert "checksum" in found.message
    assert ".zst" in found.hint


def test_a_frame_of_lz4_cut_or_changed_anywhere(tmp_path: Path) -> None:
    """Breaks when a file that is cut at any byte, or has any bit of it flipped, is taken for another one."""
    good = SKIPPABLE + lz4.frame.compress(TEXT[:300], content_checksum=True, block_checksum=True, store_size=True)
    frame_at, cuts = len(SKIPPABLE), [good[:cut] for cut in range(1, len(good))]
    flips = [
        good[:at] + bytes([good[at] ^ 1 << bit]) + good[at + 1 :]
        for at in range(frame_at, len(good))
        for bit in range(8)
    ]
    for data in [*cuts, *flips]:
        (tmp_path / "a.lz4").write_bytes(data)
        file = listed(tmp_path, "a.lz4")
        found = look(file) or inspect(file, "json", {})
        known = independently("lz4", data)
        assert (found is None) == (known is not None), (data, found)
        assert known in (None, b"", TEXT[:300])  # of a skippable frame alone it is nothing
        assert lines_way(tmp_path, "a.lz4") == known


@pytest.mark.parametrize("behind", [b"", lz4.frame.compress(TEXT)], ids=["first", "second"])
def test_a_frame_of_lz4_with_a_dictionary(tmp_path: Path, behind: bytes) -> None:
    """Breaks when it is called damaged, or read where no block of it needs the dictionary."""
    head = bytes([0b0110_0001, 0x40]) + b"\x07\0\0\0"
    frame = (
        b"\x04\x22\x4d\x18" + head + bytes([xxhash.xxh32_intdigest(head) >> 8 & 0xFF]) + b"\x02\0\0\x80a\n" + bytes(4)
    )
    assert independently("lz4", frame) == b"a\n"
    (tmp_path / "a.lz4").write_bytes(behind + frame)
    found = inspect(listed(tmp_path, "a.lz4"), "json", {})
    assert found is not None
    assert "dictionary" in found.message
    assert lines_way(tmp_path, "a.lz4") is None


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (COMPRESS["gz"](TEXT), "gzip"),
        (COMPRESS["bz2"](TEXT), "bzip2"),
        (COMPRESS["bz2"](b""), "bzip2"),
        (COMPRESS["zst"](TEXT), "zstd"),
        (COMPRESS["lz4"](TEXT), "lz4"),
        (b"\xfd7zXZ\x00\x00\x04rest", "xz"),
        (b"\x5d\x00\x00\x80\x00" + b"\xff" * 8 + b"\x00rest", "lzma"),
        (b"PK\x03\x04rest", "zip"),
        (b"7z\xbc\xaf\x27\x1c\x00\x04", "7-Zip"),
        (b"\x1f\x9d\x90rest", "compress"),
        (b"a.txt" + b"\0" * 252 + b"ustar\x0000", "tar"),
    ],
)  # fmt: skip
def test_what_is_compressed_is_not_text(tmp_path: Path, data: bytes, kind: str) -> None:
    """Breaks when compressed bytes are sent as lines since the name does not say that they are compressed."""
    for name in ("data", "data.csv", "data.csv.1"):
        (tmp_path / name).write_bytes(data)
        found = look(listed(tmp_path, name))
        assert found is not None
        assert kind in found.message
    (tmp_path / "data.gz").write_bytes(COMPRESS["gz"](data))
    found = look(listed(tmp_path, "data.gz"))
    assert found is not None
    assert f"its decompressed content is {kind}, not text" in found.message


@pytest.mark.parametrize(
    "name",
    ["a.xz", "a.zip", "a.tgz", "a.tar", "a.tar.gz", "a.TAR.BZ2", "a.gzip", "a.7z", "a.br", "a.Z", "a.lzo", "a.zstd"],
)
def test_names_of_what_is_not_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\x8b\x02\x80whatever")
    found = look(listed(tmp_path, name))
    assert found is not None
    assert found.message.startswith("by its name it is ")


@pytest.mark.parametrize(
    "data", [b"", b"PK", b"BZh9 is a word\n", b"BZ\n", b"\x1f\n", b"\xef\xbb\xbfa\n", b"ustar\n", b"\xff\xfea\0"]
)
def test_plain_files_pass(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.txt").write_bytes(data + b"\n")
    assert look(listed(tmp_path, "a.txt")) is None
    assert look(listed(tmp_path, "a.txt", "json")) is None


@pytest.mark.parametrize("suffix", ["gz", "bz2", "zst", "lz4"])
def test_a_name_that_says_the_wrong_codec(tmp_path: Path, suffix: str) -> None:
    for data, words in ((b"plain text\n", "begin" if suffix != "lz4" else "frame format"), (b"PK\x03\x04", "zip")):
        (tmp_path / f"a.{suffix}").write_bytes(data)
        found = look(listed(tmp_path, f"a.{suffix}"))
        assert found is not None
        assert words in found.message


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


def test_streams_of_bz2(tmp_path: Path) -> None:
    text = text_of("text", 3600)
    for data in bz2_files(Random(3), text):
        (tmp_path / "a.BZ2").write_bytes(data)
        assert lines_way(tmp_path, "a.BZ2") == bz2.decompress(data)


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


def test_frames_of_lz4(tmp_path: Path) -> None:
    """Breaks when our codec reads a frame otherwise than lz4's own library does."""
    random = Random(4)
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
        (tmp_path / "a.lz4").write_bytes(data)
        assert lines_way(tmp_path, "a.lz4") == b"\n".join(rows)


def test_files_from_before_1970(tmp_path: Path) -> None:
    """Breaks when a file is called changed for ever since its modification time is a negative number."""
    for time_ns in (-1, -1_000_000, -999_001, -1_000_500_000, -86_400_123_456_789, 0, 1_999_999):
        (tmp_path / "a").write_bytes(b"x\n")
        os.utime(tmp_path / "a", ns=(0, time_ns))
        with opened_as_listed(listed(tmp_path, "a"), while_sent) as opened:
            assert opened.read() == b"x\n"


def test_damage_is_found_before(tmp_path: Path) -> None:
    """Breaks when a run goes on with a damaged file, or calls a file damaged that has changed."""
    good = bz2.compress(text_of("json", 2000), 1)
    for number in range(6):
        (tmp_path / f"f{number}.bz2").write_bytes(good if number % 2 else good[: -number - 1])
    (tmp_path / "plain.json").write_bytes(text_of("json", 10))
    source = FileSource(format="json", paths=["*"], directory=tmp_path, root=None, min_age_s=0)
    plan = make_plan(source, {}, 25_000, source.plan())
    read: Any = SimpleNamespace(format="json", options={}, schema=None, inspects=True)
    with pytest.raises(FatalError) as caught:
        inspect_pending(None, read, plan, as_lines=False)
    assert caught.value.code == "bad-data"
    assert caught.value.message.count("bzip2 stream") == 3
    assert all(f"f{number}.bz2: near byte" in caught.value.message for number in (0, 2, 4))
    (tmp_path / "f0.bz2").write_bytes(gzip.compress(b"x"))
    with pytest.raises(ChangedError):
        inspect_pending(None, read, plan, as_lines=False)
