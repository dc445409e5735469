"""Implements `spark.scan.Scan` for ORC files, which Python reads (columnar_scan.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from eosingest.sources.files.reading.columnar_reader import Source
from eosingest.sources.files.reading.columnar_scan import ColumnarScan, FileColumns
from eosingest.sources.files.reading.columnar_values import Rules
from eosingest.sources.files.reading.folder_columns import FolderColumns
from eosingest.sources.files.reading.orc_reader import OpenOrc, OrcReader


@dataclass(frozen=True)
class OrcScan(ColumnarScan):
    """How ORC files are read."""

    def footers(self) -> OrcFooters:
        """Return the reader of footers."""
        return OrcFooters()

    def reader(self, schema: pa.Schema, folders: FolderColumns, data: Sequence[str]) -> OrcReader:
        """Return a reader of these columns."""
        return OrcReader(schema, folders, Rules(self.case), tuple(data))


@dataclass(frozen=True)
class OrcFooters:
    """Reads footers (`columnar_scan.FooterReader`)."""

    def columns(self, source: Source, *, in_store: bool) -> FileColumns:
        """Return the columns of an open file. Raises DamagedError with the reason."""
        opened = OpenOrc(source)
        return FileColumns(opened.stored, positional=opened.positional)
