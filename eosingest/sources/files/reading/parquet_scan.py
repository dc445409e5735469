"""Implements `spark.scan.Scan` for Parquet files: Python reads them, and Spark SQL works only on the columns that are used.

source.schema, or the footers of all pending files ─▶ ParquetReader in a PythonScan (spark/python_scan.py)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from eosingest.errors import FatalError
from eosingest.protocol.plan import Plan
from eosingest.sources.files.bytes.codecs import DamagedError
from eosingest.sources.files.formats.inspection import opened_to_check
from eosingest.sources.files.listing.errors import before_sending, is_changed
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.reading.columnar import Footer
from eosingest.sources.files.reading.exact_types import merged, refuse_misread, refuse_unreadable
from eosingest.sources.files.reading.files_in_python import CASE, FilesInPython, ddl_of, is_set
from eosingest.sources.files.reading.parquet_columns import Stored, TypeSettings, stored_columns
from eosingest.sources.files.reading.parquet_reader import (
    ParquetReader,
    Source,
    explained,
    opened_parquet,
)
from eosingest.sources.files.reading.parquet_values import CORRECTED, Calendars, Rules
from eosingest.sources.files.reading.planned_files import pending_files
from eosingest.sources.files.reading.schema_drift import refuse_outgrown
from eosingest.sources.files.reading.schema_types import from_ddl
from eosingest.spark.python_scan import PythonRows, PythonScan, arrow_schema
from eosingest.spark.record_columns import naming, refuse_our_names
from eosingest.spark.scan import Direct

_FORMAT = "parquet"
_AT_A_TIME = 16  # footers
_TAIL_BYTES = 64 << 10


@dataclass(frozen=True)
class ParquetScan(FilesInPython):
    """How Parquet files are read, in a Spark with the spec's `conf`."""

    conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def infers_schema(self) -> bool:  # type: ignore[override]
        """Whether the spec gives no schema."""
        return self.read.schema is None

    def direct(self, plan: Plan) -> Direct | None:
        """See `PythonScan.direct`; None too if names are case-sensitive: Spark decides which column is meant."""
        return None if self._rules().case else super().direct(plan)

    def check_pinned_schema(self, spark: SparkSession, plan: Plan, pinned: str) -> None:
        """See `schema_drift.refuse_outgrown`; a schema that the spec gives is not checked."""
        if self.read.schema is None:
            found = _Columns(self, plan)
            refuse_outgrown(spark, found.whole, from_ddl(pinned), _FORMAT, found.by_file)

    def frame(
        self, spark: SparkSession, plan: Plan, schema: str | None, most_tasks: int, *, resumed: bool = False
    ) -> PythonRows:
        """See `PythonScan.frame`. The pinned `schema` is the one to read, if the spec gives none."""
        scan = replace(self, read=replace(self.read, schema=schema)) if schema is not None else self
        return scan.of(plan).frame(spark, plan, schema, most_tasks, resumed=resumed)

    def of(self, plan: Plan) -> PythonScan:
        """Return the scan of the schema's columns, followed by those of the folders. Raises FatalError if files do not fit."""
        columns = _Columns(self, plan)
        reader = ParquetReader(arrow_schema(columns.whole), columns.folders, self._settings(), self._rules())
        types = {field.name: ddl_of(field.dataType) for field in columns.whole.fields}
        return PythonScan(self.records, reader, types, narrowed=reader.narrowed)

    def _settings(self) -> TypeSettings:
        return TypeSettings(is_set(self.conf, "spark.sql.legacy.parquet.nanosAsLong"))

    def _rules(self) -> Rules:
        options = {name.lower(): value.upper() for name, value in self.read.options.items()}
        times, int96 = options.get("datetimerebasemode", CORRECTED), options.get("int96rebasemode", CORRECTED)
        return Rules(is_set(self.conf, CASE), Calendars(times, int96))


