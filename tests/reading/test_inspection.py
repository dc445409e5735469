"""What is inspected before a run sends anything, and how what is found is said."""

from __future__ import annotations

import bz2
import os
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from eosingest.errors import ChangedError, EosingestError
from eosingest.sources.files.bytes.file_parts import WHOLE, FilePart, lines_before, of_length, pieces
from eosingest.sources.files.formats.inspection import Finding, error_of, inspect, needs_inspection, parts
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.reading.inspect_files import Inspection
from eosingest.sources.files.source import FileSource


def listed(folder: Path, name: str) -> SourceFile:
    (file,) = FileSource(format="text", paths=[name], directory=folder, root=None, min_age_s=0).plan().items
    return file


def test_a_plain_file_costs_nothing() -> None:
    assert not needs_inspection("text", {}, "/a.txt")
    assert needs_inspection("json", {}, "/a.json")  # its text is looked through
    assert not needs_inspection("parquet", {}, "/a.bz2")
    assert not needs_inspection("text", {}, "/a.txt.BZ2")  # the tasks find damage


def test_a_file_that_changed_is_not_called_damaged(tmp_path: Path) -> None:
    """Breaks when a file is inspected that is not the one that was planned."""
    (tmp_path / "a.bz2").write_bytes(bz2.compress(b"x\n"))
    file = listed(tmp_path, "a.bz2")
    assert inspect(file, "text", {}) is None
    with pytest.raises(ChangedError, match="changed after it was listed"):
        inspect(replace(file, length=file.length + 1), "text", {})
    os.utime(file.path, (1, 1))
    with pytest.raises(ChangedError) as changed:
        list(Inspection("text", {}, 1 << 20)([(file, WHOLE)]))
    assert changed.value.exit_code == 12
    os.unlink(file.path)
    with pytest.raises(ChangedError):
        inspect(file, "text", {})


def test_findings_become_one_error() -> None:
    findings = [Finding(f"f{number:02}", f"near byte {number}", "it is damaged") for number in range(25)]
    error: EosingestError = error_of(findings)
    assert (error.exit_code, error.code) == (7, "bad-data")
    assert "f00: near byte 0: it is damaged; f01" in error.message
    assert error.message.endswith("; and 5 more files")
    assert "f20" not in error.message
    assert error.hint == "nothing of this run was sent; correct it, or move it away; then run again"


PIECES = [
    b"a,b",
    b'"a,b"',
    b'"a',
    b'a"',
    b'{"n":1}',
    b'{"n":1},',
    b"[1",
    b"\n",
    b"\n",
    b"\r",
    b"\r\n",
    b"\xef\xbb\xbf",
    b"\xff",
    b" ",
    b"#",
]


def some_text(seed: int) -> bytes:
    choose = random.Random(seed)
    return b"".join(choose.choices(PIECES, k=choose.randrange(40)))


@pytest.mark.parametrize("format", ["csv", "json"])
def test_parts_find_what_the_whole_file_shows(tmp_path: Path, format: str) -> None:
    """Breaks when a line at the border of two parts is looked at twice or by neither, or its number is counted wrong."""
    options = {"header": "true", "comment": "#", "escape": '"'} if format == "csv" else {}
    found_some = 0
    for seed in range(600):
        (tmp_path / "a").write_bytes(some_text(seed) or b"\n")
        file = listed(tmp_path, "a")
        whole = inspect(file, format, options)
        for size in (1, 7, 30):
            each = (inspect(file, format, options, None, part) for part in of_length(file.length, size))
            found = next((finding for finding in each if finding is not None), None)
            assert (found is None) == (whole is None), (seed, size)
            if found is not None and whole is not None and found.message == whole.message:
                assert found == whole, (seed, size)  # of several faults another one may come first
        found_some += whole is not None
    assert 100 < found_some < 600


def test_every_line_is_in_one_part(tmp_path: Path) -> None:
    for seed in range(500):
        text = some_text(seed)
        (tmp_path / "a").write_bytes(text)
        for size in (1, 5, 1000):
            with open(tmp_path / "a", "rb") as opened:
                cut = of_length(len(text), size)
                assert b"".join(piece for part in cut for piece in pieces(opened, part)) == text
                for part in cut:
                    before = text[: len(text) - len(b"".join(pieces(opened, FilePart(part.start, None))))]
                    assert lines_before(opened, part) == len(re.findall(rb"\r\n|\r|\n", before))


def test_which_files_are_looked_at_in_parts(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(b"x")
    (tmp_path / "a").write_bytes(b"x")
    large = replace(listed(tmp_path, "a"), length=100 << 20)
    assert [part.start >> 20 for part in parts(large, "json", {})] == [0, 32, 64, 96]
    assert parts(replace(large, length=0), "json", {}) == [WHOLE]
    for format, options in (
        ("text", {}),
        ("csv", {"lineSep": "||"}),
        ("csv", {"encoding": "UTF-16LE", "lineSep": "\n"}),
    ):
        assert parts(large, format, options) == [WHOLE]
    assert parts(replace(listed(tmp_path, "a.gz"), length=100 << 20), "json", {}) == [WHOLE]
