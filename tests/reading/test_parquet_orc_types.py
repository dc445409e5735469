"""Parquet and ORC: a column is read as the file has it, or as a type that holds all of it; else the run is refused."""

from __future__ import annotations

import contextlib
import datetime
import io
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as parquet
import pytest
from py4j import java_gateway as java_meta
from pyspark.sql import DataFrame, functions

from eosingest.errors import EosingestError, FatalError
from eosingest.spec.values import ROW_AS_JSON
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
        assert len(lab.values(format, files)) == 6
        assert len(lab.values(format, files, schema="c BIGINT")) == 6


_NANOS = 1_577_934_245_123_456_789
# A column with times in nanoseconds in it, the path of these, the schema of the stored values, and the value.
NESTED_NANOS: dict[str, tuple[Any, str, str, Any]] = {
    "struct": (
        pa.struct({"t": pa.timestamp("ns", "UTC"), "n": pa.int32()}),
        "c.t",
        "STRUCT<t: {}, n: INT>",
        {"t": _NANOS, "n": 1},
    ),
    "array": (pa.list_(pa.timestamp("ns")), "c[]", "ARRAY<{}>", [_NANOS, None]),
    "map": (pa.map_(pa.string(), pa.timestamp("ns")), "c.value", "MAP<STRING, {}>", {"k": _NANOS}),
    "structs in an array": (
        pa.list_(pa.struct({"t": pa.timestamp("ns")})),
        "c[].t",
        "ARRAY<STRUCT<t: {}>>",
        [{"t": _NANOS}],
    ),
    "time": (pa.struct({"t": pa.time64("ns")}), "c.t", "STRUCT<t: {}>", {"t": 5}),
}


@pytest.mark.parametrize(("kind", "path", "schema", "value"), NESTED_NANOS.values(), ids=NESTED_NANOS)
def test_such_types_in_columns_with_parts(lab: Lab, kind: Any, path: str, schema: str, value: Any) -> None:  # noqa: F811
    """They are read as what is stored, as columns without parts are; the error names the part and the stored type."""
    data = {
        "data.x": packed("parquet", pa.array([list(value.items()) if pa.types.is_map(kind) else value, None], kind))
    }
    stored = schema.format("BIGINT")
    with pytest.raises(FatalError, match=r"data\.x: column c is of Parquet's type int64 \(TIME") as caught:
        lab.values("parquet", data)
    as_spark_writes = stored.lower().replace(", ", ",").replace(": ", ":")
    assert f"c {as_spark_writes} gives the stored values" in caught.value.hint
    assert [json.loads(record or b"") for record in lab.values("parquet", data, schema=f"c {stored}")] == [
        {"c": value},
        {"c": None},
    ]
    for other in ("TIMESTAMP", "DOUBLE", "INT"):
        words = rf"column {re.escape(path)} is of type int64 \(TIME.*would be read as {other} \(BIGINT gives"
        with pytest.raises(FatalError, match=words):
            lab.values("parquet", data, schema=f"c {schema.format(other)}")
    if path == "c.t" and "n" in value:
        assert lab.values("parquet", data, schema="c STRUCT<n: INT>", where="c IS NOT NULL") == [b'{"c":{"n":1}}']


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
    never = packed("orc", pa.array([datetime.datetime(9999, 12, 31)], pa.timestamp("us")), pa.array([1]), names="t,n")
    with pytest.raises(FatalError, match=r"data\.x: column t is of ORC's type timestamp \(with times before 1677"):
        lab.values("orc", {"data.x": never})
    assert lab.values("orc", never, schema="n BIGINT") == [b'{"n":1}']


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
    column = pa.array([datetime.date(1500, 1, 1), _DATE])
    with pytest.raises(FatalError, match=r"data\.x: column c: a date before 1582-10-15"):
        lab.values("orc", {"data.x": packed("orc", column)})
    assert len(lab.values("parquet", packed("parquet", column))) == len(column)
    assert lab.values("orc", packed("orc", pa.array([datetime.date(1582, 10, 15)]))) == [b'{"c":"1582-10-15"}']


