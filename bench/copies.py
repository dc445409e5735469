"""Copies of a topic: `eosingest run` beside MirrorMaker 2 in an exactly-once Connect worker, and beside a bare librdkafka loop.

    .venv/bin/python -m bench.copies [--records 2000000] [--rounds 5]

Records of 200 bytes with keys of 12, in three partitions, on one broker, in turns, each to a topic of its own; the first round
is not counted. `eosingest run` and the loop are whole commands, from start to exit; the Connect worker is warm, and its figure
goes from the connector's creation to the last append, before its commit. "Sending" is from the first to the last append.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

from confluent_kafka import Producer

from bench import topics
from bench.brokers import running_broker
from bench.connect_worker import Worker
from bench.contenders import KAFKA, LOG4J, PROPERTIES, ROOT, SINK, as_toml
from bench.environments import jars
from bench.turns import measured, rotated, run_eosingest, table

_ROUND_S = 1_200
_MIRROR = "MirrorMaker 2"

SPEC = (
    """\
name = "{topic}"
[source]
format = "kafka"
topic = "{source}"
"""
    + SINK
)


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
        spec.write_text(SPEC.format(source=source, topic=target, servers=servers, properties=as_toml(PROPERTIES)))
        run_eosingest(folder / "home", "run", str(spec))

    return turn


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


def mirrors() -> Worker:
    """Make a worker that has MirrorMaker's connectors."""
    libs = jars(f"org.apache.kafka:connect-runtime:{KAFKA}", f"org.apache.kafka:connect-mirror:{KAFKA}", LOG4J)
    return Worker(libs, libs.glob("connect-mirror*.jar"))


def once(name: str, turn: Turn, servers: str, source: str, records: int) -> tuple[float, float]:
    """Copy the topic once; return the seconds until the last append, or the command's exit, and those of sending."""
    is_mirror = name.startswith(_MIRROR)
    target = f"{name.split()[-1]}.{source}" if is_mirror else f"bench-{uuid.uuid4().hex[:10]}"
    copy = partial(turn, servers, source, target, records)
    return measured(name, servers, target, records, copy, to_last_append=is_mirror)


def main() -> None:
    """Measure in turns, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with running_broker() as (folder, up), mirrors() as worker:
        run_eosingest(folder / "home", "prepare")
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
            for name in rotated(turns, number):
                took = once(name, turns[name], up.bootstrap_servers, source, arguments.records)
                if number:
                    figures[name].append(took)
            topics.delete(up.bootstrap_servers, source)
    print(table(f"{arguments.records:,} records", figures, arguments.records))


if __name__ == "__main__":
    main()
