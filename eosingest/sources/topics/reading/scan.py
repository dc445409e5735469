"""Makes a topic's `spark.scan.Scan`: tasks read it in Python; Spark evaluates expressions beyond columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eosingest.protocol.plan import Plan
from eosingest.sources.topics.client import source_client
from eosingest.sources.topics.columns import COLUMNS, OFFSET
from eosingest.sources.topics.reading.reader import RecordsReader
from eosingest.spark.python_scan import PythonScan
from eosingest.spark.record_settings import RecordSettings
from eosingest.spark.scan import Scan


@dataclass(frozen=True)
class TopicScan(Scan):
    """The Scan of topics, whose columns are always the same."""

    records: RecordSettings
    reader: RecordsReader

    def of(self, plan: Plan, schema: str | None = None) -> PythonScan:
        """Return the columns of records, and their reader."""
        return PythonScan(self.records, self.reader, COLUMNS, OFFSET)


def scan_of(table: Any, records: RecordSettings, conf: Mapping[str, str]) -> TopicScan:
    """Make the scan of a spec's `[source]`."""
    return TopicScan(records, RecordsReader(source_client(table), table.topic))
