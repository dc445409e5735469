"""Reads files of columns in tasks as Arrow columns (`python_scan.ArrowReader`): the part that Parquet and ORC share.

    a split ─▶ parts of the file (row groups, stripes) ─▶ pyarrow ─▶ columnar_values.py: the schema's types
      ─▶ + columns of `k=v` folders

Bytes are read only from the file as it was listed (storage/). Rows are counted from the split's first one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import BufferedReader
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from eosingest.errors import FatalError
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.sources.files.bytes.codecs import DamagedError
from eosingest.sources.files.cuts import FileSplit, file_split
from eosingest.sources.files.listing.source_file import SourceFile, as_file
from eosingest.sources.files.reading.columnar import Stored
from eosingest.sources.files.reading.columnar_values import Rules, UnfitValueError, converted
from eosingest.sources.files.reading.folder_columns import FolderColumns
from eosingest.sources.files.reading.open_file import bad_data, opened_to_read
from eosingest.spark.python_scan import PythonSplit

BATCH_BYTES = 16 << 20
MOST_ROWS = 16_384  # of a batch, whose values may be larger than their dictionary-encoded form in the file


class Source:
    """The bytes of an open file, for pyarrow. `error` is what reading them raised: not the file's fault."""

    closed = False

    def __init__(self, opened: BufferedReader) -> None:
        """Read nothing yet."""
        self.opened = opened
        self.error: Exception | None = None

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        return bytes(self._kept(lambda: self.opened.read(size)))

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a byte."""
        return int(self._kept(lambda: self.opened.seek(offset, whence)))

    def tell(self) -> int:
        """Return the byte at which reading continues."""
        return self.opened.tell()

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


def _kind_of_damage(text: str) -> str:
    if "CRC checksum" in text:
        return "CRC checksum verification failed for a page"
    if "ncrypt" in text:
        return "it is encrypted"
    return "its data or its headers are damaged"


@contextmanager
def explained(source: Source, kind_of: Callable[[str], str] = _kind_of_damage) -> Iterator[None]:
    """Turn pyarrow's errors into DamagedError, without its texts, which may hold data; an error of the storage is raised.

    pyarrow also raises OSError for damage. `kind_of` returns the damage by pyarrow's text.
    """
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        if source.error is not None:
            raise source.error from error
        raise damaged(kind_of(str(error))) from None


def damaged(why: str) -> DamagedError:
    """Make the error of a file that cannot be read."""
    return DamagedError(why, hint="write the file again")


@dataclass(frozen=True)
class ColumnarReader:
    """Reads the parts of a file that are in a split. `schema` has the columns to read; those of `folders` are the last.

    `rules` say how values are read.
    """

    schema: pa.Schema
    folders: FolderColumns = field(default_factory=FolderColumns)
    rules: Rules = field(default_factory=Rules)

    def narrowed(self, names: frozenset[str]) -> Self:
        """Return a reader of only these columns."""
        fields = [field for field in self.schema if field.name in names]
        return replace(self, schema=pa.schema(fields), folders=self.folders.narrowed(names))

    def read(self, split: PythonSplit, committed: OffsetRecord | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split, including committed ones; see `python_scan.ArrowReader`."""
        file, cut = as_file(split.item), file_split(split.planned.split)
        with opened_to_read(file) as opened:
            yield from self.batches(file, Source(opened), cut)

    def batches(self, file: SourceFile, source: Source, cut: FileSplit) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split of an open file. Raises DamagedError, FatalError."""
        raise NotImplementedError


class SchemaColumns:
    """Gives the columns of one file, which are `stored` in its order, the names and types of a reader's schema.

    `read` has those that are read, by their place in the file.
    """

    def __init__(self, reader: ColumnarReader, file: SourceFile, stored: Sequence[Stored], rules: Rules) -> None:
        self._file = file
        self._schema = reader.schema
        self._rules = rules
        wanted = {rules.folded(name) for name in self._schema.names}
        self.read: Mapping[int, Stored] = {
            place: column for place, column in enumerate(stored) if rules.folded(column.name) in wanted
        }
        self._folders = reader.folders.of(file)

    def typed(self, found: pa.RecordBatch, part: str) -> Iterator[pa.RecordBatch]:
        """Yield rows, whose columns are those of `read`, with the columns of the schema, in batches of a bounded size.

        These are the file's columns, null where it has none, or those of its folders. `part` names the rows' place in the file.
        """
        yield from cut_by_bytes(self._typed(found, part))

    def _typed(self, found: pa.RecordBatch, part: str) -> pa.RecordBatch:
        columns: dict[str, tuple[Stored, Any]] = {}
        for stored, values in zip(self.read.values(), found.columns, strict=True):
            columns[self._rules.folded(stored.name)] = (stored, values)
        arrays = []
        for wanted in self._schema:
            made = None
            if self._rules.folded(wanted.name) in columns:
                stored, values = columns[self._rules.folded(wanted.name)]
                made = self._converted(stored, values, wanted, part)
            if wanted.name in self._folders:
                value = self._folders[wanted.name]
                if made is not None and not _all_equal(made, value):
                    raise _differs_from_folder(self._file, wanted.name)
                made = pa.repeat(value, len(found)) if made is None else made
            arrays.append(pa.nulls(len(found), wanted.type) if made is None else made)
        if not arrays:
            return found
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _converted(self, stored: Stored, values: Any, field: Any, part: str) -> Any:
        try:
            return converted(values, stored, field.type, self._rules)
        except UnfitValueError as unfit:
            raise self.unfit(stored.name, str(unfit), part) from None

    def unfit(self, column: str, why: str, part: str) -> FatalError:
        """Make the error of a value that cannot be sent."""
        way_out = "write the file again, or list the columns to read in source.schema, without this one"
        return bad_data(self._file, f"column {column}: {why} ({part})", way_out)


def batch_of(columns: Sequence[Any], rows: int) -> pa.RecordBatch:
    """Return a batch of these columns, without names."""
    return pa.RecordBatch.from_arrays(columns, names=[""] * len(columns)) if columns else next(without_columns(rows))


def without_columns(rows: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of so many rows without columns."""
    for start in range(0, rows, MOST_ROWS):
        empty: Any = pa.array([{}] * min(MOST_ROWS, rows - start), pa.struct([]))
        yield pa.RecordBatch.from_struct_array(empty)


def cut_by_bytes(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
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


def _differs_from_folder(file: SourceFile, column: str) -> FatalError:
    return FatalError(
        f"{file.name}: its column {column} has another value than its folder {column}=…",
        code="column-twice",
        hint="committed records are kept; rename the folders, or leave the column out of the data; then run again",
        item=file.name,
    )
