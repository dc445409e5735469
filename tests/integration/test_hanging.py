"""A hanging transaction (KIP-664) and the way out that a run names, on a broker of its own that loses its transaction log."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from eosingest import broker
from eosingest.broker.server import Server
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.kafka_python import KafkaPythonAdmin
from eosingest.kafka.ports import LogRecord
from tests.support.commands import Done, kill_group
from tests.support.harness import COLD, Job, wait_for
from tests.support.held_runs import start_held
from tests.support.job_checks import OFFSETS_TOPIC, assert_exact, assert_positions, offsets_partition, write_files
from tests.support.kafka_tools import commands_in, run_command
from tests.support.raw_kafka import RawKafka

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The folder of a broker, which is up."""
    folder = tmp_path / "broker"
    broker.up(directory=folder)
    yield folder
    broker.down(directory=folder, remove_data=True)


def test_the_way_out_of_a_hanging_transaction(folder: Path, tmp_path: Path) -> None:
    """Breaks when a run waits for ever, sends the user to wait for a timeout, or the command it names does not help."""
    job = Job(tmp_path / "hanging", broker.up(directory=folder).bootstrap_servers, "hanging")
    job.edit_spec('timeout = "10s"', 'timeout = "2s"')
    write_files(job, files=1, rows=8_000)
    process = start_held(job, "task-before-commit=sleep:60@2", env=COLD)
    wait_for(lambda: _is_open(job))
    _lose_the_transaction_log(folder)
    kill_group(process)
    job.servers = broker.up(directory=folder).bootstrap_servers

    held_up = job.run()
    assert (held_up.exit_code, held_up.codes) == (5, ["offsets-held-up"]), held_up
    assert "hanging" in held_up.envelope["errors"][0]["message"]
    shown = job.run("status")
    assert {entry["hanging"] for entry in shown.data["open_transactions"]} == {True}, shown
    _abort_as_told(job, held_up, OFFSETS_TOPIC)

    done = job.run()
    assert done.exit_code == 0, done
    audit = job.run("verify")
    assert (audit.exit_code, audit.codes) == (5, ["topic-held-up"]), audit  # the records hang as the offsets did
    _abort_as_told(job, audit, job.name)
    audit = job.run("verify", "--against-source")
    assert audit.exit_code == 0, audit
    assert_exact(job)
    assert_positions(job)


def test_a_transaction_of_ours_that_its_coordinator_calls_ended(tmp_path: Path) -> None:
    """Breaks when a run commits with a producer id that has records open from before: they would be committed as well.

    The broker does not ask the coordinator whether the transaction is known: so it is not, as where a marker was passed over.
    """
    folder = tmp_path / "broker"
    up = broker.up(directory=folder, properties={"transaction.partition.verification.enable": "false"})
    try:
        job = Job(tmp_path / "ours", up.bootstrap_servers, "ours")
        write_files(job, files=1, rows=2_000)
        assert job.run().exit_code == 0
        raw = RawKafka(up.bootstrap_servers)
        who = raw.init_producer_id("eosingest.ours.0", 60)
        raw.produce_alone(who, job.name, 0, 0, [LogRecord(0, b"k", b"7777777")])
        raw.close()
        write_files(job, files=2, rows=2_000)

        refused = job.run()

        assert (refused.exit_code, refused.codes) == (5, ["hanging-transaction"]), refused
        assert refused.data["records_sent"] == 0 if refused.data else True
        _abort_as_told(job, refused, job.name)
        done = job.run()
        assert done.exit_code == 0, done
        assert_exact(job)
        assert_positions(job)
    finally:
        broker.down(directory=folder, remove_data=True)


def _is_open(job: Job) -> bool:
    """Say whether the offset records of a transaction have arrived."""
    admin = KafkaPythonAdmin(ClientSettings(job.servers))
    try:
        return admin.open_transactions(OFFSETS_TOPIC, offsets_partition(job)) != []
    finally:
        admin.close()


def _lose_the_transaction_log(folder: Path) -> None:
    """Kill the broker, and take away what its coordinators wrote; it starts with empty ones."""
    server = Server(folder)
    pid = server.running_pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: server.running_pid() is None)
    lost = list(folder.glob("**/__transaction_state-*"))
    assert lost
    for log in lost:
        shutil.rmtree(log)


def _abort_as_told(job: Job, done: Done, topic: str) -> None:
    """Run the command of the hint, and again for each further partition that the hint names."""
    hint = done.envelope["errors"][0]["hint"]
    (command,) = commands_in(hint)
    assert f"abort --topic {topic} --partition" in command, done
    first, *others = re.findall(r"--partition \d+ --start-offset \d+", hint)
    for place in (first, *others):
        run_command(command.replace(first, place), job.servers)
