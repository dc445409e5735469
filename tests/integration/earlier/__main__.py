"""Records the jobs of this folder with the release that is installed: see the package's docstring."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

import eosingest
from eosingest import broker
from tests.integration.earlier import NAMES, spec_of, write_files
from tests.support.harness import Job, read_committed
from tests.support.held_runs import run_killed_at

OFFSETS_TOPIC = "eosingest-offsets"


def record(name: str, servers: str, folder: Path) -> dict[str, object]:
    """Kill a run after some commits, and return what it left."""
    job = Job(folder / name, servers, f"earlier-{name}")
    write_files(job.data)
    job.spec.write_text(spec_of(name, job.name, servers))
    run_killed_at(job, "task-after-commit@4")
    offsets = _offsets(servers, job.name)
    pinned = [json.loads(value) for key, value in offsets if '"control":"run"' in key and value][-1]["pinned"]
    return {
        "release": eosingest.__version__,
        "name": job.name,
        "topic": job.name,
        "ids": {key: pinned[key] for key in ("topic_id", "cluster_id", "offsets_topic_id")},
        "offsets": offsets,
        "sink": [
            [
                r.partition,
                r.key and r.key.decode(),
                (r.value or b"").decode(),
                {k: (v or b"").decode() for k, v in r.headers},
            ]
            for r in read_committed(servers, job.name)
        ],
    }


def _offsets(servers: str, job: str) -> list[tuple[str, str | None]]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "recorder", "isolation.level": "read_committed"})
    try:
        found: list[tuple[str, str | None]] = []
        for partition in consumer.list_topics(OFFSETS_TOPIC, timeout=20).topics[OFFSETS_TOPIC].partitions:
            place = TopicPartition(OFFSETS_TOPIC, partition, 0)
            _, end = consumer.get_watermark_offsets(place, timeout=20)
            consumer.assign([place])
            for _ in range(100 if end else 0):
                if consumer.position([place])[0].offset >= end:
                    break
                for message in consumer.consume(500, timeout=0.5):
                    key, value = message.key().decode(), message.value()
                    if key.startswith(f'["{job}",'):
                        found.append((key, value and value.decode()))
        return found
    finally:
        consumer.close()


def main(target: Path) -> None:
    """Record every job into a folder."""
    with tempfile.TemporaryDirectory() as made:
        up = broker.up(directory=Path(made) / "broker")
        try:
            for name in NAMES:
                text = json.dumps(record(name, up.bootstrap_servers, Path(made)), indent=0, ensure_ascii=False)
                (target / f"{name}.json").write_text(text + "\n")
        finally:
            broker.down(directory=Path(made) / "broker")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
