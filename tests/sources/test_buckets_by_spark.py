"""Objects that Spark reads, by Hadoop's client of S3: the same rows and splits as of the same files on a disk, and no others.

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
from eosingest.sources.files.reading.spark_reader import SparkReader
from pyspark.sql import SparkSession

from eosingest.app.settings import scan_of, source_of
from eosingest.errors import FatalError
from eosingest.host.interruption import never
from eosingest.protocol.plan import Plan, make_plan
from eosingest.sources.files.listing.names import check_hadoop_key
from eosingest.sources.files.reading.files_in_python import FilesInPython
from eosingest.sources.files.reading.planned_files import pending_files
from eosingest.sources.files.reading.scan import FileScan
from eosingest.spark.record_columns import record_frame
from eosingest.spark.scan import tasks_of
from eosingest.spec import load
from tests.sources.test_buckets import ODD
from tests.support.s3proxy import Store
from tests.support.sources.subject import SPLIT_SIZE

Warm = Callable[[], SparkSession]
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
    "binaryFile": ('format = "binaryFile"', _json, ""),
    "text, lines that end at two bytes": ('format = "text"\noptions = { lineSep = "\\n{" }', _json, ""),
    "text.bz2": ('format = "text"', _json_bz2, ".bz2"),
    "text.deflate": ('format = "text"', _json_deflate, ".deflate"),
    "wholetext": ('format = "text"\noptions = { wholetext = true }', _json, ""),
}


def _records(spark: SparkSession, folder: Path, where: str, rest: str) -> tuple[list[tuple[str, str]], str, Plan]:
    """Return key (its split's place) and value of each record that a run would make, and the schema."""
    spec = folder / "spec.toml"
    value = "to_json(struct(*))" if "binaryFile" not in rest else "CAST(content AS STRING)"
    spec.write_text(
        f'name = "j"\n[source]\n{where}\nsplit_size = {SPLIT_SIZE}\n{rest}\n[record]\nvalue = "{value}"\n'
        '[sink]\ntopic = "t"\nbootstrap_servers = "localhost:1"\n'
    )
    loaded = load(spec)
    source = source_of(loaded, never)
    plan = make_plan(source, {}, SPLIT_SIZE, source.plan())
    scan = scan_of(loaded)
    assert isinstance(scan, FileScan | FilesInPython)
    scan.inspect(tasks_of(spark.sparkContext), plan, direct=False, slots=2)
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


@pytest.mark.parametrize("case", ["json", "text.bz2", "wholetext", "binaryFile"])
def test_python_uses_no_client_of_hadoop(spark: Warm, store: Store, tmp_path: Path, case: str) -> None:
    """Breaks when the schema of JSON is inferred by Spark: it would need Hadoop's client of S3."""
    rest, write, suffix = _FORMATS[case]
    bucket, path = store.bucket(f"spark-{uuid.uuid4().hex[:12]}"), tmp_path / f"a{suffix}"
    write(path, _ROWS)
    store.put(bucket, path.name, path.read_bytes())
    hadoop: Any = spark().sparkContext._jsc.hadoopConfiguration()  # type: ignore[union-attr]
    hadoop.set("fs.s3a.impl", "no.such.Client")
    try:
        found, schema, _ = _records(spark(), tmp_path, f'path = "s3://{bucket}/*"\n{store.table()}', rest)
    finally:
        hadoop.unset("fs.s3a.impl")
    assert len(found) in (1, len(_ROWS))
    assert case != "json" or schema == "id BIGINT,v STRING"


def test_odd_names(spark: Warm, store: Store, tmp_path: Path) -> None:
    """Breaks when Spark takes a name for a glob, or decodes it once more."""
    bucket = store.bucket(f"spark-{uuid.uuid4().hex[:12]}")
    for number, name in enumerate(ODD):
        store.put(bucket, f"odd/{name}.csv", b"%d\n" % number)
    where = f'path = "s3://{bucket}/odd"\n{store.table()}'
    found, _, _ = _records(
        spark(), tmp_path, where, 'format = "csv"\noptions = { header = false }\nschema = "id BIGINT"'
    )
    assert sorted(found) == sorted((f"{name}.csv@0", f'{{"id":{number}}}') for number, name in enumerate(ODD))


def test_spark_is_given_nothing_but_what_is_pending(spark: Warm, store: Store, tmp_path: Path) -> None:
    """Breaks when Spark lists a folder: it would read what is done, and what came since."""
    bucket = store.bucket(f"spark-{uuid.uuid4().hex[:12]}")
    for number in range(20):
        _orc(tmp_path / "a.orc", [{"id": number}])
        store.put(bucket, f"in/{number:02}.orc", (tmp_path / "a.orc").read_bytes())
    spec = f'path = "s3://{bucket}/in/07*"\n{store.table()}'
    found, _, plan = _records(spark(), tmp_path, spec, 'format = "orc"')
    assert [value for _, value in found] == ['{"id":7}']
    files = pending_files(plan)
    assert len(files) == 1
    assert len(SparkReader(spark(), "orc").load(files).inputFiles()) == 1


@pytest.mark.parametrize("key", ["in//a.json", "in/./a.json", "in/../a.json", "/a.json", "in/a/"])
def test_keys_that_hadoop_takes_for_others_are_refused(key: str) -> None:
    with pytest.raises(FatalError) as refused:
        check_hadoop_key(f"s3://bucket/{key}")
    assert refused.value.code == "file-name"
    check_hadoop_key("s3://bucket/in/a..b/.c.json")
