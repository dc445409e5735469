"""Telling a changed file from a copied one: the content hash, and the comparison with what an offset record holds.

Modification times change with every checkout and copy, lengths agree by chance: so the content decides where the times
differ. An edit that keeps length *and* modification time is not seen, nor one between the blocks of a sample.
"""

from __future__ import annotations

import os

import xxhash

from eosingest.errors import ChangedError
from eosingest.protocol.source import Fingerprint, Source, SourceFile
from eosingest.sources.files.walk import unreadable

MIB = 1024 * 1024
WHOLE_UP_TO = 64 * MIB
BLOCK = 64 * 1024
# One block per 32 MiB whatever the split size is: the same content must hash alike in every run of the job.
STRIDE = 32 * MIB
_READ = MIB


def fingerprint_file(file: SourceFile) -> Fingerprint:
    """Hash the content of a listed file (XXH3, 128 bits): all of it up to 64 MiB, above that a sample.

    The sample is 64 KiB at every multiple of 32 MiB and the last 64 KiB. Raises ChangedError when the file is not the
    one that was listed, before or after it was read; FatalError when it cannot be read.
    """
    try:
        descriptor = os.open(file.path, os.O_RDONLY)
    except FileNotFoundError as error:
        raise _changed(file, "is gone") from error
    except OSError as error:
        raise unreadable(file.path, error) from error
    try:
        _check_as_listed(file, descriptor)
        content = _hash(descriptor, file.length)
        _check_as_listed(file, descriptor)
    except OSError as error:
        raise unreadable(file.path, error) from error
    finally:
        os.close(descriptor)
    return Fingerprint(file.length, file.mtime_ms, content)


def compare(recorded: Fingerprint, file: SourceFile, source: Source) -> bool:
    """Return True when the file is still what was recorded, False when it changed.

    Same length and modification time is unchanged, and so is the same length with the same content; the content is read
    only where the time alone differs.
    """
    if recorded.length != file.length:
        return False
    return recorded.mtime_ms == file.mtime_ms or recorded.content == source.fingerprint(file).content


def to_milliseconds(mtime_ns: int) -> int:
    """Return a modification time in milliseconds as Hadoop's local file system reports it."""
    return mtime_ns // 1_000_000


def _hash(descriptor: int, length: int) -> str:
    digest = xxhash.xxh3_128()
    for offset, size in _pieces(length):
        digest.update(os.pread(descriptor, size, offset))
    return digest.hexdigest()


def _pieces(length: int) -> list[tuple[int, int]]:
    """Return (offset, size) of what is hashed, in order, without overlap."""
    if length <= WHOLE_UP_TO:
        return [(offset, min(_READ, length - offset)) for offset in range(0, length, _READ)]
    last = length - BLOCK
    return [(offset, min(BLOCK, last - offset)) for offset in range(0, last, STRIDE)] + [(last, BLOCK)]


def is_as_listed(file: SourceFile, status: os.stat_result) -> bool:
    """Say whether a file has the length and the modification time that it was listed with."""
    return (status.st_size, to_milliseconds(status.st_mtime_ns)) == (file.length, file.mtime_ms)


def _check_as_listed(file: SourceFile, descriptor: int) -> None:
    if not is_as_listed(file, os.fstat(descriptor)):
        raise _changed(file, "changed")


def _changed(file: SourceFile, what: str) -> ChangedError:
    return ChangedError(
        f"{file.path} {what} since it was listed a moment ago; nothing of it was sent by this look.",
        code="file-changed",
        hint='Files that are still being written are left alone with min_age = "60s" in [source]. Then run again.',
    )
