"""A contender: Kafka's own ProducerPerformance with a transactional id, which sends one line of the work again and again.

Reads lines of JSON and answers each with one. The arguments are the folder of the jars, and the producer's part and parts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from eosingest.host.java import find_java

_TRANSACTION_MS = "1000"
_LINES = 1_000  # it draws from them; more would be read for each of its records


def send(libs: str, part: int, parts: int, order: dict[str, Any], folder: Path) -> float:
    """Send this producer's part of the records; return the seconds, the JVM's start included."""
    payload = folder / "payload"
    with sorted(Path(order["path"]).iterdir())[0].open() as lines:
        payload.write_text("".join(line for line, _ in zip(lines, range(_LINES), strict=False)))
    count = order["rows"] * (part + 1) // parts - order["rows"] * part // parts
    properties = [f"{name}={value}" for name, value in order["properties"].items()]
    command = [
        *(str(find_java()), "-Xmx512m", "-cp", f"{libs}/*", "org.apache.kafka.tools.ProducerPerformance"),
        *("--topic", order["topic"], "--num-records", str(count), "--throughput", "-1", "--payload-file", str(payload)),
        *("--transactional-id", f"{order['topic']}.{part}", "--transaction-duration-ms", _TRANSACTION_MS),
        *("--bootstrap-server", order["servers"], "--command-property", *properties),
    ]
    began = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def main() -> None:
    """Answer until the input ends."""
    libs, part, parts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with tempfile.TemporaryDirectory(prefix="bench-performance-") as folder:
        for line in sys.stdin:
            print(json.dumps({"seconds": send(libs, part, parts, json.loads(line), Path(folder))}), flush=True)


if __name__ == "__main__":
    main()
