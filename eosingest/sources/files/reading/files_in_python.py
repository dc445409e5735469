"""Implements the common part of scans of files that Python reads (`spark.scan.Scan`): xml_scan.py, and store_lines.py (lines).

Their columns depend on the plan (spark/scan_of_plan.py): those of its `k=v` folders are among them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField

from eosingest.errors import FatalError
from eosingest.protocol.plan import Plan
from eosingest.sources.files.formats.xml.schema import Field, SchemaError, parse
from eosingest.sources.files.listing.partitions import decoded, folder_names, partition_base
from eosingest.sources.files.reading.exact_types import type_words
from eosingest.sources.files.reading.planned_files import planned_files
from eosingest.sources.files.reading.rows import ReadSettings
from eosingest.spark.record_columns import RecordSettings
from eosingest.spark.scan import OtherRows, Scan
from eosingest.spark.scan_of_plan import ScanOfPlan

CASE = "spark.sql.caseSensitive"


@dataclass(frozen=True)
class FilesInPython(ScanOfPlan):
    """How such files are read: with the settings `read`, for `records`. `recursive`: no folder gives a column.

    `decode` decodes the folders' values.
    """

    read: ReadSettings
    records: RecordSettings
    recursive: bool = False
    decode: Callable[[str], str] = decoded

    def for_audit(
        self, spark: SparkSession, plan: Plan, slots: int, *, by_another_reader: bool
    ) -> tuple[Scan, Plan, OtherRows | None]:
        """Return the whole plan for Spark, with another decoder of folders' names."""
        from eosingest.sources.files.reading.audit_reader import decoded_again

        return replace(self, decode=decoded_again), plan, None

    def folders(self, plan: Plan) -> list[str]:
        """Return the columns of the plan's `k=v` folders as written; none if the files are in no such tree."""
        files = planned_files(plan)
        return folder_names(files) if partition_base(files, recursive=self.recursive) is not None else []


def is_set(conf: Mapping[str, str], name: str) -> bool:
    """Say whether a setting is true: of the session, if there is one, else of its context, else in the spec's `conf`."""
    session = SparkSession.getActiveSession()
    context = SparkContext._active_spark_context
    if session is not None:
        value = session.conf.get(name, "false")
    else:
        value = conf.get(name, "false") if context is None else context.getConf().get(name, "false")
    return str(value).lower() == "true"


def folder_field(name: str, given: StructField | None) -> Field:
    """Return the column of `k=v` folders, of the type that the schema gives; None if it has no such column: STRING.

    Raises FatalError for a type that a folder's name has no values of.
    """
    if given is None:
        return Field(name, parse("k STRING")[0].type)
    try:
        (parsed,) = parse(f"k {given.dataType.simpleString()}")
        if parsed.type.element is None and not parsed.type.fields:
            return Field(given.name, parsed.type)
    except SchemaError:
        pass
    raise FatalError(
        f"column {given.name} is a column of folders, and can be no {type_words(given.dataType)}",
        code="column-twice",
        hint="nothing of this run was sent; rename the folders, or leave the column out of the data",
    )
