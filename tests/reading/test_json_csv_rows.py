"""What the readers of JSON and CSV, and expressions make of rows: exactly what the file says, or refused."""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StringType

from eosingest.errors import FatalError, SpecError
from eosingest.protocol.plan import make_plan
from eosingest.sources.files.formats.csv_rows import Dialect
from eosingest.sources.files.formats.encodings import ENCODINGS
from eosingest.sources.files.formats.text_checks import BadTextError, check_text
from eosingest.sources.files.reading.csv_columns import CsvColumns, text_types
from eosingest.sources.files.reading.csv_reader import CsvReader
from eosingest.sources.files.source import FileSource
from eosingest.spark.python_scan import planned_splits
from eosingest.spark.record_settings import CORRUPT
from eosingest.spec.expressions import unstable
from tests.support.reading.lab import Lab, lab  # noqa: F401 - a fixture

_ROWS = b'{"n":1,"t":"10:30","u":"2020-01-01 10:00:00"}\n{"n":2,"t":"2020-01-02 10:30:00","u":"x"}\n'

# ---- expressions --------------------------------------------------------------------------------------------------------

COMMENTS: list[tuple[dict[str, Any], list[bytes]]] = [
    ({"where": "n >= 2 -- only big", "value": "CAST(n AS STRING)"}, [b"2"]),
    ({"value": "CAST(n AS STRING) -- the number"}, [b"1", b"2"]),
    ({"value": "CAST(n AS STRING) -- the number \\"}, [b"1", b"2"]),
    ({"value": "CAST(n AS STRING)", "select": ("n -- all", "t")}, [b"1", b"2"]),
    ({"value": "CAST(n AS STRING)", "select": ("* -- all",)}, [b"1", b"2"]),
    ({"value": "CAST(n AS STRING)", "key": "t -- key", "headers": {"h": "t -- h"}}, [b"1", b"2"]),
    ({"value": "CAST(n AS STRING)", "timestamp": "timestamp_millis(n) /* at */ -- t"}, [b"1", b"2"]),
    ({"value": "CAST(n AS STRING)", "partition": "CAST(n AS INT) -- p"}, [b"1", b"2"]),
]


@pytest.mark.in_turns("one kind of expression or row each")
def test_comments_swallow_nothing(lab: Lab) -> None:  # noqa: F811
    for settings, expected in COMMENTS:
        assert lab.values("json", _ROWS, **settings) == expected, settings


def test_an_expression_is_one_by_itself(lab: Lab) -> None:  # noqa: F811
    with pytest.raises(SpecError):
        lab.values("json", _ROWS, where="n > 5) OR (true")


# ---- records that use no column ------------------------------------------------------------------------------------------

NO_COLUMN: list[tuple[str, bytes, dict[str, Any], list[bytes]]] = [
    ("json", _ROWS, {"value": "'ping'"}, [b"ping", b"ping"]),
    ("json", _ROWS, {"value": "'ping'", "schema": "n BIGINT"}, [b"ping", b"ping"]),
    ("json", b"{}\n{}\n", {}, [b"{}", b"{}"]),
    ("json", b"\n\n", {}, []),
    ("csv", b"a,b\n1,2\n3,4\n", {"value": "'ping'", "options": {"header": "true"}}, [b"ping", b"ping"]),
    ("csv", b"\n\n", {"options": {"header": "false"}}, []),
]


@pytest.mark.in_turns("one kind of expression or row each")
def test_records_that_use_no_column(lab: Lab) -> None:  # noqa: F811
    for format, data, settings, expected in NO_COLUMN:
        assert lab.values(format, data, **settings) == expected, settings
    for format, data in (("json", b'{"n":1}\n{bad\n'), ("csv", b"1,2\n3\n")):
        with pytest.raises(ValueError, match="corrupt row"):
            lab.values(format, data, "'ping'", options={"header": "false"} if format == "csv" else {})


# ---- times --------------------------------------------------------------------------------------------------------------

