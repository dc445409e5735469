"""The embedded broker, for real: each test a Kafka in a folder of its own, Kafka's jars shared through the cache."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from eosingest import broker
from eosingest.broker import BrokerStatus, jars
from eosingest.errors import FatalError, TemporaryError

pytestmark = pytest.mark.timeout(240)

ROOT = Path(__file__).parents[2]
UP = "import sys, pathlib; from eosingest import broker; print(broker.up(directory=pathlib.Path(sys.argv[1])).pid)"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for a broker, which is gone after the test."""
    directory = tmp_path / "a broker, ü:1"
    yield directory
    broker.down(directory=directory, remove_data=True)


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **changes}


def topics(status: BrokerStatus) -> set[str]:
    client = AdminClient({"bootstrap.servers": status.bootstrap_servers})
    return set(client.list_topics(timeout=10).topics)


def make_topic(status: BrokerStatus, name: str) -> None:
    client = AdminClient({"bootstrap.servers": status.bootstrap_servers})
    client.create_topics([NewTopic(name, num_partitions=2)])[name].result(timeout=30)


def commit_one_record(status: BrokerStatus, topic: str) -> None:
    producer = Producer({"bootstrap.servers": status.bootstrap_servers, "transactional.id": "test"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"value")
    producer.commit_transaction(30)


def brokers_of(folder: Path) -> list[int]:
    """Every living process that was started as the broker of this folder, by the process table."""
    table = subprocess.run(["ps", "-eww", "-o", "pid=,args="], capture_output=True, text=True, check=True).stdout
    return [int(line.split()[0]) for line in table.splitlines() if f"{folder} " in line and "kafka.Kafka" in line]


def open_files(pid: int | None) -> set[str]:
    targets = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            targets.add(os.readlink(link))
    return targets


def wait_for_end_of(pid: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        stat = Path(f"/proc/{pid}/stat")
        try:
            if stat.read_text().rpartition(")")[2].split()[0] in "ZX":
                return
        except OSError:
            return
        time.sleep(0.02)
    pytest.fail(f"process {pid} does not end")


def test_life_of_a_broker(folder: Path) -> None:
    before = broker.status(directory=folder)
    assert (before.running, before.pid, before.bootstrap_servers) == (False, None, "")
    assert not folder.exists(), "asking for the status leaves no trace"

    first = broker.up(directory=folder)
    _, version = jars.kafka_libs(time.monotonic() + 120)  # another one where KAFKA_HOME names it: make test-brokers
    assert (first.running, first.started_now, first.version) == (True, True, version)
    assert brokers_of(folder) == [first.pid]
    make_topic(first, "orders")
    commit_one_record(first, "orders")

    again = broker.up(directory=folder)
    assert (again.pid, again.bootstrap_servers, again.started_now) == (first.pid, first.bootstrap_servers, False)
    assert broker.status(directory=folder) == again

    ended = broker.down(directory=folder)
    assert (ended.running, ended.pid) == (False, None)
    assert brokers_of(folder) == []
    assert broker.down(directory=folder) == ended, "twice is harmless"

    restarted = broker.up(directory=folder)
    assert restarted.pid != first.pid
    assert restarted.bootstrap_servers == first.bootstrap_servers, "the port is kept"
    assert "orders" in topics(restarted), "the data is kept"

    broker.down(directory=folder, remove_data=True)
    assert [file.name for file in folder.iterdir()] == ["lock"]


def test_only_the_loopback_address_listens(folder: Path) -> None:
    status = broker.up(directory=folder)
    inodes = open_files(status.pid)
    listening = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                listening.add(fields[1].rpartition(":")[0])
    assert listening
    assert all(address.endswith("0100007F") for address in listening), listening


@pytest.mark.in_turns("one caller each")
def test_concurrent_ups_make_one_broker(folder: Path) -> None:
    command = [sys.executable, "-c", UP, str(folder)]
    with ThreadPoolExecutor(4) as pool:
        in_process = [pool.submit(broker.up, directory=folder) for _ in range(2)]
        elsewhere = [
            pool.submit(subprocess.run, command, env=environment(), capture_output=True, text=True) for _ in range(2)
        ]
    statuses = [future.result() for future in in_process]
    results = [future.result() for future in elsewhere]
    pids = {status.pid for status in statuses} | {int(result.stdout) for result in results}
    assert brokers_of(folder) == list(pids)
    assert sum(status.started_now for status in statuses) <= 1


@pytest.mark.slow
def test_broker_killed_comes_back_with_its_data(folder: Path) -> None:
    first = broker.up(directory=folder)
    make_topic(first, "orders")
    assert first.pid is not None
    os.kill(first.pid, signal.SIGKILL)
    second = broker.up(directory=folder)
    assert second.started_now
    assert second.pid != first.pid
    assert second.bootstrap_servers == first.bootstrap_servers
    assert "orders" in topics(second)


@pytest.mark.in_turns("one caller each")
def test_killed_broker_is_not_running(folder: Path) -> None:
    pid = broker.up(directory=folder).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_for_end_of(pid)
    assert not broker.status(directory=folder).running


@pytest.mark.in_turns("one caller each")
def test_pid_of_another_program_is_left_alone(folder: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        folder.mkdir()
        (folder / "broker.pid").write_text(f"{other.pid}\n")
        (folder / "state.json").write_text(json.dumps({"port": 20001, "controller_port": 20002, "version": "4.4.0"}))
        assert not broker.status(directory=folder).running
        broker.down(directory=folder)
        assert other.poll() is None
        assert broker.up(directory=folder).started_now
        assert other.poll() is None
        other.kill()


@pytest.mark.slow
def test_taken_port_is_given_up_when_it_was_kept_and_an_error_when_it_was_asked_for(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(FatalError) as caught:
            broker.up(directory=folder, port=port)
        assert caught.value.code == "port-taken"
        (folder / "state.json").write_text(json.dumps({"port": port, "controller_port": port, "version": "4.4.0"}))
        status = broker.up(directory=folder)
        assert status.bootstrap_servers != f"127.0.0.1:{port}"
        assert topics(status) is not None


@pytest.mark.slow
def test_broker_that_cannot_start_says_why_and_starts_when_that_is_mended(folder: Path) -> None:
    wrong = {"log.retention.ms": "soon"}
    with pytest.raises(FatalError, match=r"Invalid value soon for configuration log\.retention\.ms") as caught:
        broker.up(directory=folder, properties=wrong)
    assert caught.value.code == "broker-format"
    broker.up(directory=folder)
    broker.down(directory=folder)
    with pytest.raises(FatalError, match=r"Invalid value soon for configuration log\.retention\.ms") as caught:
        broker.up(directory=folder, properties=wrong)
    assert caught.value.code == "broker-died"
    assert str(folder / "broker.log") in caught.value.message
    assert not broker.status(directory=folder).running
    assert broker.up(directory=folder).started_now


@pytest.mark.slow
def test_port_lost_between_look_and_start_is_tried_again_and_then_named(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        plain = f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"
        properties = {"listeners": f"{plain},CONTROLLER://127.0.0.1:19999", "advertised.listeners": plain}
        properties["controller.quorum.voters"] = "1@127.0.0.1:19999"
        with pytest.raises(FatalError, match="Address already in use") as caught:
            broker.up(directory=folder, properties=properties)
    assert caught.value.code == "broker-died"
    assert (folder / "broker.log.previous").exists()


@pytest.mark.slow
def test_running_broker_without_its_state_is_replaced(folder: Path) -> None:
    first = broker.up(directory=folder)
    (folder / "state.json").write_text("{half")
    second = broker.up(directory=folder)
    assert brokers_of(folder) == [second.pid]
    assert second.pid != first.pid
    assert topics(second) is not None


@pytest.mark.slow
def test_time_that_is_up_is_a_temporary_error_and_the_next_up_goes_on(folder: Path) -> None:
    with pytest.raises(TemporaryError) as caught:
        broker.up(directory=folder, timeout_s=1)
    assert caught.value.code == "broker-slow"
    assert broker.up(directory=folder).running
    assert len(brokers_of(folder)) == 1


@pytest.mark.in_turns("one caller each")
def test_caller_killed_with_its_group_leaves_the_broker(folder: Path) -> None:
    code = f"{UP}; sys.stdout.flush(); import time; time.sleep(60)"
    caller = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert caller.stdout is not None
    pid = int(caller.stdout.readline())
    os.killpg(caller.pid, signal.SIGKILL)
    caller.communicate()
    status = broker.status(directory=folder)
    assert status.pid == pid
    assert topics(status) is not None


@pytest.mark.in_turns("one caller each")
@pytest.mark.slow_cases("0.3", "0.8", "2.2", "3.0")
@pytest.mark.parametrize("delay_s", [0.3, 0.8, 1.5, 2.2, 3.0])
def test_caller_killed_while_it_starts_the_broker(folder: Path, delay_s: float) -> None:
    caller = subprocess.Popen([sys.executable, "-c", UP, str(folder)], env=environment(), start_new_session=True)
    time.sleep(delay_s)
    os.killpg(caller.pid, signal.SIGKILL)
    caller.wait()
    status = broker.up(directory=folder)
    assert brokers_of(folder) == [status.pid]


@pytest.mark.in_turns("one caller each")
def test_pipes_of_the_caller_close(folder: Path) -> None:
    script = f'"{sys.executable}" -c "$1" "$2"; echo "ended with $?"'
    command = ["sh", "-c", script, "sh", UP, str(folder)]
    started = time.monotonic()
    result = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120)
    took = time.monotonic() - started
    status = broker.status(directory=folder)
    assert result.stdout.splitlines() == [str(status.pid), "ended with 0"]
    assert result.stderr == ""
    assert took < 60


def test_missing_java_is_named_with_what_to_install(folder: Path, tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from eosingest import broker, errors\n"
        "try: broker.up(directory=pathlib.Path(sys.argv[1]))\n"
        "except errors.FatalError as error: print(error.code, '|', error.hint)"
    )
    bare = environment(PATH=str(tmp_path / "empty"))
    bare.pop("JAVA_HOME", None)
    result = subprocess.run([sys.executable, "-c", code, str(folder)], env=bare, capture_output=True, text=True)
    found, _, hint = result.stdout.partition(" | ")
    assert found == "java-missing", result.stderr
    assert "install" in hint


def test_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FatalError) as caught:
        broker.up(directory=tmp_path / "file" / "broker")
    assert caught.value.code == "broker-folder"
    assert str(tmp_path / "file") in caught.value.message


def test_kafka_home_without_kafka_is_refused(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_HOME", str(tmp_path))
    with pytest.raises(FatalError) as caught:
        broker.up(directory=folder)
    assert caught.value.code == "kafka-home"


@pytest.mark.slow
def test_kafka_home_is_used(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    libs, version = jars.kafka_libs(time.monotonic() + 120)
    (tmp_path / "libs").symlink_to(libs)
    monkeypatch.setenv("KAFKA_HOME", str(tmp_path))
    monkeypatch.setenv("EOSINGEST_HOME", str(tmp_path / "nothing-is-fetched"))
    assert broker.up(directory=folder).version == version
    assert not (tmp_path / "nothing-is-fetched").exists()


class TestFetch:
    """A mirror on this disk stands for Maven Central: EOSINGEST_IVY_SETTINGS is how one is named."""

    @pytest.fixture
    def mirror(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A repository with one module, Kafka's, that needs no other; the cache is an empty folder."""
        folder = tmp_path / "mirror"
        settings = tmp_path / "ivysettings.xml"
        settings.write_text(
            '<ivysettings><settings defaultResolver="mirror"/><resolvers><filesystem name="mirror">'
            f'<artifact pattern="{folder}/[artifact]-[revision].[ext]"/></filesystem></resolvers></ivysettings>'
        )
        folder.mkdir()
        monkeypatch.setenv("EOSINGEST_IVY_SETTINGS", str(settings))
        monkeypatch.setenv("EOSINGEST_HOME", str(tmp_path / "cache"))
        monkeypatch.delenv("KAFKA_HOME", raising=False)
        return folder

    def test_jars_that_are_not_the_pinned_ones_are_refused(self, mirror: Path, tmp_path: Path) -> None:
        for name in (f"kafka_2.13-{jars.KAFKA_VERSION}.jar", "log4j-slf4j-impl-2.25.5.jar"):
            (mirror / name).write_bytes(b"not what was pinned")
        with pytest.raises(FatalError, match=r"kafka_2\.13-4\.4\.0\.jar is not the file that was pinned") as caught:
            jars.kafka_libs(time.monotonic() + 60)
        assert caught.value.code == "kafka-jars"
        assert "zstd-jni" in caught.value.message, "what is missing is named, too"
        assert [file.name for file in (tmp_path / "cache" / "kafka-4.4.0").iterdir()] == ["lock"]

    def test_mirror_without_kafka_is_a_temporary_error(self, mirror: Path) -> None:
        with pytest.raises(TemporaryError, match=r"kafka_2\.13") as caught:
            jars.kafka_libs(time.monotonic() + 60)
        assert caught.value.code == "kafka-fetch"
        assert "EOSINGEST_IVY_SETTINGS" in caught.value.hint

    def test_fetch_that_takes_too_long_ends(self, mirror: Path) -> None:
        with pytest.raises(TemporaryError) as caught:
            jars.kafka_libs(time.monotonic() - 1)
        assert caught.value.code in ("kafka-fetch", "broker-busy")
