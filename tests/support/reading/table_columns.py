"""The table's Parquet and ORC files: codecs, pages, checksums, damages; columns narrowed and widened; schemas, folders."""

from __future__ import annotations

import datetime
import io
import itertools
from collections.abc import Callable, Iterator
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as parquet

from tests.support.reading.table import Case, one
from tests.support.reading.table_rows import in_folders

_ROWS = 300
_DATE = datetime.date(2020, 1, 2)
_TIME = datetime.datetime(2020, 1, 2, 3, 4, 5, 678901)
_ZONED = pa.timestamp("us", "UTC")


def cases() -> Iterator[Case]:
    yield from _written()
    yield from _flipped_pages()
    yield from _damaged()
    yield from _types()
    yield from _given()
    yield from _many_files()
    yield from _by_place()
    yield from _folders()
    yield from _old()
    yield from _no_utf8()


def _table() -> pa.Table:
    random = Random(3)
    return pa.table({
        "s": [f"v{n % 40:04d}" if n % 7 else None for n in range(_ROWS)],
        "n": [random.randrange(1 << 40) for _ in range(_ROWS)],
        "x": [random.random() if n % 5 else float("nan") for n in range(_ROWS)],
        "l": [[n, None] if n % 3 else [] for n in range(_ROWS)],
        "o": [{"a": n, "b": "x" * (n % 9)} if n % 4 else None for n in range(_ROWS)],
    })  # fmt: skip


def packed(format: str, table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    (parquet if format == "parquet" else orc).write_table(table, out, **options)
    return out.getvalue()


def column(format: str, values: pa.Array, name: str = "c", **options: Any) -> bytes:
    return packed(format, pa.table({name: values}), **options)


def _written() -> Iterator[Case]:
    """As writers may write them: the rows are the same."""
    for codec, version, dictionary, crc in itertools.product(
        ("NONE", "snappy", "gzip", "zstd", "lz4"), ("1.0", "2.0"), (True, False), (True, False)
    ):
        made = packed(
            "parquet", _table(), compression=codec, data_page_version=version, use_dictionary=dictionary,
            write_page_checksum=crc, row_group_size=90, data_page_size=256,
        )  # fmt: skip
        kind = f"{codec} {version}{' dictionary' * dictionary}{' crc' * crc}"
        yield Case(
            f"parquet/written/{kind}",
            "parquet",
            one("a.parquet", made),
            split_size=3000 if crc else 1 << 20,
            together="table",
        )
    for kind, options in {
        "delta": {"use_dictionary": False, "column_encoding": {"n": "DELTA_BINARY_PACKED"}},
        "delta of text": {"use_dictionary": False, "column_encoding": {"s": "DELTA_BYTE_ARRAY"}},
        "delta lengths": {"use_dictionary": False, "column_encoding": {"s": "DELTA_LENGTH_BYTE_ARRAY"}},
        "byte stream split": {"use_dictionary": False, "column_encoding": {"x": "BYTE_STREAM_SPLIT"}},
        "version 1.0": {"version": "1.0"}, "one row a group": {"row_group_size": 1},
        "no statistics": {"write_statistics": False},
        "a page index": {"write_page_index": True}, "old lists": {"use_compliant_nested_type": False},
    }.items():  # fmt: skip
        yield Case(
            f"parquet/written/{kind}", "parquet", one("a.parquet", packed("parquet", _table(), **options))
        )  # fmt: skip
    for codec, stripe in itertools.product(("uncompressed", "snappy", "zlib", "zstd", "lz4"), (64 << 20, 1024)):
        made = packed("orc", _table(), compression=codec, stripe_size=stripe, batch_size=64)
        yield Case(f"orc/written/{codec} {stripe}", "orc", one("a.orc", made), split_size=3000, together="table")
    for format in ("parquet", "orc"):
        empty = packed(format, _table().slice(0, 0))
        yield Case(f"{format}/written/no rows", format, one("a.x", empty))
        yield Case(f"{format}/written/a name of a codec", format, one("a.gz", packed(format, _table())))
        yield Case(f"{format}/written/names", format, one("a.x", packed(format, pa.table({
            "a b": [1], "ü": [2], "a.b": [3], "select": [4], "_c0": [5], "A": [6]}))))  # fmt: skip


def _flipped_pages() -> Iterator[Case]:
    """One byte of each page's body, wherever a checksum is: exact, or refused."""
    simple = _table().select(["s", "n"])
    for codec, version, dictionary in itertools.product(("NONE", "snappy", "zstd"), ("1.0", "2.0"), (True, False)):
        good = packed(
            "parquet", simple, compression=codec, data_page_version=version, use_dictionary=dictionary,
            write_page_checksum=True, row_group_size=_ROWS // 2, data_page_size=512, write_statistics=False,
        )  # fmt: skip
        end = len(good) - int.from_bytes(good[-8:-4], "little") - 8
        for part in range(5):
            at = 60 + part * (end - 80) // 5
            kind = f"{codec} {version}{' dictionary' * dictionary} {part}"
            yield Case(
                f"parquet/flipped/{kind}", "parquet", one("a.parquet", _flipped(good, at)),
                expected=tuple(simple.to_pylist()), may_refuse=True,
            )  # fmt: skip


def _flipped(data: bytes, at: int, bits: int = 0x10) -> bytes:
    return data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :]


