"""Copies of a topic: `eosingest run` beside MirrorMaker 2 in an exactly-once Connect worker, and beside a bare librdkafka loop.

    .venv/bin/python -m bench.copies [--records 2000000] [--rounds 5]

Records of 200 bytes with keys of 12, in three partitions, on one broker, in turns, each to a topic of its own; the first round
is not counted. `eosingest run` and the loop are whole commands, from start to exit; the Connect worker is warm, and its figure
goes from the connector's creation to the last append, before its commit. "Sending" is from the first to the last append.
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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer

from bench import topics
from bench.brokers import running_broker
from bench.connect_worker import Worker
from bench.contenders import KAFKA, LOG4J, PROPERTIES, ROOT, as_toml
from bench.environments import jars

_ROUND_S = 1_200
_MIRROR = "MirrorMaker 2"

SPEC = """\
name = "{target}"
[source]
format = "kafka"
topic = "{source}"
[sink]
bootstrap_servers = "{servers}"
topic = "{target}"
properties = {{ {properties} }}
[spark]
master = "local[2]"
"""


def fill(servers: str, topic: str, records: int) -> None:
    """Write the records that are copied."""
    topics.create(servers, topic)
    producer = Producer({"bootstrap.servers": servers, "queue.buffering.max.messages": 1_000_000, **PROPERTIES})
    text = b"lorem ipsum dolor sit amet " * 8
    for number in range(records):
        key = b"%012d" % number
        producer.produce(topic, text[:200], key, partition=number % topics.PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush(60)


Turn = Callable[[str, str, str, int], None]


def ours(folder: Path) -> Turn:
    """Return a turn of `eosingest run`."""

    def turn(servers: str, source: str, target: str, records: int) -> None:
        spec = folder / f"{target}.toml"
        spec.write_text(SPEC.format(source=source, target=target, servers=servers, properties=as_toml(PROPERTIES)))
        run_eosingest(folder, "run", str(spec))

    return turn


def run_eosingest(home: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
    """Run a command of eosingest to its exit, with a cache of its own."""
    own = {"PYTHONPATH": str(ROOT), "EOSINGEST_HOME": str(home / "home"), "EOSINGEST_PREPARE": "off"}
    command = [sys.executable, "-m", "eosingest", *arguments, "--output", "json"]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **own, **(environment or {})})


def loop(servers: str, source: str, target: str, records: int) -> None:
    """Run the loop, in two processes."""
    command = [sys.executable, "-m", "bench.copy_loop", servers, source, target, json.dumps(PROPERTIES)]
    running = [subprocess.Popen([*command, str(part), "2"], cwd=ROOT) for part in range(2)]
    assert [process.wait(_ROUND_S) for process in running] == [0, 0]


def mirror(worker: Worker, boundary: str) -> Turn:
    """Return a turn of a MirrorSourceConnector, whose transactions end by poll or by interval."""

    def turn(servers: str, source: str, target: str, records: int) -> None:
        if not worker.is_started:
            worker.start(servers)
        config = {
            "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
            "tasks.max": "3",
            "source.cluster.alias": boundary,  # after which the copy is called
            "target.cluster.alias": "to",
            "source.cluster.bootstrap.servers": servers,
            "target.cluster.bootstrap.servers": servers,
            "topics": source,
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "sync.topic.acls.enabled": "false",
            "sync.topic.configs.enabled": "false",
            "consumer.isolation.level": "read_committed",
            "consumer.auto.offset.reset": "earliest",
            "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
            "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
            "exactly.once.support": "required",
            "transaction.boundary": boundary,
            **({"transaction.boundary.interval.ms": "1000"} if boundary == "interval" else {}),
            **{f"producer.override.{name}": value for name, value in PROPERTIES.items()},
        }
        worker.ask("PUT", f"/connectors/{target}/config", config)
        try:
            topics.wait_until_filled(servers, target, records, _ROUND_S, lambda: worker.refuse_failed(target))
        finally:
            worker.ask("DELETE", f"/connectors/{target}")

    return turn


@contextmanager
def mirrors() -> Iterator[Worker]:
    """Give a worker that has MirrorMaker's connectors."""
    libs = jars(f"org.apache.kafka:connect-runtime:{KAFKA}", f"org.apache.kafka:connect-mirror:{KAFKA}", LOG4J)
    worker = Worker(libs, libs.glob("connect-mirror*.jar"))
    try:
        yield worker
    finally:
        worker.stop()


def once(name: str, turn: Turn, servers: str, source: str, records: int) -> tuple[float, float]:
    """Copy the topic once; return the seconds until the last record, or the command's exit, and those of sending."""
    is_mirror = name.startswith(_MIRROR)
    target = f"{name.split()[-1]}.{source}" if is_mirror else f"bench-{uuid.uuid4().hex[:10]}"
    topics.create(servers, target)
    try:
        at = time.time()
        turn(servers, source, target, records)
        ended = time.time()
        found = topics.filled(servers, target)
    finally:
        topics.delete(servers, target)
    assert found.records == records, f"{name} copied {found.records} records of {records}"
    whole = (found.last_s if is_mirror else ended) - at
    phases = f"first record after {found.first_s - at:.2f} s, sending {found.seconds:.2f} s"
    print(f"  {name}: {whole:.2f} s, {phases}", flush=True)
    return whole, found.seconds


def main() -> None:
    """Measure in turns, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with running_broker() as (folder, up), mirrors() as worker:
        run_eosingest(folder, "prepare")
        turns: dict[str, Turn] = {
            "eosingest run": ours(folder),
            "librdkafka, a bare loop": loop,
            f"{_MIRROR}, exactly once, by poll": mirror(worker, "poll"),
            f"{_MIRROR}, exactly once, by interval": mirror(worker, "interval"),
        }
        figures: dict[str, list[tuple[float, float]]] = {name: [] for name in turns}
        for number in range(1 + arguments.rounds):
            source = f"bench-{uuid.uuid4().hex[:10]}"  # a new one each round: Connect keeps offsets by a topic's name
            fill(up.bootstrap_servers, source, arguments.records)
            first = number % len(turns)
            for name in (*list(turns)[first:], *list(turns)[:first]):
                took = once(name, turns[name], up.bootstrap_servers, source, arguments.records)
                if number:
                    figures[name].append(took)
            topics.delete(up.bootstrap_servers, source)
    print(table(f"{arguments.records:,} records", figures, arguments.records))


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


if __name__ == "__main__":
    main()
