"""A bucket of many objects: `eosingest plan` where all is new, the run, and a run with nothing to do; and the store's own part.

    .venv/bin/python -m bench.objects [--objects 10000] [--rounds 3]

Objects of a line in ten folders, on s3proxy, read as lines; the first round is not counted. Whole commands, from start to exit;
beside them the seconds that the store takes to list the same objects for a client that does nothing else.
"""

from __future__ import annotations

import argparse
import statistics
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.brokers import running_broker
from bench.turns import run_eosingest
from tests.support import s3proxy

SPEC = """\
name = "{name}"
[source]
format = "text"
path = "s3://{bucket}/in/*/*"
{storage}
[sink]
bootstrap_servers = "{servers}"
topic = "{name}"
create = {{ partitions = 3 }}
[spark]
master = "local[2]"
"""
_FOLDERS = 10
_AT_ONCE = 8


def fill(store: s3proxy.Store, objects: int) -> str:
    """Put the objects; return the bucket."""
    bucket, client = store.bucket(f"bench-{uuid.uuid4().hex[:8]}"), store.client

    def put(number: int) -> None:
        key = f"in/{number % _FOLDERS}/{number:07}.txt"
        client.put_object(Bucket=bucket, Key=key, Body=b"one line of %d\n" % number)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(put, range(objects)))
    return bucket


def listed_alone(store: s3proxy.Store, bucket: str) -> float:
    """Return the seconds of a plain listing."""
    began = time.monotonic()
    for _ in store.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="in/"):
        pass
    return time.monotonic() - began


def timed(verb: str, spec: Path, home: Path) -> tuple[float, dict[str, Any]]:
    """Return the seconds of a command from start to exit, and what it says."""
    began = time.monotonic()
    data = run_eosingest(home, verb, str(spec))
    return time.monotonic() - began, data


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with running_broker() as (folder, up), s3proxy.running(folder / "store") as store:
        bucket = fill(store, arguments.objects)
        seconds: dict[str, list[float]] = {"the listing alone": [], "plan, all new": [], "run": [], "nothing to do": []}
        for number in range(1 + arguments.rounds):
            spec = folder / f"{number}.toml"
            spec.write_text(
                SPEC.format(name=f"bench-{number}", bucket=bucket, storage=store.table(), servers=up.bootstrap_servers)
            )
            seconds["the listing alone"].append(listed_alone(store, bucket))
            seconds["plan, all new"].append(timed("plan", spec, folder / "home")[0])
            took, report = timed("run", spec, folder / "home")
            assert report["records_sent"] == arguments.objects, report
            seconds["run"].append(took)
            took, report = timed("run", spec, folder / "home")
            assert report["records_sent"] == 0, report
            seconds["nothing to do"].append(took)
            print({name: round(each[-1], 1) for name, each in seconds.items()}, flush=True)
            if number == 0:
                seconds = {name: [] for name in seconds}
    for name, each in seconds.items():
        print(f"{name}: median {statistics.median(each):.1f} s ({min(each):.1f}-{max(each):.1f})")


if __name__ == "__main__":
    main()
