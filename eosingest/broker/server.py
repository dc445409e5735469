"""Manages one Kafka server process and its folder: launches it, finds out whether it runs and answers, stops it.

Used by the package's `up` and `down`; server_files.py writes the files that it starts from, ports.py chooses its ports.

The folder holds `data/` (the log), `server.properties`, `log4j2.properties`, `log4j.properties`, `broker.log` (bounded),
`broker.out` (the JVM's own output), `state.json` (ports and version, kept between starts), `broker.pid` and `lock`. The folder
is the JVM's working folder, and every path passed to the JVM is relative, so that no character in the folder's name can break a
Java property.
"""

from __future__ import annotations

import base64
import json
import os
import platform
import re
import shlex
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from eosingest.broker import server_files
from eosingest.broker.server_files import HOST, LOG_OPTIONS, State
from eosingest.errors import FatalError, TemporaryError
from eosingest.host.java import find_java

_EXEC_S = 1.0
_POLL_S = 0.05
_DEFAULT_HEAP = "-Xmx1g"
_ENVIRONMENT = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "JAVA_HOME", "JAVA_TOOL_OPTIONS")
# The outer shell ends at once, so that init becomes the broker's parent; the inner shell writes its process id and then becomes
# the JVM by exec. So the caller is not the parent, and killing it at any moment leaves no broker without a pid file.
_LAUNCH = """/bin/sh -c 'echo $$ >broker.pid && exec "$@"' sh "$@" </dev/null >broker.out 2>&1 &"""

_REASON = re.compile(r" (ERROR|FATAL) |^Error|^Caused by|Exception: |cannot create|No space left")


class ServerDiedError(Exception):
    """The server process ended while it was starting. The message is the reason from its log."""

    @property
    def port_taken(self) -> bool:
        """Say whether the reason is a port that another program uses."""
        return "Address already in use" in str(self)


