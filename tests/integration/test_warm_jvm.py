"""Runs in the warm JVM of `spark up`: each test breaks a driver, the JVM or what must be equal; what was sent stays exact."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tests.support.commands import Done, finish
from tests.support.harness import Job, assert_done, assert_verified, run_text, wait_for
from tests.support.held_runs import run_killed_at, start_held
from tests.support.job_checks import assert_exact, write_files
from tests.support.processes import processes_below
from tests.support.warm_jvm import WarmJvm, has_ended

pytestmark = pytest.mark.xdist_group("warm-jvm")

# Where drivers are killed.
KILLED = ("task-before-commit=sleep:300", "driver-after-running=sleep:300", "task-after-begin=sleep:300")
NOT_USED = "the warm one is not used"
LIBRARY = """
import os
def write():
    with open({log!r}, "a") as log:
        log.write("version {version}\\n")
os.register_at_fork(after_in_child=write)
"""


@pytest.fixture(scope="module")
def of_the_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmJvm]:
    folder = tmp_path_factory.mktemp("warm")
    jvm = WarmJvm(folder / "jvm")
    (folder / "lib").mkdir()
    yield jvm
    jvm.down()


@pytest.fixture
def warm(of_the_module: WarmJvm, job: Job, monkeypatch: pytest.MonkeyPatch) -> WarmJvm:
    """The module's warm JVM, which the commands of the test use. A test that ends it has the next one start it."""
    for name, value in of_the_module.env.items():
        monkeypatch.setenv(name, value)
    lib = str(of_the_module.folder.parent / "lib")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (lib, os.environ.get("PYTHONPATH")))))
    of_the_module.up(job.spec)
    return of_the_module


def notes(done: Done) -> str:
    return done.stderr + json.dumps(done.data)


def assert_warm(warm: WarmJvm, job: Job, before: dict[str, object], runs: int) -> None:
    """So many runs used the JVM since `before`."""
    now = warm.status(job.spec)
    assert (now["pid"], now["runs"]) == (before["pid"], int(str(before["runs"])) + runs), (before, now)


def folders_of(pids: Iterable[int]) -> Iterator[str]:
    """Yield the working folder of each process that still runs: Spark ends workers that have nothing to do."""
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            yield os.readlink(f"/proc/{pid}/cwd")


@pytest.mark.slow_cases("three")
@pytest.mark.parametrize("points", [KILLED[:1], KILLED], ids=["one", "three"])
def test_the_next_run_is_exact_after_a_driver_is_killed_in_its_transaction(
    warm: WarmJvm, job: Job, points: tuple[str, ...]
) -> None:
    """Breaks when tasks of a dead driver, or its SparkContext, live on."""
    write_files(job, files=2, rows=6_000)
    before = warm.status(job.spec)
    for point in points:
        process = start_held(job, point)
        if point.startswith("task"):
            orphans = warm.workers()
            assert processes_below(warm.pids[2]), "their daemon is no fork of the worker server"
            assert set(folders_of(orphans)) == {str(job.folder)}
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()

    done = job.run_until_complete()

    assert NOT_USED not in notes(done)
    assert_exact(job)
    assert orphans and all(has_ended(pid) for pid in orphans)
    assert_verified(job)
    assert_warm(warm, job, before, len(points) + 2)


@pytest.mark.slow
def test_a_killed_group_leaves_the_jvm_to_the_next_run(warm: WarmJvm, job: Job) -> None:
    """Breaks when fail points, which the JVM's environment does not have, do not reach the tasks."""
    write_files(job, files=1, rows=6_000)
    before = warm.status(job.spec)
    run_killed_at(job, "task-after-commit@2")
    run_killed_at(job, "driver-after-claim")

    assert_done(job.run_until_complete())

    assert_exact(job)
    assert_warm(warm, job, before, 2)


@pytest.mark.slow
def test_a_second_run_starts_its_own_jvm(warm: WarmJvm, make_job: Callable[[], Job], job: Job) -> None:
    """Breaks when two drivers share the JVM: the second one's cleaning stops the first one's context."""
    write_files(job, files=1, rows=3_000)
    other = make_job()
    write_files(other, files=1, rows=3_000)
    first = start_held(job, "driver-after-running=sleep:300")
    busy = warm.down()
    assert (busy.exit_code, busy.codes) == (5, ["warm-jvm-busy"]), busy

    second = run_text(other)

    assert second.exit_code == 0 and f"the process {first.pid} uses it" in second.stderr, second
    assert first.poll() is None
    assert_exact(other)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    assert_done(job.run_until_complete())
    assert_exact(job)


