"""Columns of bytes in memory: from Arrow's layouts to addresses, and as a sequence for everybody else."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eosingest.kafka.columns import BinaryColumn
from eosingest.spark.record_settings import CHECKSUM, CORRUPT, HEADERS, SPLIT
from eosingest.spark.worker import binary_column, to_batch

VALUES = [b"one", None, b"", b"\x00\xff" * 300, b"five", None]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("values", [VALUES, [None, None], [b"", b""], [b"", None], [], [b"a", b"b"]])
def test_a_column_is_a_sequence_of_its_values(kind: pa.DataType, values: list[bytes | None]) -> None:
    column = binary_column(pa.array(values, kind))
    assert list(column) == values
    assert [column[index] for index in range(len(column))] == values
    assert column.lengths.tolist() == [len(value or b"") for value in values]
    assert (None in column) is (None in values)


@pytest.mark.parametrize(("start", "end"), [(0, 6), (1, 4), (2, 3), (3, 3), (5, 6)])
def test_slices_of_slices(start: int, end: int) -> None:
    """Of an Arrow array that begins in the middle of its buffers, and of the column itself."""
    array = pa.array([b"before", *VALUES, b"behind"], pa.binary()).slice(1, 6)
    column = binary_column(array)[start:end]
    assert isinstance(column, BinaryColumn)
    assert list(column) == VALUES[start:end]
    assert list(binary_column(array.slice(start, end - start))) == VALUES[start:end]


def test_a_column_keeps_its_memory() -> None:
    column = binary_column(pa.array([b"x" * 1_000_000], pa.binary()))[0:1]
    pa.default_memory_pool().release_unused()
    kept = [pa.array([b"y" * 1_000_000], pa.binary()) for _ in range(20)]
    assert list(column) == [b"x" * 1_000_000]
    assert len(kept) == 20


def test_an_empty_value_has_an_address_and_a_null_has_none() -> None:
    column = binary_column(pa.array([b"", None], pa.binary()))
    assert column.addresses[0] != 0
    assert column.addresses[1] == 0


def test_other_columns_are_refused() -> None:
    with pytest.raises(TypeError, match="not of string"):
        binary_column(pa.array(["text"]))


def test_columns_of_nulls_need_not_come_from_spark() -> None:
    """`null_columns` leaves them in the JVM: no key, and no format with corrupt rows."""
    columns = {"value": pa.array([b"a", b"bc"]), SPLIT: pa.array([7, 7]), CHECKSUM: pa.array([1, 2])}
    batch = to_batch(pa.RecordBatch.from_pydict(columns), ())
    assert list(batch.records.keys) == [None, None]
    assert list(batch.records.values) == [b"a", b"bc"]
    assert batch.sizes.tolist() == [1, 2]
    assert batch.corrupt is None
    with pytest.raises(KeyError):
        to_batch(pa.RecordBatch.from_pydict({name: columns[name] for name in ("value", SPLIT)}), ())


def test_a_row_that_could_not_be_parsed_stays_one_beside_a_header_without_a_name() -> None:
    """Breaks when the second kind of bad row in a batch hides the first, which would be sent as a record of nulls."""
    headers = pa.array(
        [[], [{"key": None, "value": b"x"}], [{"key": "h", "value": b"y"}], [{"key": None, "value": None}]],
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    )
    columns = {
        "value": pa.array([None, b"b", b"c", b"d"], pa.binary()), HEADERS: headers, CORRUPT: pa.array([b"{", None, None, b""]),
        SPLIT: pa.array([7] * 4), CHECKSUM: pa.array([1, 2, 3, 4]),
    }  # fmt: skip
    nameless = "a header has no name"
    found = to_batch(pa.RecordBatch.from_pydict(columns), ())
    assert (found.corrupt, found.unfit) == ([b"{", None, None, b""], [None, nameless, None, nameless])
    del columns[CORRUPT]
    found = to_batch(pa.RecordBatch.from_pydict(columns), ())
    assert (found.corrupt, found.unfit) == (None, [None, nameless, None, nameless])
    columns[HEADERS] = pa.array([[], [{"key": "a\0b", "value": b"x"}], [], []], headers.type)
    found = to_batch(pa.RecordBatch.from_pydict(columns), ())
    assert found.unfit == [None, "a header's name has the character NUL", None, None]
