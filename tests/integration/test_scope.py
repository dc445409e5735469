"""A source that freezes how it is cut, on a real broker: killed in mid-job and run again, with a scope as large as may be."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from eosingest.app.connection import Connection
from eosingest.host.interruption import never
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.kafka_python import KafkaPythonAdmin
from eosingest.kafka.offsets_reader import LibrdkafkaOffsetsReader
from eosingest.kafka.ports import LogRecord
from eosingest.kafka.producer import ProducerSettings
from eosingest.protocol import scope
from eosingest.protocol.source import Scope, Snapshot
from eosingest.protocol.task_contract import TaskSettings
from eosingest.spark.worker import WorkerKafka
from tests.support.frozen_table import FrozenTables, Tables
from tests.support.simulated_source import template
from tests.support.table_job import TableJob, table_job

OFFSETS, PREFIX, TIMEOUT_S = "eosingest-offsets", "scope.", 10.0


class RealKafka(Connection):
    """A real Kafka as a job over tables has it (`table_job.JobKafka`)."""

    def now(self) -> float:
        return time.time()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def task(self, settings: TaskSettings) -> WorkerKafka:
        return WorkerKafka(settings, ProducerSettings(self.client, settings.topic, TIMEOUT_S), PREFIX)

    def committed(self, topic: str) -> list[LogRecord]:
        found = self.admin.describe_topic(topic)
        records: list[LogRecord] = []
        for partition in range(found.partitions if found is not None else 0):
            with contextlib.closing(LibrdkafkaOffsetsReader(topic, partition, self.client)) as reader:
                end = reader.high_watermark()
                records += reader.read(reader.log_start(), end, committed=True, deadline_s=2 * TIMEOUT_S)
        return records


@pytest.fixture
def job(servers: str) -> Iterator[TableJob]:
    client = ClientSettings(servers, {})
    admin = KafkaPythonAdmin(client, never)
    tables = Tables(next(made for made in map(template, range(24)) if len(made.lengths) > 5), Random("scope"))
    name = f"scope-{uuid.uuid4().hex[:6]}"
    yield table_job(
        RealKafka(client, admin, OFFSETS, TIMEOUT_S, never),
        tables,
        job=name,
        topic=name,
        offsets_topic=OFFSETS,
        prefix=PREFIX,
        bootstrap_servers=servers,
        transaction_timeout_s=TIMEOUT_S,
    )
    admin.close()


def test_a_rerun_cuts_the_same_by_a_scope_of_megabytes(job: TableJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a broker does not take the pieces, a rerun cuts anew, or pieces stay behind `complete`."""
    filling = "x" * (scope.MOST_BYTES - 10_000)
    inner = FrozenTables.plan

    def filled(source: Any, scope: Scope | None, *others: Any) -> Snapshot:
        tables = None if scope is None else {name: bounds for name, bounds in scope.items() if name != "filling"}
        listing = inner(source, tables, *others)
        return replace(listing, scope={**(listing.scope or {}), "filling": filling})

    monkeypatch.setattr(FrozenTables, "plan", filled)
    job.run_killed_at("task-after-commit", 1)
    half = job.state()
    assert half.settled is not None
    assert half.settled.scope is not None
    assert len(half.scope) == half.settled.scope.pieces == 35
    pinned = scope.whole(half.settled.scope, half.scope)
    assert len(job.values()) > 0
    job.run_killed_at("driver-before-verdict")
    assert job.source is not None
    assert {**(job.source.scopes[0] or {}), "filling": filling} == pinned
    for _ in range(3):  # the tables grow meanwhile
        assert job.run().exit_code == 0
        assert job.values() == job.expected()
        assert job.state().scope == {}
