"""Every type that may be sent in Avro, written by Spark and read back by fastavro; and every row that may not."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import pytest
from pyspark.sql import DataFrame, Row, SparkSession, functions

from eosingest.records.encoding import Encoding
from eosingest.spark.encoded_columns import Encoded, encoded
from tests.support.warm_spark import warm_spark

_ID = 300


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with warm_spark() as started:
        yield started


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def record_of(*fields: tuple[str, Any], name: str = "row") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": one, "type": kind} for one, kind in fields]}


def made_of(rows: DataFrame, schema: dict[str, Any], columns: str = "struct(*)") -> Encoded:
    encoding = Encoding("rows-value", _ID, json.dumps(schema), columns)
    return encoded(rows, "record.value", encoding, rows.columns, lambda _, text: functions.expr(text))


def written(made: Encoded) -> list[Row]:
    unfit = functions.lit(None) if made.unfit is None else made.unfit
    return made.rows.select(made.value.alias("value"), unfit.alias("unfit")).collect()


def read_back(data: bytes, schema: dict[str, Any]) -> Any:
    assert data[:5] == b"\x00" + _ID.to_bytes(4, "big")
    stream = io.BytesIO(data[5:])
    value = fastavro.schemaless_reader(stream, fastavro.parse_schema(schema), None)
    assert not stream.read(), "bytes behind the datum"
    return value


_TYPES = {
    "boolean": ("true", "boolean", True),
    "byte": ("CAST(-128 AS TINYINT)", "int", -128),
    "int": ("-2147483648", "int", -(2**31)),
    "int as long": ("2147483647", "long", 2**31 - 1),
    "long": ("-9223372036854775808L", "long", -(2**63)),
    "float": ("CAST(0.1 AS FLOAT)", "float", 0.10000000149011612),
    "float as double": ("CAST(0.1 AS FLOAT)", "double", 0.10000000149011612),
    "double": ("1.7976931348623157E308D", "double", 1.7976931348623157e308),
    "text": ("'größe \\u0000 𝄞'", "string", "größe \0 𝄞"),
    "uuid": (
        "'0F8FAD5B-d9cb-469f-a165-70867728950e'",
        logical("string", "uuid"),
        UUID("0f8fad5b-d9cb-469f-a165-70867728950e"),
    ),
    "enum": ("'B'", {"type": "enum", "name": "e", "symbols": ["A", "B"]}, "B"),
    "bytes": ("X'00ff'", "bytes", b"\x00\xff"),
    "fixed": ("X'00ff01'", {"type": "fixed", "name": "f", "size": 3}, b"\x00\xff\x01"),
    "decimal": ("-0.01BD", logical("bytes", "decimal", precision=12, scale=2), Decimal("-0.01")),
    "decimal, wider": ("12.5BD", logical("bytes", "decimal", precision=38, scale=4), Decimal("12.5000")),
    "decimal, fixed": (
        "-99999.99BD",
        {"type": "fixed", "name": "d", "size": 8, "logicalType": "decimal", "precision": 12, "scale": 2},
        Decimal("-99999.99"),
    ),
    "decimal, largest": (
        f"{'9' * 38}BD",
        logical("bytes", "decimal", precision=38),
        Decimal("9" * 38),
    ),
    "date": ("DATE'2024-02-29'", logical("int", "date"), date(2024, 2, 29)),
    "date, before 1582": ("DATE'1500-02-28'", logical("int", "date"), date(1500, 2, 28)),
    "time in millis": ("86399999", logical("int", "time-millis"), time(23, 59, 59, 999000)),
    "time in micros": ("1L", logical("long", "time-micros"), time(0, 0, 0, 1)),
    "timestamp": (
        "TIMESTAMP'1969-12-31 23:59:59.999999Z'",
        logical("long", "timestamp-micros"),
        datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
    ),
    "timestamp in millis": (
        "TIMESTAMP'1969-12-31 23:59:59.999Z'",
        logical("long", "timestamp-millis"),
        datetime(1969, 12, 31, 23, 59, 59, 999000, UTC),
    ),
    "local time": (
        "TIMESTAMP_NTZ'2024-03-31 02:30:00.000001'",
        logical("long", "local-timestamp-micros"),
        datetime(2024, 3, 31, 2, 30, 0, 1),
    ),
    "local time in millis": (
        "TIMESTAMP_NTZ'1900-01-01 00:00:00.001'",
        logical("long", "local-timestamp-millis"),
        datetime(1900, 1, 1, 0, 0, 0, 1000),
    ),
    "array": ("array(1, 2)", {"type": "array", "items": "long"}, [1, 2]),
    "array with nulls": ("array(1, NULL)", {"type": "array", "items": ["null", "long"]}, [1, None]),
    "empty array": ("CAST(array() AS ARRAY<INT>)", {"type": "array", "items": "int"}, []),
    "map": ("map('a', 1, 'b', 2)", {"type": "map", "values": "long"}, {"a": 1, "b": 2}),
    "map of structs": (
        "map('a', named_struct('Y', 1, 'x', 'u'))",
        {"type": "map", "values": record_of(("x", "string"), ("y", "long"), name="inner")},
        {"a": {"x": "u", "y": 1}},
    ),
    "struct": (
        "named_struct('y', CAST(NULL AS INT), 'x', array(named_struct('z', 1BD)))",
        record_of(
            (
                "x",
                {
                    "type": "array",
                    "items": record_of(("z", logical("bytes", "decimal", precision=5, scale=1)), name="z"),
                },
            ),
            ("y", ["null", "long"]),
            name="inner",
        ),
        {"x": [{"z": Decimal("1.0")}], "y": None},
    ),
}


@pytest.mark.in_turns("one type each")
@pytest.mark.parametrize("name", _TYPES)
def test_a_value_is_read_back_as_it_was(spark: SparkSession, name: str) -> None:
    """Also where the schema allows null, before or behind; and null is null there."""
    text, kind, value = _TYPES[name]
    rows = spark.sql(f"SELECT {text} AS x UNION ALL SELECT NULL")
    for given in (["null", kind], [kind, "null"]):
        schema = record_of(("x", given))
        found = [read_back(row.value, schema)["x"] for row in written(made_of(rows, schema))]
        assert found == [value, None]
    schema = record_of(("x", kind))
    first, second = written(made_of(rows, schema))
    assert read_back(first.value, schema)["x"] == value
    assert (second.value, second.unfit) == (b'{"x":null}', "x is null, and the schema has no null for it")


_UNFIT = {
    "null in an array": ("array(1, NULL)", {"type": "array", "items": "int"}, "x[] is null"),
    "null in a map": ("map('a', CAST(NULL AS INT))", {"type": "map", "values": "int"}, "x[] is null"),
    "null in a struct": ("named_struct('y', CAST(NULL AS INT))", record_of(("y", "int"), name="i"), "x.y is null"),
    "null in a struct in an array in a map": (
        "map('k', array(named_struct('y', 1), named_struct('y', NULL)))",
        {"type": "map", "values": {"type": "array", "items": record_of(("y", "int"), name="i")}},
        "x[][].y is null",
    ),
    "enum": ("'C'", {"type": "enum", "name": "e", "symbols": ["A", "B"]}, "x is none of the symbols"),
    "enum in small letters": ("'a'", {"type": "enum", "name": "e", "symbols": ["A", "B"]}, "x is none of the symbols"),
    "time in millis": ("86400000", logical("int", "time-millis"), "x is not a time of day"),
    "time in micros": ("-1L", logical("long", "time-micros"), "x is not a time of day"),
    "uuid": ("'0f8fad5b'", logical("string", "uuid"), "x is not a UUID"),
    "fixed": ("X'00'", {"type": "fixed", "name": "f", "size": 3}, "x is not of 3 bytes"),
    "microseconds": (
        "TIMESTAMP'1969-12-31 23:59:59.999999Z'",
        logical("long", "timestamp-millis"),
        "x has microseconds",
    ),
    "local microseconds": (
        "TIMESTAMP_NTZ'1900-01-01 00:00:00.000001'",
        logical("long", "local-timestamp-millis"),
        "x has microseconds",
    ),
    "bytes as text": ("CAST(X'ff' AS STRING)", "string", "x is not UTF-8 text"),
    "bytes as text in an array": (
        "array(CAST(X'ff' AS STRING))",
        {"type": "array", "items": "string"},
        "x[] is not UTF-8 text",
    ),
    "bytes as the key of a map": (
        "map(CAST(X'ff' AS STRING), 1)",
        {"type": "map", "values": "int"},
        "x has a key that is not UTF-8",
    ),
}


@pytest.mark.parametrize("name", _UNFIT)
def test_a_row_that_does_not_fit_is_told_and_not_written(spark: SparkSession, name: str) -> None:
    """Its value is JSON, for a dead letter."""
    text, kind, reason = _UNFIT[name]
    (row,) = written(made_of(spark.sql(f"SELECT {text} AS x"), record_of(("x", kind))))
    assert row.value.startswith(b'{"x":') and row.unfit.startswith(reason)


def test_a_struct_that_is_null_is_a_tombstone(spark: SparkSession) -> None:
    rows = spark.sql("SELECT IF(id = 1, named_struct('a', id), NULL) AS x FROM range(2)")
    schema = record_of(("a", "long"))
    found = written(made_of(rows, schema, "x"))
    assert [(row.value and read_back(row.value, schema), row.unfit) for row in found] == [
        (None, None),
        ({"a": 1}, None),
    ]


def test_a_field_whose_default_is_null_may_be_missing(spark: SparkSession) -> None:
    schema = record_of(("a", "long"))
    schema["fields"].append({"name": "b", "type": ["null", "string"], "default": None})
    (row,) = written(made_of(spark.sql("SELECT 1L AS a"), schema))
    assert read_back(row.value, schema) == {"a": 1, "b": None}


@pytest.mark.parametrize("name", ["it's", "a\\b", "a b", "`x`", "select", "größe"])
def test_columns_of_any_name_that_avro_takes_or_are_refused(spark: SparkSession, name: str) -> None:
    """Names that no Avro schema can have need an alias; a quote in one breaks no SQL."""
    rows = spark.createDataFrame([(None,)], "x INT").withColumnRenamed("x", name)
    quoted = "`" + name.replace("`", "``") + "`"
    schema = record_of(("x", "int"))
    (row,) = written(made_of(rows, schema, f"struct({quoted} AS x)"))
    assert row.unfit.startswith("x is null")
