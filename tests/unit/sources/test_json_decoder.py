"""Lines of JSON by a schema: the values that Python's json reads, or corrupt rows."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    VarcharType,
)

from eosingest.sources.files.reading.json_columns import JsonColumns
from eosingest.sources.files.reading.json_decoder import JsonDecoder, unread_type
from eosingest.spark.record_settings import CORRUPT

BAD = "bad"


def read(schema: StructType, *lines: bytes, **settings: bool) -> list[Any]:
    """Return the rows of lines: what each field holds, or the text of a corrupt row."""
    rows = JsonDecoder(schema, **settings).rows(lines)
    found = JsonColumns(schema, words=settings.get("words", True)).batch(rows)
    corrupt = found.column(CORRUPT).cast(pa.binary()).to_pylist()
    found = found.drop_columns([CORRUPT])
    kind = pa.struct(list(found.schema))
    values = [_with_dicts(row, kind) for row in found.to_pylist()] if schema.names else [{}] * len(corrupt)
    return [row if text is None else text for row, text in zip(values, corrupt, strict=True)]


def _with_dicts(value: Any, kind: Any) -> Any:
    """Return a value with maps as dicts, which pyarrow returns as pairs."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {name: _with_dicts(each, kind.item_type) for name, each in value}
    if pa.types.is_struct(kind):
        return {field.name: _with_dicts(value[field.name], field.type) for field in kind}
    return [_with_dicts(each, kind.value_type) for each in value] if pa.types.is_list(kind) else value


def value(kind: DataType, text: str, **settings: bool) -> Any:
    (row,) = read(StructType().add("v", kind), f'{{"v":{text}}}'.encode(), **settings)
    return BAD if isinstance(row, bytes) else row["v"]


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (StringType(), {"1.10": "1.10", '{"a" : [1.0]}': '{"a" : [1.0]}', '"\\u00e9"': "é", "null": None, "NaN": "NaN"}),
        (ByteType(), {"127": 127, "128": BAD, "1.0": BAD, "1e1": BAD, '"1"': BAD, "true": BAD, "-0": 0}),
        (LongType(), {str(2**63 - 1): 2**63 - 1, str(2**63): BAD, "9" * 400: BAD}),
        (DoubleType(), {"1": 1.0, '"1.5"': BAD, '"NaN"': math.nan, "-Infinity": -math.inf, '"INF"': math.inf}),
        (DoubleType(), {"1e400": math.inf}),
        (ArrayType(DoubleType()), {"[-0, -0.0,0]": [-0.0, -0.0, 0.0]}),
        (FloatType(), {"0.1": 0.10000000149011612, '"0.1"': BAD, "NaN": math.nan}),
        (DecimalType(10, 2), {"1.239": Decimal("1.24"), '"1.5"': Decimal("1.50"), "1e9": BAD, "true": BAD, "null": None}),
        (DateType(), {'"2020-13-01"': BAD, "5": BAD}),
        (TimestampType(), {"253402300800": BAD, "1.5": BAD, '"10:30"': BAD}),
        (BinaryType(), {'"YQ=="': b"a", '"a"': BAD}),
        (ArrayType(DateType()), {'["2020-01-02 x"]': BAD, "[null]": [None], "null": None, "{}": BAD}),
        (MapType(StringType(), StringType()), {'{"a":1,"b":null}': {"a": "1", "b": None}, "[]": BAD}),
        (StructType().add("x", FloatType()), {'{"x":"y"}': BAD, "{}": {"x": None}, "null": None}),
    ],
)  # fmt: skip
def test_values(kind: DataType, texts: dict[str, Any]) -> None:
    """Breaks when a value is taken for another, or refused."""
    for text, expected in texts.items():
        found = value(kind, text)
        same = repr(found) == repr(expected) if isinstance(kind, ArrayType) else found == expected  # -0.0 is 0.0
        assert same or (math.isnan(expected) and math.isnan(found)), (text, found)


ID = StructType().add("id", LongType())


