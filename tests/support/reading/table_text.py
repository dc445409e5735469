"""The table's text files: lines that tasks send and lines that Spark SQL filters, codecs, damages, names, Hadoop's framings."""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
import struct
import zlib
from collections.abc import Callable, Iterator
from random import Random

import lz4.frame
import pyarrow as pa
import xxhash
import zstandard

from tests.support.compressed import COMPRESS, SKIPPABLE, hadoop_lz4, rows_of, zstd
from tests.support.reading.table import ONE_SPLIT, Case, one

_LINES = b"".join(b"line %d of the text\n" % number for number in range(40))
# Some 400 kB that hardly compress: several blocks of bzip2 and of zstd.
_BIG = {format: b"".join(row + b"\n" for row in rows_of(format, 6000)) for format in ("text", "json", "csv")}
_WAYS = ("lines", "spark")
_CODECS = ("gz", "bz2", "zst", "lz4", "deflate")
BY_SPARK = "true"  # a filter that keeps everything: Spark SQL gets the lines

CONTENTS: dict[str, bytes] = {
    "plain": _LINES,
    "one byte": b"a",
    "one end": b"\n",
    "no final end": _LINES[:-1],
    "blank lines": b"\n\na\n\n\nb\n\n",
    "only blank lines": b"\n" * 30,
    "crlf": _LINES.replace(b"\n", b"\r\n"),
    "cr": _LINES.replace(b"\n", b"\r"),
    "mixed ends": b"a\nb\r\nc\rd\n\re\r\r\nf\n\n\rg\r\n\r\nh\r",
    "cr last": b"a\r\nb\r",
    "nul bytes": b"a\0b\n\0\n\0\0c\n",
    "latin-1": "é\nü ß\n".encode("latin-1"),
    "utf-8": "é\n\U0001f600 €\n日本\n".encode(),
    "utf-16": "añb\ncd\n".encode("utf-16"),
    "no utf-8": b"\xff\xfe\xfd\n\xc0\xaf\n\xed\xa0\x80\n\xf5\x80\x80\x80\n",
    "mark": b"\xef\xbb\xbfa\nb\n",
    "mark alone": b"\xef\xbb\xbf",
    "mark and an end": b"\xef\xbb\xbf\n",
    "mark twice": b"\xef\xbb\xbf\xef\xbb\xbfa\n",
    "mark in the middle": b"a\n\xef\xbb\xbfb\n",
    "half a mark": b"\xef\xbb\n\xef\n",
    "ends of other worlds": "a\x0bb\x0cc\x1cd\x1de\x1ef\x85g\u2028h\u2029i\n".encode(),
    "white space": b" a \n\t\n  \n\x0b\n",
    "control characters": bytes(range(1, 10)) + b"\x1a\x1b\x7f\n\x04\n",
    "quotes and commas": b'"a,b\n""\n\'\\\n',
    "long line": b"x" * 70_000 + b"\n" + b"y" * 70_000 + b"\nz",
    "html": b"<html>\n</html>\n",
    "digits of a magic": b"BZh9 is a word\nPK\n\x1f\n",
}
_SEPARATORS: dict[str, bytes] = {
    ";": b"a;b\n;;c\r;d",
    "\n": b"a\r\nb\r\n\nc\r",
    "\r": b"a\rb\n\r\rc",
    "\0": b"a\0b\n\0\0c",
    "\r\n": b"a\r\nb\nc\rd\r\r\n\r\ne\r\n",
    "ab": b"xabyaabzbabab",
    "||": b"a||b|c||||d|||e",
    "\n\n": b"a\n\nb\nc\n\n\nd\n\n",
    "aba": b"xabababaycaba",
    "é": "aébééc".encode(),
    "\t": b"a\tb\t\tc\n",
    "abcabd": b"1abcabd2abcabcabd3",
}


def cases() -> Iterator[Case]:
    yield from _contents()
    yield from _separators()
    yield from _packed_contents()
    yield from _damaged()
    yield from _damaged_rows()
    yield from _names()
    yield from _framings()
    yield from _frames()


