"""A contender: Kafka Connect's file source with exactly-once support (KIP-618), one worker in distributed mode on loopback.

Reads lines of JSON and answers each with one. Each file gets a connector of its own, so that both cores have work; a round
ends when the committed source offsets of all of them are at their files' ends. The arguments are the folder of the jars, and
where transactions end: "poll" or "interval".
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any

from eosingest.host.java import find_java

_START_S = 120
_ROUND_S = 1_200
_LOOK_S = 0.05

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


class Connect:
    """One Connect worker, started with the first order."""

    def __init__(self, libs: Path, boundary: str) -> None:
        self._libs = libs
        self._boundary = boundary
        self._folder = Path(tempfile.mkdtemp(prefix="bench-connect-"))
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, servers: str) -> None:
        """Start the worker, and wait until it answers."""
        plugins = self._folder / "plugins" / "file"
        plugins.mkdir(parents=True)
        for jar in self._libs.glob("connect-file-*.jar"):
            (plugins / jar.name).symlink_to(jar)
        worker = self._folder / "worker.properties"
        name = f"connect-{uuid.uuid4().hex[:8]}"
        worker.write_text(WORKER.format(servers=servers, name=name, port=self._port, plugins=plugins.parent))
        log4j = self._folder / "log4j2.properties"
        log4j.write_text("rootLogger.level = ERROR\n")
        self._process = subprocess.Popen(
            [
                *(str(find_java()), "-Xmx1g", "-cp", f"{self._libs}/*", f"-Dlog4j2.configurationFile={log4j}"),
                *("org.apache.kafka.connect.cli.ConnectDistributed", str(worker)),
            ],
            stdout=(self._folder / "connect.out").open("wb"),
            stderr=subprocess.STDOUT,
        )
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            try:
                self._ask("GET", "/connectors")
                return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.2)
        raise TimeoutError(f"Connect does not answer; see {self._folder}/connect.out")

    def send(self, order: dict[str, Any]) -> float:
        """Send the files; return the seconds from the first connector's creation to the last one's last commit."""
        if self._process is None:
            self.start(order["servers"])
        files = {f"{order['topic']}-{path.name}": path for path in sorted(Path(order["path"]).iterdir())}
        began = time.monotonic()
        for name, path in files.items():
            self._ask("PUT", f"/connectors/{name}/config", self._config(order, path))
        left, deadline = dict(files), began + _ROUND_S
        while left:
            if time.monotonic() > deadline:
                raise TimeoutError(f"Connect is not done; see {self._folder}/connect.out")
            time.sleep(_LOOK_S)
            left = {name: path for name, path in left.items() if self._position(name) < path.stat().st_size}
        seconds = time.monotonic() - began
        for name in files:
            self._ask("DELETE", f"/connectors/{name}")
        return seconds

    def _config(self, order: dict[str, Any], path: Path) -> dict[str, str]:
        overrides = {f"producer.override.{name}": value for name, value in order["properties"].items()}
        return {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "tasks.max": "1",
            "file": str(path),
            "topic": order["topic"],
            "exactly.once.support": "required",
            "transaction.boundary": self._boundary,
            **({"transaction.boundary.interval.ms": "1000"} if self._boundary == "interval" else {}),
            **overrides,
        }

    def _position(self, name: str) -> int:
        offsets = self._ask("GET", f"/connectors/{name}/offsets")["offsets"]
        return max((int(entry["offset"]["position"]) for entry in offsets if entry["offset"]), default=0)

    def _ask(self, method: str, path: str, body: dict[str, str] | None = None) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def stop(self) -> None:
        """End the worker."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)


def _free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


def main() -> None:
    """Answer until the input ends."""
    connect = Connect(Path(sys.argv[1]), sys.argv[2])
    try:
        for line in sys.stdin:
            print(json.dumps({"seconds": connect.send(json.loads(line))}), flush=True)
    finally:
        connect.stop()


if __name__ == "__main__":
    main()
