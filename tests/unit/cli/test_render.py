"""Results as text and as JSON, made by hand: what each verb says of a run, a plan and a status."""

from __future__ import annotations

import io
import json
import logging
import sys
from dataclasses import replace
from typing import Any

import pytest

from eosingest.cli import formatting, plan, run, status
from eosingest.cli.render import Renderer, logging_to
from eosingest.cli.result import Result
from eosingest.errors import (
    ChangedError,
    EosingestError,
    FatalError,
    FencedError,
    IncompleteError,
    InterruptedRunError,
    SpecError,
    TemporaryError,
)
from eosingest.kafka.ports import OpenTransaction
from eosingest.report.model import PlanReport, RunReport, StatusReport
from eosingest.sources.files.listing.source_file import WORDING

RUN = RunReport(
    job="orders-backfill",
    run=3,
    topic="orders",
    bootstrap_servers="localhost:9092",
    exit_code=0,
    wording=WORDING,
    items=12,
    items_done=12,
    splits_planned=40,
    splits_done=40,
    records_sent=120_345,
    records_total=1_203_450,
    seconds=4.2,
)


def file(name: str, state: str, splits: int, pending: int) -> dict[str, Any]:
    return {
        "name": name,
        "size": splits << 20,
        "length": splits << 20,
        "splits": splits,
        "splits_pending": pending,
        "state": state,
    }


PLAN = PlanReport(
    job="orders-backfill",
    topic="orders",
    bootstrap_servers="localhost:9092",
    wording=WORDING,
    items=(file("a.jsonl", "done", 2, 0), file("b.jsonl", "half done", 3, 1), file("c.jsonl", "new", 1, 1)),
    splits=6,
    splits_pending=2,
    size_total=6 << 20,
    size_to_read=4 << 20,
    size_to_send=2 << 20,
    split_size=1 << 20,
    records_committed=1_203_450,
    left_out={"empty": ("e.jsonl", "f.jsonl"), "too young": ("d.jsonl",), "hidden": 1},
    vanished=(),
)

STATUS = StatusReport(
    job="orders-backfill",
    topic="orders",
    bootstrap_servers="localhost:9092",
    state="failed",
    run=7,
    host="etl-1",
    pid=4711,
    time="2026-11-20T10:00:00+00:00",
    wording=WORDING,
    items=12,
    items_done=11,
    splits=40,
    splits_done=38,
    records_total=1_203_450,
    open_transactions=(),
    versions={"eosingest": "0.1.0", "spark": "4.0.0"},
)


def shown(result: Result, capsys: pytest.CaptureFixture[str], output: str = "text") -> tuple[str, str]:
    assert Renderer(output).result(result) == result.exit_code
    written = capsys.readouterr()
    return written.out, written.err


# ---- run -------------------------------------------------------------------------------------------------------------


