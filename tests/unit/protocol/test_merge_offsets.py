"""Records of done splits that lie side by side become one with `complete`: their sum stays, and nothing is sent again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest

from eosingest.protocol.merge_offsets import folded
from eosingest.protocol.source import Fold, PositionKind
from eosingest.sources import base
from eosingest.sources.files.cuts import FileSplits
from eosingest.sources.topics.ranges import RangeSplit, TopicSplits
from tests.support.builders import offset_record
from tests.support.frozen_table import FrozenTables, Tables
from tests.support.memory_job import MemoryKafka
from tests.support.simulated_source import template
from tests.support.table_job import table_job


class Told(FileSplits):
    """Splits that are merged as it is told."""

    def __init__(self, *made: Fold) -> None:
        self._folds = list(made)

    def merges(self, done: object) -> list[Fold]:
        return self._folds


def test_a_fold_is_the_sum_of_its_parts() -> None:
    """Breaks when an audit of a folded job finds more or less than what was written."""
    parts = [
        replace(
            offset_record(rows=rows, position=10 * rows, position_kind=PositionKind.OFFSET, done=True),
            split=f"s{rows}",
            records=rows + 1,
            checksum=(1 << 64) - rows,
            metadata_checksum=rows,
            run=9 - rows,
            sequence=rows,
        )
        for rows in (1, 2, 5)
    ]
    fold = Fold(("s1", "s2", "s5"), {"end": 60})
    found = folded(Told(fold), {part.split: part for part in parts})  # type: ignore[arg-type]
    (record,) = found.records
    assert found.gone == ("s2", "s5")
    assert (record.split, record.bounds, record.position, record.done) == ("s1", {"end": 60}, 50, True)
    assert (record.rows, record.records, record.checksum) == (8, 11, (1 << 64) - 8)
    assert (record.metadata_checksum, record.run, record.sequence) == (8, 4, 6)


def test_a_source_that_folds_nothing() -> None:
    assert folded(FileSplits(), {"a": offset_record(rows=1, done=True)}).records == ()  # type: ignore[arg-type]


def merges(ranges: Iterable[RangeSplit]) -> list[Fold]:
    return TopicSplits("t").merges((split.id, split.bounds) for split in ranges)


def test_which_ranges_of_a_topic_are_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the last ones, not what does not lie side by side, and not a few at a time. Breaks when one is lost."""
    monkeypatch.setattr(base, "_KEPT", 3)
    many = [RangeSplit("t", "id", 0, at, at + 10, epoch=at) for at in range(0, 60, 10)]
    few = [RangeSplit("t", "id", 1, at, at + 10) for at in range(0, 50, 10)]
    apart = [RangeSplit("t", "id", 2, at, at + 10) for at in (0, 10, 30, 40, 50, 60, 70)]
    found = merges([*reversed(many), *few, *apart])
    assert found == [
        Fold(tuple(split.id for split in many[:3]), {"end": 30, "epoch": 20}),
        Fold(tuple(split.id for split in apart[:2]), {"end": 20}),
        Fold(tuple(split.id for split in apart[2:4]), {"end": 50}),
    ]
    joined = RangeSplit("t", "id", 0, 0, 30, epoch=20)
    assert merges([joined, *many[3:]]) == [], "the folded one is one of them"


def test_a_job_that_folds_goes_on_and_sends_nothing_twice() -> None:
    """Breaks when what was folded is sent again, or a kill behind `complete` leaves less than what was there."""
    rows = next(made for made in map(template, range(24)) if len(made.files) > 1 and len(made.lengths) > 5)
    job = table_job(MemoryKafka("offsets"), Tables(rows, Random("folding")))
    job.tables.folds = True
    for number in range(8):
        if not number:
            job.run_killed_at("driver-after-verdict")
        else:
            assert job.run().exit_code == 0
        assert job.values() == job.expected()
        assert isinstance(job.source, FrozenTables)
        state = job.state()
        assert len(state.offsets) <= len(job.tables.ends), "one of each table"
        assert state.records_total == len(job.values())
    assert job.values() == sorted(value for part in rows.rows["one"].values() for value in part.values)
