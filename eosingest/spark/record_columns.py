"""Computes the columns of Kafka records: applies the spec's expressions to each row of a source; the results are bytes.

    rows ─▶ where ─▶ select ─▶ key, value, headers, timestamp, partition ─▶ + checksum of the record

Workers, audit and preview find the record columns by the names in record_settings.py.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, IllegalArgumentException, ParseException
from pyspark.sql import Column, DataFrame, functions
from pyspark.sql.types import DataType, IntegralType

from eosingest.errors import SpecError
from eosingest.records import checksum
from eosingest.records.encoding import JSON, Encoding
from eosingest.spark import generators, plan_checks, volatile_casts
from eosingest.spark.encoded_columns import encoded
from eosingest.spark.record_settings import (
    CHECKSUM,
    CORRUPT,
    HEADER,
    HEADERS,
    HEADERS_TYPE,
    ITEM_COLUMN,
    METADATA,
    PARTITION,
    POSITION,
    SPLIT,
    TIMESTAMP,
    UNFIT,
    RecordSettings,
)
from eosingest.spark.without_pandas import literal
from eosingest.spec.expressions import as_time, expand_star, literal_functions, normalise, quote_name

if TYPE_CHECKING:
    from eosingest.spark.python_scan import PythonRows

_OUR_PREFIX = "__eosingest_"
_HIDDEN_ITEM_COLUMN = "__eosingest_item"
# For generators that generators.py cannot guard: at a corrupt row the JVM raises an error.
_STOP_AT_CORRUPT_ROW = f"IF({CORRUPT} IS NULL, TRUE, raise_error('corrupt row: ' || {CORRUPT}))"
_BYTES_TYPES = ("string", "binary", "varchar", "char")
# Spark's error classes for an aggregate among plain columns. They advise GROUP BY, which a spec cannot have.
_NOT_OF_ONE_ROW = ("MISSING_GROUP_BY", "MISSING_AGGREGATION", "UNSUPPORTED_EXPR_FOR_OPERATOR")
_OURS = re.compile(r",? ?`__eosingest_\w+`")  # our own columns, in the columns that Spark suggests
_TIME_TYPES = ("timestamp", "timestamp_ntz", "date")
_NUMBER_TYPES = ("integer", "long", "short", "byte")


@dataclass(frozen=True)
class RecordFrame:
    """`records` has the record columns, computed from the rows of `source`."""

    records: DataFrame
    source: PythonRows


def record_frame(source: PythonRows, settings: RecordSettings) -> RecordFrame:
    """Make the record columns. Raises SpecError that names the key of the spec whose expression Spark refuses."""
    records, columns = _composed(source, settings)
    fitted = source.fitted(records)
    if fitted is not source:  # its columns are in another order, which a star must not have
        source, (records, _) = fitted, _composed(fitted, settings, columns)
    records = volatile_casts.guarded(records)
    plan_checks.check_deterministic(records)
    return RecordFrame(records, source)


def null_columns(frame: RecordFrame, settings: RecordSettings) -> tuple[str, ...]:
    """Return the names of record columns that are always null; each column costs time per row on its way to Python."""
    key = ("key",) if settings.key is None else ()
    return key if CORRUPT in frame.source.rows.columns else (*key, CORRUPT)


def _composed(
    source: PythonRows, settings: RecordSettings, columns: Sequence[str] | None = None
) -> tuple[DataFrame, Sequence[str]]:
    """Return the records, and the columns that a star in `[record]` means: `columns`, or all selected ones."""
    visible = source.visible
    ours = _ours(source)
    with naming("source"):
        rows = _visible_rows(source)
    filtered = _filtered(rows, settings, visible)
    selected = _selected(filtered, settings, visible, ours)
    if CORRUPT in source.rows.columns and plan_checks.generates_rows(selected):
        selected = _with_corrupt_rows(filtered, selected, settings, visible, ours)
    if columns is None:
        columns = selected.columns[: -len(ours)]
    return _records(selected, settings, ours, columns), columns


def _ours(source: PythonRows) -> tuple[str, ...]:
    """Return the names of the columns that follow the user's: our own, and ITEM_COLUMN."""
    item = (ITEM_COLUMN,) if _has_item(source) else ()
    return (*item, CORRUPT, SPLIT) if source.position is None else (*item, CORRUPT, SPLIT, POSITION)


def _has_item(source: PythonRows) -> bool:
    """Say whether the rows have a column ITEM_COLUMN that is not the data's."""
    return ITEM_COLUMN in source.rows.columns and ITEM_COLUMN not in map(str.lower, source.visible)