@pytest.mark.slow
def test_what_differs_starts_its_own_jvm(warm: WarmJvm, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a run computes in a JVM of another environment."""
    write_files(job, files=1, rows=100)
    for name, value in {"TZ": "Asia/Tokyo", "AWS_SECRET_ACCESS_KEY": "other", "LD_PRELOAD": ""}.items():
        assert warm.status(job.spec, env={name: value})["differs"] == f"environment variable {name}"
    assert warm.status(job.spec, env={"PYTEST_CURRENT_TEST": "another", "TERM": "vt100"})["differs"] is None
    assert warm.status(job.spec, cwd=Path("/"))["differs"] is None
    monkeypatch.setenv("TZ", "Asia/Tokyo")

    done = run_text(job)

    assert done.exit_code == 0 and f"{NOT_USED}: it differs in environment variable TZ" in done.stderr, done
    assert_exact(job)


@pytest.mark.slow
def test_an_edited_library_is_used_by_the_next_run(warm: WarmJvm, make_job: Callable[[], Job]) -> None:
    """Breaks when a run's workers are forked by the daemon of an earlier run, or by a worker server with the earlier code."""
    jobs = make_job(), make_job()
    library, log = warm.folder.parent / "lib" / "sitecustomize.py", jobs[0].folder / "versions"
    warm.down()
    for version, job in zip(("old", "new"), jobs, strict=True):
        library.write_text(LIBRARY.format(log=str(log), version=version))
        warm.up(job.spec)  # starts it for the first job, and finds it for the second
        write_files(job, files=1, rows=10)
        before = warm.status(job.spec)
        log.unlink(missing_ok=True)
        assert_done(job.run())
        assert set(log.read_text().splitlines()) == {f"version {version}"}
        assert_warm(warm, job, before, 1)
    library.unlink()


@pytest.mark.in_turns("one end of a driver or a JVM each")
def test_a_jvm_killed_in_mid_run(warm: WarmJvm, job: Job) -> None:
    """Breaks when the run waits for a JVM that is gone."""
    write_files(job, files=1, rows=6_000)
    process = start_held(job, "task-after-begin=sleep:300")
    holder, jvm, _ = warm.pids
    workers = warm.workers()
    os.kill(jvm, signal.SIGKILL)

    done = finish(process)

    assert (done.exit_code, done.codes) == (3, ["jvm-ended"]), done
    wait_for(lambda: all(has_ended(pid) for pid in [holder, *workers]))
    done = job.run_until_complete()
    assert NOT_USED not in notes(done)  # there is none any more
    assert_exact(job)


@pytest.mark.slow
def test_a_frozen_jvm_is_not_used(warm: WarmJvm, job: Job) -> None:
    """Breaks when a run waits for a JVM that does not answer, or leaves it to the next one."""
    write_files(job, files=1, rows=100)
    holder, jvm, _ = warm.pids
    os.kill(jvm, signal.SIGSTOP)

    done = run_text(job)

    assert done.exit_code == 0 and f"{NOT_USED}: it did not answer, and was ended" in done.stderr, done
    wait_for(lambda: has_ended(holder) and has_ended(jvm))
    assert_exact(job)


@pytest.mark.in_turns("one end of a driver or a JVM each")
def test_a_jvm_frozen_in_mid_run_is_ended_by_spark_down(warm: WarmJvm, job: Job) -> None:
    """Breaks when `spark down` waits for the run, or the run for the JVM."""
    write_files(job, files=1, rows=6_000)
    process = start_held(job, "task-after-begin=sleep:300")
    os.kill(warm.jvm, signal.SIGSTOP)

    down = warm.down()

    assert down.exit_code == 0, down
    done = finish(process)
    assert (done.exit_code, done.codes) == (3, ["jvm-ended"]), done
    assert_done(job.run_until_complete())
    assert_exact(job)


@pytest.mark.slow
@pytest.mark.parametrize("frozen", ["holder", "both", "holder-killed"])
def test_spark_down_ends_what_does_not_answer(warm: WarmJvm, frozen: str) -> None:
    holder, jvm, _ = warm.pids
    if frozen != "holder":
        os.kill(jvm, signal.SIGSTOP)
    os.kill(holder, signal.SIGKILL if frozen == "holder-killed" else signal.SIGSTOP)

    assert warm.down().exit_code == 0

    assert has_ended(holder) and has_ended(jvm)


@pytest.mark.slow
def test_it_ends_when_idle_and_runs_start_their_own(warm: WarmJvm, job: Job) -> None:
    write_files(job, files=1, rows=100)
    warm.down()
    warm.up(job.spec, "--idle", "2s")
    pids = warm.pids
    wait_for(lambda: all(has_ended(pid) for pid in pids))

    done = job.run()

    assert_done(done)
    assert NOT_USED not in notes(done)
    assert_exact(job)


@pytest.mark.slow
def test_the_terminal_that_started_it_may_end(warm: WarmJvm, job: Job) -> None:
    """Breaks when Ctrl-C, or the end of the terminal, reaches the JVM."""
    warm.down()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(warm.env)
        os.execv(sys.executable, [sys.executable, "-m", "eosingest", "spark", "up", str(job.spec)])
    wait_for(lambda: (warm.folder / "processes.json").exists(), timeout_s=120)
    pids = warm.pids
    wait_for(lambda: _ended(terminal, pid), timeout_s=120)
    os.killpg(pid, signal.SIGINT) if not has_ended(pid) else None
    os.close(terminal)
    time.sleep(1)

    assert not any(has_ended(each) for each in pids)
    assert all(os.getsid(each) == pids[0] for each in pids)
    assert warm.status(job.spec)["differs"] is None


def _ended(terminal: int, pid: int) -> bool:
    try:
        os.read(terminal, 1 << 16)
    except OSError:
        os.waitpid(pid, 0)
        return True
    return False


NEXT_DRIVER = """
import sys
from pathlib import Path
from eosingest.app import warm
from eosingest.cli.options import load_spec
from eosingest.host.interruption import never
from eosingest.spark.warm import attach

class Quiet:
    notes = []
    def __getattr__(self, name): return lambda *a, **k: None

wanted = warm._wanted(load_spec(Path(sys.argv[1]), None, None), Quiet(), never)
jvm = attach.attach(lambda: wanted.key, Path(sys.argv[2])).jvm
print("properties", jvm.java.lang.System.getProperties().toString())
print("settings", jvm.SparkConf(True).toDebugString())
print("hadoop", jvm.org.apache.hadoop.conf.Configuration().get("fs.s3a.secret.key"))
print("context", getattr(getattr(jvm.org.apache.spark, "SparkContext$"), "MODULE$").getActive().isDefined())
print("session", jvm.org.apache.spark.sql.classic.SparkSession.getDefaultSession().isDefined())
"""


@pytest.mark.slow
def test_commands_load_no_library_that_they_do_not_use(warm: WarmJvm, job: Job) -> None:
    """A user waits for each. Breaks when a function of pyspark that imports pandas is called (spark/without_pandas.py)."""
    write_files(job, files=1, rows=100)
    for verb, unused in (("preview", {"pandas", "kafka"}), ("run", {"pandas"}), ("verify", {"pandas"})):
        command = [sys.executable, "-X", "importtime", "-m", "eosingest", verb, str(job.spec)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)

        assert done.returncode == 0 and NOT_USED not in done.stderr, done
        loaded = {
            line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")
        }
        assert "pyspark.sql" in loaded and loaded & unused == set(), verb


@pytest.mark.in_turns("one end of a driver or a JVM each")
def test_the_next_driver_reads_no_setting_of_a_run(warm: WarmJvm, job: Job) -> None:
    """Breaks when settings of a run stay in the JVM, its folders, or its workers' environment."""
    write_files(job, files=1, rows=100)
    scratch = job.folder / "scratch"
    clean = job.folder / "clean.toml"
    clean.write_text(job.spec.read_text())
    job.edit_spec(
        "conf = { ",
        f'conf = {{ "spark.hadoop.fs.s3a.secret.key" = "s3cret-of-a-run", "spark.local.dir" = "{scratch}", ',
    )
    before = warm.status(job.spec)
    assert_done(job.run())
    assert_warm(warm, job, before, 1)

    command = [sys.executable, "-c", NEXT_DRIVER, str(clean), str(job.folder / "log")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)

    assert done.returncode == 0 and "s3cret-of-a-run" not in done.stdout, done
    assert done.stdout.endswith("hadoop None\ncontext False\nsession False\n"), done.stdout
    assert scratch.is_dir() and not list(scratch.iterdir())
    for pid in (*warm.pids, *warm.workers()):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a worker has ended
            assert b"s3cret-of-a-run" not in Path(f"/proc/{pid}/environ").read_bytes()
