"""The wire form of the offsets topic's records: what is written is read again, and nothing else is."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from eosingest.protocol.offsets import record, wire
from eosingest.protocol.offsets.dead_letters import DeadLetterPin, DeadLetters
from eosingest.protocol.offsets.gap import GapRecord
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
    ScopePin,
    key_of,
    run_key,
    split_id_of,
)
from eosingest.protocol.offsets.scope_piece import ScopePiece
from eosingest.protocol.source import PositionKind
from tests.support.builders import control_record, fingerprint, offset_record, pinned, split_id

PINNED = pinned(root="/däta")
CONTROL = control_record(
    3,
    tasks_alive=8,
    pinned=PINNED,
    pin_open=True,
    digest={"transform": "0f", "version.spark": "4.0"},
    schema="id BIGINT, `ünï` STRING",
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


# ---- keys --------------------------------------------------------------------------------------------------------


def test_keys_have_the_form_of_connects_own_offsets_topic() -> None:
    assert record.split_key("job", split_id("a/ü.json", 0)) == '["job",{"file":"a/ü.json","start":0}]'.encode()
    assert record.control_key("job") == b'["job",{"control":"run"}]'
    assert record.settled_key("job") == b'["job",{"control":"settled"}]'
    assert record.claim_key("job", 3) == b'["job",{"task":3}]'
    assert OFFSET.key("job") == record.split_key("job", split_id(NAME, START))


def test_keys_are_read_again() -> None:
    assert key_of("job", record.control_key("job")) == {"control": "run"}
    assert key_of("job", record.claim_key("job", 3)) == {"task": 3}
    assert key_of("job", OFFSET.key("job")) == {"file": NAME, "start": START}
    assert split_id_of("job", OFFSET.key("job")) == OFFSET.split


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

LETTERS = DeadLetters(2, 3, 4, (1 << 64) - 1)
PIN = DeadLetterPin("dead", "dead-id", (7, 0), 5, LETTERS)
RECORDS: dict[str, wire.Record] = {
    "control": CONTROL,
    "control with all": replace(
        CONTROL, scope=ScopePin("ab", 2), encodings='{"value":{}}', dead_letters=PIN, schema=None
    ),
    "claim": CLAIM,
    "run": RunRecord(7, "today", ended=True),
    "offset": OFFSET,
    "offset with letters": replace(
        OFFSET, dead=LETTERS, position_kind=PositionKind.KEY, position=["k", 3], row_records=3
    ),
    "scope": ScopePiece('{"ä":1}'),
    "gap": GapRecord("orders-0@1500", "offsets 3 to 9", 6, 2, "today"),
}


def key_fields(record: wire.Record) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.in_key}


@pytest.mark.parametrize("kind", RECORDS)
def test_what_is_written_is_read_again(kind: str) -> None:
    written = RECORDS[kind]
    assert type(written).decode(written.encode(), **key_fields(written)) == written


@pytest.mark.parametrize("position_kind", PositionKind)
def test_offset_records_of_every_kind_of_position_are_read_again(position_kind: PositionKind) -> None:
    written = replace(OFFSET, position_kind=position_kind)
    assert OffsetRecord.decode(written.encode(), split=OFFSET.split) == written


def test_an_offset_record_as_it_is_on_the_wire() -> None:
    assert json.loads(OFFSET.encode()) == {
        "v": 1,
        "bounds": {"length": 1000},
        "position": 42,
        "done": False,
        "rows": 42,
        "records": 41,
        "checksum": "fffffffffffffffe",
        "metadata_checksum": "0000000000000000",
        "version": {"length": 5000, "mtime": 1_700_000_000_123, "content": "00ff"},
        "run": 3,
        "task": 7,
        "sequence": 9,
        "position_kind": "rows",
        "row_records": None,
        "dead": None,
    }


def test_claim_and_control_record_as_they_are_on_the_wire() -> None:
    assert json.loads(CLAIM.encode()) == {"v": 1, "run": 3, "started": CLAIM.started, "attempt": 12}
    control = json.loads(CONTROL.encode())
    assert control.keys() == {"v", *ControlRecord.__dataclass_fields__}
    assert (control["v"], control["run"], control["state"], control["tasks_alive"]) == (1, 3, "running", 8)
    assert control["pinned"] == vars(PINNED)
    assert control["audit"] == {
        "start": [7, 0, 1 << 40],
        "end": [9, 0, 1 << 41],
        "retired_records": 3,
        "retired_checksum": "fffffffffffffffe",
    }


def edited(value: bytes, **more: Any) -> bytes:
    return json.dumps({**json.loads(value), **more}).encode()


@pytest.mark.parametrize("version", [wire.VERSION - 1, wire.VERSION + 1, 99])
@pytest.mark.parametrize("kind", RECORDS)
def test_another_version_is_refused(kind: str, version: int) -> None:
    written = RECORDS[kind]
    with pytest.raises(wire.VersionError, match=f"is {version}") as caught:
        type(written).decode(edited(written.encode(), v=version), **key_fields(written))
    assert caught.value.code == "newer-format"
    assert ("upgrade" in caught.value.hint) is (version > wire.VERSION)


MAY_BE: dict[str, tuple[type, ...]] = {  # types of a field beside the one that it has in a record above
    "schema": (str, type(None)),
    "position": (int, str, list),
    "row_records": (int, type(None)),
    **dict.fromkeys(("end", "scope", "dead_letters", "dead", "retired"), (type(None),)),
}


def damages(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the value with a field more, without each of its fields, and with each field of each other type."""
    yield {**value, "later": 1}
    for name, found in value.items():
        yield {other: kept for other, kept in value.items() if other != name}
        if isinstance(found, dict) and name not in ("bounds", "version", "digest", "versions"):
            yield from ({**value, name: part} for part in damages(found))
        for wrong in (None, True, 1, 1.5, "x", ["x"], {"x": []}):
            if type(wrong) is not type(found) and type(wrong) not in MAY_BE.get(name, ()):
                yield {**value, name: wrong}


