"""Implements `spark.scan.Scan` for Avro files (columns_scan.py): their columns are in their headers.

The blocks of every pending file are verified before anything is sent (inspection.py); no row is decoded for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from eosingest.errors import FatalError
from eosingest.protocol.plan import Plan
from eosingest.sources.files.bytes.codecs import DamagedError
from eosingest.sources.files.formats import avro_container
from eosingest.sources.files.formats.inspection import opened_to_check
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.reading.avro_columns import SchemaError, record_of
from eosingest.sources.files.reading.avro_reader import AvroReader
from eosingest.sources.files.reading.columns_scan import ColumnsScan, OfFile, of_each
from eosingest.sources.files.reading.folder_columns import FolderColumns
from eosingest.sources.files.reading.inspect_files import inspect_pending


@dataclass(frozen=True)
class AvroScan(ColumnsScan):
    """How Avro files are read."""

    format = "avro"

    def inspect(self, context: Any, plan: Plan, *, direct: bool, slots: int) -> None:
        """See `inspect_files.inspect_pending`."""
        inspect_pending(context, self.read, plan, as_lines=False, slots=slots)

    def of_files(self, files: tuple[SourceFile, ...]) -> list[OfFile]:
        """See `ColumnsScan.of_files`."""
        return _of_files(files)

    def reader(self, schema: Any, folders: FolderColumns) -> AvroReader:
        """See `ColumnsScan.reader`."""
        return AvroReader(schema, folders, self.rules())


@lru_cache(maxsize=4)
def _of_files(files: tuple[SourceFile, ...]) -> list[OfFile]:
    return of_each(files, _of_file)


def _of_file(file: SourceFile) -> OfFile:
    with opened_to_check(file, avro_container.HEAD_BYTES) as opened:
        try:
            return record_of(avro_container.read_header(opened).schema).parts, {}
        except (DamagedError, SchemaError) as error:
            raise FatalError(
                f"{file.name}: not a readable Avro file: {error}",
                code="bad-data",
                hint="nothing of this run was sent; correct the file, or move it away, and run again",
            ) from error