class _Columns:
    """The columns with which the pending files of a plan are read: `whole` is the schema, `folders` its last columns.

    Raises FatalError if a file has a column that the schema does not hold.
    """

    def __init__(self, scan: ParquetScan, plan: Plan) -> None:
        rules = scan._rules()
        files = tuple(pending_files(plan))
        columns = _columns_of_files(files, scan._settings())
        self._case = rules.case
        self.footers = _footers(files, columns)
        if scan.read.schema is not None:
            with naming("source.schema"):
                given = from_ddl(scan.read.schema)
            types = self._refuse_twins(given)
        else:
            types = self._inferred(scan.read.options)
        refuse_our_names("source.schema" if scan.read.schema is not None else "source", types.names)
        refuse_misread(self.footers, types, _FORMAT, given=scan.read.schema is not None, case=self._case)
        self.whole, self.folders = scan.with_folders(types, plan)
        self._refuse_ambiguous()

    @property
    def by_file(self) -> Mapping[str, StructType]:
        """The columns of each file."""
        kinds = [(footer.files, _struct(footer)) for footer in self.footers]
        return {name: kind for files, kind in kinds for name in files}

    def _inferred(self, options: Mapping[str, str]) -> StructType:
        """Return the columns of all files, of the first one without `mergeSchema`."""
        merge = {name.lower(): value for name, value in options.items()}.get("mergeschema", "true").lower() == "true"
        footers = self.footers if merge else self.footers[:1]
        refuse_unreadable(footers, _FORMAT)
        return merged(footers, _FORMAT, case=self._case)

    def _refuse_twins(self, given: StructType) -> StructType:
        """Raise FatalError for a schema with one name twice."""
        seen = set[str]()
        for name in given.names:
            if (folded := name if self._case else name.lower()) in seen:
                raise FatalError(
                    f"source.schema: the column {name} is in it twice", code="bad-expression", hint="nothing was sent"
                )
            seen.add(folded)
        return given

    def _refuse_ambiguous(self) -> None:
        """Raise FatalError for a file of which two columns, or two fields, have the name of one that is read."""
        for footer in self.footers:
            twice = _twins(footer.stored, self.whole, self._case)
            if twice:
                raise FatalError(
                    f"{footer.example} has columns {twice[0]} and {twice[1]}, which are one to Spark SQL",
                    code="bad-data",
                    hint="nothing of this run was sent; rename one of them, list the columns to read, without these, in"
                    ' source.schema, or have names distinguished by case: [spark] conf = { "spark.sql.caseSensitive" ='
                    ' "true" }',
                )


def _twins(stored: Sequence[Stored], wanted: StructType, case: bool) -> tuple[str, str] | None:
    """Return two names in a file that are equal, of columns or fields that are read."""

    def folded(name: str) -> str:
        return name if case else name.lower()

    read = {folded(each.name): each.dataType for each in wanted.fields}
    seen: dict[str, str] = {}
    for column in stored:
        name = folded(column.name)
        if name in read:
            if name in seen:
                return seen[name], column.name
            seen[name] = column.name
            found = _twins_within(column, read[name], case)
            if found:
                return found
    return None


def _twins_within(column: Stored, kind: DataType, case: bool) -> tuple[str, str] | None:
    if isinstance(kind, StructType):
        return _twins(column.parts, kind, case)
    inner = [kind.elementType] if isinstance(kind, ArrayType) else []
    inner = [kind.keyType, kind.valueType] if isinstance(kind, MapType) else inner
    found = (_twins_within(part, each, case) for part, each in zip(column.parts, inner, strict=False))
    return next(filter(None, found), None)


@dataclass(frozen=True)
class ParquetFooter(Footer):
    """The footer of Parquet files, with their columns as they are `stored`."""

    stored: tuple[Stored, ...] = ()


def _struct(footer: Footer) -> StructType:
    return StructType([StructField(name, kind) for name, kind in footer.columns.items() if isinstance(kind, DataType)])


def _footers(
    files: Sequence[SourceFile], columns: Sequence[tuple[tuple[Stored, ...], tuple[str, ...]]]
) -> list[ParquetFooter]:
    """Return a footer for each schema, with the files that have it, in their order."""
    groups: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for place, (stored, packed) in enumerate(columns):
        groups.setdefault((repr(stored), packed), []).append(place)
    found = []
    for (_, packed), places in groups.items():
        stored, names = columns[places[0]][0], tuple(files[place].name for place in places)
        kinds = {column.name: column.kind for column in stored}
        found.append(ParquetFooter(names, kinds, packed=dict.fromkeys(packed, "LZO"), stored=stored))
    return found


@lru_cache(maxsize=4)
def _columns_of_files(
    files: tuple[SourceFile, ...], settings: TypeSettings
) -> list[tuple[tuple[Stored, ...], tuple[str, ...]]]:
    """Return the columns of each file, and the names of those that Arrow cannot decompress. Raises as `read` does."""
    with ThreadPoolExecutor(min(_AT_A_TIME, max(1, len(files)))) as pool:
        return list(pool.map(lambda file: _columns_of(file, settings), files))


def _columns_of(file: SourceFile, settings: TypeSettings) -> tuple[tuple[Stored, ...], tuple[str, ...]]:
    with opened_to_check(file) as opened:
        source = Source(opened)
        try:
            parquet = opened_parquet(source, in_store=bool(file.etag))
            with explained(source):
                return stored_columns(parquet, settings), _packed(parquet.metadata)
        except DamagedError:
            if is_changed(file, opened):  # then the error says nothing about the listed file
                raise before_sending(file) from None
            opened.seek(max(0, file.length - 4))
            raise FatalError(
                f"{file.name}: not a readable Parquet file: {_why(opened.read(4))}",
                code="bad-data",
                hint="nothing of this run was sent; correct the file, or move it away, and run again",
            ) from None


def _why(end: bytes) -> str:
    if end == b"PARE":
        return "its footer is encrypted"
    return "its footer is damaged" if end == b"PAR1" else "it does not end as one does: is it cut off?"


def _packed(metadata: Any) -> tuple[str, ...]:
    if not metadata.num_row_groups:
        return ()
    group = metadata.row_group(0)
    columns = (group.column(place) for place in range(group.num_columns))
    return tuple(dict.fromkeys(each.path_in_schema.split(".")[0] for each in columns if each.compression == "LZO"))
