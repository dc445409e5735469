"""XML files: what is refused, and in which words; bounds of memory; both ways to the producer; files that change meanwhile."""

from __future__ import annotations

import itertools
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from eosingest.errors import ChangedError, FatalError, SpecError
from eosingest.protocol.plan import Plan, make_plan
from eosingest.sources.files.bytes.text_blocks import BadTextError
from eosingest.sources.files.formats.xml import document
from eosingest.sources.files.formats.xml.columns import settings_of
from eosingest.sources.files.formats.xml.document import Row, read_rows
from eosingest.sources.files.formats.xml.schema import parse, problems
from eosingest.sources.files.reading.read_settings import ReadSettings
from eosingest.sources.files.reading.xml_scan import XmlScan
from eosingest.sources.files.source import FileSource
from eosingest.spark import python_scan
from eosingest.spark.reading import direct_reading, frame_reading
from eosingest.spark.scan import tasks_of
from eosingest.spark.worker import to_batch
from tests.support.compressed import SKIPPABLE, zstd
from tests.support.reading.lab import Lab, lab  # noqa: F401 - a fixture

_SCHEMA = "_id STRING, a STRING, n INT, o STRUCT<_u: STRING, _VALUE: STRING, m: INT>, r ARRAY<STRING>, d DATE"


def read(data: bytes, schema: str = _SCHEMA, **options: str) -> list[Row] | BadTextError:
    """Return the rows or what is wrong, the same in pieces of whatever size."""
    settings = settings_of({"rowTag": "row", **options}, parse(schema))
    seen: list[list[Row] | BadTextError] = []
    for size in (1 << 18, 7, 1):
        try:
            found = read_rows((data[at : at + size] for at in range(0, len(data), size)), settings)
            seen.append(list(itertools.chain.from_iterable(found)))
        except BadTextError as bad:
            seen.append(bad)
    words = [(bad.message, bad.line) if isinstance(bad, BadTextError) else bad for bad in seen]
    assert words[0] == words[1] == words[2], words
    return seen[0]


@pytest.mark.parametrize(
    ("inside", "line", "words"),
    [
        ("\n<row><a>1</a></row", 2, "not well-formed"),
        ("<row>\n<a>x</b></row>", 2, "mismatched tag, at column 7"),
        ("\n<row><a>1</a>\n", 3, "mismatched tag"),
        ("<row/>\n<row><n>1</n>\n<n>2</n></row>", 3, "row 2: column n is no ARRAY, and there is more than one <n>"),
        ("<row>\n<n>1,5</n></row>", 2, "row 1: column n is INT, and the value is '1,5'"),
        ("<row>\n<n>99999999999</n></row>", 2, "it is beyond the type"),
        ("<row>\n<d>10:30</d></row>", 2, "column d is DATE, and the value is '10:30'"),
        ("<row>\n<o><m>x</m></o></row>", 2, "column o.m is INT, and the value is 'x'"),
        ("<row>\n<r>1</r><a><b/></a></row>", 2, "column a is STRING, and there is an element <b> in it"),
        ("<row>\nx<a/></row>", 2, "text in <row>, and the schema has no _VALUE there: 'x'"),
        ("<row><o>x<m>1</m>\ny</o></row>", 2, "column o._VALUE is text in several places: 'y'"),
        ("<row><x>\n<row/></x></row>", 2, "there is a <row> in it, which is a row and none of its columns"),
        ("<row><x>\n<row/></x></row>", 2, "name the column row in source.schema"),
        ("<row><_id>\n</_id></row>", 1, "source.options.attributePrefix"),
        ("<row><o>\n<_VALUE/></o></row>", 2, "source.options.valueTag"),
        ("<row>&x;</row>", 1, "undefined entity"),
    ],
)
def test_rows_that_are_refused(inside: str, line: int, words: str) -> None:
    bad = read(f"<rows>{inside}</rows>".encode())
    assert isinstance(bad, BadTextError)
    assert words in f"{bad.message}; {bad.hint}"
    assert bad.line == line, bad.message


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "there is no element in it"),
        (b"<rows><row>", "it ends inside of an element"),
        (b"<rows/><rows/>", "junk after document element"),
        (
            b'<!DOCTYPE rows [<!ENTITY a "b">]><rows/>',
            "its DOCTYPE declares entities or attributes, which is not supported",
        ),
        (b'<!DOCTYPE rows [<!ENTITY a "b">]><rows/>', "xmllint --noent"),
        (b'<!DOCTYPE rows SYSTEM "http://127.0.0.1:1/x.dtd"><rows/>', "its DOCTYPE refers to another file"),
        (b"<rows>\xff</rows>", "bytes that are no utf-8"),
        (b"<?xml version='1.0' encoding='EUC-JP'?><rows/>", "its encoding EUC-JP is not one"),
        (b"<?xml version='1.0' encoding='UTF-16'?><rows/>", "its declaration says UTF-16"),
        ("\ufeff<?xml version='1.0' encoding='UTF-8'?><rows/>".encode("utf-16-le"), "its declaration says UTF-8"),
        (b"\xef\xbb\xbf\xef\xbb\xbf<rows/>", "a second byte order mark"),
        (b"<?xml version='1.1'?><rows/>", "XML 1.1"),
        (b"<x>" * 10_001 + b"</x>" * 10_001, "nested deeper than 10,000"),
    ],
)
def test_documents_that_are_refused(data: bytes, words: str) -> None:
    bad = read(data)
    assert isinstance(bad, BadTextError)
    assert words in f"{bad.message}; {bad.hint}"
    assert bad.line == 1


