"""Inferred schemas in the middle of a job, and the columns of `k=v` folders."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from eosingest.errors import ChangedError, FatalError, SpecError
from eosingest.protocol.plan import make_plan
from eosingest.sources.files.reading import inferring_scan
from eosingest.sources.files.reading.json_reader import JsonReader, JsonSettings
from eosingest.sources.files.reading.read_settings import ReadSettings
from eosingest.sources.files.reading.schema_types import from_ddl
from eosingest.sources.files.source import FileSource
from eosingest.spark.python_scan import planned_splits
from eosingest.spark.record_settings import CORRUPT
from eosingest.spark.scan import tasks_of
from tests.reading.test_parquet_orc_types import packed
from tests.support.reading.lab import Asked, Lab, lab, scan_of, settings_of  # noqa: F401 - a fixture
from tests.support.reading.table_avro import column, record
from tests.support.reading.table_avro import packed as avro

_HEADER = {"header": "true"}
# Format, files, the pinned schema; what is said of them, "" where they fit; the schema for both.
PENDING: list[tuple[str, dict[str, bytes], str, str, str]] = [
    ("json", {"a.json": b'{"n":1}\n'}, "n BIGINT, m STRING", "", ""),
    (
        "json",
        {"a.json": b'{"n":1}\n', "b.json": b'{"n":1,"m":"x"}\n'},
        "n BIGINT",
        "^[^ ]*b.json: .*m STRING is new",
        "n BIGINT, m STRING",
    ),
    ("json", {"a.json": b'{"n":1.5}\n'}, "n BIGINT", "a.json: .*n is DOUBLE now, and was BIGINT", "n DOUBLE"),
    ("json", {"a.json": b'{"n":1,"m":null}\n'}, "n BIGINT", "m STRING is new", "n BIGINT, m STRING"),
    ("json", {"a.json": b'{"n":null,"s":null,"l":[]}\n'}, "l ARRAY<BIGINT>, n BIGINT, s STRUCT<x: BIGINT>", "", ""),
    (
        "json",
        {"a.json": b'{"s":{"x":null,"y":1}}\n'},
        "s STRUCT<x: BIGINT>",
        "s.y BIGINT is new",
        "s STRUCT<x: BIGINT, y: BIGINT>",
    ),
    ("json", {"k=1/a.json": b'{"n":1}\n'}, "n BIGINT, k INT", "", ""),
    ("json", {"a.json": b'{"n":9007199254740992}\n'}, "n DOUBLE", "", ""),
    ("json", {"a.json": b'{"n":9007199254740993}\n'}, "n DOUBLE", "n is STRING now, and was DOUBLE", "n STRING"),
    (
        "json",
        {"a.json": b'{"l":[{"n":1234567890123456789012345}]}\n'},
        "l ARRAY<STRUCT<n: DOUBLE>>",
        "l\\[\\].n is STRING now, and was DOUBLE",
        "l ARRAY<STRUCT<n: STRING>>",
    ),
    ("csv", {"a.csv": b"n,s\n,x\n,y\n"}, "n INT, s STRING", "", ""),
    ("csv", {"a.csv": b"n\n9007199254740992\n"}, "n DOUBLE", "", ""),
    ("csv", {"a.csv": b"n\n9007199254740993\n"}, "n DOUBLE", "n is STRING now, and was DOUBLE", "n STRING"),
    ("csv", {"a.csv": b"n,s\nabc,x\n"}, "n INT, s STRING", "a.csv: .*n is STRING now, and was INT", "n STRING, s STRING"),
    ("csv", {"a.csv": b"n,s,t\n1,x,\n"}, "n INT, s STRING", "t STRING is new", "n INT, s STRING, t STRING"),
    ("parquet", {"a.x": packed("parquet", pa.array([1]), names="n")}, "n BIGINT, m STRING", "", ""),
    (
        "parquet",
        {f"{n}.x": packed("parquet", pa.array([1]), pa.array(["x"]), names="n,m") for n in (1, 2)},
        "n BIGINT",
        "1.x.*2.x.*m STRING is new",
        "n BIGINT, m STRING",
    ),
    ("avro", {"a.x": column("long", [1])}, "c BIGINT, m STRING", "", ""),
    (
        "avro",
        {"a.x": column("long", [1]), "b.x": avro(record(m="string"), [{"m": "x"}])},
        "c BIGINT",
        "b.x: .*m STRING is new",
        "c BIGINT, m STRING",
    ),
    ("avro", {"a.x": column("double", [1.5])}, "c BIGINT", "c is DOUBLE now, and was BIGINT", ""),
    ("orc", {"a.x": packed("orc", pa.array([1.5]), names="n")}, "n BIGINT", "n is DOUBLE now, and was BIGINT", ""),
]  # fmt: skip


def test_what_is_pending_is_held_against_the_pinned_schema(lab: Lab, tmp_path: Path) -> None:  # noqa: F811
    """Spark would drop a new field without a word, and call a wider value corrupt."""
    for number, (format, files, pinned, said, both) in enumerate(PENDING):
        folder = tmp_path / str(number)
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        source = FileSource(format=format, paths=[str(folder)], directory=folder, root=None, min_age_s=0)
        plan = make_plan(source, {}, 1 << 20, source.plan())
        options = _HEADER if format == "csv" else {}
        settings = ReadSettings(
            format=format,
            options=options,
            schema=None,
            where=None,
            select=("*",),
            key=None,
            value="to_json(struct(*))",
            headers={},
            timestamp=None,
        )
        scan = scan_of(settings)
        if not said:
            scan.check_pinned_schema(tasks_of(lab.spark.sparkContext), plan, pinned)
            continue
        with pytest.raises(ChangedError, match=said) as caught:
            scan.check_pinned_schema(tasks_of(lab.spark.sparkContext), plan, pinned)
        assert caught.value.code == "schema-outgrown"
        assert (f'schema = "{both}"' if both else "a separate job") in caught.value.hint
        assert "until the job is complete" in caught.value.hint


@pytest.mark.parametrize(("header", "schema"), [(b"a,a,a0", None), (b"a,A", "a STRING, A STRING")])
def test_two_columns_of_one_name(lab: Lab, header: bytes, schema: str | None) -> None:  # noqa: F811
    with pytest.raises(FatalError if schema is None else SpecError, match="there are two columns a") as caught:
        lab.values("csv", header + b"\n1,2,3\n", options=_HEADER, schema=schema)
    assert caught.value.code == "column-twice"


@pytest.mark.parametrize("document", ["{'s':'a'}", '[{"s":"a"} {"s":"b"}]', " \n"])
def test_a_document_that_is_not_inspected(tmp_path: Path, document: str) -> None:
    """Breaks when what the inspection refuses is sent without it."""
    (tmp_path / "a.json").write_text(document)
    source = FileSource(format="json", paths=["."], directory=tmp_path, root=None, min_age_s=0)
    (split,) = planned_splits(make_plan(source, {}, 1 << 20, source.plan()))
    with pytest.raises(FatalError, match=r"document|after|Expecting|element"):
        list(
            JsonReader(from_ddl("s STRING"), JsonSettings.of({"multiLine": "true"}), names_once=True).read(split, None)
        )


def test_texts_alone_need_no_inference(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """Breaks when `inferSchema = false` is limited to files that are small enough to be read twice."""
    monkeypatch.setattr(inferring_scan, "_INFERENCE_MAX_BYTES", 0)
    (tmp_path / "a.csv").write_bytes(b"n,s\n1,x\n")
    source = FileSource(format="csv", paths=["."], directory=tmp_path, root=None, min_age_s=0)
    plan = make_plan(source, {}, 1 << 20, source.plan())
    settings = settings_of(Asked("csv", {}, "n", options={**_HEADER, "inferSchema": "false"}))
    scan_of(settings).check_pinned_schema(tasks_of(lab.spark.sparkContext), plan, "n STRING, s STRING")
    with pytest.raises(ChangedError, match="s STRING is new"):
        scan_of(settings).check_pinned_schema(tasks_of(lab.spark.sparkContext), plan, "n STRING")


@pytest.mark.slow
def test_folder_columns_are_strings(lab: Lab) -> None:  # noqa: F811
    """Whatever the other folders are called: breaks when a number or a date is made of them."""
    row = {"json": b'{"n":1}\n', "csv": b"n\n1\n", "parquet": packed("parquet", pa.array([1]), names="n")}
    texts = ["01", "1.0", "1e3", "2026-11-23", "2026-11-23 10:30:00", "a%20b", "true", "-0", "9" * 30]
    for format, content in row.items():
        options = _HEADER if format == "csv" else {}
        folders = [*texts, "__HIVE_DEFAULT_PARTITION__"]
        values = lab.values(format, {f"k={text}/a.x": content for text in folders}, options=options)
        expected = {*(text.replace("%20", " ") for text in texts), None}
        assert {json.loads(value or b"")["k"] for value in values} == expected
        for text in ("01", "2026-11-23"):  # where nothing else is pending
            (value,) = lab.values(format, {f"k={text}/a.x": content}, options=options)
            assert json.loads(value or b"") == {"n": 1, "k": text}
        both = lab.values(
            format, {"k=02/a.x": content, "k=3/a.x": content}, options=options, schema="n BIGINT, k INT", where="k >= 3"
        )
        assert [json.loads(value or b"") for value in both] == [{"n": 1, "k": 3}]
        both = lab.values(format, {"k=02/a.x": content, "k=3/a.x": content}, options=options, where="k >= 3")
        assert [json.loads(value or b"") for value in both] == [{"n": 1, "k": "3"}]


def test_a_folder_column_that_the_data_has_too(lab: Lab) -> None:  # noqa: F811
    """Spark would send the folder's value in its place."""
    for format, content in (
        ("json", b'{"n":1,"K":2}\n'),
        ("csv", b"n,K\n1,2\n"),
    ):
        with pytest.raises(FatalError, match="a column K, and the files are in folders"):
            lab.values(format, {"k=1/a.x": content}, options=_HEADER if format == "csv" else {})


