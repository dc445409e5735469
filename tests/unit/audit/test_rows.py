"""How an audit goes through the source's rows: each split as far as its receipt goes, whatever way the batches are cut."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from eosingest.audit.scan import ReadSource
from eosingest.records.checksum import Totals
from eosingest.spark.record_settings import CHECKSUM, METADATA, SPLIT

LIMITS = {-5: None, 7: 3, 9: 0}
NUMBERS = {-5: 0, 7: 1, 9: 2}
# Splits one after another, as Spark's tasks see them; 11 has no receipt.
ROWS = [(-5, hash_) for hash_ in (-1, -1, 2, 3)] + [(7, hash_) for hash_ in (4, 5, -6, 7, 8)] + [(9, 1), (11, 1)]


@pytest.fixture(autouse=True)
def leave_signals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's workers ignore SIGINT; pytest does not."""
    monkeypatch.setattr("signal.signal", lambda *_: None)


def batches(cuts: list[int]) -> Iterator[pa.RecordBatch]:
    edges = [0, *cuts, len(ROWS)]
    for start, end in itertools.pairwise(edges):
        rows = ROWS[start:end]
        columns = [pa.array([row[column] for row in rows], pa.int64()) for column in (0, 1)]
        yield pa.RecordBatch.from_arrays(columns, names=[SPLIT, CHECKSUM])


def all_cuts() -> Iterator[list[int]]:
    yield []
    yield list(range(1, len(ROWS)))
    for seed in range(100):
        choose = random.Random(seed)
        yield sorted(choose.randrange(len(ROWS) + 1) for _ in range(choose.randrange(5)))  # empty batches too


def test_sums_reach_as_far_as_the_receipts() -> None:
    signed = {-5: [-1, -1, 2, 3], 7: [4, 5, -6], 9: [], 11: []}
    expected = {split: Totals(len(rows), sum(rows) % (1 << 64)) for split, rows in signed.items()}
    for cuts in all_cuts():
        (batch,) = ReadSource(LIMITS, NUMBERS, hashes=False)(batches(cuts))
        found = {row["split"]: Totals(row["records"], int(row["checksum"], 16)) for row in batch.to_pylist()}
        assert found == expected, cuts


def test_hashes_come_with_their_split_and_row() -> None:
    for cuts in all_cuts():
        made = list(ReadSource(LIMITS, NUMBERS, hashes=True)(batches(cuts)))
        rows = [row for batch in made for row in batch.to_pylist()]
        assert [(row["hash"], row["at"] >> 40, row["at"] & 0xFF) for row in rows] == [
            (-1, 0, 1), (-1, 0, 2), (2, 0, 3), (3, 0, 4), (4, 1, 1), (5, 1, 2), (-6, 1, 3),
        ]  # fmt: skip
        assert {(row["source"], row["late"]) for row in rows} == {(1, 0)}


def test_a_task_without_rows_gives_no_sums() -> None:
    (batch,) = ReadSource(LIMITS, NUMBERS, hashes=False)(iter(()))
    assert batch.to_pylist() == []
    assert batch.schema.field("split").type == pa.int64()


def test_sums_of_many_high_hashes_do_not_overflow() -> None:
    hashes = np.full(1000, -1, dtype=np.int64)
    columns = [pa.array(np.full(1000, 7, dtype=np.int64)), pa.array(hashes)]
    batch = pa.RecordBatch.from_arrays(columns, names=[SPLIT, CHECKSUM])
    (sums,) = ReadSource({7: None}, {7: 0}, hashes=False)(iter([batch]))
    assert sums.to_pylist() == [
        {"split": 7, "records": 1000, "checksum": f"{(1 << 64) - 1000:016x}", "metadata": "0" * 16}
    ]

    columns.append(pa.array(np.arange(1000)))
    batch = pa.RecordBatch.from_arrays(columns, names=[SPLIT, CHECKSUM, METADATA])
    (sums,) = ReadSource({7: 10}, {7: 0}, hashes=False)(iter([batch]))
    assert (sums.column("records")[0].as_py(), sums.column("metadata")[0].as_py()) == (10, f"{45:016x}")
