"""The warm JVM without a JVM: who gets it, when it ends, what must be equal (a real one: tests/integration)."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import eosingest
from eosingest.app import warm
from eosingest.cli import main as cli
from eosingest.host import other_process
from eosingest.spark import class_archive
from eosingest.spark.warm import channel, clean, holder, key
from eosingest.spark.warm.channel import Channel, UnusableError
from tests.support.harness import wait_for

KEY = {"Java": "17"}


class Stub(holder.Holder):
    """A holder of a process that is no JVM; `fails` names the step that fails in it."""

    fails = ""

    def _start(self) -> None:
        self._process = self._workers = subprocess.Popen(["sleep", "600"], stdin=subprocess.PIPE)
        self._gateway = self._before = None  # type: ignore[assignment]

    def _in_jvm(self, step: Any, within_s: float) -> Any:
        if self.fails and self.fails in step.__code__.co_names:
            raise TimeoutError
        return (None, 1, "secret") if "gateway_for_a_run" in step.__code__.co_names else 0.0

    @property
    def process(self) -> subprocess.Popen[bytes]:
        return self._process


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(holder.signal, "signal", lambda *_: None)  # it runs in a thread here
    monkeypatch.setattr(clean, "kill_the_rest", lambda kept: None)
    monkeypatch.setattr(holder, "_POLL_S", 0.01)
    monkeypatch.setattr(holder, "_END_S", 0.0)
    made = tmp_path / "jvm"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture
def held(place: Path) -> Iterator[Callable[..., tuple[Stub, Channel]]]:
    """Make a holder, and the connection of its first driver, which has the JVM."""
    threads, made = [], []

    def make(idle_s: float = 600.0) -> tuple[Stub, Channel]:
        ours, theirs = (Channel(end) for end in socket.socketpair())
        request = {"boot": {}, "key": KEY, "idle_s": idle_s, "verb": "attach", "log": str(place / "log")}
        stub = Stub(place, request)
        threads.append(threading.Thread(target=stub.run, args=(theirs, request)))
        threads[-1].start()
        made.append(stub)
        assert ours.receive(10)["port"] == 1
        ours.send(done=True)
        return stub, ours

    yield make
    for stub in made:
        stub._ended.set()
    for thread in threads:
        thread.join(10)


def asked(place: Path, verb: str = "attach", key: Mapping[str, str] = KEY) -> tuple[Channel, dict[str, Any]]:
    connection = channel.connect(place, 5)
    assert connection is not None
    return connection, channel.ask(connection, ready_s=5, verb=verb, key=key, log=str(place / "log"))


def wait_until_free(place: Path) -> None:
    """Wait until the holder has seen the end of a driver's connection."""
    wait_for(lambda: asked(place, "status")[1]["used_by"] is None)


def test_one_driver_at_a_time(place: Path, held: Callable[..., tuple[Stub, Channel]]) -> None:
    _, first = held()
    with pytest.raises(UnusableError, match=f"process {os.getpid()} uses it"):
        asked(place)
    with pytest.raises(UnusableError, match="uses it"):
        asked(place, "end")
    first.close()
    wait_until_free(place)
    second, answer = asked(place)
    assert answer["secret"] == "secret"
    with pytest.raises(UnusableError, match="it differs in Java"):
        asked(place, key={"Java": "21"})
    second.close()
    wait_until_free(place)
    assert asked(place, "end")[1]["pid"]


@pytest.mark.parametrize("step", ["gateway_for_a_run", "clean"])
def test_what_fails_in_the_jvm_ends_it(place: Path, held: Callable[..., tuple[Stub, Channel]], step: str) -> None:
    """Breaks when cleaning that takes too long can still stop the context of the next driver."""
    stub, first = held()
    stub.fails = step
    first.close()
    if step == "gateway_for_a_run":
        with pytest.raises(UnusableError, match="it did not answer, and was ended"):
            asked(place)
    assert stub.process.wait(10) == -9
    deadline = time.monotonic() + 10
    while (connection := channel.connect(place, 1)) is not None:
        connection.close()
        assert time.monotonic() < deadline, "a driver may still attach"
        time.sleep(0.05)


