"""From files to record columns: the DataFrame whose rows are Kafka records, each with the split it came from.

    files ─▶ reader (PERMISSIVE, our corrupt column) ─▶ where ─▶ select ─▶ key, value, headers, timestamp, partition
                 └─ block being read ─▶ split hash ─────────────────────▶ + checksum of the record

All of it runs in the JVM; the Python workers see binary columns. Every step is narrow and keeps the order of a split.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException, IllegalArgumentException, ParseException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession, functions
from pyspark.sql.types import DataType, IntegralType, StringType, StructField, StructType

from eosingest.errors import SpecError
from eosingest.protocol.plan import Plan
from eosingest.records import checksum
from eosingest.sources.files import csv_header
from eosingest.sources.files.partitions import partition_columns, partition_values
from eosingest.sources.files.source import escape_for_spark
from eosingest.spark import hadoop_codecs, misread, scan, times
from eosingest.spark.data_schema import WITH_FOOTERS, Files, from_ddl
from eosingest.spec.expressions import as_time, expand_star, literal_functions, normalise, quote_name

SPLIT = "__eosingest_split"
CORRUPT = "__eosingest_corrupt"
CHECKSUM = "__eosingest_checksum"
METADATA = "__eosingest_metadata"
TIMESTAMP = "__eosingest_timestamp"
PARTITION = "__eosingest_partition"
NOTHING = "__eosingest_nothing"
HEADER = "__eosingest_header_"  # followed by the header's place in the spec

_OUR_PREFIX = "__eosingest_"
_WITH_CORRUPT_ROWS = ("json", "csv")
_INFERENCE_MAX_BYTES = 1 << 30
_SAMPLE_ROWS = 10_000
# explode of a corrupt row's null gives no row at all: with such a select the JVM has to stop at the row itself.
_STOP_AT_CORRUPT_ROW = f"IF({CORRUPT} IS NULL, TRUE, raise_error('corrupt row: ' || {CORRUPT}))"
_BYTES_TYPES = ("string", "binary", "varchar", "char")
# How Spark complains of an aggregate among plain columns: its advice, GROUP BY, is not to be had here.
_NOT_OF_ONE_ROW = ("MISSING_GROUP_BY", "MISSING_AGGREGATION", "UNSUPPORTED_EXPR_FOR_OPERATOR")
_OURS = re.compile(r",? ?`__eosingest_\w+`")  # no column of the user's: not to be suggested
_TIME_TYPES = ("timestamp", "timestamp_ntz", "date")
_NUMBER_TYPES = ("integer", "long", "short", "byte")


@dataclass(frozen=True)
class ReadSettings:
    """What of the spec the DataFrame is made from; `schema` is DDL, or None to infer it."""

    format: str
    options: dict[str, str]
    schema: str | None
    where: str | None
    select: tuple[str, ...]
    key: str | None
    value: str
    headers: dict[str, str]
    timestamp: str | None
    partition: str | None = None


@dataclass(frozen=True)
class RecordFrame:
    """`records` are the record columns; `whole` is the source before any filter; `schema` the resolved DDL of its columns.

    `scheme` is how the path begins that a row's split is hashed from (`scan.planned_splits`).
    """

    records: DataFrame
    whole: DataFrame
    schema: str
    scheme: str


def record_frame(spark: SparkSession, settings: ReadSettings, plan: Plan, base_path: str | None) -> RecordFrame:
    """Make the DataFrame. Raises SpecError that names the key whose expression Spark does not take.

    FatalError where a column of JSON or CSV holds what Spark would read as another value (misread.py).
    """
    reader = _reader(spark, settings, base_path)
    paths = [escape_for_spark(entry.file.path) for entry in plan.pending_files]
    schema = read_schema(spark, settings, plan, base_path)
    if _headers_are_the_names(spark, settings, plan, lambda: reader.schema(schema).load(paths)):
        reader = reader.option("enforceSchema", "true")  # names that Spark gave are in no header
    if settings.format in _WITH_CORRUPT_ROWS:
        schema = StructType([*schema.fields, StructField(CORRUPT, StringType())])
    with _naming("source"):
        whole = reader.schema(schema).load(paths)
        visible = [name for name in whole.columns if name != CORRUPT]
        resolved = whole.select(*(quote_name(name) for name in visible))._jdf.schema().toDDL()
    records = _composed(whole, settings, visible)
    if CORRUPT in whole.columns and scan.reads_only(records, CORRUPT):
        needed = [name for name in scan.file_columns(whole) if name != CORRUPT] if settings.format == "csv" else []
        whole = _with_something_to_read(reader, schema, paths, needed)
        records = _composed(whole, settings, visible)
    records = times.guarded(records)
    scan.check_deterministic(records)
    if settings.format in WITH_FOOTERS:
        return RecordFrame(records, whole, resolved, scan.METADATA)
    # Spark calls its note of the block that is being read non-deterministic, and moves no filter below it: it comes last.
    split = functions.expr("xxhash64(input_file_name(), input_file_block_start())").alias(SPLIT)
    return RecordFrame(records.select("*", split), whole, resolved, scan.BLOCK)


def _composed(whole: DataFrame, settings: ReadSettings, visible: Sequence[str]) -> DataFrame:
    """Return the record columns of the source's rows."""
    with _naming("source"):
        rows = _visible_rows(whole, settings, visible)
    selected = _selected(_filtered(rows, settings, visible), settings, visible)
    if CORRUPT in whole.columns and scan.generates_rows(selected):
        stopping = rows.where(_STOP_AT_CORRUPT_ROW)
        selected = _selected(_filtered(stopping, settings, visible), settings, visible)
    return _records(selected, settings)


