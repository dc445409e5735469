"""Others at work on the cluster: foreign producers with our ids or in our offsets topic, topics deleted and made again."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from eosingest.protocol.offsets import topic as offsets
from tests.support.commands import Done, finish
from tests.support.harness import COLD, LINES_SPEC, Job, end_offsets, run_text, topic_exists, wait_for
from tests.support.held_runs import start_held
from tests.support.job_checks import (
    TOPIC_PARTITIONS,
    assert_exact,
    assert_positions,
    committed_state,
    delete_topic,
    high_watermarks,
    offsets_partition,
    open_transactions,
    source_lines,
    write_files,
)


def _foreign(job: Job, transactional_id: str) -> Producer:
    return Producer(
        {
            "bootstrap.servers": job.servers,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 60_000,
            "allow.auto.create.topics": False,
        }
    )


def _task_id(job: Job, task: int = 0) -> str:
    return f"eosingest.{job.name}.{task}"


# ---- our ids in foreign hands --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_foreign_init_once_in_mid_run(job: Job) -> None:
    """Breaks when being fenced ends the run, or when the task goes on behind what was in flight."""
    write_files(job, files=2, rows=8_000)
    job.edit_spec("local[2]", "local[1]")
    process = start_held(job, "task-before-commit=sleep:2@2")
    assert open_transactions(job) != []
    _foreign(job, _task_id(job)).init_transactions(30)

    done = finish(process)

    assert done.exit_code == 0, done
    assert committed_state(job).claims[0].attempt == 1, "the task was not restarted: the foreign init came too late"
    assert_exact(job)
    assert_positions(job)
    assert open_transactions(job) == []


@pytest.mark.slow
def test_foreign_init_again_and_again(job: Job) -> None:
    """Breaks when the task tries for ever, says exit 6 for a fence that is no successor's, or loses its other splits."""
    write_files(job, files=2, rows=8_000)
    job.edit_spec("local[2]", "local[1]")
    process = job.popen(env={"EOSINGEST_FAILPOINTS": "task-before-commit=sleep:2"})  # longer than the pause: no commit
    wait_for(lambda: topic_exists(job.servers, job.name))  # the run has claimed the job
    with _fencing_every_300_ms(job):
        done = finish(process)

    assert (done.exit_code, done.codes) == (7, ["fenced-again-and-again"]), done
    message = done.envelope["errors"][0]["message"]
    assert "transactional_id_prefix" in message
    assert "transaction.timeout" in message
    assert job.records() == []
    assert open_transactions(job) == []
    again = job.run()
    assert again.exit_code == 0, again
    assert_exact(job)


@contextmanager
def _fencing_every_300_ms(job: Job) -> Iterator[None]:
    stop = threading.Event()

    def fence() -> None:
        while not stop.wait(0.3):
            _foreign(job, _task_id(job)).init_transactions(30)

    thread = threading.Thread(target=fence)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


# ---- foreign transactions in the offsets topic ---------------------------------------------------------------------


@contextmanager
def _open_transaction(job: Job, offsets_topic: str) -> Iterator[str]:
    """Hold a foreign transaction open in the job's partition of the offsets topic; give its transactional id."""
    name = f"foreign-{job.name}"
    producer = _foreign(job, name)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(offsets_topic, b"value", b'["someone-else",{}]', partition=offsets_partition(job))
    assert producer.flush(30) == 0
    try:
        yield name
    finally:
        producer.abort_transaction(30)


@pytest.mark.in_turns("one foreign record each")
def test_a_record_that_this_eosingest_cannot_read(job: Job) -> None:
    """Breaks when a verb skips what a newer release wrote, or trips over a stranger's record that lies before it."""
    write_files(job, files=1, rows=10)
    offsets_topic = _with_own_offsets_topic(job)
    producer, key = _foreign(job, f"foreign-{job.name}"), f'["{job.name}",{{"later":1}}]'
    producer.init_transactions(30)
    producer.begin_transaction()
    for written, value in ((b"\xff", b"\xff"), (key.encode(), b'{"v":2}')):
        producer.produce(offsets_topic, value, written, partition=offsets_partition(job))
    producer.commit_transaction(30)
    for verb in ("plan", "status", "verify", "run"):
        done = job.run(verb)
        assert (done.exit_code, done.codes) == (7, ["newer-format"]), done
        assert (
            f"{offsets_topic}-{offsets_partition(job)}, offset 1, key {key}: " in done.envelope["errors"][0]["message"]
        ), done
    assert not topic_exists(job.servers, job.name)


