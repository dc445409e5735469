"""Faults on a standalone cluster, each while a transaction is open: what was lost is made up for, and the topic stays exact.

A master and three workers of one core on this machine. A task stops its own Python at a fail point, behind its second
transaction's offset records and before the commit; then its processes are hurt.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.commands import Done, finish, kill_group
from tests.support.harness import Job, assert_quiet, job_state, topic_exists, wait_for
from tests.support.job_checks import (
    assert_exact,
    assert_positions,
    committed_state,
    high_watermarks,
    last_stable_offsets,
    open_transactions,
    source_lines,
    write_files,
)
from tests.support.processes import assert_gone, processes_below, signal_all
from tests.support.spark_clusters import (
    QUICK_EXECUTORS,
    Executor,
    Standalone,
    defaults,
    environment,
    on,
    python_that,
    standalone,
)

# What waits is bounded by END_S; a machine that is busy with other work takes long.
pytestmark = [pytest.mark.timeout(900), pytest.mark.slow, pytest.mark.in_turns("one fault of a Spark cluster each")]

WORKERS = 3
ROWS, FILES = 15_000, 3
MARKERS_S = 10  # a transaction is decided before its markers are in the log
END_S = 300  # a cluster of eight JVMs on a busy machine of two cores
HELD = "task-before-commit=stop@2"
# An executor that does not answer is given up after a quarter of a minute, not after two minutes.
IMPATIENT = (
    '"spark.network.timeout" = "15s", "spark.network.timeoutInterval" = "5s", '
    '"spark.executor.heartbeatInterval" = "3s", '
)
# In the Python of executors: what librdkafka answers to each commit, with the process that asked.
_TRACED = """
import os, confluent_kafka

class Traced(confluent_kafka.Producer):
    def commit_transaction(self, *arguments):
        try:
            super().commit_transaction(*arguments)
        except confluent_kafka.KafkaException as error:
            say(error.args[0].name())
            raise
        say("committed")

def say(word):
    with open({file!r}, "a") as trace:
        trace.write(str(os.getpid()) + " " + word + "\\n")

