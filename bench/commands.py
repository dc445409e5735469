"""Whole commands, from start to exit: `eosingest run` beside a Spark job with Spark's own Kafka sink that does the same.

    .venv/bin/python -m bench.commands [--rows 2000000] [--rounds 5] [--works text json]

In turns, each to a topic of its own, on a broker that all have warmed up in a round that is not counted. Python's and
the JVM's start are in it; the JVM is a fresh one each time, as it is at a terminal or in cron. `eosingest run` has a cache of
its own: with the archive of Spark's classes that a first run has written in the background, and without, as that first run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from bench import topics
from bench.brokers import running_broker
from bench.contenders import ROOT, Order, as_spark, spark_sink
from bench.works import WORKS, Work


def ours(order: Order, home: Path) -> None:
    """Run `eosingest run`."""
    _eosingest(home, "run", str(order.spec()))


def _eosingest(home: Path, *arguments: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "EOSINGEST_HOME": str(home), "EOSINGEST_PREPARE": "off"}
    command = [sys.executable, "-m", "eosingest", *arguments, "--output", "json"]
    subprocess.run(command, check=True, capture_output=True, env=environment)


def sparks(order: Order, _: Path) -> None:
    """Run the Spark job."""
    told = json.dumps(as_spark(order)).encode() + b"\n"
    subprocess.run(spark_sink()[0], input=told, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": ""})


PREPARED = "eosingest run"
COMMANDS: dict[str, Callable[[Order, Path], None]] = {
    "eosingest run, the first": ours,
    PREPARED: ours,
    "a Spark job with Spark's sink": sparks,
}


def once(command: str, order: Order, folder: Path) -> float:
    """Run a command to its exit; return its seconds."""
    topics.create(order.servers, order.topic)
    try:
        began, at = time.monotonic(), time.time()
        COMMANDS[command](order, folder / ("prepared" if command == PREPARED else "plain"))
        took = time.monotonic() - began
        found = topics.filled(order.servers, order.topic)
    finally:
        topics.delete(order.servers, order.topic)
    assert found.records == order.work.sent(order.rows), f"{command} sent {found.records} records"
    phases = f"first record after {found.first_s - at:.2f} s, sending {found.seconds:.2f} s"
    print(f"  {order.work.name}, {command}: {took:.2f} s: {phases}", flush=True)
    return took


def measure(work: Work, folder: Path, rows: int, rounds: int, servers: str) -> None:
    """Run all in turns, and print a table."""
    path = work.files(folder, rows)
    seconds: dict[str, list[float]] = {command: [] for command in COMMANDS}
    for number in range(1 + rounds):
        first = number % len(COMMANDS)
        for command in (*list(COMMANDS)[first:], *list(COMMANDS)[:first]):
            took = once(command, Order(work, path, servers, f"bench-{uuid.uuid4().hex[:10]}", rows), folder)
            if number:
                seconds[command].append(took)
    print(f"\n| {work.name}, {rows:,} rows | median | lowest to highest |\n|---|---|---|")
    for command, each in seconds.items():
        print(f"| {command} | {statistics.median(each):.1f} s | {min(each):.1f}-{max(each):.1f} s |")


def main() -> None:
    """Measure the works one by one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--works", nargs="*", default=["text", "json"], choices=list(WORKS))
    arguments = parser.parse_args()
    with running_broker() as (folder, up):
        _eosingest(folder / "prepared", "prepare")
        for work in arguments.works:
            measure(WORKS[work], folder, arguments.rows, arguments.rounds, up.bootstrap_servers)


if __name__ == "__main__":
    main()
