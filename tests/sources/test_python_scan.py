"""A kind that is read in Python, in a real Spark: by both ways its records are the same; readers that fail."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from eosingest.errors import ChangedError, EosingestError, FatalError, SpecError, TemporaryError
from eosingest.kafka.ports import ANY_PARTITION
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.plan import Plan
from eosingest.protocol.task_contract import Batch
from eosingest.records import checksum
from eosingest.records.checksum import record_hash
from eosingest.spark import failures
from eosingest.spark.python_scan import PythonScan
from eosingest.spark.reading import direct_reading, frame_reading
from eosingest.spark.record_settings import HEADERS_TYPE, SPLIT, RecordSettings
from eosingest.spark.scan import tasks_of
from eosingest.spark.worker import to_batch
from tests.support.builders import plan, planned_item, planned_split, source_file
from tests.support.harness import Job, assert_done
from tests.support.ledger import PROCESSES, die_at
from tests.support.sources.kinds import Ledger, LedgerBySql

COLUMNS = {"k": "STRING", "Odd name": "BINARY", "n": "BIGINT"}
ROWS = [("a", b"one", 1), (None, b"", 2), ("", None, 3), ("ü", b"\xff\x00", None), ("e", b"five", 5)]
BARE = RecordSettings(
    where=None, select=("*",), key="k", value="`odd name`", headers={"x": "k", "y": "`Odd name`"}, timestamp=None
)


class Rows:
    """Gives the rows in batches of two, or raises an error instead of the last one."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def read(self, split: Any, committed: OffsetRecord | None) -> Iterator[pa.RecordBatch]:
        for first in range(0, len(ROWS), 2):
            if self.error is not None and first == 4:
                raise self.error
            keys, values, numbers = zip(*ROWS[first : first + 2], strict=True)
            # A type that is not the column's own, and columns in another order than they were named in.
            columns = [pa.array(numbers, pa.int32()), pa.array(values, pa.large_binary()), pa.array(keys)]
            yield pa.RecordBatch.from_arrays(columns, names=["n", "Odd name", "k"])


def two_splits() -> Plan:
    return plan(planned_item(source_file("a", 20), [planned_split("a", 0, 10), planned_split("a", 10, 10)]))


def test_both_ways_make_the_same_records(spark: Callable[[], SparkSession]) -> None:
    """Breaks when receipts of a job would tell which way its rows went: an audit reads through Spark what went straight."""
    scan = PythonScan(BARE, Rows(), COLUMNS)
    direct = scan.direct(two_splits())
    assert direct is not None
    straight = direct_reading(direct, None, 2)
    framed = frame_reading(scan.frame(spark(), two_splits(), 2, resumed=True), BARE, 2)
    assert (straight.prepared.tasks, framed.prepared.tasks) == (2, 2)
    assert straight.prepared.splits == framed.prepared.splits
    assert straight.prepared.schema == framed.prepared.schema

    batches = [batch for (split,) in straight.tasks for batch in straight.reader.read(split, None, 1 << 20)]
    by_sql = [to_batch(batch, ("x", "y")) for batch in framed.records.toArrow().to_batches()]

    def columns(found: Any) -> list[Any]:
        of_each = (
            zip(
                one.splits.tolist(),
                one.records.keys,
                one.records.values,
                one.records.headers or (),
                one.hashes.tolist(),
                one.sizes.tolist(),
                one.metadata.tolist(),
                strict=True,
            )
            for one in found
        )
        return [row for rows in of_each for row in rows]

    assert columns(batches) == columns(by_sql)
    assert len(columns(batches)) == 2 * len(ROWS)


# Records with all that one can have: names that come twice, null and empty values, none at all; no timestamp, one before 1970.
WHOLE: list[tuple[Any, ...]] = [
    (b"k", b"one", [("a", b"1"), ("b", None), ("a", b"")], 2, 10, 1_700_000_000_123_999),
    (None, None, [], None, 12, None),
    (b"", b"", None, 0, 13, -1),
    (b"k", b"one", [("", b"\xff"), ("ü", b"2")], 1, 17, 1_000),
]
WHOLE_TYPES = {
    "key": (pa.binary(), "BINARY"),
    "value": (pa.binary(), "BINARY"),
    "headers": (pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])), HEADERS_TYPE),
    "partition": (pa.int32(), "INT"),
    "offset": (pa.int64(), "BIGINT"),
    "timestamp": (pa.timestamp("us", tz="UTC"), "TIMESTAMP"),
}


