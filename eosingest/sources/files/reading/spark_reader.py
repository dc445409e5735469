"""Passes files to Spark's readers: local files by their paths, those of a store by an index of exactly these.

    files of a plan ─▶ SparkReader.load ─▶ DataFrame ─▶ rows.py, and all checks of the data before it

With paths, Spark sends a store three requests for each object before it reads the first; an index of the listed files sends
none, and has no object that is not pending. It uses py4j: none of this is public API of pyspark, and tests check it with the
pinned version.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from eosingest.errors import FatalError, SpecError
from eosingest.sources.files.formats import FORMATS
from eosingest.sources.files.listing.names import check_hadoop_key, escape_for_spark
from eosingest.sources.files.listing.partitions import folder_values, has_escapes
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.storage.s3 import parted
from eosingest.sources.files.storage.schemes import are_in_buckets, are_in_hdfs, below, store_of

_CASE = "spark.sql.caseSensitive"
_DATASOURCES = "org.apache.spark.sql.execution.datasources"
# Spark's readers by the name of their format.
_READERS = {
    "binaryFile": f"{_DATASOURCES}.binaryfile.BinaryFileFormat",
    "json": f"{_DATASOURCES}.json.JsonFileFormat",
    "text": f"{_DATASOURCES}.text.TextFileFormat",
}
# Otherwise Spark may drop the files of an index, and list the bucket itself.
OF_THE_INDEX = {
    "spark.sql.hive.manageFilesourcePartitions": "true",
    "spark.sql.hive.filesourcePartitionFileCacheSize": str(1 << 50),
    "spark.sql.metadataCacheTTLSeconds": "-1",
}
_BLOCK_BYTES = 32 << 20  # as in s3a; if files are cut, the split size decides, which is not larger


def hadoop_path(jvm: Any, path: str) -> Any:
    """Return the path of a file, as Hadoop's client of its storage opens it."""
    if are_in_buckets([path]):
        bucket, key = parted(path)
        return jvm.org.apache.hadoop.fs.Path("s3a", bucket, f"/{key}")
    if are_in_hdfs([path]):
        return jvm.org.apache.hadoop.fs.Path("hdfs", store_of(path).removeprefix("hdfs://"), below(path))
    return jvm.org.apache.hadoop.fs.Path("file", None, path)


@dataclass(frozen=True)
class SparkReader:
    """Reads files of a `format` by `options`, as pyspark's DataFrameReader does. `base_path`: root of `k=v` folders."""

    spark: SparkSession
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    base_path: str | None = None
    columns: StructType | None = None

    def option(self, name: str, value: str) -> SparkReader:
        """Return a reader with another option; names are not case-sensitive."""
        others = {key: text for key, text in self.options.items() if key.lower() != name.lower()}
        return replace(self, options={**others, name: value})

    def schema(self, columns: StructType) -> SparkReader:
        """Return a reader that does not infer the columns."""
        return replace(self, columns=columns)

    def load(self, files: Sequence[SourceFile]) -> DataFrame:
        """Return the rows of the files. Raises Spark's errors, and FatalError for names that Hadoop's paths cannot have."""
        frame = _Index(self, files).frame() if any(file.etag for file in files) else self._of_paths(files)
        if self.base_path is not None and has_escapes(files):
            _set_folder_values(frame, files)
        return frame

    def _of_paths(self, files: Sequence[SourceFile]) -> DataFrame:
        reader = self.spark.read.format(FORMATS[self.format].reader or self.format).options(**self.options)
        reader = reader.schema(self.columns) if self.columns is not None else reader
        reader = reader.option("basePath", self.base_path) if self.base_path is not None else reader
        return reader.load([escape_for_spark(file.path) for file in files])


def _set_folder_values(frame: DataFrame, files: Sequence[SourceFile]) -> None:
    """Give text columns of `k=v` folders their values: Spark makes a character of each `%XX`, and `K%C3%B6ln` is `KÃ¶ln`.

    Raises FatalError for a column of another type if a folder's value is not ASCII: Spark has cast another text.
    """
    jvm: Any = frame.sparkSession._jvm
    folders = {hadoop_path(jvm, file.path).getParent().toString(): file for file in _one_of_each_folder(files)}
    spec = frame._jdf.queryExecution().analyzed().collectLeaves().apply(0).relation().location().partitionSpec()
    types = [field.dataType().typeName() for field in spec.partitionColumns().fields()]
    partitions = spec.partitions()
    for partition in map(partitions.apply, range(partitions.size())):
        file = folders[partition.path().toString()]
        for place, (name, value) in enumerate(folder_values(file).items()):
            if value is None:
                continue
            if types[place].startswith("string"):
                partition.values().update(place, jvm.org.apache.spark.unsafe.types.UTF8String.fromString(value))
            elif not value.isascii():
                raise FatalError(
                    f"{file.name}: column {name} is {types[place].upper()}, and the folder's value is '{value}'",
                    code="bad-data",
                    hint="nothing of this run was sent; declare the column as STRING, or rename the folder",
                )


