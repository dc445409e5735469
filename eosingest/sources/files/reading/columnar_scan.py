"""Implements `spark.scan.Scan` for files of columns that Python reads: Parquet and ORC (parquet_scan.py, orc_scan.py).

source.schema, or the footers of all pending files ─▶ a ColumnarReader in a PythonScan (spark/python_scan.py)

Spark SQL works only on the columns that are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, Protocol

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from eosingest.errors import FatalError
from eosingest.protocol.plan import Plan
from eosingest.sources.files.bytes.codecs import DamagedError
from eosingest.sources.files.formats.inspection import opened_to_check
from eosingest.sources.files.listing.errors import before_sending, is_changed
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.reading.columnar import FORMAT_NAMES, Footer, Stored
from eosingest.sources.files.reading.columnar_reader import ColumnarReader, Source
from eosingest.sources.files.reading.exact_types import merged, refuse_misread, refuse_unreadable
from eosingest.sources.files.reading.file_scan import CASE, FileScan, is_set
from eosingest.sources.files.reading.folder_columns import FolderColumns
from eosingest.sources.files.reading.planned_files import pending_files
from eosingest.sources.files.reading.schema_drift import refuse_outgrown
from eosingest.sources.files.reading.schema_types import ddl_of, from_ddl, names_alike
from eosingest.spark.direct import Direct
from eosingest.spark.python_scan import PythonScan, arrow_schema
from eosingest.spark.record_columns import naming, refuse_our_names
from eosingest.spark.scan import Tasks

_AT_A_TIME = 16  # footers


class FileColumns(NamedTuple):
    """The columns of a file; `packed` maps those that Arrow cannot decompress to their codec. `positional` as in Footer."""

    stored: tuple[Stored, ...]
    packed: tuple[tuple[str, str], ...] = ()
    positional: bool = False


class FooterReader(Protocol):
    """Reads the footers of a format. Two that compare as equal read alike."""

    def __hash__(self) -> int:
        """Return equal numbers for readers that are equal."""

    def columns(self, source: Source, *, in_store: bool) -> FileColumns:
        """Return the columns of an open file. Raises DamagedError with the reason."""


@dataclass(frozen=True)
class ColumnarScan(FileScan):
    """How such files are read, in a Spark with the spec's `conf`."""

    @property
    def case(self) -> bool:
        """Whether names are case-sensitive."""
        return is_set(self.conf, CASE)

    def footers(self) -> FooterReader:
        """Return the reader of the format's footers."""
        raise NotImplementedError

    def reader(self, schema: pa.Schema, folders: FolderColumns, data: Sequence[str]) -> ColumnarReader:
        """Return a reader of these columns; `data` names those that are not of folders."""
        raise NotImplementedError

    def direct(self, plan: Plan) -> Direct | None:
        """See `scan.Scan`; None if names are case-sensitive: Spark decides which column is meant."""
        return None if self.case else super().direct(plan)

    def check_pinned_schema(self, tasks: Tasks, plan: Plan, pinned: str) -> None:
        """See `schema_drift.refuse_outgrown`; a schema that the spec gives is not checked."""
        if self.read.schema is None:
            found = _Columns(self, plan)
            refuse_outgrown(found.whole, from_ddl(pinned), self.read.format, found.by_file)

    def of(self, plan: Plan, schema: str | None = None) -> PythonScan:
        """Return the schema's columns, followed by those of the folders. Raises FatalError if files do not fit."""
        columns = _Columns(self if schema is None else replace(self, read=replace(self.read, schema=schema)), plan)
        reader = self.reader(arrow_schema(columns.whole), columns.folders, columns.data)
        types = {field.name: ddl_of(field.dataType) for field in columns.whole.fields}
        return self.scan(reader, types, narrowed=reader.narrowed)


