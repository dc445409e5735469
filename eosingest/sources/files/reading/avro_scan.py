"""Implements `spark.scan.Scan` for Avro files, which Python reads (columnar_scan.py): their columns are in their headers.

The blocks of every pending file are verified before anything is sent (inspection.py); no row is decoded for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from eosingest.sources.files.bytes.codecs import DamagedError
from eosingest.sources.files.formats import avro_container
from eosingest.sources.files.reading.avro_columns import SchemaError, record_of
from eosingest.sources.files.reading.avro_reader import AvroReader
from eosingest.sources.files.reading.columnar_reader import Source
from eosingest.sources.files.reading.columnar_scan import ColumnarScan, FileColumns
from eosingest.sources.files.reading.columnar_values import rules_of
from eosingest.sources.files.reading.folder_columns import FolderColumns


@dataclass(frozen=True)
class AvroScan(ColumnarScan):
    """How Avro files are read."""

    def footers(self) -> AvroHeaders:
        """Return the reader of headers."""
        return AvroHeaders()

    def reader(self, schema: pa.Schema, folders: FolderColumns, data: Sequence[str]) -> AvroReader:
        """Return a reader of these columns."""
        return AvroReader(schema, folders, rules_of(self.read.options, case=self.case))


@dataclass(frozen=True)
class AvroHeaders:
    """Reads headers (`columnar_scan.FooterReader`)."""

    def columns(self, source: Source, *, in_store: bool) -> FileColumns:
        """Return the columns of an open file. Raises DamagedError with the reason."""
        try:
            return FileColumns(record_of(avro_container.read_header(source.opened).schema).parts)
        except SchemaError as error:
            raise DamagedError(str(error)) from error
