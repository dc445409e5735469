"""The row behind all others, as a task sees it; that Spark computes it last is for tests/reading/test_end_row.py."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from eosingest.errors import ChangedError, FatalError
from eosingest.protocol.plan import PlannedSplit
from eosingest.protocol.task_contract import Batch, Signal
from eosingest.sources.files.listing.fingerprint import fingerprint_file
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.reading.local_check import LocalCheck
from eosingest.spark.end_marker import until_end
from eosingest.spark.record_columns import CHECKSUM, SPLIT
from eosingest.spark.worker import ArrowInputs, SplitsCheck
from tests.support.builders import split


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


def read(asked: list[list[str]], *batches: pa.RecordBatch) -> list[Batch | Signal]:
    """Return what an input of these batches gives, whose items are looked at behind the last row."""
    planned = {key: PlannedSplit(split(name), {}, None) for key, name in ((1, "a"), (2, "b"), (3, "c"))}

    def check(splits: Iterable[PlannedSplit]) -> None:
        asked.append([found.split.item for found in splits])

    inputs = ArrowInputs(batches, (), whole=True, check_all=SplitsCheck(planned, check))
    try:
        return [inputs.get(5.0) for _ in range(3)]
    finally:
        inputs.stop()


def test_an_input_looks_at_every_item_before_it_says_that_all_was_given() -> None:
    """Also at those of which no row came."""
    asked = list[list[str]]()
    rows, told, end = read(asked, batch(1, 2, None))
    assert isinstance(rows, Batch) and rows.splits.tolist() == [1, 2]
    assert (told, end, asked) == (Signal.ALL, Signal.END, [["a", "b", "c"]])


def test_items_are_looked_at_with_each_batch_as_well() -> None:
    """One that was another one for a while, and is as it was in the end, has given other rows."""
    asked = list[list[str]]()
    planned = {key: PlannedSplit(split(name), {}, None) for key, name in ((1, "a"), (2, "b"))}
    check = SplitsCheck(planned, lambda splits: asked.append([found.split.item for found in splits]))
    inputs = ArrowInputs([batch(1), batch(2, None)], (), check=check, whole=True, check_all=check)
    assert [inputs.get(5.0) for _ in range(3)][-1] is Signal.ALL
    inputs.stop()
    assert asked == [["a"], ["a", "b"], ["a", "b"]]


def test_an_input_without_its_end_row_says_nothing() -> None:
    asked = list[list[str]]()
    assert read(asked, batch(1), batch(2))[-1] is Signal.END
    assert asked == []


@pytest.mark.parametrize("change", ["none", "longer", "younger", "gone"])
def test_local_files_are_looked_at(tmp_path: Path, change: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    status = path.stat()
    listed = SourceFile("in/a.txt", str(path), status.st_size, status.st_mtime_ns // 1_000_000, splittable=True)
    planned = PlannedSplit(split("in/a.txt"), fingerprint_file(listed).to_json(), None)
    check = LocalCheck.of([listed])
    if change == "longer":
        path.write_text("one\ntwo\n")
    elif change == "younger":
        os.utime(path, (1, 1))
    elif change == "gone":
        path.unlink()
    if change == "none":
        check([planned, planned])
        return
    with pytest.raises(ChangedError, match=r"in/a\.txt: changed") as refused:
        check([planned])
    assert refused.value.item == "in/a.txt"
