"""Makes a PythonScan for each plan: a `scan.Scan` of splits that Python reads, whose columns depend on the plan.

Used for these kinds of sources: buckets, XML, tables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from pyspark.sql import SparkSession

from eosingest.protocol.plan import Plan
from eosingest.spark.direct import Confirm, is_constant
from eosingest.spark.python_scan import PythonRows, PythonScan
from eosingest.spark.scan import Direct, Scan, Tasks


class ScanOfPlan(ABC):
    """A Scan that uses the PythonScan of each plan, which `of` makes."""

    infers_schema = False

    @abstractmethod
    def of(self, plan: Plan) -> PythonScan:
        """Return the scan of a plan's items."""

    def spark_conf(self, split_size: int) -> Mapping[str, str]:
        """Return no settings: Spark does not read the source."""
        return {}

    def direct(self, plan: Plan) -> Direct | None:
        """See `PythonScan.direct`."""
        return self.of(plan).direct(plan)

    def inspect(self, tasks: Tasks, plan: Plan, *, direct: bool, slots: int) -> None:  # noqa: B027 - nothing is to be done
        """Do nothing: columns that have types cannot be misread."""

    def check_pinned_schema(self, spark: SparkSession, plan: Plan, pinned: str) -> None:  # noqa: B027 - nothing is to be done
        """Do nothing: no schema is inferred."""

    def frame(
        self, spark: SparkSession, plan: Plan, schema: str | None, most_tasks: int, *, resumed: bool = False
    ) -> PythonRows:
        """See `PythonScan.frame`."""
        return self.of(plan).frame(spark, plan, schema, most_tasks, resumed=resumed)

    def confirm(self, plan: Plan) -> Confirm:
        """Return a check of nothing."""
        return is_constant

    def for_audit(self) -> Scan:
        """Return this scan: there is only one reader."""
        return self

    @property
    def audit_reader(self) -> str:
        """See `scan.Scan`."""
        return ""
