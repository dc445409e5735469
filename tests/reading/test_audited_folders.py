"""An audit decodes the names of `k=v` folders by other code than a run: a wrong value is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eosingest.audit.session import SparkAuditor
from eosingest.protocol.plan import make_plan
from eosingest.sources.files.listing.partitions import decoded
from eosingest.sources.files.reading.audit_lines import decoded_again
from eosingest.sources.files.reading.file_scan import FileScan
from eosingest.sources.files.reading.json_scan import JsonScan
from eosingest.sources.files.reading.text_scan import TextScan
from eosingest.sources.files.source import FileSource
from eosingest.spark.python_scan import planned_splits
from tests.support.reading.lab import Asked, scan_of, settings_of
from tests.support.reading.table_rows import FOLDERS


@pytest.mark.parametrize(("format", "kind"), [("json", JsonScan), ("text", TextScan)])
def test_an_audit_finds_what_a_run_decodes_wrong(tmp_path: Path, format: str, kind: type[FileScan]) -> None:
    """Breaks when the audit uses the run's decoder: then both are wrong in the same way."""
    for number, name in enumerate(FOLDERS.values()):
        folder = tmp_path / "K=1" / "d" / f"b+ %c={number:02}" / name
        folder.mkdir(parents=True)
        (folder / "a=b.x").write_text('{"n":1}\n')
    source = FileSource(format=format, paths=["."], directory=tmp_path / "K=1" / "d", root=None, min_age_s=0)
    plan = make_plan(source, {}, 1 << 20, source.plan())
    read = settings_of(Asked(format, {}, "k", schema="n INT" if format == "json" else None))

    def values(scan: Any) -> list[tuple[str, str | None]]:
        reader = scan.of(plan).reader
        batches = (batch for split in planned_splits(plan) for batch in reader.read(split, None))
        return sorted((row["b+ %c"], row["k"]) for batch in batches for row in batch.to_pylist())

    run, wrong = kind(read, read), kind(read, read, decode=lambda text: text)
    expected = [(f"{number:02}", value) for number, value in enumerate(FOLDERS)]
    assert values(run) == values(run.for_audit()) == values(wrong.for_audit()) == expected
    assert values(wrong) != expected


@pytest.mark.parametrize("text", [name.partition("=")[2] for name in FOLDERS.values()])
def test_both_decoders_agree(text: str) -> None:
    assert decoded(text) == decoded_again(text)


@pytest.mark.parametrize(("format", "words"), [("orc", "folders' names"), ("json", "module")])
def test_every_format_is_audited_by_other_code(tmp_path: Path, format: str, words: str) -> None:
    """Breaks when an audit reads a format as a run does, because only the decoder of folders is another one."""
    session = object.__new__(SparkAuditor)
    read = settings_of(Asked("json", {}, "k", schema="n INT"))
    session._settings = SimpleNamespace(scan=scan_of(replace(read, format=format)))  # type: ignore[assignment]
    for folder, is_named in (("k=1", True), ("plain", format == "json")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a").write_text("x")
        source = FileSource(format=format, paths=[folder], directory=tmp_path, root=None, min_age_s=0)
        assert (words in session.other_code(make_plan(source, {}, 1 << 20, source.plan()))) is is_named
