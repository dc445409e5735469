"""Decides the columns and types with which files are read: those of the given schema, the pinned one, or an inferred one.

Between the plan and rows.py, which adds the specifics of JSON. ORC and Avro store a schema in each file, and that
of every pending file is read (columnar.py, avro_schema.py, exact_types.py). The columns of `k=v` folders are no data: Spark
appends them, as strings unless the schema says otherwise (spark/required_settings.py), so that their type never depends on
which folders are pending.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, StructType

from eosingest.errors import FatalError
from eosingest.sources.files.formats import FORMATS
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.reading import avro_schema
from eosingest.sources.files.reading.columnar import Footer, Unreadable, read_footers
from eosingest.sources.files.reading.exact_types import refuse_misread, refuse_unreadable, type_words
from eosingest.sources.files.reading.spark_reader import SparkReader
from eosingest.spark.failures import FROM_THE_JVM

WITH_FOOTERS = tuple(name for name, entry in FORMATS.items() if entry.has_footers)
_CASE = "spark.sql.caseSensitive"


class Files:
    """The pending files of one format, and the columns in their footers."""

    def __init__(self, spark: SparkSession, format: str, files: Sequence[SourceFile], folders: Sequence[str]) -> None:
        """Read the footers, if the format has some. `folders` are the columns of the `k=v` folders, in lower case."""
        self._spark = spark
        self._format = format
        self._folders = folders
        self._case = str(spark.conf.get(_CASE, "false")).lower() == "true"
        self._files = {file.name: file for file in files}
        self.footers = self._read_footers(files) if format in WITH_FOOTERS else []
        for footer in self.footers:
            self._refuse_folder_columns(footer.columns, f"{footer.example} has")

    def _read_footers(self, files: Sequence[SourceFile]) -> list[Footer]:
        if self._format == "avro":
            return avro_schema.read_headers(self._spark, files)
        return read_footers(self._spark, files)

    def infer(self, reader: SparkReader, files: Sequence[SourceFile], merge: bool) -> StructType:
        """Return the schema that Spark infers from all files, without the columns of folders. Raises FatalError.

        `reader` must have no `basePath`. `merge`: merge the schemas of all ORC files (`mergeSchema`).
        """
        if self._format in WITH_FOOTERS:
            refuse_unreadable(self.footers, self._format)
            if merge:
                reader = reader.option("mergeSchema", "true")
        try:
            inferred = self._inferred(reader, files)
        except FROM_THE_JVM:
            self._refuse_conflict()
            raise
        self._refuse_folder_columns(inferred.names, "the data has")
        return inferred

    def _inferred(self, reader: SparkReader, files: Sequence[SourceFile]) -> StructType:
        """Infer the schema of JSON with case-sensitive names, and that of Avro from all files.

        Otherwise Spark's inference would merge `a` and `A`, and drop one of them; of Avro it would use one file's schema.
        """
        if self._format == "avro":
            return avro_schema.merged(self._spark, self.footers, case=self._case)
        if self._format != "json" or self._case:
            return reader.load(files).schema
        before = self._spark.conf.get(_CASE, "false")
        self._spark.conf.set(_CASE, "true")
        try:
            inferred = reader.load(files).schema
        finally:
            self._spark.conf.set(_CASE, before or "false")
        _refuse_twins(inferred)
        return inferred

    def check(self, schema: StructType, *, given: bool) -> None:
        """Raise FatalError if a file's column would not be read exactly. `given`: the schema is not from these files."""
        if self.footers:
            data = StructType([field for field in schema.fields if field.name.lower() not in self._folders])
            refuse_misread(self.footers, data, self._format, given=given, case=self._case)

    def check_values(self, schema: StructType, read: Callable[[Sequence[SourceFile], StructType], DataFrame]) -> None:
        """Raise FatalError if a column has a value that its type does not hold. `read` reads files."""
        avro_schema.refuse_beyond_type(
            self.footers,
            {name.lower() for name in schema.names},
            lambda names, columns: read([self._files[name] for name in names], columns),
        )

    def _refuse_folder_columns(self, columns: Iterable[str], who: str) -> None:
        """Raise FatalError if the data has a folder's column: the folder's value would silently replace the data's."""
        twice = [name for name in columns if name.lower() in self._folders]
        if twice:
            raise FatalError(
                f"{who} a column {twice[0]}, and the files are in folders {twice[0]}=…: Spark would send the folder's value"
                " in place of the data's",
                code="column-twice",
                hint="nothing of this run was sent; rename the folders, or leave the column out of the data",
            )

    def _refuse_conflict(self) -> None:
        """Raise FatalError that names two files, if a column has types in them that Spark does not merge."""
        seen: dict[str, list[tuple[Footer, DataType | Unreadable]]] = {}
        for footer in self.footers:
            for name, kind in footer.columns.items():
                seen.setdefault(name if self._case else name.lower(), []).append((footer, kind))
        for name, kinds in seen.items():
            for (one, first), (other, second) in pairwise(kinds):
                if first != second and not _mergeable(first, second):
                    raise FatalError(
                        f"column {name} is {_words(first)} in {one.example} and {_words(second)} in {other.example}",
                        code="type-mismatch",
                        hint="nothing of this run was sent; give the column a type in source.schema that holds both, or give"
                        " these files a separate job",
                    )


def _refuse_twins(kind: DataType) -> None:
    """Raise FatalError for names that differ only in case, at any depth."""
    if isinstance(kind, ArrayType):
        _refuse_twins(kind.elementType)
    if not isinstance(kind, StructType):
        return
    seen: dict[str, str] = {}
    for field in kind.fields:
        other = seen.setdefault(field.name.lower(), field.name)
        if other != field.name:
            raise FatalError(
                f"the data has fields {other} and {field.name}, which Spark takes for one",
                code="bad-data",
                hint="nothing of this run was sent; rename one of them, write a source.schema with the one to read, or have"
                f' both read: [spark] conf = {{ "{_CASE}" = "true" }}',
            )
        _refuse_twins(field.dataType)


def _mergeable(one: DataType | Unreadable, other: DataType | Unreadable) -> bool:
    """Say whether Spark may merge two types: structs with different fields. It does not merge integers of two lengths."""
    if not (isinstance(one, StructType) and isinstance(other, StructType)):
        return False
    kinds = {field.name: field.dataType for field in one.fields}
    return all(kinds.get(field.name, field.dataType) == field.dataType for field in other.fields)


def _words(kind: DataType | Unreadable) -> str:
    return kind.words if isinstance(kind, Unreadable) else type_words(kind)
