"""Looking starts nothing: plan, status and verify with an embedded broker that is down; sources in which no file is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eosingest import broker
from eosingest.app.settings import source_of
from eosingest.cli import main as cli
from eosingest.protocol.plan import gone_note, make_plan, notes_of
from eosingest.protocol.source import Purpose
from eosingest.sources.files.source import FileSource
from eosingest.spec import load
from tests.support.builders import by_split, fingerprint, listing, offset_record

SPEC = """\
name = "j"
[source]
format = "json"
path = "data"
[sink]
bootstrap_servers = "embedded"
topic = "t"
create = { partitions = 1 }
"""


@pytest.fixture(autouse=True)
def _down(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def up(**_: object) -> None:
        raise AssertionError("a look started the broker")

    monkeypatch.setattr(broker, "up", up)
    monkeypatch.setenv("EOSINGEST_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "j.toml").write_text(SPEC)
    (tmp_path / "data").mkdir()


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    cli.exit_code_of([*arguments, "--output", "json"])
    return dict(json.loads(capsys.readouterr().out))


@pytest.mark.parametrize("verb", ["status", "verify"])
def test_status_and_verify_say_that_the_broker_is_down(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("data/a.jsonl").write_text("{}\n")
    said = command(capsys, verb, "j.toml")
    assert said["exit_code"] == 5
    assert said["errors"] == [
        {
            "code": "broker-down",
            "message": "the embedded broker is not running",
            "hint": "start it with: eosingest broker up",
        }
    ]


def test_plan_is_that_of_a_first_run_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    Path("data/a.jsonl").write_text("{}\n")
    said = command(capsys, "plan", "j.toml", "--exit-code")
    assert said["exit_code"] == 20
    assert [file["state"] for file in said["data"]["files"]] == ["new"]
    assert "the embedded broker is not running" in said["data"]["notes"][0]
    assert "first run" in said["data"]["notes"][0]


@pytest.mark.parametrize(
    ("path", "allow_empty", "code"),
    [
        ("data", None, "source-empty"),
        ("data", False, "source-empty"),
        ("data", True, ""),
        ("data/*/", None, ""),  # matches the folder data/d, in which no file is
        ("data/*/", False, "source-empty"),
        ("data/*.jsonl", None, "path-not-found"),
        ("data/*.jsonl", True, ""),
        ("data/gone.jsonl", True, "path-not-found"),
    ],
)
def test_no_file_at_all(
    path: str, allow_empty: bool | None, code: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "data" / "d").mkdir()
    text = SPEC.replace('"data"', f'"{path}"')
    if allow_empty is not None:
        text = text.replace("[sink]", f"allow_empty = {str(allow_empty).lower()}\n[sink]")
    Path("j.toml").write_text(text)
    said = command(capsys, "plan", "j.toml")
    assert [error["code"] for error in said["errors"]] == ([code] if code else [])
    assert said["exit_code"] == (2 if code else 0)
    if not code:
        assert any("names no file" in note for note in said["data"]["notes"])
    elif code == "source-empty":
        assert "allow_empty" in said["errors"][0]["hint"]


def test_hidden_files_are_named_where_there_is_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    Path("data/_SUCCESS").touch()
    assert (
        "1 names that begin with '_' or '.' were left out" in command(capsys, "plan", "j.toml")["errors"][0]["message"]
    )


def test_a_file_of_no_bytes_is_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("data/a.jsonl").touch()
    assert command(capsys, "plan", "j.toml")["exit_code"] == 0


def test_a_file_that_vanished_when_it_was_done_is_said(tmp_path: Path) -> None:
    (tmp_path / "data" / "here.jsonl").write_text("{}\n")
    source = source_of(load(tmp_path / "j.toml"))
    same = fingerprint(3)
    records = [
        offset_record(name, 0, 3, rows=1, done=True, read=same) for name in ("data/gone.jsonl", "elsewhere.jsonl")
    ]
    (tmp_path / "elsewhere.jsonl").touch()  # there, and only not named today
    made = make_plan(source, by_split(records), 1024, source.plan(None, records, Purpose.SHOW))
    assert made.passed == ("data/gone.jsonl", "elsewhere.jsonl")
    assert notes_of(made, source) == [
        "data/gone.jsonl was sent whole and no longer exists; the records stay in the topic"
    ]
    assert gone_note(map(str, range(7)), source.wording).startswith("0, 1, 2, 3, 4 and 2 more files were sent whole")


def test_a_listing_without_the_newer_fields_is_still_one() -> None:
    assert listing().notes == ()
    assert FileSource(format="json", paths=["data"], directory=Path(), root=None, min_age_s=0).plan().items == ()
