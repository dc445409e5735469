"""Where the CPU's time goes: seconds of each kind of thread, per million records, of every contender, the broker's beside it.

    python -m bench.cpu [--works text json] [--rows n] [--rounds n] [--contenders …]

Warm processes, in turns, as `make bench`; medians. On two cores that are busy all the time the sum is what decides: a
contender with a sum of 2 s sends a million records a second. Threads that end before the turn are counted as they were last
seen, up to a tenth of a second before.
"""

from __future__ import annotations

import argparse
import os
import statistics
import threading
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench import topics
from bench.__main__ import WARM_UP
from bench.brokers import running_broker
from bench.contenders import CONTENDERS, Contender, Order
from bench.works import WORKS, Work

_EVERY_S = 0.1
_TICKS = os.sysconf("SC_CLK_TCK")
# How the kinds of threads are called, by how their names begin (15 characters of them, as the kernel keeps them).
_KINDS = {
    "JVM": {
        "GC ": "collector", "G1 ": "collector", "Parallel": "collector", "VM ": "collector",
        "C1 ": "compiler", "C2 ": "compiler", "Executor task": "tasks", "kafka-producer": "Kafka's producer",
    },
    "workers": {"rdk:": "librdkafka's threads"},
}  # fmt: skip
_LEAST = 0.005  # seconds
_WALL = ("wall", "")
_Cpu = dict[tuple[str, str], float]


class Sampler:
    """Adds up the CPU's seconds of threads below some processes, by program (broker, driver, JVM, workers) and kind."""

    def __init__(self, roots: dict[int, str]) -> None:
        """Take the processes to begin at; a name that is not empty stands for all of that process's threads."""
        self._roots = roots
        self._seen: dict[tuple[int, int], tuple[str, str, float]] = {}
        self._end = threading.Event()

    @contextmanager
    def running(self) -> Iterator[_Cpu]:
        """Sample meanwhile; what was used is in the mapping at the end."""
        used: _Cpu = defaultdict(float)
        self._look()
        before = {key: seconds for key, (_, _, seconds) in self._seen.items()}
        thread = threading.Thread(target=self._sample, daemon=True)
        thread.start()
        try:
            yield used
        finally:
            self._end.set()
            thread.join()
            self._look()
            for key, (program, kind, seconds) in self._seen.items():
                used[program, kind] += seconds - before.get(key, 0.0)

    def _sample(self) -> None:
        while not self._end.wait(_EVERY_S):
            self._look()

    def _look(self) -> None:
        for pid, name in self._processes():
            for task in _tasks(pid):
                with suppress(OSError):
                    program, kind, seconds = _thread(task, pid, name)
                    if program == "workers" and pid in self._roots:
                        program = "driver"
                    self._seen[pid, int(task.name)] = (program, kind, seconds)

    def _processes(self) -> Iterator[tuple[int, str]]:
        waiting = list(self._roots.items())
        while waiting:
            pid, name = waiting.pop()
            yield pid, name
            for task in _tasks(pid):
                with suppress(OSError):
                    waiting += [(int(child), name) for child in (task / "children").read_text().split()]


def _tasks(pid: int) -> list[Path]:
    """Return the folders of a process's threads; none where it has ended."""
    with suppress(OSError):
        return list(Path(f"/proc/{pid}/task").glob("[0-9]*"))
    return []


def _thread(task: Path, pid: int, name: str) -> tuple[str, str, float]:
    head, _, tail = (task / "stat").read_text().rpartition(")")
    comm, fields = head.partition("(")[2], tail.split()
    seconds = (int(fields[11]) + int(fields[12])) / _TICKS
    if name:
        return name, "", seconds
    program = "JVM" if Path(os.readlink(f"/proc/{pid}/exe")).name == "java" else "workers"
    kind = next((kind for start, kind in _KINDS[program].items() if comm.startswith(start)), "other threads")
    if program == "workers" and task.name == str(pid):
        kind = "main thread"
    return program, kind, seconds


def measure(contender: Contender, order: Order, node: int) -> _Cpu:
    """Return the CPU's seconds of one turn, per million records; the job's own seconds are under "wall"."""
    millions = order.work.sent(order.rows) / 1e6
    topics.create(order.servers, order.topic)
    try:
        with Sampler({node: "broker", **dict.fromkeys(contender.pids, "")}).running() as used:
            seconds = contender.go(order)
    finally:
        topics.delete(order.servers, order.topic)
    return {key: spent / millions for key, spent in {**used, _WALL: seconds}.items()}


def table(work: Work, found: dict[str, list[_Cpu]]) -> str:
    """Return a table of medians: a line for each kind of thread that took a hundredth of a second somewhere."""
    keys = {key for turns in found.values() for turn in turns for key in turn}
    lines = [f"| {work.name}: s per million records | {' | '.join(found)} |", "|---|" + "---|" * len(found)]
    sums = dict.fromkeys(found, 0.0)
    for key in (*sorted(keys - {_WALL}), _WALL):
        medians = {name: statistics.median(turn.get(key, 0.0) for turn in turns) for name, turns in found.items()}
        if key == _WALL:
            lines.append(f"| **sum** | {' | '.join(f'**{seconds:.2f}**' for seconds in sums.values())} |")
        else:
            sums = {name: sums[name] + seconds for name, seconds in medians.items()}
        if max(medians.values()) >= _LEAST:
            cells = (f"{seconds:.2f}" if seconds >= _LEAST else "" for seconds in medians.values())
            lines.append(f"| {', '.join(filter(None, key))} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, and print a table for each work."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--works", nargs="*", default=["text", "json"], choices=list(WORKS))
    parser.add_argument("--contenders", nargs="*", default=[contender.name for contender in CONTENDERS])
    arguments = parser.parse_args()
    with running_broker() as (folder, up):
        assert up.pid is not None
        for work in (WORKS[name] for name in arguments.works):
            contenders = [c for c in CONTENDERS if c.takes(work) and c.name in arguments.contenders]
            found: dict[str, list[_Cpu]] = {contender.name: [] for contender in contenders}
            path = work.files(folder, arguments.rows)
            for number in range(WARM_UP + arguments.rounds):
                for contender in contenders:
                    topic = f"bench-{uuid.uuid4().hex[:10]}"
                    used = measure(contender, Order(work, path, up.bootstrap_servers, topic, arguments.rows), up.pid)
                    if number >= WARM_UP:
                        found[contender.name].append(used)
            for contender in contenders:
                contender.stop()
            print("\n" + table(work, found) + "\n", flush=True)


if __name__ == "__main__":
    main()