OF_THE_DAY = [
    "coalesce(CAST(u AS TIMESTAMP), 'now')",
    "date_format(' NOW ', 'yyyy')",
    "CAST(n AS TIMESTAMP) IN ('2020-01-01', 'today')",
    "date_add('tomorrow', 1)",
    "to_date(concat('yester', 'day'))",
    "CAST(n AS TIMESTAMP) > '10:30'",
    "to_timestamp('T10')",
    "CAST(array(t) AS ARRAY<TIMESTAMP>)",
    "CAST(parse_json(to_json(struct(t))) AS TIMESTAMP)",
    "variant_get(parse_json(to_json(struct(t))), '$.t', 'timestamp')",
]
STOP_AT_A_ROW = [
    "CAST(t AS TIMESTAMP)",
    "t::timestamp",
    "to_timestamp(t)",
    "date_format(t, 'yyyy')",
    "transform(array(t), x -> CAST(x AS TIMESTAMP))[0]",
    "from_json(to_json(struct(t)), 't TIMESTAMP').t",
    "from_csv(t, 't TIMESTAMP').t",
]
STABLE = [
    ("coalesce(CAST(NULL AS TIMESTAMP), 'epoch')", [b"1970-01-01 00:00:00"] * 2),
    ("concat('now', 'today')", [b"nowtoday"] * 2),
    ("hour(t)", [b"10", b"10"]),
    ("try_cast(t AS TIMESTAMP)", [None, b"2020-01-02 10:30:00"]),
    ("try_to_timestamp(t)", [None, b"2020-01-02 10:30:00"]),
    ("IF(length(t) > 5, CAST(t AS TIMESTAMP), NULL)", [None, b"2020-01-02 10:30:00"]),
    ("from_json(to_json(struct(t)), 't TIMESTAMP', map('timestampFormat', '[HH:mm][y-MM-dd HH:mm:ss]')).t",
     [b"1970-01-01 10:30:00", b"2020-01-02 10:30:00"]),
]  # fmt: skip


@pytest.mark.in_turns("one kind of expression or row each")
def test_expressions_know_no_today(lab: Lab) -> None:  # noqa: F811
    for expression in OF_THE_DAY:
        with pytest.raises(SpecError):
            print(expression, lab.values("json", _ROWS, f"CAST({expression} AS STRING)"))
    for expression in STOP_AT_A_ROW:
        with pytest.raises(Exception, match="a time without a date"):
            print(expression, lab.values("json", _ROWS, f"CAST({expression} AS STRING)"))
    with pytest.raises(Exception, match="a time without a date"):
        lab.values("json", _ROWS, "CAST(n AS STRING)", where="CAST(t AS TIMESTAMP) > '2000-01-01'")
    with pytest.raises(Exception, match="a time without a date"):
        lab.values("json", _ROWS, "CAST(n AS STRING)", timestamp="CAST(t AS TIMESTAMP)")
    with pytest.raises(SpecError):
        lab.values("json", _ROWS, "CAST(x AS STRING)", select=("explode(array(CAST(t AS TIMESTAMP))) AS x",))
    for expression, expected in STABLE:
        assert lab.values("json", _ROWS, f"CAST({expression} AS STRING)") == expected, expression


def test_a_literal_without_a_date_is_refused_by_check() -> None:
    for expression in ("TIMESTAMP '10:30'", "ts > timestamp_ltz 'T10'", 'TIMESTAMP r"  10:30:00"'):
        assert unstable(expression), expression
    for expression in ("TIMESTAMP '2020-01-01 10:30'", "concat('10:30', x)", "TIMESTAMP_NTZ '2020-01-01'"):
        assert not unstable(expression), expression


