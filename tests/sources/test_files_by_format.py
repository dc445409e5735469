"""Files of all formats: the same rows and splits from a bucket as from a disk; which files and folders count as Spark has it.

Kills and changes of objects are in the conformance suite (json.s3, parquet.s3).
"""

from __future__ import annotations

import bz2
import gzip
import json
import uuid
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from eosingest.app.settings import scan_of, source_of
from eosingest.host.interruption import never
from eosingest.protocol.plan import Plan, make_plan
from eosingest.sources.files.reading.file_scan import FileScan
from eosingest.spark.record_columns import record_frame
from eosingest.spark.scan import tasks_of
from eosingest.spec import load
from tests.sources.test_buckets import ODD
from tests.support.s3proxy import Store
from tests.support.sources.subject import SPLIT_SIZE

Warm = Callable[[], SparkSession]
ODD_ON_A_DISK = [
    "plain", "sp ace", " lead", "trail ", "h#x", "p%20q", "p%q", "a[1]", "a]b", "{a}", "a}b", "ünï", "e\u0301", "😀",
    "a+b", "a&b", "a=b", "q'q", 'q"q', "b\\s", "a?b", "a*b", "a^b", "a|b", "a<b>", "a;b", "a,b", "a$(b)", "a`b", "~a",
    "a!b", "a@b", "-x", "new\nline", "cr\rx", "tab\tx", "bell\x07", "del\x7f", "c1\x85", "nbsp\xa0x", "ls\u2028x",
    "bom\ufeffx", "a:b", ":b", "2026-11-28T10:00[1]", "a1", "aXb",
]  # fmt: skip
_NAMES = ("a b%20ü+.x", "c.x", "d'&=,;~!@.x")
_ROWS = [{"id": number, "v": f"v{number} ü"} for number in range(90)]


def _json(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in rows))


