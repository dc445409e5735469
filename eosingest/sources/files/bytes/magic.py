"""Compares a text file's name with its first bytes: compressed bytes are never sent as lines.

For the inspection (inspection.py), which checks every file before a run sends anything, and for the decoders (codecs.py),
which check the decompressed content. Hadoop goes by the name alone, and takes an unknown suffix for plain text.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Mapping

HEAD_BYTES = 4096  # that `refusal` needs of a file

RECOMPRESS = "decompress it, or compress it with gzip (.gz), bzip2 (.bz2) or zstd (.zst)"
_SKIPPABLE = rb"[\x50-\x5f]\x2a\x4d\x18"  # a skippable frame of lz4 or zstd, which holds no data

# Bytes that no text begins with, and the suffix under which the file is read, "" if it is not.
_MAGIC: tuple[tuple[str, re.Pattern[bytes], str], ...] = tuple(
    (name, re.compile(pattern, re.DOTALL), suffix)
    for name, pattern, suffix in (
        ("gzip", rb"\x1f\x8b\x08", ".gz"),
        ("bzip2", rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)", ".bz2"),
        ("zstd", rb"\x28\xb5\x2f\xfd", ".zst"),
        ("lz4", rb"\x04\x22\x4d\x18", ".lz4"),
        ("lz4's legacy format", rb"\x02\x21\x4c\x18", ""),
        ("zstd or lz4", _SKIPPABLE, ""),
        ("xz", rb"\xfd7zXZ\x00", ""),
        ("lzma", rb"\x5d\x00\x00..(?:\xff{8}|.{6}\x00\x00)\x00", ""),
        ("zip", rb"PK(?:\x03\x04|\x05\x06|\x07\x08)", ""),
        ("7-Zip", rb"7z\xbc\xaf\x27\x1c", ""),
        ("RAR", rb"Rar!\x1a\x07", ""),
        ("compress", rb"\x1f\x9d[\x80-\x90]", ""),
        ("lzip", rb"LZIP[\x00\x01]", ""),
        ("lzop", rb"\x89LZO\x00\r\n\x1a\n", ""),
        ("snappy", rb"\xff\x06\x00\x00sNaPpY", ""),
        ("tar", rb".{257}ustar", ""),
    )
)
# Suffixes for which Hadoop has no decoder. A plain text file with one is refused, too.
_FOREIGN = {
    **dict.fromkeys((".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz", ".tbz2", ".tar.zst", ".tzst"), "a tar archive"),
    **dict.fromkeys((".tar.xz", ".txz", ".tar.lz4", ".tar.lz", ".tlz", ".tar.z", ".taz"), "a tar archive"),
    **dict.fromkeys((".zip", ".zipx"), "a zip archive"),
    ".7z": "a 7-Zip archive",
    ".rar": "a RAR archive",
    ".gzip": "gzip, which is known by the name .gz",
    **dict.fromkeys((".bzip2", ".bz"), "bzip2, which is known by the name .bz2"),
    **dict.fromkeys((".zstd", ".zstandard"), "zstd, which is known by the name .zst"),
    ".xz": "xz",
    ".lzma": "lzma",
    ".lz": "lzip",
    ".lzo": "lzop",
    ".br": "brotli",
    ".sz": "snappy",
    ".z": "compress",
}
# What unpacks an archive into a folder.
_UNPACK = {"zip": "unzip -n {} -d {}", "tar": "mkdir {1} && tar -xkf {0} -C {1}"}


def _is_zlib(head: bytes) -> bool:
    """Say whether bytes begin as zlib's: method 8, a window of at most 32 KiB, and a check of both bytes (RFC 1950)."""
    return head[:1] < b"\x80" and len(head) > 1 and head[0] & 15 == 8 and (head[0] << 8 | head[1]) % 31 == 0


# Says whether a file begins as its codec requires.
_BEGINS: Mapping[str, Callable[[bytes], object]] = {
    "gzip": re.compile(rb"\x1f\x8b").match,
    "bzip2": re.compile(rb"BZh").match,
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|" + _SKIPPABLE).match,
    "lz4": re.compile(rb"\x04\x22\x4d\x18|" + _SKIPPABLE).match,
    "deflate": _is_zlib,
}


def kind_of(head: bytes) -> str | None:
    """Return the compressed or archive format that these first bytes are of; None if no format is known."""
    return next((name for name, pattern, _ in _MAGIC if pattern.match(head)), None)


def refusal(path: str, codec: str | None, head: bytes) -> tuple[str, str] | None:
    """Return why a file cannot be read by its name, and what to do; None if name and first bytes agree."""
    foreign = next((what for suffix, what in _FOREIGN.items() if path.lower().endswith(suffix)), None)
    if foreign is not None:
        return f"by its name it is {foreign}: that is not read", unpacked(path, head) or f"rename it, or {RECOMPRESS}"
    if codec is None:
        return _plain(path, head)
    if codec == "snappy":
        return (
            "snappy files of Hadoop carry no checksum and may end anywhere: damage cannot be detected",
            RECOMPRESS,
        )
    if codec in _BEGINS and not _BEGINS[codec](head):
        return _not_begun(codec, head)
    return None


def unpacked(path: str, head: bytes) -> str | None:
    """Return the hint with the command that unpacks a copy of an archive, and writes over no file; None if there is none."""
    command = next((command for kind, command in _UNPACK.items() if kind == kind_of(head)), None)
    if command is None:
        return None
    if "://" in path:
        return f"load what it holds from a separate folder: unpack a copy ({command.format('FILE', 'FOLDER')})"
    folder = posixpath.splitext(path)[0] + "-unpacked"
    command = command.format(shlex.quote(path), shlex.quote(folder))
    return f"unpack a copy into a separate folder, and name that in source.path: {command}"


def _plain(path: str, head: bytes) -> tuple[str, str] | None:
    for name, pattern, suffix in _MAGIC:
        if pattern.match(head) and suffix:
            hint = f'rename it to end in {suffix}, or, if all files are so compressed, write compression = "{name}" in [source]'
            return f"it is {name}-compressed, but its name does not end in {suffix}", hint
        if pattern.match(head):
            return f"its first bytes are those of {name}, which is not read", unpacked(path, head) or RECOMPRESS
    return None


def _not_begun(codec: str, head: bytes) -> tuple[str, str]:
    kind = kind_of(head)
    if kind is not None:
        return f"by its name it is {codec}, but its first bytes are those of {kind}", f"rename it, or {RECOMPRESS}"
    if codec == "lz4":
        return (
            "it is not in lz4's frame format: Hadoop's own, which carries no checksum and may end anywhere, is not read",
            f"compress it with the lz4 tool, or {RECOMPRESS}",
        )
    return f"by its name it is {codec}, but it does not begin as such", "correct it, or give it the name of what it is"
