"""Every kind of fault by name: on which cluster it is played, and what it does."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos import (
    faults,
    faults_brokers,
    faults_cluster,
    faults_letters,
    faults_registry,
    faults_whole,
    faults_wire,
)
from tests.chaos.rounds import Round
from tests.support.kafka_nodes import NO_INDEX_ENTRIES, QUICK_ABORT, QUICK_RESTART, Cluster
from tests.support.spark_clusters import Standalone, start_standalone


@dataclass(frozen=True)
class Kind:
    """A kind of fault: the name of its cluster and its story. `on_spark`: on a standalone cluster of Spark, too.

    `reads` is what is read, where it strikes nothing else. `bad_rows`: it needs some. `whole`: everything must go in one
    transaction, or must not; None where it is a fault of both.
    """

    name: str
    cluster: str
    play: Callable[[Round], None]
    on_spark: bool = False
    reads: str = ""
    bad_rows: bool = False
    whole: bool | None = None

    @property
    def place(self) -> str:
        """Where it is played."""
        return f"{self.cluster}+spark" if self.on_spark else self.cluster

    @property
    def what(self) -> str:
        """What it does, in words."""
        return (self.play.__doc__ or "").strip()


_SPARK_WORKERS = 2
_STORIES: dict[str, tuple[Callable[[Round], None], ...]] = {
    "one": (
        faults.kill_run,
        faults.kill_driver,
        faults.kill_jvm,
        faults.kill_workers,
        faults.freeze_run,
        faults.freeze_workers,
        faults.freeze_worker_and_run_again,
        faults.freeze_jvm,
        faults.freeze_driver_and_run_again,
        faults.runs_together,
        faults.interrupt,
        faults.hijack_ids,
        faults.delete_topic,
        faults_brokers.freeze_broker,
    ),
    "killed": (
        faults_brokers.kill_broker,
        faults_brokers.restart_broker,
        faults_brokers.kill_broker_and_driver,
        faults_brokers.kill_broker_in_verdict,
        faults_brokers.fill_disk,
    ),
    "wire": (
        faults_wire.lose_commit_answers,
        faults_wire.delay_commits,
        faults_wire.late_commits,
        faults_wire.spoil_requests,
        faults_wire.hold_connections,
        faults_wire.lose_commit_answer_and_kill,
        faults_wire.late_commits_and_two_runs,
    ),
    "three": (
        faults_brokers.rolling_restart,
        faults_brokers.kill_coordinator,
        faults_brokers.freeze_leader,
        faults_brokers.lose_majority,
        faults_brokers.cut_broker,
    ),
    "expiring": (faults_brokers.expire_ids, faults_brokers.expire_ids_in_mid_run),
}
_ON_SPARK = (
    faults_cluster.kill_executor,
    faults_cluster.kill_spark_worker,
    faults_cluster.kill_driver_of_cluster,
    faults_cluster.freeze_executor,
)
_ALL = [
    *(Kind(play.__name__.replace("_", "-"), cluster, play) for cluster, plays in _STORIES.items() for play in plays),
    *(Kind(play.__name__.replace("_", "-"), "one", play, on_spark=True) for play in _ON_SPARK),
    Kind("freeze-registry", "one", faults_registry.freeze_registry, reads="json-as-avro"),
    Kind("kill-registry", "one", faults_registry.kill_registry, reads="json-as-avro", whole=False),
    Kind("allow-letters-late", "one", faults_letters.allow_letters_late, bad_rows=True),
    Kind("set-job-late", "one", faults_whole.set_job_late, whole=False),
    Kind("raise-limits-late", "one", faults_whole.raise_limits_late, whole=True),
    Kind("mend-expression-late", "one", faults_whole.mend_expression_late, reads="json", whole=True),
]
KINDS = {kind.name: kind for kind in _ALL}


@dataclass
class Clusters:
    """The clusters of a session, each started when a round first needs it, and kept up between rounds."""

    folder: Path
    _up: dict[str, Cluster] = field(default_factory=dict)
    _spark: Standalone | None = None

    def get(self, name: str) -> Cluster:
        """Return a cluster, started."""
        if name not in self._up:
            self._up[name] = _make(name, self.folder / name)
            self._up[name].start()
        return self._up[name]

    def drop(self, name: str) -> None:
        """Stop a cluster, and make another one of that name when a round next needs it: what is in this one is spoilt."""
        cluster = self._up.pop(name, None)
        if cluster is not None:
            cluster.stop()
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def spark(self) -> Standalone:
        """Return the cluster of Spark, with nothing of an earlier round on it."""
        if self._spark is None:
            folder = self.folder / "spark"
            folder.mkdir(parents=True, exist_ok=True)
            self._spark = start_standalone(folder, _SPARK_WORKERS)
        self._spark.heal()
        return self._spark

    def stop(self) -> None:
        """Stop those that were started."""
        if self._spark is not None:
            self._spark.close()
        for cluster in self._up.values():
            cluster.stop()


def _make(name: str, folder: Path) -> Cluster:
    if name == "three":
        return Cluster(folder, 3, proxied=True, properties=QUICK_RESTART)
    if name == "killed":
        return Cluster(folder, own_disk=True, properties={**QUICK_RESTART, **NO_INDEX_ENTRIES})
    if name == "expiring":  # long enough for a JVM to start between two of the driver's own transactions
        soon = {
            "transactional.id.expiration.ms": "15000",
            "transaction.remove.expired.transaction.cleanup.interval.ms": "500",
        }
        return Cluster(folder, properties={**QUICK_ABORT, **soon})
    return Cluster(folder, proxied=name == "wire", properties=QUICK_ABORT)
