"""Implements `spark.scan.Scan` for CSV files: Python reads them, and Spark SQL works only on the columns that are used.

source.schema, the pinned schema, or the types of all texts (csv_schema.py) ─▶ CsvReader in a PythonScan (spark/python_scan.py)
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

from pyspark.sql.types import CharType, DataType, StringType, StructField, StructType, VarcharType

from eosingest.errors import FatalError, SpecError, listed
from eosingest.protocol.plan import Plan
from eosingest.sources.files.formats.csv_header import first_row, names_of
from eosingest.sources.files.formats.csv_rows import Dialect
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.reading import csv_schema
from eosingest.sources.files.reading.audit_csv import AuditCsvReader
from eosingest.sources.files.reading.csv_columns import CsvColumns, text_types
from eosingest.sources.files.reading.csv_reader import CsvReader
from eosingest.sources.files.reading.csv_schema import CsvTypes, Kind
from eosingest.sources.files.reading.file_scan import CASE, is_set
from eosingest.sources.files.reading.inferring_scan import InferringScan
from eosingest.sources.files.reading.planned_files import pending_files
from eosingest.sources.files.reading.schema_drift import refuse_outgrown
from eosingest.sources.files.reading.schema_types import columns_ddl, from_ddl, names_alike
from eosingest.sources.files.reading.typed_text import arrow_type
from eosingest.spark.direct import Direct
from eosingest.spark.python_scan import PythonScan
from eosingest.spark.record_columns import naming, refuse_our_names
from eosingest.spark.record_settings import CORRUPT
from eosingest.spark.scan import Tasks

_AT_A_TIME = 16  # headers
_NAMED_AT_MOST = 10


@dataclass(frozen=True)
class CsvScan(InferringScan):
    """How CSV files are read, in a Spark with the spec's `conf`."""

    def direct(self, plan: Plan) -> Direct | None:
        """See `scan.Scan`; None too if names are case-sensitive: Spark decides then."""
        return None if is_set(self.conf, CASE) else super().direct(plan)

    def check_pinned_schema(self, tasks: Tasks, plan: Plan, pinned: str) -> None:
        """See `schema_drift.refuse_outgrown`; a schema that the spec gives is not checked."""
        if self.read.schema is not None:
            return
        if self._infers_types:
            self.refuse_to_infer_again(plan)
        names, before = self._names(plan), from_ddl(pinned)
        by_file = self._kinds(tasks, plan, names) if self._infers_types else {}
        known = {each.name: each.dataType for each in before.fields}

        def struct(kinds: Sequence[Kind | None]) -> StructType:
            """Return the columns; one without values has the pinned type."""
            pairs = zip(names, kinds, strict=True)
            types = [
                (name, known.get(name, StringType()) if kind is None else kind.type(known.get(name)))
                for name, kind in pairs
            ]
            return StructType([StructField(name, kind) for name, kind in types])

        found = struct(csv_schema.merged(by_file.values(), len(names)))
        refuse_outgrown(found, before, "csv", {name: struct(kinds) for name, kinds in by_file.items()})

    def _given(self, ddl: str) -> StructType:
        """Return the columns of a schema. Raises SpecError if CSV has no such types."""
        with naming("source.schema"):
            given = from_ddl(ddl)
        refuse_our_names("source.schema", given.names)
        self._refuse_twice("source.schema", given.names)
        for each in given.fields:
            try:
                arrow_type(_plain(each.dataType))
            except KeyError:
                raise SpecError(
                    f"source.schema: {each.name} is {each.dataType.simpleString()}, and a field of CSV is one value",
                    code="bad-expression",
                    hint=f"nothing was sent; declare it as STRING, and write from_json({each.name}, …) in transform.select",
                ) from None
        return StructType([StructField(each.name, _plain(each.dataType)) for each in given.fields])

    def of(self, plan: Plan, schema: str | None = None) -> PythonScan:
        """Return the schema's columns, followed by those of the folders.

        Raises FatalError if a file's header has other columns, or a folder's value another type.
        """
        types = self._given((self.read.schema if schema is None else schema) or "")
        whole, folders = self.with_folders(types, plan)
        rows = whole.fields[: len(whole.fields) - len(folders.fields)]
        self._check_headers(plan, [each.name for each in rows])
        columns = {each.name: each.dataType.simpleString().upper() for each in rows}
        columns |= {folder.name: folder.type.ddl for folder in folders.fields}
        reader: CsvReader | AuditCsvReader = CsvReader(self.read.options, self._columns(rows), folders)
        if self.audits and self.audit_reader:
            reader = AuditCsvReader(self.read.options, StructType(rows), frozenset(each.name for each in rows), folders)
        return self.scan(reader, columns, hidden={CORRUPT: "STRING"}, narrowed=reader.narrowed)

    @property
    def audit_reader(self) -> str:
        """See `scan.Scan`."""
        return "Python's csv module" if AuditCsvReader.takes(self.read.options) else ""

    def _columns(self, fields: Sequence[StructField]) -> CsvColumns:
        options = self.read.options
        return CsvColumns(
            Dialect.of(options),
            len(fields),
            tuple(each.name for each in fields),
            tuple(range(len(fields))),
            text_types(options, [each.dataType for each in fields]),
            options.get("nullValue", ""),
            options.get("emptyValue", ""),
            inspected=self.read.inspects,
        )

    # ---- headers -----------------------------------------------------------------------------------------------------

    def _check_headers(self, plan: Plan, names: Sequence[str]) -> None:
        """Raise FatalError for files whose headers do not have these names, in this order, or are not in their first split."""
        if not Dialect.of(self.read.options).header:
            return
        sensitive = is_set(self.conf, CASE)
        fold = str if sensitive else str.lower
        wanted = [*map(fold, names)]

        found, files = [], tuple(pending_files(plan))
        headers = _first_rows(files, tuple(self.read.options.items()), plan.split_size, self.read.inspects)
        for file, header in zip(files, headers, strict=True):
            if header is None:
                continue
            given = names_of(header, self.read.options.get("nullValue", ""), case_sensitive=sensitive)
            written = [name or "" for name in header]
            if wanted not in ([*map(fold, given)], [*map(fold, written)]):
                found.append(f"{file.name}: its header is {', '.join(written)}")
        if found:
            raise FatalError(
                f"the columns are {', '.join(names)}; {listed(found, _NAMED_AT_MOST, separator='; ')}",
                code="bad-data",
                hint="nothing of this run was sent; write the columns of all files into source.schema in their order, or give"
                " files with other columns a separate job",
            )

    def _names(self, plan: Plan) -> list[str]:
        """Return the columns' names if the spec gives no schema: those of the first header, else `_c0`, `_c1` and so on."""
        options = self.read.options
        sensitive = is_set(self.conf, CASE)
        row = next((row for file in pending_files(plan) if (row := first_row(file, options)) is not None), [])
        if not Dialect.of(options).header:
            return [f"_c{place}" for place in range(len(row))]
        names = names_of(row, options.get("nullValue", ""), case_sensitive=sensitive)
        refuse_our_names("source", names)
        self._refuse_twice("source", names)
        self.refuse_folders(plan, names)
        return names

    def _refuse_twice(self, where: str, names: Sequence[str]) -> None:
        """Raise an error if two columns have the same name: SpecError if the spec says so, else FatalError."""
        alike = names_alike(names, case=is_set(self.conf, CASE))
        if alike is not None:
            raise (SpecError if where == "source.schema" else FatalError)(
                f"{where}: there are two columns {alike[0]}",
                code="column-twice",
                hint="nothing was sent; give each column of the header, or of source.schema, another name",
            )

    # ---- types -------------------------------------------------------------------------------------------------------

    def inferred(self, tasks: Tasks, plan: Plan) -> str:
        """Return the columns with the types of all their texts. Raises SpecError if that would read too much."""
        names = self._names(plan)
        if not self._infers_types:
            return columns_ddl(_struct(names, [None] * len(names)))
        self.refuse_to_infer(plan, lambda split: _struct(names, self._types(names).of(split, blocks=1)))
        found = self._kinds(tasks, plan, names)
        return columns_ddl(_struct(names, csv_schema.merged(found.values(), len(names))))

    @property
    def _infers_types(self) -> bool:
        return self.read.options.get("inferSchema", "true").lower() != "false"

    def _kinds(self, tasks: Tasks, plan: Plan, names: Sequence[str]) -> dict[str, tuple[Kind | None, ...]]:
        """Return the kinds of the columns of each pending file, read by tasks."""
        width = len(names)
        return self.seen_by_file(
            tasks, plan, self._types(names), lambda one, other: csv_schema.merged((one, other), width)
        )

    def _types(self, names: Sequence[str]) -> CsvTypes:
        return CsvTypes(self.read.options, self._columns([StructField(name, StringType()) for name in names]))


@lru_cache(maxsize=4)
def _first_rows(
    files: tuple[SourceFile, ...], options: tuple[tuple[str, str], ...], split_size: int, inspected: bool
) -> list[list[str | None] | None]:
    """Return the header of each file, None of one without a row."""
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        return list(pool.map(lambda file: first_row(file, dict(options), split_size, inspected=inspected), files))


def _struct(names: Sequence[str], kinds: Sequence[Kind | None]) -> StructType:
    types = [StringType() if kind is None else kind.type() for kind in kinds]
    return StructType([StructField(name, kind) for name, kind in zip(names, types, strict=True)])


def _plain(kind: DataType) -> DataType:
    return StringType() if isinstance(kind, CharType | VarcharType) else kind
