"""Makes the rows of files: decides the schema with which they are read, and finds the split of each row.

    files ─▶ reader of Spark ─▶ FileRows ─▶ record_columns.py: where ─▶ select ─▶ key, value, …
                 └─ block being read ─▶ split hash ───────────────────▶ + checksum of the record

All of it runs in the JVM; the Python workers see binary columns. Every step is narrow and keeps the order of a split.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession, functions
from pyspark.sql.types import StructType

from eosingest.protocol.plan import Plan, PlannedSplit
from eosingest.sources.files.formats import FORMATS
from eosingest.sources.files.listing.partitions import partition_columns, partition_values
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.reading import lossy_values, splits, valid_text
from eosingest.sources.files.reading.data_schema import Files, from_ddl
from eosingest.sources.files.reading.local_check import LocalCheck
from eosingest.sources.files.reading.planned_files import pending_files
from eosingest.sources.files.reading.schema_types import from_ddl
from eosingest.sources.files.reading.spark_reader import SparkReader
from eosingest.sources.files.reading.store_check import StoreCheck
from eosingest.spark.record_columns import CORRUPT, RecordSettings, naming, refuse_our_names
from eosingest.spark.scan import CheckItems

_BY_COLUMNS = tuple(name for name, entry in FORMATS.items() if entry.is_by_columns)
# These functions are non-deterministic to Spark, which pushes no filter below them: this column is added last.
_SPLIT_BY_BLOCK = "xxhash64(input_file_name(), input_file_block_start())"


@dataclass(frozen=True, kw_only=True)
class ReadSettings(RecordSettings):
    """The settings of the spec with which files are read and records made; `schema` is DDL, or None to infer it.

    `refuses_unknown`: a field that the schema does not name ends the run before anything is sent. `inspects`: the text of the
    files is read once before anything is sent.
    """

    format: str
    options: dict[str, str]
    schema: str | None
    refuses_unknown: bool = False
    inspects: bool = True


@dataclass(frozen=True)
class FileRows:
    """The rows of the pending files (`scan.SplitFrame`).

    `split` is the column of each row's split hash; `split_last`: it must be added after every filter. `visible` are the columns
    that a spec may use. `scheme` is the start of the path from which the split is hashed (`splits.planned_splits`).
    """

    rows: DataFrame
    visible: tuple[str, ...]
    schema: str
    split: Column
    split_last: bool
    plan: Plan
    scheme: str
    check_items: CheckItems | None  # for files of a store (store_check.py)

    position = None  # rows are counted

    @property
    def check_all(self) -> CheckItems:
        """The check of files of a store, or of local files (local_check.py)."""
        return self.check_items or LocalCheck.of(pending_files(self.plan))

    def fitted(self, records: DataFrame) -> FileRows:
        """Return these rows: Spark itself reads only the columns that the records use."""
        return self

    def verified(self, records: DataFrame) -> tuple[Mapping[int, PlannedSplit], int]:
        """See `splits.task_splits`."""
        return splits.task_splits(self.plan, self.rows, records, self.scheme)


def file_rows(spark: SparkSession, settings: ReadSettings, plan: Plan, base_path: str | None) -> FileRows:
    """Make the DataFrame. Raises SpecError that names the key whose value Spark does not take."""
    reader, files = _reader(spark, settings, base_path), pending_files(plan)
    schema = read_schema(spark, settings, plan, base_path)
    with naming("source"):
        rows = reader.schema(schema).load(files)
        if FORMATS[settings.format].has_footers:
            rows = valid_text.guarded(rows, splits.file_columns(rows))
        resolved = rows._jdf.schema().toDDL()
        by_columns = settings.format in _BY_COLUMNS
        split = _split_by_metadata(rows) if by_columns else functions.expr(_SPLIT_BY_BLOCK)

    return FileRows(
        rows=rows,
        visible=tuple(rows.columns),
        schema=resolved,
        split=split,
        split_last=not by_columns,
        plan=plan,
        scheme=splits.METADATA if by_columns else splits.BLOCK,
        check_items=StoreCheck.of(files),
    )


def _split_by_metadata(rows: DataFrame) -> Column:
    """Return the hash of a row's split, even if a column of the data is called `_metadata`.

    In formats that are read row by row `_metadata` is copied into every row, a tenth of the CPU of a job.
    """
    metadata = rows.metadataColumn("_metadata")
    return functions.xxhash64(metadata["file_path"], metadata["file_block_start"])


def _reader(spark: SparkSession, settings: ReadSettings, base_path: str | None) -> SparkReader:
    reader = SparkReader(spark, settings.format, settings.options, base_path)
    if settings.format == "json":
        reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", CORRUPT)
    return reader


def read_schema(spark: SparkSession, settings: ReadSettings, plan: Plan, base_path: str | None) -> StructType:
    """Return the schema without our corrupt column: the given one, or the one that Spark infers from all pending files.

    Raises FatalError if the files do not fit it, which Spark would not report.
    """
    files = pending_files(plan)
    data = Files(spark, settings.format, files, partition_columns(files) if base_path is not None else ())

    if settings.schema is not None:
        with naming("source.schema"):
            given = from_ddl(settings.schema)
        refuse_our_names("source.schema", given.names)
        in_folders = lossy_values.misread_folders(
            spark, partition_values(files) if base_path is not None else {}, given
        )
        if in_folders:
            raise lossy_values.refusal(in_folders)
        data.check(given, given=True)
        return given
    with naming("source"):
        inferred = data.infer(_reader(spark, settings, None), files)
    data.check(inferred, given=False)
    data.check_values(inferred, read_some)
    return inferred
