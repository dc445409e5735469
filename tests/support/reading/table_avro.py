"""The table's Avro files: codecs, blocks, damages; types read as others; schemas that differ; names, folders, strings."""

from __future__ import annotations

import datetime
import io
import itertools
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import fastavro

from tests.support.reading.independent import plain
from tests.support.reading.independent_avro import avro_rows
from tests.support.reading.table import Case, one
from tests.support.reading.table_rows import in_folders

_ROWS = 200
_MARKER = bytes(range(200, 216))
_DATE = datetime.date(2020, 1, 2)
_TIME = datetime.datetime(2020, 1, 2, 3, 4, 5, 678901)
_ZONED = _TIME.replace(tzinfo=datetime.UTC)
_MILLIS = _TIME.replace(microsecond=678000)
Schema = Any


def cases() -> Iterator[Case]:
    yield from _written()
    yield from _damaged()
    yield from _types()
    yield from _given()
    yield from _many_files()
    yield from _unions()
    yield from _beyond_their_type()
    yield from _names()
    yield from _folders()


def record(**fields: Schema) -> Schema:
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}


def packed(schema: Schema, rows: list[Any], codec: str = "null", block: int = 16_000) -> bytes:
    """Write a file; Python's objects are as fastavro has them."""
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), rows, codec, sync_interval=block, sync_marker=_MARKER)
    return out.getvalue()


def said_to_be(schema: Schema, written: bytes) -> bytes:
    """Return the blocks of a file behind the header of another schema: what no writer would write."""
    empty = packed(schema, [])
    return empty + written[written.index(_MARKER) + 16 :]


def column(kind: Schema, values: list[Any], **options: Any) -> bytes:
    return packed(record(c=kind), [{"c": value} for value in values], **options)


_TABLE = record(
    s=["null", "string"], n="long", x="double", b="bytes", f="boolean",
    l={"type": "array", "items": ["null", "long"]},
    o=["null", {"type": "record", "name": "O", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "string"}]}],
)  # fmt: skip


def _table() -> list[Any]:
    return [
        {
            "s": f"v{n % 40:04d}é" if n % 7 else None, "n": n * 2654435761 % 2**62 * (-1) ** n,
            "x": n / 7 if n % 5 else float("nan"), "b": bytes([n % 256, 255]), "f": n % 2 == 0,
            "l": [n, None] if n % 3 else [], "o": {"a": n, "b": "x" * (n % 9)} if n % 4 else None,
        }
        for n in range(_ROWS)
    ]  # fmt: skip


def _written() -> Iterator[Case]:
    codecs = ("null", "deflate", "snappy", "bzip2", "xz", "zstandard")
    for codec, block, split in itertools.product(codecs, (1, 300, 1 << 20), (300, 777, 1 << 20)):
        made = packed(_TABLE, _table(), codec, block)
        yield Case(
            f"avro/written/{codec} {block} by {split}", "avro", one("a.avro", made), split_size=split, together="table"
        )
    good = packed(_TABLE, _table(), block=500)
    first = good.index(_MARKER) + 16
    for name in ("a.avro", "a", "a.AVRO", "a.gz", "a.avro.bz2", "a.json"):
        yield Case(f"avro/written/called {name}", "avro", one(name, good), together="table")
    empty = b"\0\0" + _MARKER
    kinds = {
        "no rows": good[:first],
        "an empty block": good[:first] + empty,
        "empty blocks at both ends": good[:first] + empty + good[first:] + empty,
        "no codec named": packed(_TABLE, _table()).replace(b"\x14avro.codec\x08null", b"\x14avro.codac\x08null"),
        "more in the header": _with_metadata(good, {"x" * 50: "y" * 2000}),
    }
    for kind, data in kinds.items():
        yield Case(f"avro/written/{kind}", "avro", one("a.avro", data), split_size=400)
    for cut in (2, 5):  # a file of Avro has no end of its own
        at = _ends(good)[cut]
        words = "A file that ends between two blocks is a file of fewer rows"
        rows = [json.loads(json.dumps(plain(row))) for row in avro_rows(good[:at])[1]]
        yield Case(
            f"avro/habit/cut behind block {cut}", "avro", one("a.avro", good[:at]), expected=tuple(rows), habit=words
        )


