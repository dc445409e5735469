"""Implements `spark.scan.Scan` for Parquet files, which Python reads (columnar_scan.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eosingest.sources.files.bytes.codecs import DamagedError
from eosingest.sources.files.reading.columnar_reader import Source, explained
from eosingest.sources.files.reading.columnar_scan import ColumnarScan, FileColumns
from eosingest.sources.files.reading.columnar_values import rules_of
from eosingest.sources.files.reading.file_scan import is_set
from eosingest.sources.files.reading.folder_columns import FolderColumns
from eosingest.sources.files.reading.parquet_columns import TypeSettings, stored_columns
from eosingest.sources.files.reading.parquet_reader import ParquetReader, opened_parquet


@dataclass(frozen=True)
class ParquetScan(ColumnarScan):
    """How Parquet files are read."""

    def footers(self) -> ParquetFooters:
        """Return the reader of footers, by the settings of the spec's `conf`."""
        return ParquetFooters(self._settings())

    def reader(self, schema: pa.Schema, folders: FolderColumns, data: Sequence[str]) -> ParquetReader:
        """Return a reader of these columns."""
        return ParquetReader(schema, folders, rules_of(self.read.options, case=self.case), self._settings())

    def _settings(self) -> TypeSettings:
        return TypeSettings(is_set(self.conf, "spark.sql.legacy.parquet.nanosAsLong"))


@dataclass(frozen=True)
class ParquetFooters:
    """Reads footers (`columnar_scan.FooterReader`)."""

    settings: TypeSettings

    def columns(self, source: Source, *, in_store: bool) -> FileColumns:
        """Return the columns of an open file. Raises DamagedError with the reason."""
        try:
            parquet = opened_parquet(source, in_store=in_store)
            with explained(source):
                return FileColumns(stored_columns(parquet, self.settings), _packed(parquet.metadata))
        except DamagedError:
            length = source.seek(0, 2)
            source.seek(max(0, length - 4))
            raise DamagedError(_why(source.read(4))) from None


def _why(end: bytes) -> str:
    if end == b"PARE":
        return "its footer is encrypted"
    return "its footer is damaged" if end == b"PAR1" else "it does not end as one does: is it cut off?"


def _packed(metadata: Any) -> tuple[tuple[str, str], ...]:
    if not metadata.num_row_groups:
        return ()
    group = metadata.row_group(0)
    columns = (group.column(place) for place in range(group.num_columns))
    return tuple({each.path_in_schema.split(".")[0]: "LZO" for each in columns if each.compression == "LZO"}.items())