@pytest.mark.parametrize(
    ("line", "rows"),
    [
        (b"", []),
        (b" \t\r", []),
        (b"\xef\xbb\xbf", []),
        (b'\xef\xbb\xbf {"id":1}', [{"id": 1}]),
        (b'[{"id":1}, {"id":"x"},2]', [{"id": 1}, b'{"id":"x"}', b"2"]),
        (b'[[{"id":1}]]', [b'[{"id":1}]']),
        (b"[]", []),
        (b'[{"id":1}] {"id":2}', [b'[{"id":1}] {"id":2}']),
        (b"{'id':1}", [{"id": 1}]),
        (b"{NaN:1}", [b"{NaN:1}"]),
        (b'{"id":1,"x":"\xff"}', [b'{"id":1,"x":"\xff"}']),  # in a field that is not read
        (b'{"id":1,"x":"\\udc00"}', [b'{"id":1,"x":"\\udc00"}']),
        (b'{"id":1,"x":NaN}', [{"id": 1}]),
        (b'{"id":1}{"id":2}', [b'{"id":1}{"id":2}']),
        (b"null", [b"null"]),
        (b'{"id":-0}', [{"id": 0}]),
        (b'{"ID":1}', [{"id": None}]),
        (b'{"id":1,"x":' + b"[" * 100_000, [b'{"id":1,"x":' + b"[" * 100_000]),
    ],
)
def test_lines(line: bytes, rows: list[Any]) -> None:
    """Breaks when a line is lost, or hides its neighbour."""
    assert read(ID, b'{"id":7}', line, b'{"id":8}') == [{"id": 7}, *rows, {"id": 8}]


def test_what_a_spec_does_not_allow() -> None:
    assert read(ID, b"{'id':1}", single_quotes=False) == [b"{'id':1}"]
    assert value(DoubleType(), "NaN", words=False) == BAD
    assert value(DoubleType(), '"NaN"', words=False) == BAD


def test_types_that_are_not_read() -> None:
    assert unread_type(StructType().add("a", ArrayType(VarcharType(5)))) == VarcharType(5)
    assert unread_type(MapType(LongType(), StringType())) is not None
    assert unread_type(StructType().add("a", MapType(StringType(), DoubleType()))) is None


_KINDS = StructType().add("n", LongType()).add("s", StringType()).add("l", ArrayType(LongType()))
_KINDS = _KINDS.add("o", StructType().add("x", DoubleType()).add("m", MapType(StringType(), StringType())))


def _random(chance: Random) -> Any:
    def some(value: Any) -> Any:
        return None if chance.random() < 0.1 else value

    texts = ["", "é", '"', "\\", "\0", "}{", "\U0001f600"]
    made: dict[str, Any] = {
        "n": some(chance.choice([0, -1, 2**63 - 1])),
        "s": some(chance.choice(texts)),
        "l": some([some(chance.randint(0, 9)) for _ in range(chance.randint(0, 3))]),
        "o": some({"x": some(chance.random()), "m": some({key: some(chance.choice(texts)) for key in texts[:3]})}),
    }
    return {name: made[name] for name in chance.sample(sorted(made), chance.randint(0, 4))}


def _in_full(row: dict[str, Any]) -> dict[str, Any]:
    inner = row.get("o")
    return {
        **{name: row.get(name) for name in ("n", "s", "l")},
        "o": None if inner is None else {name: inner.get(name) for name in ("x", "m")},
    }


def test_rows_as_pythons_decoder_reads_them() -> None:
    """Breaks when a value comes into another row or column, among nulls, nested ones and bad rows."""
    chance = Random(7)
    for _ in range(200):
        rows = [_random(chance) for _ in range(chance.randint(1, 20))]
        lines = [json.dumps(row, ensure_ascii=chance.random() < 0.5).encode() for row in rows]
        bad = chance.randrange(len(lines))
        lines[bad] = chance.choice([lines[bad], lines[bad] + b"x", b'{"l":[1,"x"]}', b"{'n':1}"])
        expected = [_parsed(line) for line in lines]
        assert read(_KINDS, *lines) == expected


def _parsed(line: bytes) -> Any:
    if line.endswith(b"x") or b'"x"]' in line:
        return line
    return _in_full(json.loads(line.replace(b"{'n':1}", b'{"n":1}')))


def test_a_name_twice_is_a_corrupt_row() -> None:
    """At any depth, also of fields that are not read; a name of two objects is none."""
    schema = StructType().add("a", LongType())
    once = b'{"a":1,"o":{"a":2},"l":[{"x":1},{"x":2}]}'
    twice = [b'{"a":1,"a":2}', b'{"a":1,"o":{"x":1,\n"x":2}}', b'{"a":1,"o":{"\\u0061":1,"a":2}}', b"{'a':1,'a':2}"]
    assert read(schema, once, *twice, once, names_once=True) == [{"a": 1}, *twice, {"a": 1}]
    assert read(schema, twice[0]) == [{"a": 2}]