def _ends(data: bytes) -> list[int]:
    return [at + 16 for at in range(len(data)) if data.startswith(_MARKER, at)]


def _with_metadata(data: bytes, more: dict[str, str]) -> bytes:
    out = io.BytesIO()
    reader = fastavro.reader(io.BytesIO(data))
    fastavro.writer(out, reader.writer_schema, list(reader), sync_marker=_MARKER, sync_interval=500, metadata=more)
    return out.getvalue()


def _damaged() -> Iterator[Case]:
    good = packed(record(s="string", n="long"), [{"s": f"v{n:05d}", "n": n} for n in range(_ROWS)], block=300)
    ends, length = _ends(good), len(good)
    third = ends[2]
    bad = {f"cut at byte {cut}": good[:cut] for cut in (1, 3, 4, 5, 30, ends[0] - 16, ends[0] - 1)}
    bad |= {f"cut {more} behind a block": good[: third + more] for more in (1, 2, 3, 4, 50)}
    bad |= {f"cut {less} before its end": good[:-less] for less in (1, 2, 15, 16, 17, 40)}
    bad |= {f"tail of {kind}": good + tail for kind, tail in {
        "a byte": b"x", "an end of line": b"\n", "zeros": bytes(8), "two zeros": b"\0\0", "many zeros": bytes(40),
        "its beginning": good[:4], "another file": good, "a marker": _MARKER,
    }.items()}  # fmt: skip
    bad |= {f"flipped at {at}": good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :] for at in (
        0, 3, ends[0] - 1, ends[0], ends[0] + 2, third - 16, third - 1, third, third + 2, length - 1,
    )}  # fmt: skip
    bad |= {
        "csv": b"a,b\n1,2\n" * 20,
        "gzip": b"\x1f\x8b\x08" + bytes(50),
        "its magic alone": good[:4],
        "zeros": bytes(500),
        "an end of line translated": good.replace(b"\n", b"\r\n"),
        "a byte left out": good[:40] + good[41:],
        "a block of fewer bytes": good[:third] + b"\x02\x02a" + _MARKER,
        "of more rows than it has": column("long", [1]).replace(b"\x02\x02\x02" + _MARKER, b"\x08\x02\x02" + _MARKER),
        "rows that are no records": packed("string", ["x", "y"]),
        "another codec's name": good.replace(b"null", b"nul2"),
        "no schema": good.replace(b"avro.schema", b"avro.schemx"),
        "a schema that is none": good.replace(b'"string"', b'"strang"'),
    }
    for kind, data in bad.items():
        for given in (False, True):
            yield Case(
                f"avro/damage/{kind}{' given' * given}", "avro", one("a.avro", data),
                {"s": "STRING", "n": "BIGINT"} if given else None, refused=kind.startswith(("cut", "tail")), may_refuse=True,
            )  # fmt: skip
    for codec in ("snappy", "bzip2", "xz"):  # these have checksums
        data = packed(record(s="string", n="long"), [{"s": f"v{n:05d}", "n": n} for n in range(_ROWS)], codec, 300)
        for part in range(4):
            at = _ends(data)[1] + 6 + part * 20
            flipped = data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]
            yield Case(f"avro/damage/{codec} flipped {part}", "avro", one("a.avro", flipped), may_refuse=True)
    yield Case(
        "avro/damage/one among good ones", "avro", lambda: {"a.avro": good, "b.avro": good[: third + 9], "c.avro": good},
        refused=True,
    )  # fmt: skip
    inside = [{"s": "x" * 40, "b": _MARKER + b"y" * 30 if n == 90 else b"y" * 46} for n in range(_ROWS)]
    marked = packed(record(s="string", b="bytes"), inside, block=2000)
    yield Case("avro/damage/a marker in a block", "avro", one("a.avro", marked), split_size=500, refused=True)
    kind = record(s="string", b="bytes")
    block = packed(kind, [{"s": "i" * 300, "b": b""}])[len(packed(kind, [])) : -16]
    for split in (150, 200, 250):  # a split of this size begins in a value that holds a marker, and a block behind it
        rows = [{"s": "r" * 20, "b": b"z" * 300 + _MARKER + block if n == 5 else b""} for n in range(30)]
        data = packed(kind, rows, block=1)
        yield Case(
            f"avro/damage/a block in a block by {split}", "avro", one("a.avro", data), split_size=split, refused=True
        )
    yield Case("avro/written/a marker in a block", "avro", one("a.avro", marked))


