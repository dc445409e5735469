"""What is pinned, for how long, and what is said where it differs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eosingest.errors import ChangedError
from eosingest.protocol import pins
from eosingest.protocol.offsets.record import CLAIMED, FAILED, RUNNING, Audit, OffsetRecord, ScopePin
from tests.support.builders import control_record, job_state, offset_record, pinned

PINNED = pinned()
SETTLED = control_record(
    4,
    FAILED,
    started="4th",
    tasks_alive=6,
    pinned=PINNED,
    pinned_since=3,
    pin_open=True,
    digest={"transform": "aa", "version.spark": "4.0"},
    split_size=64,
    schema="id BIGINT",
    records_total=100,
    audit=Audit(start=(7, 8), end=(9, 9), retired_records=5, retired_checksum=6),
    scope=ScopePin("ff", 2),
    encodings="of the value",
)


def offset(run: int, records: int = 10) -> OffsetRecord:
    return offset_record(rows=5, records=records, run=run)


def test_pins_come_from_the_last_record_that_was_more_than_a_claim() -> None:
    claim = control_record(
        5,
        CLAIMED,
        started="5th",
        tasks_alive=9,
        pinned=replace(PINNED, topic="from an aborted record"),
        pinned_since=5,
        digest={"transform": "from an aborted record"},
        split_size=1,
        records_total=1_000_000,
        audit=Audit(start=(1, 1)),
        host="here",
    )
    carried = pins.carried_forward(claim, SETTLED)
    assert carried == replace(SETTLED, run=5, started="5th", state=CLAIMED, tasks_alive=9, host="here"), (
        "identity and the tasks that may be alive are ours, pins are what was committed"
    )


def test_without_a_settled_record_there_is_nothing_to_carry() -> None:
    claim = replace(SETTLED, state=CLAIMED)
    assert pins.carried_forward(claim, None) is claim


@pytest.mark.parametrize(
    ("pin_open", "runs", "expected"),
    [
        (True, [3], True),
        (True, [1, 4], True),
        (True, [1, 2], False),
        (True, [], False),
        (False, [3, 4], False),
    ],
    ids=["committed under it", "later run", "before it", "nothing committed", "complete since"],
)
def test_the_digest_binds_once_something_was_committed_under_it(
    pin_open: bool, runs: list[int], expected: bool
) -> None:
    offsets = {("f", number): offset(run) for number, run in enumerate(runs)}
    assert pins.in_force(replace(SETTLED, pin_open=pin_open, pinned_since=3), offsets) is expected


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"format": "csv"}, "source.format"),
        ({"root": "/elsewhere"}, "source.root"),
        ({"cluster_id": "another"}, "cluster"),
        ({"topic": "orders2"}, "sink.topic"),
        ({"offsets_partitions": 6}, "partition count"),
        ({"prefix": "other."}, "sink.transactional_id_prefix"),
    ],
)
def test_what_stays_for_the_jobs_life(change: dict[str, str | int], word: str) -> None:
    new = replace(PINNED, **change)  # type: ignore[arg-type]
    with pytest.raises(ChangedError) as caught:
        pins.refuse_other_life(PINNED, new)
    assert caught.value.code == "pinned"
    assert word in caught.value.message
    (name, value), *_ = change.items()
    assert repr(getattr(PINNED, name)) in caught.value.message
    assert repr(value) in caught.value.message
    assert "--from-scratch" in caught.value.hint
    assert "nothing was sent" in caught.value.hint


def test_the_same_life_and_another_topic_id_pass_here() -> None:
    pins.refuse_other_life(PINNED, PINNED)
    pins.refuse_other_life(PINNED, replace(PINNED, topic_id="judged apart"))


def test_a_topic_made_again_is_exit_12() -> None:
    error = pins.written_topic_recreated("orders")
    assert (error.exit_code, error.code) == (12, "topic-recreated")
    assert "orders" in error.message
    assert "--from-scratch" in error.hint


def test_the_same_digest_passes() -> None:
    pins.refuse_other_digest(SETTLED, {"version.spark": "4.0", "transform": "aa"})


@pytest.mark.parametrize(
    ("digest", "named"),
    [
        ({"transform": "bb", "version.spark": "4.0"}, "transform: "),
        ({"version.spark": "4.0"}, "transform: "),
        ({"transform": "aa", "version.spark": "4.0", "record.key": "cc"}, "record.key: "),
        ({"record.key": "cc", "version.spark": "4.0"}, "record.key, transform: "),
    ],
    ids=["other", "gone", "new", "two"],
)
def test_another_meaning_is_named_and_to_be_restored(digest: dict[str, str], named: str) -> None:
    with pytest.raises(ChangedError) as caught:
        pins.refuse_other_digest(SETTLED, digest)
    assert caught.value.code == "spec-changed"
    assert caught.value.message.startswith(named)
    assert "since run 3" in caught.value.message
    assert "restore it" in caught.value.hint
    assert "aa" not in caught.value.message, "hashes say nothing to people"


def test_another_version_is_told_in_words() -> None:
    with pytest.raises(ChangedError) as caught:
        pins.refuse_other_digest(SETTLED, {"transform": "aa", "version.spark": "4.1"})
    assert "version.spark (was 4.0, is 4.1)" in caught.value.message
    assert "finish with the earlier version" in caught.value.hint


@pytest.mark.parametrize(("records", "lost"), [(99, True), (0, True), (100, False), (101, False)])
def test_progress_that_is_gone(records: int, lost: bool) -> None:
    state = job_state(*([offset(4, records)] if records else []))
    control = replace(SETTLED, state=RUNNING)
    if not lost:
        pins.refuse_lost_progress(state, control, PINNED.offsets_topic_id)
        return
    with pytest.raises(ChangedError) as caught:
        pins.refuse_lost_progress(state, control, PINNED.offsets_topic_id)
    assert caught.value.code == "progress-lost"
    assert f"{records} records" in caught.value.message
    assert "100" in caught.value.message


def test_a_control_record_written_for_another_offsets_topic() -> None:
    """A driver that outlives its offsets topic writes on into the new one, as if nothing had been sent before."""
    state = job_state(offset(4, 100))
    mine = replace(SETTLED, pinned=replace(PINNED, offsets_topic_id="first"))
    pins.refuse_lost_progress(state, mine, "first")
    with pytest.raises(ChangedError) as caught:
        pins.refuse_lost_progress(state, mine, "second")
    assert caught.value.code == "progress-lost"


# ---- what an audit of the topic needs ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic_id", "from_scratch", "sent", "retired", "expected"),
    [
        ("topic-id", False, True, 5, False),
        ("topic-id", False, False, 5, False),
        ("topic-id", False, True, 0, False),
        ("topic-id", False, False, 0, True),
        ("another", False, True, 5, True),
        ("topic-id", True, True, 5, True),
    ],
    ids=["goes on", "all tombstoned", "nothing tombstoned", "nothing sent", "another topic", "from scratch"],
)
def test_the_audit_starts_anew_where_nothing_in_the_topic_is_the_jobs(
    topic_id: str, from_scratch: bool, sent: bool, retired: int, expected: bool
) -> None:
    mine = replace(SETTLED, audit=Audit(start=(0,), retired_records=retired))
    assert pins.audit_starts_anew(mine, topic_id, from_scratch=from_scratch, sent=sent) is expected


def test_receipts_of_files_that_are_sent_again_add_up() -> None:
    receipts = [replace(offset(1), records=2, checksum=(1 << 64) - 1), replace(offset(1), records=3, checksum=5)]
    before = Audit(start=(7,), end=(9,), retired_records=10, retired_checksum=100)
    assert pins.retired(before, receipts) == replace(before, retired_records=15, retired_checksum=104)
    assert pins.retired(before, []) == before
