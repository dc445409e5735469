"""Parquet and ORC: a column is read as the file has it, or as a type that holds all of it; else the run is refused."""

from __future__ import annotations

import datetime
import io
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as parquet
import pytest

from eosingest.errors import EosingestError, FatalError
from tests.support.reading.lab import Lab, lab  # noqa: F401 - a fixture

_DATE = datetime.date(2020, 1, 2)
_TIME = datetime.datetime(2020, 1, 2, 3, 4, 5)


def packed(format: str, *columns: Any, names: str = "c", **options: Any) -> bytes:
    """Return a file of these columns, named in order."""
    out = io.BytesIO()
    table = pa.table(dict(zip(names.split(","), columns, strict=True)))
    (parquet if format == "parquet" else orc).write_table(table, out, **options)
    return out.getvalue()


# Column, and a schema that it must not be read as.
NARROWED: list[tuple[pa.Array, str]] = [
    (pa.array([300], pa.int16()), "TINYINT"),
    (pa.array([70_000], pa.int32()), "SMALLINT"),
    (pa.array([3_000_000_000], pa.int64()), "INT"),
    (pa.array([2**53 + 1], pa.int64()), "DOUBLE"),
    (pa.array([3_000_000_000], pa.int64()), "STRING"),
    (pa.array([3_000_000_000], pa.int64()), "DECIMAL(10,0)"),
    (pa.array([3_000_000_000], pa.int64()), "TIMESTAMP"),
    (pa.array([5], pa.int32()), "DATE"),
    (pa.array([5], pa.int32()), "BOOLEAN"),
    (pa.array([0.1], pa.float64()), "FLOAT"),
    (pa.array([1.7], pa.float64()), "BIGINT"),
    (pa.array([1.7], pa.float32()), "DECIMAL(10,2)"),
    (pa.array(["x"]), "INT"),
    (pa.array(["2020-01-02"]), "DATE"),
    (pa.array(["x"]), "VARCHAR(2)"),
    (pa.array([True]), "INT"),
    (pa.array([Decimal("1.25")], pa.decimal128(10, 2)), "DECIMAL(10,1)"),
    (pa.array([Decimal("1.25")], pa.decimal128(10, 2)), "DECIMAL(10,3)"),
    (pa.array([Decimal("1.25")], pa.decimal128(10, 2)), "DOUBLE"),
    (pa.array([Decimal("1.25")], pa.decimal128(10, 2)), "BINARY"),
    (pa.array([_DATE]), "INT"),
    (pa.array([_DATE]), "STRING"),
    (pa.array([_TIME], pa.timestamp("us", "UTC")), "TIMESTAMP_NTZ"),
    (pa.array([_TIME], pa.timestamp("us")), "BIGINT"),
    (pa.array([{"a": 3_000_000_000}]), "STRUCT<a: INT>"),
    (pa.array([[3_000_000_000]]), "ARRAY<INT>"),
    (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), "MAP<STRING, INT>"),
    (pa.array([[{"a": [3_000_000_000]}]]), "ARRAY<STRUCT<a: ARRAY<INT>>>"),
    (pa.array([1], pa.int64()), "STRUCT<a: INT>"),
]


def test_nothing_is_narrowed(lab: Lab) -> None:  # noqa: F811
    """In silence Spark makes nulls or other numbers: here file, column and both types are named."""
    for format in ("parquet", "orc"):
        for column, kind in NARROWED:
            if format == "orc" and column.type == pa.timestamp("us", "UTC"):
                continue  # below
            with pytest.raises(EosingestError) as caught:
                lab.values(format, {"data.x": packed(format, column)}, schema=f"c {kind}")
            assert "data.x" in str(caught.value) or "CHAR" in kind, (format, column.type, kind)
            assert "column c" in str(caught.value) or "char" in str(caught.value), (format, column.type, kind)


