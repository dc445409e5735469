"""Decides the columns and types with which files are read: those of the given schema, the pinned one, or an inferred one.

Between the plan and rows.py. ORC and Avro store a schema in each file, and that
of every pending file is read (columnar.py, avro_schema.py, exact_types.py). The columns of `k=v` folders are no data: Spark
appends them, as strings unless the schema says otherwise (spark/required_settings.py), so that their type never depends on
which folders are pending.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructType

from eosingest.errors import FatalError
from eosingest.sources.files.formats import FORMATS
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.reading.spark_reader import SparkReader

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

    def infer(self, reader: SparkReader, files: Sequence[SourceFile]) -> StructType:
        """Return the schema that Spark infers from all files, without the columns of folders. Raises FatalError.

        `reader` must have no `basePath`.
        """
        inferred = self._inferred(reader, files)
        self._refuse_folder_columns(inferred.names, "the data has")
        return inferred

    def _inferred(self, reader: SparkReader, files: Sequence[SourceFile]) -> StructType:
        """Infer the schema of Avro from all files: Spark would use one file's."""
        if self._format == "avro":
            return avro_schema.merged(self._spark, self.footers, case=self._case)
        return reader.load(files).schema

    def check(self, schema: StructType, *, given: bool) -> None:
        """Raise FatalError if a file's column would not be read exactly. `given`: the schema is not from these files."""

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


def _mergeable(one: DataType | Unreadable, other: DataType | Unreadable) -> bool:
    """Say whether Spark may merge two types: structs with different fields. It does not merge integers of two lengths."""
    if not (isinstance(one, StructType) and isinstance(other, StructType)):
        return False
    kinds = {field.name: field.dataType for field in one.fields}
    return all(kinds.get(field.name, field.dataType) == field.dataType for field in other.fields)


def _words(kind: DataType | Unreadable) -> str:
    return kind.words if isinstance(kind, Unreadable) else type_words(kind)


def from_ddl(ddl: str) -> StructType:
    """Return the schema of a DDL text; an empty text has no columns."""
    return cast(StructType, StructType.fromDDL(ddl)) if ddl else StructType([])
