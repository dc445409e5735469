"""Reads Parquet files in tasks as Arrow columns (`python_scan.ArrowReader`).

    a split ─▶ its row groups ─▶ pyarrow ─▶ parquet_values.py: the schema's types ─▶ + columns of `k=v` folders

Bytes are read only from the file as it was listed (storage/). Rows are counted from the split's first one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import BufferedReader
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eosingest.errors import FatalError
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.sources.files.bytes.codecs import DamagedError
from eosingest.sources.files.cuts import FileSplit, file_split
from eosingest.sources.files.listing.source_file import SourceFile, as_file
from eosingest.sources.files.reading.folder_columns import FolderColumns
from eosingest.sources.files.reading.open_file import bad_data, opened_to_read
from eosingest.sources.files.reading.parquet_columns import Stored, TypeSettings, stored_columns
from eosingest.sources.files.reading.parquet_values import Rules, UnfitValueError, converted, has_nanoseconds
from eosingest.spark.python_scan import PythonSplit

BATCH_BYTES = 16 << 20
_MOST_ROWS = 16_384  # of a batch, whose values may be larger than their dictionary-encoded form in the file
_BUFFER_BYTES = 1 << 20  # of a column of a local file; of a store's, a column of a row group is one request


class Source:
    """The bytes of an open file, for pyarrow. `error` is what reading them raised: not the file's fault."""

    closed = False

    def __init__(self, opened: BufferedReader) -> None:
        """Read nothing yet."""
        self._opened = opened
        self.error: Exception | None = None

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        return bytes(self._kept(lambda: self._opened.read(size)))

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a byte."""
        return int(self._kept(lambda: self._opened.seek(offset, whence)))

    def tell(self) -> int:
        """Return the byte at which reading continues."""
        return self._opened.tell()

    def close(self) -> None:
        """Do nothing: who opened the file closes it."""

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def writable(self) -> bool:
        """Return False."""
        return False

    def _kept(self, do: Callable[[], Any]) -> Any:
        try:
            return do()
        except Exception as error:
            self.error = error
            raise


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


@contextmanager
def explained(source: Source) -> Iterator[None]:
    """Turn pyarrow's errors into DamagedError, without its texts, which may hold data; an error of the storage is raised.

    pyarrow also raises OSError for damage.
    """
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        if source.error is not None:
            raise source.error from error
        raise _damaged(_kind_of_damage(str(error))) from None


def _kind_of_damage(text: str) -> str:
    """Return the damage, without pyarrow's text, which may hold data."""
    if "CRC checksum" in text:
        return "CRC checksum verification failed for a page"
    if "ncrypt" in text:
        return "it is encrypted"
    return "its pages or their headers are damaged"