class WholeRecords:
    """Gives the records one by one, and then all at once: their headers lie anywhere in the column."""

    def read(self, split: Any, committed: OffsetRecord | None) -> Iterator[pa.RecordBatch]:
        columns = zip(*WHOLE, strict=True)
        arrays = [pa.array(values, kind) for values, (kind, _) in zip(columns, WHOLE_TYPES.values(), strict=True)]
        whole = pa.RecordBatch.from_arrays(arrays, names=list(WHOLE_TYPES))
        yield from (whole.slice(at, 1) for at in range(len(WHOLE)))
        yield whole


def test_both_ways_make_the_same_of_headers_and_timestamps(spark: Callable[[], SparkSession]) -> None:
    """Breaks when a header is lost, renamed or moved, a null becomes empty, or the second sum depends on the way."""
    settings = RecordSettings(
        where=None,
        select=("*",),
        key="key",
        value="value",
        headers={},
        timestamp="timestamp",
        partition="partition",
        header_column="headers",
    )
    columns = {name: kind for name, (_, kind) in WHOLE_TYPES.items()}
    scan = PythonScan(settings, WholeRecords(), columns, "offset")
    one = plan(planned_item(source_file("a", 10), [planned_split("a", 0, 10)]))
    direct = scan.direct(one)
    assert direct is not None
    ((split,),) = direct_reading(direct, None, 1).tasks
    straight = list(direct.reader.read(split, None, 1 << 20))
    framed = frame_reading(scan.frame(spark(), one, 1, resumed=True), settings, 1)
    assert not framed.several
    by_sql = [to_batch(batch, (), several=False) for batch in framed.records.toArrow().to_batches()]

    def told(found: list[Batch]) -> list[Any]:
        return [
            (key, value, headers or [], time, partition, batch.positions and batch.positions.at(row), *sums)
            for batch in found
            for row, (key, value, headers, time, partition, *sums) in enumerate(
                zip(
                    batch.records.keys,
                    batch.records.values,
                    batch.records.headers or [[]] * len(batch.splits),
                    batch.records.timestamps_ms or (),
                    batch.records.partitions.tolist() if batch.records.partitions is not None else (),
                    batch.hashes.tolist(),
                    batch.sizes.tolist(),
                    batch.metadata.tolist() if batch.metadata is not None else (),
                    strict=True,
                )
            )
        ]

    sent = told(straight)
    assert sent == told(by_sql)
    times = [1_700_000_000_123, None, -1, 1]
    wanted = [
        (key, value, headers or [], time, ANY_PARTITION if partition is None else partition, offset)
        for (key, value, headers, partition, offset, _), time in zip(WHOLE, times, strict=True)
    ]
    assert [row[:6] for row in sent] == wanted * 2
    hashes = [
        checksum.metadata_hash(record_hash(key, value), headers, time, has_timestamp=True)
        for key, value, headers, time, *_ in wanted
    ]
    assert [row[-1] % checksum.MODULUS for row in sent] == hashes * 2
    assert len(set(hashes)) == len(hashes), "records that differ in headers and timestamp alone have other sums"


def test_a_header_without_a_name_is_a_bad_row(spark: Callable[[], SparkSession]) -> None:
    settings = replace(BARE, headers={}, header_column="array(struct(k AS key, `odd name` AS value))")
    scan = PythonScan(settings, Rows(), COLUMNS)
    assert scan.direct(two_splits()) is None
    framed = frame_reading(scan.frame(spark(), two_splits(), 1, resumed=True), settings, 1)
    batches = [to_batch(batch, ()) for batch in framed.records.toArrow().to_batches()]
    unfit = [text for batch in batches for text in batch.unfit or [None] * len(batch.splits)]
    assert unfit == [None, "a header has no name", None, None, None] * 2


@pytest.mark.parametrize("expression", ["k", "array(n)", "array(struct(k))", "map('a', k)"])
def test_what_is_no_list_of_headers(spark: Callable[[], SparkSession], expression: str) -> None:
    settings = replace(BARE, headers={}, header_column=expression)
    with pytest.raises(SpecError, match=r"record\.headers"):
        frame_reading(PythonScan(settings, Rows(), COLUMNS).frame(spark(), two_splits(), 1, resumed=True), settings, 1)


def test_expressions_are_spark_sql(spark: Callable[[], SparkSession]) -> None:
    """Breaks when a filter, a star or a generator sees other columns than those of the kind."""
    settings = RecordSettings(
        where="n > 1 OR n IS NULL",
        select=("*", "explode(array(1, 2)) AS part"),
        key=None,
        value="to_json(struct(n, part))",
        headers={},
        timestamp=None,
    )
    scan = PythonScan(settings, Rows(), COLUMNS)
    assert scan.direct(two_splits()) is None
    reading = frame_reading(scan.frame(spark(), two_splits(), 1, resumed=True), settings, 1)
    values = [bytes(row.value) for row in reading.records.collect()]
    of_a_split = [b'{"n":%s,"part":%d}' % (n, part) for n in (b"2", b"3", b"null", b"5") for part in (1, 2)]
    assert values == of_a_split * 2


