"""One Kafka Connect worker in distributed mode on the loopback, with exactly-once support (KIP-618), for connectors."""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from eosingest.host.java import find_java

_START_S = 120

WORKER = """\
bootstrap.servers={servers}
group.id={name}
listeners=http://127.0.0.1:{port}
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
config.storage.topic={name}-configs
offset.storage.topic={name}-offsets
status.storage.topic={name}-status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
offset.storage.partitions=5
exactly.once.source.support=enabled
plugin.discovery=only_scan
plugin.path={plugins}
topic.creation.enable=false
"""


class Worker:
    """A worker: `libs` has the jars of Connect itself, each of `plugins` is a jar of a connector."""

    def __init__(self, libs: Path, plugins: Iterable[Path]) -> None:
        self._libs = libs
        self._plugins = list(plugins)
        self.folder = Path(tempfile.mkdtemp(prefix="bench-connect-"))
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def is_started(self) -> bool:
        """Say whether the worker was started."""
        return self._process is not None

    def start(self, servers: str) -> None:
        """Start the worker, and wait until it answers."""
        plugins = self.folder / "plugins" / "connector"
        plugins.mkdir(parents=True)
        for jar in self._plugins:
            (plugins / jar.name).symlink_to(jar)
        worker = self.folder / "worker.properties"
        name = f"connect-{uuid.uuid4().hex[:8]}"
        worker.write_text(WORKER.format(servers=servers, name=name, port=self._port, plugins=plugins.parent))
        log4j = self.folder / "log4j2.properties"
        log4j.write_text("rootLogger.level = ERROR\n")
        self._process = subprocess.Popen(
            [
                *(str(find_java()), "-Xmx1g", "-cp", f"{self._libs}/*", f"-Dlog4j2.configurationFile={log4j}"),
                *("org.apache.kafka.connect.cli.ConnectDistributed", str(worker)),
            ],
            stdout=(self.folder / "connect.out").open("wb"),
            stderr=subprocess.STDOUT,
        )
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            try:
                self.ask("GET", "/connectors")
                return
            except (urllib.error.URLError, ConnectionError, RuntimeError):
                time.sleep(0.2)
        self.stop()
        raise TimeoutError(f"Connect does not answer; see {self.folder}/connect.out")

    def ask(self, method: str, path: str, body: dict[str, str] | None = None) -> Any:
        """Ask the worker's REST API; return the answer. Raises RuntimeError, with the worker's words, where it refuses."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.read().decode()[:2_000]}") from error
        return json.loads(text) if text else None

    def refuse_failed(self, name: str) -> None:
        """Raise RuntimeError where the connector or one of its tasks has failed; it may not have begun yet."""
        try:
            status = self.ask("GET", f"/connectors/{name}/status")
        except RuntimeError:
            return
        for part in (status["connector"], *status["tasks"]):
            if part["state"] == "FAILED":
                raise RuntimeError(f"{name} failed: {part['trace'][:2_000]}")

    def stop(self) -> None:
        """End the worker."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)


def _free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])
