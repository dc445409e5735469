"""A contender: Kafka Connect's file source with exactly-once support (KIP-618), one worker in distributed mode on loopback.

Reads lines of JSON and answers each with one. Each file gets a connector of its own, so that both cores have work; a round
ends when the committed source offsets of all of them are at their files' ends. The arguments are the folder of the jars, and
where transactions end: "poll" or "interval".
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from bench.connect_worker import Worker

_ROUND_S = 1_200
_LOOK_S = 0.05


class Connect:
    """One Connect worker, started with the first order."""

    def __init__(self, libs: Path, boundary: str) -> None:
        self._worker = Worker(libs, libs.glob("connect-file-*.jar"))
        self._boundary = boundary

    def send(self, order: dict[str, Any]) -> float:
        """Send the files; return the seconds from the first connector's creation to the last one's last commit."""
        if not self._worker.is_started:
            self._worker.start(order["servers"])
        files = {f"{order['topic']}-{path.name}": path for path in sorted(Path(order["path"]).iterdir())}
        began = time.monotonic()
        for name, path in files.items():
            self._worker.ask("PUT", f"/connectors/{name}/config", self._config(order, path))
        left, deadline = dict(files), began + _ROUND_S
        while left:
            if time.monotonic() > deadline:
                raise TimeoutError(f"Connect is not done; see {self._worker.folder}/connect.out")
            time.sleep(_LOOK_S)
            left = {name: path for name, path in left.items() if self._position(name) < path.stat().st_size}
        seconds = time.monotonic() - began
        for name in files:
            self._worker.ask("DELETE", f"/connectors/{name}")
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
        offsets = self._worker.ask("GET", f"/connectors/{name}/offsets")["offsets"]
        return max((int(entry["offset"]["position"]) for entry in offsets if entry["offset"]), default=0)

    def stop(self) -> None:
        """End the worker."""
        self._worker.stop()


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
