"""The protocol on the oldest Kafka that is promised, and on the last before 4.0: kills, fencing, hanging transactions, verify.

Each test is one of another module, played on another broker; `make test-brokers` plays all of tests/integration on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eosingest import broker
from eosingest.kafka.broker_versions import OLDEST
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.kafka_python import KafkaPythonAdmin
from tests.integration import test_hanging, test_kills, test_two_runs
from tests.support.harness import LINES_SPEC, Job, assert_refused, topic_exists
from tests.support.held_runs import run_killed_at
from tests.support.job_checks import assert_exact, write_files
from tests.support.older_kafka import TOO_OLD, VERSIONS, kafka_home
from tests.support.shared_broker import running_broker

pytestmark = pytest.mark.in_turns("one broker version each")

folder = test_hanging.folder


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> Iterator[str]:
    """A version that every broker of these tests is of."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAFKA_HOME", str(kafka_home(request.param)))
        yield request.param


@pytest.fixture(scope="module")
def servers(request: pytest.FixtureRequest, version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Bootstrap servers of a broker of that version."""
    with running_broker(request.session, tmp_path_factory) as up:
        assert broker.status(directory=up.directory).version == version
        yield up.bootstrap_servers


def test_the_oldest_is_among_them() -> None:
    assert VERSIONS[0].startswith(f"{OLDEST}.")


@pytest.mark.slow
def test_one_that_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when what an old broker does not know is told in librdkafka's words, behind a claim, or without a version.

    Kafka 2.8 without ZooKeeper has no transactions at all.
    """
    monkeypatch.setenv("KAFKA_HOME", str(kafka_home(TOO_OLD)))
    folder = tmp_path / "broker"
    try:
        job = Job(tmp_path / "job", broker.up(directory=folder).bootstrap_servers, "too-old")
        write_files(job, files=1, rows=10)
        for verb in ("run", "status", "verify"):
            assert_refused(
                job.run(verb), 7, "broker-too-old", f"Apache Kafka {OLDEST} or newer", "DescribeTransactions"
            )
        assert not topic_exists(job.servers, "eosingest-offsets")
    finally:
        broker.down(directory=folder, remove_data=True)


@pytest.mark.slow
def test_the_cluster_has_an_id(servers: str) -> None:
    """Breaks when the id is asked for in a way that only Kafka 3.7 and newer answer."""
    admin = KafkaPythonAdmin(ClientSettings(servers))
    try:
        assert len(admin.cluster_id()) == 22
    finally:
        admin.close()


@pytest.mark.slow
def test_lines_killed_and_verified(job: Job) -> None:
    job.write_spec(LINES_SPEC)
    write_files(job, files=2, rows=9_000)
    run_killed_at(job, "task-after-commit@3")
    run_killed_at(job, "driver-after-fence")
    done, again = job.run(), job.run()
    verified = job.run("verify", "--against-source")
    assert (done.exit_code, again.exit_code, verified.exit_code) == (0, 0, 0), (done, again, verified)
    assert again.data["records_sent"] == 0
    assert_exact(job)


@pytest.mark.slow
def test_rows_with_workers_killed(job: Job) -> None:
    test_kills.test_workers_killed_in_one_run(job)


@pytest.mark.slow
def test_a_zombie_is_fenced(job: Job) -> None:
    test_two_runs.test_frozen_in_mid_transaction_and_woken_after_its_successor(job)


@pytest.mark.slow
def test_a_hanging_transaction(version: str, folder: Path, tmp_path: Path) -> None:
    test_hanging.test_the_way_out_of_a_hanging_transaction(folder, tmp_path)
