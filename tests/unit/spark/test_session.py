"""What a JVM of Spark is started with, and what is said where it does not start."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark import SparkConf, SparkContext
from pyspark.errors import UnsupportedOperationException

from eosingest.errors import FatalError, TemporaryError
from eosingest.host.other_process import OtherProcess, started
from eosingest.spark import jvm, session
from eosingest.spark.failures import not_started
from eosingest.spark.jvm import _launcher_options, java_options, prepare_environment
from eosingest.spark.required_settings import _check_jvm
from eosingest.spark.session import Spark, package_zip

DRIVER = "spark.driver.extraJavaOptions"

SAME = "-Duser.timezone=UTC -Duser.language=en -Duser.country=US -Dfile.encoding=UTF-8"


ROOM = "-XX:MetaspaceSize=256m"


class OwnJvm(subprocess.Popen[bytes]):
    """A process that was not started."""

    def __init__(self) -> None:
        self.returncode = None


@pytest.fixture(autouse=True)
def no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a cache of its own: this machine's may hold an archive of Spark's classes, which options name."""
    monkeypatch.setenv("EOSINGEST_HOME", str(tmp_path / "cache"))


def test_no_archive_is_looked_for_under_spark_submit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when the jars of a pyspark that is a zip are listed: a traceback instead of a run."""
    monkeypatch.setattr(jvm.spark_defaults, "is_submitted", lambda: True)
    monkeypatch.setattr(jvm.class_archive, "option_to_use", lambda given: "-XX:SharedArchiveFile=there.jsa")
    assert "SharedArchiveFile" not in java_options("local[2]", {}, {})[DRIVER]
    monkeypatch.setattr(jvm.spark_defaults, "is_submitted", lambda: False)
    assert "SharedArchiveFile" in java_options("local[2]", {}, {})[DRIVER]


@pytest.fixture(autouse=True)
def _no_java_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the Java options of the suite."""
    monkeypatch.delenv("SPARK_SUBMIT_OPTS")


@pytest.mark.parametrize(
    ("master", "given", "wanted"),
    [
        ("local[2]", "", f"{SAME} -XX:+UseParallelGC {ROOM}"),
        ("local[2]", "-Xss4m", f"-Xss4m {SAME} -XX:+UseParallelGC {ROOM}"),
        ("local[2]", "-XX:+UseG1GC", f"-XX:+UseG1GC {SAME} {ROOM}"),
        ("local[2]", "-Xss4m -XX:+UseZGC", f"-Xss4m -XX:+UseZGC {SAME} {ROOM}"),
        ("local[2]", "-XX:MetaspaceSize=64m", f"-XX:MetaspaceSize=64m {SAME} -XX:+UseParallelGC"),
        ("spark://host:7077", "", SAME),
    ],
)
def test_collector_and_room_are_the_users_to_choose(master: str, given: str, wanted: str) -> None:
    """Breaks when two collectors are named: such a JVM does not start."""
    options = java_options(master, {DRIVER: given} if given else {}, {})
    assert options == {DRIVER: wanted, "spark.executor.extraJavaOptions": SAME}


def test_the_collector_may_be_chosen_among_default_options() -> None:
    assert java_options("local[2]", {"spark.driver.defaultJavaOptions": "-XX:+UseG1GC"}, {})[DRIVER] == f"{SAME} {ROOM}"


@pytest.mark.parametrize("name", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"])
def test_the_collector_may_be_chosen_in_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "-Xss4m -XX:+UseSerialGC")
    assert java_options("local[2]", {}, {})[DRIVER] == f"{SAME} {ROOM}"


def test_a_java_that_is_too_new_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when the only words are Hadoop's, which tell nobody what to do; what Java 25 says, as it was seen."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch(0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="25.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    error = not_started("local[*]", None, UnsupportedOperationException("getSubject is not supported"), None)
    assert error.code == "java-too-new"
    assert "does not run on Java 25" in error.message
    assert "JAVA_HOME" in error.hint


def test_the_sites_java_options_stay_before_ours() -> None:
    """Breaks when ours replace what spark-defaults.conf says, or stand before it, where it would win."""
    site = {DRIVER: "-Dsite=1", "spark.executor.extraJavaOptions": "-Duser.timezone=Asia/Tokyo -Dsite=2"}
    options = java_options("spark://host:7077", {DRIVER: "-Dspec=1"}, site)
    assert options == {
        DRIVER: f"-Dspec=1 {SAME}",
        "spark.executor.extraJavaOptions": f"-Duser.timezone=Asia/Tokyo -Dsite=2 {SAME}",
    }