_NESTED = "s STRUCT<l: ARRAY<STRUCT<t: TIMESTAMP, u: INT>>, m: MAP<STRING, TIMESTAMP>>"
TIME_COLUMNS: list[tuple[str, bytes, dict[str, Any]]] = [
    ("json", _ROWS, {"schema": "n INT, t TIMESTAMP"}),
    ("json", b'{"s":{"l":[{"t":"2020-01-01"},{"t":" T10"}]}}\n', {"schema": _NESTED}),
    ("json", b'{"s":{"m":{"a":"2020-01-01","b":"1:2:3"}}}\n', {"schema": _NESTED}),
]
INFERRED: list[tuple[bytes, list[bytes]]] = [
    (b"10:30,1\n11:30,2\n", [b'{"_c0":"10:30","_c1":1}', b'{"_c0":"11:30","_c1":2}']),
    (b"2020-01-01 10:30:00,1\n11:30,2\n", [b'{"_c0":"2020-01-01 10:30:00","_c1":1}', b'{"_c0":"11:30","_c1":2}']),
    (b"2020-01-01 10:30:00,1\n", [b'{"_c0":"2020-01-01T10:30:00.000Z","_c1":1}']),
]


@pytest.mark.in_turns("one kind of expression or row each")
def test_columns_know_no_today(lab: Lab) -> None:  # noqa: F811
    for format, data, settings in TIME_COLUMNS:
        with pytest.raises((FatalError, ValueError), match=r"times without a date|corrupt row"):
            print(settings, lab.values(format, data, **settings))
    for data, expected in INFERRED:
        assert lab.values("csv", data, options={"header": "false"}) == expected
    by_format = {"timestampFormat": "HH:mm"}
    assert lab.values("json", b'{"t":"10:30"}\n', "CAST(t AS STRING)", schema="t TIMESTAMP", options=by_format) == [
        b"1970-01-01 10:30:00"
    ]


# ---- CSV ----------------------------------------------------------------------------------------------------------------

HEADERS: list[tuple[bytes, dict[str, Any], list[bytes]]] = [
    (b",a,b\n0,1,2\n", {}, [b'{"_c0":0,"a":1,"b":2}']),
    (b"a,a,b\n0,1,2\n", {}, [b'{"a0":0,"a1":1,"b":2}']),
    (b"a,A\n0,1\n", {}, [b'{"a0":0,"A1":1}']),
    (b",t\n0,10:30\n", {}, [b'{"_c0":0,"t":"10:30"}']),
    (b",a\n0,1\n", {"schema": "_c0 INT, a INT"}, [b'{"_c0":0,"a":1}']),
    (b"a,b\n0,1\n", {}, [b'{"a":0,"b":1}']),
]


@pytest.mark.in_turns("one kind of expression or row each")
def test_headers(lab: Lab) -> None:  # noqa: F811
    for data, settings, expected in HEADERS:
        assert lab.values("csv", data, options={"header": "true"}, **settings) == expected, data
    for files in ({"a.csv": b"a,b\n1,2\n", "b.csv": b"b,a\n2,1\n"}, {"a.csv": b",b\n1,2\n", "b.csv": b"b,\n2,1\n"}):
        with pytest.raises(FatalError, match="its header is"):
            lab.values("csv", files, options={"header": "true"})


@pytest.mark.parametrize("kind", ["ARRAY<INT>", "STRUCT<a: INT>", "MAP<STRING, INT>", "VARIANT"])
def test_types_that_csv_does_not_have(lab: Lab, kind: str) -> None:  # noqa: F811
    with pytest.raises(SpecError, match="a field of CSV is one value"):
        lab.values("csv", b"1\n", schema=f"v {kind}", options={"header": "false"})


def _case(chance: random.Random, columns: int, escape: str) -> bytes:
    if escape == '"' and chance.random() < 0.5:  # outside of quotes Python takes an escape away
        odd = [",", '"', '""', "\n", "a", "b c", "x\ty", " ", '"q"', "é", escape]
        return "".join(chance.choice(odd) for _ in range(chance.randint(1, 14))).encode()
    rows = []
    for _ in range(chance.randint(1, 4)):
        fields = []
        for _ in range(columns):
            text = "".join(chance.choice(["a", "b", " ", ",", '"', "é", "a", "\n"][:7 + (chance.random() < 0.2)])
                           for _ in range(chance.randint(0, 4)))  # fmt: skip
            quoted = any(each in text for each in ',"\n') or chance.random() < 0.3
            fields.append('"' + text.replace('"', escape + '"') + '"' if quoted else text)
        rows.append(",".join(fields))
    return (chance.choice(["\n", "\r\n"]).join(rows) + chance.choice(["", "\n"])).encode()


