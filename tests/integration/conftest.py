"""One real Apache Kafka for the whole session, in a folder of its own; a job per test."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eosingest import broker
from tests.integration.harness import Job


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Bootstrap servers of the broker."""
    folder = tmp_path_factory.mktemp("broker")
    up = broker.up(
        directory=folder,
        # Transactions that time out are aborted soon after, not up to 10 s later.
        properties={"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"},
    )
    yield up.bootstrap_servers
    broker.down(directory=folder, remove_data=True)


@pytest.fixture
def make_job(tmp_path: Path, servers: str, request: pytest.FixtureRequest) -> Callable[[], Job]:
    """Make a job with a name that no other test uses."""

    def make() -> Job:
        test = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:40].strip("-")
        name = f"{test}-{uuid.uuid4().hex[:6]}"
        return Job(tmp_path / name, servers, name)

    return make


@pytest.fixture
def job(make_job: Callable[[], Job]) -> Job:
    """One job."""
    return make_job()
