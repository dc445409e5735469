"""Makes the Scan of a spec's files (`spark.scan.Scan`), by their format."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from eosingest.sources.files.formats.whole import is_one_value
from eosingest.sources.files.reading.read_settings import ReadSettings
from eosingest.spark.record_settings import RecordSettings
from eosingest.spark.scan import Scan

# The module and the class of each format. Loaded when they are needed: their libraries take a third of a second.
_SCANS: Mapping[str, tuple[str, str]] = {
    "avro": ("avro_scan", "AvroScan"),
    "csv": ("csv_scan", "CsvScan"),
    "json": ("json_scan", "JsonScan"),
    "orc": ("orc_scan", "OrcScan"),
    "parquet": ("parquet_scan", "ParquetScan"),
    "text": ("text_scan", "TextScan"),
    "xml": ("xml_scan", "XmlScan"),
}


def scan_of(table: Any, records: RecordSettings, conf: Mapping[str, str]) -> Scan:
    """Make the scan of a spec's `[source]`."""
    read = ReadSettings(
        format=table.format,
        options=table.options,
        schema=table.ddl,
        refuses_unknown=table.unknown_fields == "error",
        inspects=table.inspect,
        **vars(records),
    )
    module, name = ("value_scan", "ValueScan") if is_one_value(table.format, read.options) else _SCANS[table.format]
    made: Scan = getattr(import_module(f"eosingest.sources.files.reading.{module}"), name)(
        read, records, table.recursive, conf=conf
    )
    return made
