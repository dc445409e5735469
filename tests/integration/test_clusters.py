"""Executors beyond the driver's JVM: records exact, tasks for all slots, and what is wrong with a cluster said as such.

On `local-cluster`, whose executors are processes of their own, and on a standalone cluster of this machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.commands import RUN_TIMEOUT_S, finish
from tests.support.compressed import lz4_frame
from tests.support.harness import (
    BOTH_INPUTS,
    Job,
    assert_done,
    assert_quiet,
    assert_refused,
    job_state,
    topic_exists,
    wait_for,
)
from tests.support.job_checks import Line, assert_exact, assert_positions, open_transactions, source_lines, write_files
from tests.support.spark_clusters import (
    LOCAL_CLUSTER,
    QUICK_EXECUTORS,
    Executor,
    Standalone,
    defaults,
    environment,
    executors_below,
    on,
    python_that,
    spark_home,
    standalone,
)

# As pyspark's workers see it; for all of Python it would not start.
_OTHER_VERSION = """
import sys, types
from pyspark import worker_util
worker_util.sys = types.SimpleNamespace(**{**vars(sys), "version_info": (3, 9, 1)})
"""
_NO_START = "import os; os._exit(3)"
_NO_NUMPY = "import sys; sys.modules['numpy'] = None"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return spark_home(tmp_path_factory.mktemp("spark-home"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("standalone"), workers=2) as up:
        yield up


def tasks_of(job: Job) -> int:
    """Return how many tasks have sent something."""
    return len(job_state(job).claims)


def _has_committed(job: Job) -> bool:
    return topic_exists(job.servers, "eosingest-offsets") and bool(job_state(job).offsets)


# ---- it works ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.in_turns("one cluster each")
@BOTH_INPUTS
def test_executors_of_their_own(job: Job, home: Path, tmp_path: Path) -> None:
    """Breaks when the site's Java options win over ours, when the package does not reach executors or its zip is left."""
    site = {
        "spark.executor.extraJavaOptions": "-Dsite=1 -Duser.timezone=Asia/Tokyo",
        "spark.sql.shuffle.partitions": "7",
    }
    folder = tmp_path / "temporary"
    folder.mkdir()
    write_files(on(job, "local-cluster[3,1,1024]", conf=f'"spark.local.dir" = "{folder}", '), files=4, rows=5000)
    env = {**environment(home), **defaults(tmp_path / "site", site), "TMPDIR": str(folder)}
    assert_done(job.run(env=env), 20_000)
    assert_exact(job)
    assert_positions(job)
    assert tasks_of(job) == 3
    wait_for(lambda: not list(folder.rglob("*.zip")))


@pytest.mark.slow
@BOTH_INPUTS
def test_a_standalone_cluster(job: Job, cluster: Standalone) -> None:
    write_files(on(job, cluster.master), files=4, rows=5000)
    assert_done(job.run(env=environment(cluster.home)), 20_000)
    assert_exact(job)
    assert tasks_of(job) == 2
    verified = job.run("verify", "--against-source", env=environment(cluster.home))
    assert verified.exit_code == 0, verified


@pytest.mark.slow
def test_the_master_may_be_the_sites(job: Job, cluster: Standalone, tmp_path: Path) -> None:
    """Breaks when a spec without a master runs on this machine, or with so few tasks as have registered at the start."""
    job.edit_spec('master = "local[2]"', "")
    write_files(job, files=4, rows=5000)
    site = {"spark.master": cluster.master, "spark.executor.memory": "512m", "spark.default.parallelism": "3"}
    env = {**environment(cluster.home), **defaults(tmp_path / "site", site)}
    assert_done(job.run(env=env), 20_000)
    assert_exact(job)
    assert tasks_of(job) == 3


@pytest.mark.slow
def test_executors_come_as_they_are_needed(job: Job, home: Path) -> None:
    """Breaks when dynamic allocation, which begins without executors, is waited for in vain, or gets one task."""
    dynamic = {"enabled": "true", "minExecutors": "0", "maxExecutors": "3"}
    conf = "".join(f'"spark.dynamicAllocation.{key}" = "{value}", ' for key, value in dynamic.items())
    write_files(on(job, "local-cluster[3,1,1024]", conf=conf), files=4, rows=5000)
    assert_done(job.run(env=environment(home)), 20_000)
    assert_exact(job)
    assert tasks_of(job) == 3


