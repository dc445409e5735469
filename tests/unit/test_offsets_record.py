"""The wire form of the offsets topic's records: what is written is read again, by later and earlier releases too."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace
from typing import Any

import pytest

from eosingest.errors import FatalError
from eosingest.protocol.offsets import record
from eosingest.protocol.offsets.record import (
    CLAIMED,
    COMPLETE,
    FAILED,
    RUNNING,
    SETTLING,
    TRANSITIONS,
    Audit,
    Claim,
    ControlRecord,
    OffsetRecord,
    RunRecord,
    decode_claim,
    decode_control,
    decode_key,
    decode_offset,
    decode_run,
    run_key,
    split_id_of,
)
from eosingest.protocol.source import Json
from tests.support.builders import control_record, fingerprint, offset_record, pinned, split_id

PINNED = pinned(root="/däta")
CONTROL = ControlRecord(
    run=3,
    started="2026-11-20T00:00:00Z-1a2b",
    state=RUNNING,
    tasks_alive=8,
    pinned=PINNED,
    pinned_since=2,
    pin_open=True,
    digest={"transform": "0f", "version.spark": "4.0"},
    split_size=32 << 20,
    schema="id BIGINT, `ünï` STRING",
    versions={"eosingest": "0.1"},
    host="host",
    pid=77,
    time="2026-11-20T00:00:01Z",
    records_total=12_345_678_901,
    audit=Audit(start=(7, 0, 1 << 40), end=(9, 0, 1 << 41), retired_records=3, retired_checksum=(1 << 64) - 2),
)
NAME, START = '2026/ä "quoted" \\ 1.jsonl', 33_554_432
OFFSET = offset_record(
    NAME,
    START,
    1000,
    rows=42,
    records=41,
    checksum=(1 << 64) - 2,
    read=fingerprint(5000, mtime_ms=1_700_000_000_123, content="00ff"),
    run=3,
    task=7,
    sequence=9,
)
CLAIM = Claim(3, "2026-11-20T00:00:00Z-1a2b", 12)


def read_offset(written: OffsetRecord, job: str = "job") -> OffsetRecord:
    return decode_offset(split_id_of(job, written.key(job)), written.encode())


# ---- keys --------------------------------------------------------------------------------------------------------


def test_keys_have_the_form_of_connects_own_offsets_topic() -> None:
    assert record.split_key("job", split_id("a/ü.json", 0)) == '["job",{"file":"a/ü.json","start":0}]'.encode()
    assert record.control_key("job") == b'["job",{"control":"run"}]'
    assert record.settled_key("job") == b'["job",{"control":"settled"}]'
    assert record.claim_key("job", 3) == b'["job",{"task":3}]'
    assert OFFSET.key("job") == record.split_key("job", split_id(NAME, START))


def test_keys_are_read_again() -> None:
    assert decode_key(record.control_key("job")) == {"control": "run"}
    assert decode_key(record.claim_key("job", 3)) == {"task": 3}
    assert decode_key(OFFSET.key("job")) == {"file": NAME, "start": START}


def test_no_key_is_4_bytes_long() -> None:
    """A key of 4 bytes trips the broker's log cleaner on a transactional topic (KAFKA-14055)."""
    jobs = [*"abc.-_0", "ab", "a" * 100]
    for job in jobs:
        keys = [record.control_key(job), record.claim_key(job, 0), record.split_key(job, split_id("", 0))]
        assert min(len(key) for key in keys) > 4


def test_keys_of_different_things_never_meet() -> None:
    jobs = ["a", "ab", "a.b", "a-", "0"]
    files = ["", "f", "f1", '","start":0}]', "ä", "a/b", "a\nb"]
    keys = [record.control_key(job) for job in jobs]
    keys += [record.claim_key(job, task) for job in jobs for task in (0, 1, 10)]
    keys += [record.split_key(job, split_id(file, start)) for job in jobs for file in files for start in (0, 1, 10)]
    assert len(set(keys)) == len(keys)


