"""Files from the field: `check` takes the spec that `init --from` writes, and a run by it sends exactly the file's values.

The reading path alone, without a broker (lab.py). The values are those of Python's json, csv and ElementTree; a value that is
sent as another kind of value than the file has, such as a number as a text, must be named in a note of `init`.
"""

from __future__ import annotations

import csv
import io
import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from eosingest.app.settings import scan_of, source_of
from eosingest.cli import main as cli
from eosingest.errors import EosingestError, SpecError
from eosingest.protocol.plan import make_plan
from eosingest.sniff import input as sniffed
from eosingest.spark.record_columns import record_frame
from eosingest.spark.record_settings import CORRUPT
from eosingest.spark.scan import tasks_of
from eosingest.spark.settings import record_settings
from eosingest.spec import load
from tests.support.reading.lab import Lab, direct_values, lab  # noqa: F401 - a fixture


@dataclass(frozen=True)
class Written:
    """What `init` wrote: the spec, and its notes."""

    spec: Path
    notes: str

    @property
    def text(self) -> str:
        return self.spec.read_text()


def written(name: str, content: bytes, folder: Path, capsys: pytest.CaptureFixture[str]) -> Written:
    """Run `init --from` and `check`."""
    (folder / name).write_bytes(content)
    spec = folder / "job.toml"
    assert cli.exit_code_of(["init", "--from", str(folder / name), str(spec), "--output", "json"]) == 0, (
        capsys.readouterr()
    )
    notes = json.loads(capsys.readouterr().out.splitlines()[-1])["data"]["notes"]
    assert cli.exit_code_of(["check", str(spec)]) == 0, capsys.readouterr()
    return Written(spec, "\n".join(notes))


def values(file: Path, lab: Lab) -> list[bytes | None]:  # noqa: F811
    """Return the values of the records that a run by a spec sends. Raises what a run ends with."""
    spec = load(file)
    source, scan, records = source_of(spec), scan_of(spec), record_settings(spec, {})
    plan = make_plan(source, {}, spec.source.split_size, source.plan())
    direct = scan.direct(plan)
    scan.inspect(tasks_of(lab.spark.sparkContext), plan)
    if direct is not None:
        return direct_values(direct)
    for name, value in spec.spark.conf.items():
        lab.spark.conf.set(name, value)
    try:
        frame = record_frame(scan.frame(lab.spark, plan, None, 1), records)
        rows = frame.records.coalesce(1).collect()
    finally:
        for name in spec.spark.conf:
            lab.spark.conf.unset(name)
    assert not [row for row in rows if CORRUPT in row and row[CORRUPT] is not None]
    return [None if row["value"] is None else bytes(row["value"]) for row in rows]


# ---- fields that the beginning of a file does not have -------------------------------------------------------------

LATE = {
    "a.jsonl": (
        b'{"id":1}\n' * 40,
        b'{"id":1,"late":{"x":1}}\n',
        "line 41: a field that source.schema does not name: late",
    ),
    "b.jsonl": (
        b'{"s":{"a":1}}\n' * 40,
        b'{"s":{"a":1,"b":2}}\n',
        "line 41: a field that source.schema does not name: s.b",
    ),
    "a.xml": (
        b"<r>\n" + b"<i><a>1</a></i>\n" * 40,
        b'<i><a>1</a><b c="1"/></i></r>\n',
        "line 42: a field that source.schema",
    ),
}


