"""The planned splits as columns: every one comes back as it went in, and a million of them stay small."""

from __future__ import annotations

import pickle

import pytest

from eosingest.protocol.offsets.record import POSITION_KIND_BYTES, OffsetRecord
from eosingest.protocol.source import Fingerprint
from eosingest.protocol.split_table import SplitTable
from eosingest.protocol.task_contract import TaskSplit

ONE, OTHER = Fingerprint(300, 1_700_000_000_123, "ab" * 16), Fingerprint(2**40, 5, "")


def committed(split: TaskSplit) -> OffsetRecord:
    receipt = {"rows": 7, "records": 6, "checksum": 2**64 - 1, "metadata_checksum": 3}
    return OffsetRecord(
        split.file,
        split.start,
        split.length,
        position=41,
        done=False,
        fingerprint=split.fingerprint,
        run=2,
        task=3,
        sequence=9,
        position_kind=POSITION_KIND_BYTES,
        **receipt,
    )


def splits() -> dict[int, TaskSplit]:
    plain = [
        TaskSplit(name, start, 100, fingerprint, None)
        for name, fingerprint in (("a/b", ONE), ("ünï\u2028 c", OTHER), ("a/b2", ONE), ("\udcff", ONE))
        for start in (0, 100, 2**41)
    ]
    keys = (-(2**63), 2**63 - 1, 0, -1, 1, 17, -99, 5, 6, 7, 8, 9)
    table = dict(zip(keys, plain, strict=True))
    return {key: TaskSplit(*vars(split).values()) for key, split in table.items()}


def test_every_split_comes_back_as_it_went_in() -> None:
    """Breaks when a row finds another split than its own: its records would be counted, or left out, by a wrong offset."""
    known = splits()
    known[17] = TaskSplit(**{**vars(known[17]), "committed": committed(known[17])})
    table = pickle.loads(pickle.dumps(SplitTable(known)))
    assert dict(table) == known


@pytest.mark.parametrize("key", [2, -2, 2**63 - 2, -(2**63) + 1])
def test_a_hash_of_no_planned_split_is_not_found(key: int) -> None:
    assert SplitTable(splits()).get(key) is None
    assert SplitTable({}).get(key) is None


def test_a_file_is_told_once() -> None:
    """Breaks when splits become objects again: a million took a GB in each worker."""
    name = "n" * 50
    many = {number: TaskSplit(name, number * 100, 100, ONE, None) for number in range(10_000)}
    assert len(pickle.dumps(SplitTable(many))) < 40 * len(many)
