"""Faults of processes: driver, JVM and Python workers killed and frozen, runs beside runs, ids in foreign hands.

A fault is a function of a Round, and its docstring says what it does. It leaves the job for the round to complete.
"""

from __future__ import annotations

import signal

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from eosingest.host import failpoints
from tests.chaos.rounds import Round, ViolationError
from tests.chaos.runs import Run
from tests.support.processes import signal_all, stopped

_TASK_POINTS = [name for name in failpoints.NAMES if name.startswith("task-")]


def kill_run(round: Round) -> None:
    """kill -9 of driver and JVM at one to three fail points, or of every process at random moments."""
    for _ in range(round.chance.choice((1, 1, 2))):
        if round.chance.random() < 0.7:
            point = round.chance.choice(failpoints.NAMES)
            hit = round.hit(point, 8) if point.startswith("task-") else 1
            round.finish(_dies_at(round, point, hit), {0, 3, 5})
        else:
            run = round.start()
            round.wait_for_moment(run)
            run.kill_everybody()
            round.say(f"killed {round.finish(run).exit_code}")


def _dies_at(round: Round, point: str, hit: int) -> Run:
    """Start a run that dies at a fail point, with its JVM; it may end before it comes there."""
    run = round.start(f"{point}=group-kill@{hit}")
    round.say(f"{point}@{hit}")
    run.killed = True
    return run


def kill_driver(round: Round) -> None:
    """kill -9 of the driver alone; the JVM and its workers live on for a while beside the next run."""
    run = round.start()
    round.wait_for_moment(run)
    run.signal(signal.SIGKILL)
    round.finish(run)
    round.say(f"{len(run.processes())} orphans")


def kill_jvm(round: Round) -> None:
    """kill -9 of the JVM; the driver must notice, and its workers are orphans."""
    run = round.start()
    round.wait_for_moment(run)
    jvms = run.jvms()
    signal_all(jvms, signal.SIGKILL)
    round.say(f"{len(jvms)} JVM")
    done = round.finish(run, {0, 3, 7})
    if done.exit_code == 7 and "JAVA_GATEWAY_EXITED" not in done.stdout:  # no JVM yet: pyspark cannot say how it ended
        raise ViolationError(f"P9: a JVM that was killed is no fault of the spec: {done.stdout}")


def kill_workers(round: Round) -> None:
    """kill -9 of Python workers at fail points and at random moments, within one run."""
    points = round.chance.sample(_TASK_POINTS, 2)
    run = round.start(",".join(f"{point}=kill@{round.hit(point, 6)}" for point in points))
    round.say(" ".join(points))
    for _ in range(round.chance.choice((0, 1, 2))):
        round.wait_for_moment(run)
        signal_all(run.workers()[:1], signal.SIGKILL)
    round.finish(run, {0, 3})


def freeze_run(round: Round) -> None:
    """SIGSTOP of every process at a random moment, the job completed by another run, then SIGCONT."""
    run = round.start()
    round.wait_for_moment(run)
    frozen = run.freeze()
    round.say(f"froze {len(frozen)}")
    round.complete()
    signal_all(frozen, signal.SIGCONT)
    round.finish(run, {0, 6})


def freeze_workers(round: Round) -> None:
    """SIGSTOP of the Python workers in mid-transaction for longer than the transaction timeout, then SIGCONT."""
    round.timeout(3)
    run = _with_stopped_worker(round)
    round.wait_until(lambda: False, run, round.chance.uniform(1, 6))
    _wake(run)
    round.finish(run)


def freeze_worker_and_run_again(round: Round) -> None:
    """SIGSTOP of a worker in mid-transaction, a second run takes the job over, SIGCONT while it works or after."""
    run = _with_stopped_worker(round)
    second = round.start()
    if round.chance.random() < 0.5:
        round.wait_for_records(second)
    else:
        round.finish(second, alone=False)
    _wake(run)
    if not second.ended:
        round.finish(second, alone=False)
    round.finish(run, {0, 3, 5, 6}, alone=False)


