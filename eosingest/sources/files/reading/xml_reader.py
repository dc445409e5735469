"""Reads XML files in tasks as Arrow columns: a `python_scan.ArrowReader`, whose rows go straight to the producer or to Spark.

a file, one split ─▶ codecs.py ─▶ xml/document.py: rows ─▶ columns of the schema, and those of `k=v` folders
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from typing import Any

import pyarrow as pa

from eosingest.errors import FatalError
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.sources.files.bytes import codecs
from eosingest.sources.files.bytes.codecs import DamagedError
from eosingest.sources.files.bytes.text_blocks import BadTextError
from eosingest.sources.files.formats.xml.columns import XmlSettings
from eosingest.sources.files.formats.xml.document import Row, read_rows
from eosingest.sources.files.formats.xml.schema import Field, Type
from eosingest.sources.files.formats.xml.values import BadValueError, converter
from eosingest.sources.files.listing.errors import is_changed, opened_as_listed, while_sent
from eosingest.sources.files.listing.partitions import decoded, folder_values
from eosingest.sources.files.listing.source_file import SourceFile, as_file
from eosingest.spark.python_scan import PythonSplit

_TYPES: Mapping[str, pa.DataType] = {
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}


def arrow_type(kind: Type) -> pa.DataType:
    """Return the Arrow type of a column."""
    if kind.name == "DECIMAL":
        return pa.decimal128(kind.precision, kind.scale)
    if kind.element is not None:
        return pa.list_(arrow_type(kind.element))
    if kind.name == "STRUCT":
        return pa.struct([(field.name, arrow_type(field.type)) for field in kind.fields])
    return _TYPES[kind.name]


@dataclass(frozen=True)
class XmlReader:
    """Reads a file's rows (`python_scan.ArrowReader`). `folders` are the columns of `k=v` folders, after those of the rows."""

    settings: XmlSettings
    folders: tuple[Field, ...] = ()
    decode: Callable[[str], str] = decoded

    def read(self, split: PythonSplit, committed: OffsetRecord | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file, including committed ones; see `python_scan.ArrowReader`."""
        file = as_file(split.item)
        beside = [folder_value(file, folder, self.decode) for folder in self.folders]
        with opened_to_read(file) as opened:
            for rows in read_rows(codecs.pieces(opened, file.coded_path), self.settings):
                yield self._batch(rows, beside)

    def _batch(self, rows: Sequence[Row], beside: Sequence[Any]) -> pa.RecordBatch:
        columns = [*zip(*rows, strict=True), *([value] * len(rows) for value in beside)]
        fields = (*self.settings.fields, *self.folders)
        arrays = [pa.array(values, arrow_type(field.type)) for values, field in zip(columns, fields, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, names=[field.name for field in fields])


def folder_value(file: SourceFile, column: Field, decode: Callable[[str], str] = decoded) -> Any:
    """Return the value of a column of folders for a file. Raises FatalError if it is not of the column's type."""
    text = {name.lower(): value for name, value in folder_values(file, decode).items()}[column.name.lower()]
    if text is None:
        return None
    try:
        return converter(column.type)(text)
    except BadValueError as bad:
        why = f": {bad.why}" if bad.why else ""
        raise FatalError(
            f"{file.name}: column {column.name} is {column.type.ddl}, and the folder's value is '{text}'{why}",
            code="bad-data",
            hint="nothing of this run was sent; declare the column as STRING, or rename the folder",
        ) from None


@contextmanager
def opened_to_read(file: SourceFile, until: int | None = None) -> Iterator[BufferedReader]:
    """Open a file, which must be the one that was listed, before and after it is read; `until` as in `Storage.open`.

    Raises FatalError if it cannot be read; an OSError may be temporary.
    """
    try:
        with opened_as_listed(file, while_sent, until) as opened:
            try:
                yield opened
            except (BadTextError, DamagedError) as bad:
                if is_changed(file, opened):  # then the error says nothing about the listed file
                    raise while_sent(file) from bad
                raise bad_data(file, bad) from bad
    except PermissionError as error:
        raise bad_data(file, error) from error


def bad_data(file: SourceFile, error: Exception) -> FatalError:
    """Make the error for a file of which rows may have been sent."""
    line = f"line {error.line:,}: " if isinstance(error, BadTextError) and error.line is not None else ""
    kept = "committed records are kept, nothing was sent twice"
    way_out = getattr(error, "hint", "") or "correct the file"
    return FatalError(f"{file.name}: {line}{error}", code="bad-data", hint=f"{kept}; {way_out}; then run again")
