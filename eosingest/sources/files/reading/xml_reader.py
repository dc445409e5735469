"""Reads XML files in tasks as Arrow columns: a `python_scan.ArrowReader`, whose rows go straight to the producer or to Spark.

a file, one split ─▶ codecs.py ─▶ xml/document.py: rows ─▶ columns of the schema, and those of `k=v` folders
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.sources.files.bytes import codecs
from eosingest.sources.files.formats.xml.columns import XmlSettings
from eosingest.sources.files.formats.xml.document import Row, read_rows
from eosingest.sources.files.listing.source_file import as_file
from eosingest.sources.files.reading.folder_columns import FolderColumns, appended, arrow_type
from eosingest.sources.files.reading.open_file import opened_to_read
from eosingest.spark.python_scan import PythonSplit


@dataclass(frozen=True)
class XmlReader:
    """Reads a file's rows (`python_scan.ArrowReader`). `folders` are the columns of `k=v` folders, after those of the rows."""

    settings: XmlSettings
    folders: FolderColumns = field(default_factory=FolderColumns)

    def read(self, split: PythonSplit, committed: OffsetRecord | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file, including committed ones; see `python_scan.ArrowReader`."""
        file = as_file(split.item)
        values = self.folders.of(file)
        with opened_to_read(file) as opened:
            for rows in read_rows(codecs.pieces(opened, file.coded_path), self.settings):
                yield appended(self._batch(rows), values)

    def _batch(self, rows: Sequence[Row]) -> pa.RecordBatch:
        fields = self.settings.fields
        columns = zip(zip(*rows, strict=True), fields, strict=True)
        arrays = [pa.array(values, arrow_type(field.type)) for values, field in columns]
        return pa.RecordBatch.from_arrays(arrays, names=[field.name for field in fields])
