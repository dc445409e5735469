"""Which class data archive is found, kept and removed, and what is remembered of an attempt that gave none. Without Spark."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from eosingest.app import prepare
from eosingest.errors import FatalError
from eosingest.host.host_lock import HostLock
from eosingest.sources.registry import FILES
from eosingest.spark import class_archive, warmup
from eosingest.spec import Spec, load

SPEC = """\
name = "j"
[source]
format = "text"
path = "data"
[record]
value = "value"
[sink]
bootstrap_servers = "nobody:1"
topic = "t"
[spark]
master = "{master}"
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a Java and a pyspark of two jars in place of those that are here; return their folder."""
    monkeypatch.setenv("EOSINGEST_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("EOSINGEST_PREPARE", raising=False)
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    for file in ("java/bin/java", "java/lib/modules", "pyspark/jars/a.jar", "pyspark/jars/b.jar"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(file)
    monkeypatch.setattr(class_archive, "find_java", lambda: tmp_path / "java/bin/java")
    monkeypatch.setattr(class_archive, "_hash_of", class_archive._hash_of.__wrapped__)  # not cached
    fake = SimpleNamespace(__file__=str(tmp_path / "pyspark/__init__.py"), __version__="4.0.5")
    monkeypatch.setattr(class_archive, "pyspark", fake)
    return tmp_path


def write_archive(size: int = 10) -> Path:
    fresh = class_archive.folder() / "fresh"
    fresh.parent.mkdir(parents=True, exist_ok=True)
    fresh.write_bytes(b"x" * size)
    return class_archive.keep(fresh)


def test_half_an_archive_is_none() -> None:
    archive = write_archive()
    assert class_archive.find() == archive
    archive.write_bytes(b"x" * 9)
    assert class_archive.find() is None


@pytest.mark.parametrize("file", ["java/lib/modules", "pyspark/jars/b.jar", "pyspark/jars/c.jar"])
def test_another_java_or_jar_finds_none(installed: Path, file: str) -> None:
    """Breaks when the JVM refuses the archive without a word, and no other one is ever written."""
    archive = write_archive()
    class_archive.remember_failure("of before")
    (installed / file).write_text("another one")
    assert class_archive.find() is None
    assert class_archive.failure() is None
    assert write_archive() != archive


def test_few_archives_are_kept(installed: Path) -> None:
    """Breaks when every new environment of Python leaves 160 MiB behind for good, or when the one that is used goes."""
    archives = []
    for number in range(5):
        (installed / "pyspark/jars/b.jar").write_text(str(number) * (number + 1))
        archives.append(write_archive())
        os.utime(archives[-1], (number, number))
    os.utime(archives[2])  # used
    (installed / "pyspark/jars/b.jar").write_text("the last")
    last, again = write_archive(10), write_archive(11)
    assert set(class_archive.folder().iterdir()) == {archives[2], archives[4], again}
    assert not last.exists()


def test_a_run_notes_that_it_uses_the_archive() -> None:
    archive = write_archive()
    os.utime(archive, (1, 1))
    assert class_archive.option_to_use(["-Xss4m"]).endswith(f"{archive}")
    assert archive.stat().st_mtime > 1
    assert class_archive.option_to_use(["-XX:SharedArchiveFile=mine"]) == ""


def test_a_failure_is_remembered_for_a_day() -> None:
    assert class_archive.failure() is None
    class_archive.remember_failure("the disk is full")
    assert class_archive.failure() == "the disk is full"
    (file,) = class_archive.folder().iterdir()
    for age_s in (90_000, -90_000):  # a clock that was set back would else keep it for ever
        os.utime(file, (time.time() - age_s,) * 2)
        assert class_archive.failure() is None
    os.utime(file)
    write_archive()
    assert class_archive.failure() is None


def test_a_full_disk_is_told_before_it_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=200 << 20))
    with pytest.raises(FatalError, match="room for 200 MiB"):
        warmup.Training(FILES.rehearsal(), None, lambda: None).write_archive()
    assert list(class_archive.folder().iterdir()) == []


def test_what_killed_ones_left_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    old, young = class_archive.folder() / "training-1", class_archive.folder() / "training-2"
    for left in (old, young):
        left.mkdir(parents=True)
        (left / "fresh.jsa").write_text("half")
    os.utime(old, (time.time() - 10_000,) * 2)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(FatalError):
        warmup.Training(FILES.rehearsal(), None, lambda: None).write_archive()
    assert list(class_archive.folder().iterdir()) == [young]


# ---- what is written unasked ----------------------------------------------------------------------------------------


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return what takes note of each process that would have been started."""
    processes: list[object] = []
    monkeypatch.setattr(prepare, "_start", lambda: processes.append(1))
    return processes


@pytest.fixture
def spec(tmp_path: Path) -> Callable[[str], Spec]:
    def make(master: str = "local[2]") -> Spec:
        (tmp_path / "spec.toml").write_text(SPEC.format(master=master))
        return load(tmp_path / "spec.toml")

    return make


def test_it_is_begun_once_and_said_once(begun: list[object], spec: Callable[..., Spec]) -> None:
    said: list[str] = []
    for _ in range(3):
        prepare.begin_in_background(spec(), said.append)
    assert (len(begun), len(said)) == (1, 1)
    assert "EOSINGEST_PREPARE=off" in said[0]


@pytest.mark.parametrize(
    "why_not",
    ["off", "there is one", "a cluster", "another archive", "spark-submit", "no folder", "a folder on the class path"],
)
def test_it_is_not_begun(
    why_not: str, begun: list[object], spec: Callable[..., Spec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    match why_not:
        case "off":
            monkeypatch.setenv("EOSINGEST_PREPARE", "Off")
        case "there is one":
            write_archive()
        case "another archive":
            monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:SharedArchiveFile=mine.jsa")
        case "spark-submit":
            monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
        case "no folder":
            (tmp_path / "home").write_text("a file")
        case "a folder on the class path":
            monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "java"))
    said: list[str] = []
    prepare.begin_in_background(spec("spark://h:1" if why_not == "a cluster" else "local[2]"), said.append)
    assert begun == said == []


def test_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when two runs that end together have two JVMs write."""
    monkeypatch.setattr(prepare, "_archive", lambda *_: pytest.fail("the lock is held"))
    monkeypatch.setattr(prepare, "_signals", lambda: lambda: None)
    with HostLock("", "prepare") as lock:
        assert lock.acquired
        prepare._in_background()


def test_why_it_failed_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise FatalError("the JVM wrote none")

    monkeypatch.setattr(prepare, "_archive", fails)
    monkeypatch.setattr(prepare, "_signals", lambda: lambda: None)
    prepare._in_background()
    assert class_archive.failure() == "the JVM wrote none"


def test_the_configuration_folder_of_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a minute is spent on an archive that the JVM refuses to write: a folder of files is on its class path."""
    conf = tmp_path / "conf"
    monkeypatch.setenv("SPARK_CONF_DIR", str(conf))
    assert class_archive.folder_on_class_path() is None
    conf.mkdir()
    assert class_archive.folder_on_class_path() is None
    (conf / "spark-defaults.conf").touch()
    assert class_archive.folder_on_class_path() == conf
    with pytest.raises(FatalError, match="Java archives no classes then") as raised:
        warmup.Training(FILES.rehearsal(), None, lambda: None).write_archive()
    assert raised.value.code == "no-archive"