def _with_own_offsets_topic(job: Job, partitions: int = 5) -> str:
    """Give the job an offsets topic of its own, which is there already, and a short transaction timeout; return its name."""
    name = f"offsets-{job.name}"
    job.edit_spec("[transaction]", f'offsets_topic = "{name}"\n[transaction]')
    job.edit_spec('timeout = "10s"', 'timeout = "2s"')
    _create_topic(job, NewTopic(name, partitions, replication_factor=1, config={"cleanup.policy": "compact"}))
    return name


def _create_topic(job: Job, topic: NewTopic) -> None:
    admin = AdminClient({"bootstrap.servers": job.servers})
    admin.create_topics([topic])[topic.topic].result(timeout=30)
    wait_for(lambda: topic_exists(job.servers, topic.topic))


@pytest.mark.slow
def test_foreign_transaction_open_before_the_run(job: Job) -> None:
    """Breaks when the read stops at the last stable offset, waits for ever, or does not say who holds it up."""
    write_files(job, files=1, rows=3_000)
    offsets_topic = _with_own_offsets_topic(job)
    with _open_transaction(job, offsets_topic) as foreign:
        done = job.run()

        _assert_held_up_by(done, foreign)
        assert not topic_exists(job.servers, job.name)
    again = job.run()
    assert again.exit_code == 0, again
    assert_exact(job)
    assert_positions(job, offsets_topic)


@pytest.mark.slow
def test_foreign_transaction_open_in_mid_run(job: Job) -> None:
    """Breaks when what is hidden behind it counts as not sent: it would go twice."""
    write_files(job, files=2, rows=8_000)
    offsets_topic = _with_own_offsets_topic(job)
    process = start_held(job, "task-after-commit=sleep:1@1")
    with _open_transaction(job, offsets_topic) as foreign:
        done = finish(process)

        _assert_held_up_by(done, foreign)
        assert open_transactions(job, offsets_topic) == []
        while_hidden = high_watermarks(job.servers, job.name)
        again = job.run()
        _assert_held_up_by(again, foreign)
        assert high_watermarks(job.servers, job.name) == while_hidden
    last = job.run()
    assert last.exit_code == 0, last
    assert_exact(job)
    assert_positions(job, offsets_topic)


@pytest.mark.slow
def test_foreign_transaction_that_ends_in_time(job: Job) -> None:
    """Breaks when an open transaction is an error at once."""
    write_files(job, files=1, rows=3_000)
    offsets_topic = _with_own_offsets_topic(job)
    job.edit_spec('timeout = "2s"', 'timeout = "20s"')
    with _open_transaction(job, offsets_topic):
        process = job.popen()
        wait_for(lambda: high_watermarks(job.servers, offsets_topic)[offsets_partition(job)] >= 3)  # its claim is there
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3)
    done = finish(process)
    assert done.exit_code == 0, done
    assert_exact(job)


@pytest.mark.slow
def test_signal_while_a_foreign_transaction_holds_the_run_up(job: Job) -> None:
    """Breaks when only the Spark job is interrupted, and not the waiting before it."""
    write_files(job, files=1, rows=100)
    offsets_topic = _with_own_offsets_topic(job)
    job.edit_spec('timeout = "2s"', 'timeout = "20s"')
    with _open_transaction(job, offsets_topic):
        process = job.popen()
        wait_for(lambda: high_watermarks(job.servers, offsets_topic)[offsets_partition(job)] >= 3)  # its claim is there
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        done = finish(process)
        assert time.monotonic() - began < 10
    assert (done.exit_code, done.codes) == (130, ["interrupted"]), done
    assert not topic_exists(job.servers, job.name)


@pytest.mark.slow
def test_signal_in_mid_run_while_a_foreign_transaction_hides_progress(job: Job) -> None:
    """Breaks when the verdict of an interrupted run waits for transactions that are not ours."""
    write_files(job, files=2, rows=8_000)
    offsets_topic = _with_own_offsets_topic(job)
    job.edit_spec('timeout = "2s"', 'timeout = "20s"')
    process = start_held(job, "task-before-commit=sleep:30@2", env=COLD)
    with _open_transaction(job, offsets_topic):
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        done = finish(process)
        assert time.monotonic() - began < 10
        assert done.exit_code == 130, done
        assert open_transactions(job, offsets_topic) == []
    assert job.records()
    assert_positions(job, offsets_topic)


def _assert_held_up_by(done: Done, foreign: str) -> None:
    assert (done.exit_code, done.codes) == (5, ["offsets-held-up"]), done
    assert f'"{foreign}"' in done.envelope["errors"][0]["message"]
    assert "Traceback" not in done.stderr


# ---- topics that are gone, or others than before -------------------------------------------------------------------


