"""The readers of an audit give what the readers of a run give: the same values, rows and corrupt rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql.types import StructType

from eosingest.errors import FatalError
from eosingest.protocol.plan import make_plan
from eosingest.sources.files.formats.csv_rows import Dialect
from eosingest.sources.files.reading.audit_csv import AuditCsvReader
from eosingest.sources.files.reading.audit_json import AuditJsonReader
from eosingest.sources.files.reading.csv_columns import CsvColumns, text_types
from eosingest.sources.files.reading.csv_reader import CsvReader
from eosingest.sources.files.reading.json_reader import JsonReader, JsonSettings
from eosingest.sources.files.reading.schema_types import from_ddl
from eosingest.sources.files.source import FileSource
from eosingest.spark.python_scan import ArrowReader, planned_splits
from eosingest.spark.record_settings import CORRUPT

TEXTS: dict[str, list[str]] = {
    "BOOLEAN": ["true", "FALSE", "True", "1", "t"],
    "TINYINT": ["1", "-128", "127", "128", "+7", "007", "-0", "1.0", "1e1"],
    "INT": ["2147483647", "2147483648", "-2147483648", "12"],
    "BIGINT": ["9223372036854775807", "9223372036854775808", "-1", "123456789012345678"],
    "FLOAT": ["1.5", "1e39", "-1e-50", "16777217", "0.1", "3.4028236e38", "1.00000017881393421514957253748434595"],
    "DOUBLE": ["0.1", "1e400", "5.", ".5", "NaN", "Infinity", "-Infinity", "Inf", "INF", "1E5", "9007199254740993"],
    "DECIMAL(10,2)": ["1.239", "1,234.50", "1.005", "-0.004", "99999999.99", "99999999.995", "1e3", "12,34"],
    "DATE": ["2020-01-02", "2020-1-2", "2020-01-02T00:00:00Z", "2020-02-30", "0001-01-01", "9999-12-31", "2020"],
    "TIMESTAMP": ["2020-01-02T10:30:00Z", "2020-01-02 10:30", "2020-01-02 10:30:00.1234567+0200", "2020", "2020-01-02",
                  "0001-01-01 00:00:00+01:00", "2020-1-2 3:4:5 UTC", "2020-01-02T24:00:00", "2020-01-02T10:30:00+14:01"],
    "TIMESTAMP_NTZ": ["2020-01-02T10:30:00.5", "2020-01-02 10:30:60", "2020-01-02 10:30Z", "1582-10-10 00:00:00"],
    "BINARY": ["YWJj", "YWI=", "YW", "é", "YWJj "],
    "STRING": ["a", "é", " x ", "null", "\U0001f600", "1"],
}  # fmt: skip
CHARACTERS = "0123456789+-:. TZeE,/x\té"


def read(reader: ArrowReader, folder: Path, data: bytes, format: str, size: int, options: dict[str, str]) -> list[Any]:
    """Return the rows of a file that is cut into splits of this size, and which of them are corrupt."""
    folder.mkdir(exist_ok=True)
    (folder / "a").write_bytes(data)
    source = FileSource(format=format, paths=["*"], directory=folder, root=None, min_age_s=0, options=options)
    batches = [
        batch
        for split in planned_splits(make_plan(source, {}, size, source.plan()))
        for batch in reader.read(split, None)
    ]
    found = []
    for batch in batches:
        corrupt = batch.column(CORRUPT).is_valid().to_pylist()
        rows = batch.drop_columns([CORRUPT])
        found += [(repr(row), bad) for row, bad in zip(rows.to_pylist(), corrupt, strict=True)]
    return found


def mutated(random: Random, text: str) -> str:
    """Return the text, or one that differs in a character or two."""
    for _ in range(random.choice([0, 0, 1, 2])):
        at = random.randint(0, len(text))
        text = text[:at] + random.choice(["", *CHARACTERS]) + text[at + random.randint(0, 1) :]
    return text


def texts(random: Random, kind: str) -> Iterator[str]:
    while True:
        yield mutated(random, random.choice(TEXTS[kind]))


# ---- CSV -------------------------------------------------------------------------------------------------------------


def csv_readers(schema: StructType, options: dict[str, str]) -> tuple[CsvReader, AuditCsvReader]:
    names = tuple(schema.names)
    kinds = text_types(options, [each.dataType for each in schema.fields])
    columns = CsvColumns(Dialect.of(options), len(names), names, tuple(range(len(names))), kinds)
    return CsvReader(options, columns), AuditCsvReader(options, schema, frozenset(names))


@pytest.mark.parametrize(
    "options",
    [{}, {"header": "true"}, {"sep": "\t", "quote": ""}, {"sep": ";", "comment": "#"}, {"encoding": "latin1"}],
    ids=str,
)
def test_csv(tmp_path: Path, options: dict[str, str]) -> None:
    schema = from_ddl(", ".join(f"c{at} {kind}" for at, kind in enumerate(TEXTS)))
    run, audit = csv_readers(schema, options)
    assert AuditCsvReader.takes(options)
    random, delimiter, quote = Random(1), options.get("sep", ","), options.get("quote", '"')
    for number in range(25):
        lines = [delimiter.join(schema.names)]
        for _ in range(30):
            fields = [next(texts(random, kind)) for kind in TEXTS]
            if quote:
                fields = [f'"{text}"' if delimiter in text or random.random() < 0.3 else text for text in fields]
            lines.append(delimiter.join(fields[: random.choice([12, 12, 12, 12, 11, 0])]))
        data = "\n".join(lines).encode(options.get("encoding", "utf-8"), "replace")
        size = random.choice([1 << 20, 700])
        found = [read(each, tmp_path, data, "csv", size, options) for each in (run, audit)]
        assert found[0] == found[1] and len(found[0]) > 10, number


@pytest.mark.parametrize("options", [{}, {"header": "true"}, {"sep": ";", "comment": "#"}, {"quote": "'"}], ids=str)
def test_csv_without_inspection(tmp_path: Path, options: dict[str, str]) -> None:
    """Line breaks in quotes end a run where they are met; the audit has the rows before them, and neither joins lines."""
    (run, audit), random = csv_readers(from_ddl("a STRING, b STRING"), options), Random(3)
    run = replace(run, columns=replace(run.columns, inspected=False))
    pieces, ended = [*"ab,,,\"#' \\é", '""', '","', "\n", "\r\n", '"\n"', '",'], 0
    for _ in range(500):
        text = "a,b\n" * random.randint(0, 3) + "".join(random.choices(pieces, k=random.randint(1, 25)))
        data = text.replace(",", options.get("sep", ",")).replace('"', options.get("quote", '"')).encode()
        expected = read(audit, tmp_path, data, "csv", 1 << 20, options)
        try:
            assert read(run, tmp_path, data, "csv", 1 << 20, options) == expected
        except FatalError as error:
            assert "does not end in its line" in error.message
            ended += 1
    assert 100 < ended < 400


def test_a_name_twice_without_inspection(tmp_path: Path) -> None:
    """Breaks when the audit has a row of a line that a run calls corrupt."""
    text = '{"s":"a","s":"b"}\n{"s":"c"}\n[{"s":"a","s":"b"},{"s":"c"}]\n{"é":1,"è":2,"s":"x"}\n'
    for encoding in ("utf-8", "latin1"):
        options = {"encoding": encoding}
        schema, settings = from_ddl("s STRING"), JsonSettings.of(options)
        readers = [kind(schema, settings, names_once=True) for kind in (JsonReader, AuditJsonReader)]
        run, audit = (read(each, tmp_path, text.encode(encoding), "json", 1 << 20, options) for each in readers)
        assert run == audit and [bad for _, bad in run] == [True, False, True, False]


def test_a_field_beside_those_of_the_schema(tmp_path: Path) -> None:
    """Breaks when a row of JSON with a field of a folder's name is none to one of the two, or has no reason."""
    text = '{"s":"a","k":1}\n{"s":"b"}\n[{"s":"c"},{"k":{"x":[]}}]\n{\'k\':null}\n{"s":1e2,"k":2}\n{"s":"k"}\n{"x":{"k":1}}\n'
    settings = JsonSettings.of({})
    for schema in (from_ddl("s STRING"), from_ddl('s STRING, `"` STRING')):
        readers = [kind(schema, settings, folder_names=("j", "k")) for kind in (JsonReader, AuditJsonReader)]
        run, audit = (read(each, tmp_path, text.encode(), "json", 1 << 20, {}) for each in readers)
        assert [bad for _, bad in run] == [True, False, False, True, True, True, False, False]
        assert [row for row in run if not row[1]] == [row for row in audit if not row[1]]
        assert [bad for _, bad in run] == [bad for _, bad in audit]
        (why,) = readers[0].why([b'{"s":"a","k":1}'])
        assert "a field k, and the file is in a folder k=" in why


