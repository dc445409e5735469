"""An audit takes the values of `k=v` folders from the paths of rows, by other code than a run: a wrong value is found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eosingest.protocol.plan import make_plan
from eosingest.sources.files.listing.partitions import decoded
from eosingest.sources.files.reading import spark_reader
from eosingest.sources.files.reading.audit_reader import decoded_again
from eosingest.sources.files.reading.scan import FileScan
from eosingest.sources.files.source import FileSource
from eosingest.spark.record_columns import record_frame
from tests.support.reading.lab import Asked, Lab, _settings, lab  # noqa: F401 - a fixture
from tests.support.reading.table_rows import FOLDERS
from tests.support.warm_spark import cut_by


def test_an_audit_finds_what_a_run_decodes_wrong(
    tmp_path: Path,
    lab: Lab,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Breaks when the audit uses the run's values: then both are wrong in the same way."""
    for number, name in enumerate(FOLDERS.values()):
        folder = tmp_path / "K=1" / "d" / f"b+ %c={number}" / name
        folder.mkdir(parents=True)
        (folder / "a=b.jsonl").write_text('{"n":1}\n')
    source = FileSource(format="json", paths=["."], directory=tmp_path / "K=1" / "d", root=None, min_age_s=0)
    plan = make_plan(source, {}, 1 << 20, source.plan())
    cut_by(lab.spark, 1 << 20)

    def values(where: str | None, by_paths: bool) -> list[tuple[int, str | None]]:
        read = _settings(Asked("json", {}, "to_json(struct(*))", schema="n INT, `b+ %c` INT", where=where))
        frame = record_frame(FileScan(read, {}, by_paths=by_paths).frame(lab.spark, plan, None, 1), read)
        frame.source.verified(frame.records)
        rows = [json.loads(bytes(row["value"])) for row in frame.records.coalesce(1).collect()]
        return sorted((row["b+ %c"], row.get("k")) for row in rows)

    expected = list(enumerate(FOLDERS))
    assert values(None, False) == values(None, True) == expected
    assert values("k = 'Köln'", True) == expected[:1]
    monkeypatch.setattr(spark_reader, "_set_folder_values", lambda *_: None)
    assert values(None, False) != values(None, True) == expected


@pytest.mark.parametrize("text", [name.partition("=")[2] for name in FOLDERS.values()])
def test_both_decoders_agree(text: str) -> None:
    assert decoded(text) == decoded_again(text)
