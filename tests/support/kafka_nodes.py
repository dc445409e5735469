"""Real Kafka clusters: nodes that can be killed, frozen and started again, with a proxy before each if asked.

Each node is eosingest's own embedded server (eosingest/broker/server.py) in a folder of its own, with three listeners:
clients (advertised is the proxy's port where there is one), INTERNAL (between brokers, and for readers that are to see
the log whatever the proxy does), and the controller's. The offsets topic is there before the first run, set so that it is
compacted all the time.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from eosingest.broker.jars import kafka_libs
from eosingest.broker.ports import choose_ports
from eosingest.broker.server import Server, new_cluster_id
from eosingest.broker.server_files import HOST, State
from eosingest.protocol.offsets import topic
from tests.support.harness import wait_for
from tests.support.job_checks import OFFSETS_TOPIC
from tests.support.kafka_proxy import Proxy
from tests.support.processes import stopped
from tests.support.small_disk import Disk

START_S = 60.0
HEAP = "-Xmx256m -Xms64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j.shutdownHookEnabled=false"
COMPACTED_ALL_THE_TIME = {
    "cleanup.policy": "compact",
    "segment.ms": "300",
    "segment.bytes": str(1 << 20),  # the smallest that Kafka 4 takes
    "min.cleanable.dirty.ratio": "0.01",
    "min.compaction.lag.ms": "0",
    "max.compaction.lag.ms": "100",
    "delete.retention.ms": "100",
}
_PROPERTIES = {
    "inter.broker.listener.name": "INTERNAL",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "log.cleaner.backoff.ms": "100",
    "log.segment.delete.delay.ms": "1000",
    "broker.heartbeat.interval.ms": "250",
    "replica.lag.time.max.ms": "3000",
}
# For brokers that are killed: they may register again once their last session is over. The check for transactions that
# have timed out stays at Kafka's 10 s: in the seconds after a kill it would meet KAFKA-20734 (see evidence.py).
QUICK_RESTART = {"broker.session.timeout.ms": "2000"}
# For brokers that are not: transactions that time out are aborted soon after, and a frozen broker is not fenced.
QUICK_ABORT = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "broker.session.timeout.ms": "10000",
}

# For a broker whose disk is filled. Its index files are sparse and mapped into memory: where a page cannot be had, an append
# fails behind the record that it wrote, the next one takes the same offset, and Kafka deletes the segment when it starts anew.
# No promise outlives brokers that lose what they acknowledged; a write that fails is what the round is about.
NO_INDEX_ENTRIES = {"log.index.interval.bytes": str(1 << 30)}


class Node:
    """One broker. Its process may be killed, frozen, ended in order, and started again on the same ports and data."""

    def __init__(
        self, server: Server, state: State, properties: Mapping[str, str], cluster_id: str, heap: str = HEAP
    ) -> None:
        self.server = server
        self.state = state
        self._heap = heap
        self._properties = properties
        self._cluster_id = cluster_id

    def launch(self) -> None:
        """Start the process; `wait` says when it answers."""
        libs, _ = kafka_libs(time.monotonic() + START_S)
        self.server.directory.mkdir(parents=True, exist_ok=True)
        self.server.write_state(self.state)
        deadline = time.monotonic() + START_S
        self.server.launch(libs, self.state, self._properties, deadline, self._cluster_id, heap=self._heap)

    def wait(self) -> None:
        """Wait until it answers."""
        self.server.wait_until_it_answers(self.state, time.monotonic() + START_S)

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self.server.running_pid()

    def signal(self, number: int) -> None:
        """Send a signal to the process, where it runs."""
        pid = self.pid
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """`kill -9`, and wait for the end."""
        self.signal(signal.SIGKILL)
        wait_for(lambda: self.pid is None, 10)

    def end(self) -> None:
        """End it in order, or after 20 s by force."""
        pid = self.pid
        if pid is not None:
            self.signal(signal.SIGCONT)
            self.server.stop(pid, time.monotonic() + 20)


class Cluster:
    """One or three nodes. `servers` is for runs, `direct` for readers that no proxy is to disturb.

    Every node is a controller, too; with `one_controller` only the first is, and two others may be lost without it.
    """

    def __init__(
        self,
        folder: Path,
        size: int = 1,
        *,
        proxied: bool = False,
        own_disk: bool = False,
        one_controller: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.size = size
        self.disk = Disk(folder / "node-1" / "data") if own_disk else None
        self.proxies = [Proxy() for _ in range(size if proxied else 0)]
        self.nodes = self._make_nodes(dict(properties or {}), 1 if one_controller else size)
        self.starts = 0

    def _make_nodes(self, properties: dict[str, str], voting: int) -> list[Node]:
        ports = distinct_ports(3 * self.size)
        clients, internal, controllers = ports[::3], ports[1::3], ports[2::3]
        voters = ",".join(f"{number}@{HOST}:{port}" for number, port in enumerate(controllers[:voting], start=1))
        shown = [proxy.port for proxy in self.proxies] or clients
        self.servers = ",".join(f"{HOST}:{port}" for port in shown)
        self.direct = ",".join(f"{HOST}:{port}" for port in internal)
        cluster_id, nodes = new_cluster_id(), []
        for index in range(self.size):
            votes = index < voting
            own = {
                "node.id": str(index + 1),
                "process.roles": "broker,controller" if votes else "broker",
                "controller.quorum.voters": voters,
                "listeners": _listeners(clients[index], internal[index], controllers[index] if votes else None),
                "advertised.listeners": _listeners(shown[index], internal[index]),
            }
            server = Server((self.folder / f"node-{index + 1}").resolve())
            state = State(clients[index], controllers[index], "")
            replicated = _replicated(self.size)
            nodes.append(Node(server, state, {**_PROPERTIES, **replicated, **own, **properties}, cluster_id))
        return nodes

    def start(self) -> None:
        """Start all nodes, make the offsets topic, and wait until the cluster is whole."""
        for proxy, node in zip(self.proxies, self.nodes, strict=False):
            proxy.start(node.state.port)
        self.heal()
        offsets = NewTopic(OFFSETS_TOPIC, topic.PARTITIONS, self.size, config=COMPACTED_ALL_THE_TIME)
        admin = AdminClient(_client(self.direct))
        admin.create_topics([offsets])[OFFSETS_TOPIC].result(30)
        wait_for(self._is_whole, START_S)

    def heal(self) -> None:
        """Undo every fault: let go of connections, wake and start nodes, and wait until all replicas are in sync."""
        for proxy in self.proxies:
            proxy.clear()
        for node in self.nodes:
            if node.pid is None:
                node.launch()
                self.starts += 1
            elif stopped([node.pid]):
                node.signal(signal.SIGCONT)
        for node in self.nodes:
            node.wait()
        wait_for(self._is_whole, START_S)

    def stop(self) -> None:
        """End all processes and remove the folder."""
        for node in self.nodes:
            with contextlib.suppress(Exception):
                node.kill()
        for proxy in self.proxies:
            with contextlib.suppress(Exception):
                proxy.stop()
        if self.disk is not None:
            self.disk.unmount()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _is_whole(self) -> bool:
        with contextlib.suppress(KafkaException):
            metadata = AdminClient(_client(self.direct)).list_topics(timeout=5)
            partitions = [part for entry in metadata.topics.values() for part in entry.partitions.values()]
            return len(metadata.brokers) == self.size and all(
                part.leader >= 0 and len(part.isrs) == len(part.replicas) for part in partitions
            )
        return False


def _client(servers: str) -> dict[str, object]:
    return {"bootstrap.servers": servers, "log_level": 0}


def _listeners(client: int, internal: int, controller: int | None = None) -> str:
    """Return a node's listeners. Among those that are advertised Kafka before 3.9 refuses the controller's."""
    brokers = f"PLAINTEXT://{HOST}:{client},INTERNAL://{HOST}:{internal}"
    return brokers if controller is None else f"{brokers},CONTROLLER://{HOST}:{controller}"


def _replicated(size: int) -> dict[str, str]:
    """Return the replication settings of a cluster of so many nodes."""
    if size == 1:
        return {}
    factor, least = str(size), str(size - 1)
    return {
        "default.replication.factor": factor,
        "min.insync.replicas": least,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": least,
        "controller.quorum.election.timeout.ms": "500",
        "controller.quorum.fetch.timeout.ms": "1000",
    }


def distinct_ports(count: int) -> list[int]:
    """Return free ports, each another."""
    ports: list[int] = []
    while len(ports) < count:
        port, _ = choose_ports(None, None)
        if port not in ports:
            ports.append(port)
    return ports


def coordinator_partition(transactional_id: str, partitions: int = 5) -> int:
    """Return the partition of __transaction_state that keeps an id: Java's String.hashCode modulo their number."""
    digest = 0
    for character in transactional_id:
        digest = (31 * digest + ord(character)) & 0xFFFFFFFF
    signed = digest - (1 << 32) if digest >> 31 else digest
    return abs(signed) % partitions