def _with_something_to_read(
    reader: DataFrameReader, schema: StructType, paths: list[str], needed: list[str]
) -> DataFrame:
    """Return the source for records that use no column of it: Spark refuses to read the corrupt rows alone.

    The column of corrupt rows is made to need columns of CSV; of JSON and of an empty schema, one that no file has.
    """
    if not needed:
        schema, needed = StructType([*schema.fields, StructField(NOTHING, StringType())]), [NOTHING]
    whole = reader.schema(schema).load(paths)
    hashed = ", ".join(map(quote_name, needed))
    return whole.withColumn(CORRUPT, functions.expr(f"IF(hash({hashed}) % 1 = 5, NULL, {CORRUPT})"))


def null_columns(settings: ReadSettings) -> tuple[str, ...]:
    """Name the record columns that hold nothing but nulls; each column costs time in every row on its way to Python."""
    key = ("key",) if settings.key is None else ()
    return key if settings.format in _WITH_CORRUPT_ROWS else (*key, CORRUPT)


def _visible_rows(whole: DataFrame, settings: ReadSettings, visible: Sequence[str]) -> DataFrame:
    """Select what expressions may see, and what we need; of formats read by columns, the hash of a row's split is in it.

    In formats that are read row by row `_metadata` is copied into every row, a tenth of the CPU of a JSON job.
    """
    corrupt = functions.col(CORRUPT) if CORRUPT in whole.columns else functions.lit(None).cast("string").alias(CORRUPT)
    columns = [*map(functions.col, map(quote_name, visible)), corrupt]
    if settings.format in WITH_FOOTERS:
        metadata = whole.metadataColumn("_metadata")  # also where a column of the data has that name
        columns.append(functions.xxhash64(metadata["file_path"], metadata["file_block_start"]).alias(SPLIT))
    return whole.select(*columns)


def _ours(settings: ReadSettings) -> tuple[str, ...]:
    """Name the columns that go along with the user's, behind them."""
    return (CORRUPT, SPLIT) if settings.format in WITH_FOOTERS else (CORRUPT,)


def _theirs(rows: DataFrame, settings: ReadSettings) -> list[str]:
    return rows.columns[: -len(_ours(settings))]


def _reader(spark: SparkSession, settings: ReadSettings, base_path: str | None) -> DataFrameReader:
    reader = spark.read.format(settings.format).options(**settings.options)
    if settings.format in _WITH_CORRUPT_ROWS:
        reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", CORRUPT)
    return reader.option("basePath", base_path) if base_path is not None else reader


def _headers_are_the_names(
    spark: SparkSession, settings: ReadSettings, plan: Plan, whole: Callable[[], DataFrame]
) -> bool:
    """Say whether each CSV file's header gives the columns their names by Spark's own rule for empty and doubled ones.

    Asked only where Spark may have given a name; else Spark compares the headers itself.
    """
    if settings.format != "csv" or settings.options.get("enforceSchema") != "false":
        return False
    columns = scan.file_columns(whole())
    sensitive = spark.conf.get("spark.sql.caseSensitive", "false") == "true"
    return csv_header.may_be_given(columns) and all(
        csv_header.names_as_given(entry.file.path, settings.options, columns, case_sensitive=sensitive)
        for entry in plan.pending_files
    )


