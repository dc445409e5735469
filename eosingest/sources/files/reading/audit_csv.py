"""Reads CSV for an audit, by Python's csv module: no code of it is in the reader of a run (csv_reader.py).

lines (audit_lines.py) ─▶ csv.reader ─▶ values of the schema (audit_values.py) ─▶ columns, corrupt rows
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.types import BinaryType, DataType, StructType

from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.sources.files.bytes.text_blocks import layout
from eosingest.sources.files.cuts import file_split
from eosingest.sources.files.formats.csv_rows import Dialect
from eosingest.sources.files.formats.whole import is_whole
from eosingest.sources.files.listing.source_file import as_file
from eosingest.sources.files.reading.audit_lines import lines_again
from eosingest.sources.files.reading.audit_values import batch_of, converter
from eosingest.sources.files.reading.folder_columns import FolderColumns, appended
from eosingest.spark.python_scan import PythonSplit, arrow_schema

# Options with which a row, or a value, is another one to Python's csv module, or to audit_values.py.
_OTHERWISE = ("linesep", "nullvalue", "emptyvalue", "dateformat", "timestampformat", "timestampntzformat")


@dataclass(frozen=True)
class AuditCsvReader:
    """Reads the rows of splits (`python_scan.ArrowReader`): those of `csv_reader.CsvReader`, with the same columns.

    `types` are those of all fields of a row, `names` the columns that are read.
    """

    options: Mapping[str, str]
    types: StructType
    names: frozenset[str]
    folders: FolderColumns = field(default_factory=FolderColumns)

    @staticmethod
    def takes(options: Mapping[str, str]) -> bool:
        """Say whether files that are written so can be read."""
        dialect = Dialect.of(options)
        return (
            not is_whole("csv", options)
            and layout("csv", options).ends_at_a_byte
            and not any(name.lower() in _OTHERWISE for name in options)
            and len(dialect.delimiter) == 1
            and (dialect.doubles or not dialect.quote)
            and not dialect.is_trimmed
        )

    def narrowed(self, names: frozenset[str]) -> AuditCsvReader:
        """Return a reader of only these columns."""
        return replace(self, names=names, folders=self.folders.narrowed(names))

    def read(self, split: PythonSplit, committed: OffsetRecord | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split, including committed ones; see `python_scan.ArrowReader`."""
        file, cut = as_file(split.item), file_split(split.planned.split)
        values, dialect = self.folders.of(file), Dialect.of(self.options)
        encoding = layout("csv", self.options).encoding
        has_header = dialect.header and cut.start == 0
        rows = _Rows(self.types, self.names, dialect, _words(self.options))
        for block in lines_again(file, cut, None):
            lines = [line for line in (each.decode(encoding, "replace") for each in block) if dialect.is_row(line)]
            if has_header and lines:
                lines, has_header = lines[1:], False
            if lines:
                yield appended(rows.batch(lines), values)


class _Rows:
    """Makes rows of lines: `types` are those of all fields of a row, `names` the columns that are read."""

    def __init__(self, types: StructType, names: frozenset[str], dialect: Dialect, words: Mapping[str, float]) -> None:
        self._width = len(types.fields)
        fields = [each for each in types.fields if each.name in names]
        self._schema = arrow_schema(StructType(fields))
        places = [at for at, each in enumerate(types.fields) if each.name in names]
        self._takes = [(at, _converter(each.dataType, words)) for at, each in zip(places, fields, strict=True)]
        self._dialect: dict[str, Any] = {
            "delimiter": dialect.delimiter,
            "quotechar": dialect.quote or None,
            "quoting": csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
            "strict": True,
        }
        csv.field_size_limit(sys.maxsize)

    def batch(self, lines: list[str]) -> pa.RecordBatch:
        """Return the columns of lines, followed by the texts of the corrupt rows, null for others."""
        rows, corrupt = list[list[Any]](), list[bytes | None]()
        for line in lines:
            row, found = list[Any](), self._fields(line)
            is_bad = found is None
            for place, take in self._takes:
                text = "" if found is None else found[place]
                try:
                    row.append(None if text == "" else take(text))
                except (ValueError, ArithmeticError):
                    row.append(None)
                    is_bad = True
            rows.append(row)
            corrupt.append(line.encode() if is_bad else None)
        return batch_of(self._schema, rows, corrupt)

    def _fields(self, line: str) -> list[str] | None:
        """Return the fields of a line; None if it is no row of the file's columns."""
        try:
            (found,) = csv.reader([line], **self._dialect)
        except (csv.Error, ValueError):
            return None
        return found if len(found) == self._width else None


def _words(options: Mapping[str, str]) -> dict[str, float]:
    """Return the texts of numbers without digits."""
    java = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
    names = (("nanValue", "NaN", math.nan), ("positiveInf", "Inf", math.inf), ("negativeInf", "-Inf", -math.inf))
    return java | {options.get(name, default): value for name, default, value in names}


def _converter(kind: DataType, words: Mapping[str, float]) -> Any:
    return str.encode if isinstance(kind, BinaryType) else converter(kind, words)
