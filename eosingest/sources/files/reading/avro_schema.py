"""Reads the columns of Avro files from each file's own header.

Every pending file's header is read before any row, and the JVM is called once for each
schema found. Spark itself would use the schema of one of the files, and drop columns that only others have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, BinaryType, DataType, DecimalType, MapType, StructField, StructType

from eosingest.errors import FatalError
from eosingest.sources.files.bytes.codecs import DamagedError
from eosingest.sources.files.formats import avro_container
from eosingest.sources.files.formats.inspection import opened_to_check
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.reading import lossy_values
from eosingest.sources.files.reading.columnar import Footer, Unreadable
from eosingest.spark.causes import innermost

_IN_A_LONG = 18  # digits; with no more of them, Spark reads only the last eight bytes of a decimal
_BYTES_OF_A_LONG = 8
_BEYOND_A_LONG = (
    "length(«value») > 8 AND NOT hex(«value») RLIKE '^(?:(?:00)+[0-7][0-9A-F]{15}|(?:FF)+[89A-F][0-9A-F]{15})$'"
)
_NO_ROW_SENT = "nothing of this run was sent"


def read_headers(spark: SparkSession, files: Iterable[SourceFile]) -> list[Footer]:
    """Return the schemas of the files. Raises FatalError that names a file which is not of the format, with the reason;
    ChangedError if one has changed since it was listed.
    """
    groups: dict[str, list[SourceFile]] = {}
    for file in files:
        groups.setdefault(_schema_text(file), []).append(file)
    return [_header(spark, text, group) for text, group in groups.items()]


def _schema_text(file: SourceFile) -> str:
    with opened_to_check(file) as opened:
        try:
            return avro_container.read_header(opened).schema
        except DamagedError as damaged:
            raise _unreadable(file, damaged.message) from damaged


def _header(spark: SparkSession, text: str, files: Sequence[SourceFile]) -> Footer:
    jvm: Any = spark._jvm
    try:
        # Without validation, as Avro's own file reader does it: names need not follow Avro's rules.
        parser = jvm.org.apache.avro.Schema.Parser(jvm.org.apache.avro.NameValidator.NO_VALIDATION)
        schema = parser.setValidateDefaults(False).parse(text)
    except Py4JJavaError as error:
        raise _unreadable(files[0], f"its schema is not valid: {innermost(str(error))}") from error
    if schema.getType().toString() != "RECORD":
        raise _unreadable(files[0], f"its rows are no records but of type {schema.getType().toString().lower()}")
    columns = {field.name(): _column(jvm, field.schema()) for field in schema.getFields()}
    return Footer(tuple(file.name for file in files), columns, beyond_type=_has_wide_decimals(json.loads(text)))


def _column(jvm: Any, schema: Any) -> DataType | Unreadable:
    try:
        found = jvm.org.apache.spark.sql.avro.SchemaConverters.toSqlType(schema).dataType()
        alone = jvm.org.apache.spark.sql.types.StructType().add("c", found)
        return StructType.fromJson(json.loads(alone.json()))["c"].dataType
    except Py4JJavaError as error:
        recursive = "recursive" in str(error)
        return Unreadable("of a record that holds itself" if recursive else " ".join(schema.toString().split()))


def merged(spark: SparkSession, headers: Sequence[Footer], *, case: bool) -> StructType:
    """Return a schema with the columns of all files. Raises Py4JJavaError if two files' types of a column do not merge."""
    jvm: Any = spark._jvm
    types = jvm.org.apache.spark.sql.types
    merge = getattr(getattr(types, "StructType$"), "MODULE$").merge
    found: Any = None
    for header in headers:
        own = StructType([StructField(n, k) for n, k in header.columns.items() if isinstance(k, DataType)])
        mine = types.DataType.fromJson(own.json())
        found = mine if found is None else merge(found, mine, case)
    return StructType.fromJson(json.loads(found.json()))


# ---- decimals ----------------------------------------------------------------------------------------------------------


def _has_wide_decimals(kind: Any) -> bool:
    """Say whether a schema has decimals of up to 18 digits that may be written in more bytes than a long has."""
    if isinstance(kind, list):
        return any(map(_has_wide_decimals, kind))
    if not isinstance(kind, dict):
        return False
    if kind.get("logicalType") == "decimal" and kind.get("precision", 0) <= _IN_A_LONG:
        return bool(kind.get("type") == "bytes" or kind.get("size", 0) > _BYTES_OF_A_LONG)
    return any(map(_has_wide_decimals, kind.values()))


def refuse_beyond_type(
    headers: Iterable[Footer], wanted: Iterable[str], read: Callable[[Sequence[str], StructType], DataFrame]
) -> None:
    """Raise FatalError for a decimal of up to 18 digits that exceeds its type: Spark would use only its last eight bytes.

    Reads the files once per schema that may have such decimals. `wanted` are the columns that are read, in lower case; `read`
    reads the named files.
    """
    for header in headers:
        if not header.beyond_type:
            continue
        own = StructType([field for field in _readable(header) if field.name.lower() in wanted])
        found = lossy_values.misread_columns(
            lambda raw, header=header: read(header.files, raw),  # type: ignore[misc]
            own, frozenset(("decimal",)), {"decimal": _BEYOND_A_LONG}, BinaryType(),
        )  # fmt: skip
        if found:
            raise FatalError(
                f"{header.example}: a decimal is larger than its type says, and Spark would take it for another:"
                f" column {', '.join(found)}",
                code="bad-data",
                hint=f"{_NO_ROW_SENT}; write the file with the digits that its decimals have",
            )


def _readable(header: Footer) -> Iterator[StructField]:
    for name, kind in header.columns.items():
        if isinstance(kind, DataType):
            yield StructField(name, _few_digits(kind))


def _few_digits(kind: DataType) -> DataType:
    """Return the type with BINARY in place of decimals of more than 18 digits, which Spark reads exactly."""
    if isinstance(kind, DecimalType):
        return kind if kind.precision <= _IN_A_LONG else BinaryType()
    if isinstance(kind, StructType):
        return StructType([StructField(field.name, _few_digits(field.dataType)) for field in kind.fields])
    if isinstance(kind, ArrayType):
        return ArrayType(_few_digits(kind.elementType))
    return MapType(kind.keyType, _few_digits(kind.valueType)) if isinstance(kind, MapType) else kind


def _unreadable(file: SourceFile, why: str) -> FatalError:
    return FatalError(
        f"{file.name}: not a readable Avro file: {why}",
        code="bad-data",
        hint=f"{_NO_ROW_SENT}; correct the file, or move it away, and run again",
    )