def test_a_folder_column_that_the_schema_and_a_row_have(lab: Lab) -> None:  # noqa: F811
    """A field that the schema does not name is not read, as any other one."""
    rows = {"k=1/a.x": b'{"n":1,"K":9}\n{"n":2,"k":1}\n'}
    for schema in ("n INT, k INT", 'k STRING, n INT, `a"b` INT'):
        with pytest.raises(ValueError, match="corrupt row"):
            lab.values("json", rows, schema=schema)
    document = {"k=1/a.x": b'[{"n":1},\n{"n":2,"k":null}]'}
    with pytest.raises(ValueError, match="corrupt row"):
        lab.values("json", document, schema="n INT, k INT", options={"multiLine": "true"})
    assert len(lab.values("json", {"k=1/a.x": b'{"n":1,"K":9}\n[{"n":2},{}]\n'}, schema="n INT, k INT")) == 3
    for schema in ("n INT", "n INT, o INT"):
        assert b'"k":"1"' in (lab.values("json", rows, schema=schema)[1] or b"")


@pytest.mark.parametrize("is_pinned", [True, False])
def test_a_field_of_a_folder_that_the_inference_left_out(tmp_path: Path, is_pinned: bool) -> None:
    """Breaks when a run that resumes with the pinned schema refuses a row that the first run has sent."""
    (tmp_path / "k=1").mkdir()
    (tmp_path / "k=1" / "a.json").write_text('{"n":1,"k":{}}\n')
    source = FileSource(format="json", paths=["."], directory=tmp_path, root=None, min_age_s=0)
    plan = make_plan(source, {}, 1 << 20, source.plan())
    scan = scan_of(settings_of(Asked("json", {}, "k"))).of(plan, "n BIGINT, k STRING" if is_pinned else "n BIGINT")
    (batch,) = [batch for split in planned_splits(plan) for batch in scan.reader.read(split, None)]
    assert batch.to_pylist() == [{"n": 1, "k": "1", CORRUPT: None}]


