"""Wall time of audits of a topic, from command to exit: by the receipts alone, and against the source.

    .venv/bin/python bench/verify.py [--lines 2000000] [--rounds 3] [--cores 2]

The lines, the spec and the broker are those of json_lines.py; they are sent once. Prints a line a round and the medians.
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

from bench.json_lines import SPEC, run, write_lines


def verify(spec: Path, *flags: str) -> float:
    """Return the wall time of one audit in seconds."""
    command = [sys.executable, "-m", "eosingest", "verify", str(spec), "--output", "json", *flags]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=True)
    assert json.loads(done.stdout)["data"]["verdict"] == "verified", done
    return time.monotonic() - began


def main() -> None:
    """Send once, and audit in rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    arguments = parser.parse_args()
    alone, against = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_lines(folder, arguments.lines)
        spec = folder / "spec.toml"
        spec.write_text(SPEC.format(name=f"bench-{uuid.uuid4().hex[:8]}", cores=arguments.cores))
        run(spec)
        for _ in range(arguments.rounds):
            alone.append(verify(spec))
            against.append(verify(spec, "--against-source"))
            print(f"by the receipts {alone[-1]:.1f} s, against the source {against[-1]:.1f} s", flush=True)
    for words, times in (("by the receipts", alone), ("against the source", against)):
        median = statistics.median(times)
        print(f"{words}: median {median:.1f} s, {arguments.lines / median:,.0f} records/s")


if __name__ == "__main__":
    main()
