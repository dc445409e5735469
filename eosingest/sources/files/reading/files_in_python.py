"""What scans of files have in common that Python reads (`spark.scan.Scan`): xml_scan.py, and bucket_scan.py for lines.

Their columns are told by a plan: those of its `k=v` folders are among them. So each question goes to a PythonScan
(spark/python_scan.py) that is made for the plan.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from eosingest.protocol.plan import Plan
from eosingest.sources.files.partitions import folder_names, partition_base
from eosingest.sources.files.reading.planned_files import planned_files
from eosingest.sources.files.reading.rows import ReadSettings
from eosingest.spark import python_scan
from eosingest.spark.python_scan import PythonRows, PythonScan
from eosingest.spark.record_columns import RecordSettings
from eosingest.spark.scan import Direct, OtherRows


@dataclass(frozen=True)
class FilesInPython(ABC):
    """How such files are read: by the settings `read`, for `records`. `recursive`: no folder gives a column."""

    read: ReadSettings
    records: RecordSettings
    recursive: bool = False

    scan_nodes = python_scan.SCAN_NODES

    @abstractmethod
    def of(self, plan: Plan) -> PythonScan:
        """Return the scan of a plan's files."""

    def spark_conf(self, split_size: int) -> Mapping[str, str]:
        """Return no settings: Spark does not read the files."""
        return {}

    def direct(self, plan: Plan) -> Direct | None:
        """See `PythonScan.direct`."""
        return self.of(plan).direct(plan)

    def check_pinned_schema(self, spark: SparkSession, plan: Plan, pinned: str) -> None:  # noqa: B027 - nothing is to be done
        """Do nothing: no schema is inferred."""

    def frame(
        self, spark: SparkSession, plan: Plan, schema: str | None, most_tasks: int, *, resumed: bool = False
    ) -> PythonRows:
        """See `PythonScan.frame`."""
        return self.of(plan).frame(spark, plan, schema, most_tasks, resumed=resumed)

    def for_audit(
        self, spark: SparkSession, plan: Plan, slots: int, *, by_another_reader: bool
    ) -> tuple[Plan, OtherRows | None]:
        """Return the whole plan for Spark: there is only one reader."""
        return plan, None

    def items_named_in(self, plan: Plan, text: str) -> str:
        """Name the pending files; the reader's own errors name theirs."""
        return self.of(plan).items_named_in(plan, text)

    def folders(self, plan: Plan) -> list[str]:
        """Return the columns of the plan's `k=v` folders as written; none where the files lie in no such tree."""
        files = planned_files(plan)
        return folder_names(files) if partition_base(files, recursive=self.recursive) is not None else []
