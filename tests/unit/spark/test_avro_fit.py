"""Which columns fit which Avro schema, exactly; and by which conditions a row is told apart that does not."""

from __future__ import annotations

from typing import Any

import pytest
from fastavro.schema import expand_schema
from pyspark.sql import types as t

from eosingest.spark.avro_fit import Fit, fit


def record(*fields: tuple[str, Any] | dict[str, Any]) -> Any:
    made = [one if isinstance(one, dict) else {"name": one[0], "type": one[1]} for one in fields]
    return expand_schema({"type": "record", "name": "row", "fields": made})


def of(kind: t.DataType, schema: Any, *, nullable: bool = False) -> Fit:
    return fit(t.StructType([t.StructField("x", kind, nullable)]), record(("x", schema)), "row")


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


ENUM = {"type": "enum", "name": "e", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "f", "size": 4}


@pytest.mark.parametrize(
    ("kind", "schema", "target"),
    [
        (t.BooleanType(), "boolean", "boolean"),
        (t.ByteType(), "int", "int"),
        (t.IntegerType(), "int", "int"),
        (t.IntegerType(), "long", "bigint"),
        (t.LongType(), "long", "bigint"),
        (t.FloatType(), "float", "float"),
        (t.FloatType(), "double", "double"),
        (t.DoubleType(), "double", "double"),
        (t.StringType(), "string", "string"),
        (t.StringType(), logical("string", "uuid"), "string"),
        (t.StringType(), ENUM, "string"),
        (t.BinaryType(), "bytes", "binary"),
        (t.BinaryType(), FIXED, "binary"),
        (t.DateType(), logical("int", "date"), "date"),
        (t.TimestampType(), logical("long", "timestamp-micros"), "timestamp"),
        (t.TimestampType(), logical("long", "timestamp-millis"), "timestamp"),
        (t.TimestampNTZType(), logical("long", "local-timestamp-micros"), "timestamp_ntz"),
        (t.DecimalType(8, 2), logical("bytes", "decimal", precision=10, scale=2), "decimal(10,2)"),
        (t.DecimalType(8, 2), logical("bytes", "decimal", precision=10, scale=4), "decimal(10,4)"),
        (t.DecimalType(5, 0), logical("bytes", "decimal", precision=5), "decimal(5,0)"),
        (t.ArrayType(t.IntegerType(), False), {"type": "array", "items": "long"}, "array<bigint>"),
        (t.MapType(t.StringType(), t.FloatType(), False), {"type": "map", "values": "double"}, "map<string,double>"),
    ],
)
def test_what_fits_is_cast_without_loss(kind: t.DataType, schema: Any, target: str) -> None:
    for given in (schema, ["null", schema], [schema, "null"]):
        found = of(kind, given)
        assert (found.problems, found.target["x"].dataType.simpleString()) == ((), target)


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (t.LongType(), "int"),  # Spark refuses it as well; the others it writes, as something else
        (t.DateType(), "int"),
        (t.TimestampType(), "long"),
        (t.TimestampNTZType(), "long"),
        (t.LongType(), logical("long", "timestamp-micros")),
        (t.IntegerType(), logical("int", "date")),
        (t.TimestampNTZType(), logical("long", "timestamp-micros")),
        (t.TimestampType(), logical("long", "local-timestamp-micros")),
        (t.TimestampType(), logical("long", "timestamp-nanos")),
        (t.LongType(), "float"),
        (t.DoubleType(), "float"),
        (t.BinaryType(), "string"),
        (t.StringType(), "bytes"),
        (t.DecimalType(10, 2), logical("bytes", "decimal", precision=8, scale=2)),
        (t.DecimalType(10, 4), logical("bytes", "decimal", precision=10, scale=2)),
        (t.DecimalType(10, 2), "bytes"),
        (t.DecimalType(10, 2), logical("bytes", "decimal", precision=40, scale=2)),
        (t.MapType(t.IntegerType(), t.IntegerType()), {"type": "map", "values": "int"}),
        (t.StringType(), ["null", "string", "int"]),
        (t.StringType(), {"type": "array", "items": "string"}),
        (t.NullType(), "string"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_name(kind: t.DataType, schema: Any) -> None:
    (problem,) = of(kind, schema).problems
    assert problem.startswith("x: ")


def test_columns_and_fields_are_matched_by_name() -> None:
    columns = t.StructType().add("B", t.IntegerType(), False).add("a", t.StringType(), False).add("c", t.StringType())
    schema = record(
        ("a", "string"), ("b", "long"), ("d", "int"), {"name": "e", "type": ["null", "int"], "default": None}
    )
    found = fit(columns, schema, "row")
    assert found.problems == ("c is not in the schema", "d is in the schema, and there is no such column")
    assert found.target.names == ["B", "a"]


@pytest.mark.parametrize("field", [{"default": "x", "type": ["string", "null"]}, {"type": ["null", "string"]}])
def test_a_field_without_a_column_has_a_default_of_null_or_is_refused(field: dict[str, Any]) -> None:
    """Breaks when Spark's null stands where readers of the schema expect another default."""
    assert fit(t.StructType(), record({"name": "x", **field}), "row").problems


def test_names_that_differ_in_capitals_alone_are_refused() -> None:
    two = t.StructType().add("a", t.StringType()).add("A", t.StringType())
    assert fit(two, record(("a", ["null", "string"])), "row").problems == ("A appears twice",)
    assert fit(t.StructType().add("a", t.StringType()), record(("A", "string"), ("a", "string")), "row").problems


def conditions(kind: t.DataType, schema: Any, *, nullable: bool = True) -> list[str]:
    found = of(kind, schema, nullable=nullable)
    assert not found.problems
    return [guard.condition for guard in found.guards]


def test_a_null_in_a_required_field_is_told_apart() -> None:
    assert conditions(t.IntegerType(), "int") == ["`row`.`x` IS NULL"]
    assert conditions(t.IntegerType(), ["null", "int"]) == []
    assert conditions(t.IntegerType(), "int", nullable=False) == []


def test_nulls_inside_are_looked_for_where_there_is_something_around_them() -> None:
    inner = t.StructType().add("y", t.IntegerType())
    schema = {"type": "record", "name": "inner", "fields": [{"name": "y", "type": "int"}]}
    assert conditions(inner, ["null", schema]) == ["(`row`.`x` IS NOT NULL AND `row`.`x`.`y` IS NULL)"]
    array = conditions(t.ArrayType(inner, True), ["null", {"type": "array", "items": schema}])
    assert array == [
        "(`row`.`x` IS NOT NULL AND exists(`row`.`x`, __each1 -> __each1 IS NULL))",
        "(`row`.`x` IS NOT NULL AND exists(`row`.`x`, __each1 -> (__each1 IS NOT NULL AND __each1.`y` IS NULL)))",
    ]


def test_values_that_a_type_does_not_tell() -> None:
    millis = conditions(t.TimestampType(), ["null", logical("long", "timestamp-millis")])
    assert millis == ["(`row`.`x` IS NOT NULL AND unix_micros(CAST(`row`.`x` AS TIMESTAMP)) % 1000 <> 0)"]
    assert conditions(t.StringType(), ENUM, nullable=False) == ["`row`.`x` NOT IN ('A', 'B')"]
    assert conditions(t.BinaryType(), FIXED, nullable=False) == ["length(`row`.`x`) <> 4"]
    assert conditions(t.StringType(), "string", nullable=False) == ["NOT is_valid_utf8(`row`.`x`)"]


def test_a_schema_that_is_no_record() -> None:
    assert fit(t.StructType(), "string", "row").problems == ("the schema is not a record",)
