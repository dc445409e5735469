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
from eosingest.sources.files.reading.audit_values import converter
from eosingest.sources.files.reading.folder_columns import FolderColumns, appended
from eosingest.spark.python_scan import PythonSplit, arrow_schema
from eosingest.spark.record_columns import CORRUPT

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
        for block in lines_again(file, cut, None):
            rows = [line for line in (each.decode(encoding, "replace") for each in block) if dialect.is_row(line)]
            if has_header and rows:
                rows, has_header = rows[1:], False
            if rows:
                yield appended(self._batch(rows, dialect), values)

    def _batch(self, lines: list[str], dialect: Dialect) -> pa.RecordBatch:
        fields = [each for each in self.types.fields if each.name in self.names]
        places = [at for at, each in enumerate(self.types.fields) if each.name in self.names]
        convert = [_converter(each.dataType, _words(self.options)) for each in fields]
        rows, corrupt = list[list[Any]](), list[str | None]()
        for line in lines:
            row, found = list[Any](), self._fields(line, dialect)
            is_bad = found is None
            for place, take in zip(places, convert, strict=True):
                text = "" if found is None else found[place]
                try:
                    row.append(None if text == "" else take(text))
                except (ValueError, ArithmeticError):
                    row.append(None)
                    is_bad = True
            rows.append(row)
            corrupt.append(line if is_bad else None)
        schema = arrow_schema(StructType(fields))
        columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(schema.types)]
        return pa.RecordBatch.from_arrays([*columns, pa.array(corrupt, pa.string())], names=[*schema.names, CORRUPT])

    def _fields(self, line: str, dialect: Dialect) -> list[str] | None:
        """Return the fields of a line; None if it is no row of the file's columns."""
        csv.field_size_limit(sys.maxsize)
        reader = csv.reader(
            [line],
            delimiter=dialect.delimiter,
            quotechar=dialect.quote or None,
            quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
            strict=True,
        )
        try:
            (found,) = reader
        except (csv.Error, ValueError):
            return None
        return found if len(found) == len(self.types.fields) else None


def _words(options: Mapping[str, str]) -> dict[str, float]:
    """Return the texts of numbers without digits."""
    java = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
    names = (("nanValue", "NaN", math.nan), ("positiveInf", "Inf", math.inf), ("negativeInf", "-Inf", -math.inf))
    return java | {options.get(name, default): value for name, default, value in names}


def _converter(kind: DataType, words: Mapping[str, float]) -> Any:
    return str.encode if isinstance(kind, BinaryType) else converter(kind, words)