def _one_of_each_folder(files: Sequence[SourceFile]) -> Iterable[SourceFile]:
    return {file.path.rpartition("/")[0]: file for file in files}.values()


@functools.lru_cache(maxsize=4)
def _statuses(gateway: Any, files: tuple[SourceFile, ...]) -> Any:
    """Return an array of Hadoop's FileStatus. A run loads the same objects several times, and 10,000 of them take seconds."""
    made = gateway.jvm.org.apache.hadoop.fs.FileStatus
    statuses = gateway.new_array(made, len(files))
    for place, file in enumerate(files):
        path = hadoop_path(gateway.jvm, file.path)
        statuses[place] = made(file.length, False, 1, _BLOCK_BYTES, file.mtime_ms, path)
    return statuses


class _Index:
    """Files of a store as Spark's InMemoryFileIndex, filled with the listed files, and the relation over it.

    It builds the relation as Spark's DataSource does for paths: a given schema loses the columns of folders, which are
    appended; otherwise the format infers the schema.
    """

    def __init__(self, reader: SparkReader, files: Sequence[SourceFile]) -> None:
        self._reader = reader
        self._files = files
        jvm: Any = reader.spark._jvm
        self._jvm = jvm
        self._session: Any = reader.spark._jsparkSession
        self._none: Any = jvm.scala.Option.apply(None)

    def frame(self) -> DataFrame:
        options = self._options(self._reader.options)
        format = self._class(_READERS[self._reader.format])()
        index = self._index()
        folders = index.partitionSchema()
        columns = self._columns(format, options, index, folders)
        for schema in (columns, folders):
            self._jvm.org.apache.spark.sql.util.SchemaUtils.checkSchemaColumnNameDuplication(schema, self._sensitive)
        for_reading = () if self._reader.spark.version.startswith("4.0.") else (True,)  # a parameter since Spark 4.1
        self._class(f"{_DATASOURCES}.DataSourceUtils").verifySchema(format, columns, *for_reading)
        relation = self._class(f"{_DATASOURCES}.HadoopFsRelation")(
            index, folders, columns.asNullable(), self._none, format, options, self._session
        )
        return DataFrame(self._session.baseRelationToDataFrame(relation), self._reader.spark)

    @property
    def _sensitive(self) -> bool:
        return str(self._reader.spark.conf.get(_CASE, "false")).lower() == "true"

    def _columns(self, format: Any, options: Any, index: Any, folders: Any) -> Any:
        given = self._reader.columns
        if given is not None:
            fold = str if self._sensitive else str.lower
            in_folders = {fold(name) for name in folders.fieldNames()}
            return self._schema(StructType([field for field in given.fields if fold(field.name) not in in_folders]))
        found = format.inferSchema(self._session, options, index.allFiles())
        if found.isEmpty():
            raise SpecError(
                f"source: of these files Spark infers no columns of {self._reader.format}",
                code="spec",
                hint="write source.schema",
            )
        return found.get()

    def _index(self) -> Any:
        """Return the index. A `basePath` is its root; without one, no folder gives a column."""
        base = self._reader.base_path
        roots: dict[str, list[SourceFile]] = {}
        for file in self._files:
            if are_in_buckets([file.path]):
                check_hadoop_key(file.path)
            roots.setdefault(store_of(file.path) if base is None else base, []).append(file)
        cache = self._class(f"{_DATASOURCES}.FileStatusCache").getOrCreate(self._session)
        paths = self._jvm.java.util.ArrayList()
        for root, files in roots.items():
            path = hadoop_path(self._jvm, root)
            cache.putLeafFiles(path, _statuses(self._reader.spark.sparkContext._gateway, tuple(files)))
            paths.add(path)
        options = {} if base is not None else {"recursiveFileLookup": "true"}
        given = self._none
        if self._reader.columns is not None:
            given = self._jvm.scala.Option.apply(self._schema(self._reader.columns))
        to_seq = self._jvm.org.apache.spark.api.python.PythonUtils.toSeq
        index = self._class(f"{_DATASOURCES}.InMemoryFileIndex")(
            self._session, to_seq(paths), self._options(options), given, cache, self._none, self._none
        )
        indexed = index.allFiles().size()
        if indexed != len(self._files):
            raise FatalError(
                f"Spark has an index of {indexed:,} objects in place of {len(self._files):,}",
                code="source-index",
                hint="nothing was sent; this is a defect, please report it",
            )
        return index

    def _schema(self, columns: StructType) -> Any:
        return self._session.parseDataType(columns.json())

    def _options(self, options: Mapping[str, str]) -> Any:
        scala_map = self._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(dict(options))
        return getattr(self._class("org.apache.spark.sql.catalyst.util.CaseInsensitiveMap$"), "MODULE$").apply(
            scala_map
        )

    def _class(self, name: str) -> Any:
        found = self._jvm
        for part in name.split("."):
            found = getattr(found, part)
        return found
