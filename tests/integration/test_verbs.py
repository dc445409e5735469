"""The verbs as scripts and people use them: exit codes, the JSON envelope, plan and status, and a run with nothing to do."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import time
from pathlib import Path

import pytest

from tests.support.commands import Done, finish, kill_group, start
from tests.support.harness import (
    Job,
    assert_done,
    assert_quiet,
    assert_refused,
    end_offsets,
    job_state,
    run_text,
    topic_exists,
    wait_for_state,
)

ENVELOPE = {"version", "command", "status", "exit_code", "data", "errors"}


def counting_java(folder: Path) -> tuple[dict[str, str], Path]:
    """Make a Java that writes a line for each start of it; return the environment that finds it, and the log."""
    real = Path(
        shutil.which("java", path=f"{os.environ.get('JAVA_HOME', '')}/bin{os.pathsep}{os.environ['PATH']}") or ""
    )
    home, log = folder / "java", folder / "java-starts"
    (home / "bin").mkdir(parents=True)
    wrapper = home / "bin" / "java"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> "{log}"\nexec "{real.resolve()}" "$@"\n')
    wrapper.chmod(0o755)
    shutil.copy(real.resolve().parent.parent / "release", home / "release")
    return {"JAVA_HOME": str(home), "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"}, log


def test_a_job_from_first_plan_to_nothing_to_do(job: Job, tmp_path: Path) -> None:
    """plan, status and check before and after a run; then five runs with nothing to do: no JVM, at most 3 s each."""
    job.write_numbers("a.jsonl", range(3000))
    job.write_numbers("b.jsonl", range(3000, 3010))
    (job.data / "empty.jsonl").touch()
    (job.data / "_hidden.jsonl").write_text("x")
    bytes_total = sum((job.data / name).stat().st_size for name in ("a.jsonl", "b.jsonl"))
    check_before(job, bytes_total)

    environment, log = counting_java(tmp_path)
    assert_done(job.run(env=environment), 3010)
    assert log.exists(), "the Java that counts was not used: the test below could not fail"
    log.unlink()
    check_after(job, bytes_total)

    before = end_offsets(job.servers, job.name)
    times = []
    for _ in range(5):
        began = time.monotonic()
        done = job.run(env=environment)
        times.append(time.monotonic() - began)
        assert_done(done, 0)
        assert done.data["splits_planned"] == 0
        assert done.data["records_total"] == 3010
    assert not log.exists(), log.read_text()
    assert end_offsets(job.servers, job.name) == before
    print(f"nothing to do: {sorted(times)}")
    assert statistics.median(times) <= 3.0, times

    text = run_text(job, env=environment)
    assert text.exit_code == 0
    assert "nothing to do" in text.stdout
    assert text.stderr == ""


def check_before(job: Job, bytes_total: int) -> None:
    assert_refused(job.run("status"), 10, "no-such-job", job.name, "eosingest run")
    checked = job.run("check")
    assert_quiet(checked)
    assert (checked.exit_code, checked.data["valid"], checked.data["topic"]) == (0, True, job.name)

    for arguments, exit_code in (((), 0), (("--exit-code",), 20)):
        planned = job.run("plan", *arguments)
        assert_quiet(planned)
        assert (planned.exit_code, planned.envelope["status"]) == (exit_code, "success")
    data = planned.data
    assert data["work_pending"] is True
    assert data["bytes_total"] == data["bytes_to_read"] == data["bytes_to_send"] == bytes_total
    assert data["splits"] == data["splits_pending"] == -(-(job.data / "a.jsonl").stat().st_size // 65536) + 1
    assert (data["records_committed"], data["hidden"], data["empty"]) == (0, 1, ["data/empty.jsonl"])
    assert [(file["name"], file["state"]) for file in data["files"]] == [
        ("data/a.jsonl", "new"),
        ("data/b.jsonl", "new"),
    ]
    text = run_text(job, "plan")
    assert text.exit_code == 0
    assert "2 of 2 files to send" in text.stdout
    assert "data/a.jsonl" in text.stdout
    assert "pending" in text.stdout
    assert not topic_exists(job.servers, job.name), "looking must not make a topic"


def check_after(job: Job, bytes_total: int) -> None:
    planned = job.run("plan", "--exit-code")
    assert planned.exit_code == 0, planned
    data = planned.data
    assert data["work_pending"] is False
    assert (data["bytes_total"], data["bytes_to_read"], data["bytes_to_send"]) == (bytes_total, 0, 0)
    assert data["records_committed"] == 3010
    assert {file["state"] for file in data["files"]} == {"done"}
    text = run_text(job, "plan", "--exit-code")
    assert text.exit_code == 0
    assert "nothing to do" in text.stdout

    found = job.run("status")
    assert_quiet(found)
    assert found.exit_code == 0
    assert {name: found.data[name] for name in ("state", "run", "files", "files_done", "records_total")} == {
        "state": "complete", "run": 1, "files": 2, "files_done": 2, "records_total": 3010,
    }  # fmt: skip
    assert found.data["splits"] == found.data["splits_done"] > 2
    assert found.data["open_transactions"] == []
    text = run_text(job, "status")
    assert text.exit_code == 0
    assert "complete, run 1" in text.stdout
    assert "3,010 by all runs" in text.stdout


@pytest.mark.slow
def test_looking_at_an_unfinished_job(job: Job) -> None:
    """plan says of a half-done job what a run would: what is left, and what stands in the way (12). Looking changes nothing."""
    lines = [json.dumps({"n": n, "pad": "x" * 50}) for n in range(2000)]
    lines[1900] = '{"n": 1900, "pad"'
    (job.data / "a.jsonl").write_text("\n".join(lines) + "\n")
    (job.data / "b.jsonl").write_text(lines[0] + "\n")
    failed = job.run()
    assert_refused(failed, 7, "corrupt-row", "data/a.jsonl")
    assert failed.data["complete"] is False
    assert failed.data["files_done"] == 1
    assert failed.data["splits_done"] == failed.data["splits_planned"] - 1
    assert failed.data["records_sent"] == failed.data["records_total"] == len(job.records())

    control = job_state(job).control
    found = job.run("status")
    assert (found.exit_code, found.data["state"]) == (0, "failed")
    assert (found.data["files"], found.data["files_done"]) == (2, 1)
    planned = job.run("plan", "--exit-code")
    assert planned.exit_code == 20, planned
    assert {file["name"]: file["state"] for file in planned.data["files"]} == {
        "data/a.jsonl": "half done", "data/b.jsonl": "done",
    }  # fmt: skip
    length = (job.data / "a.jsonl").stat().st_size
    assert planned.data["bytes_to_read"] == length > planned.data["bytes_to_send"] == length % 65536
    assert planned.data["records_committed"] == failed.data["records_total"]
    assert planned.data["split_size"] == 65536

    edit = ("--set", "record.value=pad")
    assert_refused(job.run("plan", "--exit-code", *edit), 12, "spec-changed", "record.value", "--from-scratch")
    text = run_text(job, "plan", *edit)
    assert text.exit_code == 12
    assert "error: record.value" in text.stderr
    (job.data / "b.jsonl").write_text("changed\n")
    assert_refused(job.run("plan"), 12, "source-changed", "data/b.jsonl")
    assert job_state(job).control == control


@pytest.mark.slow
def test_if_running(job: Job) -> None:
    """While a run is alive on this host: fail is exit 11, skip is exit 0 with nothing sent; the run itself is not disturbed."""
    job.write_numbers("a.jsonl", range(100))
    process = job.popen(env={"EOSINGEST_FAILPOINTS": "driver-after-claim=sleep:10"})
    try:
        wait_for_state(job, "claimed", 1)
        assert_refused(job.run("run", "--if-running", "fail"), 11, "active-run", job.name, "--if-running fence")
        skipped = job.run("run", "--if-running", "skip")
        assert_quiet(skipped)
        assert (skipped.exit_code, skipped.data["skipped"], skipped.data["records_sent"]) == (0, True, 0)
        text = run_text(job, "run", "--if-running", "skip")
        assert text.exit_code == 0
        assert "another run of it is active" in text.stdout
        assert process.poll() is None, "the first run ended too early for this test"
        assert_done(finish(process), 100)
    finally:
        kill_group(process)
    control = job_state(job).control
    assert control is not None
    assert control.run == 1
    assert_done(job.run("run", "--if-running", "fail"), 0)


def command(*arguments: str, env: dict[str, str] | None = None) -> Done:
    """Run a command line that has no spec."""
    return finish(start(*arguments, env=env))


@pytest.mark.parametrize(
    "arguments",
    [
        ("--output", "json", "no-such-verb"),
        ("run", "--output", "json"),
        ("run", "--output=json", "no-such-file.toml"),
        ("plan", "spec.toml", "--no-such-flag", "--output", "json"),
        ("run", "spec.toml", "--if-running", "perhaps", "--output", "json"),
        ("check", "spec.toml", "--param", "no-equals-sign", "--output", "json"),
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_usage_errors_are_exit_2(arguments: tuple[str, ...]) -> None:
    """One line of JSON where it is asked for, by flag or by variable; else text on stderr and nothing on stdout."""
    done = command(*arguments)
    assert_quiet(done)
    assert done.exit_code == 2, done
    assert done.envelope.keys() == ENVELOPE
    assert (done.envelope["version"], done.envelope["status"], done.envelope["exit_code"]) == (1, "error", 2)
    (error,) = done.envelope["errors"]
    assert error.keys() == {"code", "message", "hint"}
    assert all(error[key] for key in ("code", "message", "hint")), error

    plain = [argument for argument in arguments if argument not in ("--output", "json", "--output=json")]
    by_variable = command(*plain, env={"EOSINGEST_OUTPUT": "json"})
    assert by_variable.envelope["errors"] == done.envelope["errors"]
    text = command(*plain)
    assert text.exit_code == 2
    assert text.stdout == ""
    assert text.stderr.count("error: ") == 1
    assert text.stderr.count("hint: ") == 1
