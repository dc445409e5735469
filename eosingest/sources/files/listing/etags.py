"""Compares versions of objects: length and ETag. Another ETag does not prove other content; an equal MD5 proves equality.

The ETag of an object that was put by one request is the MD5 of its bytes, that of one put in parts the MD5 of the parts' MD5s
and their number. So an object that was put again with equal bytes, in other parts, is read once and compared with the recorded
ETag. Stores that encrypt (SSE-KMS) give ETags that are no MD5s: then nothing is proven.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from io import BufferedReader

from eosingest.host.interruption import never
from eosingest.protocol.source import Version
from eosingest.sources.files.listing.errors import opened_as_listed, while_listed
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.storage.port import UnreachableError

_MIB = 1 << 20
# Sizes of parts, as clients make them. Others are not tried.
_PARTS_MIB = (5, 6, 7, 8, 10, 12, 15, 16, 20, 24, 25, 32, 50, 64, 100, 128, 256, 512, 1024)
_PARTS_MB = (5, 8, 10, 16, 50, 100)
_PART_BYTES = (*(size * _MIB for size in _PARTS_MIB), *(size * 1_000_000 for size in _PARTS_MB))
_ETAG = re.compile(r'"([0-9a-f]{32})(?:-([1-9][0-9]*))?"')


def version_of(file: SourceFile) -> Version:
    """Return an object's version, as offset records keep it."""
    return {"length": file.length, "etag": file.etag}


def is_of_object(version: Version) -> bool:
    """Say whether a version is that of a file in a store, not of a local file."""
    return "etag" in version


def unchanged(file: SourceFile, recorded: Sequence[Version], check: Callable[[], None] = never) -> bool:
    """Say whether an object has the content of all recorded versions; it is read if its ETag is another one.

    `check` is called meanwhile. Raises ChangedError if it changes while it is read, TemporaryError if its store does not
    answer.
    """
    if not all(version.get("length") == file.length for version in recorded):
        return False
    others = {str(version.get("etag")) for version in recorded} - {file.etag}
    return not others or _proven(file, others, check)


def _proven(file: SourceFile, etags: Iterable[str], check: Callable[[], None]) -> bool:
    """Read an object, and say whether all these ETags match its bytes."""
    proofs = [_proofs(etag, file.length) for etag in etags]
    if not all(proofs):
        return False
    try:
        with opened_as_listed(file, while_listed) as opened:
            _feed(opened, [proof for of_one in proofs for proof in of_one], check)
    except UnreachableError as error:
        raise error.error() from error
    return all(any(proof.holds() for proof in of_one) for of_one in proofs)


def _proofs(etag: str, length: int) -> list[_Proof]:
    """Return the possible proofs of an ETag: one for each part size that gives so many parts."""
    found = _ETAG.fullmatch(etag)
    if found is None:
        return []
    if found[2] is None:
        return [_Proof(found[1], None)]
    return [_Proof(found[1], size) for size in _PART_BYTES if max(1, -(-length // size)) == int(found[2])]


def _feed(opened: BufferedReader, proofs: Sequence[_Proof], check: Callable[[], None]) -> None:
    while piece := opened.read(_MIB):
        check()
        for proof in proofs:
            proof.take(piece)


class _Proof:
    """The MD5 of the bytes, or, for parts of a length, the MD5 of their MD5s."""

    def __init__(self, wanted: str, part: int | None) -> None:
        self._wanted = wanted
        self._part = part
        self._left = part or 0
        self._whole = _md5()
        self._of_part = _md5()

    def take(self, piece: bytes) -> None:
        if self._part is None:
            self._whole.update(piece)
            return
        rest = memoryview(piece)
        while rest:
            if not self._left:
                self._end_part()
                self._left = self._part
            now, rest = rest[: self._left], rest[self._left :]
            self._of_part.update(now)
            self._left -= len(now)

    def _end_part(self) -> None:
        self._whole.update(self._of_part.digest())
        self._of_part = _md5()

    def holds(self) -> bool:
        """Say whether the ETag matches the bytes; called once, at the end."""
        if self._part is not None:
            self._end_part()
        return self._whole.hexdigest() == self._wanted


def _md5() -> hashlib._Hash:
    return hashlib.md5(usedforsecurity=False)