def _logical(of: str, name: str, **more: Any) -> Schema:
    return {"type": of, "logicalType": name, **more}


def _fixed(size: int, name: str | None = None, **more: Any) -> Schema:
    return {"type": "fixed", "name": "F", "size": size} | ({"logicalType": name, **more} if name else {})


_OWN: dict[str, tuple[Schema, str, list[Any]]] = {
    "int": ("int", "INT", [70_000, -(2**31), 5]),
    "long": ("long", "BIGINT", [3_000_000_000, -(2**63), 2**53 + 1]),
    "float": ("float", "FLOAT", [0.5, -1.75, float("inf"), float("nan")]),
    "double": ("double", "DOUBLE", [0.1, 1e300, -0.0, float("nan")]),
    "string": ("string", "STRING", ["x", "", "é\U0001f600", "12", "2020-01-02"]),
    "bytes": ("bytes", "BINARY", [b"\xff\0", b"", b"12"]),
    "boolean": ("boolean", "BOOLEAN", [True, False]),
    "enum": ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "STRING", ["A", "B"]),
    "fixed": (_fixed(4), "BINARY", [b"abcd", b"\xff\0\0\0"]),
    "date": (
        _logical("int", "date"),
        "DATE",
        [_DATE, datetime.date(9999, 12, 31), datetime.date(1500, 1, 1), datetime.date(1, 1, 1)],
    ),
    "timestamp-millis": (_logical("long", "timestamp-millis"), "TIMESTAMP", [_MILLIS.replace(tzinfo=datetime.UTC)]),
    "timestamp-micros": (
        _logical("long", "timestamp-micros"),
        "TIMESTAMP",
        [_ZONED, _ZONED.replace(year=1500), _ZONED.replace(year=1883)],
    ),
    "local-timestamp-millis": (_logical("long", "local-timestamp-millis"), "TIMESTAMP_NTZ", [_MILLIS]),
    "local-timestamp-micros": (
        _logical("long", "local-timestamp-micros"),
        "TIMESTAMP_NTZ",
        [_TIME, _TIME.replace(year=1500)],
    ),
    "decimal": (
        _logical("bytes", "decimal", precision=10, scale=2),
        "DECIMAL(10,2)",
        [Decimal("1.25"), Decimal("-99999999.99"), Decimal("0.00")],
    ),
    "decimal in a fixed": (
        _fixed(16, "decimal", precision=12, scale=3),
        "DECIMAL(12,3)",
        [Decimal("-1.250"), Decimal("7.000")],
    ),
    "long decimal": (
        _fixed(16, "decimal", precision=30, scale=5),
        "DECIMAL(30,5)",
        [Decimal("1234567890123456789012345.12345"), Decimal("-1.00000")],
    ),
    "array": ({"type": "array", "items": "int"}, "ARRAY<INT>", [[1, 2], []]),
    "record": (
        {"type": "record", "name": "O", "fields": [{"name": "a", "type": "long"}]},
        "STRUCT<a: BIGINT>",
        [{"a": 2**40}],
    ),
    "nullable": (["null", "long"], "BIGINT", [None, 2**40]),
    "nullable turned": (["string", "null"], "STRING", [None, "x"]),
    "a union of one": (["long"], "BIGINT", [4]),
    "int or long": (["int", "long"], "BIGINT", [5, 2**40]),
    "float or double": (["null", "float", "double"], "DOUBLE", [1.5, None]),
}
# Of each type of Spark's those that hold all of it (docs/reading.md); any other is refused.
_HOLDS: dict[str, set[str]] = {
    "INT": {"BIGINT", "DOUBLE", "DECIMAL(30,5)"},
    "BIGINT": {"DECIMAL(30,5)"},
    "FLOAT": {"DOUBLE"},
    "DECIMAL(10,2)": {"DECIMAL(12,3)", "DECIMAL(30,5)"},
    "DECIMAL(12,3)": {"DECIMAL(30,5)"},
    "STRING": {"BINARY"},
}
_READ = (
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL(10,2)",
    "DECIMAL(12,3)",
    "DECIMAL(30,5)",
    "STRING",
    "BINARY",
    "BOOLEAN",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "ARRAY<INT>",
    "STRUCT<a: BIGINT>",
    "MAP<STRING, INT>",
    "INTERVAL DAY TO SECOND",
    "INTERVAL YEAR",
)


