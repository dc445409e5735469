"""The bytes that earlier releases wrote into the offsets topic: read, and written again as they are."""

from __future__ import annotations

import json

import pytest

from eosingest.kafka.protocols import LogRecord
from eosingest.protocol.offsets import record
from eosingest.protocol.offsets.state import JobState
from tests.integration.earlier import NAMES, Earlier


@pytest.mark.parametrize("name", NAMES)
def test_records_of_files_are_written_byte_for_byte_as_before(name: str) -> None:
    """Breaks with any change of the wire format of a job of files: a key, a field, an order, a space."""
    earlier = Earlier.load(name)
    kinds = set[str]()
    for key, value in earlier.offsets:
        assert value is not None
        decoded = record.decode_key(key.encode())
        if "control" in decoded:
            made = record.decode_control(value.encode()).encode()
            written = record.control_key(earlier.name), record.settled_key(earlier.name)
            assert key.encode() in written
        elif "task" in decoded:
            made = record.decode_claim(value.encode()).encode()
            assert key.encode() == record.claim_key(earlier.name, decoded["task"])
        elif "run" in decoded or "ended" in decoded:
            run = record.decode_run(decoded, value.encode())
            made = run.encode()
            assert key.encode() == run.key(earlier.name)
        else:
            offset = record.decode_offset(record.split_id_of(earlier.name, key.encode()), value.encode())
            made = offset.encode()
            assert key.encode() == offset.key(earlier.name)
        assert made.decode() == value
        kinds.add(next(iter(decoded)))
    assert kinds == {"control", "task", "run", "file"}


@pytest.mark.parametrize("name", NAMES)
def test_the_state_that_they_tell(name: str) -> None:
    earlier = Earlier.load(name)
    state = JobState(earlier.name)
    state.fold(
        LogRecord(offset, key.encode(), None if value is None else value.encode())
        for offset, (key, value) in enumerate(earlier.offsets)
    )
    assert state.control is not None
    assert state.control.state == record.RUNNING
    assert state.records_total == len(earlier.sink)
    assert {json.loads(split)["file"] for split in state.offsets} <= {
        f"data/part-{number}.jsonl" for number in range(3)
    }
