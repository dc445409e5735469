"""What is inspected before a run sends anything, and how what is found is said."""

from __future__ import annotations

import bz2
import os
from dataclasses import replace
from pathlib import Path

import pytest

from eosingest.errors import ChangedError, EosingestError
from eosingest.sources.base import SourceFile
from eosingest.sources.files import FileSource
from eosingest.sources.inspection import Finding, error_of, inspect, needs_inspection
from eosingest.spark.inspect_files import Inspection


def listed(folder: Path, name: str) -> SourceFile:
    (file,) = FileSource(format="text", paths=[name], directory=folder, root=None, min_age_s=0).list().files
    return file


def test_a_plain_file_costs_nothing() -> None:
    assert not needs_inspection("text", {}, "/a.txt")
    assert needs_inspection("json", {}, "/a.json")  # its text is looked through
    assert not needs_inspection("parquet", {}, "/a.bz2")
    assert needs_inspection("text", {}, "/a.txt.BZ2")


def test_a_file_that_changed_is_not_called_damaged(tmp_path: Path) -> None:
    """Breaks when a file is inspected that is not the one that was planned."""
    (tmp_path / "a.bz2").write_bytes(bz2.compress(b"x\n"))
    file = listed(tmp_path, "a.bz2")
    assert inspect(file, "text", {}) is None
    with pytest.raises(ChangedError, match="changed after it was listed"):
        inspect(replace(file, length=file.length + 1), "text", {})
    os.utime(file.path, (1, 1))
    (found,) = Inspection("text", {}, 1 << 20)([file])
    assert isinstance(found, ChangedError)
    assert found.exit_code == 12
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
