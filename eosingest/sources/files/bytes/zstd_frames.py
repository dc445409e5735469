"""Finds the frames of a zstd file without decompressing them: Spark's decoder does not read all that zstd writes.

For the inspection (inspection.py) of files that Spark reads. The format is that of RFC 8878. Damage is found elsewhere.
"""

from __future__ import annotations

from io import BufferedIOBase

_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"  # after a byte from 0x50 to 0x5f
_SPARKS_WINDOW = 8 << 20  # of io.airlift.compress (aircompressor 2), if a frame is not one segment
_DICTIONARY_ID_BYTES = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_COMPRESS_AGAIN = "compress it again with zstd as it is by default (no --long, no --ultra, not pzstd)"


def unread_by_spark(file: BufferedIOBase) -> tuple[str, str, int] | None:
    """Return why Spark cannot read a file, what to do, and at which byte; None if it can, or the file is damaged."""
    at = 0
    while True:
        file.seek(at)
        head = file.read(18)
        if head[1:4] == _SKIPPABLE and head[0] >> 4 == 5:
            return "it holds a skippable frame, which Spark's zstd decoder does not read", _COMPRESS_AGAIN, at
        if len(head) < 6 or head[:4] != _MAGIC:
            return None
        descriptor, single = head[4], bool(head[4] >> 5 & 1)
        window = 0 if single else (1 << (10 + (head[5] >> 3))) * (8 + (head[5] & 7)) // 8
        if window > _SPARKS_WINDOW:
            return (
                f"its window of {window >> 20} MiB is more than the 8 that Spark's zstd decoder has",
                _COMPRESS_AGAIN,
                at,
            )
        size_bytes = _CONTENT_SIZE_BYTES[descriptor >> 6] or int(single)
        after = _behind_blocks(file, at + 5 + (not single) + _DICTIONARY_ID_BYTES[descriptor & 3] + size_bytes)
        if after is None:
            return None
        at = after + (4 if descriptor >> 2 & 1 else 0)


def _behind_blocks(file: BufferedIOBase, at: int) -> int | None:
    """Return the end of the blocks that begin at a byte; None if the file ends before."""
    last = False
    while not last:
        file.seek(at)
        header = file.read(3)
        if len(header) < 3:
            return None
        number = int.from_bytes(header, "little")
        last, kind, size = bool(number & 1), number >> 1 & 3, number >> 3
        at += 3 + (1 if kind == 1 else size)
    return at
