"""Which files a preview looks at, and in which order; what a corrupt row and an empty source come to. Without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eosingest.app import preview
from eosingest.errors import InterruptedRunError, SpecError
from eosingest.protocol.plan import Plan
from eosingest.report.model import PreviewReport, ShownRecord
from eosingest.spec import load

SPEC = """\
name = "j"
[source]
format = "json"
path = "data"
{schema}
[record]
key = "id"
[sink]
bootstrap_servers = "nobody:1"
topic = "t"
"""


class Previewer:
    """Gives `rows` records of each file; a file named bad has a corrupt row."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.opened: list[int] = []
        self.asked: list[tuple[list[str], int]] = []
        self.closed = 0

    def open(self, plan: Plan) -> str:
        self.opened.append(len(plan.items))
        return "id STRING"

    def first_records(self, plan: Plan, schema: str, count: int) -> list[ShownRecord]:
        names = [entry.item.name for entry in plan.items]
        self.asked.append((names, count))
        corrupt = "{" if "bad" in names[0] else None
        return [ShownRecord(b"k", b"v", item=names[0], corrupt=corrupt)] * min(self.rows, count)

    def close(self) -> None:
        self.closed += 1


class Silent:
    def note(self, text: str) -> None:
        pass

    def progress(self, progress: Any) -> None:
        pass


def look(monkeypatch: pytest.MonkeyPatch, folder: Path, files: list[str], rows: int, spark: Previewer) -> PreviewReport:
    (folder / "data").mkdir()
    for name in files:
        (folder / "data" / name).write_text("{}\n")
    (folder / "j.toml").write_text(SPEC.format(schema=""))
    monkeypatch.setattr(preview, "_previewer", lambda *_: spark)
    return preview.preview(load(folder / "j.toml"), rows, Silent(), lambda: None)


def test_files_in_the_order_of_the_plan_until_there_are_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spark = Previewer(2)
    report = look(monkeypatch, tmp_path, ["b", "a", "c"], 3, spark)
    assert spark.opened == [3]  # the schema is that of all files
    assert spark.asked == [(["data/a"], 3), (["data/b"], 1)]
    assert [record.item for record in report.records] == ["data/a", "data/a", "data/b"]
    assert (report.schema, report.items, report.errors, spark.closed) == ("id STRING", 3, (), 1)


def test_where_no_row_is_taken_not_every_file_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spark = Previewer(0)
    report = look(monkeypatch, tmp_path, [f"{number:02}" for number in range(30)], 5, spark)
    assert len(spark.asked) == 20
    assert report.notes == ("only the first 20 of 30 files were read",)


def test_a_corrupt_row_is_named_with_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    report = look(monkeypatch, tmp_path, ["a", "bad"], 2, Previewer(1))
    (error,) = report.errors
    assert (error.code, error.exit_code) == ("corrupt-row", 7)
    assert error.message.startswith("data/bad: record 2 of the preview: the row cannot be parsed")


def test_no_file_is_an_error_before_spark_is_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spark = Previewer(1)
    with pytest.raises(SpecError) as caught:
        look(monkeypatch, tmp_path, [], 1, spark)
    assert (caught.value.code, spark.opened) == ("source-empty", [])


def test_spark_is_stopped_whatever_happens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Failing(Previewer):
        def open(self, plan: Plan) -> str:
            raise InterruptedRunError("stopped", signal_number=2)

    spark = Failing(1)
    with pytest.raises(InterruptedRunError):
        look(monkeypatch, tmp_path, ["a"], 1, spark)
    assert spark.closed == 1


@pytest.mark.parametrize("schema", ["", 'schema = "id STRING"'])
def test_what_spark_says_of_a_key_gets_its_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, schema: str) -> None:
    class Refusing(Previewer):
        def open(self, plan: Plan) -> str:
            super().open(plan)
            raise SpecError("record.key: id is of type int", code="bad-expression", hint="write CAST(id AS STRING)")

    (tmp_path / "data").mkdir()
    for name in "ab":
        (tmp_path / "data" / name).write_text("{}\n")
    (tmp_path / "j.toml").write_text(SPEC.format(schema=schema))
    spark = Refusing(1)
    monkeypatch.setattr(preview, "_previewer", lambda *_: spark)
    with pytest.raises(SpecError) as caught:
        preview.ask_spark(load(tmp_path / "j.toml"), Silent(), lambda: None)
    (detail,) = caught.value.details
    assert (detail.file, detail.line, detail.key) == (str(tmp_path / "j.toml"), 7, "record.key")
    assert detail.hint == "write CAST(id AS STRING)"
    assert spark.opened == [1 if schema else 2]  # with a schema one file tells as much as all
