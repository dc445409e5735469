"""Parquet and ORC: what each file's own footer says its columns are, held against the types that they will be read as.

Called by read.py, before a row is read. Spark casts ORC to whatever type it is given, with nulls where a value does not fit,
and reads Parquet's 32-bit integers as shorter ones, as dates, and the other way round: without a word. Here a type that is
not the file's own must be one that holds every value of it.

Every pending file is looked at: pyarrow reads its footer, and the JVM is asked once for each schema that it meets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as parquet
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from eosingest.errors import FatalError
from eosingest.sources.base import SourceFile
from eosingest.spark.causes import innermost

_THREADS = 4
_CPP = "ORC_CPP"
_NUMBERED = "_col"  # how the columns are called in files of old Hive
_NAMES = {"parquet": "Parquet", "orc": "ORC"}
# Codecs of Parquet that parquet-mr leaves to classes which pyspark does not bring along.
_CODEC_CLASSES = {"BROTLI": "org.apache.hadoop.io.compress.BrotliCodec", "LZO": "com.hadoop.compression.lzo.LzoCodec"}
_NAMED_AT_MOST = 10
_DIGITS: dict[type[DataType], int] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 19}
_ORDER = list(_DIGITS)
_GREGORIAN_FROM_DAY = -141_427  # 1582-10-15, in days since 1970
_DAY_MS = 86_400_000
# Types of Parquet that Spark has no counterpart for, by a word of their name: what they are stored as can be read.
_STORED_AS: Mapping[str, DataType] = {
    "TIME(MILLIS": IntegerType(),
    "TIME(": LongType(),
    "TIMESTAMP(NANOS": LongType(),
    "FLOAT16": BinaryType(),
}
_NANOS_AS_LONG = (
    '[spark] conf = { "spark.sql.legacy.parquet.nanosAsLong" = "true" } reads it as a BIGINT of nanoseconds'
)


@dataclass(frozen=True)
class Unreadable:
    """A column of a type that Spark does not have: its name in the file's format, what it is `stored` as if that is known."""

    words: str
    stored: DataType | None = None


@dataclass(frozen=True)
class Footer:
    """A schema, and the names of the files that have it. `positional`: old Hive's, whose columns have numbers for names."""

    files: tuple[str, ...]
    columns: Mapping[str, DataType | Unreadable]
    positional: bool = False
    packed: Mapping[str, str] = field(default_factory=dict)  # columns by a codec that this Spark does not have

    @property
    def example(self) -> str:
        """Name a file, and say how many more are like it."""
        return self.files[0] + (f" (and {len(self.files) - 1:,} more files)" if len(self.files) > 1 else "")


@dataclass(frozen=True)
class _Peek:
    """What pyarrow tells of a file: a text that is equal for files of one schema, and what needs another look.

    `packed` are columns by a codec that Spark may not have; `cpp_times`: of ORC's C++ library, with dates or times in it.
    """

    key: str
    packed: tuple[tuple[str, str], ...] = ()
    cpp_times: bool = False


def read_footers(spark: SparkSession, format: str, files: Iterable[SourceFile]) -> list[Footer]:
    """Return the schemas of the files. Raises FatalError that names a file which is none of the format, and says why."""
    listed = list(files)
    peek = _peek_orc if format == "orc" else _peek_parquet
    groups: dict[_Peek, list[SourceFile]] = {}
    with ThreadPoolExecutor(_THREADS) as pool:
        for file, peeked in zip(listed, pool.map(peek, listed), strict=True):
            groups.setdefault(peeked, []).append(file)
    return [_footer(spark, format, peeked, group) for peeked, group in groups.items()]


def _peek_parquet(file: SourceFile) -> _Peek:
    """Look at a file's footer. Where pyarrow cannot say, the JVM is asked for this file alone."""
    try:
        metadata = parquet.read_metadata(file.path)
        schema = str(metadata.schema).split("\n", 1)[1]  # behind a line with an address in memory
    except (pa.ArrowException, OSError, ValueError):
        return _Peek(file.path)
    codecs = {}
    if metadata.num_row_groups:
        group = metadata.row_group(0)
        for column in map(group.column, range(group.num_columns)):
            if column.compression in _CODEC_CLASSES:
                codecs[column.path_in_schema.split(".")[0]] = column.compression
    return _Peek(schema, tuple(codecs.items()))