@pytest.mark.slow
def test_a_python_that_is_sent_along(job: Job, home: Path, tmp_path: Path) -> None:
    """Breaks when the packed Python needs the one that it was made from: executors have no other."""
    packed = said(job, "package", str(tmp_path / "env.tar.gz"), "--output", "json")
    conf = "".join(f'"{key}" = "{value}", ' for key, value in json.loads(packed)["data"]["conf"].items())
    write_files(on(job, LOCAL_CLUSTER, conf=conf), files=2, rows=5000)
    env = {**environment(home), "PYSPARK_PYTHON": "/no-such-python"}
    assert_done(job.run(env=env), 10_000)
    assert_exact(job)


@pytest.mark.slow
def test_under_spark_submit(job: Job, home: Path) -> None:
    """Breaks when `--master` is passed over, when the JVM that was there before us keeps the machine's time zone, when the
    driver or the executors do not have our codec of .lz4, or when bad data is exit 3."""
    job.edit_spec('master = "local[2]"', "")
    job.edit_spec("data/*.jsonl", "data/*")
    write_files(job, files=3, rows=5000)
    packed = [Line("data/packed.lz4", 0, row, 15_000 + row) for row in range(5000)]
    (job.data / "packed.lz4").write_bytes(lz4_frame(b"".join(b'{"n": %d}\n' % line.number for line in packed)))
    done = submitted(job, home, "--conf", "spark.executor.memory=512m")
    assert done.returncode == 0, done
    (line,) = [line for line in done.stdout.splitlines() if line.startswith('{"version"')]
    assert json.loads(line)["data"]["records_sent"] == 20_000
    assert_exact(job, [*source_lines(job), *packed])
    assert tasks_of(job) == 2

    job.write_numbers("part-9.jsonl", range(90_000, 90_001))
    bad = submitted(
        job,
        home,
        "--conf",
        "spark.executor.memory=512m",
        more=("--set", "record.value=CAST(CAST(pad AS INT) AS STRING)"),
    )
    assert bad.returncode == 7, bad
    assert '"code":"bad-data"' in bad.stdout.replace('": "', '":"'), bad


def said(job: Job, *arguments: str) -> str:
    """Run a verb that takes no spec; return what it prints."""
    command = [sys.executable, "-m", "eosingest", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=job.folder, timeout=RUN_TIMEOUT_S)
    assert done.returncode == 0, done
    return done.stdout.strip()


