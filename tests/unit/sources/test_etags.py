"""Versions of objects: what another ETag proves, and what it does not (rule: nothing is taken for equal without proof)."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from eosingest.sources.files.listing import etags
from eosingest.sources.files.listing.source_file import SourceFile

MIB = 1 << 20
DATA = bytes(range(256)) * (4 * 12 * 1024)  # 12 MiB


@dataclass(frozen=True)
class Held:
    """A storage with one content."""

    data: bytes
    reads: list[str]

    def open(self, file: Any, until: int | None = None) -> io.BufferedReader:
        self.reads.append(file.path)
        return io.BufferedReader(io.BytesIO(self.data))  # type: ignore[type-var]

    def is_changed(self, file: Any, opened: Any) -> bool:
        return False


def put(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'


def put_in_parts(data: bytes, size: int) -> str:
    parts = [hashlib.md5(data[at : at + size]).digest() for at in range(0, len(data), size)]
    return f'"{hashlib.md5(b"".join(parts)).hexdigest()}-{len(parts)}"'


def unchanged(data: bytes, now: str, recorded: Sequence[str], length: int | None = None) -> tuple[bool, int]:
    """Return the answer, and how often the object was read for it."""
    reads: list[str] = []
    file = SourceFile("s3://b/k", "s3://b/k", len(data), 1, True, now, Held(data, reads))
    versions = [{"length": len(data) if length is None else length, "etag": etag} for etag in recorded]
    return etags.unchanged(file, versions), len(reads)


def test_the_same_etag_needs_no_read() -> None:
    assert unchanged(b"abc", '"x"', ['"x"', '"x"']) == (True, 0)


def test_another_length_is_another_object() -> None:
    assert unchanged(b"abc", '"x"', ['"x"'], length=4) == (False, 0)


@pytest.mark.parametrize("size", [5 * MIB, 8 * MIB, 5_000_000, 16 * MIB])
def test_equal_bytes_that_were_put_again_are_proven(size: int) -> None:
    whole, parts = put(DATA), put_in_parts(DATA, size)
    assert unchanged(DATA, parts, [whole]) == (True, 1)
    assert unchanged(DATA, whole, [parts]) == (True, 1)
    assert unchanged(DATA, '"other"', [whole, parts]) == (True, 1)


def test_one_changed_byte_is_found() -> None:
    edited = DATA[:-1] + b"!"
    for recorded in (put(DATA), put_in_parts(DATA, 5 * MIB), put_in_parts(DATA, 8 * MIB)):
        assert unchanged(edited, put(edited), [recorded]) == (False, 1)
    assert unchanged(edited, put(edited), [put(edited), put(DATA)]) == (False, 1)


def test_what_is_no_md5_proves_nothing() -> None:
    """As with SSE-KMS, and parts of a length that nobody uses: it is not read in vain."""
    assert unchanged(DATA, put(DATA), ['"kms-made-this"']) == (False, 0)
    assert unchanged(DATA, put(DATA), [put_in_parts(DATA, 1_234_567)]) == (False, 0)


def test_an_empty_part_count_is_held() -> None:
    assert unchanged(b"abc", put(b"abc"), [put_in_parts(b"abc", 8 * MIB)]) == (True, 1)
