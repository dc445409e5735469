"""Why the readers of JSON and CSV call a row corrupt: the column, its type and the value."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from eosingest.sources.files.formats.csv_rows import Dialect
from eosingest.sources.files.reading.csv_columns import CsvColumns, text_types
from eosingest.sources.files.reading.csv_reader import CsvReader
from eosingest.sources.files.reading.json_reader import JsonReader, JsonSettings
from eosingest.sources.files.reading.schema_types import from_ddl

SCHEMA: StructType = from_ddl("n INT, price DECIMAL(10,2), at TIMESTAMP, s STRUCT<x: BOOLEAN>, t STRING")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"n": "1"}', 'column n is INT, and its value is "1"'),
        ('{"n": 1, "at": "10:30", "price": 1}', 'column at is TIMESTAMP, and its value is "10:30"'),
        ('{"n": 2147483648}', "column n is INT, and its value is 2147483648"),
        ('{"s": {"x" : 1}}', 'column s is struct<x:boolean>, and its value is {"x" : 1}'),
        ("{'price': 'much', 't': 'x'}", 'column price is DECIMAL(10,2), and its value is "much"'),
        ('{"n": 1', "no JSON: expecting ',' delimiter at character 8"),
        ("[1]", "it is no JSON object"),
        ('{"t": "\\ud800"}', "half a surrogate pair"),
        ('{"t": 1, "t": 2}', 'an object has the name "t" twice'),
        ('{"n": 1}', ""),
    ],
)
def test_json(text: str, why: str) -> None:
    assert JsonReader(SCHEMA, JsonSettings.of({})).why([text.encode()]) == [why]


def test_json_that_is_not_utf_8() -> None:
    assert JsonReader(SCHEMA, JsonSettings.of({})).why([b'{"t": "\xe9"}']) == ["bytes that are not UTF-8"]


def test_times_that_are_written_by_a_pattern_are_not_blamed() -> None:
    """Breaks when the reason names a date that the run reads, and not the number that it does not."""
    reader = JsonReader(SCHEMA, JsonSettings.of({"timestampFormat": "dd/MM/yyyy"}))
    assert reader.why([b'{"at": "31/12/2020", "t": "x"', b'{"at": "31/12/2020", "s": 1}'])[1:] == [""]


def test_a_column_that_is_not_read_is_not_named() -> None:
    reader = JsonReader(SCHEMA, JsonSettings.of({})).narrowed(frozenset(("price",)))
    assert reader.why([b'{"n": "x", "price": "y"}']) == ['column price is DECIMAL(10,2), and its value is "y"']


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1,2,3", "column c is DATE, and its text is 3"),
        ('x,"a, b",', "column a is INT, and its text is x"),
        ("1,2", "it has 2 fields, and there are 3 columns"),
        ('1,"x"y,', 'a quote inside a quoted field that is not escaped: 1,"x"y,'),
        ("1,,2020-01-02", ""),
    ],
)
def test_csv(text: str, why: str) -> None:
    fields = from_ddl("a INT, b BINARY, c DATE").fields
    kinds = text_types({}, [each.dataType for each in fields])
    columns = CsvColumns(Dialect.of({}), 3, tuple(each.name for each in fields), (0, 1, 2), kinds)
    assert CsvReader({}, columns).why([text.encode()]) == [why]


def test_each_of_several_rows_of_csv_has_its_reason() -> None:
    fields = from_ddl("a INT, b INT").fields
    columns = CsvColumns(Dialect.of({}), 2, ("a", "b"), (0, 1), text_types({}, [each.dataType for each in fields]))
    assert columns.why(["1,2", "x,y", "1,y", "1"]) == [
        "", "column a is INT, and its text is x", "column b is INT, and its text is y",
        "it has 1 fields, and there are 2 columns",
    ]  # fmt: skip