@pytest.mark.parametrize(
    "options", [{"multiLine": "true"}, {"lineSep": "\n"}, {"escape": "\\"}, {"nullValue": "-"}, {"sep": "||"}]
)
def test_csv_that_pythons_module_reads_otherwise_is_left_to_the_run(options: dict[str, str]) -> None:
    assert not AuditCsvReader.takes(options)


# ---- JSON ------------------------------------------------------------------------------------------------------------

NESTED = "a ARRAY<INT>, m MAP<STRING, STRING>, s STRUCT<x: DOUBLE, y: STRUCT<z: STRING, d: DATE>>, l ARRAY<STRING>"


def json_value(random: Random, kind: str) -> str:
    """Return the JSON of a value that is mostly of this type."""
    text = next(texts(random, kind))
    quoted = '"' + text.replace("\t", "\\t") + '"'
    if random.random() < 0.1:
        return random.choice(
            ["null", "{}", "[1, 2]", '{"a" : [1,  "x"]}', "true", '""', "'q'", "NaN", "-INF", '"\\u00e9"']
        )
    return quoted if kind in ("STRING", "DATE", "BINARY") or random.random() < 0.4 else text


@pytest.mark.parametrize("options", [{}, {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}], ids=str)
def test_json(tmp_path: Path, options: dict[str, str]) -> None:
    schema, settings = from_ddl(", ".join(f"`c{at}` {kind}" for at, kind in enumerate(TEXTS))), JsonSettings.of(options)
    random = Random(2)
    for number in range(60):
        lines = []
        for _ in range(30):
            kept = random.sample(list(enumerate(TEXTS)), random.choice([1, 2, 6]))
            lines.append("{" + ", ".join(f'"c{at}": {json_value(random, kind)}' for at, kind in kept) + "}")
        assert_alike(tmp_path, schema, settings, lines, random.choice([1 << 20, 300]), str(number))