@pytest.mark.parametrize(
    "change",
    [
        {"where": "rand() < 0.5"},
        {"select": ("n", "rand() AS r")},
        {"select": ("n", "explode(array(rand())) AS r")},
        {"value": "CAST(rand() AS STRING)"},
        {"select": ("n", f"CAST(rand() AS BIGINT) AS {SPLIT}")},
    ],
)
def test_what_is_not_deterministic_is_refused(spark: Callable[[], SparkSession], change: dict[str, Any]) -> None:
    """Breaks when a run that resumes makes other rows than those that it counted."""
    records = replace(BARE, **{"key": None, "value": "CAST(n AS STRING)", "headers": {}, **change})
    with pytest.raises(SpecError) as refused:
        frame_reading(PythonScan(records, Rows(), COLUMNS).frame(spark(), two_splits(), 2, resumed=True), records, 2)
    assert refused.value.code in ("not-deterministic", "bad-expression")


def test_a_plan_that_reads_a_split_twice_is_refused(spark: Callable[[], SparkSession]) -> None:
    scan = PythonScan(BARE, Rows(), COLUMNS)
    frame = scan.frame(spark(), two_splits(), 2)
    assert frame.verified(frame.rows)[1] == 2
    with pytest.raises(FatalError, match="Spark would read"):
        frame.verified(frame.rows.union(frame.rows))


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (ChangedError("a: changed", code="changed-while-read", item="a"), ChangedError, "changed-while-read"),
        (FatalError("a: no rows", code="bad-data"), FatalError, "bad-data"),
        (OSError(5, "Input/output error"), TemporaryError, "source-unreadable"),
        (KeyError("a bug"), EosingestError, "bug"),
    ],
)
def test_what_a_reader_raises_in_spark(
    spark: Callable[[], SparkSession], error: Exception, kind: type[EosingestError], code: str
) -> None:
    """Breaks when a source that changed is a bug of ours, or when a split that was torn counts as read."""
    reading = frame_reading(
        PythonScan(BARE, Rows(error), COLUMNS).frame(spark(), two_splits(), 2, resumed=True), BARE, 2
    )
    with pytest.raises(PySparkException) as raised:
        reading.records.collect()
    explained = failures.of_a_run(raised.value, None, lambda: "a", None)
    assert (type(explained), explained.code) == (kind, code)


def fails_at_two(items: Iterable[int]) -> Iterator[int]:
    for item in items:
        if item == 2:
            raise ChangedError("b: changed", code="changed-while-read", hint="run again", item="b")
        yield item


def test_an_error_of_a_task_reaches_the_driver_as_it_was(spark: Callable[[], SparkSession]) -> None:
    """Breaks when an inspection ends with Spark's words for an error, without its code and hint."""
    tasks = tasks_of(spark().sparkContext)
    assert tasks(fails_at_two, [1, 3]) == [1, 3]
    with pytest.raises(ChangedError) as raised:
        tasks(fails_at_two, [1, 2, 3])
    assert (raised.value.code, raised.value.hint, raised.value.item) == ("changed-while-read", "run again", "b")


@pytest.mark.slow
@pytest.mark.parametrize("subject_of", [Ledger, LedgerBySql])
def test_a_reader_that_is_killed(
    servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subject_of: type[Ledger]
) -> None:
    """The process that reads is killed by SIGKILL in the middle of a split: Spark tries again, and the run is exact.

    Breaks when what a reader gave before it died counts as all of its split, or is sent again.
    """
    monkeypatch.setenv("PYTHONPATH", PROCESSES)
    name = f"killed-{subject_of.__name__.lower()}-{tmp_path.name[-4:]}"
    job, subject = Job(tmp_path, servers, name), subject_of(tmp_path)
    subject.create()
    marks = [die_at(tmp_path / item, 40) for item in subject.items()]
    sink = f'bootstrap_servers = "{servers}"\ntopic = "{name}"\ncreate = {{ partitions = 1 }}\n'
    rest = '[transaction]\ntimeout = "10s"\nmax_records = 10\n[spark]\nmaster = "local[2]"\n'
    job.spec.write_text(f'name = "{name}"\n{subject.spec()}\n[sink]\n{sink}{rest}')
    assert_done(job.run(), records_sent=len(subject.rows()))
    assert not any(map(os.path.exists, marks)), "each reader was to die once"
    assert Counter(record.value for record in job.records()) == Counter(subject.rows())