def test_a_complete_run(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = shown(run.result_of(replace(RUN, notes=("a note",))), capsys)
    assert out.splitlines() == [
        "orders-backfill run 3: complete. 120,345 records sent to topic orders in 4.2 s (28,654 records/s);"
        " 1,203,450 by all runs.",
        "Files 12 of 12 done, splits 40 of 40.",
        "Read it with isolation.level=read_committed (not the default of the Java client).",
    ]
    assert err == "", "notes were said while it ran"


def test_a_run_with_nothing_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = shown(run.result_of(replace(RUN, splits_planned=0, splits_done=0, records_sent=0)), capsys)
    assert out.splitlines() == [
        "orders-backfill run 3: nothing to do. 1,203,450 records in topic orders by all runs.",
        "Files 12 of 12 done.",
    ]
    assert err == ""


def test_an_incomplete_run_says_what_is_left_and_every_error(capsys: pytest.CaptureFixture[str]) -> None:
    errors: tuple[EosingestError, ...] = (
        IncompleteError("3 splits are not done", hint="run again"),
        TemporaryError("broker 2 did not answer"),
    )
    report = replace(RUN, exit_code=3, items_done=10, splits_done=37, errors=errors)
    out, err = shown(run.result_of(report), capsys)
    assert out.startswith("orders-backfill run 3: incomplete. 120,345 records sent")
    assert "Files 10 of 12 done, splits 37 of 40; left to send: 3 splits of 2 files." in out
    assert err == "error: 3 splits are not done\nhint: run again\nerror: broker 2 did not answer\n"


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (FencedError("run 4 owns the job"), "fenced"),
        (FatalError("bad row"), "failed"),
        (InterruptedRunError("stopped", signal_number=15), "interrupted"),
    ],
)
def test_how_a_run_ended(error: EosingestError, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = run.result_of(replace(RUN, exit_code=error.exit_code, errors=(error,)))
    assert result.exit_code == error.exit_code
    assert f"run 3: {word}. " in shown(result, capsys)[0]


def test_a_run_as_json_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    error = FatalError("bad row in\nline 2 of \udcff.jsonl", code="bad-row", hint="mend it")
    out, err = shown(run.result_of(replace(RUN, exit_code=7, errors=(error,), notes=("n",))), capsys, "json")
    assert err == ""
    assert out.count("\n") == 1
    said = json.loads(out)
    assert said["data"] == {**replace(RUN, errors=(error,), notes=("n",)).to_json(), "skipped": False}
    assert said["data"]["complete"] is False
    assert (said["version"], said["command"], said["status"], said["exit_code"]) == (1, "run", "error", 7)
    assert said["errors"] == [{"code": "bad-row", "message": "bad row in\nline 2 of \udcff.jsonl", "hint": "mend it"}]


def test_a_skipped_run(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = shown(run.skipped("orders-backfill"), capsys)
    assert out == "orders-backfill: skipped, another run of it is active on this host; nothing was sent.\n"
    said = json.loads(shown(run.skipped("orders-backfill"), capsys, "json")[0])
    assert (said["status"], said["exit_code"], said["data"]["skipped"]) == ("success", 0, True)


# ---- plan ------------------------------------------------------------------------------------------------------------


def test_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = shown(plan.result_of(PLAN, exit_code=False, verbose=False), capsys)
    assert out.splitlines() == [
        "orders-backfill: 2 of 3 files to send, 2 of 6 splits.",
        "  topic      orders on localhost:9092",
        "  files      3: 1 done, 1 half done, 1 new",
        "  splits     6: 4 done, 2 pending; files are cut every 1 MiB",
        "  to read    4 MiB",
        "  to send    at most 2 MiB of 6 MiB",
        "  committed  1,203,450 records",
        "  left out   2 empty, 1 too young, 1 hidden",
        "Files to send:",
        "  b.jsonl  half done, 1 of 3 splits, 3 MiB",
        "  c.jsonl  new, 1 of 1 split, 1 MiB",
    ]
    assert err == ""


def test_a_plan_shows_twenty_files_or_all() -> None:
    files = tuple(file(f"{number:02}.jsonl", "new", 1, 1) for number in range(25))
    report = replace(PLAN, items=files, splits=25, splits_pending=25)
    short = plan.result_of(report, exit_code=False, verbose=False).lines
    assert "  19.jsonl  new, 1 of 1 split, 1 MiB" in short
    assert short[-1] == "  and 5 more (--verbose shows them all)"
    assert plan.result_of(report, exit_code=False, verbose=True).lines[-1].startswith("  24.jsonl  ")


def test_a_plan_with_nothing_to_do() -> None:
    report = replace(PLAN, items=PLAN.items[:1], splits=2, splits_pending=0, left_out={"empty": (), "hidden": 0})
    result = plan.result_of(report, exit_code=True, verbose=False)
    assert result.exit_code == 0
    assert result.lines[0] == "orders-backfill: nothing to do."
    assert not any("left out" in line or "Files to send" in line for line in result.lines)


def test_exit_code_of_pending_work_and_of_errors(capsys: pytest.CaptureFixture[str]) -> None:
    pending = plan.result_of(PLAN, exit_code=True, verbose=False)
    assert (pending.exit_code, pending.status) == (20, "success")
    assert json.loads(shown(pending, capsys, "json")[0])["data"]["work_pending"] is True
    errors = (TemporaryError("slow"), ChangedError("b.jsonl changed", hint="restore it"))
    failed = plan.result_of(replace(PLAN, errors=errors), exit_code=True, verbose=False)
    assert (failed.exit_code, failed.status) == (12, "error")
    out, err = shown(failed, capsys)
    assert out.startswith("orders-backfill: 2 of 3 files")
    assert err == "error: slow\nerror: b.jsonl changed\nhint: restore it\n"


def test_what_lies_in_the_topic_is_said_as_it_is() -> None:
    """Nothing there: nothing to read. Beside the job's records, what was sent of files as they were before."""
    failed = run.result_of(replace(RUN, exit_code=7, records_sent=0, records_total=0, errors=(FatalError("bad row"),)))
    assert not any("isolation.level" in line for line in failed.lines)
    again = run.result_of(replace(RUN, records_resent=1))
    assert (
        "; 1,203,450 by all runs, in addition to 1 record of files as they were before they were sent again."
        in again.lines[0]
    )
    idle = run.result_of(replace(RUN, splits_planned=0, splits_done=0, records_resent=2))
    assert "by all runs, in addition to 2 records of files" in idle.lines[0]


# ---- status ----------------------------------------------------------------------------------------------------------


def test_a_status(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = shown(status.result_of(STATUS), capsys)
    assert out.splitlines() == [
        "orders-backfill: failed, run 7.",
        "  since              2026-11-20T10:00:00+00:00 on etl-1 (pid 4711)",
        "  topic              orders on localhost:9092",
        "  files              11 of 12 done",
        "  splits             38 of 40 done, of those that were begun",
        "  records            1,203,450 by all runs",
        "  versions           eosingest 0.1.0, spark 4.0.0",
        "  open transactions  none",
    ]


def test_a_status_names_every_open_transaction() -> None:
    mine = {**OpenTransaction("eosingest.orders.0", 7, 75.4)._asdict(), "of_this_job": True}
    other = {**OpenTransaction("foreign", 9, 0.5)._asdict(), "of_this_job": False}
    hanging = {**OpenTransaction("producer id 9", 11, 0.5, hanging=True)._asdict(), "of_this_job": False}
    result = status.result_of(replace(STATUS, open_transactions=(mine, other, hanging)))
    assert result.lines[-3:] == (
        "  open transactions  eosingest.orders.0, open for 1 min 15 s",
        "                     foreign, open for 0.5 s, not of this job",
        "                     producer id 9, open for 0.5 s, not of this job, hanging: no coordinator knows of it",
    )
    assert result.data["open_transactions"] == (mine, other, hanging)


def test_what_is_missing_of_the_source_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when nobody can tell later what a run was told to leave out; of many the last are shown."""
    gaps = tuple(
        {"name": f"t-0@{run}", "text": f"t-0, offset {run}", "size": 1, "run": run, "time": "noon"}
        for run in range(1, 13)
    )
    out, _ = shown(status.result_of(replace(STATUS, gaps=gaps)), capsys)
    first, second, *_, last = (line for line in out.splitlines() if "offset" in line or "more" in line)
    assert first.split(maxsplit=1) == [
        "missing",
        "t-0, offset 12: deleted before they were read, accepted by run 12 at noon",
    ]
    assert second.strip().startswith("t-0, offset 11")
    assert last.strip() == "and 2 more (--output json has all)"


# ---- the renderer ----------------------------------------------------------------------------------------------------


def test_control_characters_of_data_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    error = SpecError("row \x1b[31m{\x00\x9b\n  second line", hint="\rgone")
    out, err = shown(Result("plan", lines=("a\x07b",), exit_code=2, errors=(error,)), capsys)
    assert out == "a\\x07b\n"
    assert err == "error: row \\x1b[31m{\\x00\\x9b\n  second line\nhint: \\x0dgone\n"


def test_what_the_encoding_lacks_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert Renderer("text").result(Result("plan", lines=("größe \udcff.csv",))) == 0
    assert raw.getvalue() == b"gr\\xf6\\xdfe \\udcff.csv\n"


def test_long_lines_are_not_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    text = "word " * 100
    Renderer("text").note(text)
    assert capsys.readouterr().err == f"note: {text}\n"


def test_a_closed_stderr_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Closed())
    Renderer("text").note("nobody reads this")
    monkeypatch.setattr(sys, "stderr", None)
    Renderer("text").note("nor this")


def test_the_log_is_silent_but_for_the_broker(capsys: pytest.CaptureFixture[str]) -> None:
    loggers = [logging.getLogger(name) for name in ("eosingest.host.ivy", "eosingest.librdkafka")]
    with logging_to(Renderer("text"), verbose=False):
        for logger in loggers:
            logger.debug("details")
            logger.info("fetching %s", "jars")
    loggers[0].info("said outside")
    assert capsys.readouterr().err == "note: fetching jars\n"


def test_verbose_shows_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    with logging_to(Renderer("json"), verbose=True):
        logging.getLogger("eosingest.librdkafka").debug("details")
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.endswith("DEBUG eosingest.librdkafka: details\n")


# ---- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        ((1 << 20) - 1, "1 MiB"),
        (32 << 20, "32 MiB"),
        (1_288_490_189, "1.2 GiB"),
        (5000 << 40, "5,000 TiB"),
    ],
)
def test_size(number: int, text: str) -> None:
    assert formatting.size(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (4.21, "4.2 s"), (59.96, "1 min 00 s"), (75, "1 min 15 s"), (7209, "2 h 00 min 09 s")],
)
def test_duration(seconds: float, text: str) -> None:
    assert formatting.duration(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(0, "00:00:00"), (80, "00:01:20"), (360_000, "100:00:00")])
def test_clock(seconds: float, text: str) -> None:
    assert formatting.clock(seconds) == text


def test_status_says_whether_a_run_is_alive_and_what_a_failed_one_said() -> None:
    claimed = replace(STATUS, state="claimed")
    assert status.result_of(replace(claimed, alive=True)).lines[0].endswith("run 7 (its process is alive).")
    assert "was killed" in status.result_of(replace(claimed, alive=False)).lines[0]
    assert status.result_of(claimed).lines[0] == "orders-backfill: claimed, run 7."
    said = ({"code": "corrupt-row", "message": "a.csv: row 2: no\nmore", "hint": "mend it"},)
    result = status.result_of(replace(STATUS, said=said))
    assert "a.csv: row 2: no … (corrupt-row)" in result.lines[1]
    assert result.data["said"] == said


def test_a_run_names_sparks_log_in_json_and_where_it_failed(capsys: pytest.CaptureFixture[str]) -> None:
    result = run.result_of(replace(RUN, log="/x/j.log", records_resent=3))
    verbose = run.result_of(replace(RUN, log="/x/j.log"), verbose=True)
    assert verbose.lines[-1] == "Spark's log: /x/j.log"
    assert (result.data["log"], result.data["records_resent"]) == ("/x/j.log", 3)
    assert "/x/j.log" not in "".join(result.lines)
    failed = replace(RUN, log="/x/j.log", errors=(FatalError("no"),), exit_code=7, records_total=0, records_sent=0)
    lines = run.result_of(failed).lines
    assert lines[-1] == "Spark's log: /x/j.log"
    assert not any("read_committed" in line for line in lines), "there is nothing to read"