def test_the_prefix_is_the_jobs_alone() -> None:
    jobs = ["a", "ab", "a.b", "b", "aa"]
    for mine, other in itertools.product(jobs, jobs):
        for key in (record.control_key(other), record.claim_key(other, 1), record.split_key(other, split_id("f", 0))):
            assert key.startswith(record.key_prefix(mine)) is (mine == other)


# ---- values ------------------------------------------------------------------------------------------------------


def test_control_record_round_trip() -> None:
    assert decode_control(CONTROL.encode()) == CONTROL
    bare = control_record(1, CLAIMED)
    assert decode_control(bare.encode()) == bare


def test_claim_round_trip() -> None:
    assert decode_claim(CLAIM.encode()) == CLAIM


@pytest.mark.parametrize("checksum", [0, 1, (1 << 63), (1 << 64) - 1])
@pytest.mark.parametrize("done", [True, False])
def test_offset_record_round_trip(checksum: int, done: bool) -> None:
    for metadata in (None, 0, checksum):
        written = replace(OFFSET, checksum=checksum, done=done, metadata_checksum=metadata)
        assert read_offset(written) == written


def test_offset_record_as_it_is_on_the_wire() -> None:
    """A golden value: what is in topics out there must be read for ever."""
    assert json.loads(OFFSET.encode()) == {
        "v": 1,
        "length": 1000,
        "position": 42,
        "done": False,
        "rows": 42,
        "records": 41,
        "checksum": "fffffffffffffffe",
        "fingerprint": {"length": 5000, "mtime": 1_700_000_000_123, "content": "00ff"},
        "run": 3,
        "task": 7,
        "sequence": 9,
        "position_kind": "rows",
    }
    assert json.loads(replace(OFFSET, metadata_checksum=254).encode())["metadata_checksum"] == "fe"


def test_claim_and_control_record_as_they_are_on_the_wire() -> None:
    assert json.loads(CLAIM.encode()) == {"v": 1, "run": 3, "started": CLAIM.started, "attempt": 12}
    control = json.loads(CONTROL.encode())
    assert (control["v"], control["run"], control["state"], control["tasks_alive"]) == (1, 3, "running", 8)
    assert control["pinned"] == {
        "format": "json",
        "root": "/däta",
        "topic": "orders",
        "topic_id": "topic-id",
        "cluster_id": "cluster-id",
        "offsets_partitions": 5,
        "prefix": "eosingest.",
        "id_format": 1,
        "offsets_topic_id": "",
    }


def test_what_an_audit_needs_as_it_is_on_the_wire() -> None:
    assert json.loads(CONTROL.encode())["audit"] == {
        "start": [7, 0, 1 << 40],
        "end": [9, 0, 1 << 41],
        "retired_records": 3,
        "retired_checksum": "fffffffffffffffe",
    }


def test_encodings_as_they_are_on_the_wire() -> None:
    """A control record of a job without them has no such field, as those of earlier releases."""
    assert "encodings" not in json.loads(CONTROL.encode())
    encoded = replace(CONTROL, encodings='{"value":{}}')
    assert json.loads(encoded.encode())["encodings"] == '{"value":{}}'
    assert decode_control(encoded.encode()) == encoded


def test_a_control_record_of_a_release_that_kept_no_audit_is_read() -> None:
    before = json.loads(CONTROL.encode())
    del before["audit"]
    found = decode_control(json.dumps(before).encode())
    assert found == replace(CONTROL, audit=Audit(start=None, end=None, retired_records=0, retired_checksum=0))


def edited(value: bytes, **more: Any) -> bytes:
    return json.dumps({**json.loads(value), **more}).encode()


def test_fields_of_a_later_release_are_passed_over() -> None:
    assert decode_claim(edited(CLAIM.encode(), later="x")) == CLAIM
    pinned = {**json.loads(CONTROL.encode())["pinned"], "later": 1}
    assert decode_control(edited(CONTROL.encode(), later=["x"], pinned=pinned)) == CONTROL
    assert decode_offset(OFFSET.split, edited(OFFSET.encode(), later={})) == OFFSET


