"""The conformance suite's last test on a standalone cluster, for the kinds of sources that its executors reach: objects of S3,
files of HDFS, topics, tables.

A task stops in mid-transaction, in its executor; then `kill -9` ends the driver, its JVM and all executors.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sources.conftest import made_subject
from tests.support.commands import kill_group
from tests.support.harness import wait_for
from tests.support.job_checks import open_transactions
from tests.support.sources.jobs import assert_nothing_sent, assert_sent_once, job_over
from tests.support.sources.kinds import SHARED, SHARED_WHOLE
from tests.support.spark_clusters import QUICK_EXECUTORS, Standalone, environment, standalone

pytestmark = [pytest.mark.slow, pytest.mark.in_turns("one kind of source each")]

_END_S = 240  # a cluster of four JVMs on a busy machine of two cores


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("standalone"), workers=2) as up:
        yield up


@pytest.fixture
def cluster(shared: Standalone) -> Standalone:
    """The cluster, without what is left of the test before."""
    shared.heal()
    return shared


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", [*SHARED, *SHARED_WHOLE])
def test_killed_and_run_again(
    kind: str, servers: str, cluster: Standalone, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Breaks when executors cannot read what the driver listed, or the next run does not go on behind what was committed.

    Or where a part is committed of what goes in one transaction.
    """
    subject = made_subject(kind, tmp_path, request)
    marks = tmp_path / "points"
    marks.mkdir()
    conf = f'{QUICK_EXECUTORS}"spark.executor.memory" = "512m", '
    points = f'"spark.executorEnv.EOSINGEST_FAILPOINTS" = "task-before-commit=stop@{1 if subject.whole else 2}", '
    points += f'"spark.executorEnv.EOSINGEST_FAILPOINT_DIR" = "{marks}"'
    job = job_over(subject, tmp_path, servers, f"cluster-{kind}", master=cluster.master, conf=conf + points)
    env = environment(cluster.home)

    first = job.popen(env=env)
    cluster.runs.append(first)
    wait_for(lambda: cluster.held() or first.poll() is not None, timeout_s=_END_S)
    assert first.poll() is None, first.communicate()
    assert open_transactions(job), "the fault is to strike in mid-transaction"
    kill_group(first)
    cluster.heal()
    if subject.whole:
        assert_nothing_sent(job, subject)

    job.run_until_complete(env=env)
    assert job.records()
    assert_sent_once(job, subject, env)
