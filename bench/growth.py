"""How wall time and memory grow: with records, splits, small files, and other jobs' keys in the offsets topic.

    .venv/bin/python -m bench.growth [--series files splits records split split-rows keys] [--least 1] [--most 10000000]

Whole commands, from start to exit, on a broker of its own: `plan`, `run`, and `run` again with nothing to do. Memory is the
highest that the operating system has seen of the driver, of a Python worker and of the JVM (VmHWM), in MiB.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from bench import topics
from bench.brokers import running_broker
from eosingest.protocol.offsets import record
from eosingest.protocol.offsets import topic as offsets_topic
from eosingest.sources.files.cuts import FileSplit

SPEC = """\
name = "{name}"
[source]
format = "text"
path = "{path}"
split_size = "{split_size}"
[record]
{key}
value = "value"
[sink]
bootstrap_servers = "{servers}"
topic = "{name}"
[spark]
master = "local[2]"
"""
LINE = b"%012d " + b"lorem ipsum dolor sit amet " * 6 + b"lorem ipsum dolor sit ame\n"  # 200 bytes
_LOOK_S = 0.1


class Memory(threading.Thread):
    """Looks at a process and all below it, and keeps the highest VmHWM of each kind, in MiB."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self.over = threading.Event()
        self.peak: dict[str, int] = {}

    def run(self) -> None:
        """Look until told to end."""
        while not self.over.wait(_LOOK_S):
            for pid in _below(self._pid):
                kind, peak = _kind_and_peak(pid, self._pid)
                self.peak[kind] = max(self.peak.get(kind, 0), peak)


def _below(pid: int) -> Iterator[int]:
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        others = [task for task in Path(f"/proc/{pid}/task").iterdir() if task.name != str(pid)]
        children += [child for task in others for child in (task / "children").read_text().split()]
    except OSError:
        return
    for child in children:
        yield from _below(int(child))


def _kind_and_peak(pid: int, driver: int) -> tuple[str, int]:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return "driver", 0
    found = next((line for line in status.splitlines() if line.startswith("VmHWM")), "VmHWM: 0 kB")
    kind = "driver" if pid == driver else "jvm" if b"java" in command.split(b"\0")[0] else "worker"
    return kind, int(found.split()[1]) >> 10


def command(verb: str, spec: Path) -> dict[str, Any]:
    """Run a command to its end; return its seconds and the peaks of memory."""
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "eosingest", verb, str(spec), "--output", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    memory = Memory(process.pid)
    memory.start()
    out, err = process.communicate(timeout=3_600)
    seconds = time.monotonic() - began
    memory.over.set()
    assert process.returncode == 0, (out[-2_000:], err[-2_000:])
    return {"seconds": round(seconds, 2), **memory.peak}


def three(
    folder: Path, servers: str, path: str, split_size: str, *, name: str = "", key: str | None = None
) -> dict[str, Any]:
    """Plan, run, and run again. With a key the rows are the JVM's to read, without one lines are sent as they are."""
    name = name or f"growth-{uuid.uuid4().hex[:8]}"
    spec = folder / f"{name}.toml"
    spec.write_text(
        SPEC.format(name=name, path=path, split_size=split_size, servers=servers, key=f'key = "{key}"' if key else "")
    )
    topics.create(servers, name)
    try:
        return {"plan": command("plan", spec), "run": command("run", spec), "again": command("run", spec)}
    finally:
        topics.delete(servers, name)


def _lines(path: Path, count: int) -> None:
    with path.open("wb") as out:
        for number in range(count):
            out.write(LINE % number)


def files(folder: Path, servers: str, count: int) -> dict[str, Any]:
    """Small files of ten lines each, a thousand in a folder."""
    data = folder / f"files-{count}"
    for number in range(count):
        place = data / f"{number // 1_000:04}"
        place.mkdir(parents=True, exist_ok=True)
        _lines(place / f"{number % 1_000:03}.txt", 10)
    return three(folder, servers, f"{data}/*/*.txt", "32MiB")


def splits(folder: Path, servers: str, count: int) -> dict[str, Any]:
    """One file of 2,000,000 lines, cut into so many splits."""
    data = folder / "splits.txt"
    if not data.exists():
        _lines(data, 2_000_000)
    return three(folder, servers, str(data), f"{-(-data.stat().st_size // count)}B")


def records(folder: Path, servers: str, count: int) -> dict[str, Any]:
    """Four files with so many lines in all."""
    data = folder / f"records-{count}"
    data.mkdir()
    for number in range(4):
        _lines(data / f"{number}.txt", count // 4)
    try:
        return three(folder, servers, f"{data}/*.txt", "32MiB")
    finally:
        for path in data.iterdir():
            path.unlink()


def one_split(folder: Path, servers: str, count: int, key: str | None = None) -> dict[str, Any]:
    """One file of so many lines, which is one split."""
    data = folder / f"one-split-{count}.txt"
    if not data.exists():
        _lines(data, count)
    return three(folder, servers, str(data), "64GiB", key=key)


def one_split_of_rows(folder: Path, servers: str, count: int) -> dict[str, Any]:
    """As `one_split`, read by the JVM."""
    return one_split(folder, servers, count, "substring(value, 1, 12)")


def keys(folder: Path, servers: str, count: int) -> dict[str, Any]:
    """One small file, and so many offset records of other jobs in the partition of the offsets topic that the job reads."""
    data = folder / "keys.txt"
    _lines(data, 1_000)
    three(folder, servers, str(data), "32MiB")  # makes the offsets topic
    run = uuid.uuid4().hex[:8]
    name = f"growth-{run}"
    partition = offsets_topic.partition_of(name, offsets_topic.PARTITIONS)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 50})
    for number in range(count):
        key = record.split_key(f"other-{run}", FileSplit(f"data/part-{number:08}.jsonl", 0, 1).id)
        while True:
            try:
                producer.produce("eosingest-offsets", b"x" * 300, key, partition)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
    return three(folder, servers, str(data), "32MiB", name=name)


SERIES: dict[str, tuple[Callable[[Path, str, int], dict[str, Any]], tuple[int, ...]]] = {
    "files": (files, (1, 10, 100, 1_000, 10_000, 100_000)),
    "splits": (splits, (1, 10, 100, 1_000, 10_000)),
    "records": (records, (100_000, 1_000_000, 10_000_000, 100_000_000)),
    "split": (one_split, (100_000, 1_000_000, 10_000_000)),
    "split-rows": (one_split_of_rows, (100_000, 1_000_000, 10_000_000)),
    "keys": (keys, (1_000, 10_000, 100_000, 1_000_000)),
}


def main() -> None:
    """Run the series, and print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", nargs="*", default=list(SERIES), choices=list(SERIES))
    parser.add_argument("--least", type=int, default=1)
    parser.add_argument("--most", type=int, default=10_000_000)
    parser.add_argument("--json", type=Path, default=Path("growth.json"))
    arguments = parser.parse_args()
    results: dict[str, dict[int, Any]] = {}
    for series in arguments.series:
        measure, sizes = SERIES[series]
        with running_broker() as (folder, up):
            for size in sizes:
                if arguments.least <= size <= arguments.most:
                    found = measure(folder, up.bootstrap_servers, size)
                    results.setdefault(series, {})[size] = found
                    print(f"{series} {size:,}: {json.dumps(found)}", flush=True)
                    arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