def test_pieces_of_any_size_say_the_same() -> None:
    """Breaks when a row, a text or an error depends on where the file was cut for reading."""
    random, taken = Random(7), 0
    pieces = [
        "<row>",
        "</row>",
        "<a>",
        "</a>",
        "<r>x</r>",
        " ",
        "x",
        "&amp;",
        "<!-- -->",
        "<![CDATA[y]]>",
        "\r\n",
        "é",
        "<n>5</n>",
    ]
    for _ in range(1000):
        inside = "".join(random.choices(pieces, k=random.randint(1, 9)))
        taken += not isinstance(read(f"<rows><row>{inside}</row></rows>".encode()), BadTextError)
    assert taken > 50


def test_memory_does_not_grow_with_the_file() -> None:
    """Neither with rows, nor with what is not read: elements, text, comments between rows."""

    def pieces() -> Iterator[bytes]:
        yield b"<rows>"
        for number in range(40_000):
            yield b"<row id='%d'><a>%s</a><x>%s</x></row>%s<!-- %s -->" % (number, b"a" * 100, *[b"x" * 200] * 3)
        yield b"</rows>"

    settings = settings_of({"rowTag": "row"}, parse(_SCHEMA))
    tracemalloc.start()
    rows = sum(map(len, read_rows(pieces(), settings)))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows == 40_000
    assert most < 8 << 20, most  # of 33 MB
    assert max(map(len, read_rows(pieces(), settings))) <= 2000


def test_what_the_parser_would_hold_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "LONGEST_TAG", 1 << 20)
    monkeypatch.setattr(document, "LONGEST_ROW", 1 << 20)
    settings = settings_of({"rowTag": "row"}, parse(_SCHEMA))

    def refused(begin: bytes, more: bytes, end: bytes) -> str:
        fed = 0

        def pieces() -> Iterator[bytes]:
            nonlocal fed
            yield begin
            for _ in range(100):
                fed += 1
                yield more * 65536
            yield end

        with pytest.raises(BadTextError) as caught:
            list(read_rows(pieces(), settings))
        assert fed < 60, "it was read to the end"
        return caught.value.message

    assert "tag, comment or instruction of more than 1 MiB" in refused(b"<rows><!--", b"x", b"--></rows>")
    assert "tag, comment or instruction of more than 1 MiB" in refused(b"<rows><row id='", b"x", b"'/></rows>")
    assert "row 1 has more than 1 MiB" in refused(b"<rows><row><a>", b"x", b"</a></row></rows>")