def read_schema(spark: SparkSession, settings: ReadSettings, plan: Plan, base_path: str | None) -> StructType:
    """Return the schema without our corrupt column: the given one, or what Spark infers of all that is pending.

    Raises FatalError where the files do not fit it: Spark would not say so.
    """
    if settings.format not in WITH_FOOTERS:
        hadoop_codecs.use(spark, plan)
    files = [entry.file for entry in plan.pending_files]
    paths = [escape_for_spark(file.path) for file in files]
    data = Files(spark, settings.format, files, partition_columns(files) if base_path is not None else ())
    if settings.schema is not None:
        with _naming("source.schema"):
            given = from_ddl(settings.schema)
        _refuse_our_names("source.schema", given.names)
        in_folders = misread.misread_folders(spark, partition_values(files) if base_path is not None else {}, given)
        if in_folders:
            raise misread.refusal(in_folders, in_folders=True)
        data.check(given, given=True)
        found = _misread_columns(spark, settings, base_path, given, paths)
        if found:
            raise misread.refusal(found)
        return given
    if settings.format in _WITH_CORRUPT_ROWS and plan.bytes_to_read > _INFERENCE_MAX_BYTES:
        raise SpecError(
            f"source.schema is missing, and to infer it Spark would read {plan.bytes_to_read >> 20} MiB twice",
            code="schema-needed",
            hint=f"this is what the first rows look like; check it and put it into the spec:\n"
            f'schema = "{_sample_ddl(spark, settings, paths[0])}"',
        )
    with _naming("source"):
        # Without mergeSchema one file's footer speaks for all, and columns vanish.
        inferred = data.infer(_reader(spark, settings, None), paths, merge="mergeSchema" not in settings.options)
    data.check(inferred, given=False)
    fields = [field for field in inferred.fields if field.name != CORRUPT]
    found = _misread_columns(spark, settings, base_path, StructType(fields), paths)
    types = frozenset(said.partition(" ")[0] for said in found.values())
    return StructType([_as_text(field, types) if field.name in found else field for field in fields])


def columns_with_values(
    spark: SparkSession, settings: ReadSettings, plan: Plan, base_path: str | None, schema: StructType
) -> set[str]:
    """Return the columns that have a value in any row of the pending files: one pass."""
    paths = [escape_for_spark(entry.file.path) for entry in plan.pending_files]
    frame = _reader(spark, settings, base_path).schema(schema).load(paths)
    found = [functions.max(functions.col(quote_name(name)).isNotNull()) for name in schema.names]
    (row,) = frame.agg(*(column.alias(f"c{index}") for index, column in enumerate(found))).collect()
    return {name for name, has_value in zip(schema.names, row, strict=True) if has_value}


def _as_text(field: StructField, types: frozenset[str]) -> StructField:
    return StructField(field.name, misread.as_text(field.dataType, types))


def _misread_columns(
    spark: SparkSession, settings: ReadSettings, base_path: str | None, schema: StructType, paths: list[str]
) -> dict[str, str]:
    """Return the columns in which a text is read as another value than it says, each with such a text."""
    policy = spark.conf.get("spark.sql.legacy.timeParserPolicy", None)
    if settings.format not in _WITH_CORRUPT_ROWS:
        return {}
    # By their places: what is wrong with a header is said where the rows are read.
    reader = _reader(spark, settings, base_path).option("enforceSchema", "true")
    types = misread.suspects(settings.format, settings.options, policy)
    return misread.misread_columns(lambda as_text: reader.schema(as_text).load(paths), schema, types)


def _sample_ddl(spark: SparkSession, settings: ReadSettings, path: str) -> str:
    """Infer the schema of a file's first rows."""
    lines = spark.read.text(path).limit(_SAMPLE_ROWS)._jdf
    encoder = spark._jvm.org.apache.spark.sql.Encoders.STRING()  # type: ignore[union-attr]
    reader = spark._jsparkSession.read().options(settings.options)
    rows = getattr(reader, settings.format)(getattr(lines, "as")(encoder))
    return str(rows.schema().toDDL())


def _filtered(rows: DataFrame, settings: ReadSettings, visible: Sequence[str]) -> DataFrame:
    """Keep the rows for which `where` is true, and every corrupt one: a filter must not hide it."""
    if settings.where is None:
        return rows
    _refuse_session_functions("transform.where", settings.where, visible)
    with _naming("transform.where"):
        return rows.where(functions.expr(settings.where) | functions.col(CORRUPT).isNotNull())


def _selected(rows: DataFrame, settings: ReadSettings, visible: Sequence[str]) -> DataFrame:
    expressions: list[str] = []
    for expression in settings.select:
        _refuse_session_functions("transform.select", expression, visible)
        if normalise(expression) == "*":
            expressions += [quote_name(name) for name in visible]
        else:
            expressions.append(expand_star(expression, visible))
    with _naming("transform.select"):
        selected = rows.selectExpr(*expressions, *_ours(settings))
    _refuse_our_names("transform.select", _theirs(selected, settings))
    return selected


