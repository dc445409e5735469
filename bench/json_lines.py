"""Wall time of whole runs over JSON lines, from command to exit, and of runs with nothing to do.

    .venv/bin/python bench/json_lines.py [--lines 2000000] [--rounds 3] [--cores 2]

Lines of 176 bytes are parsed, filtered (all pass) and written with `to_json`, into three partitions of a topic of its
own each round, on the embedded broker, with the archive of Spark's classes there. Prints a line a round and the medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

LINE_BYTES = 176

SPEC = """\
name = "{name}"
[source]
format = "json"
path = "*.jsonl"
schema = "id BIGINT, user STRING, amount DOUBLE, note STRING"
[transform]
where = "amount > 0"
[record]
key = "user"
[sink]
bootstrap_servers = "embedded"
topic = "{name}"
create = {{ partitions = 3 }}
[spark]
master = "local[{cores}]"
"""


def write_lines(folder: Path, lines: int, files: int = 4) -> None:
    """Write the lines, padded to the same length each."""
    for file in range(files):
        with (folder / f"part-{file}.jsonl").open("w") as out:
            for number in range(file, lines, files):
                row = {"id": number, "user": f"user-{number % 10_007}", "amount": 0.5 + number % 100, "note": ""}
                row["note"] = "x" * (LINE_BYTES - 1 - len(json.dumps(row)))
                out.write(json.dumps(row) + "\n")


def run(spec: Path) -> tuple[float, dict[str, object]]:
    """Return the wall time of one run in seconds, and its report."""
    command = [sys.executable, "-m", "eosingest", "run", str(spec), "--output", "json"]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=True)
    return time.monotonic() - began, json.loads(done.stdout)["data"]


def main() -> None:
    """Run the rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    arguments = parser.parse_args()
    subprocess.run([sys.executable, "-m", "eosingest", "prepare", "--quiet"], check=True)
    sending, idle = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_lines(folder, arguments.lines)
        for _ in range(arguments.rounds):
            spec = folder / "spec.toml"
            spec.write_text(SPEC.format(name=f"bench-{uuid.uuid4().hex[:8]}", cores=arguments.cores))
            seconds, report = run(spec)
            assert report["records_sent"] == arguments.lines, report
            sending.append(seconds)
            idle += [run(spec)[0] for _ in range(3)]
            print(
                f"{seconds:.1f} s, {arguments.lines / seconds:,.0f} records/s; nothing to do: {idle[-1]:.2f} s",
                flush=True,
            )
    median = statistics.median(sending)
    print(
        f"median {median:.1f} s, {arguments.lines / median:,.0f} records/s; nothing to do: {statistics.median(idle):.2f} s"
    )


if __name__ == "__main__":
    main()