def _with_stopped_worker(round: Round) -> Run:
    point = round.chance.choice(("task-after-begin", "task-after-produce", "task-before-offsets", "task-before-commit"))
    hit = round.hit(point, 5)
    run = round.start(f"{point}=stop@{hit}")
    round.say(f"{point}@{hit}")
    round.wait_until(lambda: stopped(run.workers()), run)
    return run


def _wake(run: Run) -> None:
    signal_all([process.pid for process in run.processes()], signal.SIGCONT)


def freeze_jvm(round: Round) -> None:
    """SIGSTOP of the JVM for some seconds, while the workers go on with what they have."""
    run = round.start()
    round.wait_for_moment(run)
    jvms = run.jvms()
    signal_all(jvms, signal.SIGSTOP)
    round.wait_until(lambda: False, run, round.chance.uniform(0.5, 6))
    signal_all(jvms, signal.SIGCONT)
    round.finish(run)


def freeze_driver_and_run_again(round: Round) -> None:
    """SIGSTOP of the driver alone: Spark goes on under it while a second run takes the job over; then SIGCONT."""
    run = round.start()
    round.wait_for_moment(run)
    run.signal(signal.SIGSTOP)
    second = round.start()
    if round.chance.random() < 0.5:
        round.wait_for_records(second)
        run.signal(signal.SIGCONT)
    round.finish(second, alone=False)
    run.signal(signal.SIGCONT)
    round.finish(run, {0, 3, 5, 6}, alone=False)


def runs_together(round: Round) -> None:
    """Two or three runs of the job started within some seconds."""
    runs = []
    for _ in range(round.chance.choice((2, 2, 3))):
        runs.append(round.start())
        round.wait_until(lambda: False, None, round.chance.choice((0.0, 0.0, round.chance.uniform(0, 8))))
    for run in runs:
        round.finish(run, {0, 3, 5, 6}, alone=False)
    ends = [end.exit_code for end in round.ends]
    if ends.count(6) == len(ends):
        raise ViolationError(f"P9: every run says that another one owns the job: {ends}")


def interrupt(round: Round) -> None:
    """SIGINT or SIGTERM at a random moment: an orderly end within 10 s, with nothing left open."""
    number = round.chance.choice((signal.SIGINT, signal.SIGTERM))
    run = round.start()
    round.wait_for_moment(run)
    run.signal(number)
    round.say(number.name)
    round.finish(run, {0, 128 + number}, bound_s=25)


def hijack_ids(round: Round) -> None:
    """Foreign clients call init_transactions on the job's own ids in mid-run."""
    run = round.start()
    round.wait_for_sending(run)  # a job that has not claimed its ids is refused if somebody else has used them
    for _ in range(round.chance.randint(1, 3)):
        round.wait_for_moment(run)
        name = f"eosingest.{round.job.name}.{round.chance.choice(('0', '1', '0', 'control'))}"
        _foreign(round, name).init_transactions(20)
        round.say(name.rpartition(".")[2])
    round.finish(run)


def _foreign(round: Round, transactional_id: str) -> Producer:
    return Producer(
        {
            "bootstrap.servers": round.cluster.direct,
            "transactional.id": transactional_id,
            "allow.auto.create.topics": False,
            "log_level": 0,
        }
    )


def delete_topic(round: Round) -> None:
    """The topic is deleted in mid-run, after records were committed: no run may ever call the job complete."""
    point = round.chance.choice(
        (f"task-after-commit=sleep:2@{round.hit('task-after-commit', 4)}", "driver-before-verdict=sleep:2")
    )
    run = round.start(point)
    round.say(point)
    if not round.wait_until(run.reached, run):
        raise ViolationError(f"the run ended before it came to {point}")
    admin = AdminClient({"bootstrap.servers": round.cluster.direct})
    admin.delete_topics([round.job.name])[round.job.name].result(20)
    round.ends_otherwise = True
    round.finish(run, {3, 5, 7, 12}, alone=False)
    for _ in range(2):
        done = round.run(allowed={12})
        if done.codes != ["topic-recreated"]:
            raise ViolationError(f"P9: the topic is gone, and the run says {done.codes}")