@pytest.mark.slow
def test_complete_job_and_its_topic_deleted_and_made_again(job: Job) -> None:
    """P6. Breaks when a finished run writes, or when "nothing to do" is said of a topic that does not hold the records."""
    write_files(job, files=2, rows=3_000)
    first = job.run()
    assert (first.exit_code, first.data["records_sent"]) == (0, 6_000), first
    before = high_watermarks(job.servers, job.name)

    again = job.run()

    assert (again.exit_code, again.data["records_sent"]) == (0, 0), again
    assert high_watermarks(job.servers, job.name) == before
    assert_exact(job)

    delete_topic(job.servers, job.name)
    _assert_refused(job.run(), "topic-recreated")
    assert not topic_exists(job.servers, job.name), "a topic that was deleted on purpose was made anew"

    _create_topic(job, NewTopic(job.name, num_partitions=TOPIC_PARTITIONS, replication_factor=1))
    _assert_refused(job.run(), "topic-recreated")
    assert sum(high_watermarks(job.servers, job.name)) == 0

    anew = job.run("run", "--from-scratch")
    assert (anew.exit_code, anew.data["records_sent"]) == (0, 6_000), anew
    assert_exact(job)
    assert job.run().data["records_sent"] == 0


@pytest.mark.slow
def test_topic_made_again_in_mid_run(job: Job) -> None:
    """P9. Breaks when the verdict does not ask whether the topic is still the one that the records went to."""
    write_files(job, files=1, rows=1_000)
    held = start_held(job, "driver-before-verdict=sleep:8")
    delete_topic(job.servers, job.name)
    _create_topic(job, NewTopic(job.name, num_partitions=TOPIC_PARTITIONS, replication_factor=1))

    done = finish(held)

    assert (done.exit_code, done.codes) == (12, ["topic-recreated"]), done
    _assert_refused(job.run(), "topic-recreated")


@pytest.mark.slow
def test_offsets_topic_deleted(job: Job) -> None:
    """Breaks when lost progress means "start at zero"."""
    write_files(job, files=2, rows=3_000)
    offsets_topic = _with_own_offsets_topic(job)
    assert job.run().exit_code == 0
    before = high_watermarks(job.servers, job.name)
    delete_topic(job.servers, offsets_topic)

    for _ in range(2):
        done = job.run()
        _assert_refused(done, "progress-lost")
        assert "--from-scratch" in done.envelope["errors"][0]["hint"]
    assert high_watermarks(job.servers, job.name) == before

    anew = job.run("run", "--from-scratch")
    assert (anew.exit_code, anew.data["records_sent"]) == (0, 6_000), anew
    twice = sorted(2 * [line.number for line in source_lines(job)])
    assert sorted(job.numbers()) == twice
    assert job.run().data["records_sent"] == 0
    assert high_watermarks(job.servers, job.name) != before


@pytest.mark.slow
@pytest.mark.in_turns("one foreign record each")
def test_partitions_added_to_the_offsets_topic(job: Job) -> None:
    """Breaks when `plan` and `status` see a new job where a run refuses, or `verify` says that there is none.

    Its records lie in partition 0 of one; of two as well, and elsewhere of three.
    """
    job.name = next(
        name for number in range(100) if _partitions(name := f"{job.name}-{number}", 2, 3) in ([0, 1], [0, 2])
    )
    job.write_spec(LINES_SPEC)
    write_files(job, files=2, rows=100)
    name = _with_own_offsets_topic(job, partitions=1)
    assert job.run().exit_code == 0
    admin = AdminClient({"bootstrap.servers": job.servers})
    for count in (2, 3):
        admin.create_partitions([NewPartitions(name, count)])[name].result(30)
        wait_for(lambda count=count: len(end_offsets(job.servers, name)) == count)
        run, plan, audit, status = (job.run(verb) for verb in ("run", "plan", "verify", "status"))
        for done in (run, plan, audit):
            _assert_refused(done, "pinned")
            assert f"was 1 in the job's earlier runs and is {count} now" in done.envelope["errors"][0]["message"]
            assert done.envelope["errors"] == run.envelope["errors"]
        assert {file["state"] for file in plan.data["files"]} == {"done"}
        assert (status.exit_code, status.data["run"], status.data["state"]) == (0, 2, "failed"), (
            status
        )  # it claimed where it was
        assert (status.data["files_done"], status.data["records_total"]) == (2, 200)
        assert status.data["refused"] == run.envelope["errors"][0]
    assert "would refuse: the partition count of the offsets topic" in run_text(job, "status").stdout
    never = job.run("status", "--set", "name=another")
    assert (never.exit_code, never.codes) == (10, ["no-such-job"]), never


def _partitions(job: str, *counts: int) -> list[int]:
    return [offsets.partition_of(job, count) for count in counts]


def _assert_refused(done: Done, code: str) -> None:
    assert (done.exit_code, done.codes) == (12, [code]), done
    assert "nothing was sent" in done.envelope["errors"][0]["hint"]