def _visible_rows(source: PythonRows) -> DataFrame:
    """Select the columns that expressions may name, and our own."""
    rows = source.rows
    corrupt = functions.col(CORRUPT) if CORRUPT in rows.columns else literal(None).cast("string").alias(CORRUPT)
    position = [] if source.position is None else [source.position.alias(POSITION)]
    item = [functions.col(ITEM_COLUMN)] if _has_item(source) else []
    visible = frozenset(source.visible)
    hidden = [name for name in rows.columns if name not in visible]
    return rows.select(functions.expr(_all_but(hidden)), *item, corrupt, source.split.alias(SPLIT), *position)


def _all_but(columns: Sequence[str]) -> str:
    """Return the SQL of all columns but these. Naming each of the others takes a call into the JVM for each."""
    return f"* EXCEPT ({', '.join(map(quote_name, columns))})" if columns else "*"


def _filtered(rows: DataFrame, settings: RecordSettings, visible: Sequence[str]) -> DataFrame:
    """Keep the rows for which `where` is true, and every corrupt row: a filter must not hide one."""
    if settings.where is None:
        return rows
    _refuse_session_functions("transform.where", settings.where, visible)
    with naming("transform.where"):
        condition = functions.expr(expand_star(settings.where, visible))
        return rows.where(condition | functions.col(CORRUPT).isNotNull())


def _selected(rows: DataFrame, settings: RecordSettings, visible: Sequence[str], ours: tuple[str, ...]) -> DataFrame:
    with naming("transform.select"):
        selected = rows.selectExpr(*_expressions(settings, visible, ours), *ours)
    names = selected.columns[: -len(ours)]
    refuse_our_names("transform.select", names)
    if ITEM_COLUMN in ours and ITEM_COLUMN in map(str.lower, names):  # a selected column of this name hides it
        return selected.toDF(*names, _HIDDEN_ITEM_COLUMN, *ours[1:])
    return selected


def _expressions(settings: RecordSettings, visible: Sequence[str], ours: Sequence[str]) -> Iterator[str]:
    for expression in settings.select:
        _refuse_session_functions("transform.select", expression, visible)
        if normalise(expression) == "*":
            yield _all_but(ours)
        else:
            yield expand_star(expression, visible)


def _with_corrupt_rows(
    rows: DataFrame, selected: DataFrame, settings: RecordSettings, visible: Sequence[str], ours: tuple[str, ...]
) -> DataFrame:
    """Return the selection of a generator, with one row for each corrupt row, otherwise lost."""
    with naming("transform.select"):
        expressions = list(_expressions(settings, visible, ours))
        safe = [generators.guarded(rows, expression, CORRUPT) for expression in expressions]
        if not any(column is not None for column in safe):
            return _selected(rows.where(_STOP_AT_CORRUPT_ROW), settings, visible, ours)
        columns = [
            functions.expr(text) if column is None else column for text, column in zip(expressions, safe, strict=True)
        ]
        return rows.select(*columns, *ours).toDF(*selected.columns)


def _records(rows: DataFrame, settings: RecordSettings, ours: tuple[str, ...], columns: Sequence[str]) -> DataFrame:
    """Compute the record columns, cast them to binary, and hash each record.

    No expression of the user is concatenated into longer SQL: a comment or a parenthesis in it would swallow the rest.
    """
    computed, unfit = list[Column](), list[Column]()
    for name, part in (("key", settings.key), ("value", settings.value)):
        if isinstance(part, Encoding) and part.kind == JSON:
            text = _bytes_column(rows, f"record.{name}.json_schema.json", part.expression, columns)
            column = functions.concat(literal(part.prefix), text)
        elif isinstance(part, Encoding):
            made = encoded(rows, f"record.{name}", part, columns, _struct_named(rows, columns))
            rows, column = made.rows, made.value
            unfit += [made.unfit] if made.unfit is not None else []
        elif part is not None:
            column = _bytes_column(rows, f"record.{name}", part, columns)
        else:
            column = literal(None).cast("binary")
        computed.append(column.alias(name))
    for index, (name, expression) in enumerate(settings.headers.items()):
        computed.append(_bytes_column(rows, f"record.headers.{name}", expression, columns).alias(f"{HEADER}{index}"))
    if settings.header_column:
        computed.append(_headers_column(rows, settings.header_column, columns).alias(HEADERS))
    if settings.timestamp:
        computed.append(_time_column(rows, settings.timestamp, columns).alias(TIMESTAMP))
    if settings.partition:
        computed.append(_number_column(rows, settings.partition, columns).alias(PARTITION))
    # Binary, not string: the text of a corrupt row need not be UTF-8.
    corrupt = functions.col(CORRUPT).cast("binary").alias(CORRUPT)
    places = [functions.col(name) for name in ours if name in (SPLIT, POSITION)]
    if unfit:
        computed.append(functions.coalesce(*unfit).alias(UNFIT))
    records = rows.select(*computed, *places, corrupt)
    records = records.selectExpr("*", f"{checksum.SPARK_EXPRESSION} AS {CHECKSUM}")
    metadata = _metadata_parts(settings)
    return records.withColumn(METADATA, functions.xxhash64(functions.col(CHECKSUM), *metadata)) if metadata else records


