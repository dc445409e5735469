"""No library's warning reaches the terminal: every verb as a real process, where each library warns as it is imported."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark
import pytest

from tests.support.commands import Done, finish
from tests.support.harness import Job, run_text

LONG_S = 500  # several starts of Spark, on a machine with other tests
pytestmark = pytest.mark.timeout(900)

# In Python's path as sitecustomize: it runs before all else, in the Python workers of Spark, too.
WARNING_LIBRARIES = """\
import logging
import sys
import warnings

LIBRARIES = ("boto3", "confluent_kafka", "kafka", "numpy", "pandas", "pyarrow", "pydantic", "pyspark", "sqlglot", "typer")


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name in LIBRARIES:
            for category in (FutureWarning, UserWarning, RuntimeWarning, SyntaxWarning, UnicodeWarning):
                warnings.warn(f"{name} warns", category, stacklevel=2)
            with open(@@log@@, "a") as log:
                log.write(f"{name}\\n")
            logging.getLogger(name).warning("%s logs a warning", name)
            logging.error("%s logs an error", name)


sys.meta_path.insert(0, Finder())
"""
OURS = re.compile(
    r"note: (?!.* warns).*|error: .*|hint: .*"
    r"|\d[\d,]* of \d[\d,]* splits?, [\d,]+ records, .*|reading the \w+: .*"  # progress
)


@pytest.fixture
def warning_libraries(tmp_path: Path) -> dict[str, str]:
    """Return the environment in which libraries warn as they are imported; `warned` in tmp_path then names them."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(WARNING_LIBRARIES.replace("@@log@@", repr(str(tmp_path / "warned"))))
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))}


def assert_ours(done: Done, exit_code: int = 0) -> None:
    """Whatever is on stderr, this command has said it."""
    assert done.exit_code == exit_code, done
    strange = [line for line in done.stderr.splitlines() if not OURS.fullmatch(line)]
    assert not strange, done.stderr


def command(folder: Path, *arguments: str, env: Mapping[str, str]) -> Done:
    return finish(
        subprocess.Popen(
            [sys.executable, "-m", "eosingest", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **env},
            cwd=folder,
            start_new_session=True,
        ),
        LONG_S,
    )


@pytest.mark.parametrize("asked", ["", *(pytest.param(name, marks=pytest.mark.slow) for name in ("default", "error"))])
def test_verbs_without_spark(asked: str, job: Job, warning_libraries: dict[str, str], tmp_path: Path) -> None:
    """Breaks when a warning is printed, and when one ends a verb: PYTHONWARNINGS is for programs under development."""
    env = {**warning_libraries, "PYTHONWARNINGS": asked}
    job.write_numbers("a.jsonl", range(3))
    assert_ours(command(job.data, "init", "--from", "a.jsonl", env=env))
    for verb in ("check", "plan"):
        assert_ours(run_text(job, verb, env=env))
    assert_ours(run_text(job, "status", env=env), exit_code=10)
    assert_ours(
        command(job.folder, "topic", "peek", "nosuch", "--bootstrap-servers", job.servers, env=env), exit_code=7
    )
    assert {"confluent_kafka", "kafka", "sqlglot", "typer"} <= set((tmp_path / "warned").read_text().split())


def test_a_run_with_libraries_that_warn(job: Job, warning_libraries: dict[str, str], tmp_path: Path) -> None:
    """Breaks for pyspark, and when a task imports pandas, which takes each of them a third of a second."""
    job.write_numbers("a.jsonl", range(3))
    assert_ours(run_text(job, env={**warning_libraries, "PYTHONWARNINGS": "error"}))
    warned = set((tmp_path / "warned").read_text().split())
    assert {"pyarrow", "pyspark"} <= warned
    if not pyspark.__version__.startswith("4.0."):  # which imports pandas itself
        assert "pandas" not in warned


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["", "error"])
def test_verbs_with_spark(asked: str, job: Job, warning_libraries: dict[str, str], tmp_path: Path) -> None:
    """Each verb, with warnings as a program under development asks for them and without."""
    env = {**warning_libraries, "PYTHONWARNINGS": asked}
    job.write_numbers("a.jsonl", range(3))
    assert_ours(run_text(job, "preview", env=env))
    assert_ours(run_text(job, env=env))
    assert_ours(run_text(job, "status", env=env))
    assert_ours(run_text(job, "verify", "--against-source", env=env))
    assert_ours(command(job.folder, "topic", "peek", str(job.spec), env=env))
    assert {"pyarrow", "pyspark"} <= set((tmp_path / "warned").read_text().split())


@pytest.mark.slow
def test_prepare(warning_libraries: dict[str, str], tmp_path: Path) -> None:
    env = {**warning_libraries, "PYTHONWARNINGS": "error", "EOSINGEST_HOME": str(tmp_path / "home")}
    assert_ours(command(tmp_path, "prepare", env=env))


def test_verbose_shows_them(job: Job, warning_libraries: dict[str, str]) -> None:
    """They are not lost: whoever looks for the cause of a failure sees them."""
    job.write_numbers("a.jsonl", range(3))
    said = run_text(job, "plan", "--verbose", env=warning_libraries).stderr
    assert "FutureWarning: kafka warns" in said
    assert "WARNING kafka: kafka logs a warning" in said
    assert "ERROR root: kafka logs an error" in said


OF_THE_API = """
import logging, sys, warnings
import eosingest

def state():
    return list(warnings.filters), warnings.showwarning, logging.getLogger().handlers[:], logging.lastResort

before = state()
spec = eosingest.Spec.load(sys.argv[1])
assert eosingest.preview(spec, rows=1).records
assert eosingest.run(spec).complete
assert eosingest.verify(spec, against_source=True).verdict == "verified"
assert state() == before, (before, state())
"""


@pytest.mark.slow
def test_python_api(job: Job) -> None:
    """The caller keeps its filters, and a verb warns nobody; with -W error, which ends the caller at its own warnings."""
    job.write_numbers("a.jsonl", range(3))
    done = finish(
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", OF_THE_API, str(job.spec)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=job.folder,
            start_new_session=True,
        ),
        LONG_S,
    )
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