confluent_kafka.Producer = Traced
"""
REFUSED = {"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("standalone"), WORKERS) as up:
        yield up


@pytest.fixture
def cluster(shared: Standalone) -> Standalone:
    """The cluster, whole again after what the test before has done to it."""
    shared.heal()
    return shared


@dataclass
class AtWork:
    """A run that has committed, with one task stopped in its next transaction."""

    job: Job
    cluster: Standalone
    process: subprocess.Popen[str]
    held: Executor
    attempts: dict[int, int]  # by task, as claimed so far

    def wake(self) -> None:
        signal_all(self.held.pids, signal.SIGCONT)

    def newer_attempts(self) -> list[int]:
        """Return the tasks that another attempt has claimed since."""
        claims = job_state(self.job).claims
        return [task for task, attempt in self.attempts.items() if claims[task].attempt > attempt]


def at_work(
    job: Job, cluster: Standalone, *, more: str = "", conf: str = "", env: Mapping[str, str] | None = None
) -> AtWork:
    """Start a run, and return once one of its tasks has stopped with a transaction open behind a committed one."""
    marks = job.folder / "points"
    marks.mkdir()
    points = f'"spark.executorEnv.EOSINGEST_FAILPOINTS" = "{HELD}", "spark.executorEnv.EOSINGEST_FAILPOINT_DIR" = "{marks}", '
    write_files(on(job, cluster.master, more, QUICK_EXECUTORS + conf + points), FILES, ROWS // FILES)
    job.edit_spec("max_records = 2000", "max_records = 250")
    job.edit_spec(
        'timeout = "10s"', 'timeout = "5m"'
    )  # it ends nothing that is open, and no zombie's commit: fencing does
    process = start(job, cluster, env)
    wait_for(lambda: cluster.held() or process.poll() is not None, timeout_s=END_S)
    assert process.poll() is None, finish(process, END_S)
    (held,) = cluster.held()
    assert open_transactions(job), "the fault is to strike in mid-transaction"
    claims = wait_for(lambda: topic_exists(job.servers, job.name) and job_state(job).claims)
    return AtWork(job, cluster, process, held, {task: claim.attempt for task, claim in claims.items()})


def start(job: Job, cluster: Standalone, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    process = job.popen(env={**environment(cluster.home), **(env or {})})
    cluster.runs.append(process)
    return process


def again(job: Job, cluster: Standalone) -> Done:
    return finish(start(job, cluster), END_S)


def assert_settled(job: Job, *, complete: bool = True) -> None:
    """Nothing is open, and the topic holds what the positions say; all of it, where the job is complete."""
    wait_for(lambda: not open_transactions(job), timeout_s=MARKERS_S)
    ends = high_watermarks(job.servers, job.name)
    wait_for(lambda: last_stable_offsets(job.servers, job.name) == ends, timeout_s=MARKERS_S)
    assert_positions(job)
    if complete:
        assert_exact(job)
    control = committed_state(job).control
    assert control is not None and control.state == ("complete" if complete else "failed")


# ---- executors -----------------------------------------------------------------------------------------------------


def kill_executor(at: AtWork) -> None:
    os.kill(at.held.jvm.pid, signal.SIGKILL)
    at.wake()


def kill_python(at: AtWork) -> None:
    signal_all(at.held.stopped, signal.SIGKILL)


def kill_worker(at: AtWork) -> None:
    os.kill(at.held.worker, signal.SIGKILL)
    at.held.kill()


@pytest.mark.parametrize(
    ("job", "strike"),
    [("rows", kill_executor), ("lines", kill_executor), ("lines", kill_python), ("rows", kill_worker)],
    indirect=["job"],
)
def test_a_part_of_the_cluster_is_killed(job: Job, cluster: Standalone, strike: Callable[[AtWork], None]) -> None:
    """Breaks when the next attempt starts from what was in flight, or leaves the lost one's transaction open."""
    at = at_work(job, cluster)
    strike(at)
    done = finish(at.process, END_S)
    assert (done.exit_code, done.data["run"], done.data["records_sent"]) == (0, 1, ROWS), done
    assert at.newer_attempts(), "no task was tried again"
    assert_settled(job)
    assert_gone(at.held.processes)
    wait_for(lambda: not cluster.executors())


@pytest.mark.parametrize("job", ["lines"], indirect=True)
def test_an_executor_is_frozen_and_tries_its_commit_late(job: Job, cluster: Standalone, tmp_path: Path) -> None:
    """Breaks when an attempt that was given up can still commit beside the one that took its place.

    The Spark Worker is frozen too: else it would kill the executor, and nothing would be left to wake.
    """
    trace = Trace(tmp_path)
    at = at_work(job, cluster, conf=IMPATIENT + trace.conf)
    (python,) = at.held.stopped
    frozen = [at.held.worker, *at.held.pids]
    signal_all(frozen, signal.SIGSTOP)
    wait_for(at.newer_attempts, timeout_s=END_S)
    assert at.process.poll() is None, "it is to be woken in mid-run"
    signal_all([python], signal.SIGCONT)
    wait_for(lambda: trace.of(python)[1:])
    signal_all(frozen, signal.SIGCONT)
    done = finish(at.process, END_S)
    assert (done.exit_code, done.data["run"], done.data["records_sent"]) == (0, 1, ROWS), done
    assert trace.of(python)[0] == "committed"
    assert set(trace.of(python)[1:]) <= REFUSED, trace.of(python)
    assert_settled(job)