def _metadata_parts(settings: RecordSettings) -> list[Column]:
    """Return the hashed parts of headers and timestamp, in this order (`checksum.metadata_hash`); none without them."""
    named = [(literal(name), functions.col(f"{HEADER}{index}")) for index, name in enumerate(settings.headers)]
    parts = [part for name, value in named for part in (name, value.isNull(), value)]
    if settings.header_column:
        # Spark hashes arrays element by element and structs field by field, as if each were a separate argument.
        parts.append(
            functions.transform(HEADERS, lambda each: functions.struct(each.key, each.value.isNull(), each.value))
        )
    if settings.timestamp:
        time = functions.col(TIMESTAMP)
        parts += [literal(checksum.TIMESTAMP_MARK), time.isNull(), time]
    return parts


def _struct_named(rows: DataFrame, columns: Sequence[str]) -> Callable[[str, str], Column]:
    """Return the function that makes, and checks, the column of an expression for a struct."""

    def named(where: str, expression: str) -> Column:
        _refuse_session_functions(where, expression, columns)
        with naming(where):
            column = functions.expr(expression)
            rows.select(column)
        return column

    return named


def _bytes_column(rows: DataFrame, where: str, expression: str, columns: Sequence[str]) -> Column:
    instead = f"CAST({expression} AS STRING)"
    return _checked(rows, where, expression, columns, _BYTES_TYPES, lambda kind: instead).cast("binary")


def _headers_column(rows: DataFrame, expression: str, columns: Sequence[str]) -> Column:
    instead = f'headers = {{ name = "{expression}" }} for a header of this name'
    column = _checked(rows, "record.headers", expression, columns, ("array",), lambda kind: instead)
    with naming("record.headers"):
        typed = column.cast(HEADERS_TYPE)
        rows.select(typed)
    return typed


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
    """Return the expression with its star expanded. Raises SpecError if it is not valid, or its type is not in `types`.

    `instead` returns what to write in its place, given its type.
    """
    _refuse_session_functions(where, expression, columns)
    with naming(where):
        column = functions.expr(expand_star(expression, columns))
        found = rows.select(column.alias("checked")).schema["checked"].dataType
    if found.typeName() not in types:
        raise SpecError(
            f"{where}: {expression} is of type {found.simpleString()}, not {' or '.join(types[:2])}",
            code="bad-expression",
            hint=f"write {instead(found)}",
        )
    return column


def refuse_our_names(where: str, names: Sequence[str]) -> None:
    """Raise SpecError if a column's name begins with our prefix."""
    for name in names:
        if name.lower().startswith(_OUR_PREFIX):
            raise SpecError(f"{where}: the column name {name} is reserved", code="bad-expression")


def _refuse_session_functions(where: str, expression: str, columns: Sequence[str]) -> None:
    found = literal_functions(expression, columns)
    if found:
        raise SpecError(
            f"{where}: there is no column {found[0]}; Spark would take it for the function {found[0]}()",
            code="bad-expression",
            hint=f"the columns are: {', '.join(columns)}",
        )


@contextlib.contextmanager
def naming(where: str) -> Iterator[None]:
    """Turn Spark's error about an expression or a schema into a SpecError that names `where`, the key of the spec."""
    try:
        yield
    except SpecError as error:
        if error.message.startswith(where):
            raise
        raise SpecError(f"{where}: {error.message}", code=error.code, hint=error.hint) from error
    except (AnalysisException, IllegalArgumentException, ParseException) as error:
        if error.getCondition() in _NOT_OF_ONE_ROW:
            raise SpecError(
                f"{where}: aggregates, windows, joins and subqueries are not possible: a record is made from one row",
                code="not-narrow",
                hint="nothing was sent; prepare the data before",
            ) from error
        text = _OURS.sub("", str(error).strip().split("\n", 1)[0]).strip(" ;")
        raise SpecError(f"{where}: {text}", code="bad-expression", hint="nothing was sent; correct the spec") from error
