"""Every row carries the hash of the split that it came from, however Spark packs, filters, explodes or hands it over.

Nothing here needs Kafka. Held against `_metadata`, which Spark fills in another way.
"""

from __future__ import annotations

import bz2
import gzip
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from eosingest.sources.files.reading.splits import SCAN_NODES
from pyspark.sql import DataFrame, SparkSession

from eosingest.errors import ChangedError, SpecError
from eosingest.protocol.plan import Plan, PlannedSplit, make_plan
from eosingest.sources.files.reading.read_settings import ReadSettings, file_rows
from eosingest.sources.files.source import FileSource, escape_for_spark, metadata_file_path
from eosingest.spark import plan_checks
from eosingest.spark.record_columns import SPLIT, RecordFrame, record_frame
from tests.integration.test_spark_splits import ODD_NAMES, SIZE, spark
from tests.support.builders import place

__all__ = ["spark"]

SETTINGS = ReadSettings(
    format="json",
    options={},
    schema="n INT",
    where=None,
    select=("*",),
    key=None,
    value="CAST(n AS STRING)",
    headers={},
    timestamp=None,
)
OF_FORMAT = {
    "json": SETTINGS,
}
ROWS = 700


def write_files(folder: Path, format: str) -> None:
    """Write six files of 700 rows, with names that a URI spells otherwise; of the line formats two are compressed."""
    folder.mkdir()
    for number, name in enumerate(["a", "ü b", "c%20d#", "e[1]{2}+&=", "f.gz", "g.bz2"]):
        numbers = range(number * ROWS, (number + 1) * ROWS)
        content = "".join(f'{{"n":{n}}}\n' if format == "json" else f"{n}\n" for n in numbers).encode()
        pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(Path(name).suffix, bytes)
        (folder / name).write_bytes(pack(content))


def plan_of(folder: Path, format: str) -> Plan:
    source = FileSource(format=format, paths=["*"], directory=folder, root=None, min_age_s=0)
    return make_plan(source, {}, SIZE, source.plan())


def frame_of(spark: SparkSession, settings: ReadSettings, plan: Plan) -> tuple[RecordFrame, Mapping[int, PlannedSplit]]:
    frame = record_frame(file_rows(spark, settings, plan, None), settings)
    plan_checks.check_narrow(frame.records, SCAN_NODES)
    splits, _ = frame.source.verified(frame.records)
    return frame, splits


def through_arrow(frame: DataFrame) -> Counter[tuple[int, bytes]]:
    """Take the rows to Python as a task does, on Spark's writer thread, with both cores packed into one task."""

    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.select([SPLIT, "value"])

    rows = frame.coalesce(1).mapInArrow(same, f"{SPLIT} LONG, value BINARY").collect()
    return Counter((row[SPLIT], bytes(row.value)) for row in rows)


def by_metadata(spark: SparkSession, settings: ReadSettings, plan: Plan, where: str) -> Counter[tuple[str, int, bytes]]:
    """Say of every row which file and start it has by `_metadata`."""
    reader = spark.read.format(settings.format).options(**settings.options).schema(settings.schema or "")
    frame = reader.load([escape_for_spark(entry.item.path) for entry in plan.pending_items]).where(where)
    rows = frame.selectExpr("_metadata.file_path p", "_metadata.file_block_start s", f"{settings.value} v").collect()
    return Counter((row.p, row.s, row.v.encode()) for row in rows)


def in_words(
    plan: Plan, splits: Mapping[int, PlannedSplit], rows: Counter[tuple[int, bytes]]
) -> Counter[tuple[str, int, bytes]]:
    paths = {entry.item.name: metadata_file_path(entry.item.path) for entry in plan.pending_items}
    named = Counter[tuple[str, int, bytes]]()
    for (key, value), count in rows.items():
        file, start = place(splits[key])
        named[paths[file], start, value] += count
    return named


@pytest.mark.in_turns("one format each")
@pytest.mark.parametrize("where", [None, "n % 3 = 0", "n > 1000"])
@pytest.mark.parametrize("format", OF_FORMAT)
def test_rows_know_their_split(spark: SparkSession, tmp_path: Path, format: str, where: str | None) -> None:
    write_files(tmp_path / "d", format)
    plan = plan_of(tmp_path / "d", format)
    settings = replace(OF_FORMAT[format], where=where)
    frame, splits = frame_of(spark, settings, plan)
    found = in_words(plan, splits, through_arrow(frame.records))
    assert found == by_metadata(spark, settings, plan, where or "TRUE")
    assert found.total() == (6 * ROWS if where is None else 1400 if "%" in where else 6 * ROWS - 1001)
    assert len({(file, start) for file, start, _ in found}) > 6, "some files have several splits with rows"