def row_groups_of(metadata: Any, cut: FileSplit, length: int) -> list[int]:
    """Return the row groups of a split: those whose middle byte is in it, as in parquet-mr.

    Raises DamagedError if the middle of any is beyond the file: no split would have it.
    """
    found = []
    for place in range(metadata.num_row_groups):
        group = metadata.row_group(place)
        middle = _middle(group)
        if not 0 <= middle < length:
            raise _damaged("its footer names bytes beyond its end")
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
class ParquetReader:
    """Reads the row groups of a split. `schema` has the columns to read with their types; those of `folders` are the last.

    `settings` give the file's columns their types (`parquet_columns.stored_columns`), `rules` say how values are read.
    """

    schema: pa.Schema
    folders: FolderColumns = field(default_factory=FolderColumns)
    settings: TypeSettings = field(default_factory=TypeSettings)
    rules: Rules = field(default_factory=Rules)

    def narrowed(self, names: frozenset[str]) -> ParquetReader:
        """Return a reader of only these columns."""
        fields = [field for field in self.schema if field.name in names]
        return replace(self, schema=pa.schema(fields), folders=self.folders.narrowed(names))

    def read(self, split: PythonSplit, committed: OffsetRecord | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split, including committed ones; see `python_scan.ArrowReader`."""
        file, cut = as_file(split.item), file_split(split.planned.split)
        with opened_to_read(file) as opened:
            yield from _Reading(self, file, Source(opened)).batches(cut)


class _Reading:
    """One read of a file: its columns that are read, each with its place in the file."""

    def __init__(self, reader: ParquetReader, file: SourceFile, source: Source) -> None:
        self._file = file
        self._source = source
        self._schema = reader.schema
        self._parquet = opened_parquet(source, in_store=bool(file.etag))
        self._rules = replace(reader.rules, calendars=reader.rules.calendars.of_file(self._parquet.metadata.metadata))
        with explained(source):
            stored = stored_columns(self._parquet, reader.settings)
        wanted = {self._rules.folded(name) for name in self._schema.names}
        self._stored = {
            place: column for place, column in enumerate(stored) if self._rules.folded(column.name) in wanted
        }
        ends = [0]
        for column in stored:
            ends.append(ends[-1] + column.leaves)
        self._leaves = [leaf for place in self._stored for leaf in range(ends[place], ends[place + 1])]
        self._folders = reader.folders.of(file)

    def batches(self, cut: FileSplit) -> Iterator[pa.RecordBatch]:
        metadata = self._parquet.metadata
        for group in row_groups_of(metadata, cut, self._file.length):
            expected, seen = metadata.row_group(group).num_rows, 0
            for found in self._of_group(group):
                yield from _cut_by_bytes(self._typed(found, group))
                seen += len(found)
            if seen != expected:
                raise _damaged(f"row group {group} has {seen:,} rows, and by its footer {expected:,}")

    def _of_group(self, group: int) -> Iterator[pa.RecordBatch]:
        """Yield the columns of a row group as pyarrow reads them; INT96 to the microsecond, and nothing after it."""
        rows = self._parquet.metadata.row_group(group)
        if not self._leaves:
            yield from _without_columns(rows.num_rows)
            return
        size = _rows_of_a_batch(rows, self._leaves)
        batches = self._iterator(self._parquet, size, group)
        if not any(column.has_int96 for column in self._stored.values()):
            yield from batches
            return
        exact = opened_parquet(self._source, in_store=bool(self._file.etag), unit="ns")
        for found, again in zip(batches, self._iterator(exact, size, group), strict=True):
            for column, one, other in zip(self._stored.values(), found.columns, again.columns, strict=True):
                if column.has_int96 and has_nanoseconds(one, other):
                    raise _unfit(self._file, column.name, "a time with nanoseconds", group)
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

    def _typed(self, found: pa.RecordBatch, group: int) -> pa.RecordBatch:
        """Return the columns of the schema: the file's, null where it has none, or those of its folders."""
        columns: dict[str, tuple[Stored, Any]] = {}
        for stored, values in zip(self._stored.values(), found.columns, strict=True):
            columns[self._rules.folded(stored.name)] = (stored, values)
        arrays = []
        for wanted in self._schema:
            made = None
            if self._rules.folded(wanted.name) in columns:
                stored, values = columns[self._rules.folded(wanted.name)]
                made = self._converted(stored, values, wanted, group)
            if wanted.name in self._folders:
                value = self._folders[wanted.name]
                if made is not None and not _all_equal(made, value):
                    raise _differs_from_folder(self._file, wanted.name)
                made = pa.repeat(value, len(found)) if made is None else made
            arrays.append(pa.nulls(len(found), wanted.type) if made is None else made)
        if not arrays:
            return found
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _converted(self, stored: Stored, values: Any, field: Any, group: int) -> Any:
        try:
            return converted(values, stored, field.type, self._rules)
        except UnfitValueError as unfit:
            raise _unfit(self._file, stored.name, str(unfit), group) from None


def _rows_of_a_batch(group: Any, leaves: Sequence[int]) -> int:
    """Return how many rows have about BATCH_BYTES, by the sizes in the footer."""
    size = sum(group.column(leaf).total_uncompressed_size for leaf in leaves)
    return int(max(1, min(_MOST_ROWS, BATCH_BYTES * max(1, group.num_rows) // max(1, size))))


def _without_columns(rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, _MOST_ROWS):
        empty: Any = pa.array([{}] * min(_MOST_ROWS, rows - start), pa.struct([]))
        yield pa.RecordBatch.from_struct_array(empty)


def _cut_by_bytes(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the batch, in parts of about BATCH_BYTES."""
    parts = -(-batch.nbytes // BATCH_BYTES)
    rows = max(1, -(-len(batch) // max(1, parts)))
    if rows >= len(batch):
        yield batch
        return
    for start in range(0, len(batch), rows):
        yield batch.slice(start, rows)


def _all_equal(column: Any, value: Any) -> bool:
    if not value.is_valid:
        return bool(column.null_count == len(column))
    return column.null_count == 0 and bool(pc.all(pc.equal(column, value), min_count=0).as_py())


def _damaged(why: str) -> DamagedError:
    return DamagedError(why, hint="write the file again")


def _unfit(file: SourceFile, column: str, why: str, group: int) -> FatalError:
    way_out = "write the file again, or list the columns to read in source.schema, without this one"
    return bad_data(file, f"column {column}: {why} (row group {group})", way_out)


def _differs_from_folder(file: SourceFile, column: str) -> FatalError:
    return FatalError(
        f"{file.name}: its column {column} has another value than its folder {column}=…",
        code="column-twice",
        hint="committed records are kept; rename the folders, or leave the column out of the data; then run again",
        item=file.name,
    )
