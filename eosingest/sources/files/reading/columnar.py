"""Reads the columns of ORC files from each file's own footer, and defines what a footer has (`Footer`), of any format.

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
    DataType,
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
_GREGORIAN_FROM_DAY = -141_427  # 1582-10-15, in days since 1970
_DAY_MS = 86_400_000
_ORC_INSTANT = "timestamp with local time zone"
# In a schema's JSON: types that Spark 4.0 does not have. Later versions do not read them, or only with a setting.
_NEWER_TYPES = re.compile(r'"(?:type|elementType|keyType|valueType)":"(time|variant|geometry|geography)\b')


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
    packed: Mapping[str, str] = field(default_factory=dict)  # columns with a codec that no reader here has
    beyond_type: bool = False

    @property
    def example(self) -> str:
        """Name one file, and the number of others with this schema."""
        return listed(self.files, 1, rest=" (and {:,} more files)")


@dataclass(frozen=True)
class _Peek:
    """The properties of a file that pyarrow reads. `key` is equal for files of one schema.

    `cpp_times`: ORC's C++ library wrote the file, and it has dates or times.
    """

    key: str
    cpp_times: bool = False


def read_footers(spark: SparkSession, files: Iterable[SourceFile]) -> list[Footer]:
    """Return the schemas of the files. Raises FatalError that names a file which is not of the format, with the reason;
    ChangedError if one has changed since it was listed.
    """
    listed = list(files)
    groups: dict[_Peek, list[SourceFile]] = {}
    with ThreadPoolExecutor(_THREADS) as pool:
        for file, peeked in zip(listed, pool.map(_peek, listed), strict=True):
            groups.setdefault(peeked, []).append(file)
    return [_footer(spark, peeked, group) for peeked, group in groups.items()]


def _peek(file: SourceFile) -> _Peek:
    # Imported here: readers of other formats, and every worker, load this module without using Arrow's readers.
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


def _footer(spark: SparkSession, peeked: _Peek, files: Sequence[SourceFile]) -> Footer:
    file = files[0]
    try:
        columns = _orc_columns(spark, file)
    except Py4JJavaError as error:
        raise FatalError(
            f"{file.name}: not a readable ORC file: {innermost(str(error)).replace(file.path, 'it')}",
            code="bad-data",
            hint="nothing of this run was sent; correct the file, or move it away, and run again",
        ) from error
    if peeked.cpp_times:
        _refuse_old_dates(spark, files)
    positional = (bool(columns) and all(name.startswith(NUMBERED) for name in columns)) or _hadoop_conf(
        spark
    ).getBoolean("orc.force.positional.evolution", False)
    return Footer(tuple(each.name for each in files), columns, positional)


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
