"""Recognizes other eosingest jobs that wrote to the audited topic, so that their records count as no other producer's.

app/co_writers.py reads all jobs from the offsets topic. If a new job is run each day, its topic has the records of all these
jobs; the jobs whose extents (offset ranges) overlap are counted together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from eosingest.audit.receipts import Extent, expected_of, extents
from eosingest.errors import FatalError
from eosingest.kafka.ports import LogRecord, OffsetRange
from eosingest.protocol.offsets import record
from eosingest.protocol.offsets.state import JobState
from eosingest.records.checksum import Totals


@dataclass(frozen=True)
class SisterJob:
    """A job that wrote to the same topic: `expected` is the sum of its receipts, `extents` are where its records are."""

    name: str
    prefix: str
    expected: Totals
    extents: tuple[Extent, ...]


def fold_jobs(records: Iterable[LogRecord], place: str) -> dict[str, JobState]:
    """Return the state of every job that has a control record, by name; records of others are ignored.

    Raises FatalError as `JobState.fold` does: if a record of a job cannot be read, the records that the job sent are unknown.
    """
    states: dict[str, JobState] = {}
    refused: dict[str, FatalError] = {}
    jobs = set()
    for entry in records:
        job = record.job_of(entry.key)
        if job is None:
            continue
        if entry.key in (record.control_key(job), record.settled_key(job)):
            jobs.add(job)
        try:
            states.setdefault(job, JobState(job)).fold([entry], place)
        except FatalError as error:
            refused.setdefault(job, error)
    for job in sorted(jobs & refused.keys()):
        raise refused[job]
    return {job: states[job] for job in jobs}


def sister_jobs(
    states: Iterable[JobState], mine: str, topic_id: str, ranges: Sequence[OffsetRange]
) -> tuple[SisterJob, ...]:
    """Return the jobs except `mine` that wrote to the topic with this id, sorted by name."""
    found = []
    for state in states:
        control = state.settled
        if control is None or state.job == mine or control.pinned.topic_id != topic_id:
            continue
        expected = expected_of(state.offsets.values(), control.audit)
        own = tuple(extents(control.audit, ranges))
        found.append(SisterJob(state.job, control.pinned.prefix, expected, own))
    return tuple(sorted(found, key=lambda job: job.name))


def together(own: Sequence[Extent], sisters: Iterable[SisterJob]) -> tuple[list[Extent], tuple[SisterJob, ...]]:
    """Return the extents of this job joined with those of all jobs that overlap them, directly or through another job, and
    these jobs.

    This job's extents are extended to the high watermark, since later jobs wrote after its end.
    """
    joined = [replace(extent, end=max(extent.end, extent.high_watermark)) for extent in own]
    left, taken = list(sisters), list[SisterJob]()
    while reaching := [job for job in left if _meet(joined, job.extents)]:
        for job in reaching:
            joined = [_joined(one, other) for one, other in zip(joined, job.extents, strict=True)]
        taken += reaching
        left = [job for job in left if job not in reaching]
    return joined, tuple(sorted(taken, key=lambda job: job.name))


def _meet(one: Iterable[Extent], other: Iterable[Extent]) -> bool:
    return any(a.begins < b.end and b.begins < a.end for a, b in zip(one, other, strict=True))


def _joined(one: Extent, other: Extent) -> Extent:
    return replace(
        one, begins=min(one.begins, other.begins), start=min(one.start, other.start), end=max(one.end, other.end)
    )
