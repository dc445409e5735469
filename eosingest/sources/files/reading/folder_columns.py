"""Adds the columns of `k=v` folders to the rows of files that Python reads.

The values are texts in the names of folders (listing/partitions.py), and are converted to the types of their columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from eosingest.errors import FatalError
from eosingest.sources.files.formats.xml.values import BadValueError, converter
from eosingest.sources.files.listing.partitions import decoded, folder_values
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.spec.ddl import Field, Type

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
class FolderColumns:
    """The columns of folders, `fields`, which are the last of a row. `decode` decodes the folders' values."""

    fields: tuple[Field, ...] = ()
    decode: Callable[[str], str] = decoded

    def narrowed(self, names: frozenset[str]) -> FolderColumns:
        """Return only the columns with these names."""
        return replace(self, fields=tuple(field for field in self.fields if field.name in names))

    def check(self, files: Iterable[SourceFile]) -> None:
        """Raise FatalError if a value in the folders of these files is not of its column's type."""
        for file in files if self.fields else ():
            self.of(file)

    def of(self, file: SourceFile) -> dict[str, Any]:
        """Return the values of a file, Arrow scalars by column. Raises FatalError if one is not of its column's type."""
        texts = {name.lower(): text for name, text in folder_values(file, self.decode).items()}
        return {field.name: _value(file, field, texts[field.name.lower()]) for field in self.fields}


def _value(file: SourceFile, column: Field, text: str | None) -> Any:
    try:
        return pa.scalar(None if text is None else converter(column.type)(text), arrow_type(column.type))
    except BadValueError as bad:
        why = f": {bad.why}" if bad.why else ""
        raise FatalError(
            f"{file.name}: column {column.name} is {column.type.ddl}, and the folder's value is '{text}'{why}",
            code="bad-data",
            hint="nothing of this run was sent; declare the column as STRING, or rename the folder",
        ) from None


def appended(rows: pa.RecordBatch, values: Mapping[str, Any]) -> pa.RecordBatch:
    """Return the rows with more columns, which have the same value in each row."""
    for name, value in values.items():
        rows = rows.append_column(name, pa.repeat(value, len(rows)))
    return rows
