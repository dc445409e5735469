"""Many objects of a bucket, or files of HDFS: `eosingest plan` where all is new, the run, and a run with nothing to do.

    .venv/bin/python -m bench.objects [--storage hdfs] [--format json] [--objects 10000] [--rounds 3]

Objects of a row in ten folders, on s3proxy or on a name node and a data node; the first round is not counted.
Whole commands, from start to exit; beside them the seconds that the store takes to list the same objects for a client that does
nothing else.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from bench.brokers import running_broker
from bench.turns import run_eosingest
from tests.support import hdfs, s3proxy

SPEC = """\
name = "{name}"
[source]
format = "{format}"
path = "{path}"
{keys}{storage}
[sink]
bootstrap_servers = "{servers}"
topic = "{name}"
create = {{ partitions = 3 }}
[spark]
master = "local[2]"
"""
Content = Callable[[int], bytes]
_FOLDERS = 10
_AT_ONCE = 8


def _parquet(number: int) -> bytes:
    out = pa.BufferOutputStream()
    parquet.write_table(pa.table({"id": [number], "v": ["one row"]}), out)
    return bytes(out.getvalue())


FORMATS: dict[str, Content] = {
    "text": lambda number: b"one line of %d\n" % number,
    "json": lambda number: b'{"id": %d, "v": "one row"}\n' % number,
    "csv": lambda number: b"%d,one row\n" % number,
    "parquet": _parquet,
}
# Keys of [source] that a format needs.
_KEYS = {
    "csv": 'schema = "id BIGINT, v STRING"\noptions = { header = false }\n',
    "json": 'schema = "id BIGINT, v STRING"\n',
}


@dataclass(frozen=True)
class Filled:
    """Objects that were put: how a spec names them, and how a client lists them that does nothing else."""

    path: str
    table: str
    listing: Callable[[], None]


@contextmanager
def in_bucket(folder: Path, objects: int, content: Content) -> Iterator[Filled]:
    """Put the objects into a bucket of a store that runs meanwhile."""
    with s3proxy.running(folder / "store") as store:
        bucket, client = store.bucket(f"bench-{uuid.uuid4().hex[:8]}"), store.client
        _put(lambda key, data: client.put_object(Bucket=bucket, Key=key, Body=data), objects, content)

        def listing() -> None:
            for _ in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="in/"):
                pass

        yield Filled(f"s3://{bucket}/in/*/*", store.table(), listing)


@contextmanager
def in_hdfs(folder: Path, objects: int, content: Content) -> Iterator[Filled]:
    """Put the files into an HDFS that runs meanwhile."""
    (folder / "store").mkdir()
    with hdfs.running(folder / "store") as cluster:
        os.environ.update(cluster.environment)
        _put(lambda key, data: cluster.put(f"/{key}", data), objects, content)

        def listing() -> None:
            for number in range(_FOLDERS):
                cluster.call("GET", f"/in/{number}", op="LISTSTATUS")

        yield Filled(f"{cluster.address}/in/*/*", cluster.table(), listing)


STORAGES: dict[str, Callable[[Path, int, Content], AbstractContextManager[Filled]]] = {"s3": in_bucket, "hdfs": in_hdfs}


def _put(put: Callable[[str, bytes], object], objects: int, content: Content) -> None:
    """Put so many objects of a row each, in ten folders."""

    def one(number: int) -> None:
        put(f"in/{number % _FOLDERS}/{number:07}", content(number))

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(one, range(objects)))


def seconds_of(step: Callable[[], None]) -> float:
    """Return the seconds that something takes."""
    began = time.monotonic()
    step()
    return time.monotonic() - began


def timed(verb: str, spec: Path, home: Path) -> tuple[float, dict[str, Any]]:
    """Return the seconds of a command from start to exit, and what it says."""
    began = time.monotonic()
    data = run_eosingest(home, verb, str(spec))
    return time.monotonic() - began, data


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--storage", choices=[*STORAGES], default="s3")
    parser.add_argument("--format", choices=[*FORMATS], default="text")
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    filled_in, content = STORAGES[arguments.storage], FORMATS[arguments.format]
    with running_broker() as (folder, up), filled_in(folder, arguments.objects, content) as filled:
        seconds: dict[str, list[float]] = {"the listing alone": [], "plan, all new": [], "run": [], "nothing to do": []}
        for number in range(1 + arguments.rounds):
            spec = folder / f"{number}.toml"
            table = {"format": arguments.format, "path": filled.path, "storage": filled.table}
            keys = _KEYS.get(arguments.format, "")
            spec.write_text(SPEC.format(name=f"bench-{number}", keys=keys, servers=up.bootstrap_servers, **table))
            seconds["the listing alone"].append(seconds_of(filled.listing))
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
