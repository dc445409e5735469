"""One real Apache Kafka for the whole session, in a folder of its own; a job per test."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from tests.support.harness import LINES_SPEC, Job
from tests.support.registry import SchemaRegistry, running
from tests.support.shared_broker import NOT_RUNNING, dead_brokers, running_broker


@pytest.fixture(scope="session")
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Bootstrap servers of the broker."""
    with running_broker(request.session, tmp_path_factory) as up:
        yield up.bootstrap_servers


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where a test failed and a broker is gone, what that one said comes last, behind all that its clients say of it."""
    report = yield
    if report.failed:
        report.sections += dead_brokers(item.session)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it again at the end, where it is not buried under all that failed of it."""
    reports = [*terminalreporter.stats.get("failed", []), *terminalreporter.stats.get("error", [])]
    told = dict.fromkeys(
        (head, text) for report in reports for head, text in report.sections if head.startswith(NOT_RUNNING)
    )
    for head, text in told:
        terminalreporter.section(head)
        terminalreporter.write_line(text)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchemaRegistry]:
    """A schema registry of the module's own: tests of some kill it."""
    with running(tmp_path_factory.mktemp("registry")) as up:
        yield up


@pytest.fixture
def make_job(tmp_path: Path, servers: str, request: pytest.FixtureRequest) -> Callable[[], Job]:
    """Make a job with a name that no other test uses."""

    def make() -> Job:
        test = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:40].strip("-")
        name = f"{test}-{uuid.uuid4().hex[:6]}"
        return Job(tmp_path / name, servers, name)

    return make


@pytest.fixture
def job(make_job: Callable[[], Job], request: pytest.FixtureRequest) -> Job:
    """One job; with the parameter "lines" its records are the lines of its files as they are, read without a JVM."""
    made = make_job()
    if getattr(request, "param", "rows") == "lines":
        made.write_spec(LINES_SPEC)
    return made
