"""Faults of brokers: killed, frozen and restarted, alone and in a cluster of three; a full disk; expired transactional ids."""

from __future__ import annotations

import signal

from confluent_kafka.admin import AdminClient

from eosingest.kafka.config import ClientSettings
from eosingest.kafka.kafka_python import KafkaPythonAdmin
from eosingest.protocol.transactional_ids import control_id, task_id
from tests.chaos.rounds import Round
from tests.chaos.runs import Run
from tests.support.job_checks import OFFSETS_TOPIC, PREFIX, offsets_partition
from tests.support.kafka_nodes import Node, coordinator_partition
from tests.support.processes import signal_all, stopped

_EXPIRY_PATIENCE_S = 40


# ---- one broker ----------------------------------------------------------------------------------------------------


def kill_broker(round: Round) -> None:
    """kill -9 of the only broker at a random moment, and up again some seconds later."""
    run = round.start(_slowed(round))
    round.wait_for_moment(run)
    _down_and_up(round, run, round.cluster.nodes[0], signal.SIGKILL)
    round.finish(run)


def restart_broker(round: Round) -> None:
    """SIGTERM of the only broker at a random moment, and up again."""
    run = round.start(_slowed(round))
    round.wait_for_moment(run)
    _down_and_up(round, run, round.cluster.nodes[0], signal.SIGTERM)
    round.finish(run)


def freeze_broker(round: Round) -> None:
    """SIGSTOP of the only broker for up to eight seconds: past the transaction timeout in some rounds."""
    round.timeout(round.chance.choice((3, 5, 10)))
    run = round.start(_slowed(round))
    for _ in range(round.chance.choice((1, 2))):
        round.wait_for_moment(run)
        _freeze(round, run, round.cluster.nodes[0], round.chance.uniform(0.3, 8))
    round.finish(run)


def kill_broker_and_driver(round: Round) -> None:
    """kill -9 of the broker and of the driver, in either order; the next run begins while the broker starts."""
    run = round.start(_slowed(round))
    round.wait_for_moment(run)
    node = round.cluster.nodes[0]
    if round.chance.random() < 0.5:
        run.signal(signal.SIGKILL)
        round.wait_until(lambda: False, None, round.chance.random())
        node.kill()
    else:
        node.kill()
        round.wait_until(lambda: False, run, round.chance.random() * 3)
        run.signal(signal.SIGKILL)
    round.finish(run, alone=False)
    node.launch()
    round.finish(round.start())


def kill_broker_in_verdict(round: Round) -> None:
    """kill -9 of the broker while the driver is about to give its verdict, or has just given it."""
    point = round.chance.choice(("driver-before-verdict", "driver-after-verdict", "task-at-end"))
    run = round.start(f"{point}=sleep:{round.chance.uniform(0.2, 1.5):.2f}")
    round.say(point)
    round.wait_until(run.reached, run)
    round.wait_until(lambda: False, run, round.chance.uniform(0, 1.2))
    _down_and_up(round, run, round.cluster.nodes[0], signal.SIGKILL)
    round.finish(run)


def _slowed(round: Round) -> str:
    """Return fail points that make one commit slow, so that a moment in a transaction is met more often; or none."""
    point = round.chance.choice(("task-before-offsets", "task-before-commit", "task-after-commit", ""))
    return point and f"{point}=sleep:{round.chance.uniform(0.5, 2):.1f}@{round.hit(point, 6)}"


def _down_and_up(round: Round, run: Run, node: Node, number: int) -> None:
    down_s = round.chance.choice((0.0, 1.0, round.chance.uniform(0, 6)))
    if number == signal.SIGKILL:
        node.kill()
    else:
        node.end()
    round.say(f"{signal.Signals(number).name} {down_s:.1f}s")
    round.wait_until(lambda: False, run, down_s)
    node.launch()


def _freeze(round: Round, run: Run, node: Node, seconds: float) -> None:
    node.signal(signal.SIGSTOP)
    round.say(f"froze {seconds:.1f}s")
    round.wait_until(lambda: False, run, seconds)
    node.signal(signal.SIGCONT)


# ---- three brokers -------------------------------------------------------------------------------------------------


def rolling_restart(round: Round) -> None:
    """Two or three nodes are restarted one after another, in order or by kill -9, while the run goes on."""
    run = round.start(_slowed(round))
    round.wait_for_moment(run)
    nodes = round.chance.sample(round.cluster.nodes, round.chance.choice((2, 3)))
    for node in nodes:
        clean = round.chance.random() < 0.5
        node.end() if clean else node.kill()
        round.say("ended" if clean else "killed")
        node.launch()
        if round.chance.random() < 0.7:
            round.cluster.heal()  # else the next one goes down while this one is still behind
    round.finish(run)