@pytest.mark.parametrize(
    ("conf", "site", "wanted"),
    [
        ({}, "", "python-of-the-environment"),
        ({}, "spark.pyspark.python python-of-the-site", "python-of-the-site"),
        ({"spark.pyspark.python": "python-of-the-spec"}, "spark.pyspark.python x", "python-of-the-spec"),
    ],
)
def test_the_executors_python_is_the_one_that_is_named(
    conf: dict[str, str], site: str, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when spark.pyspark.python is taken without a word and another Python runs."""
    (tmp_path / "spark-defaults.conf").write_text(site)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", "python-of-the-environment")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    prepare_environment("yarn", conf)
    assert os.environ["PYSPARK_PYTHON"] == wanted


@pytest.mark.parametrize(
    ("language", "encoding", "zone", "words"),
    [
        ("en_US", "UTF-8", "UTC", None),
        ("en_US", "UTF-8", "Etc/UTC", None),
        ("tr_TR", "UTF-8", "UTC", "an executor's JVM's language = tr_TR"),
        ("en_US", "US-ASCII", "UTC", "an executor's JVM's encoding = US-ASCII"),
        ("en_US", "UTF-8", "Asia/Tokyo", "an executor's JVM's time zone = Asia/Tokyo"),
    ],
)
def test_what_a_jvm_really_has_is_looked_at(language: str, encoding: str, zone: str, words: str | None) -> None:
    with pytest.raises(FatalError, match=words) if words else contextlib.nullcontext() as raised:
        _check_jvm(language, encoding, zone, where="an executor's ")
    assert raised is None or raised.value.code == "spark-setting"


def test_the_reason_is_looked_for_in_the_log(tmp_path: Path) -> None:
    """Breaks when a cluster that is down is "stopped SparkContext", and exit 7 or 3."""
    log = tmp_path / "spark.log"
    log.write_text(
        "26/11/23 23:00:00 WARN StandaloneAppClient$ClientEndpoint: Failed to connect to master h:7077\n"
        "26/11/23 23:01:00 ERROR StandaloneSchedulerBackend: Application has been killed. Reason: All masters are"
        " unresponsive! Giving up.\n"
    )
    error = not_started("spark://h:7077", log, ValueError("Cannot call methods on a stopped SparkContext"), None)
    assert (error.exit_code, error.code) == (5, "spark-master")
    assert "All masters are unresponsive" in error.message
    log.write_text('Exception in thread "main" org.apache.spark.SparkException: no such thing\n\tat x\n')
    error = not_started("yarn", log, ValueError("[JAVA_GATEWAY_EXITED] Java gateway process exited"), None)
    assert (error.exit_code, error.code) == (7, "spark-start")
    assert error.message.endswith("SparkException: no such thing")


@pytest.mark.parametrize(
    ("folder", "wanted"),
    [("pyspark", "-Xbootclasspath/a:{}"), ("py spark", ""), ("py*", ""), ("py:spark", "")],
)
def test_the_launchers_jar_is_named_where_spark_can_read_it(
    folder: str, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when a path that Spark's script would take for two words keeps Spark from starting."""
    jar = Path(tmp_path.anchor, "opt", folder, "jars", "spark-launcher_2.13-4.0.5.jar")
    monkeypatch.setattr(Path, "glob", lambda *_: iter([jar]))
    assert _launcher_options() == wanted.format(jar)


def test_the_users_options_of_the_launcher_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LAUNCHER_OPTS", "-Xss4m")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "SPARK_HOME"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # put back at the end
    prepare_environment("local[2]", {})
    assert os.environ["SPARK_LAUNCHER_OPTS"] == "-Xss4m"


@pytest.mark.parametrize("warm", [True, False])
def test_a_second_spark_starts_in_the_jvm_of_the_first_one(
    warm: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when `run --accept-change` starts a JVM that pyspark does not use, or loses the settings for workers."""
    pid, made = os.getpid(), list[tuple[Any, SparkConf]]()
    first = SimpleNamespace(proc=OtherProcess(pid, started(pid) or 0) if warm else OwnJvm(), jvm=None)

    def context(conf: SparkConf, gateway: Any) -> SimpleNamespace:
        monkeypatch.setattr(SparkContext, "_gateway", SparkContext._gateway or gateway)
        made.append((gateway, conf))
        return SimpleNamespace(_accumulatorServer=SimpleNamespace())

    monkeypatch.setattr(SparkContext, "_gateway", None)
    gateways = iter([first])
    monkeypatch.setattr(session, "SparkContext", context)
    monkeypatch.setattr(session, "_warm_gateway", lambda *_: next(gateways) if warm else None)
    monkeypatch.setattr(session, "launch_gateway", lambda *_, **__: next(gateways))
    monkeypatch.setattr(session, "_started", [])
    monkeypatch.setattr(session.required_settings, "check_without_session", lambda *_: None)
    monkeypatch.setenv("EOSINGEST_FAILPOINTS", "of-the-driver")
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "SPARK_HOME", "SPARK_LAUNCHER_OPTS"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # put back at the end
    for _ in range(2):
        spark = session.start(job="a", master="local[2]", conf={}, of_source={}, log_file=tmp_path / "log")
        assert spark.process is first.proc
    for gateway, conf in made:
        assert gateway is first
        assert conf.get("spark.executorEnv.EOSINGEST_FAILPOINTS") == ("of-the-driver" if warm else None)


def test_stopping_waits_for_no_accumulator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when each run waits up to a second for a server that nobody asks any more, or when one that hangs holds it up."""
    held, stopped = threading.Event(), list[str]()
    accumulators = SimpleNamespace(shutdown=held.wait)
    context = SimpleNamespace(_accumulatorServer=accumulators, stop=lambda: stopped.append("context"))
    process = OwnJvm()
    process.kill = lambda: stopped.append("killed")  # type: ignore[method-assign]
    spark = Spark(cast(Any, context), process, "local[2]", None, {}, frozenset())
    spark.begin_to_stop()
    spark.stop()
    assert stopped == ["context"]
    assert context._accumulatorServer is None

    monkeypatch.setattr("eosingest.spark.session._STOP_S", 0.05)
    context = SimpleNamespace(_accumulatorServer=accumulators, stop=held.wait)
    Spark(cast(Any, context), process, "local[2]", None, {}, frozenset()).stop()
    assert stopped == ["context", "killed"]
    held.set()


def test_the_package_for_executors(tmp_path: Path) -> None:
    names = zipfile.ZipFile(package_zip(tmp_path)).namelist()
    assert {"eosingest/__init__.py", "eosingest/spark/probe.py", "eosingest/protocol/task.py"} <= set(names)
    assert all(name.endswith(".py") for name in names)


STACK = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: io.fabric8.kubernetes.client.KubernetesClientException: Operation: [get]  for kind: [Pod]  failed.
\tat io.fabric8.kubernetes.client.KubernetesClientException.launderThrowable(KubernetesClientException.java:129)
Caused by: java.io.IOException: Connection refused: /127.0.0.1:1
Caused by: io.netty.channel.AbstractChannel$AnnotatedConnectException: Connection refused: /127.0.0.1:1
Caused by: java.net.ConnectException: Connection refused
"""


def test_an_api_server_that_does_not_answer_is_temporary() -> None:
    """Breaks when a scheduler is told not to retry (7) where the cluster was away for a moment; the stack is a real one's."""
    error = not_started("k8s://https://127.0.0.1:1", None, RuntimeError(STACK), None)
    assert isinstance(error, TemporaryError)
    assert (error.exit_code, error.code) == (5, "spark-master")
    assert "k8s://https://127.0.0.1:1 does not answer: Connection refused" in error.message


def test_an_api_server_that_refuses_is_not(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "Caused by: io.fabric8.kubernetes.client.KubernetesClientException: Failure executing: GET at: https://h/api/v1/pods/x."
        ' Message: pods "x" is forbidden: User "u" cannot get resource "pods". Received status: Status(code=403).\n'
    )
    error = not_started("k8s://https://h:443", log, RuntimeError("External scheduler cannot be instantiated"), None)
    assert (error.exit_code, error.code) == (7, "spark-start")
    assert 'pods "x" is forbidden' in error.message


def test_jars_of_a_run_are_added_to_those_of_the_spec() -> None:
    conf = {"spark.driver.extraClassPath": "/mine.jar", "spark.jars": "/other.jar"}
    assert jvm.with_jars("local[2]", conf, "/a.jar,/b.jar", []) == {
        "spark.driver.extraClassPath": "/mine.jar:/a.jar:/b.jar"
    }
    assert jvm.with_jars("spark://h:7077", conf, "/a.jar,/b.jar", []) == {"spark.jars": "/other.jar,/a.jar,/b.jar"}
    assert jvm.with_jars("local[2]", conf, "", []) == {}
    assert jvm.with_jars("local[2]", conf, "", ["/c.jar"]) == {"spark.jars": "/other.jar,/c.jar"}
    assert jvm.with_jars("local[2]", {}, "/a.jar", ["/c.jar"]) == {
        "spark.driver.extraClassPath": "/a.jar",
        "spark.jars": "/c.jar",
    }
    assert jvm.with_jars("spark://h:7077", {}, "/a.jar", ["/c.jar"]) == {"spark.jars": "/a.jar,/c.jar"}
