"""The Python API with a real Kafka and a real Spark: in this process, in threads, beside a Spark session, and interrupted."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

import eosingest
from tests.support.harness import Job, job_state, wait_for
from tests.support.held_runs import Held
from tests.support.job_checks import open_transactions
from tests.support.processes import processes_below

pytestmark = pytest.mark.in_turns("the same runs as on the command line")

ROOT = Path(eosingest.__file__).parent.parent
MID_SPLIT = "task-before-commit=sleep:30@2"  # 2000 records are committed, 2000 more are in the open transaction


def spec_of(job: Job) -> eosingest.Spec:
    return eosingest.Spec.load(job.spec)


def state_of_process() -> dict[str, Any]:
    """Return what a library must leave alone."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    return {"environment": environment, "path": list(sys.path), "handlers": handlers}


MARK = "EOSINGEST_OF_TEST"


def left_behind() -> list[str]:
    """Return the commands of the processes that this test has started, whoever their parents are now."""
    mark = f"{MARK}={os.environ[MARK]}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


@pytest.fixture(autouse=True)
def _nothing_is_left(
    servers: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Whatever a test does: nothing is printed, no process stays, and this process is as it was."""
    monkeypatch.setenv(MARK, uuid.uuid4().hex)
    before = state_of_process()
    yield
    assert left_behind() == []
    assert state_of_process() == before
    assert capfd.readouterr() == ("", "")


@contextlib.contextmanager
def held(job: Job, monkeypatch: pytest.MonkeyPatch, points: str = MID_SPLIT) -> Iterator[Held]:
    """Hold the runs of the body at fail points; each acts once."""
    with monkeypatch.context() as patched:
        points_of_run = Held(job, points)
        for name, value in points_of_run.env.items():
            patched.setenv(name, value)
        yield points_of_run


def once_reached(points: Held, act: Callable[[], None]) -> threading.Thread:
    """Act once the fail points have acted, in a thread."""

    def wait_and_act() -> None:
        wait_for(points.reached)
        time.sleep(0.3)
        act()

    thread = threading.Thread(target=wait_and_act, daemon=True)
    thread.start()
    return thread


def assert_ended_in_order_and_goes_on(job: Job, rows: int) -> None:
    """The run that was ended has a verdict and left no transaction open; the next one sends the rest."""
    control = job_state(job).control
    assert control is not None
    assert (control.run, control.state) == (1, "failed")
    assert open_transactions(job) == []
    before = len(job.numbers())
    assert 0 < before < rows
    report = eosingest.run(spec_of(job))
    assert report is not None
    assert (report.records_sent, report.run) == (rows - before, 2)
    assert sorted(job.numbers()) == list(range(rows))


@pytest.mark.slow
def test_a_job_from_plan_to_verify(job: Job) -> None:
    job.write_numbers("a.jsonl", range(5_000))
    spec = spec_of(job)
    with pytest.raises(eosingest.NoSuchJobError) as raised:
        eosingest.status(spec)
    assert raised.value.exit_code == 10
    assert eosingest.plan(spec).work_pending

    notes: list[str] = []
    threads = set()

    def note(text: str) -> None:
        threads.add(threading.current_thread())
        notes.append(text)

    report = eosingest.run(spec, on_note=note, if_running="fence")

    assert (report.records_sent, report.complete, report.run) == (5_000, True, 1)
    assert report.to_json()["records_sent"] == 5_000
    assert any("starting Spark" in text for text in notes)
    assert threads == {threading.current_thread()}
    assert sorted(job.numbers()) == list(range(5_000))
    again = eosingest.run(spec)
    assert again is not None
    assert (again.records_sent, again.log) == (0, None)
    assert eosingest.status(spec).state == "complete"
    audit = eosingest.verify(spec, against_source=True)
    assert (audit.verdict, audit.found["records"]) == ("verified", 5_000)


@pytest.mark.slow
def test_previews_and_errors_with_their_reports(job: Job) -> None:
    job.write_numbers("a.jsonl", range(100))
    spec = spec_of(job)
    assert [record.value for record in eosingest.preview(spec, rows=2).records] == [b"0", b"1"]
    with (job.data / "a.jsonl").open("a") as file:
        file.write('{"n": 100, "pad": \n')
    with pytest.raises(eosingest.FatalError) as raised:
        eosingest.run(spec)
    error = raised.value
    assert (error.code, error.exit_code) == ("corrupt-row", 7)
    report: eosingest.RunReport = error.report
    assert (report.complete, report.records_sent, report.errors[0]) == (False, 100, error)

    (job.data / "a.jsonl").unlink()
    job.write_numbers("a.jsonl", range(100))
    with pytest.raises(eosingest.ChangedError) as changed:
        eosingest.plan(spec)
    assert changed.value.report.job == job.name
    after = eosingest.run(spec, from_scratch=True)
    assert after is not None
    assert after.records_sent == 100


@pytest.mark.slow
def test_an_audit_that_proves_nothing_raises_with_its_report(job: Job) -> None:
    job.write_numbers("a.jsonl", range(100))
    eosingest.run(spec_of(job))
    other = Producer({"bootstrap.servers": job.servers})
    other.produce(job.name, b"of another producer", partition=0)
    other.flush(20)
    with pytest.raises(eosingest.EosingestError) as raised:
        eosingest.verify(spec_of(job))
    report: eosingest.VerifyReport = raised.value.report
    assert raised.value.exit_code in (4, 7)
    assert report.verdict != "verified"
    assert report.found["records"] == 101


def test_a_keyboard_interrupt_ends_the_run_in_order(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook's stop button, and a Ctrl-C: Python's own handler raises in the main thread."""
    job.write_numbers("a.jsonl", range(20_000))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with held(job, monkeypatch) as points:
            once_reached(points, lambda: os.kill(os.getpid(), signal.SIGINT))
            with pytest.raises(KeyboardInterrupt) as raised:
                eosingest.run(spec_of(job))
    finally:
        signal.signal(signal.SIGINT, before)
    (note,) = raised.value.__notes__
    assert note.startswith("eosingest: stopped by SIGINT"), note
    assert_ended_in_order_and_goes_on(job, 20_000)


class EndedError(Exception):
    """As Airflow's handler of SIGTERM raises one."""


@pytest.mark.slow
def test_a_handler_of_sigterm_that_raises_ends_the_run_in_order(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def end(_number: int, _frame: object) -> None:
        raise EndedError

    job.write_numbers("a.jsonl", range(20_000))
    before = signal.signal(signal.SIGTERM, end)
    try:
        with held(job, monkeypatch) as points:
            once_reached(points, lambda: os.kill(os.getpid(), signal.SIGTERM))
            with pytest.raises(EndedError):
                eosingest.run(spec_of(job))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert_ended_in_order_and_goes_on(job, 20_000)


@pytest.mark.slow
def test_a_stop_ends_a_run_in_a_worker_thread_with_its_report(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    job.write_numbers("a.jsonl", range(20_000))
    stop = threading.Event()
    raised: list[eosingest.InterruptedRunError] = []

    def work() -> None:
        try:
            eosingest.run(spec_of(job), stop=stop)
        except eosingest.InterruptedRunError as error:
            raised.append(error)

    with held(job, monkeypatch) as points:
        thread = threading.Thread(target=work)
        thread.start()
        wait_for(points.reached)
        began = time.monotonic()
        stop.set()
        thread.join(40)
    assert not thread.is_alive()
    assert time.monotonic() - began < 20
    (error,) = raised
    assert error.exit_code == 128 + signal.SIGTERM
    assert error.report.run == 1
    assert 0 < error.report.records_sent < 20_000
    assert_ended_in_order_and_goes_on(job, 20_000)


@pytest.mark.slow
def test_a_second_exception_kills_the_run_and_the_next_one_goes_on(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run's driver is stopped (SIGSTOP), so that it cannot end in order."""
    job.write_numbers("a.jsonl", range(20_000))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt_twice() -> None:
        for process in processes_below(os.getpid()):
            if "eosingest.api.child" in process.command and process.parent == os.getpid():
                os.kill(process.pid, signal.SIGSTOP)
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1.0)

    try:
        with held(job, monkeypatch) as points:
            once_reached(points, interrupt_twice)
            with pytest.raises(KeyboardInterrupt):
                eosingest.run(spec_of(job))
    finally:
        signal.signal(signal.SIGINT, before)
    wait_for(lambda: left_behind() == [])
    report = eosingest.run(spec_of(job))
    assert report is not None
    assert report.complete
    assert sorted(job.numbers()) == list(range(20_000))


@pytest.mark.slow
def test_two_runs_of_a_job_at_once(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is to be skipped is; one that fences takes the job over, and the earlier one raises FencedError."""
    job.write_numbers("a.jsonl", range(20_000))
    raised: list[eosingest.EosingestError] = []

    def work() -> None:
        try:
            eosingest.run(spec_of(job))
        except eosingest.EosingestError as error:
            raised.append(error)

    with held(job, monkeypatch) as points:
        thread = threading.Thread(target=work)
        thread.start()
        wait_for(points.reached)
    assert eosingest.run(spec_of(job), if_running="skip") is None
    with pytest.raises(eosingest.ActiveRunError):
        eosingest.run(spec_of(job), if_running="fail")
    report = eosingest.run(spec_of(job), if_running="fence")
    thread.join(60)
    assert report.complete
    assert [type(error) for error in raised] == [eosingest.FencedError]
    assert sorted(job.numbers()) == list(range(20_000))


@pytest.mark.slow
def test_two_jobs_at_once(make_job: Callable[[], Job]) -> None:
    jobs = [make_job(), make_job()]
    reports: list[eosingest.RunReport | None] = []
    for job in jobs:
        job.write_numbers("a.jsonl", range(3_000))
    threads = [threading.Thread(target=lambda job=job: reports.append(eosingest.run(spec_of(job)))) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert {report.job for report in reports if report is not None and report.complete} == {job.name for job in jobs}
    assert all(sorted(job.numbers()) == list(range(3_000)) for job in jobs)


BESIDE_A_SESSION = """
import os, sys
import eosingest
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").appName("mine").getOrCreate()
spark.range(7).createOrReplaceTempView("mine")
before = dict(os.environ), list(sys.path), spark.sparkContext.applicationId
for _ in range(2):
    report = eosingest.run(eosingest.Spec.load(sys.argv[1]))
    print(report.records_sent, report.complete)
assert (dict(os.environ), list(sys.path), spark.sparkContext.applicationId) == before
print(spark.sql("SELECT count(*) FROM mine").first()[0], SparkSession.getActiveSession() is spark)
"""


def script(code: str, job: Job) -> subprocess.Popen[str]:
    """Run code in a new Python, with the job's spec as its argument."""
    return subprocess.Popen(
        [sys.executable, "-c", code, str(job.spec)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=job.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )


@pytest.mark.slow
def test_beside_a_session_of_the_callers_own(job: Job) -> None:
    """As in a notebook: the run has a Spark of its own, and the caller's goes on as it was."""
    job.write_numbers("a.jsonl", range(3_000))
    said, errors = script(BESIDE_A_SESSION, job).communicate(timeout=180)
    assert said.splitlines() == ["3000 True", "0 True", "7 True"], (said, errors)
    assert sorted(job.numbers()) == list(range(3_000))


@pytest.mark.slow
def test_a_caller_that_is_killed_leaves_a_run_that_ends_in_order(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    job.write_numbers("a.jsonl", range(20_000))
    with held(job, monkeypatch) as points:
        caller = script("import eosingest, sys\neosingest.run(eosingest.Spec.load(sys.argv[1]))", job)
        wait_for(lambda: points.reached() or caller.poll() is not None)
    below = [process.pid for process in processes_below(caller.pid)]
    assert len(below) > 2, "the run, its JVM and its workers"
    caller.kill()
    caller.communicate(timeout=10)
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below), 40)
    assert_ended_in_order_and_goes_on(job, 20_000)


@pytest.mark.slow
def test_a_run_whose_process_is_killed(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    job.write_numbers("a.jsonl", range(20_000))

    def kill() -> None:
        for process in processes_below(os.getpid()):
            if "eosingest.api.child" in process.command and process.parent == os.getpid():
                os.kill(process.pid, signal.SIGKILL)

    with held(job, monkeypatch) as points:
        once_reached(points, kill)
        with pytest.raises(eosingest.IncompleteError, match="was ended by SIGKILL") as raised:
            eosingest.run(spec_of(job))
    assert raised.value.code == "process-ended"
    report = eosingest.run(spec_of(job))
    assert report is not None
    assert report.complete
    assert sorted(job.numbers()) == list(range(20_000))
    wait_for(lambda: left_behind() == [])
