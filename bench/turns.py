"""What measurements in turns share: who begins a round, commands of eosingest, and one turn to a topic of its own; tables."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from bench import topics
from bench.contenders import ROOT, Order
from bench.works import Work

T = TypeVar("T")
Turn = Callable[[Order], None]


def rotated(names: Iterable[T], number: int) -> list[T]:
    """Return the names in the order of a round: each round begins with another one."""
    all_of_them = list(names)
    first = number % len(all_of_them)
    return [*all_of_them[first:], *all_of_them[:first]]


def run_eosingest(home: Path, *arguments: str, of: Path = ROOT) -> dict[str, Any]:
    """Run a command of eosingest to its exit, with a cache of its own; return its data. `of` is the checkout that is run."""
    own = {"PYTHONPATH": str(of), "EOSINGEST_HOME": str(home), "EOSINGEST_PREPARE": "off"}
    command = [sys.executable, "-m", "eosingest", *arguments, "--output", "json"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **own}, cwd=of)
    assert done.returncode == 0, done.stdout + done.stderr
    data: dict[str, Any] = json.loads(done.stdout)["data"]
    return data


def in_turns(
    what: str,
    turns: Mapping[str, tuple[Work, Turn]],
    folder: Path,
    servers: str,
    *,
    rows: int,
    rounds: int,
    counted: int,
    check: Turn = lambda order: None,
) -> None:
    """Have each send its work to a topic of its own, round by round, the first not counted; print a table.

    Rates are of `counted` records. `check` looks at a turn when it is over, and takes none of its time.
    """
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in turns}
    for number in range(1 + rounds):
        for name in rotated(turns, number):
            work, turn = turns[name]
            order = Order(work, work.files(folder, rows), servers, f"bench-{uuid.uuid4().hex[:10]}", rows)
            took = measured(name, servers, order.topic, work.sent(rows), partial(turn, order))
            check(order)
            if number:
                figures[name].append(took)
    print(table(f"{what}, {rows:,} rows", figures, counted))


def measured(
    name: str, servers: str, topic: str, records: int, turn: Callable[[], None], *, to_last_append: bool = False
) -> tuple[float, float]:
    """Have the turn fill a topic; return the seconds to its end, or to the last append, and those of sending."""
    topics.create(servers, topic)
    try:
        at = time.time()
        turn()
        ended = time.time()
        found = topics.filled(servers, topic)
    finally:
        topics.delete(servers, topic)
    assert found.records == records, f"{name} sent {found.records} records of {records}"
    whole = (found.last_s if to_last_append else ended) - at
    phases = f"first record after {found.first_s - at:.2f} s, sending {found.seconds:.2f} s"
    print(f"  {name}: {whole:.2f} s: {phases}", flush=True)
    return whole, found.seconds


def table(what: str, figures: Mapping[str, list[tuple[float, float]]], records: int) -> str:
    """Return a table of medians, with the lowest and the highest."""
    lines = [f"| {what} | whole | M records/s while sending |", "|---|---|---|"]
    for name, each in figures.items():
        whole, rates = [took for took, _ in each], [records / sending / 1e6 for _, sending in each]
        lines.append(
            f"| {name} | {statistics.median(whole):.1f} s ({min(whole):.1f}-{max(whole):.1f})"
            f" | {statistics.median(rates):.2f} ({min(rates):.2f}-{max(rates):.2f}) |"
        )
    return "\n".join(lines)