def _types() -> Iterator[Case]:
    """Every type of a file, read as every other one."""
    for name, (kind, own, values) in _OWN.items():
        data = column(kind, values)
        yield Case(f"avro/type/{name}", "avro", one("a.avro", data))
        for read in _READ:
            holds = read == own or read in _HOLDS.get(own, set())
            of_text = (own, read) == ("STRING", "BINARY")
            bytes_of = (
                tuple({"c": plain(None if text is None else text.encode())} for text in values) if of_text else None
            )
            yield Case(
                f"avro/type/{name} as {read}",
                "avro",
                one("a.avro", data),
                schema=f"c {read}",
                expected=bytes_of,
                refused=not holds,
            )
    plain_values: dict[str, tuple[Schema, list[Any], list[Any]]] = {
        "time-millis": (_logical("int", "time-millis"), [datetime.time(1, 2, 3)], [3_723_000]),
        "time-micros": (_logical("long", "time-micros"), [datetime.time(1, 2, 3)], [3_723_000_000]),
        "timestamp-nanos": (
            _logical("long", "timestamp-nanos"),
            [1_577_934_245_123_456_789],
            [1_577_934_245_123_456_789],
        ),
        "duration": (_fixed(12, "duration"), [b"\1\0\0\0\2\0\0\0\3\0\0\0"], ["AQAAAAIAAAADAAAA"]),
        "uuid": (
            _logical("string", "uuid"),
            ["12345678-1234-5678-1234-567812345678"],
            ["12345678-1234-5678-1234-567812345678"],
        ),
        "null": ("null", [None], [None]),
    }
    words = "are read as what they are stored as"
    for name, (kind, values, sent) in plain_values.items():
        rows = tuple({"c": each} for each in sent)
        yield Case(f"avro/type/stored {name}", "avro", one("a.avro", column(kind, values)), expected=rows, habit=words)
        if name != "uuid":
            for read in ("TIMESTAMP", "DATE", "STRING", "INTERVAL DAY TO SECOND"):
                data = column(kind, values)
                yield Case(
                    f"avro/type/stored {name} as {read}", "avro", one("a.avro", data), schema=f"c {read}", refused=True
                )
    more: dict[str, tuple[Schema, list[Any]]] = {
        "a map": ({"type": "map", "values": ["null", "long"]}, [{"k": 1}, {"k": None}, {}]),
        "an array of records": (
            {"type": "array", "items": {"type": "record", "name": "O", "fields": [{"name": "a", "type": "long"}]}},
            [[{"a": 1}], []],
        ),
        "dates in an array": ({"type": "array", "items": _logical("int", "date")}, [[datetime.date(1500, 1, 1)]]),
        "nullable elements": (["null", {"type": "array", "items": ["null", "string"]}], [["x", None], None]),
        "an empty record": ({"type": "record", "name": "O", "fields": []}, [{}]),
        "a nullable empty record": (["null", {"type": "record", "name": "O", "fields": []}], [None, {}]),
    }
    for name, (kind, values) in more.items():
        yield Case(f"avro/type/{name}", "avro", one("a.avro", column(kind, values)))