@pytest.mark.parametrize("name", LATE)
def test_a_field_after_the_part_that_init_read(
    name: str,
    lab: Lab,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Breaks when it is left out of the records without a word, or the way on that the hint names is none."""
    first, last, words = LATE[name]
    monkeypatch.setattr(sniffed, "LOOKED_AT_BYTES", 300)
    monkeypatch.setattr("eosingest.sniff.xml.LOOKED_AT_BYTES", 300)
    wrote = written(name, first + last, tmp_path, capsys)
    assert "a later row with another field ends a run before it sends anything" in wrote.notes
    with pytest.raises(EosingestError) as raised:
        values(wrote.spec, lab)
    assert words in raised.value.message
    assert 'set source.unknown_fields = "ignore"' in raised.value.hint
    wrote.spec.write_text(wrote.text.replace('unknown_fields = "error"', 'unknown_fields = "ignore"'))
    sent = values(wrote.spec, lab)
    assert len(sent) == 41 and len(set(sent)) == 1


# ---- the values ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A file, how Python's csv reads it if it is CSV, and columns whose names `init` chooses."""

    name: str
    content: bytes
    dialect: Mapping[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    encoding: str = "utf-8-sig"
    notes: str = ""

    @property
    def text(self) -> str:
        return self.content.decode(self.encoding)

    def rows(self) -> Iterator[Any]:
        """Return the rows as an independent reader has them; without null, which a record leaves out."""
        if self.name.endswith(("json", "jsonl")):
            for line in [self.text] if self.name.endswith("json") else self.text.splitlines():
                row = json.loads(line, parse_float=Decimal, parse_int=Decimal)
                yield from (without_null(each) for each in (row if isinstance(row, list) else [row]))
        else:
            rows = [row for row in csv.reader(io.StringIO(self.text, newline=""), strict=True, **self.dialect) if row]
            if not self.names or not self.names[0].startswith("column"):
                header = rows.pop(0)
            names = self.names or header
            for row in rows:
                yield {name: cell for name, cell in zip(names, row, strict=True) if cell}


def without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_null(inner) for name, inner in value.items() if inner is not None and name}
    return [without_null(each) for each in value] if isinstance(value, list) else value


def differences(sent: Any, wanted: Any, path: str, as_text: set[str]) -> Iterator[str]:
    """Yield where two values differ; add columns whose values became texts, as they are written, to `as_text`."""
    if isinstance(wanted, dict) and isinstance(sent, dict):
        for name in {*wanted, *sent}:
            yield from differences(sent.get(name), wanted.get(name), f"{path}.{name}".lstrip("."), as_text)
    elif isinstance(wanted, list) and isinstance(sent, list) and len(sent) == len(wanted):
        for one, other in zip(sent, wanted, strict=True):
            yield from differences(one, other, path, as_text)
    elif isinstance(sent, str) and not isinstance(wanted, str) and wanted is not None:
        as_text.add(path)
        read = json.loads(sent, parse_float=Decimal, parse_int=Decimal)
        if without_null(read) != wanted:
            yield f"{path}: {sent!r} for {wanted!r}"
    elif isinstance(wanted, str) and not isinstance(sent, str):  # CSV: text is what it says
        if sent is None or (wanted != str(sent).lower() if isinstance(sent, bool) else Decimal(wanted) != sent):
            yield f"{path}: {sent!r} for {wanted!r}"
    elif isinstance(sent, Decimal) and isinstance(wanted, Decimal):
        is_double = Decimal(repr(float(wanted))) == wanted and float(sent) == float(
            wanted
        )  # Java writes 5E-324 as 4.9E-324
        if sent != wanted and not is_double:
            yield f"{path}: {sent!r} for {wanted!r}"
    elif sent != wanted or isinstance(sent, bool) != isinstance(wanted, bool):
        yield f"{path}: {sent!r} for {wanted!r}"


def lines(*rows: str) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode()


CASES = {
    # W3, W9: numbers
    "2^53+1 and a fraction": Case(
        "a.jsonl", lines('{"id":9007199254740993,"x":1e400}', '{"id":2.5,"x":1}'), notes="id, x"
    ),
    "beyond BIGINT": Case(
        "a.jsonl", lines('{"n":18446744073709551615,"m":' + "9" * 40 + ',"k":1}', '{"n":1,"m":-1,"k":-0}')
    ),
    "16 and 17 digits": Case("a.jsonl", lines('{"a":[13.377704000000001,-0.0,1E5]}', '{"a":[0.1000000000000000055]}')),
    "digits that a double keeps": Case(
        "a.jsonl", lines('{"a":[13.377704000000001,2]}', '{"a":[0.30000000000000004,1e-7]}')
    ),
    "extremes": Case("a.jsonl", lines('{"a":1.7976931348623157e308,"b":-9223372036854775808,"c":5e-324}')),
    # W8: empties, and values of several types
    "empty object": Case("a.jsonl", lines('{"i":1,"e":{}}', '{"i":2}')),
    "empties": Case(
        "a.jsonl", lines('{"a":[],"b":[{}],"c":{"b":{}},"d":null,"e":[null],"f":[[]]}', '{"d":null,"f":[[],[1]]}')
    ),
    "an empty object that is filled later": Case("a.jsonl", lines('{"e":{}}', '{"e":{"a":1}}', '{"e":null}')),
    "several types": Case(
        "a.jsonl", lines('{"m":1,"s":{"a":1},"b":true}', '{"m":"two","s":[1],"b":0}', '{"m":null}'), notes="m, s, b"
    ),
    "several types in an array": Case("a.jsonl", lines('{"m":[1,"two",{"x":null},[2]]}')),
    "document": Case("a.json", b'[{"a":{}},\n{"a":{"b":[{}]},"n":12345678901234567890.5}]'),
    # names
    "names by case": Case("a.jsonl", lines('{"a":1,"A":2,"s":{"x":1,"X":"y"}}', '{"A":3}')),
    "odd names": Case(
        "a.jsonl",
        lines(json.dumps({"a b": 1, "a.b": 2, "`": 3, "x,y": 4, "a:b": {"<>": 5}, "\n\t": 6, "select": 7, "ü": 8})),
    ),
    "names of characters that are not printed": Case(
        "a.jsonl", lines(json.dumps({" ": 1, "\x7f": 2, "\x00": 3, "'": 4, '"': 5, "${x}": 6, "\\": 7}))
    ),
    "empty names": Case("a.jsonl", lines('{"":1,"b":{"":2,"c":3}}'), notes="empty name"),
    # R4, R5, R7 and dialects of CSV
    "escape by backslash": Case(
        "a.csv", b'"1","say \\"hi\\" now"\n', {"escapechar": "\\", "doublequote": False}, ("column_1", "column_2")
    ),
    "header of several lines, CRLF": Case("a.csv", b'"a\nb",c\r\n1,2\r\n', notes="the header"),
    "values of several lines, CRLF": Case("a.csv", b'a,c\r\n1,"x\r\ny\nz"\r\n'),
    "GTFS": Case("stops.txt", b'stop_id,stop_name,lat\r\n01,"Oak, 2nd",48.10\r\n', notes="taken for csv"),
    "TPC-H": Case(
        "part.tbl",
        b"1|goldenrod lavender|901.00|ly. slyly ironi|\n2|blush thistle|902.00|lar accounts amo|\n",
        {"delimiter": "|"},
        tuple(f"column_{number}" for number in range(1, 6)),
    ),
    "single quotes": Case("a.csv", b"a;b\n'1; x';'it''s'\n2;y\n", {"delimiter": ";", "quotechar": "'"}),
    "tabs, and quotes in the header": Case("a.tsv", b'"a ""x"""\t b\t \n1.10\t00123\tTRUE\n', {"delimiter": "\t"}),
    "latin-1": Case("a.csv", "id,ort\n1,Düren\n".encode("latin-1"), encoding="latin-1", notes="not UTF-8"),
    "mark of CSV": Case("a.csv", b"\xef\xbb\xbfid,t\r\n1,x\r\n"),
    "numbers of CSV": Case(
        "a.csv", b"a,b,c,d\n9007199254740993,1e400,-0,1E5\n2.5,0.1000000000000000055,7,+5\n", notes="digits"
    ),
    "names twice or empty": Case("a.csv", b"id,id,x\n007,2,3\n", names=("id0", "id1", "x"), notes="id0, id1"),
    "a name empty": Case("a.csv", b"id;;x\n007;2;3\n", {"delimiter": ";"}, ("id", "_c1", "x"), notes="_c1"),
    "mark": Case("a.jsonl", b'\xef\xbb\xbf{"a":1}\r\n{"a":2}\r\n'),
}


def _play(case: Case, lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[list[str], Written]:  # noqa: F811
    wrote = written(case.name, case.content, tmp_path, capsys)
    sent = [json.loads(value or b"null", parse_float=Decimal, parse_int=Decimal) for value in values(wrote.spec, lab)]
    wanted, as_text = list(case.rows()), set[str]()
    assert len(sent) == len(wanted)
    wrong = [
        each
        for one, other in zip(sent, wanted, strict=True)
        for each in differences(without_null(one), other, "", as_text)
    ]
    wrong += [f"{name} became a text, and no note says so" for name in as_text if name not in wrote.notes]
    return wrong, wrote


@pytest.mark.in_turns("some of the files each")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_values(case: Case, lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    """Breaks when a spec of `init` is no spec, or has a run refuse the file, or send other values than it holds."""
    wrong, wrote = _play(case, lab, tmp_path, capsys)
    assert not wrong, f"{wrong}\n{wrote.text}"
    assert case.notes in wrote.notes


XML = {
    "<_>1</_><x>2</x>": {"_": 1, "x": 2},
    '<_a b="1">2</_a>': {"_a": {"@b": 1, "_VALUE": 2}},
    '<_VALUE b="1">2</_VALUE><c/>': {"_VALUE": {"@b": 1, "#VALUE": 2}, "c": ""},
    '<a VALUE="1">2.50</a><a>3</a>': {"a": [{"_VALUE": 1, "#VALUE": 2.5}, {"#VALUE": 3}]},
}


@pytest.mark.in_turns("some of the files each")
@pytest.mark.parametrize("row", XML)
def test_the_values_of_xml(row: str, lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    """Breaks when an element named like an attribute has a run refuse the file."""
    wrote = written("a.xml", f"<r><i>{row}</i><i>{row}</i></r>".encode(), tmp_path, capsys)
    assert [without_null(json.loads(value or b"")) for value in values(wrote.spec, lab)] == [XML[row]] * 2


# ---- Parquet ---------------------------------------------------------------------------------------------------------


def packed(table: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    parquet.write_table(table if isinstance(table, pa.Table) else pa.table(table), out, **options)
    return out.getvalue()


_UNIQUE = uuid.UUID(int=2**100 + 7)
# Files, the schema if one is given, and the records.
PARQUET: dict[str, tuple[dict[str, bytes], str | None, list[Any]]] = {
    "R1, a column of None in one file": (
        {"a": packed({"n": [1], "c": pa.nulls(1)}), "b": packed({"n": [2], "c": ["x"]})},
        None,
        [{"n": 1, "c": None}, {"n": 2, "c": "x"}],
    ),
    "R1, with a schema": (
        {"a": packed({"n": [1], "c": pa.nulls(1)}), "b": packed({"n": [2], "c": ["x"]})},
        "n BIGINT, c STRING",
        [{"n": 1, "c": None}, {"n": 2, "c": "x"}],
    ),
    "R1, None alone": ({"a": packed({"n": [1], "c": pa.nulls(1)})}, None, [{"n": 1, "c": None}]),
    "R2, whole numbers and fractions": (
        {"a": packed({"n": [1, 2**53]}), "b": packed({"n": [0.5, None]})},
        "n DOUBLE",
        [{"n": 1.0}, {"n": float(2**53)}, {"n": 0.5}, {"n": None}],
    ),
    "R3, UUID": (
        {"a": packed({"u": pa.array([_UNIQUE.bytes, None], pa.uuid())})}, None, [{"u": str(_UNIQUE)}, {"u": None}]
    ),
    "R8, folders whose column is in the data": (
        {"k=1/a": packed({"k": [1, 1], "n": [5, 6]}), "k=2/a": packed({"k": [2], "n": [7]})},
        None,
        [{"n": 5, "k": 1}, {"n": 6, "k": 1}, {"n": 7, "k": 2}],
    ),
    "R10, BYTE_STREAM_SPLIT": (
        {"a": packed({"x": [0.1, 2.5]}, use_dictionary=False, column_encoding="BYTE_STREAM_SPLIT", data_page_version="2.0")},
        None,
        [{"x": 0.1}, {"x": 2.5}],
    ),
    "several integers and decimals": (
        {
            "a": packed({"i": pa.array([1], pa.int32()), "d": pa.array([Decimal("1.5")], pa.decimal128(5, 1))}),
            "b": packed({"i": pa.array([2**40]), "d": pa.array([Decimal("0.25")], pa.decimal128(10, 2))}),
        },
        None,
        [{"i": 1, "d": 1.5}, {"i": 2**40, "d": 0.25}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PARQUET)
def test_parquet_is_read(name: str, lab: Lab) -> None:  # noqa: F811
    files, schema, rows = PARQUET[name]
    found = lab.values("parquet", {f"{path}.parquet": content for path, content in files.items()}, schema=schema)
    assert [json.loads(value or b"") for value in found] == rows


_NANOS = pa.array([1_577_934_245_123_456_789], pa.timestamp("ns"))
# Files, the schema if one is given, and the words of message and hint.
REFUSED: dict[str, tuple[dict[str, bytes], str | None, str, str]] = {
    "W4, INT96 with nanoseconds": (
        {"a": packed({"t": _NANOS}, use_deprecated_int96_timestamps=True)},
        None, "a.parquet: column t: a time with nanoseconds", "without this one",
    ),
    "W4, nested": (
        {"a": packed({"t": pa.StructArray.from_arrays([_NANOS], ["x"])}, use_deprecated_int96_timestamps=True)},
        None, "column t: a time with nanoseconds", "write the file again",
    ),
    "R2, no schema": (
        {"a": packed({"n": [1]}), "b": packed({"n": [0.5]})},
        None, "column n is BIGINT in ", "with n DOUBLE",
    ),
    "R2, beyond a double": (
        {"a": packed({"n": [2**53 + 1]}), "b": packed({"n": [0.5]})},
        "n DOUBLE", "column n: a value does not fit the type double", "source.schema",
    ),
    "R8, the folder says something else": (
        {"k=1/a": packed({"k": [1, 3], "n": [5, 6]})}, None, "its column k has another value than its folder k=", "rename",
    ),
    "a decimal of 40 digits": (
        {"a": packed({"d": pa.array([Decimal("1.5")], pa.decimal256(40, 1))})},
        None, "column d is of Parquet's type DECIMAL(40,1)", "without d",
    ),
    "columns that differ in case": (
        {"a": packed({"id": [1], "ID": [2]})}, None, "has columns id and ID", "spark.sql.caseSensitive",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_parquet_is_refused(name: str, lab: Lab) -> None:  # noqa: F811
    files, schema, message, hint = REFUSED[name]
    with pytest.raises(EosingestError) as raised:
        lab.values("parquet", {f"{path}.parquet": content for path, content in files.items()}, schema=schema)
    assert message in raised.value.message and hint in raised.value.hint


def test_variant_is_refused_by_name(lab: Lab, tmp_path: Path) -> None:  # noqa: F811
    """And the hint's way works: the other columns are read."""
    written = lab.spark.sql("SELECT 1 AS n, parse_json('{\"a\":1}') AS v").coalesce(1)
    written.write.parquet(str(tmp_path / "v"))
    (file,) = (tmp_path / "v").glob("*.parquet")
    with pytest.raises(EosingestError, match="column v is of Parquet's type VARIANT") as raised:
        lab.values("parquet", file.read_bytes())
    assert "without v, in source.schema" in raised.value.hint
    assert lab.values("parquet", file.read_bytes(), schema="n INT") == [b'{"n":1}']


@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS"])
def test_dates_of_the_julian_calendar(kind: str, lab: Lab, tmp_path: Path) -> None:  # noqa: F811
    """As Spark reads what Spark has written by the calendar of Spark 2."""
    conf = {
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.outputTimestampType": kind,
    }
    days = "SELECT date_add(DATE'0001-01-03', CAST(id * 97 AS INT)) AS d FROM range(7000)"
    for name, value in conf.items():
        lab.spark.conf.set(name, value)
    try:
        rows = lab.spark.sql(f"SELECT d, CAST(d AS TIMESTAMP) + INTERVAL 3 SECONDS AS t FROM ({days})").coalesce(1)
        rows.write.parquet(str(tmp_path / "old"))
    finally:
        for name in conf:
            lab.spark.conf.unset(name)
    (file,) = (tmp_path / "old").glob("*.parquet")
    expected = lab.spark.read.parquet(str(file)).selectExpr("to_json(struct(*)) AS v").collect()
    assert lab.values("parquet", file.read_bytes()) == [row.v.encode() for row in expected]


def test_only_the_columns_in_use_are_read(lab: Lab) -> None:  # noqa: F811
    """A damaged page of another column is not met, and none at all for the file's name."""
    data = bytearray(packed({"s": ["secret"] * 9, "n": [7] * 9}, write_page_checksum=True, compression="none"))
    data[data.index(b"secret")] ^= 1
    where = {"value": "CAST(n AS STRING)", "where": "n > 5 OR (s = 'x' AND false)"}
    assert lab.values("parquet", bytes(data), **where) == [b"7"] * 9
    with pytest.raises(EosingestError, match="CRC checksum"):
        lab.values("parquet", bytes(data), "s")
    assert lab.values("parquet", bytes(data), "_metadata.file_name") == [b"a.parquet"] * 9
    with pytest.raises(SpecError, match="file_path"):
        lab.values("parquet", bytes(data), "_metadata.file_path")