def submitted(job: Job, home: Path, *options: str, more: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run the job by spark-submit, in another time zone, with JSON as its result."""
    script = said(job, "submit-script")
    driver = {"PYSPARK_DRIVER_PYTHON": sys.executable, "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"}
    spark_submit = [str(home / "bin" / "spark-submit"), "--master", LOCAL_CLUSTER, *options]
    return subprocess.run(
        [*spark_submit, script, "run", str(job.spec), "--output", "json", *more],
        env={**os.environ, **environment(home), **driver},
        cwd=job.folder,
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
    )


@pytest.mark.in_turns("one cluster each")
def test_an_executor_that_is_killed(job: Job, home: Path, tmp_path: Path) -> None:
    """Breaks when the next attempt of its task does not go on behind what was committed (more: test_cluster_faults.py)."""
    points = '"spark.executorEnv.EOSINGEST_FAILPOINTS" = "task-before-commit=stop@2", '
    points += f'"spark.executorEnv.EOSINGEST_FAILPOINT_DIR" = "{tmp_path}", '
    write_files(on(job, LOCAL_CLUSTER, conf=QUICK_EXECUTORS + points), files=2, rows=6_000)
    process = job.popen(env=environment(home))

    def held() -> list[Executor]:
        return [one for one in executors_below(process.pid) if one.stopped]

    wait_for(lambda: held() or process.poll() is not None, timeout_s=RUN_TIMEOUT_S)
    assert open_transactions(job), "the fault is to strike in mid-transaction"
    (executor,) = held()
    executor.kill()
    assert_done(finish(process), 12_000)
    assert_exact(job)
    assert_positions(job)
    assert open_transactions(job) == []


# ---- it does not ---------------------------------------------------------------------------------------------------


@pytest.mark.in_turns("one cluster each")
@pytest.mark.slow_cases("a module is missing", "no start", "no such program")
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (_OTHER_VERSION, ("the executors run Python 3.9, and this run Python 3.", "spark.pyspark.python")),
        (_NO_NUMPY, ("has no module numpy", "install numpy")),
        (_NO_START, ("pyspark does not start in the executors' Python", "/python")),
        (None, ("cannot run the Python", "/no-such-python: No such file or directory")),
    ],
    ids=["another version", "a module is missing", "no start", "no such program"],
)
def test_a_python_that_does_not_fit(
    job: Job, home: Path, tmp_path: Path, code: str | None, words: tuple[str, ...]
) -> None:
    """Breaks when it is called bad data, is to be run again, or is met only when the job is at work."""
    program = python_that(tmp_path / "python", code) if code is not None else tmp_path / "no-such-python"
    write_files(on(job, LOCAL_CLUSTER, conf=f'"spark.pyspark.python" = "{program}", '), files=1, rows=10)
    assert_refused(job.run(env=environment(home)), 7, "executor-environment", "nothing was sent", *words)
    control = job_state(job).control
    assert control is not None
    assert control.tasks_alive == 0


@pytest.mark.in_turns("one cluster each")
def test_a_master_that_does_not_answer(job: Job, home: Path) -> None:
    write_files(on(job, "spark://127.0.0.1:1"), files=1, rows=10)
    began = time.monotonic()
    assert_refused(job.run(env=environment(home)), 5, "spark-master", "127.0.0.1:1: Connection refused")
    assert time.monotonic() - began < 60


@pytest.mark.slow
def test_executors_that_fit_nowhere(job: Job, home: Path) -> None:
    """Breaks when a run waits without end for cores that no worker has, or says nothing meanwhile."""
    write_files(on(job, LOCAL_CLUSTER, 'executor_wait = "5s"', '"spark.executor.cores" = "4", '), files=1, rows=10)
    done = job.run(env=environment(home))
    assert_refused(done, 5, "no-executors", "no executor within 5 s: requested 2, each with 512m of memory and 4 cores")
    assert "waiting for executors: none yet; requested 2, " in done.stderr


@pytest.mark.slow
def test_executors_that_are_all_lost(make_job: Callable[[], Job], tmp_path: Path) -> None:
    """Breaks when a run goes on waiting for workers that are gone; the next one finishes it."""
    with standalone(tmp_path, workers=1) as alone:
        job = on(make_job(), alone.master, 'executor_wait = "25s"')
        write_files(job, files=4, rows=30_000)
        process = job.popen(env={**environment(alone.home), "EOSINGEST_PROGRESS_SECONDS": "1"})
        wait_for(lambda: process.poll() is not None or _has_committed(job), timeout_s=120, every_s=0.2)
        alone.kill_workers()
        done = finish(process)
        assert_quiet(done)
        assert (done.exit_code, done.codes) == (5, ["no-executors"]), done
        alone.add_worker()
        assert job.run(env=environment(alone.home)).exit_code == 0
    assert_exact(job)


@pytest.mark.slow
def test_a_setting_of_the_site_that_may_change_records(job: Job, tmp_path: Path) -> None:
    """Breaks when two machines make other records of the same rows, and no digest says so."""
    write_files(job, files=1, rows=10)
    env = defaults(tmp_path / "site", {"spark.sql.caseSensitive": "true", "spark.sql.cbo.enabled": "true"})
    done = job.run(env=env)
    assert_refused(
        done, 7, "spark-setting", "spark.sql.caseSensitive = true is set outside of the spec", "name it in the spec"
    )
    job.edit_spec("conf = {", 'conf = { "spark.sql.caseSensitive" = "true", ')
    assert_done(job.run(env=env), 10)