def _contents() -> Iterator[Case]:
    for (kind, data), size, way in itertools.product(CONTENTS.items(), (ONE_SPLIT, 64, 5), _WAYS):
        if len(data) / size < 3000:
            yield Case(
                f"text/{way}/plain/{kind}/{size}", "text", one("a.txt", data), split_size=size,
                where=BY_SPARK if way == "spark" else None,
            )  # fmt: skip
    yield Case("text/lines/empty", "text", one("a.txt", b""))
    yield Case("text/lines/long line/64", "text", one("a.txt", b"x" * 3_000_000 + b"\nend"), split_size=1 << 18)


def _separators() -> Iterator[Case]:
    """At the border of two splits a separator that meets itself is refused (docs/reading.md)."""
    for (separator, data), size, way in itertools.product(_SEPARATORS.items(), (ONE_SPLIT, 7, 4), _WAYS):
        yield Case(
            f"text/{way}/separator/{separator!r}/{size}", "text", one("a.txt", data), None, {"lineSep": separator}, size,
            where=BY_SPARK if way == "spark" else None,
            may_refuse=size < ONE_SPLIT and separator[0] in separator[1:],
        )  # fmt: skip


def _packed_contents() -> Iterator[Case]:
    kinds = ("plain", "one byte", "no final end", "crlf", "nul bytes", "mark", "blank lines", "long line", "no utf-8")
    for way, suffix, kind in itertools.product(_WAYS, _CODECS, kinds):
        name = f"a.{suffix.upper() if kind == 'crlf' else suffix}"
        yield Case(
            f"text/{way}/{suffix}/{kind}", "text", one(name, COMPRESS[suffix](CONTENTS[kind])),
            split_size=7 if suffix == "bz2" and kind != "long line" else ONE_SPLIT,
            where=BY_SPARK if way == "spark" else None,
        )  # fmt: skip


def _damaged() -> Iterator[Case]:
    for way, suffix in itertools.product(_WAYS, _CODECS):
        for kind, data, refused in damages(suffix, "text"):
            yield Case(
                f"text/{way}/{suffix}/damage/{kind}", "text", one(f"a.{suffix}", data),
                where=BY_SPARK if way == "spark" else None, refused=refused, split_size=50_000,
                may_refuse=not kind.startswith("good"),
            )  # fmt: skip


def _damaged_rows() -> Iterator[Case]:
    for format, suffix in itertools.product(("json", "csv"), ("bz2", "zst", "lz4", "gz")):
        columns = {"v": "STRING"}
        options = {"header": "false"} if format == "csv" else {}
        found = damages(suffix, format)
        # Hadoop tells what is wrong with a gzip file, and each is a job of its own: some of them are enough.
        for kind, data, refused in itertools.islice(found, 0, None, 6) if suffix == "gz" else found:
            yield Case(
                f"{format}/{suffix}/damage/{kind}", format, one(f"a.{format}.{suffix}", data), columns, options,
                refused=refused, split_size=50_000, may_refuse=not kind.startswith("good"),
            )  # fmt: skip


