"""The reader of Avro (sources/files/reading/avro_reader.py), without Spark: splits, codecs, types, damage."""

from __future__ import annotations

import bz2
import datetime
import io
import json
import lzma
import zlib
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
import zstandard
from avro.datafile import DataFileWriter
from avro.io import DatumWriter
from avro.schema import parse

from eosingest.errors import FatalError
from eosingest.protocol.plan import make_plan
from eosingest.sources.files.formats.avro_container import CODECS
from eosingest.sources.files.reading.avro_columns import SchemaError, record_of
from eosingest.sources.files.reading.avro_reader import AvroReader
from eosingest.sources.files.source import FileSource
from eosingest.spark.python_scan import planned_splits
from tests.support.reading.table_avro import column, packed, record, said_to_be

_UTC = pa.timestamp("us", "UTC")
_MARKER = bytes(range(200, 216))
_SIZE = 1 << 20


def rows_of(data: bytes, folder: Path, *fields: tuple[str, Any], split_size: int = _SIZE, **more: Any) -> list[Any]:
    (folder / "a.avro").write_bytes(data)
    source = FileSource(format="avro", paths=[str(folder)], directory=folder, root=None, min_age_s=0)
    splits = planned_splits(make_plan(source, {}, split_size, source.plan()))
    reader = AvroReader(pa.schema(list(fields)), **more)
    return [row for split in splits for batch in reader.read(split, None) for row in batch.to_pylist()]


def values_of(kind: Any, values: list[Any], target: Any, folder: Path, raw: Any = None) -> list[Any]:
    """Return the values of a column. `raw`: they are written as this type."""
    data = column(kind, values) if raw is None else said_to_be(record(c=kind), column(raw, values))
    return [row["c"] for row in rows_of(data, folder, ("c", target))]


@pytest.mark.parametrize("codec", CODECS)
def test_each_block_is_in_one_split(codec: str, tmp_path: Path) -> None:
    """At any split size, and in the file's order; a column that is not read changes nothing."""
    rows = [{"n": n, "s": f"{n:030}"} for n in range(300)]
    data = packed(record(n="long", s="string"), rows, codec, 400)
    for size in (97, 1000, _SIZE):
        assert rows_of(data, tmp_path, ("n", pa.int64()), ("s", pa.string()), split_size=size) == rows
    assert rows_of(data, tmp_path, ("s", pa.string()), split_size=500) == [{"s": row["s"]} for row in rows]
    assert len(rows_of(data, tmp_path, split_size=500)) == 300


def test_large_blocks_are_cut_into_batches(tmp_path: Path) -> None:
    rows = [{"n": n, "b": b"x" * 2000} for n in range(40_000)]
    assert rows_of(packed(record(n="long", b="bytes"), rows, block=1 << 30), tmp_path, ("n", pa.int32())) == [
        {"n": n} for n in range(40_000)
    ]


def test_files_of_apaches_library(tmp_path: Path) -> None:
    """Its deflate leaves three bytes of a checksum in the block."""
    out = io.BytesIO()
    schema = parse(json.dumps(record(n="long", s=["null", "string"])))
    with DataFileWriter(out, DatumWriter(), schema, "deflate") as writer:
        for n in range(9):
            writer.append({"n": n, "s": None if n % 2 else "x"})
        writer.flush()
        data = out.getvalue()
    rows = rows_of(data, tmp_path, ("n", pa.int64()), ("s", pa.string()))
    assert rows == [{"n": n, "s": None if n % 2 else "x"} for n in range(9)]


def test_values_have_the_schemas_type(tmp_path: Path) -> None:
    enum = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    inner = {"type": "record", "name": "I", "namespace": "x.y", "fields": [{"name": "e", "type": enum}]}
    fields = [{"name": "e", "type": ["null", "E"]}, {"name": "i", "type": "x.y.I"}]
    again = {"type": "record", "name": "J", "namespace": "x.y", "fields": fields}
    assert values_of(inner, [{"e": "B"}], pa.struct({"E": pa.string(), "missing": pa.int8()}), tmp_path) == [
        {"E": "B", "missing": None}
    ]
    both = packed(record(a=inner, b=again), [{"a": {"e": "A"}, "b": {"e": "B", "i": {"e": "A"}}}])
    target = pa.struct({"e": pa.string(), "i": pa.struct({"e": pa.string()})})
    assert rows_of(both, tmp_path, ("b", target)) == [{"b": {"e": "B", "i": {"e": "A"}}}]
    lists = {"type": "array", "items": ["null", {"type": "array", "items": "boolean"}]}
    assert values_of(lists, [[[True], None, []], []], pa.list_(pa.list_(pa.bool_())), tmp_path) == [
        [[True], None, []],
        [],
    ]
    union = ["int", {"type": "map", "values": "float"}, "null", "string"]
    members = pa.struct({"member0": pa.int32(), "member1": pa.map_(pa.string(), pa.float32()), "member2": pa.string()})
    none = dict.fromkeys(("member0", "member1", "member2"))
    assert values_of(union, [7, {"k": 0.5}, None, "x"], members, tmp_path) == [
        {**none, "member0": 7},
        {**none, "member1": [("k", 0.5)]},
        None,
        {**none, "member2": "x"},
    ]