class _Columns:
    """The columns with which the pending files of a plan are read: `whole` is the schema, `folders` its last columns.

    `data` names the columns of the data in the schema's order. Raises FatalError if a file has a column that the schema does
    not hold.
    """

    def __init__(self, scan: ColumnarScan, plan: Plan) -> None:
        self._case, self._format = scan.case, scan.read.format
        self.footers = _footers(tuple(pending_files(plan)), scan)
        if scan.read.schema is not None:
            with naming("source.schema"):
                given = from_ddl(scan.read.schema)
            types = self._refuse_twins(given)
        else:
            types = self._inferred(scan.read.options)
        refuse_our_names("source.schema" if scan.read.schema is not None else "source", types.names)
        self.whole, self.folders = scan.with_folders(types, plan)
        data = self._of_data(types)
        refuse_misread(self.footers, data, self._format, given=scan.read.schema is not None, case=self._case)
        self.data = tuple(data.names)
        self._refuse_ambiguous()

    @property
    def by_file(self) -> Mapping[str, StructType]:
        """The columns of each file."""
        kinds = [(footer.files, _struct(footer)) for footer in self.footers]
        return {name: kind for files, kind in kinds for name in files}

    def _of_data(self, types: StructType) -> StructType:
        """Return the columns without those of folders, if files have columns by position: these have no column of a folder."""
        if not any(footer.positional for footer in self.footers):
            return types
        folders = {each.name.lower() for each in self.folders.fields}
        return StructType([each for each in types.fields if each.name.lower() not in folders])

    def _inferred(self, options: Mapping[str, str]) -> StructType:
        """Return the columns of all files, of the first one without `mergeSchema`."""
        merge = {name.lower(): value for name, value in options.items()}.get("mergeschema", "true").lower() == "true"
        footers = self.footers if merge else self.footers[:1]
        refuse_unreadable(footers, self._format)
        return merged(footers, self._format, case=self._case)

    def _refuse_twins(self, given: StructType) -> StructType:
        """Raise FatalError for a schema with one name twice."""
        alike = names_alike(given.names, case=self._case)
        if alike is not None:
            raise FatalError(
                f"source.schema: the column {alike[1]} is in it twice", code="bad-expression", hint="nothing was sent"
            )
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


def _struct(footer: Footer) -> StructType:
    return StructType([StructField(name, kind) for name, kind in footer.columns.items() if isinstance(kind, DataType)])


def _footers(files: tuple[SourceFile, ...], scan: ColumnarScan) -> list[Footer]:
    """Return a footer for each schema, with the files that have it, in their order."""
    groups: dict[str, tuple[FileColumns, list[str]]] = {}
    for file, columns in zip(files, _columns_of_files(files, scan.read.format, scan.footers()), strict=True):
        groups.setdefault(repr(columns), (columns, []))[1].append(file.name)
    return [
        Footer(
            tuple(names),
            columns.stored,
            positional=columns.positional,
            packed=dict(columns.packed),
        )
        for columns, names in groups.values()
    ]


@lru_cache(maxsize=4)
def _columns_of_files(files: tuple[SourceFile, ...], format: str, footers: FooterReader) -> list[FileColumns]:
    """Return the columns of each file. Raises as `read` does."""
    with ThreadPoolExecutor(min(_AT_A_TIME, max(1, len(files)))) as pool:
        return list(pool.map(lambda file: _columns_of(file, format, footers), files))


def _columns_of(file: SourceFile, format: str, footers: FooterReader) -> FileColumns:
    with opened_to_check(file) as opened:
        try:
            return footers.columns(Source(opened), in_store=bool(file.etag))
        except DamagedError as damaged:
            if is_changed(file, opened):  # then the error says nothing about the listed file
                raise before_sending(file) from None
            raise FatalError(
                f"{file.name}: not a readable {FORMAT_NAMES[format]} file: {damaged.message}",
                code="bad-data",
                hint=f"nothing of this run was sent; {damaged.hint or 'correct the file, or move it away'}, and run again",
            ) from None