@pytest.mark.parametrize(
    ("ddl", "words"),
    [
        ("a MAP<STRING, INT>", "type MAP, as which no XML is read"),
        ("a BINARY", "type BINARY"),
        ("a TEXT", "take one of STRING"),
        ("a INT NOT NULL", "leave NOT NULL out"),
        ("a DECIMAL(50,2)", "there is not, DECIMAL(50,2)"),
        ("a ARRAY<ARRAY<INT>>", "array of arrays"),
        ("_a ARRAY<INT>", "attributePrefix"),
        ("_VALUE STRUCT<b: INT>", "can be no STRUCT"),
        ("a INT, A STRING", "one column to Spark"),
        ("o STRUCT<b: INT, B: INT>", "o.b and o.B are one column"),
        ("a", "has no type"),
        ("a INT,", "ends with a comma"),
        ("a INT b", "not understood"),
        ("", "has no columns"),
        ("o STRUCT<>", "without fields"),
        ("a STRING COLLATE UTF8_LCASE", "not understood"),
    ],
)
def test_schemas_that_are_refused(ddl: str, words: str) -> None:
    assert any(words in said for said in problems(ddl, "_", "_VALUE")), list(problems(ddl, "_", "_VALUE"))


def test_a_schema_as_it_may_be_written() -> None:
    ddl = "`a``b`: int, _id BIGINT COMMENT 'x, y', o struct<`ns:m`: decimal(5,1), r: array<struct<_k: long>>>, d DEC"
    assert [(field.name, field.type.ddl) for field in parse(ddl)] == [
        ("a`b", "INT"),
        ("_id", "BIGINT"),
        ("o", "STRUCT<`ns:m`: DECIMAL(5,1), `r`: ARRAY<STRUCT<`_k`: BIGINT>>>"),
        ("d", "DECIMAL(10,0)"),
    ]
    assert list(problems(ddl, "_", "_VALUE")) == []


# ---- through Spark, and straight -------------------------------------------------------------------------------------


def scanned(folder: Path, files: dict[str, bytes], schema: str = _SCHEMA, **records: Any) -> tuple[XmlScan, Plan]:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    options = {"rowTag": "row"}
    settings = ReadSettings(
        format="xml",
        options=options,
        schema=schema,
        **{"where": None, "select": ("*",), "key": None, "value": "a", "headers": {}, "timestamp": None, **records},
    )
    source = FileSource(format="xml", paths=["."], directory=folder, root=None, min_age_s=0, options=options)
    return XmlScan(settings, settings), make_plan(source, {}, 1 << 20, source.plan())


@pytest.mark.slow
def test_both_ways_make_the_same_records(tmp_path: Path, lab: Lab) -> None:  # noqa: F811
    """Breaks when rows that go straight to the producer are others than those that Spark SQL is given, or in another order."""
    rows = b"".join(b"<row id='%d'><a>%s</a></row>" % (n, b"\xc3\xa9" * (n % 40)) for n in range(5000))
    files = {
        "k=x/a.xml": b"<rows>" + rows + b"<row id='7'/></rows>",
        "k=y/b.xml": b"<rows><row><a/></row></rows>",
        "k=y/c.xml": b"<r/>",
    }
    scan, plan = scanned(tmp_path, files, key="_id", headers={"h": "k"})
    scan.inspect(tasks_of(None), plan)
    direct = scan.direct(plan)
    assert direct is not None
    straight = direct_reading(direct, None, 2)
    framed = frame_reading(scan.frame(lab.spark, plan, None, 2, resumed=True), scan.records, 2)
    assert straight.prepared.splits == framed.prepared.splits
    assert straight.prepared.schema == framed.prepared.schema
    batches = [batch for split in direct.splits for batch in direct.reader.read(split, None, 1 << 20)]
    by_sql = [to_batch(batch, ("h",)) for batch in framed.records.toArrow().to_batches()]

    def records(found: list[Any]) -> list[Any]:
        columns = ("keys", "values", "headers")
        each = (
            zip(one.splits.tolist(), one.hashes.tolist(), one.metadata.tolist(),
                *(getattr(one.records, name) for name in columns), strict=True)
            for one in found
        )  # fmt: skip
        return [row for rows in each for row in rows]

    assert records(batches) == records(by_sql)
    assert len(records(batches)) == 5002