def _damaged() -> Iterator[Case]:
    for format in ("parquet", "orc"):
        good = packed(format, _table().select(["s", "n"]))
        length = len(good)
        bad = {f"cut at byte {cut}": good[:cut] for cut in (1, 3, 4, 8, 12, length // 2, length - 100)}
        bad |= {f"cut {less} before its end": good[:-less] for less in (1, 2, 3, 4, 5, 8, 9)}
        bad |= {f"tail of {len(tail)}": good + tail for tail in (b"x", b"\n", b"\0" * 8, b"PAR1", good)}
        bad |= {f"flipped at {at}": _flipped(good, at % length, 1) for at in (0, 1, 3, -1, -2, -4, -5, -8)}
        bad |= {
            "csv": b"a,b\n1,2\n" * 20, "json": b'{"n":1}\n', "html": b"<html></html>\n", "its magic alone": good[:4],
            "its magic twice": b"PAR1PAR1" if format == "parquet" else b"ORCORC", "zeros": bytes(500),
            "the other format": packed("orc" if format == "parquet" else "parquet", _table().select(["n"])),
            "an end of line translated": good.replace(b"\n", b"\r\n"), "without its first bytes": good[4:],
            "its middle left out": good[:40] + good[60:], "encrypted": good[:-4] + b"PARE",
        }  # fmt: skip
        for kind, data in bad.items():
            for given in (False, True):
                yield Case(
                    f"{format}/damage/{kind}{' given' * given}", format, one("a.x", data),
                    {"s": "STRING", "n": "BIGINT"} if given else None, may_refuse=True,
                )  # fmt: skip
        yield Case(
            f"{format}/damage/one among good ones", format,
            lambda good=good, length=length: {"a.x": good, "b.x": good[: length // 2], "c.x": good},
        )  # type: ignore[misc]  # fmt: skip


_OWN: dict[str, tuple[pa.DataType, list[Any]]] = {
    "TINYINT": (pa.int8(), [-128, 127, None]),
    "SMALLINT": (pa.int16(), [-32768, 300]),
    "INT": (pa.int32(), [-(2**31), 70_000, 5]),
    "BIGINT": (pa.int64(), [-(2**63), 3_000_000_000, 2**53 + 1]),
    "FLOAT": (pa.float32(), [0.5, 1.7, float("inf")]),
    "DOUBLE": (pa.float64(), [0.1, 1e300, -0.0, float("nan")]),
    "DECIMAL(10,2)": (pa.decimal128(10, 2), [Decimal("1.25"), Decimal("-99999999.99")]),
    "DECIMAL(30,5)": (pa.decimal128(30, 5), [Decimal("1234567890123456789012345.12345")]),
    "DATE": (pa.date32(), [_DATE, datetime.date(9999, 12, 31), datetime.date(1900, 1, 1)]),
    "TIMESTAMP_NTZ": (pa.timestamp("us"), [_TIME, datetime.datetime(1969, 12, 31, 23, 59, 58)]),
    "STRING": (pa.string(), ["x", "", "é\U0001f600", "12", "2020-01-02"]),
    "BINARY": (pa.binary(), [b"\xff\0", b"", b"12"]),
    "BOOLEAN": (pa.bool_(), [True, False, None]),
    "ARRAY<INT>": (pa.list_(pa.int32()), [[1, None], []]),
    "MAP<STRING, BIGINT>": (pa.map_(pa.string(), pa.int64()), [[("k", 2**40)]]),
    "STRUCT<a: BIGINT>": (pa.struct({"a": pa.int64()}), [{"a": 2**40}, None]),
}
# Of each type those that hold all of it (docs/reading.md); any other is refused.
_HOLDS: dict[str, set[str]] = {
    "TINYINT": {"SMALLINT", "INT", "BIGINT", "DOUBLE", "DECIMAL(10,2)", "DECIMAL(30,5)"},
    "SMALLINT": {"INT", "BIGINT", "DOUBLE", "DECIMAL(10,2)", "DECIMAL(30,5)"},
    "INT": {"BIGINT", "DOUBLE", "DECIMAL(30,5)"},
    "BIGINT": {"DECIMAL(30,5)"},
    "FLOAT": {"DOUBLE"},
    "DECIMAL(10,2)": {"DECIMAL(30,5)"},
    "STRING": {"BINARY"},
}
_HOLDS_IN_PARQUET = {"BINARY": {"STRING"}, "DATE": {"TIMESTAMP_NTZ"}}


def _types() -> Iterator[Case]:
    """Every type of a file, read as every other one."""
    for format, (own, (kind, values)), read in itertools.product(
        ("parquet", "orc"), _OWN.items(), (*_OWN, "TIMESTAMP", "VARCHAR(2)")
    ):
        if (
            own.startswith("MAP")
            or read.startswith("MAP")
            or (format, own, read) == ("orc", "TIMESTAMP_NTZ", "TIMESTAMP")
        ):
            continue  # ORC's times are a TIMESTAMP
        data = column(format, pa.array(values, kind))
        holds = read in _HOLDS.get(own, set()) or (format == "parquet" and read in _HOLDS_IN_PARQUET.get(own, set()))
        if own == read or (holds and own not in ("STRING", "BINARY", "DATE", "FLOAT")):
            yield Case(
                f"{format}/type/{own} as {read}", format, one("a.x", data), schema=f"c {read}",
                may_refuse="DECIMAL" in read or (format == "orc" and own == "TIMESTAMP_NTZ"),
            )  # fmt: skip
        elif not holds:
            yield Case(f"{format}/type/{own} as {read}", format, one("a.x", data), schema=f"c {read}", refused=True)
    for format, (own, (kind, values)) in itertools.product(("parquet", "orc"), _OWN.items()):
        if not own.startswith("MAP"):
            yield Case(
                f"{format}/type/{own}", format, one("a.x", column(format, pa.array(values, kind))),
                may_refuse=format == "orc" and own == "TIMESTAMP_NTZ",  # a fraction before 1970
            )  # fmt: skip
    unsigned = ((pa.uint8(), 2**8), (pa.uint16(), 2**16), (pa.uint32(), 2**32), (pa.uint64(), 2**64))
    for kind, most in unsigned:
        data = column("parquet", pa.array([0, most - 1], kind))
        yield Case(f"parquet/type/{kind}", "parquet", one("a.x", data))
        for read in ("INT", "BIGINT", "DOUBLE", "TINYINT"):
            fits = {"INT": most <= 2**16, "BIGINT": most <= 2**32, "DOUBLE": most <= 2**32, "TINYINT": False}[read]
            yield Case(
                f"parquet/type/{kind} as {read}",
                "parquet",
                one("a.x", data),
                schema=f"c {read}",
                refused=not fits,
                may_refuse=True,
            )
    unknown = {
        "nanoseconds": pa.array([1_577_934_245_123_456_789], pa.timestamp("ns")), "time64": pa.array([5], pa.time64("us")),
        "time32": pa.array([5], pa.time32("ms")), "float16": pa.array([1.5], pa.float16()),
    }  # fmt: skip
    for name, values in unknown.items():
        for read in (None, "STRING", "TIMESTAMP", "TIMESTAMP_NTZ", "INT", "DOUBLE"):
            if (name, read) != ("time32", "INT"):
                yield Case(
                    f"parquet/type/{name} as {read}", "parquet", one("a.x", column("parquet", values)),
                    schema=f"c {read}" if read else None, refused=True,
                )  # fmt: skip
    noon = datetime.datetime(2020, 7, 1, 12)
    more: dict[str, pa.Array] = {
        "large text": pa.array(["x", None], pa.large_string()), "large bytes": pa.array([b"\xff"], pa.large_binary()),
        "four bytes": pa.array([b"abcd"], pa.binary(4)), "categories": pa.array(["x", "y", "x"]).dictionary_encode(),
        "38 digits": pa.array([Decimal("1234567890123456789012345678.0123456789")], pa.decimal128(38, 10)),
        "40 digits": pa.array([Decimal("1.25")], pa.decimal256(40, 2)), "nothing": pa.array([None, None], pa.null()),
        "seconds": pa.array([noon], pa.timestamp("s")), "milliseconds": pa.array([noon], pa.timestamp("ms")),
        "another zone": pa.array([noon], pa.timestamp("us", "Europe/Berlin")), "date64": pa.array([_DATE], pa.date64()),
        "large list": pa.array([[1, 2]], pa.large_list(pa.int64())),
        "small decimals": pa.array([Decimal("-0.01")], pa.decimal128(4, 2)),
        "a list of structs": pa.array([[{"a": 1, "b": [None]}]]), "nulls alone": pa.array([None, None], pa.int32()),
        "structs of nulls": pa.array([{"a": None}, None], pa.struct({"a": pa.string()})),
    }  # fmt: skip
    for format, (name, values) in itertools.product(("parquet", "orc"), more.items()):
        try:
            data = column(format, values)
        except (pa.ArrowException, NotImplementedError):
            continue  # ORC has no such type
        yield Case(
            f"{format}/type/more {name}", format, one("a.x", data),
            may_refuse=name in ("40 digits", "nothing", "another zone"),
        )  # fmt: skip
    zoned = pa.array([_TIME], _ZONED)
    yield Case("parquet/type/zoned", "parquet", one("a.x", column("parquet", zoned)))
    yield Case("parquet/type/zoned as TIMESTAMP", "parquet", one("a.x", column("parquet", zoned)), schema="c TIMESTAMP")
    yield Case(
        "parquet/type/zoned as NTZ",
        "parquet",
        one("a.x", column("parquet", zoned)),
        schema="c TIMESTAMP_NTZ",
        refused=True,
    )
    yield Case(
        "orc/type/zoned", "orc", one("a.x", column("orc", zoned)),
        expected=({"c": f"{_TIME.isoformat()}Z"},), habit="`timestamp with local time zone` is a TIMESTAMP",
    )  # fmt: skip
    yield Case("parquet/type/brotli", "parquet", one("a.x", column("parquet", pa.array([1]), compression="brotli")))


def _given() -> Iterator[Case]:
    """Inside of structs, arrays and maps; columns that a file has and the schema has not, and the other way round."""
    nested: dict[str, tuple[pa.Array, str, bool]] = {
        "a field narrowed": (pa.array([{"a": 3_000_000_000}]), "STRUCT<a: INT>", True),
        "an element narrowed": (pa.array([[3_000_000_000]]), "ARRAY<INT>", True),
        "a deep one narrowed": (pa.array([[{"a": [3_000_000_000]}]]), "ARRAY<STRUCT<a: ARRAY<INT>>>", True),
        "a map's value narrowed": (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), "MAP<STRING, INT>", True),
        "a map's key narrowed": (pa.array([[(2**40, 1)]], pa.map_(pa.int64(), pa.int64())), "MAP<INT, BIGINT>", True),
        "a struct as text": (pa.array([{"a": 1}]), "STRING", True),
        "text as a struct": (pa.array(["x"]), "STRUCT<a: STRING>", True),
        "an array as its element": (pa.array([[1]]), "BIGINT", True),
        "an element as an array": (pa.array([1]), "ARRAY<BIGINT>", True),
        "a struct as a map": (pa.array([{"a": 1}]), "MAP<STRING, BIGINT>", True),
        "a field widened": (pa.array([{"a": 5}], pa.struct({"a": pa.int32()})), "STRUCT<a: BIGINT>", False),
        "an element widened": (pa.array([[5]], pa.list_(pa.int16())), "ARRAY<INT>", False),
    }
    for format, (kind, (values, schema, refused)) in itertools.product(("parquet", "orc"), nested.items()):
        yield Case(
            f"{format}/nested/{kind}", format, one("a.x", column(format, values)), schema=f"c {schema}", refused=refused
        )
    for format in ("parquet", "orc"):
        two = packed(format, pa.table({"a": [1, 2], "b": ["x", "y"]}))
        columns = {
            "fewer": {"b": "STRING"}, "reordered": {"b": "STRING", "a": "BIGINT"}, "one more": {"a": "BIGINT", "z": "STRING"},
        }  # fmt: skip
        for kind, given in columns.items():
            yield Case(f"{format}/given/{kind}", format, one("a.x", two), given)


def _many_files() -> Iterator[Case]:
    """Files whose schemas differ: all columns count, and one type must hold both."""
    pairs: dict[str, tuple[dict[str, Any], dict[str, Any], list[Any] | None]] = {
        "alike": ({"a": [1]}, {"a": [2]}, [{"a": 1}, {"a": 2}]),
        "a column more": ({"a": [1]}, {"a": [2], "b": ["x"]}, [{"a": 1, "b": None}, {"a": 2, "b": "x"}]),
        "a column less": ({"a": [1], "b": ["x"]}, {"a": [2]}, [{"a": 1, "b": "x"}, {"a": 2, "b": None}]),
        "other columns": ({"a": [1]}, {"b": [2]}, [{"a": 1, "b": None}, {"a": None, "b": 2}]),
        "another order": ({"a": [1], "b": ["x"]}, {"b": ["y"], "a": [2]}, [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]),
        "another type": ({"a": [1]}, {"a": ["x"]}, None),
        "a wider type": ({"a": pa.array([1], pa.int32())}, {"a": [2**40]}, [{"a": 1}, {"a": 2**40}]),
        "a field more": ({"a": [{"x": 1}]}, {"a": [{"x": 2, "y": 3}]}, [{"a": {"x": 1, "y": None}}, {"a": {"x": 2, "y": 3}}]),
    }  # fmt: skip
    for format, (kind, (first, second, rows)) in itertools.product(("parquet", "orc"), pairs.items()):
        files = {"a.x": packed(format, pa.table(first)), "b.x": packed(format, pa.table(second))}
        yield Case(
            f"{format}/files/{kind}", format, lambda files=files: files, refused=rows is None,
            expected=tuple(rows or ()), habit="all are merged (`mergeSchema`)",
        )  # type: ignore[misc]  # fmt: skip
        yield Case(
            f"{format}/files/{kind} turned", format, lambda files=files: {"a.x": files["b.x"], "b.x": files["a.x"]},
            refused=rows is None, expected=tuple(rows[::-1] if rows else ()), habit="all are merged (`mergeSchema`)",
        )  # type: ignore[misc]  # fmt: skip
    for format in ("parquet", "orc"):
        files = {"a.x": column(format, pa.array([1], pa.int32())), "b.x": column(format, pa.array([2**40]))}
        yield Case(f"{format}/files/one narrowed", format, lambda files=files: files, schema="c INT", refused=True)  # type: ignore[misc]
        yield Case(f"{format}/files/both held", format, lambda files=files: files, schema="c BIGINT")  # type: ignore[misc]


def _by_place() -> Iterator[Case]:
    """Old Hive's files have no names of columns."""
    hive = packed("orc", pa.table({"_col0": [1], "_col1": ["x"]}))
    words = "are read by their place, and not by the names of the schema"
    rows = ({"a": 1, "b": "x"},)
    yield Case("orc/place/names", "orc", one("a.x", hive), schema="a BIGINT, b STRING", expected=rows, habit=words)
    yield Case("orc/place/none", "orc", one("a.x", hive))
    for schema in (
        "a INT, b STRING",
        "_col1 STRING, _col0 BIGINT",
        "a BIGINT",
        "b STRING, a BIGINT",
        "_col1 BIGINT, _col0 STRING",
    ):
        yield Case(f"orc/place/{schema}", "orc", one("a.x", hive), schema=schema, refused=True)
    yield Case(
        "orc/place/beside names", "orc", lambda: {"a.x": packed("orc", pa.table({"a": [1]})), "b.x": hive}, refused=True
    )


def _folders() -> Iterator[Case]:
    for format in ("parquet", "orc"):
        data = packed(format, pa.table({"n": [1]}))
        yield from in_folders(format, data, {"n": 1})
        for name in ("1", "02", "1.0", "2026-11-23", "true"):
            yield Case(
                f"{format}/folders/k={name}", format, lambda data=data, name=name: {f"k={name}/a.x": data},
                expected=({"n": 1, "k": name},), habit="they are strings, exactly as they are written",
            )  # type: ignore[misc]  # fmt: skip
        for kind, name in (
            ("TINYINT", "300"), ("SMALLINT", "70000"), ("SMALLINT", "-32769"), ("DATE", "2020"), ("DATE", "2020-01-02 x"),
            ("DATE", "2020-1-2"), ("TIMESTAMP", "10%3A30"), ("TIMESTAMP", "2020-05"), ("TIMESTAMP", "202005"),
            ("TIMESTAMP_NTZ", "2020-05"),
        ):  # fmt: skip
            yield Case(
                f"{format}/folders/k={name} as {kind}", format, lambda data=data, name=name: {f"k={name}/a.x": data},
                schema=f"n BIGINT, k {kind}", refused=True,
            )  # type: ignore[misc]  # fmt: skip
        for kind, name, value in (
            ("SMALLINT", "-32768", -32768),
            ("TINYINT", "007", 7),
            ("DATE", "2020-01-02", "2020-01-02"),
        ):
            yield Case(
                f"{format}/folders/k={name} as {kind}", format, lambda data=data, name=name: {f"k={name}/a.x": data},
                schema=f"n BIGINT, k {kind}", expected=({"n": 1, "k": value},),
                habit="unless `source.schema` gives the column a type",
            )  # type: ignore[misc]  # fmt: skip
        for name in ("n", "N"):
            yield Case(
                f"{format}/folders/the data has {name}", format, lambda data=data, name=name: {f"{name}=2/a.x": data},
                refused=True,
            )  # type: ignore[misc]  # fmt: skip


def _old() -> Iterator[Case]:
    """Dates and times before 1582-10-15, and before 1900."""
    values: dict[str, Callable[[], pa.Array]] = {
        "1500": lambda: pa.array([datetime.date(1500, 1, 1), _DATE]),
        "the day before": lambda: pa.array([datetime.date(1582, 10, 14)]),
        "the first day": lambda: pa.array([datetime.date(1582, 10, 15)]),
        "year 1": lambda: pa.array([datetime.date(1, 1, 1)]),
        "1899": lambda: pa.array([datetime.date(1899, 12, 31)]),
        "a time in 1500": lambda: pa.array([datetime.datetime(1500, 1, 1, 12)], pa.timestamp("us")),
        "a time in 1883": lambda: pa.array([datetime.datetime(1883, 11, 18, 12, 3, 58)], pa.timestamp("us")),
        "a time with microseconds": lambda: pa.array([_TIME], pa.timestamp("us")),
        "a time before 1970": lambda: pa.array([datetime.datetime(1969, 12, 31, 23, 59, 59, 1000)], pa.timestamp("us")),
        "dates in a struct": lambda: pa.array([{"d": datetime.date(1500, 1, 1)}]),
        "dates in an array": lambda: pa.array([[datetime.date(1500, 1, 1)]]),
    }
    for format, (kind, make) in itertools.product(("parquet", "orc"), values.items()):
        yield Case(
            f"{format}/old/{kind}", format, one("a.x", column(format, make())),
            expected=({"c": "1969-12-31T23:59:59.001000Z"},) if (format, kind) == ("orc", "a time before 1970") else None,
            may_refuse=format == "orc" and ("1500" in kind or "before" in kind or "year" in kind or "dates" in kind),
        )  # fmt: skip
    for year in (1500, 1700, 1950, 2020):
        times = pa.array([datetime.datetime(year, 1, 1, 1, 2, 3)], pa.timestamp("us"))
        yield Case(
            f"parquet/old/int96 of {year}", "parquet",
            one("a.x", column("parquet", times, use_deprecated_int96_timestamps=True)),
            expected=({"c": f"{year}-01-01T01:02:03.000000Z"},), habit="read by today's calendar",
        )  # fmt: skip


def _no_utf8() -> Iterator[Case]:
    """Strings that no writer should write, wherever a column may hold one; and the same bytes where nothing decodes them."""
    many = {f"f{number}": pa.array([number, number]) for number in range(60)}
    places: dict[str, Callable[[pa.Array], pa.Array]] = {
        "": lambda texts: texts,
        " in an array": lambda texts: pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), texts),
        " in a struct": lambda texts: pa.StructArray.from_arrays([pa.array([1, 2]), texts], ["n", "a'b.c"]),
        " in a wide struct": lambda texts: pa.StructArray.from_arrays([*many.values(), texts], [*many, "s"]),
        " in an array of structs": lambda texts: pa.ListArray.from_arrays(
            pa.array([0, 0, 2], pa.int32()), pa.StructArray.from_arrays([texts], ["s"])
        ),
        " as a key": lambda texts: pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), texts, pa.array([1, 2])),
        " as a value": lambda texts: pa.MapArray.from_arrays(
            pa.array([0, 1, 2], pa.int32()), pa.array(["k", "l"]), texts
        ),
    }
    spellings = (b"caf\xe9", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82")
    for format, (place, put), data in itertools.product(("parquet", "orc"), places.items(), spellings):
        made = column(format, put(_said_to_be_text(b"good", data)))
        yield Case(f"{format}/no utf-8/{data.hex()}{place}", format, one("a.x", made), refused=True)
    for format, (place, put) in itertools.product(("parquet", "orc"), places.items()):
        good = column(format, put(_said_to_be_text(b"good", "café €\0𝄞".encode())))
        yield Case(f"{format}/utf-8/good{place}", format, one("a.x", good))
    for format in ("parquet", "orc"):
        bad = column(format, _said_to_be_text(b"caf\xe9"))
        yield Case(f"{format}/no utf-8/alone", format, one("a.x", bad), value="c", refused=True)
        yield Case(f"{format}/no utf-8/filtered", format, one("a.x", bad), where="c <> 'x'", refused=True)
        yield Case(f"{format}/no utf-8/not read", format, one("a.x", bad), schema="d BIGINT", expected=({"d": None},),
                   habit="a column of the schema that a file does not have")  # fmt: skip
        raw = column(format, pa.array([b"caf\xe9"], pa.binary()))
        yield Case(f"{format}/no utf-8/bytes", format, one("a.x", raw), value="c", expected=(b"caf\xe9",),
                   habit="bytes of a column that is no string are sent as they are")  # fmt: skip
    raw = column("parquet", pa.array([b"caf\xe9"], pa.binary()))
    yield Case("parquet/no utf-8/bytes as text", "parquet", one("a.x", raw), schema="c STRING", refused=True)
    bad = column("parquet", _said_to_be_text(b"caf\xe9"))
    yield Case("parquet/no utf-8/text as bytes", "parquet", one("a.x", bad), schema="c BINARY", value="c",
               expected=(b"caf\xe9",), habit="bytes of a column that is no string are sent as they are")  # fmt: skip


def _said_to_be_text(*values: bytes) -> pa.Array:
    """Return an array of strings that have these bytes, which pyarrow does not check."""
    made = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(values), made.buffers())
