"""Makes a topic's `spark.scan.Scan`: tasks read it in Python; Spark evaluates expressions beyond columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eosingest.sources.topics.client import source_client
from eosingest.sources.topics.columns import COLUMNS, OFFSET
from eosingest.sources.topics.reading.reader import RecordsReader
from eosingest.spark.python_scan import PythonScan
from eosingest.spark.record_columns import RecordSettings


def scan_of(table: Any, records: RecordSettings, conf: Mapping[str, str]) -> PythonScan:
    """Make the scan of a spec's `[source]`."""
    return PythonScan(records, RecordsReader(source_client(table), table.topic), COLUMNS, OFFSET)