def damages(suffix: str, format: str) -> Iterator[tuple[str, bytes, bool]]:
    """Yield what a file may be, its bytes, and whether it is refused whatever the codec's reader says of it."""
    compress, text = COMPRESS[suffix], _BIG[format] if suffix in ("bz2", "zst", "lz4") else _BIG[format][:60_000]
    good = compress(text)
    yield "good", good, False
    middle = text.index(b"\n", len(text) // 2) + 1
    parts = compress(text[:middle]), compress(text[middle:])
    yield "good in two streams", b"".join(parts), False
    yield "good with an empty stream", compress(b"") + good + compress(b""), False
    length = len(good)
    for cut in (1, 2, 3, 4, 6, 10, 14, 18, 30, length // 3, length // 2, length - 1000):
        yield f"cut at byte {cut}", good[:cut], False
    for less in (1, 2, 3, 4, 5, 8, 9, 12, 20):
        yield f"cut {less} before its end", good[:-less], False
    yield "second stream cut to its magic", good + parts[1][:4], False
    yield "second stream cut by a byte", parts[0] + parts[1][:-1], False
    yield "second stream cut in the middle", parts[0] + parts[1][: len(parts[1]) // 2], False
    for name, tail in _TAILS.items():
        yield f"tail of {name}", good + tail, False
    random = Random(5)
    for at in (0, 1, 2, 3, 4, 5, 6, 8, length - 1, length - 4, length - 5, length - 8, length - 9):
        yield f"flipped at {at - length if at > 20 else at}", _flipped(good, at, 1 << at % 8), False
    for number in range(6):
        yield f"flipped in its body {number}", _flipped(good, random.randrange(20, length - 20), 1 << number), False
    yield "a block of zeros", good[: length // 2] + bytes(512) + good[length // 2 + 512 :], False
    yield "two blocks exchanged", good[:1024] + good[2048:3072] + good[1024:2048] + good[3072:], False
    yield "written as text", good.replace(b"\n", b"\r\n"), False
    yield "read as text", good.decode("utf-8", "replace").encode(), False
    yield "plain text", text, False
    yield "a word", b"a\n", False
    yield "a page that says no", b"<html>404</html>\n", False
    for other in sorted(COMPRESS.keys() - {suffix}):
        yield f"another codec {other}", COMPRESS[other](text), False
        yield f"packed by {other} inside", compress(COMPRESS[other](text)), other != "deflate"  # no magic
    yield "packed twice", compress(good), suffix != "deflate"
    if suffix == "bz2":
        yield from _between_blocks(good)
    if suffix == "zst":
        yield from _between_frames(text)


_TAILS = {
    "a byte": b"x", "two bytes": b"xy", "three bytes": b"\n\0z", "a zero": b"\0", "zeros": bytes(512), "an end of line": b"\n",
    "text": b"and some more lines\n" * 9, "gzip's magic": b"\x1f\x8b", "bzip2's magic": b"BZh9",
    "zstd's magic": b"\x28\xb5\x2f\xfd",
    "lz4's magic": b"\x04\x22\x4d\x18", "a skippable frame": SKIPPABLE, "half a skippable frame": SKIPPABLE[:9],
}  # fmt: skip


def _flipped(data: bytes, at: int, bits: int) -> bytes:
    return data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :]


def _between_blocks(good: bytes) -> Iterator[tuple[str, bytes, bool]]:
    """Blocks begin at any bit; here at the bytes around, and in their magic."""
    bits = "".join(f"{byte:08b}" for byte in good)
    magic = f"{0x314159265359:048b}"
    start = bits.index(magic, 400)
    for more in range(-1, 8):
        yield f"cut at a block {more:+}", good[: start // 8 + more], False
    for bit in (0, 13, 47, 50, 79):
        yield f"flipped in a block's head {bit}", _flipped(good, (start + bit) // 8, 0x80 >> (start + bit) % 8), False
    second = bits.index(magic, start + 48)
    if (second - start) % 8 == 0:
        yield "a block left out", good[: start // 8] + good[second // 8 :], False
    head = good[:4]
    yield "a block's level is lower", b"BZh1" + good[4:] if head != b"BZh1" else b"BZh0" + good[4:], False


def _between_frames(text: bytes) -> Iterator[tuple[str, bytes, bool]]:
    plain = zstandard.ZstdCompressor(write_checksum=False, write_content_size=True).compress(text)
    yield "good without a checksum", plain, False
    yield "no checksum, cut", plain[:-1], False
    yield "no checksum, a tail of two", plain + b"ab", False
    yield "good with a window of 8 MiB", zstd(text, window_log=23), False
    yield "a window of 16 MiB", zstd(text, window_log=24), False
    yield "a skippable frame first", SKIPPABLE + zstd(text), False
    yield "a wrong size said", plain[:5] + b"\xff" + plain[6:], False


def _names() -> Iterator[Case]:
    """What a name says and what the first bytes say: compressed bytes are never lines (docs/reading.md)."""
    packed: dict[str, bytes] = {
        "gzip": gzip.compress(_LINES, mtime=0),
        "bzip2": bz2.compress(_LINES),
        "bzip2 of nothing": bz2.compress(b""),
        "zstd": zstd(_LINES),
        "zstd behind a skippable frame": SKIPPABLE + zstd(_LINES),
        "lz4": lz4.frame.compress(_LINES),
        "xz": lzma.compress(_LINES),
        "lzma": lzma.compress(_LINES, format=lzma.FORMAT_ALONE),
        "zip": _zip(),
        "tar": _tar(),
        "snappy": b"\xff\x06\x00\x00sNaPpY" + bytes(range(40)),
        "7-Zip": b"7z\xbc\xaf\x27\x1c\x00\x04" + bytes(40),
        "RAR": b"Rar!\x1a\x07\x01\x00" + bytes(40),
        "compress": b"\x1f\x9d\x90" + bytes(range(40)),
        "lzip": b"LZIP\x01\x0c" + bytes(range(40)),
        "lzop": b"\x89LZO\x00\r\n\x1a\n" + bytes(40),
        "lz4 legacy": b"\x02\x21\x4c\x18" + bytes(40),
    }
    for (kind, data), name, way in itertools.product(
        packed.items(), ("data", "data.txt", "data.csv.1", "data.log"), _WAYS
    ):
        yield Case(
            f"text/{way}/name/{kind} as {name}", "text", one(name, data), refused=True,
            where=BY_SPARK if way == "spark" else None,
        )  # fmt: skip
    foreign = "xz zip tar tgz tar.gz tbz2 tar.bz2 tar.zst tar.xz 7z rar gzip bzip2 bz zstd lzma lz lzo br sz Z txz taz"
    for suffix, way in itertools.product(foreign.split(), _WAYS):
        data = gzip.compress(_tar()) if suffix in ("tgz", "tar.gz") else b"\x8b\x02\x80 not known\n" * 4
        name = f"A.{suffix.upper()}" if way == "spark" else f"a.{suffix}"
        yield Case(
            f"text/{way}/foreign/{name}", "text", one(name, data), refused=True,
            where=BY_SPARK if way == "spark" else None,
        )  # fmt: skip
    for format, suffix in itertools.product(("json", "csv"), ("xz", "tgz", "gzip", "snappy", "lz4", "zip")):
        yield Case(
            f"{format}/foreign/{suffix}", format, one(f"a.{format}.{suffix}", b'{"v":"x"}\n'), {"v": "STRING"},
            {"header": "false"} if format == "csv" else {}, refused=True,
        )  # fmt: skip


def _zip() -> bytes:
    import io
    import zipfile

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(zipfile.ZipInfo("a.txt"), _LINES)
    return out.getvalue()


def _tar() -> bytes:
    import io
    import tarfile

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        entry = tarfile.TarInfo("a.txt")
        entry.size = len(_LINES)
        archive.addfile(entry, io.BytesIO(_LINES))
    return out.getvalue()


def _hadoop(codec: str, data: bytes, chunk: int = 4096) -> bytes:
    """Hadoop's framing, of several blocks."""
    found = b""
    for at in range(0, len(data), chunk):
        piece = data[at : at + chunk]
        if codec == "lz4":
            found += hadoop_lz4(piece)
        else:
            packed = pa.compress(piece, codec="snappy", asbytes=True)
            found += struct.pack(">II", len(piece), len(packed)) + packed
    return found


def _framings() -> Iterator[Case]:
    """Hadoop's framing of snappy and lz4 has no end: whole or not, it is refused."""
    text = _BIG["text"][:30_000]
    for codec, way in itertools.product(("snappy", "lz4"), _WAYS):
        good = _hadoop(codec, text)
        files = {
            "whole": good, "cut": good[:-300], "cut in a head": good[:-3], "cut between blocks": _hadoop(codec, text[:8192]),
            "plain text": text, "of nothing": struct.pack(">I", 0), "a tail": good + b"x",
        }  # fmt: skip
        for kind, data in files.items():
            yield Case(
                f"text/{way}/hadoop/{codec} {kind}", "text", one(f"a.{codec}", data), refused=True,
                where=BY_SPARK if way == "spark" else None,
            )  # fmt: skip


def _frames() -> Iterator[Case]:
    """The ways in which each codec may be written, which are all good."""
    text, raw = _BIG["text"][:200_000], zlib.compressobj(9, zlib.DEFLATED, -15)
    bare = raw.compress(text) + raw.flush()
    head = b"\x1f\x8b\x08\x1e\0\0\0\0\0\xff" + b"\x04\0ab\x00\x00" + b"name\0" + b"comment\0"
    tail = struct.pack("<II", zlib.crc32(text), len(text))
    frames: dict[str, tuple[str, Callable[[], bytes]]] = {
        "gz level 0": ("gz", lambda: gzip.compress(text, 0)),
        "gz many members": ("gz", lambda: b"".join(gzip.compress(text[at : at + 777]) for at in range(0, 20_000, 777))),
        "gz with name and comment": ("gz", lambda: head + _header_checksum(head) + bare + tail),
        "bz2 level 9": ("bz2", lambda: bz2.compress(text, 9)),
        "bz2 many streams": (
            "bz2",
            lambda: b"".join(bz2.compress(text[at : at + 999]) for at in range(0, 20_000, 999)),
        ),
        "zst level 19": ("zst", lambda: zstd(text, level=19)),
        "zst negative level": ("zst", lambda: zstd(text, level=-5)),
        "zst many frames": ("zst", lambda: b"".join(zstd(text[at : at + 999]) for at in range(0, 20_000, 999))),
        "zst of one value": ("zst", lambda: zstd(b"a" * 300_000 + b"\n")),
        "lz4 blocks apart": ("lz4", lambda: lz4.frame.compress(text, block_linked=False, content_checksum=True)),
        "lz4 small blocks": ("lz4", lambda: lz4.frame.compress(text, block_size=lz4.frame.BLOCKSIZE_MAX64KB)),
        "lz4 of one value": ("lz4", lambda: lz4.frame.compress(b"a" * 300_000 + b"\n", compression_level=9)),
        "lz4 many frames": (
            "lz4",
            lambda: b"".join(lz4.frame.compress(text[at : at + 999]) for at in range(0, 20_000, 999)),
        ),
        "lz4 empty blocks": ("lz4", lambda: _lz4_of_blocks(b"\x01\0\0\0\0", b"\0\0\0\x80", b"\x02\0\0\x80a\n")),
        "lz4 skippable first": ("lz4", lambda: SKIPPABLE + lz4.frame.compress(text)),
        "deflate level 0": ("deflate", lambda: zlib.compress(text, 0)),
        "deflate level 9": ("deflate", lambda: zlib.compress(text, 9)),
    }
    for kind, (suffix, make) in frames.items():
        for way in _WAYS:
            yield Case(
                f"text/{way}/frame/{kind}", "text", lambda suffix=suffix, make=make: {f"a.{suffix}": make()},
                where=BY_SPARK if way == "spark" else None, split_size=30_000, may_refuse="skippable" in kind,
            )  # type: ignore[misc]  # fmt: skip


def _lz4_of_blocks(*blocks: bytes) -> bytes:
    """A frame of these blocks, as no tool writes it but its format allows; an empty one before and behind the others."""
    head = bytes([0x60, 0x40])
    return b"".join(
        [b"\x04\x22\x4d\x18", head, bytes([xxhash.xxh32_intdigest(head) >> 8 & 0xFF]), *blocks, *blocks, bytes(4)]
    )


def _header_checksum(head: bytes) -> bytes:
    return struct.pack("<H", zlib.crc32(head) & 0xFFFF)