@dataclass(frozen=True)
class Server:
    """The server of one folder. `directory`, absolute and without symbolic links, identifies the server."""

    directory: Path

    @property
    def log(self) -> Path:
        """Return the file that the broker logs to."""
        return self.directory / "broker.log"

    @property
    def _marker(self) -> str:
        """The command-line argument that identifies a process as this folder's server."""
        return f"-Deosingest.broker={self.directory}"

    def read_state(self) -> State | None:
        """Return the stored state; None if there is none that can be read."""
        with suppress(OSError, ValueError, TypeError):
            return State(**json.loads((self.directory / "state.json").read_text(encoding="utf-8")))
        return None

    def write_state(self, state: State) -> None:
        """Store the state, atomically."""
        fresh = self.directory / "state.json.new"
        fresh.write_text(json.dumps(asdict(state)) + "\n", encoding="utf-8")
        fresh.replace(self.directory / "state.json")

    def running_pid(self) -> int | None:
        """Return the process id of the server; None if it has ended, even if another program has its id now."""
        try:
            pid = int(self._read_pid_file())
        except ValueError:
            return None
        return pid if pid > 1 and self._is_ours(pid) else None

    def _read_pid_file(self) -> str:
        with suppress(FileNotFoundError):
            return (self.directory / "broker.pid").read_text(encoding="ascii", errors="replace")
        return ""

    def _is_ours(self, pid: int) -> bool:
        """Say whether the process has the marker argument; a process that has ended has no arguments."""
        if platform.system() == "Linux":
            return os.fsencode(self._marker) in _arguments(pid).split(b"\0")
        found = subprocess.run(["ps", "-ww", "-o", "args=", "-p", str(pid)], capture_output=True, check=False)
        return os.fsencode(f" {self._marker} ") in found.stdout

    def launch(
        self,
        libs: Path,
        state: State,
        properties: Mapping[str, str],
        deadline: float,
        cluster_id: str | None = None,
        heap: str | None = None,
    ) -> None:
        """Start the server in a new session; format the data folder first if that was never done.

        It is formatted for a new cluster, or as a node of the cluster `cluster_id`. `heap` are the JVM's memory options, in
        place of the environment variable KAFKA_HEAP_OPTS.
        """
        java = str(find_java())
        server_files.write(self.directory, state, properties)
        if self._cluster_id() is None:
            self._format(java, libs, deadline, cluster_id or new_cluster_id())
        (self.directory / "broker.pid").unlink(missing_ok=True)
        if self.log.exists():
            self.log.replace(self.directory / "broker.log.previous")
        heap = heap or os.environ.get("KAFKA_HEAP_OPTS") or _DEFAULT_HEAP
        command = [java, *shlex.split(heap), "-XX:+ExitOnOutOfMemoryError", "-Djava.awt.headless=true", self._marker]
        command += [*LOG_OPTIONS, "-cp", f"{libs}/*", "kafka.Kafka"]
        subprocess.run(
            ["/bin/sh", "-c", _LAUNCH, "sh", *command, "server.properties"],
            cwd=self.directory,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            check=True,
        )
        patience = min(deadline, time.monotonic() + 10)
        while not self._read_pid_file().endswith("\n") and time.monotonic() < patience:
            time.sleep(_POLL_S)

    def _cluster_id(self) -> str | None:
        """Return the cluster id that the data folder was formatted with."""
        with suppress(OSError):
            lines = (self.directory / "data" / "meta.properties").read_text(encoding="latin-1").splitlines()
            return next((line.removeprefix("cluster.id=") for line in lines if line.startswith("cluster.id=")), None)
        return None

    def _format(self, java: str, libs: Path, deadline: float, cluster_id: str) -> None:
        """Write the metadata of a new node; may be repeated after an attempt that was killed."""
        command = [java, "-cp", f"{libs}/*", *LOG_OPTIONS, "kafka.tools.StorageTool"]
        command += ["format", "--cluster-id", cluster_id, "--ignore-formatted", "--config", "server.properties"]
        try:
            result = subprocess.run(
                command,
                cwd=self.directory,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=max(1.0, deadline - time.monotonic()),
            )
        except subprocess.TimeoutExpired as error:
            raise TemporaryError(
                f"formatting {self.directory}/data did not end in time", code="broker-slow", hint="eosingest broker up"
            ) from error
        if result.returncode != 0:
            lines = result.stdout.decode(errors="replace").strip().splitlines()
            raise FatalError(
                f"the embedded broker's data folder {self.directory}/data cannot be formatted:\n"
                f"{_indented(_reasons(lines) or lines[-15:])}",
                code="broker-format",
                hint="is the disk full or read-only? EOSINGEST_HOME may name another folder",
            )

    def wait_until_it_answers(self, state: State, deadline: float) -> int:
        """Wait for a metadata response with this server's cluster id; return the server's process id.

        Raises ServerDiedError if the process ended, TemporaryError if it runs and has not answered before the deadline.
        """
        while True:
            pid = self.running_pid()
            if pid is None:
                raise ServerDiedError(self.reasons() or self.last_lines())
            if _answers(state.port, self._cluster_id(), deadline):
                return pid
            if time.monotonic() > deadline:
                raise TemporaryError(
                    f"the embedded broker (pid {pid}) has not answered on {state.bootstrap_servers} in time; it is "
                    f"left running. The end of {self.log}:\n{self.last_lines()}",
                    code="broker-slow",
                    hint="wait longer: eosingest broker up, or end it: eosingest broker down",
                )
            time.sleep(_POLL_S)

    def stop(self, pid: int, deadline: float) -> None:
        """Stop the server: SIGTERM, at the deadline SIGKILL (its data survives that). Waits until it has ended."""
        os.kill(pid, signal.SIGTERM)
        if not self._is_gone(deadline) and self.running_pid() == pid:
            os.kill(pid, signal.SIGKILL)
            if not self._is_gone(time.monotonic() + 10):
                raise TemporaryError(
                    f"the embedded broker (pid {pid}) does not end, not even on SIGKILL: its disk may hang",
                    code="broker-busy",
                    hint="eosingest broker status",
                )
        (self.directory / "broker.pid").unlink(missing_ok=True)

    def _is_gone(self, deadline: float) -> bool:
        while self.running_pid() is not None:
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def last_lines(self) -> str:
        """Return the last lines of the JVM's output and the broker's log since this start."""
        return _indented(self._said()[-15:]) or "  (nothing)"

    def reasons(self) -> str:
        """Return the errors in the JVM's output and the broker's log since this start."""
        return _indented(_reasons(self._said()))

    def _said(self) -> list[str]:
        lines: list[str] = []
        for file in (self.directory / "broker.out", self.log):
            with suppress(FileNotFoundError), file.open("rb") as stream:
                stream.seek(max(0, file.stat().st_size - 256_000))
                lines += stream.read().decode(errors="replace").splitlines()
        return lines


def _arguments(pid: int) -> bytes:
    """Return a process's arguments as in /proc/PID/cmdline; empty if it has ended.

    During an exec they are empty for a moment (measured: up to milliseconds on a busy machine).
    """
    patience = time.monotonic() + _EXEC_S
    with suppress(OSError):
        while True:
            found = Path(f"/proc/{pid}/cmdline").read_bytes()
            state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1]
            if found or state in b"ZX" or time.monotonic() > patience:
                return found
            time.sleep(0.001)
    return b""


def _reasons(lines: list[str]) -> list[str]:
    return [line for line in lines if _REASON.search(line)][-15:]


def _indented(lines: list[str]) -> str:
    return "\n".join(f"  {line}" for line in lines)


def new_cluster_id() -> str:
    """Return a random cluster id in Kafka's form, not beginning with a dash: Kafka's tools would parse that as an option."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")


def _answers(port: int, cluster_id: str | None, deadline: float) -> bool:
    """Request metadata. The response must have this cluster id: another broker may use the port by now."""
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    # Imported here: every command imports this module, and few wait for an embedded broker.
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    client = AdminClient({"bootstrap.servers": f"{HOST}:{port}", "log_level": 0})
    try:
        metadata = client.list_topics(timeout=min(5.0, max(0.5, deadline - time.monotonic())))
    except KafkaException:
        return False
    return bool(metadata.brokers) and metadata.cluster_id == cluster_id


def _environment() -> dict[str, str]:
    """Return the JVM's environment: without the run's secrets, and with a locale in which all file names work."""
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return {**kept, "LC_ALL": "C.UTF-8"} if platform.system() == "Linux" else kept
