"""Registers the file formats, one entry each: the options that a spec may set, and the properties that readers depend on.

To add a format, write a module with its entry, and add the entry here. The entries import no reader and no Spark, since the
spec, the listing and the tasks use them.
"""

from __future__ import annotations

from collections.abc import Mapping

from eosingest.sources.files.formats import avro_files, columnar_files, csv_files, json_files, text_files, xml_files
from eosingest.sources.files.formats.entry import FileFormat

_ENTRIES = (
    *(json_files.JSON, csv_files.CSV, text_files.TEXT, columnar_files.PARQUET, columnar_files.ORC),
    *(avro_files.AVRO, text_files.BINARY, xml_files.XML),
)
FORMATS: Mapping[str, FileFormat] = {entry.name: entry for entry in _ENTRIES}
NAMES = tuple(FORMATS)
