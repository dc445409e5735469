"""Fingerprints: what counts as changed, what is read, what is noticed while reading."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
import xxhash

from eosingest.errors import ChangedError, FatalError
from eosingest.protocol.source import Purpose
from eosingest.sources.files.listing import fingerprint
from eosingest.sources.files.listing.fingerprint import Fingerprint
from eosingest.sources.files.listing.places import Places
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.source import FileSource
from tests.support import builders

MIB = 1024 * 1024


def list_one(path: Path) -> tuple[Places, SourceFile]:
    source = FileSource(format="json", paths=[path.name], directory=path.parent, root=None, min_age_s=0)
    return source._places, source.plan(purpose=Purpose.SHOW).items[0]


def sparse(path: Path, length: int, *marks: int) -> SourceFile:
    """Make a file of zeros with one byte set at each mark, without filling the disk."""
    with path.open("wb") as file:
        file.truncate(length)
        for mark in marks:
            file.seek(mark)
            file.write(b"x")
    os.utime(path, (1, 1))
    return list_one(path)[1]


@pytest.mark.parametrize(
    ("length", "edited", "seen"),
    [
        (100, 50, True),
        (3 * MIB + 1, 3 * MIB, True),
        (64 * MIB, 40 * MIB + 7, True),
        (64 * MIB + 1, 0, True),
        (64 * MIB + 1, 32 * MIB + 65535, True),
        (64 * MIB + 1, 32 * MIB + 65536, False),
        (64 * MIB + 1, 64 * MIB, True),
        (200 * MIB, 160 * MIB, True),
        (200 * MIB, 200 * MIB - 65536, True),
        (200 * MIB, 200 * MIB - 65537, False),
    ],
)
def test_where_an_edit_of_the_same_length_is_seen(tmp_path: Path, length: int, edited: int, seen: bool) -> None:
    before = fingerprint.fingerprint_file(sparse(tmp_path / "f", length))
    after = fingerprint.fingerprint_file(sparse(tmp_path / "f", length, edited))
    assert (before.content != after.content) is seen


def test_up_to_64_mib_the_hash_is_that_of_the_content(tmp_path: Path) -> None:
    content = os.urandom(2 * MIB + 3)
    (tmp_path / "f").write_bytes(content)
    places, file = list_one(tmp_path / "f")
    expected = xxhash.xxh3_128(content).hexdigest()
    now = builders.fingerprint(len(content), mtime_ms=file.mtime_ms, content=expected)
    assert places.version(file, []) == now.to_json()


@pytest.mark.parametrize(
    ("content", "mtime", "unchanged"),
    [
        ("old", 1, True),
        ("old", 2, True),
        ("new", 2, False),
        ("new", 1, True),  # neither length nor time differ: by design not looked at
        ("longer", 1, False),
        ("", 1, False),
    ],
)
def test_compare(tmp_path: Path, content: str, mtime: int, unchanged: bool) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    os.utime(path, (1, 1))
    places, file = list_one(path)
    recorded = places.version(file, [])
    path.write_text(content)
    os.utime(path, (mtime, mtime))
    now = replace(file, length=len(content), mtime_ms=mtime * 1000)
    assert places.unchanged(now, [recorded]) is unchanged


def test_a_file_that_is_no_longer_the_listed_one_is_not_hashed(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("as listed")
    places, file = list_one(path)
    path.write_text("grown since")
    with pytest.raises(ChangedError, match=str(path)):
        places.version(file, [])
    path.unlink()
    with pytest.raises(ChangedError, match="is gone"):
        places.version(file, [])
    path.mkdir()
    with pytest.raises((ChangedError, FatalError)):
        places.version(file, [])


def test_json_goes_round_and_anything_else_is_refused() -> None:
    one = Fingerprint(3, 1000, "ab")
    assert one.to_json() == {"length": 3, "mtime": 1000, "content": "ab"}
    assert Fingerprint.from_json(one.to_json()) == one
    bad: list[dict[str, object]] = [
        {},
        {"length": 3, "mtime": 1000},
        {"length": "3", "mtime": 1000, "content": "ab"},
        {"length": True, "mtime": 1000, "content": "ab"},
        {"length": 3, "mtime": 1000.0, "content": "ab"},
    ]
    for value in bad:
        with pytest.raises(ValueError, match="fingerprint"):
            Fingerprint.from_json(value)
