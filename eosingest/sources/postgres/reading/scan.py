"""How a table is read (`spark.scan.Scan`): in Python, by the tasks; Spark computes what is more than columns.

The columns are those of the table, which the items have: this scan asks nobody, and makes a `PythonScan` for each plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from eosingest.errors import listed
from eosingest.protocol.plan import Plan
from eosingest.sources.postgres.connection import conninfo
from eosingest.sources.postgres.ranges import KEY_COLUMN, WHOLE_KEYS, as_range
from eosingest.sources.postgres.reading.reader import RowsReader
from eosingest.spark.python_scan import SCAN_NODES, PythonRows, PythonScan
from eosingest.spark.record_columns import RecordSettings
from eosingest.spark.scan import Direct, OtherRows


@dataclass(frozen=True)
class TableScan:
    """The Scan of tables."""

    records: RecordSettings
    reader: RowsReader

    scan_nodes = SCAN_NODES

    def spark_conf(self, split_size: int) -> Mapping[str, str]:
        """Return no settings: Spark does not read the table."""
        return {}

    def direct(self, plan: Plan) -> Direct | None:
        """Return how tasks read the ranges if the records are bare columns, else None."""
        return self._of(plan).direct(plan)

    def inspect(self, context: Any, plan: Plan, *, direct: bool, slots: int) -> None:
        """Do nothing: columns that have types cannot be misread."""

    def check_pinned_schema(self, spark: SparkSession, plan: Plan, pinned: str) -> None:
        """Do nothing: the columns are in the scope, and were compared when the table was listed."""

    def frame(
        self, spark: SparkSession, plan: Plan, schema: str | None, most_tasks: int, *, resumed: bool = False
    ) -> PythonRows:
        """Return rows that the reader reads in Spark's tasks."""
        return self._of(plan).frame(spark, plan, schema, most_tasks, resumed=resumed)

    def for_audit(
        self, spark: SparkSession, plan: Plan, slots: int, *, by_another_reader: bool
    ) -> tuple[Plan, OtherRows | None]:
        """Return the whole plan for Spark, and nothing apart: there is only one reader."""
        return plan, None

    def items_named_in(self, plan: Plan, text: str) -> str:
        """Name the pending items."""
        return listed([entry.item.name for entry in plan.pending_items], 10)

    def _of(self, plan: Plan) -> PythonScan:
        relation = as_range(plan.pending_items[0].item).relation
        columns = {column.name: column.spark for column in relation.columns}
        return PythonScan(
            self.records,
            self.reader,
            columns,
            KEY_COLUMN,
            {KEY_COLUMN: "DECIMAL(19,0)" if relation.key_type in WHOLE_KEYS else "STRING"},
        )


def scan_of(table: Any, records: RecordSettings, conf: Mapping[str, str]) -> TableScan:
    """Make the scan of a spec's `[source]`."""
    return TableScan(records, RowsReader(conninfo(table)))
