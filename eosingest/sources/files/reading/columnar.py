"""Reads the columns of Parquet and ORC files from each file's own footer.

Called before any row is read (data_schema.py). pyarrow reads the footer of every pending file; the JVM is called once for each
schema found, for the types that Spark gives the columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StructType,
)

from eosingest.errors import FatalError, listed
from eosingest.sources.files.formats.inspection import opened_to_check
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.reading.spark_reader import hadoop_path
from eosingest.sources.files.storage.port import UnreachableError
from eosingest.spark.causes import innermost

_THREADS = 4
_CPP = "ORC_CPP"
NUMBERED = "_col"  # the prefix of column names in ORC files of old versions of Hive
FORMAT_NAMES = {"parquet": "Parquet", "orc": "ORC", "avro": "Avro"}
# Codecs of Parquet that parquet-mr delegates to classes which pyspark does not contain.
_CODEC_CLASSES = {"BROTLI": "org.apache.hadoop.io.compress.BrotliCodec", "LZO": "com.hadoop.compression.lzo.LzoCodec"}
_GREGORIAN_FROM_DAY = -141_427  # 1582-10-15, in days since 1970
_DAY_MS = 86_400_000
_ORC_INSTANT = "timestamp with local time zone"
# In a schema's JSON: types that Spark 4.0 does not have. Later versions do not read them, or only with a setting.
_NEWER_TYPES = re.compile(r'"(?:type|elementType|keyType|valueType)":"(time|variant|geometry|geography)\b')
# Parquet types without a counterpart in Spark, by a part of their name, and the type as which Spark can read them.
_STORED_AS: Mapping[str, DataType] = {
    "TIME(MILLIS": IntegerType(),
    "TIME(": LongType(),
    "TIMESTAMP(NANOS": LongType(),
    "FLOAT16": BinaryType(),
}


@dataclass(frozen=True)
class Unreadable:
    """A type unknown to Spark: its name in the file's format (`words`), and the type that is `stored`, None if unknown."""

    words: str
    stored: DataType | None = None


@dataclass(frozen=True)
class Footer:
    """A schema, and the names of the `files` that have it. `positional`: Spark matches its columns by position, not by name.

    `beyond_type`: values may be larger than their type (avro_schema.py).
    """

    files: tuple[str, ...]
    columns: Mapping[str, DataType | Unreadable]
    positional: bool = False
    packed: Mapping[str, str] = field(default_factory=dict)  # columns with a codec that this Spark does not have
    beyond_type: bool = False

    @property
    def example(self) -> str:
        """Name one file, and the number of others with this schema."""
        return listed(self.files, 1, rest=" (and {:,} more files)")


@dataclass(frozen=True)
class _Peek:
    """The properties of a file that pyarrow reads. `key` is equal for files of one schema.

    `packed` are pairs of a column and its codec, which Spark may not have; `cpp_times`: ORC's C++ library wrote the file, and
    it has dates or times.
    """

    key: str
    packed: tuple[tuple[str, str], ...] = ()
    cpp_times: bool = False


def read_footers(spark: SparkSession, format: str, files: Iterable[SourceFile]) -> list[Footer]:
    """Return the schemas of the files. Raises FatalError that names a file which is not of the format, with the reason;
    ChangedError if one has changed since it was listed.
    """
    listed = list(files)
    peek = _peek_orc if format == "orc" else _peek_parquet
    groups: dict[_Peek, list[SourceFile]] = {}
    with ThreadPoolExecutor(_THREADS) as pool:
        for file, peeked in zip(listed, pool.map(peek, listed), strict=True):
            groups.setdefault(peeked, []).append(file)
    return [_footer(spark, format, peeked, group) for peeked, group in groups.items()]


def _peek_parquet(file: SourceFile) -> _Peek:
    """Read a file's footer. If pyarrow cannot, the JVM is called for this file alone."""
    # Imported here and below: readers of other formats, and every worker, load this module without using Arrow's readers.
    from pyarrow import ArrowException, parquet

    with opened_to_check(file) as opened:
        try:
            metadata = parquet.read_metadata(opened)
            schema = str(metadata.schema).split("\n", 1)[1]  # after a line with a memory address
        except UnreachableError:
            raise
        except (ArrowException, OSError, ValueError):
            return _Peek(file.path)
    codecs = {}
    if metadata.num_row_groups:
        group = metadata.row_group(0)
        for column in map(group.column, range(group.num_columns)):
            if column.compression in _CODEC_CLASSES:
                codecs[column.path_in_schema.split(".")[0]] = column.compression
    return _Peek(schema, tuple(codecs.items()))


def _peek_orc(file: SourceFile) -> _Peek:
    from pyarrow import ArrowException, orc

    with opened_to_check(file) as opened:
        try:
            found = orc.ORCFile(opened)
            schema, writer = found.schema.remove_metadata().to_string(), found.writer
        except UnreachableError:
            raise
        except (ArrowException, OSError, ValueError):
            return _Peek(file.path)
    times = "timestamp" in schema or "date" in schema
    return _Peek(f"{writer} {schema}", cpp_times=writer == _CPP and times)


def _footer(spark: SparkSession, format: str, peeked: _Peek, files: Sequence[SourceFile]) -> Footer:
    file = files[0]
    try:
        columns = _orc_columns(spark, file) if format == "orc" else _parquet_columns(spark, file)
    except Py4JJavaError as error:
        raise FatalError(
            f"{file.name}: not a readable {FORMAT_NAMES[format]} file: {innermost(str(error)).replace(file.path, 'it')}",
            code="bad-data",
            hint="nothing of this run was sent; correct the file, or move it away, and run again",
        ) from error
    if peeked.cpp_times:
        _refuse_old_dates(spark, files)
    positional = format == "orc" and (
        (bool(columns) and all(name.startswith(NUMBERED) for name in columns))
        or _hadoop_conf(spark).getBoolean("orc.force.positional.evolution", False)
    )
    packed = {name: codec for name, codec in peeked.packed if not _has_class(spark, _CODEC_CLASSES[codec])}
    return Footer(tuple(each.name for each in files), columns, positional, packed)