_TWO_ROWS: dict[str, tuple[bytes, dict[str, object]]] = {
    "json": (b'{"ID":1,"Other":"x"}\n{"ID":2,"Other":"y"}\n', {"schema": "ID INT, Other STRING"}),
    "csv": (b"1,x\n2,y\n", {"schema": "ID INT, Other STRING"}),
    "xml": (
        b"<a><r><ID>1</ID><Other>x</Other></r><r><ID>2</ID><Other>y</Other></r></a>",
        {"schema": "ID INT, Other STRING", "options": {"rowTag": "r"}},
    ),
    "parquet": (packed("parquet", pa.array([1, 2]), pa.array(["x", "y"]), names="ID,Other"), {}),
    "orc": (packed("orc", pa.array([1, 2]), pa.array(["x", "y"]), names="ID,Other"), {}),
    "avro": (avro(record(ID="int", Other="string"), [{"ID": 1, "Other": "x"}, {"ID": 2, "Other": "y"}]), {}),
}


@pytest.mark.parametrize("format", _TWO_ROWS)
@pytest.mark.parametrize(
    ("value", "rest"),
    [
        ("CAST(id AS STRING)", {"where": "iD > 1"}),
        ("CAST(b AS STRING)", {"select": ("iD AS b", "OTHER AS c"), "where": "other = 'y'"}),
        ("CAST(id AS STRING)", {"select": ("id", "explode(array(other)) AS e"), "where": "day = '3' AND id = 2"}),
    ],
)
def test_a_column_is_named_in_any_case(
    lab: Lab,  # noqa: F811
    format: str,
    value: str,
    rest: dict[str, object],
) -> None:
    """Breaks when a column is not read because an expression spells it otherwise: its values would be null."""
    data, settings = _TWO_ROWS[format]
    assert lab.values(format, {f"DAY=3/a.{format}": data}, value, **settings, **rest) == [b"2"]
