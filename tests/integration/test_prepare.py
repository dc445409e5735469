"""The class data archive, asked for (`eosingest prepare`) or not: the JVM of a run takes it, and nothing depends on it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from eosingest.spark import class_archive
from tests.support.commands import RUN_TIMEOUT_S, finish
from tests.support.harness import Job, assert_done, wait_for
from tests.support.job_checks import assert_exact, write_files
from tests.support.processes import jvm_of

pytestmark = pytest.mark.slow

FROM_ARCHIVE = "source: shared objects file (top)"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache folder of its own; with a space, since the JVM's options are words on a command line."""
    folder = tmp_path / "cache 1"
    monkeypatch.setenv("EOSINGEST_HOME", str(folder))
    return folder


def classes_from_archive(job: Job) -> int:
    """Run the job, and count the classes that its JVM took from an archive of ours."""
    told = job.folder / "classes.log"
    done = job.run(env={"SPARK_SUBMIT_OPTS": f"-Xlog:class+load:file={told}"})
    assert done.exit_code == 0, done
    assert_exact(job)
    return told.read_text().count(FROM_ARCHIVE)


def start_prepare() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "eosingest", "prepare", "--output", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def archives(home: Path) -> list[Path]:
    return list((home / "spark").iterdir())


def test_runs_take_the_archive(job: Job, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when the training run and a run start other JVMs, or where nothing but the first run finds the archive.

    Hadoop's configuration is on the class path, too, and a JVM with a folder of files there writes no archive.
    """
    (tmp_path / "hadoop").mkdir()
    (tmp_path / "hadoop" / "core-site.xml").write_text("<configuration/>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path / "hadoop"))
    write_files(job, files=1, rows=100)
    assert classes_from_archive(job) == 0
    class_archive.remember_failure("the disk was full")

    # What a run starts in the background, but for its low priority, with which it might not end before the test does.
    subprocess.run([sys.executable, "-P", "-m", "eosingest.app.prepare"], check=True, timeout=RUN_TIMEOUT_S)

    (archive,) = archives(home)  # and no failure any more
    done = finish(start_prepare())
    assert done.exit_code == 0, done
    assert done.data == {"archive": str(archive), "bytes": archive.stat().st_size, "written": False}
    job.write_numbers("part-1.jsonl", range(100, 200))
    assert classes_from_archive(job) > 5_000

    archive.chmod(0o600)
    archive.write_bytes(archive.read_bytes()[: 1 << 20])
    job.write_numbers("part-2.jsonl", range(200, 300))
    assert classes_from_archive(job) == 0


def background_process(home: Path) -> int | None:
    """Return the process that a run with this cache has left in the background."""
    told = f"EOSINGEST_HOME={home}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
            if b"eosingest.app.prepare" in arguments and told in (entry / "environ").read_bytes().split(b"\0"):
                return int(entry.name)
    return None


def catches(pid: int, number: signal.Signals) -> bool:
    """Say whether a process has put a handler for a signal in place."""
    (caught,) = re.findall(r"^SigCgt:\s*([0-9a-f]+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return bool(int(caught, 16) >> (number - 1) & 1)


def test_a_run_has_it_written_in_the_background(job: Job, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a run waits for it, when it holds anything of the run's, when it is begun again and again, or not ended."""
    monkeypatch.setenv("EOSINGEST_PREPARE", "")
    write_files(job, files=1, rows=100)
    done = job.run()  # returns at the end of its streams, which a child that held them would put off
    pid = background_process(home)
    assert pid is not None, done
    wait_for(lambda: catches(pid, signal.SIGTERM))  # before that it is one that was ended from outside
    os.kill(pid, signal.SIGSTOP)
    try:
        assert_done(done, 100)
        assert done.stderr.count("in the background, once") == 1
        assert "in the background" not in done.stdout
        assert (os.getsid(pid), os.getpriority(os.PRIO_PROCESS, pid)) == (pid, 19)
        assert os.sched_getscheduler(pid) == os.SCHED_IDLE
        held = [(Path(f"/proc/{pid}") / name).readlink() for name in ("cwd", "fd/0", "fd/1", "fd/2")]
        assert held == [Path("/"), *[Path(os.devnull)] * 3]

        job.write_numbers("part-1.jsonl", range(100, 200))
        again = job.run("run", "--verbose")
        assert again.exit_code == 0, again
        assert "in the background, once" not in again.stderr
        assert "has not ended yet" in again.stderr
        assert_exact(job)
    finally:
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: background_process(home) is None)
    assert [path.suffix for path in archives(home)] == [".failed"]
    assert "SIGTERM" in str(class_archive.failure())


def test_killed_while_it_writes(home: Path) -> None:
    """Breaks when a file is taken for an archive because it is there. The JVM writes for a moment: three tries to meet it."""
    for _ in range(3):
        process = start_prepare()
        wait_for(lambda: any(home.glob("spark/*/json")), timeout_s=120)
        jvm = jvm_of(process)
        wait_for(lambda: any(home.glob("spark/*/fresh.jsa")), timeout_s=120, every_s=0.001)
        with contextlib.suppress(ProcessLookupError):
            os.kill(jvm, signal.SIGKILL)
        done = finish(process)
        if done.exit_code == 7:
            break
        (archive,) = archives(home)
        archive.unlink()
    assert (done.exit_code, done.codes) == (7, ["no-archive"]), done
    assert archives(home) == []


@pytest.mark.parametrize("moment", ["the JVM starts", "rows are read"])
def test_interrupted(home: Path, moment: str) -> None:
    """Breaks when half an archive is left where a run would take it, or anything else."""
    process = start_prepare()
    wait_for(lambda: any(home.glob("spark/*/json" if moment == "rows are read" else "logs/*.log")), timeout_s=120)
    os.kill(process.pid, signal.SIGINT)
    done = finish(process)
    assert done.exit_code == 130, done
    assert archives(home) == []