class Trace:
    """What the Python workers of executors are answered to their commits, by process."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "commits"
        program = python_that(folder / "python", _TRACED.replace("{file!r}", repr(str(self._file))))
        self.conf = f'"spark.pyspark.python" = "{program}", '

    def of(self, pid: int) -> list[str]:
        lines = [line.split() for line in self._file.read_text().splitlines()]
        return [word for process, word in lines if process == str(pid)]


# ---- the driver ----------------------------------------------------------------------------------------------------


def test_a_zombie_of_an_earlier_run_tries_its_commit(job: Job, cluster: Standalone, tmp_path: Path) -> None:
    """P7. Breaks when a newer run does not fence the tasks of a driver that was killed: the woken one would commit.

    Nobody ends the frozen executor: its JVM and its Spark Worker are frozen with it. Python alone is woken, while the newer
    run is at work on the other executors.
    """
    trace = Trace(tmp_path)
    at = at_work(job, cluster, conf=trace.conf)
    (python,) = at.held.stopped
    frozen = [at.held.worker, *at.held.pids]
    signal_all(frozen, signal.SIGSTOP)
    kill_group(at.process)
    finish(at.process, END_S)
    wait_for(lambda: len(cluster.executors()) == 1, timeout_s=60)
    assert open_transactions(job), "the zombie's own"
    before = trace.of(python)

    second = start(job, cluster)
    wait_for(lambda: second.poll() is not None or _sent_by(job, run=2), timeout_s=END_S, every_s=0.2)
    assert second.poll() is None, finish(second, END_S)
    signal_all([python], signal.SIGCONT)
    answers = wait_for(lambda: trace.of(python)[len(before) :])
    done = finish(second, END_S)

    assert before == ["committed"], "the first transaction of the run that was killed"
    assert set(answers) <= REFUSED, answers
    assert (done.exit_code, done.data["run"]) == (0, 2), done
    assert 0 < done.data["records_sent"] < ROWS
    assert_settled(job)
    signal_all(frozen, signal.SIGCONT)
    assert_gone(at.held.processes, within_s=60)
    assert set(trace.of(python)[1:]) <= REFUSED
    assert_settled(job)


def _sent_by(job: Job, run: int) -> bool:
    return any(offset.run == run for offset in job_state(job).offsets.values())


def test_the_driver_is_killed_with_its_jvm_and_alone(job: Job, cluster: Standalone) -> None:
    """Breaks when the executors of a killed driver live on, or when the next run does not take its job over."""
    at = at_work(job, cluster)
    below = [*processes_below(at.process.pid), *at.held.processes]
    kill_group(at.process)
    assert finish(at.process, END_S).exit_code == -signal.SIGKILL
    at.wake()
    assert_gone(below, within_s=60)

    second = start(job, cluster)
    wait_for(lambda: second.poll() is not None or _sent_by(job, run=2), timeout_s=END_S, every_s=0.2)
    assert second.poll() is None, "killed in mid-run"
    below = [*processes_below(second.pid), *(process for one in cluster.executors() for process in one.processes)]
    second.kill()
    assert finish(second, END_S).exit_code == -signal.SIGKILL
    assert_gone(below, within_s=60)

    done = again(job, cluster)
    assert (done.exit_code, done.data["run"]) == (0, 3), done
    assert 0 < done.data["records_sent"] < ROWS
    assert_settled(job)


def test_a_signal(job: Job, cluster: Standalone) -> None:
    """Breaks when executors outlive the run that a signal ended, or when their open transactions do."""
    at = at_work(job, cluster)
    below = [*processes_below(at.process.pid), *(process for one in cluster.executors() for process in one.processes)]
    kill_group(at.process, signal.SIGINT)
    done = finish(at.process, END_S)
    assert (done.exit_code, done.codes) == (130, ["interrupted"]), done
    assert_quiet(done)
    assert_settled(job, complete=False)
    assert 0 < len(job.records()) < ROWS
    at.wake()  # else the stopped Python would be killed by nobody: it is not what is tested here
    assert_gone(below, within_s=60)
    assert_settled(job, complete=False)
    assert again(job, cluster).exit_code == 0
    assert_settled(job)


def test_two_runs(job: Job, cluster: Standalone) -> None:
    """Breaks when the older run holds on to the executors, is not told who has fenced it, or does not end."""
    at = at_work(job, cluster)
    second = start(job, cluster)
    older = finish(at.process, END_S)
    assert (older.exit_code, older.codes) == (6, ["fenced"]), older
    at.wake()
    newer = finish(second, END_S)
    assert (newer.exit_code, newer.data["run"]) == (0, 2), newer
    assert older.data.get("records_sent", 0) + newer.data["records_sent"] <= ROWS
    assert_settled(job)


# ---- the master ----------------------------------------------------------------------------------------------------


def test_the_master_is_lost(job: Job, cluster: Standalone) -> None:
    """Breaks when a run gives up without need: its executors go on without a master, and make up for one that is lost."""
    at = at_work(job, cluster)
    cluster.kill_master()
    kill_executor(at)
    done = finish(at.process, END_S)
    assert (done.exit_code, done.data["run"], done.data["records_sent"]) == (0, 1, ROWS), done
    assert at.newer_attempts(), "no task was tried again"
    assert_settled(job)
    wait_for(lambda: not cluster.executors())
    assert again(job, cluster).exit_code == 0, "complete: nothing is sent, so that no Spark is needed"


def test_the_master_and_all_executors_are_lost(job: Job, cluster: Standalone) -> None:
    """Breaks when a run waits without end for executors that only a master could start, or does not say what it misses."""
    at = at_work(job, cluster, more='executor_wait = "40s"')
    cluster.kill_master()
    for executor in cluster.executors():
        executor.kill()
    done = finish(at.process, END_S)
    assert (done.exit_code, done.codes) == (5, ["no-executors"]), done
    assert_quiet(done)
    assert "waiting for master to reconnect" in done.envelope["errors"][0]["message"], done
    assert_settled(job, complete=False)

    refused = again(job, cluster)
    assert (refused.exit_code, refused.codes) == (5, ["spark-master"]), refused
    cluster.heal()
    assert again(job, cluster).exit_code == 0
    assert_settled(job)


# ---- data and site -------------------------------------------------------------------------------------------------


def test_bad_data(job: Job, cluster: Standalone) -> None:
    """Breaks when a row that executors cannot read is called a failure of the cluster, or is named without its place."""
    write_files(on(job, cluster.master), files=3, rows=4_000)
    whole = source_lines(job)
    bad = next(line for line in whole if line.file.endswith("part-1.jsonl") and line.row == 700 and line.start)
    path = job.folder / bad.file
    text = path.read_text()
    begin = text.index(f'{{"n": {bad.number},')
    end = text.index("\n", begin)
    path.write_text(text[:begin] + "x" * (end - begin) + text[end:])
    done = again(job, cluster)
    assert (done.exit_code, done.codes) == (7, ["corrupt-row"]), done
    assert f"{bad.file}, split at byte {bad.start}, row {bad.row}: " in done.envelope["errors"][0]["message"]
    assert_quiet(done)
    assert_exact(job, [line for line in whole if line[:2] != bad[:2] or line.row < bad.row])
    assert open_transactions(job) == []
    wait_for(lambda: not cluster.executors())


def test_a_site_that_demands_speculation(job: Job, cluster: Standalone, tmp_path: Path) -> None:
    """Breaks when the site's settings go over the protocol's: two attempts at a time, or none behind one that was lost."""
    site = {
        "spark.speculation": "true",
        "spark.speculation.multiplier": "1.01",
        "spark.speculation.quantile": "0.1",
        "spark.speculation.interval": "10ms",
        "spark.task.maxFailures": "1",
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.maxExecutors": "3",
        "spark.dynamicAllocation.executorIdleTimeout": "2s",
    }
    at = at_work(job, cluster, env=defaults(tmp_path / "site", site))
    assert not wait_a_while(at.newer_attempts), "a task that stands still got a second attempt beside it"
    kill_python(at)
    done = finish(at.process, END_S)
    assert (done.exit_code, done.data["run"], done.data["records_sent"]) == (0, 1, ROWS), done
    assert at.newer_attempts(), "no task was tried again"
    assert_settled(job)


def wait_a_while(condition: Callable[[], object], seconds: float = 5) -> bool:
    """Say whether a condition comes true within some seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.2)
    return False