def _given() -> Iterator[Case]:
    two = packed(record(a="long", b="string"), [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}])
    columns = {
        "fewer": {"b": "STRING"},
        "reordered": {"b": "STRING", "a": "BIGINT"},
        "one more": {"a": "BIGINT", "z": "STRING"},
    }
    for kind, given in columns.items():
        yield Case(f"avro/given/{kind}", "avro", one("a.avro", two), given)
    nested: dict[str, tuple[Schema, Any, str]] = {
        "a field as a time": (_OWN["record"][0], {"a": 5}, "STRUCT<a: TIMESTAMP>"),
        "an element as a date": ({"type": "array", "items": "int"}, [5], "ARRAY<DATE>"),
        "a map's value as a date": ({"type": "map", "values": "int"}, {"k": 5}, "MAP<STRING, DATE>"),
        "a record as a map": (_OWN["record"][0], {"a": 5}, "MAP<STRING, BIGINT>"),
    }
    for kind, (own, value, schema) in nested.items():
        data = column(own, [value])
        yield Case(f"avro/given/{kind}", "avro", one("a.avro", data), schema=f"c {schema}", refused=True)
    itself = {
        "type": "record",
        "name": "N",
        "fields": [{"name": "v", "type": "long"}, {"name": "next", "type": ["null", "N"]}],
    }
    data = packed(itself, [{"v": 1, "next": {"v": 2, "next": None}}])
    yield Case("avro/given/a record that holds itself", "avro", one("a.avro", data), refused=True)
    yield Case("avro/given/without it", "avro", one("a.avro", data), {"v": "BIGINT"})
    yield Case("avro/given/an option", "avro", one("a.avro", two), options={"avroSchema": "{}"}, refused=True)


def _many_files() -> Iterator[Case]:
    """Files whose schemas differ: all columns count, and one type must hold both."""
    inner = {"type": "record", "name": "O", "fields": [{"name": "x", "type": "long"}]}
    wider = {"type": "record", "name": "O", "fields": [{"name": "x", "type": "long"}, {"name": "y", "type": "long"}]}
    pairs: dict[str, tuple[bytes, bytes, list[Any] | None]] = {
        "alike": (column("long", [1]), column("long", [2]), [{"c": 1}, {"c": 2}]),
        "nullable": (column("long", [1]), column(["null", "long"], [None]), [{"c": 1}, {"c": None}]),
        "a column more": (
            packed(record(a="long"), [{"a": 1}]),
            packed(record(a="long", b="string"), [{"a": 2, "b": "x"}]),
            [{"a": 1, "b": None}, {"a": 2, "b": "x"}],
        ),
        "other columns": (
            packed(record(a="long"), [{"a": 1}]),
            packed(record(b="long"), [{"b": 2}]),
            [{"a": 1, "b": None}, {"a": None, "b": 2}],
        ),
        "another order": (
            packed(record(a="long", b="string"), [{"a": 1, "b": "x"}]),
            packed(record(b="string", a="long"), [{"b": "y", "a": 2}]),
            [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}],
        ),
        "another type": (column("long", [1]), column("string", ["x"]), None),
        "a wider type": (column("int", [1]), column("long", [2**40]), [{"c": 1}, {"c": 2**40}]),
        "a number and a time": (column("long", [1]), column(_logical("long", "timestamp-millis"), [_ZONED]), None),
        "two times": (
            column(_logical("long", "timestamp-micros"), [_ZONED]),
            column(_logical("long", "timestamp-millis"), [_ZONED]),
            [{"c": "2020-01-02T03:04:05.678901Z"}, {"c": "2020-01-02T03:04:05.678000Z"}],
        ),
        "a field more": (
            column(inner, [{"x": 1}]),
            column(wider, [{"x": 2, "y": 3}]),
            [{"c": {"x": 1, "y": None}}, {"c": {"x": 2, "y": 3}}],
        ),
    }
    for kind, (first, second, rows) in pairs.items():
        for turned in (False, True):
            files = {"a.avro": second, "b.avro": first} if turned else {"a.avro": first, "b.avro": second}
            yield Case(
                f"avro/files/{kind}{' turned' * turned}", "avro", lambda files=files: files, refused=rows is None,
                expected=tuple(rows[::-1] if turned and rows else rows or ()), habit="the columns of all files",
            )  # type: ignore[misc]  # fmt: skip
    files = {"a.avro": column("int", [1]), "b.avro": column("long", [2**40])}
    yield Case("avro/files/both held", "avro", lambda: files, {"c": "BIGINT"})
    yield Case("avro/files/one narrowed", "avro", lambda: files, {"c": "INT"}, refused=True)


