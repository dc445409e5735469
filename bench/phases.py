"""Where the time of a run goes on a standalone cluster of 1, 2 and 3 workers: the phases of whole commands, lines and JSON.

    .venv/bin/python -m bench.phases [--rows 1000000] [--rounds 3] [--workers 1 2 3]

Master, workers (one core each), broker and driver are on one machine: more workers than it has cores show what another executor
costs, not what it brings. Each command runs in a process of its own, in which the functions of the phases are timed;
first and last record are the broker's timestamps. In turns; medians.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from bench import topics
from bench.brokers import running_broker
from bench.works import WORKS
from tests.support.spark_clusters import environment, standalone

SPEC = """\
name = "{name}"
[source]
format = "{format}"
path = "{path}"
{schema}
split_size = "8MiB"
[record]
value = "{value}"
[sink]
bootstrap_servers = "{servers}"
topic = "{name}"
[spark]
master = "{master}"
conf = {{ "spark.executor.memory" = "1g", "spark.executor.cores" = "1" }}
"""
KINDS = {
    "lines": ("text", "", "value", "text"),
    "JSON": ("json", 'schema = "id BIGINT, user STRING, amount DOUBLE"', "to_json(struct(*))", "json"),
}
_COMMAND_S = 600.0
Times = dict[str, list[float]]


# ---- in the command's process ---------------------------------------------------------------------------------------


def timed(command: list[str], log: Path) -> None:
    """Run a command of eosingest with its phases timed, and write down when each began and ended."""
    from eosingest.app import run
    from eosingest.cli.main import main as eosingest
    from eosingest.protocol import driver

    times: dict[str, list[float]] = {"imported": [time.time()] * 2}
    patch = functools.partial(_patch, times)
    patch("claim", driver.Driver, "_claim")
    patch("fence", driver.Driver, "_fence")
    patch("plan", driver, "make_plan")
    patch("job", driver.Driver, "_watch")
    patch("settle", driver.Driver, "_settle")
    make = run._LazyLauncher._make

    def make_and_patch(launcher: Any, *given: Any) -> Any:  # pyspark is imported when it is needed, as ever
        from eosingest.spark import executors, job, session

        made = make(launcher, *given)
        patch("Spark's start", session, "start")
        patch("executors and their Python", executors, "ready")
        patch("inspection", job, "inspect_pending")
        patch("session", session.Spark, "sql")
        patch("splits and DataFrame", job.SparkLauncher, "_prepare_frame")
        patch("splits and DataFrame", job.SparkLauncher, "_prepare_lines")
        patch("Spark's end", job.SparkLauncher, "close")
        return made

    setattr(run._LazyLauncher, "_make", make_and_patch)  # noqa: B010 - mypy knows another signature
    sys.argv = ["eosingest", *command]
    try:
        eosingest()
    finally:
        log.write_text(json.dumps(times))


def _patch(times: Times, name: str, owner: Any, attribute: str) -> None:
    original = getattr(owner, attribute)

    @functools.wraps(original)
    def call(*arguments: Any, **named: Any) -> Any:
        began = time.time()
        try:
            return original(*arguments, **named)
        finally:
            times.setdefault(name, [began, time.time()])  # the first call; fencing comes again when the run settles

    setattr(owner, attribute, call)


# ---- around it ------------------------------------------------------------------------------------------------------


def one(folder: Path, servers: str, kind: str, data: Path, master: str, env: dict[str, str]) -> dict[str, float]:
    """Run one command; return the seconds of its phases."""
    format_, schema, value, _ = KINDS[kind]
    name = f"phases-{uuid.uuid4().hex[:8]}"
    spec, log = folder / f"{name}.toml", folder / f"{name}.json"
    spec.write_text(
        SPEC.format(
            name=name, format=format_, path=f"{data}/*", schema=schema, value=value, servers=servers, master=master
        )
    )
    topics.create(servers, name)
    try:
        began = time.time()
        done = subprocess.run(
            [sys.executable, "-m", "bench.phases", "--timed", str(log), "run", str(spec), "--output", "json"],
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            timeout=_COMMAND_S,
        )
        ended = time.time()
        assert done.returncode == 0, (done.stdout[-2_000:], done.stderr[-2_000:])
        found = topics.filled(servers, name)
    finally:
        topics.delete(servers, name)
    times: Times = json.loads(log.read_text())
    phases = {phase: end - start for phase, (start, end) in times.items() if phase not in ("imported", "job")}
    job_began, job_ended = times["job"]
    return {
        "Python": times["imported"][0] - began,
        **phases,
        "job's start to first record": found.first_s - job_began,
        "sending": found.seconds,
        "last record to job's end": job_ended - found.last_s,
        "the whole command": ended - began,
    }


def measure(rows: int, rounds: int, workers: list[int]) -> dict[str, dict[str, float]]:
    """Return the medians of each phase, by kind and number of workers."""
    turns: dict[str, list[dict[str, float]]] = {}
    with running_broker() as (folder, up):
        data = {kind: WORKS[KINDS[kind][3]].files(folder, rows) for kind in KINDS}
        for number in range(rounds):
            for count in (*workers[number % len(workers) :], *workers[: number % len(workers)]):
                place = folder / f"cluster-{number}-{count}"
                place.mkdir()
                with standalone(place, count) as alone:
                    for kind in KINDS:
                        found = one(
                            folder, up.bootstrap_servers, kind, data[kind], alone.master, environment(alone.home)
                        )
                        turns.setdefault(f"{kind}, {count}", []).append(found)
                        print(f"  {kind} {count}: {found}", file=sys.stderr, flush=True)
    return {
        column: {phase: statistics.median(turn[phase] for turn in found) for phase in found[0]}
        for column, found in sorted(turns.items())
    }


def _said(column: dict[str, float], phase: str) -> str:
    return f"{column[phase]:.1f}" if phase in column else ""


def table(medians: dict[str, dict[str, float]]) -> str:
    """Return a table of seconds: phases down, kinds and workers across."""
    phases = list(dict.fromkeys(phase for column in medians.values() for phase in column))
    lines = ["| s | " + " | ".join(medians) + " |", "|---" * (len(medians) + 1) + "|"]
    lines += [
        f"| {phase} | " + " | ".join(_said(column, phase) for column in medians.values()) + " |" for phase in phases
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 3])
    told = parser.parse_args()
    print(table(measure(told.rows, told.rounds, told.workers)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--timed"]:
        timed(sys.argv[3:], Path(sys.argv[2]))
    else:
        main()
