"""Runs the measurement: every work by every contender that takes it, in turns, and prints medians and ratios.

    make bench [ROWS=n] [ROUNDS=n] [WORKS="text json"]

A round of a work is one turn of each contender, each to a topic of its own that is deleted after it; every round begins with
another contender. The first two rounds are not counted: by then the JVMs, the broker's among them, have compiled what they
run (a third slower before). Two figures a turn: records/s while the broker was given records (between its first and last
append), and records/s over the whole job in a warm process. Whole commands are measured by bench/commands.py.
"""

from __future__ import annotations

import argparse
import json
import statistics
import uuid
from collections.abc import Sequence
from pathlib import Path

from bench import topics
from bench.brokers import running_broker
from bench.contenders import CONTENDERS, Contender, Order
from bench.turns import rotated
from bench.works import WORKS, Work

BESIDE = "Spark's sink"
WARM_UP = 2  # rounds
Figures = dict[str, list[dict[str, float]]]


def turn(contender: Contender, work: Work, path: Path, rows: int, servers: str) -> dict[str, float]:
    """Send the work once; return both figures, in records a second."""
    topic = f"bench-{uuid.uuid4().hex[:10]}"
    topics.create(servers, topic)
    try:
        seconds = contender.go(Order(work, path, servers, topic, rows))
        found = topics.filled(servers, topic)
    finally:
        topics.delete(servers, topic)
    records = work.sent(rows)
    assert found.records == records, f"{contender.name} sent {found.records} records of {work.name}, not {records}"
    return {"sending": records / found.seconds, "job": records / seconds}


def measure(work: Work, contenders: Sequence[Contender], folder: Path, rows: int, rounds: int, servers: str) -> Figures:
    """Measure one work in turns."""
    path = work.files(folder, rows)
    figures: Figures = {contender.name: [] for contender in contenders}
    for number in range(WARM_UP + rounds):
        for contender in rotated(contenders, number):
            found = turn(contender, work, path, rows, servers)
            if number >= WARM_UP:
                figures[contender.name].append(found)
            print(f"  {work.name} {number} {contender.name}: {found['sending']:,.0f} {found['job']:,.0f}", flush=True)
    for contender in contenders:
        contender.stop()
    return figures


def table(work: Work, figures: Figures, beside: str) -> str:
    """Return a table of medians, and of ratios to the contender `beside`."""
    medians = {
        name: {figure: statistics.median(turn[figure] for turn in turns) for figure in ("sending", "job")}
        for name, turns in figures.items()
    }
    lines = [f"| {work.name} | records/s sending | ratio | records/s of the job | ratio |", "|---|---|---|---|---|"]
    for name, median in medians.items():
        ratios = [f"{median[figure] / medians[beside][figure]:.2f}" for figure in ("sending", "job")]
        lines.append(f"| {name} | {median['sending']:,.0f} | {ratios[0]} | {median['job']:,.0f} | {ratios[1]} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, and write bench.json beside the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--works", nargs="*", default=list(WORKS), choices=list(WORKS))
    parser.add_argument("--contenders", nargs="*", default=[contender.name for contender in CONTENDERS])
    parser.add_argument("--json", type=Path, default=Path("bench.json"))
    arguments = parser.parse_args()
    results: dict[str, Figures] = {}
    with running_broker() as (folder, up):
        for work in (WORKS[name] for name in arguments.works):
            contenders = [c for c in CONTENDERS if c.takes(work) and c.name in arguments.contenders]
            rows = arguments.rows // (10 if work.name.endswith("4k") else 1)
            results[work.name] = measure(work, contenders, folder, rows, arguments.rounds, up.bootstrap_servers)
            print("\n" + table(work, results[work.name], BESIDE) + "\n", flush=True)
            arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
