"""Makes a table's `spark.scan.Scan`: tasks read it in Python; Spark evaluates expressions beyond columns.

The columns are the table's, which the items have: this scan sends no request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from eosingest.protocol.plan import Plan
from eosingest.sources.postgres.connection import conninfo
from eosingest.sources.postgres.ranges import KEY_COLUMN, Relation, as_range
from eosingest.sources.postgres.reading.reader import RowsReader
from eosingest.spark.python_scan import PythonScan
from eosingest.spark.record_settings import RecordSettings
from eosingest.spark.scan import Scan


@dataclass(frozen=True)
class TableScan(Scan):
    """The Scan of tables."""

    records: RecordSettings
    reader: RowsReader

    def of(self, plan: Plan, schema: str | None = None) -> PythonScan:
        """Return the scan of a plan's ranges, with the columns of their table."""
        relation = as_range(plan.pending_items[0].item).relation
        columns = {column.name: column.spark for column in relation.columns}
        return PythonScan(
            self.records,
            self.reader,
            columns,
            KEY_COLUMN,
            {KEY_COLUMN: _position_type(relation)},
            lambda names: replace(self.reader, only=names),
        )


def _position_type(relation: Relation) -> str:
    """Return the Spark SQL type of the column with a row's position."""
    types = ["DECIMAL(19,0)" if key.is_whole else "STRING" for key in relation.keys]
    if len(types) == 1:
        return types[0]
    return f"STRUCT<{', '.join(f'c{number}: {each}' for number, each in enumerate(types))}>"


def scan_of(table: Any, records: RecordSettings, conf: Mapping[str, str]) -> TableScan:
    """Make the scan of a spec's `[source]`."""
    return TableScan(records, RowsReader(conninfo(table)))