def test_down_ends_a_holder_that_no_longer_accepts_connections(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when `down` fails once the queue of connections to a frozen holder is full."""
    monkeypatch.setenv(channel.FOLDER_VARIABLE, str(place))
    monkeypatch.setenv(channel.SWITCH, "on")
    monkeypatch.setattr(warm, "_wanted", lambda *_: warm._Wanted({}, KEY))
    frozen = subprocess.Popen(["sleep", "600"])
    (place / holder.PROCESSES).write_text(json.dumps([(frozen.pid, other_process.started(frozen.pid))]))
    with channel.listen(place):
        waiting = []
        with pytest.raises(TimeoutError, match="does not answer"):
            for _ in range(1000):
                waiting.append(channel.connect(place, 1))
        assert cli.exit_code_of(["spark", "status", "--output", "text"]) == 0
        assert "would not use it: it does not answer in time" in capsys.readouterr().out
        assert cli.exit_code_of(["spark", "down"]) == 0
        assert frozen.wait(10) == -9
    for connection in waiting:
        assert connection is not None
        connection.close()


def test_it_never_ends_by_idleness_under_a_driver(place: Path, held: Callable[..., tuple[Stub, Channel]]) -> None:
    """Breaks when the end by idleness does not exclude a driver that attaches at that moment."""
    chance, given = random.Random(1), 0
    for _ in range(25):
        stub, first = held(idle_s=0.03)
        first.close()
        while stub.process.poll() is None:
            time.sleep(chance.uniform(0.0, 0.06))
            try:
                connection = channel.connect(place, 5)
                if connection is None:
                    continue
                channel.ask(connection, ready_s=5, verb="attach", key=KEY, log=str(place / "log"))
            except (UnusableError, OSError):
                continue
            given += 1
            time.sleep(0.05)
            assert stub.process.poll() is None, "it ended while a driver used it"
            connection.close()
    assert given > 5


def test_a_logout_that_removes_the_folder_ends_no_run(place: Path, held: Callable[..., tuple[Stub, Channel]]) -> None:
    """Breaks when a run under nohup loses its JVM with the last login of its user, or the JVM stays where nobody finds it."""
    stub, first = held()
    shutil.rmtree(place)
    with pytest.raises(subprocess.TimeoutExpired):
        stub.process.wait(0.3)
    first.close()
    stub.process.wait(10)


def test_the_log_of_a_driver_may_end_while_it_is_copied(place: Path) -> None:
    """Breaks when the thread that copies it ends the holder, since another one has just set it to None."""
    (place / holder.JVM_LOG).write_text("a line\n")
    stub = Stub(place, {"boot": {}, "key": KEY, "idle_s": 1})
    logs: Iterator[Path | None] = iter([place / "log"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stub, "_log", property(lambda self: next(logs, None)), raising=False)
        stub._copy_output()
    assert (place / "log").read_text() == "a line\n"


def test_status_says_why_a_run_would_not_use_it(
    place: Path,
    held: Callable[..., tuple[Stub, Channel]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Breaks when `off`, or a holder that does not answer, is reported as usable or as a difference of settings."""
    monkeypatch.setenv(channel.FOLDER_VARIABLE, str(place))
    monkeypatch.setenv("EOSINGEST_OUTPUT", "text")

    def line(switch: str = "on", theirs: Mapping[str, str] = KEY) -> str:
        monkeypatch.setenv(channel.SWITCH, switch)
        monkeypatch.setattr(warm, "_wanted", lambda *_: warm._Wanted({}, theirs))
        assert cli.exit_code_of(["spark", "status"]) == 0
        return capsys.readouterr().out

    assert line("off").startswith("There is no warm JVM.")
    held()[1].close()
    assert line().startswith("A JVM is warm; a run from here uses it.\n  pid")
    assert f"would not use it: {channel.SWITCH} is off.\n" in line("off")
    assert "would not use it: it differs in Java.\n" in line(theirs={"Java": "21"})
    monkeypatch.setattr(holder.Holder, "_answer", lambda self, connection: connection.wait_for_end())
    monkeypatch.setattr(channel, "ANSWER_S", 0.1)
    silent = line()
    assert "would not use it: it does not answer in time" in silent and "None" not in silent


def test_another_user_gets_nothing(place: Path, held: Callable[..., tuple[Stub, Channel]]) -> None:
    """Breaks when only the mode of the folder keeps others away."""
    if os.geteuid() != 0:
        pytest.skip("needs another uid")
    _, first = held()
    first.close()
    for folder in (place, *place.parents):
        if folder != Path("/tmp") and folder.is_relative_to("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o711)
    (place / channel.SOCKET).chmod(0o777)
    program = (
        "import os, socket, sys; os.setgid(65534); os.setuid(65534); s = socket.socket(socket.AF_UNIX);"
        'os.chdir(sys.argv[1]); s.connect("socket"); s.sendall(b\'{"verb": "attach", "key": {}, "log": "x"}\\n\');'
        "print(s.recv(1000))"
    )
    done = subprocess.run(["/usr/bin/env", "python3", "-c", program, str(place)], capture_output=True, text=True)
    refused = done.stdout == "b''\n" or "reset" in done.stderr or "BrokenPipe" in done.stderr
    assert refused and "secret" not in done.stdout, done
    with pytest.raises(UnusableError, match="not this user's alone"):
        channel.connect(place, 1)


def test_a_folder_of_another_kind_is_not_used(place: Path) -> None:
    link = place.parent / "link"
    link.symlink_to(place)
    with pytest.raises(OSError):
        channel.connect(link, 1)
    assert channel.connect(place, 1) is None
    assert channel.connect(place / "none", 1) is None


def test_a_long_path_will_do(place: Path) -> None:
    deep = place / ("x" * 150)
    deep.mkdir(mode=0o700)
    with channel.listen(deep):
        connection = channel.connect(deep, 1)
        assert connection is not None and connection.peer == (os.getpid(), os.geteuid())
        connection.close()


BOOT = {"spark.driver.extraJavaOptions": "-XX:+UseSerialGC"}


@pytest.mark.parametrize(
    "name",
    ["TZ", "LC_ALL", "PYTHONPATH", "PYTHONHASHSEED", "SPARK_LOCAL_DIRS", "JAVA_TOOL_OPTIONS", "AWS_SESSION_TOKEN",
     "AWS_PROFILE", "KRB5CCNAME", "HADOOP_CONF_DIR", "HTTPS_PROXY", "SSL_CERT_FILE", "LD_LIBRARY_PATH", "USER", "MY_PASSWORD"],
)  # fmt: skip
def test_a_variable_that_may_matter_must_be_equal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "/one")
    before = key.key(BOOT, {})
    assert key.difference(key.key(BOOT, {}), before) is None
    monkeypatch.setenv(name, "/another")
    assert name in str(key.difference(key.key(BOOT, {}), before))
    monkeypatch.delenv(name)
    assert name in str(key.difference(key.key(BOOT, {}), before))
    assert "/one" not in str(before)


def test_what_only_a_terminal_or_a_worker_reads_may_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key.key(BOOT, {})
    of_pyspark = ("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")
    of_others = (
        "TERM",
        "COLUMNS",
        "SHLVL",
        "PWD",
        "PYENV_DIR",
        "PYTEST_CURRENT_TEST",
        "EOSINGEST_HOME",
        "EOSINGEST_FAILPOINTS",
    )
    for name in (*of_others, *of_pyspark):
        monkeypatch.setenv(name, "another")
    archive = f"-XX:+UseSerialGC -XX:SharedArchiveFile={class_archive.folder()}/pyspark-1.jsa"
    assert key.difference(key.key({"spark.driver.extraJavaOptions": archive}, {}), before) is None
    assert key.for_workers()["spark.executorEnv.EOSINGEST_FAILPOINTS"] == "another"
    monkeypatch.setenv("EOSINGEST_PARAM", "password=hunter2")
    assert "hunter2" not in str(key.for_workers()), "Spark's pages show the settings of a context"


@pytest.mark.parametrize("text", ["/" + "9j" * 200, "a=/" + "x" * 5000, "/etc/shadow/x:/root/none"])
def test_a_variable_that_only_looks_like_a_path(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a picture in base64 ends `spark up`, or a run, with an OSError: its name is too long."""
    before = key.key(BOOT, {})
    monkeypatch.setenv("PICTURE", text)
    assert key.difference(key.key(BOOT, {}), before) == "environment variable PICTURE"


def test_edited_code_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "eosingest"
    shutil.copytree(Path(eosingest.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(eosingest, "__file__", str(copy / "__init__.py"))
    before = key.key(BOOT, {})
    edited = copy / "spark" / "worker.py"
    edited.write_text(edited.read_text().replace("yield", "yield "))
    assert key.difference(key.key(BOOT, {}), before) == "eosingest's code"


def test_files_that_settings_name_count(tmp_path: Path) -> None:
    jar = tmp_path / "a.jar"
    jar.write_text("1")
    for boot in ({"spark.jars": f"{jar},/b.jar"}, {"spark.driver.extraJavaOptions": f"-javaagent:{jar}=x"}):
        before = key.key(boot, {})
        jar.write_text(jar.read_text() + "2")
        assert key.difference(key.key(boot, {}), before) == f"setting {next(iter(boot))}"


@pytest.mark.parametrize(
    ("conf", "environ", "counts"),
    [
        ({"spark.local.dir": "tmp"}, {}, True),
        ({"spark.local.dir": "/tmp/x,scratch"}, {}, True),
        ({"spark.driver.extraJavaOptions": "-Dlog4j.configurationFile=conf/log4j2.xml"}, {}, True),
        ({"spark.hadoop.fs.s3a.aws.credentials.file": "file:here"}, {}, True),
        ({"spark.sql.warehouse.dir": "./w"}, {}, True),
        ({}, {"SPARK_LOCAL_DIRS": "scratch"}, True),
        ({}, {"PYTHONPATH": "/a:lib"}, True),
        ({}, {"CLASSPATH": "/a:"}, True),
        (
            {"spark.local.dir": "/tmp/x", "spark.driver.memory": "2g", "spark.sql.session.timeZone": "Europe/Berlin"},
            {},
            False,
        ),
        (
            {"spark.sql.warehouse.dir": "file:/tmp/w", "spark.hadoop.fs.s3a.endpoint": "http://localhost:9000"},
            {},
            False,
        ),
        ({}, {"TZ": "Europe/Berlin", "LS_COLORS": "*.a=1", "AWS_PROFILE": "dev", "PYTHONPATH": "/a:/b"}, False),
    ],
)
def test_the_folder_counts_where_a_path_is_relative(
    conf: dict[str, str], environ: dict[str, str], counts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if key._MAY_NAME_A_PLACE.match(name) or key._NAMES_A_PLACE.search(name)]:
        monkeypatch.delenv(name)
    for name, value in {"PATH": "/usr/bin", **environ}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(key.class_archive, "stem", lambda: "pyspark")
    before = key.key({}, conf)
    monkeypatch.chdir(tmp_path)
    differs = key.difference(key.key({}, conf), before)
    assert (differs or "").startswith(key.FOLDER) is counts, differs
