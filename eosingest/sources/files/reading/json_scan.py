"""Implements `spark.scan.Scan` for JSON files: Python reads them, and Spark SQL works only on the columns that are used.

source.schema, or the one that Spark infers ─▶ JsonReader (json_reader.py) in a PythonScan (spark/python_scan.py)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from eosingest.errors import EosingestError, SpecError
from eosingest.protocol.plan import Plan
from eosingest.sources.files.listing.partitions import partition_base
from eosingest.sources.files.reading import hadoop_s3
from eosingest.sources.files.reading.exact_types import type_words
from eosingest.sources.files.reading.files_in_python import FilesInPython, ddl_of, is_set
from eosingest.sources.files.reading.inspect_files import inspect_pending
from eosingest.sources.files.reading.json_decoder import unread_type
from eosingest.sources.files.reading.json_reader import JsonReader, JsonSettings
from eosingest.sources.files.reading.planned_files import pending_files, planned_files
from eosingest.sources.files.reading.rows import read_schema
from eosingest.sources.files.reading.schema_drift import check_pinned_schema
from eosingest.sources.files.reading.schema_types import from_ddl
from eosingest.spark.python_scan import PythonRows, PythonScan
from eosingest.spark.record_columns import CORRUPT, naming, refuse_our_names
from eosingest.spark.scan import Direct, Scan, Tasks
from eosingest.spec.expressions import quote_name


@dataclass(frozen=True)
class JsonScan(FilesInPython):
    """How JSON files are read, in a Spark with the spec's `conf`. `inference` is the scan with which Spark infers a schema."""

    conf: Mapping[str, str] = field(default_factory=dict)
    inference: Scan | None = None

    def spark_conf(self, split_size: int) -> Mapping[str, str]:
        """Return the settings that the inference of a schema needs; none if the spec has a schema."""
        if self.read.schema is not None or self.inference is None:
            return {}
        return self.inference.spark_conf(split_size)

    def direct(self, plan: Plan) -> Direct | None:
        """See `PythonScan.direct`; None too if the spec has no schema."""
        return super().direct(plan) if self.read.schema is not None else None

    def inspect(self, tasks: Tasks, plan: Plan, *, direct: bool, slots: int) -> None:
        """See `inspect_files.inspect_pending`."""
        inspect_pending(tasks, self.read, plan, as_lines=False, slots=slots)

    def check_pinned_schema(self, spark: SparkSession, plan: Plan, pinned: str) -> None:
        """See `schema_drift.check_pinned_schema`; a schema that the spec gives is not checked."""
        if self.read.schema is None:
            hadoop_s3.reach(spark, pending_files(plan))
            check_pinned_schema(spark, self.read, plan, self._base_path(plan), pinned)

    def frame(
        self, spark: SparkSession, plan: Plan, schema: str | None, most_tasks: int, *, resumed: bool = False
    ) -> PythonRows:
        """See `PythonScan.frame`. Without a schema in the spec, the pinned `schema` is read, or the one that Spark infers."""
        ddl = self.read.schema if self.read.schema is not None else schema
        if ddl is None:
            hadoop_s3.reach(spark, pending_files(plan))
            found = read_schema(spark, self.read, plan, self._base_path(plan))
            ddl = ", ".join(f"{quote_name(each.name)} {ddl_of(each.dataType)}" for each in found.fields)
        scan = replace(self, read=replace(self.read, schema=ddl))
        return scan.of(plan).frame(spark, plan, schema, most_tasks, resumed=resumed)

    def without_spark(self, plan: Plan) -> PythonScan | None:
        """See `scan.ReadWithoutSpark`."""
        return None if self.read.schema is None else self.of(plan)

    def of(self, plan: Plan) -> PythonScan:
        """Return the scan of the schema's columns, followed by those of the folders. Raises SpecError if a type is not read."""
        with naming("source.schema"):
            given = from_ddl(self.read.schema or "")
        refuse_our_names("source.schema", given.names)
        _refuse_twins(given, case=is_set(self.conf, "spark.sql.caseSensitive"))
        _refuse_unread(given)
        whole, folders = self.with_folders(given, plan)
        rows = StructType(whole.fields[: len(whole.fields) - len(folders.fields)])
        reader = JsonReader(rows, JsonSettings.of(self.read.options), folders, names_once=not self.read.inspects)
        types = {each.name: ddl_of(each.dataType) for each in whole.fields}
        return PythonScan(self.records, reader, types, hidden={CORRUPT: "STRING"}, narrowed=reader.narrowed)

    def items_named_in(self, plan: Plan, text: str) -> str:
        """Name the files in the text of an error, or the pending ones."""
        assert self.inference is not None, "a run has one"
        return self.inference.items_named_in(plan, text)

    def failure_of(self, plan: Plan, text: str) -> EosingestError | None:
        """Return the error of Hadoop's client of the store, with which Spark infers a schema."""
        return None if self.inference is None else self.inference.failure_of(plan, text)

    def _base_path(self, plan: Plan) -> str | None:
        return partition_base(planned_files(plan), recursive=self.recursive)


def _refuse_unread(schema: StructType) -> None:
    """Raise SpecError for a column of a type that is not read from JSON."""
    for column in schema.fields:
        unread = unread_type(column.dataType)
        if unread is not None:
            raise SpecError(
                f"source.schema: column {column.name} has the type {type_words(unread)}, which is not read from JSON",
                code="bad-expression",
                hint="nothing was sent; write STRING, which holds the text of any value, and a MAP with keys of STRING",
            )


def _refuse_twins(kind: DataType, *, case: bool) -> None:
    """Raise SpecError for a name that a schema, or a struct in it, has twice. `case`: `a` and `A` are two names."""
    for struct in _structs(kind):
        seen = set[str]()
        for name in struct.names:
            if (folded := name if case else name.lower()) in seen:
                raise SpecError(
                    f"source.schema: the column {name} is in it twice",
                    code="bad-expression",
                    hint="nothing was sent; correct the spec",
                )
            seen.add(folded)


def _structs(kind: DataType) -> Iterator[StructType]:
    if isinstance(kind, StructType):
        yield kind
        for each in kind.fields:
            yield from _structs(each.dataType)
    elif isinstance(kind, ArrayType):
        yield from _structs(kind.elementType)
    elif isinstance(kind, MapType):
        yield from _structs(kind.valueType)