def test_nested_json(tmp_path: Path) -> None:
    schema, random = from_ddl(NESTED), Random(3)
    values = ["1", "null", "[1, 2]", '{"k" : [1,  {"x": null}]}', '{"x": 1, "y": {"z": [ 1 ], "d": "2020-01-02"}}',
              "[]", '["a", {"b": 1}]', '"t"',
              '{"y": {"d": "x"}}', "true", '{"x": NaN}', "{'z': 'it\\'s \"x\"'}", "[null]"]  # fmt: skip
    lines = [
        "{" + ", ".join(f'"{name}": {random.choice(values)}' for name in random.sample("amsl", 2)) + "}"
        for _ in range(800)
    ]
    assert_alike(tmp_path, schema, JsonSettings.of({}), lines, 1 << 20, "nested")


def test_odd_lines_of_json(tmp_path: Path) -> None:
    lines = ["", "  ", "null", "1", '"x"', "[]", '[{"n": 1}, {"n": "x"}, 3]', '{"n": 1}{"n": 2}', '{"n": 1},', "[1",
             '\ufeff{"n": 5}', '{"s": "\\ud800"}', '{"s": "\\ud83d\\ude00"}', '{"s": "a\tb"}', '{"n": 01}', "{'n': 3}",
             '{"n": 1e2}', '{"s": {"a" : 1}}', "[{'s': NaN}]", '{"n": -0}', '{"s": "x', '{"t": 12}', '{"t": -1.5}']  # fmt: skip
    assert_alike(tmp_path, from_ddl("n INT, s STRING, t TIMESTAMP"), JsonSettings.of({}), lines, 1 << 20, "odd")


def assert_alike(
    folder: Path, schema: StructType, settings: JsonSettings, lines: list[str], size: int, why: str
) -> None:
    assert AuditJsonReader.takes(settings)
    data = "\n".join(lines).encode()
    readers: tuple[ArrowReader, ArrowReader] = (JsonReader(schema, settings), AuditJsonReader(schema, settings))
    run, audit = (read(each, folder, data, "json", size, {}) for each in readers)
    assert len(run) == len(audit) > 10, why
    assert [(one, other) for one, other in zip(run, audit, strict=True) if one != other] == [], why