@pytest.mark.parametrize("version", [6, 99, None, "1"])
def test_a_newer_format_is_refused(version: object) -> None:
    for value, decode in (
        (CLAIM.encode(), decode_claim),
        (CONTROL.encode(), decode_control),
        (OFFSET.encode(), lambda value: decode_offset(split_id("f", 0), value)),
    ):
        with pytest.raises(FatalError) as caught:
            decode(edited(value, v=version))
        assert (caught.value.exit_code, caught.value.code) == (7, "newer-format")
        assert str(version) in caught.value.message
        assert "upgrade" in caught.value.hint


def test_an_older_format_is_read() -> None:
    assert decode_claim(edited(CLAIM.encode(), v=0)) == CLAIM


@pytest.mark.parametrize("kind", ["rows", "bytes", "offset", "row-index", "key"])
@pytest.mark.parametrize("bounds", [{"length": 5}, {"end": 7}, {"upper": "z", "length": 2}])
def test_records_of_other_sources_are_not_read_by_releases_that_know_files_alone(
    kind: str, bounds: dict[str, Json]
) -> None:
    """Breaks when an earlier release could take a position, or bounds, for what it knows."""
    written = replace(OFFSET, position_kind=kind, bounds=bounds, position=["k", 3] if kind == "key" else 3)
    assert read_offset(written) == written
    value = json.loads(written.encode())
    known = bounds.keys() == {"length"}
    assert value["v"] == ({"rows": 1, "bytes": 2}.get(kind, 3) if known else 3)
    assert ("length" in value) is known


@pytest.mark.parametrize("kind", ["bytes", "offset"])
def test_a_position_within_a_source_row(kind: str) -> None:
    """Breaks when what was sent of a source row is lost on the wire, or read as a whole row by an earlier release."""
    written = replace(OFFSET, position_kind=kind, position=[17, 4], row_records=3)
    assert read_offset(written) == written
    value = json.loads(written.encode())
    assert (value["v"], value["position"], value["row_records"]) == (3, [17, 4], 3)
    assert "row_records" not in json.loads(replace(written, row_records=None).encode())


def test_an_unknown_kind_of_position_is_refused() -> None:
    with pytest.raises(FatalError) as caught:
        decode_offset(OFFSET.split, edited(OFFSET.encode(), position_kind="days"))
    assert caught.value.code == "newer-format"


def test_a_run_record_keeps_its_number_in_the_key() -> None:
    assert run_key("job", 7) == b'["job",{"run":7}]'
    assert run_key("job", 7, ended=True) == b'["job",{"ended":7}]'
    for mine in (RunRecord(7, "today", ended=True), RunRecord(7, "today", ended=False)):
        assert decode_run(decode_key(mine.key("job")), mine.encode()) == mine
        # What the key says is not asked of the value: other releases may have written it there.
        assert decode_run(decode_key(mine.key("job")), edited(mine.encode(), ended=not mine.ended, run=8)) == mine


# ---- transitions -------------------------------------------------------------------------------------------------

STATES = [CLAIMED, RUNNING, SETTLING, COMPLETE, FAILED]
ALLOWED = {
    (CLAIMED, RUNNING),
    (CLAIMED, COMPLETE),
    (CLAIMED, FAILED),
    (RUNNING, SETTLING),
    (SETTLING, COMPLETE),
    (SETTLING, FAILED),
}


@pytest.mark.parametrize(("before", "after"), list(itertools.product(STATES, STATES)))
def test_transitions(before: str, after: str) -> None:
    assert replace(CONTROL, state=before).may_become(after) is ((before, after) in ALLOWED)


def test_every_way_through_the_table_ends_and_never_comes_back() -> None:
    assert set(TRANSITIONS) == set(STATES)
    for seed in range(200):
        choose = random.Random(seed)
        way = [CLAIMED]
        while TRANSITIONS[way[-1]]:
            way.append(choose.choice(sorted(TRANSITIONS[way[-1]])))
            assert len(way) <= 4
        assert way[-1] in (COMPLETE, FAILED)
        assert len(set(way)) == len(way)
        assert way.count(RUNNING) <= 1