# Column, a schema that holds all of it, and the value as JSON.
WIDENED: list[tuple[pa.Array, str, Any]] = [
    (pa.array([-128], pa.int8()), "SMALLINT", -128),
    (pa.array([300], pa.int16()), "INT", 300),
    (pa.array([-(2**31)], pa.int32()), "BIGINT", -(2**31)),
    (pa.array([-(2**31)], pa.int32()), "DOUBLE", float(-(2**31))),
    (pa.array([2**62 + 1], pa.int64()), "DECIMAL(20,0)", 2**62 + 1),
    (pa.array([0.5], pa.float32()), "DOUBLE", 0.5),
    (pa.array([Decimal("1.25")], pa.decimal128(10, 2)), "DECIMAL(12,4)", 1.25),
    (pa.array([{"a": 1, "b": "x"}]), "STRUCT<b: STRING, a: BIGINT>", {"b": "x", "a": 1}),
    (pa.array([{"a": 1, "b": "x"}]), "STRUCT<b: STRING>", {"b": "x"}),
    (pa.array([[1]], pa.list_(pa.int32())), "ARRAY<BIGINT>", [1]),
    (pa.array(["ü"]), "STRING", "ü"),
    (pa.array([_DATE]), "DATE", "2020-01-02"),
]


def test_what_holds_all_of_it_is_read(lab: Lab) -> None:  # noqa: F811
    columns = {f"c{number}": column for number, (column, _, _) in enumerate(WIDENED)}
    schema = ", ".join(f"c{number} {kind}" for number, (_, kind, _) in enumerate(WIDENED))
    for format in ("parquet", "orc"):
        data = packed(format, *columns.values(), names=",".join(columns))
        (value,) = lab.values(format, data, schema=f"{schema}, not_there STRING")
        expected = {f"c{number}": value for number, (_, _, value) in enumerate(WIDENED)}
        assert json.loads(value or b"") == {**expected, "not_there": None}


def test_every_file_is_looked_at(lab: Lab) -> None:  # noqa: F811
    """The file that differs is the last of many; upper and lower case are one."""
    for format in ("parquet", "orc"):
        files = {f"{number}.x": packed(format, pa.array([number], pa.int32())) for number in range(5)}
        files["z.x"] = packed(format, pa.array([2**40], pa.int64()), names="C")
        with pytest.raises(FatalError, match=r"z\.x: column C is BIGINT, and would be read as INT"):
            lab.values(format, files, schema="c INT")
        if format == "parquet":
            assert len(lab.values(format, files)) == 6
        else:
            with pytest.raises(
                FatalError, match=r"column c is INT in .*0\.x \(and 4 more files\) and BIGINT in .*z\.x"
            ):
                lab.values(format, files)
        assert len(lab.values(format, files, schema="c BIGINT")) == 6


def test_types_that_spark_does_not_have(lab: Lab) -> None:  # noqa: F811
    """The error names column, file and the way out; the way out works."""
    nanos = packed("parquet", pa.array([1_577_934_245_123_456_789], pa.timestamp("ns")), pa.array([1]), names="t,n")
    with pytest.raises(FatalError, match=r"data\.x: column t is of Parquet's type int64 \(TIMESTAMP\(NANOS") as caught:
        lab.values("parquet", {"data.x": nanos})
    assert '"spark.sql.legacy.parquet.nanosAsLong" = "true"' in caught.value.hint
    assert lab.values("parquet", nanos, schema="n BIGINT") == [b'{"n":1}']
    assert lab.values("parquet", nanos, schema="n BIGINT, t BIGINT") == [b'{"n":1,"t":1577934245123456789}']
    with pytest.raises(FatalError, match=r"column t is of type int64 \(TIMESTAMP\(NANOS"):
        lab.values("parquet", nanos, schema="n BIGINT, t TIMESTAMP")
    lab.spark.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
    try:
        assert lab.values("parquet", nanos) == [b'{"t":1577934245123456789,"n":1}']
    finally:
        lab.spark.conf.unset("spark.sql.legacy.parquet.nanosAsLong")
    for kind in (pa.time64("us"), pa.time32("ms"), pa.time64("ns")):
        with pytest.raises(FatalError, match=r"column c is of Parquet's type .*TIME\(") as caught:
            lab.values("parquet", packed("parquet", pa.array([5], kind)))
        assert "source.schema" in caught.value.hint
    assert lab.values("parquet", packed("parquet", pa.array([5], pa.time64("us"))), schema="c BIGINT") == [b'{"c":5}']
    assert lab.values("parquet", packed("parquet", pa.array([5]), compression="brotli")) == [b'{"c":5}']
    zoned = packed("orc", pa.array([_TIME], pa.timestamp("us", "UTC")))
    with pytest.raises(FatalError, match="column c is of ORC's type timestamp with local time zone"):
        lab.values("orc", zoned)


