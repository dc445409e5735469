"""Runs the embedded broker: a real Apache Kafka on this machine, for a spec with `bootstrap_servers = "embedded"`.

    up ─▶ lock of the folder ─▶ running? ─yes─▶ wait for a metadata answer ─▶ BrokerStatus
                                   └─no─▶ jars ─▶ ports ─▶ format (first time) ─▶ launch ─┘
    down ─▶ lock ─▶ SIGTERM (SIGKILL after the timeout) to a process proven to be ours

One node in KRaft mode, on 127.0.0.1 only. It keeps running after the run that started it, on purpose, and `down` keeps its
data. `jars` fetches Kafka, `server` is the process and its folder, host/folder_lock.py lets one process at a time change them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from eosingest.broker.jars import KAFKA_VERSION, kafka_libs
from eosingest.broker.ports import choose_ports
from eosingest.broker.server import Server, ServerDiedError
from eosingest.broker.server_files import State
from eosingest.errors import FatalError
from eosingest.host.folder_lock import locked
from eosingest.host.paths import cache_directory

__all__ = ["BrokerStatus", "cache_directory", "down", "status", "up"]

_MAX_STARTS = 3


@dataclass(frozen=True)
class BrokerStatus:
    """The state of the embedded broker.

    `bootstrap_servers` is empty and `pid` None while it is not running. `version` is Apache Kafka's: of the running
    broker, or of its last start. `directory` has its data, `log` is its log file.
    """

    running: bool
    bootstrap_servers: str
    pid: int | None
    version: str
    directory: Path
    log: Path
    started_now: bool = False


def up(
    *,
    timeout_s: float = 120,
    directory: Path | None = None,
    properties: Mapping[str, str] | None = None,
    port: int | None = None,
) -> BrokerStatus:
    """Start the broker, or find it running, and return when it answers. Concurrent calls start only one broker.

    `timeout_s` includes the download of Kafka's jars (44 MB) the first time. `directory` is the broker's folder (default:
    `broker` in the cache). `properties` (Kafka's names) and `port` take effect only if the broker is started now.
    Raises TemporaryError after the timeout or if the jars cannot be fetched, FatalError if the broker cannot start: its
    log's last lines are in the message.
    """
    deadline = time.monotonic() + timeout_s
    server = _server(directory)
    with _clear_disk_errors(server.directory):
        server.directory.mkdir(parents=True, exist_ok=True)
        with _lock(server, deadline):
            state, pid = server.read_state(), server.running_pid()
            if pid is not None and state is not None:
                with suppress(ServerDiedError):  # it was shutting down, or it failed after its starter was killed
                    return _describe(server, state, server.wait_until_it_answers(state, deadline))
            elif pid is not None:  # without the state file its port is not known
                server.stop(pid, deadline)
            return _start(server, properties or {}, port, deadline)


def down(*, timeout_s: float = 30, remove_data: bool = False, directory: Path | None = None) -> BrokerStatus:
    """Stop the broker if it runs; its data and ports are kept for the next `up`, or removed with `remove_data`.

    After `timeout_s` it is killed, which loses no acknowledged record unless the machine fails, too.
    Raises TemporaryError if another process is starting it and does not finish in time.
    """
    deadline = time.monotonic() + timeout_s
    server = _server(directory)
    with _clear_disk_errors(server.directory):
        if server.directory.is_dir():
            with _lock(server, deadline):
                pid = server.running_pid()
                if pid is not None:
                    server.stop(pid, deadline)
                if remove_data:
                    _remove(server)
    return status(directory=directory)


def status(*, directory: Path | None = None) -> BrokerStatus:
    """Return the broker's state without waiting: nothing is started, written or locked, and no request is sent."""
    server = _server(directory)
    return _describe(server, server.read_state(), server.running_pid())


def _server(directory: Path | None) -> Server:
    return Server((directory or cache_directory() / "broker").expanduser().resolve())


def _describe(server: Server, state: State | None, pid: int | None, *, started_now: bool = False) -> BrokerStatus:
    return BrokerStatus(
        running=pid is not None,
        bootstrap_servers=state.bootstrap_servers if state and pid is not None else "",
        pid=pid,
        version=state.version if state else KAFKA_VERSION,
        directory=server.directory,
        log=server.log,
        started_now=started_now,
    )


def _start(server: Server, properties: Mapping[str, str], port: int | None, deadline: float) -> BrokerStatus:
    """Launch the server; if another program takes a port that was found free, launch it again on other ports."""
    libs, version = kafka_libs(deadline)
    for attempt in range(1, _MAX_STARTS + 1):
        client_port, controller_port = choose_ports(server.read_state(), port)
        state = State(client_port, controller_port, version)
        server.write_state(state)
        server.launch(libs, state, properties, deadline)
        try:
            pid = server.wait_until_it_answers(state, deadline)
        except ServerDiedError as error:
            if error.port_taken and attempt < _MAX_STARTS:
                continue
            raise FatalError(
                f"the embedded broker ended while it was starting; its data is kept. The end of {server.log}:\n{error}",
                code="broker-died",
                hint="correct the cause that the log shows, then: eosingest broker up",
            ) from error
        return _describe(server, state, pid, started_now=True)
    raise AssertionError("the last attempt either returned or raised")


def _lock(server: Server, deadline: float) -> AbstractContextManager[None]:
    return locked(server.directory / "lock", deadline, what="starting or stopping the embedded broker")


def _remove(server: Server) -> None:
    """Remove our files from the folder, and no others; not the lock file, for which another process may be waiting."""
    data = server.directory / "data"
    if data.exists():
        shutil.rmtree(data)
    ours = ("broker.log*", "broker.out", "broker.pid", "state.json*", "server.properties", "log4j*.properties")
    for pattern in ours:
        for file in server.directory.glob(pattern):
            file.unlink(missing_ok=True)


@contextmanager
def _clear_disk_errors(directory: Path) -> Iterator[None]:
    """Turn a failure of the file system into an error that names the folder."""
    try:
        yield
    except OSError as error:
        raise FatalError(
            f"the embedded broker's folder {directory} cannot be used: {error}",
            code="broker-folder",
            hint="free space or correct its rights, or let EOSINGEST_HOME name another folder; then: eosingest broker up",
        ) from error
