"""The row behind all others, as a task sees it; that Spark computes it last is for tests/reading/test_end_row.py."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eosingest.errors import FatalError
from eosingest.protocol.task_contract import Batch, Signal
from eosingest.spark.end_marker import until_end
from eosingest.spark.record_settings import CHECKSUM, SPLIT
from eosingest.spark.worker import ArrowInputs


def batch(*splits: int | None) -> pa.RecordBatch:
    columns = {
        "value": pa.array([b"v"] * len(splits), pa.binary()),
        SPLIT: pa.array(splits, pa.int64()),
        CHECKSUM: pa.array([0] * len(splits), pa.int64()),
    }
    return pa.RecordBatch.from_pydict(columns)


def taken(*batches: pa.RecordBatch) -> list[list[int] | Signal]:
    return [
        found if isinstance(found, Signal) else found.column(SPLIT).to_pylist() for found in until_end(iter(batches))
    ]


def test_the_end_row_is_taken_away_and_told_last() -> None:
    assert taken(batch(1, 1), batch(2, None)) == [[1, 1], [2], Signal.ALL]
    assert taken(batch(1, 1), batch(None)) == [[1, 1], Signal.ALL]
    assert taken(batch(None)) == [Signal.ALL]


def test_without_it_nothing_is_told() -> None:
    assert taken(batch(1, 1), batch(2)) == [[1, 1], [2]]
    assert taken() == []


@pytest.mark.parametrize(
    "batches", [[batch(None), batch(1)], [batch(1, None, 2)], [batch(1, None, None)], [batch(None), batch(None)]]
)
def test_rows_behind_it_are_an_error(batches: list[pa.RecordBatch]) -> None:
    with pytest.raises(FatalError, match="after the row"):
        taken(*batches)


def given(*batches: pa.RecordBatch) -> list[Batch | Signal]:
    """Return what an input of these batches gives."""
    inputs = ArrowInputs(batches, (), whole=True)
    try:
        return [inputs.get(5.0) for _ in range(3)]
    finally:
        inputs.stop()


def test_an_input_says_after_its_last_row_that_all_was_given() -> None:
    rows, told, end = given(batch(1, 2, None))
    assert isinstance(rows, Batch) and rows.splits.tolist() == [1, 2]
    assert (told, end) == (Signal.ALL, Signal.END)


def test_an_input_without_its_end_row_says_nothing() -> None:
    assert given(batch(1), batch(2))[-1] is Signal.END