def test_expressions_see_columns_structs_and_arrays(tmp_path: Path, lab: Lab) -> None:  # noqa: F811
    data = b"<rows><row id='1'><o u='x'>t<m>5</m></o><r>1</r><r>2</r><d>2024-02-29</d></row><row id='2'/></rows>"
    scan, plan = scanned(
        tmp_path, {"a.xml": data}, where="_id = 1", select=("*", "explode(r) AS part"),
        value="concat(o._u, o._VALUE, o.m, part, date_add(d, 1))",
    )  # fmt: skip
    assert scan.direct(plan) is None
    reading = frame_reading(scan.frame(lab.spark, plan, None, 2, resumed=True), scan.records, 2)
    assert [bytes(row.value) for row in reading.records.collect()] == [b"xt512024-03-01", b"xt522024-03-01"]


def test_a_schema_that_spark_takes_for_another_is_refused(tmp_path: Path, lab: Lab) -> None:  # noqa: F811
    scan, plan = scanned(tmp_path, {"a.xml": b"<rows/>"}, "a INT, é STRING")
    with pytest.raises(SpecError):
        scan.frame(lab.spark, plan, None, 1)
    scan, plan = scanned(tmp_path, {"a.xml": b"<rows/>"}, "__eosingest_split INT")
    with pytest.raises(SpecError, match="is reserved"):
        scan.frame(lab.spark, plan, None, 1)


def test_what_happens_to_a_file_behind_the_inspection(tmp_path: Path) -> None:
    """Breaks when a file that changed while it was read counts as read, or is called damaged."""
    good = b"<rows>" + b"<row><a>x</a></row>" * 30_000 + b"</rows>"
    scan, plan = scanned(tmp_path, {"a.xml": good})
    scan.inspect(tasks_of(None), plan)
    reader = scan._reader(plan)
    (split,) = python_scan.planned_splits(plan)
    assert sum(len(batch) for batch in reader.read(split, None)) == 30_000

    batches = reader.read(split, None)
    next(batches)
    os.utime(tmp_path / "a.xml", (1, 1))
    with pytest.raises(ChangedError, match="changed after it was listed"):
        list(batches)

    status = (tmp_path / "a.xml").stat()
    scan, plan = scanned(tmp_path, {"a.xml": good})
    (split,) = python_scan.planned_splits(plan)
    with (tmp_path / "a.xml").open("r+b") as file:  # as a listing cannot tell
        file.seek(len(good) - 8)
        file.write(b"x")
    os.utime(tmp_path / "a.xml", ns=(status.st_atime_ns, split.item.mtime_ms * 1_000_000))
    scan_again, plan_again = XmlScan(scan.read, scan.records), plan
    with pytest.raises(FatalError, match=r"a\.xml: line 1: it is no well-formed XML"):
        list(reader.read(python_scan.planned_splits(plan_again)[0], None))
    with pytest.raises(FatalError, match=r"a\.xml: line 1: it is no well-formed XML"):
        scan_again.inspect(tasks_of(None), plan_again)
    (tmp_path / "a.xml").unlink()
    with pytest.raises(ChangedError):
        list(reader.read(split, None))


def test_large_files_are_inspected_by_tasks(tmp_path: Path, lab: Lab) -> None:  # noqa: F811
    """Breaks when what is wrong in one of many files gets lost on its way from a task."""
    rows = b"<rows>" + b"<row><a>%s</a></row>" % (b"x" * 1000) * 3000
    files = {f"{name}.xml": rows + b"</rows>" for name in "abc"} | {"d.xml": rows + b"\n<row><n>x</n></row></rows>"}
    scan, plan = scanned(tmp_path, files)
    with pytest.raises(FatalError, match=r"^d\.xml: line 2: row 3,001: column n is INT, and the value is 'x'$"):
        scan.inspect(tasks_of(lab.spark.sparkContext), plan)


def test_zstd_that_spark_does_not_know_is_read(tmp_path: Path) -> None:
    """Breaks when a file is refused for the sake of a decoder that has nothing to do with it."""
    packed = zstd(b"<rows><row/>" + b" " * 1000, window_log=27) + SKIPPABLE + zstd(b"<row/></rows>")
    scan, plan = scanned(tmp_path, {"a.xml.zst": packed})
    scan.inspect(tasks_of(None), plan)
    (split,) = python_scan.planned_splits(plan)
    assert sum(len(batch) for batch in scan._reader(plan).read(split, None)) == 2
