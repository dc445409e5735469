"""Implements the common part of scans of files that Python reads (`spark.scan.Scan`).

Their columns depend on the plan: those of its `k=v` folders are among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from eosingest.errors import FatalError
from eosingest.protocol.plan import Plan
from eosingest.protocol.source import Item
from eosingest.sources.files.formats.xml.schema import SchemaError, parse
from eosingest.sources.files.listing.partitions import decoded, folder_names, partition_base
from eosingest.sources.files.listing.source_file import as_file
from eosingest.sources.files.reading.exact_types import type_words
from eosingest.sources.files.reading.folder_columns import FolderColumns
from eosingest.sources.files.reading.inspect_files import inspect_pending
from eosingest.sources.files.reading.planned_files import AsListed, pending_files, planned_files
from eosingest.sources.files.reading.read_settings import ReadSettings
from eosingest.spark.direct import Confirm
from eosingest.spark.python_scan import ArrowReader, ItemColumn, PythonScan
from eosingest.spark.record_settings import RecordSettings
from eosingest.spark.scan import Scan, Tasks
from eosingest.spec.ddl import Field, Type

CASE = "spark.sql.caseSensitive"


@dataclass(frozen=True)
class FileScan(Scan):
    """How such files are read: with the settings `read`, for `records`. `recursive`: no folder gives a column.

    `conf` has the spec's settings of Spark; `decode` decodes the folders' values. `audits`: rows are read for an audit.
    """

    read: ReadSettings
    records: RecordSettings
    recursive: bool = False
    decode: Callable[[str], str] = decoded
    conf: Mapping[str, str] = field(default_factory=dict)
    audits: bool = False

    checked_by_reading = True

    def inspect(self, tasks: Tasks, plan: Plan) -> None:
        """See `inspect_files.inspect_pending`."""
        inspect_pending(tasks, self.read, plan, as_lines=False)

    def for_audit(self) -> Scan:
        """Return the scan with another decoder of folders' names and, if the format has one, another reader."""
        from eosingest.sources.files.reading.audit_lines import decoded_again

        return replace(self, decode=decoded_again, audits=True)

    def confirm(self, plan: Plan) -> Confirm:
        """Return the check that the pending files are as listed."""
        return AsListed(tuple(pending_files(plan)))

    def scan(self, reader: ArrowReader, columns: Mapping[str, str], **more: Any) -> PythonScan:
        """Return the scan of a reader: a PythonScan with the column `_metadata`."""
        return PythonScan(self.records, reader, columns, item_column=_FILE_COLUMN, **more)

    def folders(self, plan: Plan) -> list[str]:
        """Return the columns of the plan's `k=v` folders as written; none if the files are in no such tree."""
        files = planned_files(plan)
        return folder_names(files) if partition_base(files, recursive=self.recursive) is not None else []

    def refuse_folders(self, plan: Plan, columns: Iterable[str]) -> None:
        """Raise FatalError if the data has a column of the plan's folders."""
        folders = {name.lower() for name in self.folders(plan)}
        twice = [name for name in columns if name.lower() in folders]
        if twice:
            raise FatalError(
                f"the data has a column {twice[0]}, and the files are in folders {twice[0]}=…",
                code="column-twice",
                hint="nothing of this run was sent; rename the folders",
            )

    def with_folders(self, types: StructType, plan: Plan) -> tuple[StructType, FolderColumns]:
        """Return the data's columns, followed by those of the plan's folders, and the latter alone.

        They are strings, unless `types` has the column. Raises FatalError for one that is no plain type, or if a pending file's
        folder has another value.
        """
        whole, fields = _with_folders(types, self.folders(plan))
        folders = FolderColumns(fields, self.decode)
        folders.check(pending_files(plan))
        return whole, folders


def _file_of(item: Item) -> dict[str, Any]:
    file = as_file(item)
    return {"file_name": file.name.rpartition("/")[2], "file_size": file.length}


# The fields of Spark's `_metadata` that do not depend on the place of the files: it may differ when a run resumes.
_FILE_COLUMN = ItemColumn("STRUCT<file_name: STRING, file_size: BIGINT>", _file_of)


def _with_folders(types: StructType, names: Sequence[str]) -> tuple[StructType, tuple[Field, ...]]:
    typed = {each.name.lower(): each for each in types.fields}
    columns, folders = list[StructField](), list[Field]()
    for name in names:
        found = typed.get(name.lower(), StructField(name, StringType()))
        columns.append(StructField(found.name, found.dataType))
        folders.append(Field(found.name, _of_folder(found)))
    of_folders = {name.lower() for name in names}
    rows = [each for each in types.fields if each.name.lower() not in of_folders]
    return StructType([*rows, *columns]), tuple(folders)


def _of_folder(column: StructField) -> Type:
    try:
        (parsed,) = parse(f"k {column.dataType.simpleString()}")
        is_plain = parsed.type.element is None and not parsed.type.fields
    except SchemaError:
        is_plain = False
    if not is_plain:
        raise FatalError(
            f"column {column.name} is a column of folders, and can be no {type_words(column.dataType)}",
            code="column-twice",
            hint="nothing of this run was sent; rename the folders, or leave the column out of the data",
        )
    return parsed.type


def is_set(conf: Mapping[str, str], name: str) -> bool:
    """Say whether a setting is true: in the spec's `conf`, else of the session, else of its context."""
    if name in conf:
        return conf[name].lower() == "true"
    session = SparkSession.getActiveSession()
    context = SparkContext._active_spark_context
    if session is not None:
        value = session.conf.get(name, "false")
    else:
        value = "false" if context is None else context.getConf().get(name, "false")
    return str(value).lower() == "true"