@pytest.mark.parametrize("kind", RECORDS)
def test_a_record_with_a_field_missing_too_many_or_of_another_type_is_damaged(kind: str) -> None:
    written = RECORDS[kind]
    for damaged in damages(json.loads(written.encode())):
        with pytest.raises(wire.RecordError) as caught:
            type(written).decode(json.dumps(damaged).encode(), **key_fields(written))
        assert caught.value.code == "damaged-record", damaged


@pytest.mark.parametrize(
    "value",
    [b"", b"\xff", b"no JSON", b"[1]", b"1", b"null", b"{}", b'{"v":null}', b'{"v":"1"}', b'{"v":true}', b'{"v":1.0}',
     b'{"v":1}', b"[" * 100_000, b'{"v":1,"run":' + b"9" * 5_000 + b"}"],
)  # fmt: skip
def test_what_is_no_record_is_damaged(value: bytes) -> None:
    for written in RECORDS.values():
        with pytest.raises(wire.RecordError) as caught:
            type(written).decode(value, **key_fields(written))
        assert caught.value.code == "damaged-record"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("state", "ended"),
        ("position_kind", "days"),
        ("position", "five"),
        ("rows", -1),
        ("task", -2),
        ("checksum", "5"),
        ("checksum", "0x00000000000000"),
        ("metadata_checksum", None),
    ],
)
def test_a_field_that_cannot_be_is_damaged(field: str, value: object) -> None:
    written = CONTROL if field == "state" else OFFSET
    with pytest.raises(wire.RecordError, match=field):
        type(written).decode(edited(written.encode(), **{field: value}), **key_fields(written))


def test_a_run_record_keeps_its_number_in_the_key() -> None:
    assert run_key("job", 7) == b'["job",{"run":7}]'
    assert run_key("job", 7, ended=True) == b'["job",{"ended":7}]'
    assert json.loads(RunRecord(7, "today", ended=True).encode()) == {"v": 1, "started": "today"}


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
