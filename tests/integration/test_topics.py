"""A topic copied into another one, on a real broker: what read_committed shows of it, once, and every change noticed."""

from __future__ import annotations

import pytest

from tests.support.harness import Job, assert_done, end_offsets
from tests.support.source_topics import Sent, SourceTopic, copy_job, numbered


@pytest.fixture
def source(job: Job) -> SourceTopic:
    return SourceTopic(job.servers, f"{job.name}-from")


def copied(job: Job) -> list[tuple[bytes | None, bytes | None]]:
    """Return keys and values in the sink, partition by partition."""
    return [(record.key, record.value) for record in job.records()]


def plain(records: list[Sent]) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in records]


def test_what_read_committed_shows(job: Job, source: SourceTopic) -> None:
    """Aborted transactions, markers in between and at the end; and what comes later is sent alone.

    Breaks when a range is taken to end with a record, aborted records are sent, or anything is sent twice.
    """
    copy_job(job, source, create="{ partitions = 1 }")
    source.write_in_transaction(numbered(0, 10))
    source.write_in_transaction(numbered(500, 510), commit=False)
    source.write(numbered(10, 15))
    source.write_in_transaction(numbered(15, 20))
    source.write_in_transaction(numbered(600, 603), commit=False)
    assert_done(job.run(), records_sent=20)
    assert copied(job) == plain(numbered(0, 20))

    ends = end_offsets(job.servers, job.name)
    again = job.run()
    assert_done(again, records_sent=0)
    assert end_offsets(job.servers, job.name) == ends
    source.write(numbered(20, 25))
    assert_done(job.run(), records_sent=5)
    assert copied(job) == plain(numbered(0, 25))