def _unions() -> Iterator[Case]:
    words = "a struct of member0, member1"
    kinds: dict[str, tuple[Schema, list[Any], list[Any]]] = {
        "of two": (["int", "string"], [1, "x"], [{"member0": 1, "member1": None}, {"member0": None, "member1": "x"}]),
        "of two and null": (["int", "null", "string"], [1, None], [{"member0": 1, "member1": None}, None]),
    }
    for kind, (own, values, sent) in kinds.items():
        rows = tuple({"c": each} for each in sent)
        yield Case(f"avro/union/{kind}", "avro", one("a.avro", column(own, values)), expected=rows, habit=words)
    data = column(["int", "string"], [1, "x"])
    for read in ("INT", "STRING", "STRUCT<member0: INT>", "STRUCT<member1: STRING, member0: INT>", "STRUCT<a: INT, b: STRING>",
                 "STRUCT<member0: INT, member1: STRING, member2: INT>"):  # fmt: skip
        yield Case(f"avro/union/as {read}", "avro", one("a.avro", data), schema=f"c {read}", refused=True)
    others = {"in another order": ["string", "int"], "of one more": ["int", "string", "boolean"]}
    for kind, other in others.items():
        files = {"a.avro": data, "b.avro": column(other, ["x"])}
        yield Case(f"avro/union/{kind}", "avro", lambda files=files: files, refused=True)  # type: ignore[misc]