def test_values_without_elements(tmp_path: Path) -> None:
    """A batch of which a part has no value at all."""
    inner = {"type": "record", "name": "I", "fields": [{"name": "a", "type": ["null", "boolean", "string"]}]}
    element = pa.struct({"a": pa.struct({"member0": pa.bool_(), "member1": pa.string()})})
    lists, maps = {"type": "array", "items": inner}, {"type": "map", "values": inner}
    assert values_of(["null", lists], [[], None], pa.list_(element), tmp_path) == [[], None]
    assert values_of(["null", maps], [None, {}], pa.map_(pa.string(), element), tmp_path) == [None, []]
    assert values_of(["null", inner], [None], element, tmp_path) == [None]


def test_a_map_that_has_a_key_twice(tmp_path: Path) -> None:
    """As Parquet's: both entries are read."""
    entry = {"type": "record", "name": "P", "fields": [{"name": "k", "type": "string"}, {"name": "v", "type": "long"}]}
    raw, pairs = {"type": "array", "items": entry}, [{"k": "a", "v": 1}, {"k": "a", "v": 2}]
    kind = {"type": "map", "values": "long"}
    assert values_of(kind, [pairs], pa.map_(pa.string(), pa.int64()), tmp_path, raw) == [[("a", 1), ("a", 2)]]


_ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
_FIXED = {"type": "fixed", "name": "F", "size": 1}
# By name: the type, the type that the value is written as, the value, Arrow's type, and the message.
UNFIT: dict[str, tuple[Any, Any, Any, Any, str]] = {
    "a boolean of 2": ("boolean", _FIXED, b"\2", pa.bool_(), "neither 0 nor 1"),
    "a place before an enum's symbols": (_ENUM, "int", -1, pa.string(), "none of its symbols"),
    "a place after an enum's symbols": (_ENUM, "int", 2, pa.string(), "none of its symbols"),
    "a number beyond 32 bits": ("int", "long", 1 << 31, pa.int32(), "no int"),
    "a date beyond 32 bits": ({"type": "int", "logicalType": "date"}, "long", 1 << 40, pa.date32(), "no int"),
    "a decimal of too many digits": (_DECIMAL, "bytes", b"\x27\x10", pa.decimal128(10, 2), "larger than its type"),
    "a decimal without digits": (_DECIMAL, "bytes", b"", pa.decimal128(4, 2), "without digits"),
    "milliseconds beyond microseconds": (
        {"type": "long", "logicalType": "timestamp-millis"}, "long", 1 << 60, _UTC, "does not fit"),
    "no UTF-8": ("string", "bytes", b"caf\xe9", pa.string(), "no UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNFIT)
def test_a_value_that_is_none_of_its_type(name: str, tmp_path: Path) -> None:
    """Breaks when fastavro's reading of it is believed, or Arrow's cast of it."""
    kind, raw, value, target, words = UNFIT[name]
    wrapped = (
        (kind, raw, value, target),
        (["null", kind], ["null", raw], value, target),
        ({"type": "array", "items": kind}, {"type": "array", "items": raw}, [value], pa.list_(target)),
        ({"type": "map", "values": kind}, {"type": "map", "values": raw}, {"k": value}, pa.map_(pa.string(), target)),
        (
            {"type": "record", "name": "O", "fields": [{"name": "a", "type": kind}]},
            {"type": "record", "name": "O", "fields": [{"name": "a", "type": raw}]},
            {"a": value},
            pa.struct({"a": target}),
        ),
    )
    for own, written, each, read in wrapped:
        with pytest.raises(FatalError, match=rf"a\.avro: column c: .*{words}.* \(after byte \d+\)") as caught:
            values_of(own, [each], read, tmp_path, written)
        assert caught.value.code == "bad-data"
    assert len(rows_of(said_to_be(record(c=kind), column(raw, [value])), tmp_path, ("d", pa.int8()))) == 1, "not read"


def block_of(rows: int, content: bytes) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "long", rows)
    fastavro.schemaless_writer(out, "bytes", content)
    return out.getvalue() + _MARKER


@pytest.mark.parametrize(
    ("kind", "rows", "content"),
    [
        (["null", "long"], 1, b"\1\x04"),  # the last type of a union, counted from its end
        (["null", "long"], 1, b"\3"),
        (["null", "long"], 1, b"\x05"),
        (["null", "long"], 1, b"\4\4"),
        (["null", "string", "long"], 1, b"\1\4"),
        ("long", 1, b"\2\2"),
        ("long", 1, b"\2\0"),
        ("long", 1, b"\2\2\4"),  # as which the rows of a second block of an array are
        ("long", 2, b"\2"),
        ("long", 0, b"\2"),
        ("long", 1, b""),
        ("long", 1, b"\x80"),
        ("string", 1, b"\x08abc"),
        ("string", 1, b"\x05abc"),
        (_FIXED, 2, b"a"),
        ({"type": "array", "items": "boolean"}, 1, b"\xfe\xff\xff\xff\xff\xff\x0f\1"),
        ("null", 1 << 40, b""),
    ],
)
def test_a_block_that_is_none_of_the_schema(kind: Any, rows: int, content: bytes, tmp_path: Path) -> None:
    data = packed(record(c=kind), []) + block_of(rows, content)
    with pytest.raises(FatalError, match=r"a\.avro: near byte \d+: .*block"):
        rows_of(data, tmp_path)


def _unfinished(content: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(content) + packer.flush(zlib.Z_SYNC_FLUSH)


def _without_end(packer: Any, content: bytes) -> bytes:
    return bytes(packer.compress(content) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))


@pytest.mark.parametrize(
    ("codec", "compress"),
    [
        ("deflate", _unfinished),
        ("deflate", lambda content: zlib.compress(content)[2:-4] + b"x"),
        ("zstandard", lambda content: _without_end(zstandard.ZstdCompressor().compressobj(), content)),
        ("zstandard", lambda content: zstandard.compress(content) + b"x"),
        ("bzip2", lambda content: bz2.compress(content) * 2),
        ("xz", lambda content: lzma.compress(content) + bytes(4)),
        ("snappy", lambda content: b"\xff" * 9),
        ("snappy", lambda content: b""),
    ],
)
def test_compressed_data_that_does_not_end_with_its_block(codec: str, compress: Any, tmp_path: Path) -> None:
    data = packed(record(c="long"), [], codec) + block_of(2, compress(b"\2\4"))
    with pytest.raises(FatalError, match=r"a\.avro: near byte \d+: .*block"):
        rows_of(data, tmp_path)


@pytest.mark.parametrize("codec", ["snappy", "bzip2", "xz"])
def test_every_flipped_byte_of_a_block_with_a_checksum(codec: str, tmp_path: Path) -> None:
    """Right rows (some bits mean nothing), or none."""
    rows = [{"n": n, "s": f"v{n % 5}"} for n in range(60)]
    data = packed(record(n="long", s="string"), rows, codec)
    found = 0
    for at in range(data.index(_MARKER) + 16, len(data)):
        flipped = data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]
        try:
            assert rows_of(flipped, tmp_path, ("n", pa.int64()), ("s", pa.string())) == rows
        except FatalError as error:
            assert error.code == "bad-data"
            found += 1
    assert found > 100


def test_dates_of_spark_2(tmp_path: Path) -> None:
    """By the header: then they are of the calendar before 1582."""
    kind, day = {"type": "int", "logicalType": "date"}, datetime.date(1500, 1, 1)
    for version, expected in (("2.4.8", datetime.date(1499, 12, 23)), ("3.5.0", day)):
        out = io.BytesIO()
        fastavro.writer(out, record(c=kind), [{"c": day}], metadata={"org.apache.spark.version": version})
        assert rows_of(out.getvalue(), tmp_path, ("c", pa.date32())) == [{"c": expected}]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("strang", "no type strang"),
        ({"type": "record", "fields": []}, "not valid"),
        ({"type": "record", "name": "O", "fields": [{"name": "a", "type": "int"}] * 2}, "two fields of one name"),
        (["null", _FIXED, {**_FIXED, "size": 2}], "defined twice"),
        ({"type": "array", "items": "null"}, "elements without bytes"),
        ({"type": "fixed", "name": "Z", "size": 0}, "fixed of 0 bytes"),
    ],
)
def test_schemas_that_are_none(kind: Any, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        record_of(json.dumps(record(c=kind)))
