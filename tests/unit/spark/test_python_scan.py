"""Which records are bare columns, and what goes to the producer then: bytes, hashes and sizes as Spark would give them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from eosingest.errors import ChangedError, EosingestError, FatalError, TemporaryError
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.records import checksum
from eosingest.spark.bare_columns import BareColumns, StraightReader, bare_columns
from eosingest.spark.failures import by_a_reader, in_words
from eosingest.spark.positions import OffsetPositions
from eosingest.spark.python_scan import PythonSplit
from eosingest.spark.record_settings import RecordSettings
from tests.support.builders import planned_split, source_file

COLUMNS = {
    "id": "BIGINT",
    "Text": "STRING",
    "raw": "BINARY",
    "at": "TIMESTAMP",
    "part": "INT",
    "h": "ARRAY<STRUCT<key: STRING, value: BINARY>>",
}
BARE = RecordSettings(where=None, select=("*",), key=None, value="raw", headers={}, timestamp=None)


@pytest.mark.parametrize(
    ("records", "bare"),
    [
        (BARE, BareColumns(None, "raw", {})),
        (replace(BARE, value=" `TEXT` -- as it is\n", key="raw"), BareColumns("raw", "Text", {})),
        (replace(BARE, headers={"a": "raw", "b": "text"}), BareColumns(None, "raw", {"a": "raw", "b": "Text"})),
        (replace(BARE, value="id"), None),
        (replace(BARE, value="'raw'"), None),
        (replace(BARE, value="upper(text)"), None),
        (replace(BARE, value="other"), None),
        (replace(BARE, key="id"), None),
        (replace(BARE, headers={"a": "raw", "b": "id"}), None),
        (replace(BARE, where="id > 1"), None),
        (replace(BARE, select=("upper(text) AS raw",)), None),
        (replace(BARE, timestamp="AT"), BareColumns(None, "raw", {}, timestamp="at")),
        (replace(BARE, partition="part"), BareColumns(None, "raw", {}, partition="part")),
        (replace(BARE, header_column="`h`"), BareColumns(None, "raw", {}, header_column="h")),
        (replace(BARE, timestamp="raw"), None),
        (replace(BARE, timestamp="at + INTERVAL 1 HOUR"), None),
        (replace(BARE, partition="1"), None),
        (replace(BARE, partition="id"), None),
        (replace(BARE, header_column="raw"), None),
        (replace(BARE, header_column="array()"), None),
    ],
)
def test_which_records_are_bare_columns(records: RecordSettings, bare: BareColumns | None) -> None:
    """Breaks when a spec that asks for more has columns sent as they are, or a bare column costs a JVM."""
    assert bare_columns(records, COLUMNS) == bare


@pytest.mark.parametrize("constant", ["'const'", "1", "NULL", "true", "*"])
def test_a_constant_is_no_column(constant: str) -> None:
    """Breaks when a column named like a constant, or by nothing, is sent in its place."""
    columns = {**COLUMNS, **dict.fromkeys(["", "1", "null", "true"], "STRING")}
    assert bare_columns(replace(BARE, headers={"h": constant}), columns) is None
    assert bare_columns(replace(BARE, headers={"h": "`1`"}), columns) == BareColumns(None, "raw", {"h": "1"})
    assert bare_columns(replace(BARE, value="名前"), {"名前": "STRING"}) == BareColumns(None, "名前", {})


def test_columns_of_one_name_in_two_cases_are_for_spark_to_tell() -> None:
    assert bare_columns(BARE, {"raw": "BINARY", "RAW": "BINARY"}) is None


class Batches:
    """Gives two batches, and an empty one between them."""

    def read(self, split: PythonSplit, committed: OffsetRecord | None) -> Iterator[pa.RecordBatch]:
        rows = [("k", b"one", "a"), (None, b"", None), ("", None, "c"), ("ü", b"\xff\x00", "")]
        for part in (rows[:3], [], rows[3:]):
            keys, values, texts = zip(*part, strict=True) if part else ((), (), ())
            columns = [pa.array(keys, pa.large_string()), pa.array(values, pa.binary()), pa.array(texts, pa.string())]
            yield pa.RecordBatch.from_arrays(columns, names=["k", "v", "h"])


def test_what_goes_straight_to_the_producer() -> None:
    """Breaks when a receipt is not that of the record, or a row is counted wrong."""
    split = PythonSplit(7, source_file("a", 10), planned_split("a", 0, 10))
    reader = StraightReader(Batches(), BareColumns("k", "v", {"x": "h", "y": "v"}))

    first, last = reader.read(split, None, 1 << 20)

    assert (first.first_row, last.first_row) == (0, 3)
    assert first.splits.tolist() == [7, 7, 7]
    records = [(b"k", b"one"), (None, b""), (b"", None), ("ü".encode(), b"\xff\x00")]
    sent = [pair for batch in (first, last) for pair in zip(batch.records.keys, batch.records.values, strict=True)]
    assert sent == records
    hashes = checksum.record_hashes(records)
    assert [int(found) % checksum.MODULUS for batch in (first, last) for found in batch.hashes] == hashes
    headers = [[("x", text), ("y", value)] for text, (_, value) in zip([b"a", None, b"c", b""], records, strict=True)]
    assert [row for batch in (first, last) for row in batch.records.headers or ()] == headers
    metadata = [found for batch in (first, last) if batch.metadata is not None for found in batch.metadata]
    assert [int(found) % checksum.MODULUS for found in metadata] == [
        checksum.metadata_hash(found, row, None, has_timestamp=False)
        for found, row in zip(hashes, headers, strict=True)
    ]
    plain = StraightReader(Batches(), BareColumns(None, "v", {}))
    assert all(batch.metadata is None for batch in plain.read(split, None, 1 << 20))


@pytest.mark.parametrize("kind", [ChangedError, FatalError, TemporaryError])
def test_an_error_of_a_reader_comes_through_sparks_text(kind: type[EosingestError]) -> None:
    """Breaks when what a reader says of its source is a bug of ours, or loses its hint, behind a Spark job."""
    error = kind('a "quoted" ü\nline {}', code="some-code", hint="mend it", item="a")
    text = (
        f"Job aborted\n  Traceback\neosingest.spark.python_scan.ReaderError: {in_words(error)}\n\tat java.lang.Thread\n"
    )
    found = by_a_reader(text)
    assert type(found) is kind
    assert (found.message, found.code, found.hint, found.item) == (error.message, "some-code", "mend it", "a")
    assert by_a_reader("Job aborted: ReaderError") is None


def test_offsets_are_positions() -> None:
    """Breaks when a row that was sent is told from one that was not by anything but its offset."""
    found = OffsetPositions(np.array([3, 7, 7, 9], np.int64), shared=True)
    assert (found.kind, found.at(0), found.at(3)) == ("offset", 3, 9)
    assert [found.rows_up_to(offset) for offset in (2, 3, 6, 7, 8, 9, 10)] == [0, 1, 1, 3, 3, 4, 4]
    part = found.slice(1, 3)
    assert (part.offsets.tolist(), part.shared) == ([7, 7], True)