def kill_coordinator(round: Round) -> None:
    """kill -9 of the transaction coordinator of a task's or of the driver's id, in the middle of a transaction or commit."""
    name = task_id(PREFIX, round.job.name, 0) if round.chance.random() < 0.7 else control_id(PREFIX, round.job.name)
    run = round.start(_slowed(round))
    round.wait_for_moment(run)
    node = _leader(round, "__transaction_state", coordinator_partition(name))
    round.say(name.rpartition(".")[2])
    _down_and_up(round, run, node, signal.SIGKILL)
    round.finish(run)


def freeze_leader(round: Round) -> None:
    """SIGSTOP of the leader of the job's offsets partition, of a topic partition or of a coordinator: it wakes deposed."""
    round.timeout(round.chance.choice((4, 10)))
    run = round.start(_slowed(round))
    round.wait_for_moment(run)
    places = [
        (OFFSETS_TOPIC, offsets_partition(round.job)),
        (round.job.name, 0),
        ("__transaction_state", coordinator_partition(task_id(PREFIX, round.job.name, 0))),
    ]
    _freeze(round, run, _leader(round, *round.chance.choice(places)), round.chance.uniform(2.5, 8))
    round.finish(run)


def lose_majority(round: Round) -> None:
    """kill -9 of two of three nodes: neither min.insync.replicas nor the controllers' majority is left for a while."""
    run = round.start(_slowed(round))
    round.wait_for_moment(run)
    nodes = round.chance.sample(round.cluster.nodes, 2)
    for node in nodes:
        node.kill()
    round.wait_until(lambda: False, run, round.chance.uniform(0, 6))
    for node in nodes:
        node.launch()
    round.finish(run)


def cut_broker(round: Round) -> None:
    """One node of three is not seen by clients for some seconds, while the brokers see each other."""
    run = round.start(_slowed(round))
    for _ in range(round.chance.choice((1, 2, 3))):
        round.wait_for_moment(run)
        proxy = round.chance.choice(round.cluster.proxies)
        seconds = round.chance.uniform(0.2, 6)
        proxy.cut()
        round.say(f"{seconds:.1f}s")
        round.wait_until(lambda: False, run, seconds)
        proxy.clear()
    round.finish(run)


def _leader(round: Round, topic: str, partition: int) -> Node:
    """Return the node that leads a partition; a random one where the topic is not there yet."""
    topics = AdminClient({"bootstrap.servers": round.cluster.direct, "log_level": 0}).list_topics(timeout=10).topics
    if topic not in topics:
        return round.chance.choice(round.cluster.nodes)
    leader: int = topics[topic].partitions[partition].leader
    return round.cluster.nodes[leader - 1]


# ---- a full disk ---------------------------------------------------------------------------------------------------


def fill_disk(round: Round) -> None:
    """The broker's disk is full from a random moment on; it dies of it. Then there is space again, and it is started anew."""
    run = round.start(_slowed(round))
    round.wait_for_moment(run)
    disk = round.cluster.disk
    assert disk is not None, "this fault needs a cluster with a disk of its own"
    disk.fill(round.cluster.nodes[0].pid, leave_bytes=round.chance.choice((0, 4_096, round.chance.randint(0, 40_000))))
    died = round.wait_until(lambda: round.cluster.nodes[0].pid is None, None, 15)
    round.say(f"{disk.kind}, {'it died of it' if died else 'it lived on'}")
    round.wait_until(lambda: False, run, round.chance.uniform(0, 3))
    disk.empty()
    round.cluster.nodes[0].kill()
    round.cluster.nodes[0].launch()
    round.finish(run)


# ---- expired ids ---------------------------------------------------------------------------------------------------


def expire_ids(round: Round) -> None:
    """The brokers forget the job's transactional ids between two of its runs, while its workers are frozen or dead."""
    round.timeout(5)
    point = round.chance.choice(("task-after-commit", "task-before-commit"))
    frozen = round.chance.random() < 0.6
    run = round.start(f"{point}={'stop' if frozen else 'group-kill'}@{round.hit(point, 4)}")
    run.killed = not frozen
    round.say(f"{point} {'frozen' if frozen else 'killed'}")
    round.wait_until(lambda: run.ended or stopped(run.workers()), run)
    pids = run.freeze()
    admin = KafkaPythonAdmin(ClientSettings(round.cluster.direct))
    try:
        ids = [task_id(PREFIX, round.job.name, task) for task in (0, 1)] + [control_id(PREFIX, round.job.name)]
        if not round.wait_until(lambda: not any(map(admin.knows_transactional_id, ids)), None, _EXPIRY_PATIENCE_S):
            round.say("not all expired")
    finally:
        admin.close()
    round.complete()
    signal_all(pids, signal.SIGCONT)
    round.finish(run, {0, 6})


def expire_ids_in_mid_run(round: Round) -> None:
    """The brokers forget the id of a task that waits between two transactions, and the driver's, under a living run."""
    run = round.start(f"task-after-commit=sleep:20@{round.hit('task-after-commit', 4)}")
    round.finish(run)
