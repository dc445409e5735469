"""`eosingest prepare`: the archive that it writes is the one that the JVM of a run takes, and nothing depends on it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.harness import Job, finish, wait_for
from tests.integration.witness import assert_exact, jvm_of, write_files

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


def test_runs_take_the_archive(job: Job, home: Path) -> None:
    """Breaks when the training run and a run start other JVMs, or where nothing but the first run finds the archive."""
    write_files(job, files=1, rows=100)
    assert classes_from_archive(job) == 0

    done = finish(start_prepare())

    assert done.exit_code == 0, done
    (archive,) = archives(home)
    assert done.data == {"archive": str(archive), "bytes": archive.stat().st_size}
    job.write_numbers("part-1.jsonl", range(100, 200))
    assert classes_from_archive(job) > 5_000

    archive.chmod(0o600)
    archive.write_bytes(archive.read_bytes()[: 1 << 20])
    job.write_numbers("part-2.jsonl", range(200, 300))
    assert classes_from_archive(job) == 0


def test_killed_while_it_writes(home: Path) -> None:
    """Breaks when a file is taken for an archive because it is there. The JVM writes for a moment: three tries to meet it."""
    for _ in range(3):
        process = start_prepare()
        wait_for(lambda: any(home.glob("spark/*/parquet")), timeout_s=120)
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