def _records(rows: DataFrame, settings: ReadSettings) -> DataFrame:
    """Compute the record columns, cast them to binary, and hash each record.

    No expression of the user's becomes part of a longer text: a comment or a parenthesis in it would swallow the rest.
    """
    columns = _theirs(rows, settings)
    key = functions.lit(None).cast("binary")
    if settings.key is not None:
        key = _bytes_column(rows, "record.key", settings.key, columns)
    computed = [key.alias("key"), _bytes_column(rows, "record.value", settings.value, columns).alias("value")]
    for index, (name, expression) in enumerate(settings.headers.items()):
        computed.append(_bytes_column(rows, f"record.headers.{name}", expression, columns).alias(f"{HEADER}{index}"))
    if settings.timestamp:
        computed.append(_time_column(rows, settings.timestamp, columns).alias(TIMESTAMP))
    if settings.partition:
        computed.append(_number_column(rows, settings.partition, columns).alias(PARTITION))
    # As bytes: the text of a corrupt row need not be UTF-8.
    corrupt = functions.col(CORRUPT).cast("binary").alias(CORRUPT)
    split = [functions.col(name) for name in _ours(settings) if name == SPLIT]
    records = rows.select(*computed, *split, corrupt)
    records = records.selectExpr("*", f"{checksum.SPARK_EXPRESSION} AS {CHECKSUM}")
    metadata = [(name, functions.col(f"{HEADER}{index}")) for index, name in enumerate(settings.headers)]
    if settings.timestamp:
        metadata.append((checksum.TIMESTAMP_MARK, functions.col(TIMESTAMP)))
    return records.withColumn(METADATA, _metadata_hash(metadata)) if metadata else records


def _metadata_hash(named: Sequence[tuple[str, Column]]) -> Column:
    """Hash what a record carries beside key and value, in this order (`checksum.metadata_hash`)."""
    parts = [functions.col(CHECKSUM)]
    for name, value in named:
        parts += [functions.lit(name), value.isNull(), value]
    return functions.xxhash64(*parts)


def _bytes_column(rows: DataFrame, where: str, expression: str, columns: Sequence[str]) -> Column:
    instead = f"CAST({expression} AS STRING)"
    return _checked(rows, where, expression, columns, _BYTES_TYPES, lambda kind: instead).cast("binary")


def _time_column(rows: DataFrame, expression: str, columns: Sequence[str]) -> Column:
    def instead(kind: DataType) -> str:
        return as_time(expression, is_whole=isinstance(kind, IntegralType))

    time = _checked(rows, "record.timestamp", expression, columns, _TIME_TYPES, instead)
    return functions.unix_millis(time.cast("timestamp"))


def _number_column(rows: DataFrame, expression: str, columns: Sequence[str]) -> Column:
    instead = f"CAST({expression} AS INT)"
    return _checked(rows, "record.partition", expression, columns, _NUMBER_TYPES, lambda kind: instead).cast("int")


def _checked(
    rows: DataFrame,
    where: str,
    expression: str,
    columns: Sequence[str],
    types: Sequence[str],
    instead: Callable[[DataType], str],
) -> Column:
    """Return the expression with its star expanded. Raises SpecError where it is none, or of another type.

    `instead` says what to write where it is of a type.
    """
    _refuse_session_functions(where, expression, columns)
    with _naming(where):
        column = functions.expr(expand_star(expression, columns))
        found = rows.select(column.alias("checked")).schema["checked"].dataType
    if found.typeName() not in types:
        raise SpecError(
            f"{where}: {expression} is of type {found.simpleString()}, not {' or '.join(types[:2])}",
            code="bad-expression",
            hint=f"write {instead(found)}",
        )
    return column


def _refuse_our_names(where: str, names: Sequence[str]) -> None:
    for name in names:
        if name.lower().startswith(_OUR_PREFIX):
            raise SpecError(f"{where}: the column name {name} is ours", code="bad-expression")


def _refuse_session_functions(where: str, expression: str, columns: Sequence[str]) -> None:
    found = literal_functions(expression, columns)
    if found:
        raise SpecError(
            f"{where}: there is no column {found[0]}; Spark would take it for the function {found[0]}()",
            code="bad-expression",
            hint=f"the columns are: {', '.join(columns)}",
        )


@contextlib.contextmanager
def _naming(where: str) -> Iterator[None]:
    """Turn Spark's complaint about an expression or a schema into a SpecError that names the key."""
    try:
        yield
    except (AnalysisException, IllegalArgumentException, ParseException) as error:
        if error.getCondition() in _NOT_OF_ONE_ROW:
            raise SpecError(
                f"{where}: aggregates, windows, joins and subqueries are not possible: a record is made from one row",
                code="not-narrow",
                hint="nothing was sent; prepare the data before",
            ) from error
        text = _OURS.sub("", str(error).strip().split("\n", 1)[0]).strip(" ;")
        raise SpecError(f"{where}: {text}", code="bad-expression", hint="nothing was sent; correct the spec") from error