_BY_JAVA = """
    id % 100 AS i, cast(id AS TINYINT) AS b, id * 10000000000 AS l, cast(id AS FLOAT) / 3 AS f, id / 7 AS d, id % 2 = 0 AS o,
    concat('ü ', id) AS s, cast(concat('v', id) AS BINARY) AS x, cast(id AS DECIMAL(38,18)) / 7 AS e, array(id, NULL) AS a,
    map(concat('k', id), named_struct('y', id, 'z', array('q'))) AS m, if(id % 3 = 0, NULL, id) AS n,
    date_add(DATE'0100-03-05', cast(id * 9791 AS INT)) AS day,
    timestamp_micros({first} + id * 131072123457689) AS t,
    cast(timestamp_micros(-62135596800000000 + id * 4716123457689) AS TIMESTAMP_NTZ) AS w"""


@pytest.mark.slow_cases("Europe/Berlin-*", "Asia/Kolkata-*", "UTC-none-*")
@pytest.mark.parametrize(
    ("zone", "codec", "calendar"),
    [
        ("UTC", "zlib", "false"), ("America/New_York", "snappy", "true"), ("Europe/Berlin", "zstd", "false"),
        ("Asia/Kolkata", "lz4", "true"), ("UTC", "none", "true"), ("UTC", "lzo", "false"),
    ],
)  # fmt: skip
def test_orc_written_by_java(lab: Lab, tmp_path: Path, zone: str, codec: str, calendar: str) -> None:  # noqa: F811
    """By Spark, in any zone: the file has the times of its writer's clock, and names the zone and the calendar."""
    any_age = zone == "UTC" and codec != "lzo"  # pyarrow reads its pages, but not Python the zone in a stripe's footer
    first = -8519472000000000 if any_age else 200000000000
    rows = lab.spark.sql(f"SELECT {_BY_JAVA.format(first=first)} FROM range(0, 70, 1, 1)")
    data = _written(lab, rows, tmp_path / "new", zone, codec, **{"orc.proleptic.gregorian": calendar})
    expected = rows.withColumn("t", functions.from_utc_timestamp("t", zone)).selectExpr(ROW_AS_JSON).collect()
    found = lab.values("orc", data, ROW_AS_JSON)
    assert [value and value.decode() for value in found] == [row[0] for row in expected]
    refused = pytest.raises(
        FatalError, match=rf"column t: a time before 1970-01-02, written in the zone ({zone}|\(unk)"
    )
    with contextlib.nullcontext() if zone == "UTC" else refused:
        lab.values("orc", _written(lab, rows.selectExpr("t - INTERVAL 3 DAYS AS t"), tmp_path / "old", zone, codec))


def _written(lab: Lab, rows: DataFrame, folder: Path, zone: str, codec: str, **options: str) -> bytes:  # noqa: F811
    """Return the file that a Spark in a zone writes."""
    zones = lab.spark._jvm.java.util.TimeZone  # type: ignore[union-attr]
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone(zone))
    try:
        rows.write.options(compression=codec, **options).orc(str(folder))
    finally:
        zones.setDefault(before)
    (file,) = folder.glob("*.orc")
    return file.read_bytes()


def test_char_of_orc_has_no_padding(lab: Lab, tmp_path: Path) -> None:  # noqa: F811
    """Java's library writes it with spaces up to its length, and reads it without."""
    java: Any = lab.spark._jvm
    orc_file, path = java.org.apache.orc.OrcFile, java.org.apache.hadoop.fs.Path("file", None, str(tmp_path / "a.orc"))
    schema = java.org.apache.orc.TypeDescription.fromString("struct<c:char(5),v:varchar(5)>")
    options = orc_file.writerOptions(java.org.apache.hadoop.conf.Configuration()).setSchema(schema)
    writer, batch = orc_file.createWriter(path, options), schema.createRowBatch()
    for column, text in zip(java_meta.get_field(batch, "cols"), (b"ab ", b"ab "), strict=True):
        column.setVal(0, text)
    java_meta.set_field(batch, "size", 1)
    writer.addRowBatch(batch)
    writer.close()
    assert b"ab   " in (tmp_path / "a.orc").read_bytes()
    assert lab.values("orc", (tmp_path / "a.orc").read_bytes()) == [b'{"c":"ab","v":"ab "}']


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
