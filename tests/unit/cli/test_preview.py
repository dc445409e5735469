"""Previews as text and as JSON, made by hand: what is shown of keys, values and headers, and what is cut."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import tomli

from eosingest.cli import main as cli
from eosingest.cli import preview
from eosingest.cli.records import text_of
from eosingest.errors import FatalError
from eosingest.report.model import PreviewReport, ShownRecord
from eosingest.sources.files.listing.source_file import WORDING
from eosingest.spec import load

RECORD = ShownRecord(
    key=b"alice",
    value=b'{"id":1}',
    headers=(("src", b"\x00\xff"), ("none", None)),
    timestamp_ms=1_764_583_200_123,
    partition=2,
    item="data/a.jsonl",
)
REPORT = PreviewReport(
    job="orders",
    topic="orders",
    format="json",
    wording=WORDING,
    items=3,
    schema='id BIGINT,`a"b` STRING',
    lacks_schema=True,
    records=(RECORD,),
    log="x.log",
)


def test_as_text() -> None:
    result = preview.result_of(REPORT)
    assert result.exit_code == 0
    assert list(result.lines) == [
        "orders: the first 1 record of 3 files for topic orders; nothing was sent.",
        "The schema, to be written under [source]:",
        r'schema = "id BIGINT,`a\"b` STRING"',
        "Record 1 (data/a.jsonl), 22 bytes",
        "  key          alice",
        '  value        {"id":1}',
        "  header src   0x00ff",
        "  header none  null",
        "  timestamp    2025-12-01T10:00:00.123Z",
        "  partition    2",
    ]
    assert tomli.loads(result.lines[2]) == {"schema": REPORT.schema}


def test_columns_that_a_spec_does_not_say() -> None:
    """Breaks when columns are shown as a key that the spec has, or that a table's spec cannot have."""
    lines = list(preview.result_of(replace(REPORT, lacks_schema=False)).lines)
    assert lines[1] == 'The columns: id BIGINT,`a"b` STRING'
    assert lines[2].startswith("Record 1")


@pytest.mark.parametrize(
    ("source", "lacks"),
    [
        ('format = "json"\npath = "."', True),
        ('format = "json"\npath = "."\nschema = "id BIGINT"', False),
        ('format = "binaryFile"\npath = "."', False),
        ('format = "kafka"\ntopic = "t"', False),
    ],
)
def test_which_spec_lacks_a_schema(tmp_path: Path, source: str, lacks: bool) -> None:
    """Breaks when a preview proposes a key that `check` refuses."""
    spec = tmp_path / "spec.toml"
    spec.write_text(f'name = "j"\n[source]\n{source}\n[sink]\ntopic = "s"\nbootstrap_servers = "localhost:1"\n')
    assert load(spec).source.lacks_schema is lacks


def test_as_json_nothing_is_cut_and_bytes_are_kept() -> None:
    record = replace(RECORD, value=b"x" * 5000, key=b"\xff", timestamp_ms=None, partition=None)
    data = json.loads(json.dumps(replace(REPORT, records=(record,)).to_json()))
    assert data["schema"] == REPORT.schema
    assert data["log"] == "x.log"
    assert data["records"] == [
        {
            "file": "data/a.jsonl",
            "partition": None,
            "timestamp": None,
            "key": {"base64": "/w=="},
            "value": "x" * 5000,
            "headers": [["src", {"base64": "AP8="}], ["none", None]],
            "size": 5010,
        }
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "none"),
        (b"", "(empty)"),
        (b"two\nlines\r", "two\\nlines\\r"),
        ("é€".encode(), "é€"),
        (b"\x00\x01", "0x0001"),
        (b"\xff\xfe", "0xfffe"),
        (b"\x1b[31m", "0x1b5b33316d"),
    ],
)
def test_bytes_are_readable(value: bytes | None, shown: str) -> None:
    assert text_of(value, absent="none") == shown


def test_what_is_long_is_cut_and_says_so() -> None:
    assert text_of(b"x" * 600, absent="") == "x" * 500 + "… (600 characters in all; --output json shows them)"
    assert text_of(b"\xff" * 100, absent="") == "0x" + "ff" * 64 + "… (100 bytes in all)"
    assert text_of(b"x" * 500, absent="") == "x" * 500


def test_a_corrupt_row_is_an_error_as_it_is_for_a_run() -> None:
    error = FatalError("a.jsonl: record 1", code="corrupt-row")
    corrupt = ShownRecord(None, None, item="a.jsonl", corrupt='{"id":')
    result = preview.result_of(replace(REPORT, records=(corrupt,), errors=(error,)))
    assert (result.exit_code, result.status) == (7, "error")
    assert list(result.lines)[-2:] == [
        "Record 1 (a.jsonl): no record, the row cannot be parsed:",
        '  corrupt  {"id":',
    ]
    assert result.data["records"] == [{"file": "a.jsonl", "corrupt": '{"id":', "why": ""}]


def test_a_timestamp_that_no_calendar_has_is_shown_as_it_is() -> None:
    assert replace(RECORD, timestamp_ms=10**17).time == f"{10**17} ms"
    assert replace(RECORD, timestamp_ms=None).time is None


@pytest.mark.parametrize("rows", ["0", "1001", "x"])
def test_rows_are_bounded(
    rows: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.exit_code_of(["preview", "a.toml", "--rows", rows]) == 2
    assert "--rows" in capsys.readouterr().err
