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
import uuid
from collections.abc import Callable
from pathlib import Path

from bench.brokers import running_broker
from bench.contenders import Order, as_spark, spark_sink
from bench.turns import measured, rotated, run_eosingest
from bench.works import WORKS, Work


def ours(order: Order, home: Path) -> None:
    """Run `eosingest run`."""
    run_eosingest(home, "run", str(order.spec()))


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
    home = folder / ("prepared" if command == PREPARED else "plain")
    name, records = f"{order.work.name}, {command}", order.work.sent(order.rows)
    return measured(name, order.servers, order.topic, records, lambda: COMMANDS[command](order, home))[0]


def measure(work: Work, folder: Path, rows: int, rounds: int, servers: str) -> None:
    """Run all in turns, and print a table."""
    path = work.files(folder, rows)
    seconds: dict[str, list[float]] = {command: [] for command in COMMANDS}
    for number in range(1 + rounds):
        for command in rotated(COMMANDS, number):
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
        run_eosingest(folder / "prepared", "prepare")
        for work in arguments.works:
            measure(WORKS[work], folder, arguments.rows, arguments.rounds, up.bootstrap_servers)


if __name__ == "__main__":
    main()