def _has_class(spark: SparkSession, name: str) -> bool:
    jvm: Any = spark._jvm
    try:
        jvm.java.lang.Class.forName(name, False, jvm.java.lang.Thread.currentThread().getContextClassLoader())
    except Py4JJavaError:
        return False
    return True


def _hadoop_conf(spark: SparkSession) -> Any:
    return spark._jsparkSession.sessionState().newHadoopConf()


def _hadoop_path(spark: SparkSession, file: SourceFile) -> Any:
    return hadoop_path(spark._jvm, file.path)


def _from_java(java_type: Any) -> DataType:
    """Return a type of the JVM. Raises ValueError if a part has a type that only newer versions of Spark have."""
    text = java_type.json()
    if newer := _NEWER_TYPES.search(text):
        raise ValueError(newer[1])
    return StructType.fromJson(json.loads(text))


def _parquet_columns(spark: SparkSession, file: SourceFile) -> dict[str, DataType | Unreadable]:
    jvm: Any = spark._jvm
    source = jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(_hadoop_path(spark, file), _hadoop_conf(spark))
    reader = jvm.org.apache.parquet.hadoop.ParquetFileReader.open(source)
    try:
        message = reader.getFooter().getFileMetaData().getSchema()
    finally:
        reader.close()
    package = jvm.org.apache.spark.sql.execution.datasources.parquet
    converter = package.ParquetToSparkSchemaConverter(spark._jsparkSession.sessionState().conf())
    try:
        return _fields(_from_java(converter.convert(message)))
    except Exception:  # Spark has no type for one of the columns: convert each separately
        return _convert_each(jvm, converter, message)


def _convert_each(jvm: Any, converter: Any, message: Any) -> dict[str, DataType | Unreadable]:
    columns: dict[str, DataType | Unreadable] = {}
    for column in message.getFields():
        one = jvm.java.util.ArrayList()
        one.add(column)
        try:
            alone = jvm.org.apache.parquet.schema.MessageType(message.getName(), one)
            columns.update(_fields(_from_java(converter.convert(alone))))
        except Exception:
            words = " ".join(column.toString().replace(f" {column.getName()}", "", 1).split()).partition(" ")[2]
            stored = next((kind for word, kind in _STORED_AS.items() if word in words), None)
            columns[column.getName()] = Unreadable(words, stored if column.isPrimitive() else None)
    return columns


def _orc_columns(spark: SparkSession, file: SourceFile) -> dict[str, DataType | Unreadable]:
    jvm: Any = spark._jvm
    reader = _orc_reader(spark, file)
    try:
        schema = reader.getSchema()
    finally:
        reader.close()
    if schema.getCategory().toString() != "STRUCT":
        raise FatalError(f"{file.name}: its rows are no structs but {schema.toString()}", code="bad-data")
    utils = jvm.org.apache.spark.sql.execution.datasources.orc.OrcUtils
    columns: dict[str, DataType | Unreadable] = {}
    names, children = schema.getFieldNames(), schema.getChildren()
    for name, child in zip(names, children, strict=True):
        words = child.toString()
        if _ORC_INSTANT in words:  # Spark 4.0 does not read it, later versions do
            columns[name] = Unreadable(words)
            continue
        try:
            alone = jvm.org.apache.orc.TypeDescription.createStruct().addField(name, child.clone())
            columns.update(_fields(_from_java(utils.toCatalystSchema(alone))))
        except Exception:
            columns[name] = Unreadable(words)
    return columns


def _orc_reader(spark: SparkSession, file: SourceFile) -> Any:
    jvm: Any = spark._jvm
    package = jvm.org.apache.orc.OrcFile
    return package.createReader(_hadoop_path(spark, file), package.readerOptions(_hadoop_conf(spark)))


def _fields(schema: DataType) -> dict[str, DataType | Unreadable]:
    assert isinstance(schema, StructType)
    return {field.name: field.dataType for field in schema.fields}


def _refuse_old_dates(spark: SparkSession, files: Iterable[SourceFile]) -> None:
    """Raise FatalError for dates before 1582-10-15 in files of ORC's C++ library.

    It counts days by the Gregorian calendar without recording that in the file; the JVM's reader then assumes the Julian one.
    """
    for file in files:
        reader = _orc_reader(spark, file)
        try:
            oldest = [] if reader.writerUsedProlepticGregorian() else [_oldest_day(s) for s in reader.getStatistics()]
        finally:
            reader.close()
        if any(day is not None and day < _GREGORIAN_FROM_DAY for day in oldest):
            raise FatalError(
                f"{file.name}: it holds dates before 1582-10-15 and does not say by which calendar: Spark would read them"
                " days off",
                code="bad-data",
                hint="nothing of this run was sent; write these dates as text, or the file as Parquet",
            )


def _oldest_day(statistics: Any) -> int | None:
    """Return the day of a column's least date or time, in days since 1970; None if it has none."""
    kind = statistics.getClass().getSimpleName()
    if "Date" in kind:
        least = statistics.getMinimumLocalDate()
        return None if least is None else int(least.toEpochDay())
    if "Timestamp" in kind:
        least = statistics.getMinimumUTC()
        return None if least is None else int(least.getTime() // _DAY_MS)
    return None