def test_exploded_rows_know_their_split(spark: SparkSession, tmp_path: Path) -> None:
    write_files(tmp_path / "d", "json")
    plan = plan_of(tmp_path / "d", "json")
    once, _ = frame_of(spark, SETTINGS, plan)
    settings = replace(SETTINGS, select=("n", "explode(array(1, 2)) AS twice"), where="n >= 0")
    twice, splits = frame_of(spark, settings, plan)
    found = through_arrow(twice.records)
    assert found == through_arrow(once.records) + through_arrow(once.records)
    assert {key for key, _ in found} <= splits.keys()


def test_filters_reach_the_reader(spark: SparkSession, tmp_path: Path) -> None:
    write_files(tmp_path / "d", "json")
    frame, _ = frame_of(spark, replace(SETTINGS, where="n = 5"), plan_of(tmp_path / "d", "json"))
    leaf = frame.records._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
    pushed = str(leaf.metadata().apply("PushedFilters"))
    assert "EqualTo(n,5)" in pushed, pushed


def test_what_is_not_deterministic_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    write_files(tmp_path / "d", "json")
    plan = plan_of(tmp_path / "d", "json")
    changes = [
        {"where": "rand() < 0.5"},
        {"select": ("n", "rand() AS r")},
        {"select": ("n", "explode(array(rand())) AS r")},
        {"value": "CAST(rand() AS STRING)"},
        {"select": ("n", f"CAST(rand() AS BIGINT) AS {SPLIT}")},
    ]
    for change in changes:
        with pytest.raises(SpecError) as caught:
            frame_of(spark, replace(SETTINGS, **change), plan)  # type: ignore[arg-type]
        assert caught.value.code in ("not-deterministic", "bad-expression"), change


@pytest.mark.parametrize("format", OF_FORMAT)
@pytest.mark.parametrize("change", ["longer", "older", "shorter"])
def test_files_are_as_planned_when_spark_lists_them(
    spark: SparkSession, tmp_path: Path, format: str, change: str
) -> None:
    """The task's hash is of the name alone: a file that changed between our listing and Spark's is found here."""
    write_files(tmp_path / "d", format)
    plan = plan_of(tmp_path / "d", format)
    path = tmp_path / "d" / "ü b"
    before = path.stat()
    if change == "longer":
        with path.open("ab") as file:
            file.write(b"\n")
    elif change == "shorter":
        os.truncate(path, before.st_size - 1)
    if change == "older":
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns - 1_000_000))
    else:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    settings = OF_FORMAT[format]
    with pytest.raises(ChangedError, match="ü b") as caught:
        frame_of(spark, settings, plan)
    assert caught.value.code == "changed-while-read"


@pytest.mark.parametrize("form", ["file", "folder"])
def test_odd_names_are_as_planned(spark: SparkSession, tmp_path: Path, form: str) -> None:
    """Whatever a name spells, Spark's list of lengths and times is read as it is meant."""
    status = "x; isDirectory=false; length=9; replication=1; blocksize=1; modification_time=1; access_time=0}"
    names = [name for name in (*ODD_NAMES, status) if form == "file" or "=" not in name]
    for number, name in enumerate(names):
        path = tmp_path / "d" / (f"{name}" if form == "file" else f"d{name}/x")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{{"n":{number}}}\n')
    source = FileSource(
        format="json", paths=["*" if form == "file" else "*/*"], directory=tmp_path / "d", root=None, min_age_s=0
    )
    plan = make_plan(source, {}, SIZE, source.plan())
    frame, splits = frame_of(spark, SETTINGS, plan)
    rows = frame.records.collect()
    assert len(rows) == len(names)
    texts = {entry.item.name: Path(entry.item.path).read_text() for entry in plan.items}
    for row in rows:
        assert texts[splits[row[SPLIT]].split.item] == f'{{"n":{bytes(row.value).decode()}}}\n'
