"""Other jobs in the topic of an audit: which are counted, and from where to where the topic is read then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eosingest.audit.co_writers import SisterJob, fold_jobs, sister_jobs, together
from eosingest.audit.receipts import Extent
from eosingest.errors import FatalError
from eosingest.kafka.ports import LogRecord, OffsetRange
from eosingest.protocol.offsets.record import (
    COMPLETE,
    Audit,
    ControlRecord,
    control_key,
    settled_key,
)
from eosingest.records.checksum import Totals
from tests.support.builders import control_record, offset_record, pinned

PINNED = pinned(prefix="p.")
CONTROL = control_record(1, COMPLETE, pinned=PINNED, audit=Audit(start=(5,), end=(9,), retired_records=1))
RANGES = [OffsetRange(0, 20)]


def log_of(job: str, control: ControlRecord, records: int = 3) -> list[LogRecord]:
    offset = offset_record(rows=3, records=records, checksum=7, done=True)
    entries = [
        (offset.key(job), offset.encode()),
        (settled_key(job), control.encode()),
        (control_key(job), control.encode()),
    ]
    return [LogRecord(number, key, value) for number, (key, value) in enumerate(entries)]


def test_every_job_is_folded_by_itself() -> None:
    states = fold_jobs([*log_of("a", CONTROL), *log_of("b", CONTROL, 4)], "offsets-2")
    assert {job: state.records_total for job, state in states.items()} == {"a": 3, "b": 4}


@pytest.mark.parametrize(
    ("key", "value"),
    [(control_key("b"), b'{"v":99}'), (offset_record().key("b"), b"no JSON"), (b'["b",{"later":1}]', b'{"v":1}')],
    ids=["newer", "damaged", "unknown"],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_job_with_a_record_that_cannot_be_read_is_refused(key: bytes, value: bytes, first: bool) -> None:
    """Breaks when its records in the topic count as another producer's: an audit would judge by half of the receipts."""
    bad = LogRecord(9, key, value)
    records = [bad, *log_of("b", CONTROL)] if first else [*log_of("b", CONTROL), bad]
    with pytest.raises(FatalError, match=r'^offsets-2, offset 9, key \["b",'):
        fold_jobs([*log_of("a", CONTROL), *records], "offsets-2")


def test_records_of_strangers_are_ignored() -> None:
    """Breaks when a record that somebody else keeps in the offsets topic, as Kafka Connect does there, ends an audit."""
    keys = [b"", b"\xff\xfe", b"no JSON", b"{}", b"[]", b'["a"]', b"[1,{}]", b"[" * 100_000, b'["connector",{"x":1}]']
    keys += [b'["connector",{"server":"s","db":"d"}]', b'["connector",{"control":"x"}]']
    strangers = [LogRecord(9, key, value) for key in keys for value in (b"\xff", b'{"v":99}', None)]
    assert list(fold_jobs([*strangers, *log_of("a", CONTROL), *strangers], "offsets-2")) == ["a"]


def test_jobs_that_wrote_to_this_topic() -> None:
    """Breaks when the audited job, or one of another topic, is counted."""
    states = fold_jobs(
        [
            *log_of("mine", CONTROL),
            *log_of("other-topic", replace(CONTROL, pinned=replace(PINNED, topic_id="made again"))),
            *log_of("sister", CONTROL),
        ],
        "offsets-2",
    )
    (found,) = sister_jobs(states.values(), "mine", "topic-id", RANGES)
    assert (found.name, found.prefix, found.expected) == ("sister", "p.", Totals(4, 7))
    assert found.extents == (Extent(0, 5, 5, 9, 20),)


def extent(begins: int, end: int, held: int = 0) -> Extent:
    return Extent(0, begins, max(begins, held), end, 100)


def sister(name: str, *own: Extent) -> SisterJob:
    return SisterJob(name, "p.", Totals(1, 1), own)


def test_jobs_that_run_into_one_another_are_read_together() -> None:
    """Breaks when a job that ended before ours began is asked for records that retention may have taken."""
    before, into, further = (
        sister("before", extent(0, 10)),
        sister("into", extent(15, 30)),
        sister("far", extent(12, 16)),
    )
    joined, taken = together([extent(20, 40)], [before, into, further])
    assert [job.name for job in taken] == ["far", "into"]
    assert joined == [Extent(0, 12, 12, 100, 100)]


def test_what_lies_behind_our_end_is_read_too() -> None:
    later = sister("later", extent(60, 70))
    joined, taken = together([extent(20, 40)], [later])
    assert (joined, taken) == ([extent(20, 100)], (later,))


def test_retention_that_took_a_sisters_beginning_is_told() -> None:
    joined, _ = together([extent(20, 40)], [sister("into", extent(10, 30, held=25))])
    assert (joined[0].begins, joined[0].start, joined[0].removed) == (10, 20, 10)