def _as_python(data: bytes, columns: int, escape: str) -> list[tuple[str | None, ...] | None]:
    """Return the rows as Python's csv reads them, None for one of another length; empty fields are nulls."""
    text = io.StringIO(data.decode(), newline="")
    reader = csv.reader(text, doublequote=escape == '"', escapechar=None if escape == '"' else escape)
    rows = [row for row in reader if row]
    return [tuple(field or None for field in row) if len(row) == columns else None for row in rows]


@pytest.mark.parametrize("split_size", [1 << 20, 7, 1])
@pytest.mark.parametrize("escape", ['"', "\\"])
def test_csv_as_pythons_reader_reads_it(tmp_path: Path, escape: str, split_size: int) -> None:
    """Of many small files: each is read as Python's csv reads it, row for row, or refused before."""
    chance, options = random.Random(11), {"escape": escape}
    for columns in (1, 2, 3):
        names = tuple(f"c{number}" for number in range(columns))
        texts = text_types({}, [StringType()] * columns)
        reader = CsvReader(options, CsvColumns(Dialect.of(options), columns, names, tuple(range(columns)), texts))
        refused = 0
        for number in range(100):
            data = _case(chance, columns, escape)
            path = tmp_path / f"{columns}-{number}.csv"
            path.write_bytes(data)
            try:
                check_text([data], "csv", options)
            except BadTextError:
                refused += 1
                continue
            source = FileSource(
                format="csv", paths=[str(path)], directory=tmp_path, root=None, min_age_s=0, options=options
            )
            splits = planned_splits(make_plan(source, {}, split_size, source.plan()))
            batches = [batch for split in splits for batch in reader.read(split, None)]
            rows = [row for batch in batches for row in batch.to_pylist()]
            found = [None if row[CORRUPT] is not None else tuple(row[name] for name in names) for row in rows]
            assert found == _as_python(data, columns, escape), data
        assert refused < 60


ENCODED: list[tuple[str, str, str | None, bytes]] = [
    ("csv", "UTF-16LE", "\n", b"\x00\xd8"),
    ("csv", "UTF-16BE", "\n", b"\xd8\x00"),
    ("csv", "ISO-8859-1", None, b""),  # it has a character for each byte
    ("csv", "US-ASCII", None, b"\x80"),
    ("json", "UTF-16LE", "\n", b"\x00\xd8"),
]


def test_encodings(lab: Lab) -> None:  # noqa: F811
    """Rows at every border of a split of 11 bytes; one that is not of the encoding is refused."""
    for format, encoding, line_sep, bad in ENCODED:
        texts = [f"{word}{number}" for number in range(12) for word in ("x" if encoding == "US-ASCII" else "éü", "ab")]
        rows = [f'{{"s":"{text}"}}' if format == "json" else text for text in texts]
        options = {"encoding": encoding} | ({"lineSep": line_sep} if line_sep else {})
        options |= {"header": "false"} if format == "csv" else {}
        data = "".join(f"{row}\n" for row in rows).encode(encoding)
        found = lab.values(format, data, "s", schema="s STRING", options=options, split_size=11)
        assert found == [text.encode() for text in texts], encoding
        if bad:
            with pytest.raises(FatalError, match="bytes that are no"):
                lab.values(format, data + bad + "\n".encode(encoding), "s", schema="s STRING", options=options)


def test_python_refuses_what_java_replaces(lab: Lab) -> None:  # noqa: F811
    """Of every encoding that may be named: bytes that Java makes a replacement character of are none to Python."""
    jvm: Any = lab.spark._jvm
    for name in sorted(ENCODINGS - {"utf-8"}):
        java = {"cp858": "IBM00858", "euc_kr": "EUC-KR"}.get(name, name.replace("iso8859-", "iso-8859-"))
        high = [bytes([first, second]) for first in range(128, 256) for second in range(256) if second not in (10, 13)]
        several = high if name in ("shift_jis", "gbk", "gb2312", "euc_kr") else []
        sequences = [bytes([byte]) for byte in range(256) if byte not in (10, 13)] + several
        decoded = str(jvm.java.lang.String(bytearray(b"\n".join(sequences)), java)).split("\n")
        assert len(decoded) == len(sequences), name
        for sequence, text in zip(sequences, decoded, strict=True):
            if "\ufffd" in text:
                with pytest.raises(UnicodeDecodeError):
                    print(name, sequence, sequence.decode(name))


