"""What is kept of a round in which a promise was broken, and whether Kafka itself broke it.

KAFKA-20734 (Kafka 4.x, open when this was written): while a partition has no leader, the transaction coordinator takes it
for deleted, writes no marker to it, and calls the transaction complete. Its records lie open there until the next marker of
the same producer id, which decides them with its own: aborted records are committed, or committed ones aborted. It takes a
broker that is killed and started again within its session, with no other replica. The broker's log says when it happens.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.support.job_checks import OFFSETS_TOPIC
from tests.support.kafka_nodes import Cluster

_SKIPPED = "while trying to send transaction markers"
_KEPT = ("{topic}-*", f"{OFFSETS_TOPIC}-*", "__transaction_state-*")


def keep_evidence(cluster: Cluster, topic: str, folder: Path) -> None:
    """Copy broker logs, and the partitions that tell what happened as they lie on disk."""
    for node in cluster.nodes:
        source, target = node.server.directory, folder / node.server.directory.name
        target.mkdir(exist_ok=True)
        for log in source.glob("broker.*"):
            shutil.copy(log, target)
        for pattern in _KEPT:
            for partition in (source / "data").glob(pattern.format(topic=topic)):
                with contextlib.suppress(shutil.Error, OSError):  # segments come and go under compaction
                    shutil.copytree(partition, target / partition.name, dirs_exist_ok=True)


def markers_were_skipped(cluster: Cluster, job: str) -> bool:
    """Say whether a broker has left a transaction of the job without its markers, though no topic was deleted."""
    return any(_SKIPPED in line and job in line for line in _log_lines(cluster))


def _log_lines(cluster: Cluster) -> Iterator[str]:
    for node in cluster.nodes:
        for log in sorted(node.server.directory.glob("broker.log*")):
            yield from log.read_text(errors="replace").splitlines()
