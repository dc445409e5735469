"""Faults on a standalone cluster of Spark: executors, their Python, their Spark Workers, and the driver.

As in faults.py; the round has two Spark Workers of one core each beside its broker, and its runs have them as their master.
"""

from __future__ import annotations

import signal

from tests.chaos.rounds import Round
from tests.chaos.runs import Run
from tests.support.processes import signal_all
from tests.support.spark_clusters import Executor, Standalone

_IN_A_TRANSACTION = ("task-after-begin", "task-after-produce", "task-before-offsets", "task-before-commit")
# The driver gives an executor up after so long without a heartbeat.
_HEARTBEATS = {
    "spark.network.timeout": "12s",
    "spark.network.timeoutInterval": "4s",
    "spark.executor.heartbeatInterval": "2s",
}


def kill_executor(round: Round) -> None:
    """kill -9 of executors on a Spark cluster, of the JVM, of its Python, or of both, at random moments of one run."""
    spark = _spark(round)
    run = round.start()
    for _ in range(round.chance.choice((1, 1, 2))):
        _wait_for_moment(round, run, spark)
        executors = spark.executors()
        if executors:
            executor = round.chance.choice(executors)
            whom = round.chance.choice(("JVM", "Python", "all"))
            pids = {
                "JVM": [executor.jvm.pid],
                "Python": [process.pid for process in executor.pythons],
                "all": executor.pids,
            }[whom]
            signal_all(pids, signal.SIGKILL)
            round.say(f"{whom}: {len(pids)}")
    round.finish(run)


def kill_spark_worker(round: Round) -> None:
    """kill -9 of a Spark Worker with its executor in mid-run, or of all; the cluster is whole again for the next run."""
    spark = _spark(round)
    round.executor_wait("30s")
    run = round.start()
    _wait_for_moment(round, run, spark)
    executors = spark.executors()
    lost = executors if round.chance.random() < 0.3 else executors[:1]
    for executor in lost:
        signal_all([executor.worker, *executor.pids], signal.SIGKILL)
    round.say(f"{len(lost)} of {len(executors)}")
    round.finish(run)
    spark.have_workers()


def kill_driver_of_cluster(round: Round) -> None:
    """kill -9 of the driver on a Spark cluster, with its JVM or alone; its executors live on for a while."""
    spark = _spark(round)
    for _ in range(round.chance.choice((1, 1, 2))):
        run = round.start()
        _wait_for_moment(round, run, spark)
        if round.chance.random() < 0.5:
            run.kill_everybody()
        else:
            run.signal(signal.SIGKILL)
        round.say(f"{len(spark.executors())} executors")
        round.finish(run)


def freeze_executor(round: Round) -> None:
    """SIGSTOP of an executor, its Python and its Spark Worker in mid-transaction; SIGCONT in this run or the next."""
    spark = _spark(round)
    point = round.chance.choice(_IN_A_TRANSACTION)
    point = f"{point}=stop@{round.hit(point, 4)}"
    round.say(point)
    marks = round.job.folder / "points"
    marks.mkdir()
    round.conf(
        {
            **_HEARTBEATS,
            "spark.executorEnv.EOSINGEST_FAILPOINTS": point,
            "spark.executorEnv.EOSINGEST_FAILPOINT_DIR": str(marks),
        }
    )
    run = round.start()
    if not round.wait_until(spark.held, run, round.bound_s):
        round.say("no task came there")
        round.finish(run)
        return
    frozen = [pid for executor in spark.held() for pid in _with_worker(executor)]
    signal_all(frozen, signal.SIGSTOP)
    if round.chance.random() < 0.5:
        round.wait_until(lambda: False, run, round.chance.uniform(2, 25))
        signal_all(frozen, signal.SIGCONT)
        round.finish(run)
        return
    run.kill_everybody()
    round.finish(run, alone=False)
    second = round.start()
    if round.chance.random() < 0.5:
        round.wait_for_records(second)
    else:
        round.finish(second, alone=False)
    signal_all(frozen, signal.SIGCONT)
    round.say("second run over" if second.ended else "second run at work")
    if second.number not in round.answers:
        round.finish(second, alone=False)


def _with_worker(executor: Executor) -> list[int]:
    return [executor.worker, *executor.pids]


def _spark(round: Round) -> Standalone:
    assert round.spark is not None, "a kind that names Spark Workers"
    return round.spark


def _wait_for_moment(round: Round, run: Run, spark: Standalone) -> None:
    """Wait for a random moment of the run: mostly while it sends, else a while behind its first executor."""
    if round.chance.random() < 0.75:
        round.wait_for_records(run, timeout_s=round.bound_s)
    else:
        round.wait_until(spark.executors, run, round.bound_s)
    round.wait_until(lambda: False, run, round.chance.random() * 1.5)