def test_orc_by_place_and_before_1582(lab: Lab) -> None:  # noqa: F811
    """Files of old Hive have no names of columns; files of ORC's C++ library have no calendar."""
    hive = packed("orc", pa.array([1]), pa.array(["x"]), names="_col0,_col1")
    assert lab.values("orc", hive, schema="a BIGINT, b STRING") == [b'{"a":1,"b":"x"}']
    assert lab.values("orc", hive) == [b'{"_col0":1,"_col1":"x"}']
    for schema in ("a INT, b STRING", "_col1 BIGINT, _col0 STRING", "a BIGINT", "b STRING, a BIGINT"):
        with pytest.raises(FatalError):
            lab.values("orc", hive, schema=schema)
    with pytest.raises(FatalError, match="by their place"):
        lab.values("orc", {"a.x": packed("orc", pa.array([1]), names="a"), "b.x": hive})
    for column in (pa.array([datetime.date(1500, 1, 1), _DATE]), pa.array([datetime.datetime(1500, 1, 1)])):
        with pytest.raises(FatalError, match=r"data\.x: it holds dates before 1582-10-15"):
            lab.values("orc", {"data.x": packed("orc", column)})
        assert len(lab.values("parquet", packed("parquet", column))) == len(column)
    assert lab.values("orc", packed("orc", pa.array([datetime.date(1582, 10, 15)]))) == [b'{"c":"1582-10-15"}']


def test_parquet_dates_of_any_age(lab: Lab) -> None:  # noqa: F811
    """By today's calendar, as pyarrow has them; the old INT96 too."""
    days = [datetime.date(1, 1, 1), datetime.date(1582, 10, 4), datetime.date(1899, 12, 31)]
    assert [json.loads(v or b"")["c"] for v in lab.values("parquet", packed("parquet", pa.array(days)))] == [
        str(day) for day in days
    ]
    times = pa.array([datetime.datetime(1700, 1, 1, 1, 2, 3)], pa.timestamp("us"))
    (value,) = lab.values("parquet", packed("parquet", times, use_deprecated_int96_timestamps=True))
    assert json.loads(value or b"")["c"].startswith("1700-01-01T01:02:03")


def test_unsigned_integers(lab: Lab) -> None:  # noqa: F811
    for kind, most in ((pa.uint8(), 2**8), (pa.uint16(), 2**16), (pa.uint32(), 2**32), (pa.uint64(), 2**64)):
        assert lab.values("parquet", packed("parquet", pa.array([most - 1], kind))) == [b'{"c":%d}' % (most - 1)]
    with pytest.raises(FatalError, match=r"column c is DECIMAL\(20,0\), and would be read as DOUBLE"):
        lab.values("parquet", packed("parquet", pa.array([2**32 - 1], pa.uint64())), schema="c DOUBLE")


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_no_file_of_the_format(lab: Lab, format: str) -> None:  # noqa: F811
    """Among good ones: the error names the file and why."""
    good = packed(format, pa.array(list(range(5000))))
    flipped = bytearray(good)
    flipped[-2 if format == "parquet" else -1] ^= 1  # the word at the end; the length of what says how to read the rest
    bad = [b"a,b\n1,2\n" * 50, good[: len(good) // 2], good[:7], bytes(flipped)]
    if format == "parquet":
        bad.append(good[:-4] + b"PARE")
    for content in bad:
        for schema in (None, "c BIGINT"):
            with pytest.raises(FatalError, match=r"bad\.x: not a readable (Parquet|ORC) file: \S") as caught:
                lab.values(format, {"a.x": good, "bad.x": content, "z.x": good}, schema=schema)
            assert "FAILED_READ_FILE" not in str(caught.value)
