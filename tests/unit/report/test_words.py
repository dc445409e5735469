"""Reports of any kind of source, for people and as JSON: names that files gave them stay, other kinds have their own noun."""

from __future__ import annotations

from typing import Any

import pytest

from eosingest.cli import plan, preview, progress, run, status
from eosingest.report.model import PlanReport, PreviewReport, RunReport, ShownRecord, StatusReport
from eosingest.report.progress import Progress
from eosingest.report.wording import Wording
from eosingest.sources.files.listing.source_file import WORDING as FILES

TABLES = Wording("table", "tables", "rows", "not named by `tables` now", "its columns", "", "reach the database")
JOB: dict[str, Any] = {"job": "j", "topic": "t", "bootstrap_servers": "b:9092"}


def run_of(wording: Wording) -> RunReport:
    return RunReport(
        **JOB,
        run=3,
        exit_code=3,
        wording=wording,
        items=3,
        items_done=1,
        splits_planned=9,
        splits_done=4,
        records_sent=5,
        records_total=8,
        seconds=2.0,
        records_resent=2,
        errors=(Exception(),),  # type: ignore[arg-type]
    )


def plan_of(wording: Wording) -> PlanReport:
    each = {"name": "a", "size": 2048, "length": 2048, "splits": 2, "splits_pending": 2, "state": "new"}
    return PlanReport(
        **JOB,
        wording=wording,
        items=(each,),
        splits=2,
        splits_pending=2,
        size_total=2048,
        size_to_read=2048,
        size_to_send=1024,
        split_size=1024 if wording is FILES else None,
        records_committed=0,
        left_out={"empty": ("b",), "too young": (), "hidden": 4},
        vanished=(),
        notes=("n",),
    )


def status_of(wording: Wording) -> StatusReport:
    about: dict[str, Any] = {"state": "failed", "run": 3, "host": "h", "pid": 1, "time": "now"}
    counts = {"items": 3, "items_done": 1, "splits": 9, "splits_done": 4, "records_total": 8}
    return StatusReport(**JOB, **about, wording=wording, **counts, open_transactions=(), versions={})


def preview_of(wording: Wording) -> PreviewReport:
    record = ShownRecord(None, b"v", item="a")
    return PreviewReport(
        "j", "t", "f", wording=wording, items=3, schema="v STRING", lacks_schema=True, records=(record,)
    )


def test_json_of_files_has_the_names_that_it_always_had() -> None:
    """Breaks when a program that reads these reports finds a name gone, or another value under it."""
    expected: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (run_of(FILES).to_json(), {"files": 3, "files_done": 1, "splits_planned": 9, "records_resent": 2}),
        (
            plan_of(FILES).to_json(),
            {
                **JOB,
                "files": plan_of(FILES).items,
                "splits": 2,
                "splits_pending": 2,
                "bytes_total": 2048,
                "bytes_to_read": 2048,
                "bytes_to_send": 1024,
                "split_size": 1024,
                "records_committed": 0,
                "hidden": 4,
                "too_young": (),
                "empty": ("b",),
                "vanished": (),
                "notes": ("n",),
                "work_pending": True,
            },
        ),
        (status_of(FILES).to_json(), {**JOB, "files": 3, "files_done": 1, "refused": None}),
        (preview_of(FILES).to_json(), {"job": "j", "topic": "t", "format": "f", "files": 3, "log": None}),
    ]
    for data, names in expected:
        assert names.items() <= data.items()
        assert "wording" not in data
    assert preview_of(FILES).to_json()["records"][0]["file"] == "a"


@pytest.mark.parametrize("made", [run_of, plan_of, status_of, preview_of])
def test_json_of_another_kind_has_its_noun_and_names_that_all_kinds_have(made: Any) -> None:
    data = made(TABLES).to_json()
    assert (data["item"], data["items"]) == ("table", len(data["tables"]) if made is plan_of else data["tables"])
    assert not {name for name in data if "file" in name or "byte" in name}


def test_people_are_told_of_another_kind_in_its_words() -> None:
    texts = [
        *run.result_of(run_of(TABLES)).lines,
        *plan.result_of(plan_of(TABLES), exit_code=False, verbose=False).lines,
        *status.result_of(status_of(TABLES)).lines,
        *preview.result_of(preview_of(TABLES)).lines,
        progress.line_of(Progress(1, 1, 2, 1500, 3000, 1.0, unit="rows"), with_size=True),
    ]
    said = "\n".join(texts)
    assert "Tables 1 of 3 done, splits 4 of 9; left to send: 5 splits of 2 tables." in said
    assert "2 records of tables as they were before they were sent again" in said
    assert "j: 1 of 1 table to send, 2 of 2 splits." in said
    assert "2 pending\n" in said
    assert "a  new, 2 of 2 splits, 2,048 rows" in said
    assert "1,500 rows of 3,000 rows" in said
    assert "the first 1 record of 3 tables" in said
    assert not any(word in said.lower() for word in ("file", "kib"))  # a record has bytes