def _beyond_their_type() -> Iterator[Case]:
    """What no writer should write: decimals of more digits than their type has, strings that are no UTF-8."""
    few = _logical("bytes", "decimal", precision=10, scale=2)
    places: dict[str, tuple[Schema, Schema, Any]] = {
        "": (few, "bytes", lambda data: data),
        " in an array": (
            {"type": "array", "items": few},
            {"type": "array", "items": "bytes"},
            lambda data: [b"\1", data],
        ),
        " in a record": (
            {"type": "record", "name": "O", "fields": [{"name": "a", "type": ["null", few]}]},
            {"type": "record", "name": "O", "fields": [{"name": "a", "type": ["null", "bytes"]}]},
            lambda data: {"a": data},
        ),
        " in a map": ({"type": "map", "values": few}, {"type": "map", "values": "bytes"}, lambda data: {"k": data}),
    }
    numbers = (-(2**70), 2**64, 2**64 - 1, 2**63, -(2**63) - 1, 10**30, 10**11, -(10**10))
    for (place, (kind, raw, put)), number in itertools.product(places.items(), numbers):
        data = said_to_be(record(c=kind), column(raw, [put(b"\1"), put(number.to_bytes(16, "big", signed=True))]))
        yield Case(f"avro/beyond/{number}{place}", "avro", one("a.avro", data), refused=True)
        if not place:
            yield Case(
                f"avro/beyond/{number} given", "avro", one("a.avro", data), schema="c DECIMAL(30,5)", refused=True
            )
    for number in (-(10**10) + 1, 10**10 - 1, 0, -1):
        data = said_to_be(record(c=few), column("bytes", [number.to_bytes(16, "big", signed=True)]))
        yield Case(f"avro/beyond/but {number}", "avro", one("a.avro", data))
    text: dict[str, tuple[Schema, Schema, Any]] = {
        "": ("string", "bytes", lambda data: data),
        " in an array": (
            {"type": "array", "items": ["null", "string"]},
            {"type": "array", "items": ["null", "bytes"]},
            lambda data: [None, b"x", data],
        ),
        " in a record": (
            {
                "type": "record",
                "name": "O",
                "fields": [{"name": "n", "type": "long"}, {"name": "a'b", "type": "string"}],
            },
            {
                "type": "record",
                "name": "O",
                "fields": [{"name": "n", "type": "long"}, {"name": "a'b", "type": "bytes"}],
            },
            lambda data: {"n": 1, "a'b": data},
        ),
        " in a map": (
            {"type": "map", "values": {"type": "array", "items": "string"}},
            {"type": "map", "values": {"type": "array", "items": "bytes"}},
            lambda data: {"k": [data]},
        ),
    }
    for (place, (kind, raw, put)), data in itertools.product(
        text.items(), (b"caf\xe9", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80")
    ):
        made = said_to_be(record(c=kind), column(raw, [put(b"good"), put(data)]))
        yield Case(f"avro/beyond/string {data.hex()}{place}", "avro", one("a.avro", made), refused=True)
    keys = column({"type": "map", "values": "long"}, [{"kkkk": 1}]).replace(b"kkkk", b"caf\xe9")
    yield Case("avro/beyond/string as a key", "avro", one("a.avro", keys), refused=True)
    bare = said_to_be(record(c="string"), column("bytes", [b"caf\xe9"]))
    yield Case("avro/beyond/string alone", "avro", one("a.avro", bare), value="c", refused=True)
    yield Case("avro/beyond/string that is not read", "avro", one("a.avro", bare), schema="d BIGINT", expected=({"d": None},),
               habit="a column of the schema that a file does not have")  # fmt: skip


def _names() -> Iterator[Case]:
    for name in ("a b", "ü", "a.b", "select", "_c0", "1", "a`b", "a'b", "a\\\\b"):
        renamed = _with_schema(packed(record(NAME="long"), [{"NAME": 5}]), name)
        yield Case(
            f"avro/names/{name}",
            "avro",
            one("a.avro", renamed),
            expected=({name: 5},),
            habit="Names need not be Avro's",
        )
    yield Case("avro/names/in two cases", "avro", one("a.avro", packed(record(a="long", A="long"), [{"a": 1, "A": 2}])),
               refused=True)  # fmt: skip


def _with_schema(data: bytes, name: str) -> bytes:
    """Call the column of a file otherwise, which fastavro would not."""
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": name, "type": "long"}]}).encode()
    rest = data[data.index(_MARKER) :]
    head = b"Obj\x01\x04\x16avro.schema" + _long(len(schema)) + schema + b"\x14avro.codec\x08null\0"
    return head + rest


def _long(value: int) -> bytes:
    value, out = value << 1, b""
    while value >= 0x80:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def _folders() -> Iterator[Case]:
    data = packed(record(n="long"), [{"n": 1}])
    yield from in_folders("avro", data, {"n": 1})
    yield Case("avro/folders/k=02", "avro", lambda: {"k=02/a.avro": data}, expected=({"n": 1, "k": "02"},),
               habit="they are strings, exactly as they are written")  # fmt: skip
    yield Case(
        "avro/folders/k=300 as TINYINT",
        "avro",
        lambda: {"k=300/a.avro": data},
        schema="n BIGINT, k TINYINT",
        refused=True,
    )
    yield Case("avro/folders/the data has N", "avro", lambda: {"N=2/a.avro": data}, refused=True)
