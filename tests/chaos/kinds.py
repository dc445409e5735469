"""Every kind of fault by name: on which cluster it is played, and what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos import faults, faults_brokers, faults_wire
from tests.chaos.brokers import NO_INDEX_ENTRIES, QUICK_ABORT, QUICK_RESTART, Cluster
from tests.chaos.rounds import Round


@dataclass(frozen=True)
class Kind:
    """A kind of fault: the name of its cluster and its story."""

    name: str
    cluster: str
    play: Callable[[Round], None]

    @property
    def what(self) -> str:
        """What it does, in words."""
        return (self.play.__doc__ or "").strip()


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
KINDS = {
    play.__name__.replace("_", "-"): Kind(play.__name__.replace("_", "-"), cluster, play)
    for cluster, plays in _STORIES.items()
    for play in plays
}


@dataclass
class Clusters:
    """The clusters of a session, each started when a round first needs it, and kept up between rounds."""

    folder: Path
    _up: dict[str, Cluster] = field(default_factory=dict)

    def get(self, name: str) -> Cluster:
        """Return a cluster, started."""
        if name not in self._up:
            self._up[name] = _make(name, self.folder / name)
            self._up[name].start()
        return self._up[name]

    def stop(self) -> None:
        """Stop those that were started."""
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
