"""Reads Parquet files in tasks: the row groups of a split (columnar_reader.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from eosingest.sources.files.cuts import FileSplit
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.reading.columnar_reader import (
    BATCH_BYTES,
    MOST_ROWS,
    ColumnarReader,
    SchemaColumns,
    Source,
    damaged,
    explained,
    without_columns,
)
from eosingest.sources.files.reading.parquet_columns import INT96, TypeSettings, stored_columns

_BUFFER_BYTES = 1 << 20  # of a column of a local file; of a store's, a column of a row group is one request


def opened_parquet(source: Source, *, in_store: bool, unit: str = "us") -> Any:
    """Return the `pyarrow.parquet.ParquetFile`, which reads INT96 as times in `unit`. Raises DamagedError."""
    from pyarrow import parquet  # the driver and workers for other formats load this module without it

    with explained(source):
        open_file: Any = parquet.ParquetFile
        return open_file(
            source,
            pre_buffer=False,
            memory_map=False,
            buffer_size=0 if in_store else _BUFFER_BYTES,
            coerce_int96_timestamp_unit=unit,
            page_checksum_verification=True,
        )


def row_groups_of(metadata: Any, cut: FileSplit, length: int) -> list[int]:
    """Return the row groups of a split: those whose middle byte is in it, as in parquet-mr.

    Raises DamagedError if the middle of any is beyond the file: no split would have it.
    """
    found = []
    for place in range(metadata.num_row_groups):
        group = metadata.row_group(place)
        middle = _middle(group)
        if not 0 <= middle < length:
            raise damaged("its footer names bytes beyond its end")
        if cut.start <= middle < cut.start + cut.length:
            found.append(place)
    return found


def _middle(group: Any) -> int:
    if not group.num_columns:
        return 0
    columns = [group.column(place) for place in range(group.num_columns)]
    first, pages = columns[0].dictionary_page_offset, columns[0].data_page_offset
    start = first if first is not None and 0 < first < pages else pages
    return int(start + sum(column.total_compressed_size for column in columns) // 2)


@dataclass(frozen=True)
class ParquetReader(ColumnarReader):
    """Reads the row groups of a split. `settings` give the file's columns their types (`parquet_columns.stored_columns`)."""

    settings: TypeSettings = field(default_factory=TypeSettings)

    def batches(self, file: SourceFile, source: Source, cut: FileSplit) -> Iterator[pa.RecordBatch]:
        """See `ColumnarReader.batches`."""
        return _Reading(self, file, source).batches(cut)


class _Reading:
    """One read of a file."""

    def __init__(self, reader: ParquetReader, file: SourceFile, source: Source) -> None:
        self._file = file
        self._source = source
        self._parquet = opened_parquet(source, in_store=bool(file.etag))
        rules = replace(reader.rules, calendars=reader.rules.calendars.of_file(self._parquet.metadata.metadata))
        with explained(source):
            stored = stored_columns(self._parquet, reader.settings)
        self._columns = SchemaColumns(reader, file, stored, rules)
        ends = [0]
        for column in stored:
            ends.append(ends[-1] + column.leaves)
        self._leaves = [leaf for place in self._columns.read for leaf in range(ends[place], ends[place + 1])]

    def batches(self, cut: FileSplit) -> Iterator[pa.RecordBatch]:
        metadata = self._parquet.metadata
        for group in row_groups_of(metadata, cut, self._file.length):
            expected, seen = metadata.row_group(group).num_rows, 0
            for found in self._of_group(group):
                yield from self._columns.typed(found, _name_of(group))
                seen += len(found)
            if seen != expected:
                raise damaged(f"{_name_of(group)} has {seen:,} rows, and by its footer {expected:,}")

    def _of_group(self, group: int) -> Iterator[pa.RecordBatch]:
        """Yield the columns of a row group as pyarrow reads them; INT96 to the microsecond, and nothing after it."""
        rows = self._parquet.metadata.row_group(group)
        if not self._leaves:
            yield from without_columns(rows.num_rows)
            return
        size = _rows_of_a_batch(rows, self._leaves)
        batches = self._iterator(self._parquet, size, group)
        if not any(column.has(INT96) for column in self._columns.read.values()):
            yield from batches
            return
        exact = opened_parquet(self._source, in_store=bool(self._file.etag), unit="ns")
        for found, again in zip(batches, self._iterator(exact, size, group), strict=True):
            for column, one, other in zip(self._columns.read.values(), found.columns, again.columns, strict=True):
                if column.has(INT96) and _has_nanoseconds(one, other):
                    raise self._columns.unfit(column.name, "a time with nanoseconds", _name_of(group))
            yield found

    def _iterator(self, parquet: Any, size: int, group: int) -> Iterator[pa.RecordBatch]:
        with explained(self._source):
            batches = parquet.reader.iter_batches(
                size, row_groups=[group], column_indices=self._leaves, use_threads=False
            )
        while True:
            with explained(self._source):
                found = next(batches, None)
            if found is None:
                return
            yield found


def _name_of(group: int) -> str:
    return f"row group {group}"


def _rows_of_a_batch(group: Any, leaves: Sequence[int]) -> int:
    """Return how many rows have about BATCH_BYTES, by the sizes in the footer."""
    size = sum(group.column(leaf).total_uncompressed_size for leaf in leaves)
    return int(max(1, min(MOST_ROWS, BATCH_BYTES * max(1, group.num_rows) // max(1, size))))


def _has_nanoseconds(in_micros: Any, in_nanos: Any) -> bool:
    """Say whether an INT96 in two readings of a column, to the microsecond and to the nanosecond, has digits after those.

    A nanosecond count outside the years 1677 to 2262 wraps around, and so does the product here.
    """
    for micros, nanos in zip(_times(in_micros), _times(in_nanos), strict=True):
        if not types.is_timestamp(nanos.type) or nanos.type.unit != "ns" or micros.type.unit != "us":
            continue
        whole, exact = (each.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False) for each in (micros, nanos))
        with np.errstate(over="ignore"):
            if (whole * 1000 != exact).any():
                return True
    return False


def _times(column: Any) -> Iterator[Any]:
    """Yield the plain arrays in a column."""
    if types.is_struct(column.type):
        for place in range(column.type.num_fields):
            yield from _times(column.field(place))
    elif types.is_map(column.type):
        yield from _times(column.keys)
        yield from _times(column.items)
    elif types.is_list(column.type) or types.is_large_list(column.type):
        yield from _times(column.values)
    elif types.is_fixed_size_list(column.type):
        yield from _times(column.flatten())
    else:
        yield column
