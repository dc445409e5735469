"""Decides the columns and types with which files are read: those of the given schema, the pinned one, or an inferred one.

Between the plan and rows.py, which adds the specifics of JSON. Avro stores a schema in each file, and that
of every pending file is read (avro_schema.py, exact_types.py). The columns of `k=v` folders are no data: Spark
appends them, as strings unless the schema says otherwise (spark/required_settings.py), so that their type never depends on
which folders are pending.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, StructType

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
        """Infer the schema of JSON with case-sensitive names: else Spark would merge `a` and `A`, and drop one of them."""
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