def _document(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text(json.dumps(rows, indent=1))


def _json_gz(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_bytes(gzip.compress(b"".join(json.dumps(row).encode() + b"\n" for row in rows), mtime=0))


def _json_bz2(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_bytes(bz2.compress(b"".join(json.dumps(row).encode() + b"\n" for row in rows)))


def _json_deflate(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_bytes(zlib.compress(b"".join(json.dumps(row).encode() + b"\n" for row in rows)))


def _csv(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("id,v\n" + "".join(f"{row['id']},{row['v']}\n" for row in rows))


def _parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    pa.parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=10, compression="none")


def _orc(path: Path, rows: list[dict[str, Any]]) -> None:
    pa.orc.write_table(pa.Table.from_pylist(rows), path)


def _avro(path: Path, rows: list[dict[str, Any]]) -> None:
    fields = [{"name": "id", "type": "long"}, {"name": "v", "type": "string"}]
    with path.open("wb") as out:
        fastavro.writer(out, {"type": "record", "name": "r", "fields": fields}, rows, sync_interval=200)


def _xml(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("<x>" + "".join(f"<r><id>{row['id']}</id><v>{row['v']}</v></r>" for row in rows) + "</x>")


_FORMATS: dict[str, tuple[str, Callable[[Path, list[dict[str, Any]]], None], str]] = {
    "json": ('format = "json"', _json, ""),
    "json by a schema": ('format = "json"\nschema = "id BIGINT, v STRING, p INT"', _json, ""),
    "json.gz": ('format = "json"', _json_gz, ".gz"),
    "json multiLine": ('format = "json"\noptions = { multiLine = true }', _document, ""),
    "csv": ('format = "csv"\noptions = { header = true }', _csv, ""),
    "csv multiLine": ('format = "csv"\noptions = { header = true, multiLine = true }', _csv, ""),
    "parquet": ('format = "parquet"', _parquet, ""),
    "orc": ('format = "orc"', _orc, ""),
    "avro": ('format = "avro"', _avro, ""),
    "xml": ('format = "xml"\noptions = { rowTag = "r" }\nschema = "id BIGINT, v STRING"', _xml, ""),
    "binaryFile": ('format = "binaryFile"', _json, ""),
    "text, lines that end at two bytes": ('format = "text"\noptions = { lineSep = "\\n{" }', _json, ""),
    "text.bz2": ('format = "text"', _json_bz2, ".bz2"),
    "text.deflate": ('format = "text"', _json_deflate, ".deflate"),
    "wholetext": ('format = "text"\noptions = { wholetext = true }', _json, ""),
}


def _records(
    spark: SparkSession, folder: Path, where: str, rest: str, value: str = "", *, audited: bool = False
) -> tuple[list[tuple[str, str]], str, Plan]:
    """Return key (its split's place) and value of each record that a run would make, and the schema."""
    spec = folder / "spec.toml"
    value = value or ("to_json(struct(*))" if "binaryFile" not in rest else "CAST(content AS STRING)")
    spec.write_text(
        f'name = "j"\n[source]\n{where}\nsplit_size = {SPLIT_SIZE}\n{rest}\n[record]\nvalue = "{value}"\n'
        '[sink]\ntopic = "t"\nbootstrap_servers = "localhost:1"\n'
    )
    loaded = load(spec)
    source = source_of(loaded, never)
    plan = make_plan(source, {}, SPLIT_SIZE, source.plan())
    scan = scan_of(loaded)
    scan = scan.for_audit() if audited else scan
    assert isinstance(scan, FileScan)
    scan.inspect(tasks_of(spark.sparkContext), plan)
    frame = scan.frame(spark, plan, None, 2)
    records = record_frame(frame, scan.read)
    splits, partitions = records.source.verified(records.records)
    assert partitions > 0
    by_hash = {key: planned.split for key, planned in splits.items()}
    rows = records.records.collect()
    columns = records.records.columns
    value_at, split_at = columns.index("value"), next(n for n, name in enumerate(columns) if "split" in name)
    found = [(_place(by_hash[row[split_at]]), bytes(row[value_at]).decode()) for row in rows]
    return sorted(found), frame.schema, plan


def _place(split: Any) -> str:
    return f"{split.item.rpartition('/')[2]}@{split.start}"


@pytest.mark.in_turns("one format each")
@pytest.mark.parametrize("case", _FORMATS)
@pytest.mark.parametrize("tree", [False, True], ids=["flat", "tree"])
def test_the_same_rows_as_on_a_disk(spark: Warm, store: Store, tmp_path: Path, case: str, tree: bool) -> None:
    rest, write, suffix = _FORMATS[case]
    bucket, number = store.bucket(f"spark-{uuid.uuid4().hex[:12]}"), 0
    for number, name in enumerate(_NAMES):
        folder = tmp_path / "in" / (f"p=0{number % 2}/q=x y" if tree else "")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / (name + suffix)
        write(path, _ROWS[number::3])
        store.put(bucket, str(path.relative_to(tmp_path)), path.read_bytes())
    if tree is False and "p INT" in rest:
        rest = rest.replace(", p INT", "")
    path = "in" if suffix not in (".bz2", ".deflate") else f"in/{'*/*/' if tree else ''}*{suffix}"
    local, local_schema, _ = _records(spark(), tmp_path, f'path = "{path}"', rest)
    found, schema, _ = _records(spark(), tmp_path, f'path = "s3://{bucket}/{path}"\n{store.table()}', rest)
    assert found == local
    assert schema == local_schema
    assert len(found) > 0 and (len(found) == len(_ROWS) or "id" not in found[0][1] or len(found) == 3)


@pytest.mark.parametrize("case", ["json by a schema", "csv", "parquet", "avro", "text.bz2", "wholetext", "xml"])
def test_a_row_names_its_file(spark: Warm, tmp_path: Path, case: str) -> None:
    """`_metadata` has the name and the size of a row's file; `*` does not contain it."""
    rest, write, suffix = _FORMATS[case]
    (tmp_path / "in").mkdir()
    for name in _NAMES:
        write(tmp_path / "in" / f"{name}{suffix}", _ROWS[:3])
    sizes = {path.name: str(path.stat().st_size) for path in (tmp_path / "in").iterdir()}
    columns = "_metadata.file_name, _metadata.file_size"
    select = 'select = ["*", "_METADATA.FILE_NAME AS f"]\nwhere = "_metadata.file_size > 0"'
    value = f"concat_ws('|', {columns}, f, to_json(struct(*)))"
    found, _, _ = _records(spark(), tmp_path, 'path = "in/*"', f"{rest}\n[transform]\n{select}", value)
    assert {place.rpartition("@")[0] for place, _ in found} == sizes.keys()
    for place, text in found:
        name, size, selected, row = text.split("|")
        assert name == selected == place.rpartition("@")[0] and size == sizes[name]
        assert '"f":' in row and "_metadata" not in row
    audited, _, _ = _records(spark(), tmp_path, 'path = "in/*"', f"{rest}\n[transform]\n{select}", value, audited=True)
    assert audited == found
    if "v STRING" in rest:  # no column of the data is read
        alone, _, _ = _records(spark(), tmp_path, 'path = "in/*"', rest, f"concat_ws('|', {columns})")
        assert [text.split("|") for _, text in alone] == [text.split("|")[:2] for _, text in found]


def test_odd_names_in_a_bucket(spark: Warm, store: Store, tmp_path: Path) -> None:
    """Breaks when a name is taken for a pattern, or decoded once more."""
    bucket = store.bucket(f"spark-{uuid.uuid4().hex[:12]}")
    for number, name in enumerate(ODD):
        store.put(bucket, f"odd/{name}.csv", b"%d\n" % number)
    where = f'path = "s3://{bucket}/odd"\n{store.table()}'
    found, _, _ = _records(
        spark(), tmp_path, where, 'format = "csv"\noptions = { header = false }\nschema = "id BIGINT"'
    )
    assert sorted(found) == sorted((f"{name}.csv@0", f'{{"id":{number}}}') for number, name in enumerate(ODD))


@pytest.mark.parametrize("of", ["files", "folders"])
def test_odd_names_on_a_disk(spark: Warm, tmp_path: Path, of: str) -> None:
    """Breaks when a name is taken for a pattern or an address: rows of other files, or none, would be sent."""
    names = [name for name in ODD_ON_A_DISK if of == "files" or "=" not in name]  # `k=v` folders give a column
    for number, name in enumerate(names):
        path = tmp_path / "in" / (f"{name}.x" if of == "files" else f"d{name}/a.x")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{{"id":{number}}}\n')
    found, _, plan = _records(spark(), tmp_path, f'path = "in/{"*" if of == "files" else "*/*"}"', 'format = "json"')
    assert sorted(value for _, value in found) == sorted(f'{{"id":{number}}}' for number in range(len(names)))
    assert {entry.item.name.removeprefix("in/") for entry in plan.items} == {
        f"{name}.x" if of == "files" else f"d{name}/a.x" for name in names
    }
    if of == "files":
        assert dict(found) == {f"{name}.x@0": f'{{"id":{number}}}' for number, name in enumerate(names)}


def test_hidden_is_what_spark_hides(spark: Warm, tmp_path: Path) -> None:
    names = [
        "_a",
        "_a=1",
        ".a",
        "a._COPYING_",
        "_metadata",
        "_metadata.x",
        "_common_metadata",
        "_=",
        ".a=1",
        "a_",
        "a.",
        "_a=1._COPYING_",
        "_metadata=1",
    ]
    folder = tmp_path / "in"
    folder.mkdir()
    for name in names:
        (folder / name).write_text(f"{name}\n")
    by_spark = {row.value for row in spark().read.text(str(folder)).collect()}
    _, _, plan = _records(spark(), tmp_path, 'path = "in"', 'format = "text"')
    assert {entry.item.name.removeprefix("in/") for entry in plan.items} == by_spark


@pytest.mark.parametrize(
    "files",
    [
        ["d/a", "d/b"],
        ["d/a", "d/s/b"],
        ["d/k=1/a", "d/k=2/s/b"],
        ["d/s/k=1/a", "d/s/k=2/a"],
        ["d/k=1/j=1/a", "d/k=2/j=x/a"],
        ["d/k=1/a", "d/_s/b", "d/.s/k=1/b", "d/k=1/_s/b"],
        ["d/k=a b%3Ac/a", "d/k=ü/a"],
        ["d/_k=1/a"],
    ],
)
def test_a_folder_means_what_it_means_to_spark(spark: Warm, tmp_path: Path, files: list[str]) -> None:
    """Breaks when a tree has other columns or other files than every reader of such trees finds in it."""
    for number, name in enumerate(files):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f'{{"id":{number}}}\n')
    found, _, _ = _records(spark(), tmp_path, 'path = "d"', 'format = "json"\nschema = "id BIGINT"')
    session = spark()
    session.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    theirs = session.read.schema("id BIGINT").json(str(tmp_path / "d")).selectExpr("to_json(struct(*)) AS value")
    assert sorted(value for _, value in found) == sorted(row.value for row in theirs.collect())