def _peek_orc(file: SourceFile) -> _Peek:
    try:
        opened = orc.ORCFile(file.path)
        schema = opened.schema.remove_metadata().to_string()
    except (pa.ArrowException, OSError, ValueError):
        return _Peek(file.path)
    times = "timestamp" in schema or "date" in schema
    return _Peek(f"{opened.writer} {schema}", cpp_times=opened.writer == _CPP and times)


def _footer(spark: SparkSession, format: str, peeked: _Peek, files: Sequence[SourceFile]) -> Footer:
    file = files[0]
    try:
        columns = _orc_columns(spark, file) if format == "orc" else _parquet_columns(spark, file)
    except Py4JJavaError as error:
        raise FatalError(
            f"{file.name}: not a readable {_NAMES[format]} file: {innermost(str(error)).replace(file.path, 'it')}",
            code="bad-data",
            hint="nothing of this run was sent; correct the file, or move it away, and run again",
        ) from error
    if peeked.cpp_times:
        _refuse_old_dates(spark, files)
    positional = format == "orc" and (
        (bool(columns) and all(name.startswith(_NUMBERED) for name in columns))
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
    jvm: Any = spark._jvm
    return jvm.org.apache.hadoop.fs.Path("file", None, file.path)


def _from_java(java_type: Any) -> DataType:
    return StructType.fromJson(json.loads(java_type.json()))


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
    except Exception:  # one of the columns is of a type that Spark does not have: which?
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
        try:
            alone = jvm.org.apache.orc.TypeDescription.createStruct().addField(name, child.clone())
            columns.update(_fields(_from_java(utils.toCatalystSchema(alone))))
        except Exception:
            columns[name] = Unreadable(child.toString())
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

    It counts days by today's calendar and does not say so in the file; the JVM's reader then counts by the Julian one.
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
    """Return the day of a column's least date or time, in days since 1970; None where it has none."""
    kind = statistics.getClass().getSimpleName()
    if "Date" in kind:
        least = statistics.getMinimumLocalDate()
        return None if least is None else int(least.toEpochDay())
    if "Timestamp" in kind:
        least = statistics.getMinimumUTC()
        return None if least is None else int(least.getTime() // _DAY_MS)
    return None


# ---- the check -------------------------------------------------------------------------------------------------------


def refuse_misread(footers: Sequence[Footer], schema: StructType, format: str, *, given: bool, case: bool) -> None:
    """Raise FatalError where a column would be read as a type that does not hold all that its file's own type does.

    `schema` is that of the data, without folder columns. `given`: it is from the spec; else it was inferred, and there is no
    other to be had. `case`: names are told apart by upper and lower case.
    """
    for footer in footers:
        _refuse_packed(footer, schema, case)
    problems = [problem for footer in footers for problem in _problems(footer, schema, format, given, case)]
    if problems:
        more = f"; and {len(problems) - _NAMED_AT_MOST} more" if len(problems) > _NAMED_AT_MOST else ""
        way_out = (
            "write the file's own type into source.schema, and cast in record.value"
            if given
            else "give the column one type in source.schema that holds both, or give these files a job of their own"
        )
        raise FatalError(
            "; ".join(problems[:_NAMED_AT_MOST]) + more,
            code="type-mismatch",
            hint=f"nothing of this run was sent; {way_out}",
        )


def _refuse_packed(footer: Footer, schema: StructType, case: bool) -> None:
    """Raise FatalError where a column that is read is compressed by a codec that this Spark does not have."""
    read = {_folded(name, case) for name in schema.names}
    for name, codec in footer.packed.items():
        if _folded(name, case) in read:
            raise FatalError(
                f"{footer.example}: column {name} is compressed with {codec}, which Spark does not bring along",
                code="unreadable-column",
                hint="nothing of this run was sent; write the file with zstd, snappy or gzip",
            )


def refuse_unreadable(footers: Sequence[Footer], format: str) -> None:
    """Raise FatalError for columns of types that Spark does not have, where the schema is to be inferred from the files."""
    found = [
        (footer, name, kind)
        for footer in footers
        for name, kind in footer.columns.items()
        if isinstance(kind, Unreadable)
    ]
    if not found:
        return
    footer, name, kind = found[0]
    more = f"; and {len(found) - 1} more columns" if len(found) > 1 else ""
    raise FatalError(
        f"{footer.example}: column {name} is of {_NAMES[format]}'s type {kind.words}, which Spark does not have{more}",
        code="unreadable-column",
        hint=f"nothing of this run was sent; {_way_out(name, kind)}",
    )


def _way_out(name: str, kind: Unreadable) -> str:
    nanos = f"{_NANOS_AS_LONG}; or " if "TIMESTAMP(NANOS" in kind.words else ""
    if kind.stored is None:
        return f"{nanos}write the column as another type, or list the columns to read, without {name}, in source.schema"
    return f"{nanos}list the columns in source.schema: {name} {type_words(kind.stored)} gives what is stored"


def _problems(footer: Footer, schema: StructType, format: str, given: bool, case: bool) -> list[str]:
    if footer.positional:
        return _problems_by_place(footer, schema, format, given, case)
    columns = {_folded(name, case): (name, kind) for name, kind in footer.columns.items()}
    problems = []
    for wanted in schema.fields:
        found = columns.get(_folded(wanted.name, case))
        if found is not None:
            problems += [f"{footer.example}: {text}" for text in _differences(wanted, *found, format, case)]
    return problems


def _problems_by_place(footer: Footer, schema: StructType, format: str, given: bool, case: bool) -> list[str]:
    """As `_problems`, where Spark takes the file's first column for the schema's first, whatever they are called."""
    if len(footer.columns) > len(schema.fields):
        return [
            f"{footer.example}: it has {len(footer.columns)} columns without names, and is read by their place: the schema has"
            f" {len(schema.fields)}"
        ]
    problems = []
    for wanted, (name, kind) in zip(schema.fields, footer.columns.items(), strict=False):
        if wanted.name != name and (not given or wanted.name.startswith(_NUMBERED)):
            return [
                f"{footer.example}: its columns are read by their place, and {name} would be taken for {wanted.name}"
            ]
        problems += [f"{footer.example}: {text}" for text in _differences(wanted, name, kind, format, case)]
    return problems


def _folded(name: str, case: bool) -> str:
    return name if case else name.lower()


def _differences(wanted: StructField, name: str, kind: DataType | Unreadable, format: str, case: bool) -> list[str]:
    as_type = type_words(wanted.dataType)
    if isinstance(kind, Unreadable):
        if kind.stored is not None and kind.stored == wanted.dataType:
            return []
        return [
            f"column {name} is of type {kind.words}, which Spark does not have, and would be read as {as_type}"
            + (f" ({type_words(kind.stored)} gives what is stored)" if kind.stored is not None else "")
        ]
    return [
        f"column {path} is {type_words(own)}, and would be read as {type_words(read)}"
        for path, own, read in _narrowed(name, kind, wanted.dataType, format, case)
    ]


def _narrowed(
    path: str, own: DataType, read: DataType, format: str, case: bool
) -> list[tuple[str, DataType, DataType]]:
    """Return path, own and read type of everything in a column that would not be read exactly."""
    if isinstance(own, StructType) and isinstance(read, StructType):
        inner = {_folded(f.name, case): f for f in own.fields}
        found = []
        for wanted in read.fields:
            mine = inner.get(_folded(wanted.name, case))
            if mine is not None:
                found += _narrowed(f"{path}.{mine.name}", mine.dataType, wanted.dataType, format, case)
        return found
    if isinstance(own, ArrayType) and isinstance(read, ArrayType):
        return _narrowed(f"{path}[]", own.elementType, read.elementType, format, case)
    if isinstance(own, MapType) and isinstance(read, MapType):
        keys = _narrowed(f"{path}.key", own.keyType, read.keyType, format, case)
        return keys + _narrowed(f"{path}.value", own.valueType, read.valueType, format, case)
    return [] if holds(own, read, format) else [(path, own, read)]


def type_words(kind: DataType) -> str:
    """Return a type as it is written in a schema; the names of its fields keep their case."""
    nested = isinstance(kind, StructType | ArrayType | MapType)
    return kind.simpleString() if nested else kind.simpleString().upper()


def holds(own: DataType, read: DataType, format: str) -> bool:
    """Say whether Spark reads every value of the file's `own` type as the same value of type `read`."""
    if own == read:
        return True
    kind, to = type(own), type(read)
    if kind in _DIGITS and to in _DIGITS:
        return _ORDER.index(kind) < _ORDER.index(to)
    if kind in _DIGITS and isinstance(read, DecimalType):
        return read.precision - read.scale >= _DIGITS[kind]
    if isinstance(own, DecimalType) and isinstance(read, DecimalType):
        return read.scale >= own.scale and read.precision - read.scale >= own.precision - own.scale
    if format == "parquet" and (kind, to) in ((BinaryType, StringType), (DateType, TimestampNTZType)):
        return True
    return (kind, to) in (
        (FloatType, DoubleType),
        (ByteType, DoubleType),
        (ShortType, DoubleType),
        (IntegerType, DoubleType),
        (StringType, BinaryType),
    )