# ---- ends of lines ------------------------------------------------------------------------------------------------------


@pytest.mark.in_turns("one kind of expression or row each")
def test_separators_of_several_bytes_at_every_border(lab: Lab) -> None:  # noqa: F811
    """Spark's CSV takes one character only."""
    chance = random.Random(3)
    for separator in ("\r\n", "abb"):
        parts = [separator, separator[0], separator[:-1], "c", "c" * 5]
        data = "".join(chance.choice(parts) for _ in range(150)) + "end" + separator
        expected = [line.encode() for line in data.split(separator)[:-1]]
        for size in (3, 5):
            found = lab.values("text", data.encode(), "value", options={"lineSep": separator}, split_size=size)
            assert found == expected, separator
    records = "".join(f'{{"s":"{number}"}}\r\n' for number in range(40)).encode()
    found = lab.values("json", records, "s", schema="s STRING", options={"lineSep": "\r\n"}, split_size=5)
    assert found == [str(number).encode() for number in range(40)]
    for separator in ("\n\n", "||", "aba"):
        data = separator.join(map(str, range(9)))
        expected = [str(number).encode() for number in range(9)]
        assert lab.values("text", data.encode(), "value", options={"lineSep": separator}) == expected
        assert lab.values("text", data.encode(), "value", options={"lineSep": separator}, split_size=5) == expected


# ---- what stays as the reader's habit (docs/reading.md) --------------------------------------------------------------------

HABITS: list[tuple[str, bytes, dict[str, Any], list[bytes]]] = [
    ("json", b'{"n":1e400}\n', {}, [b'{"n":"Infinity"}']),
    ("json", b'{"n":1.239}\n', {"schema": "n DECIMAL(10,2)"}, [b'{"n":1.24}']),
    (
        "json",
        b'{"n":123456789012345678901234567890123456789}\n',
        {},
        [b'{"n":"123456789012345678901234567890123456789"}'],
    ),
    ("json", b'{"":1,"n":2}\n', {}, [b'{"n":2}']),
    ("json", b'[{"n":1},{"n":2}]\n', {}, [b'{"n":1}', b'{"n":2}']),
    ("json", b'\n{"n":1}\n  \n', {}, [b'{"n":1}']),
    ("json", b'{"n":"bad","t":"x"}\n', {"schema": "n INT, t STRING", "value": "t"}, [b"x"]),
    ("csv", b"00123,1.10,TRUE\n", {}, [b'{"_c0":123,"_c1":1.1,"_c2":true}']),
    ("csv", b"1e400,1.239\n", {"schema": "a DOUBLE, b DECIMAL(10,2)"}, [b'{"a":"Infinity","b":1.24}']),
    ("csv", b'a,,""\n\nb,c,d\n', {}, [b'{"_c0":"a","_c1":null,"_c2":null}', b'{"_c0":"b","_c1":"c","_c2":"d"}']),
]


@pytest.mark.in_turns("one kind of expression or row each")
def test_habits(lab: Lab) -> None:  # noqa: F811
    for format, data, settings, expected in HABITS:
        options = {"header": "false"} if format == "csv" else {}
        assert lab.values(format, data, options=options, **settings) == expected, data


def test_the_machines_language_changes_nothing(lab: Lab) -> None:  # noqa: F811
    """The session's JVM has the options that every JVM of a run has; the environment's language may be any."""
    jvm: Any = lab.spark._jvm
    assert str(jvm.java.util.Locale.getDefault().toString()) == "en_US"
    assert lab.values("json", '{"s":"iı"}\n'.encode(), "upper(s)") == [b"II"]
