"""Every format into Kafka and back: names, cuts, codecs, record columns. One Spark run per format holds many checks."""

from __future__ import annotations

import bz2
import gzip
import json
import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as parquet
import pytest
from kafka.partitioner.default import murmur2

from eosingest.records.checksum import metadata_hash, record_hash
from tests.support.builders import place
from tests.support.harness import (
    Job,
    Record,
    assert_done,
    assert_refused,
    end_offsets,
    job_state,
    write_tables,
)

SPLIT_SIZE = 8192
ODD_NAMES = [
    "sp ace.jsonl", "h#x.jsonl", "p%20q%.jsonl", "a[1].jsonl", "{a}.jsonl", "ünï-e\u0301-😀.jsonl", "k=v.jsonl",
    "q'q\".jsonl", "x, range 0-1, partition values [y].jsonl", "a+b&c;d.jsonl",
]  # fmt: skip


class Row(NamedTuple):
    """A row of the JSON lines test. `millis` is the record's timestamp, None for the time of sending."""

    id: int
    key: str | None
    value: str | None
    note: str | None
    millis: int | None


def make_rows(numbers: Iterable[int], base_ms: int) -> list[Row]:
    return [
        Row(
            number,
            None if number % 7 == 0 else "" if number % 29 == 0 else f"kéy-{number % 500}",
            None if number % 11 == 0 else "" if number % 13 == 0 else f'välue "{number}"\n\t\\',
            None if number % 3 == 0 else "" if number % 17 == 0 else f"nöte-{number}",
            None if number % 5 == 0 else base_ms + number,
        )
        for number in numbers
    ]


def to_line(row: Row) -> bytes:
    time_text = None
    if row.millis is not None:
        moment = datetime.fromtimestamp(row.millis // 1000, UTC)
        time_text = f"{moment:%Y-%m-%dT%H:%M:%S}.{row.millis % 1000:03}Z"
    # Every other row leaves its null fields out: absent and null are the same to Spark.
    fields = {"id": row.id, "k": row.key, "v": row.value, "note": row.note, "ts": time_text}
    kept = {name: value for name, value in fields.items() if value is not None or row.id % 2}
    return json.dumps(kept, ensure_ascii=row.id % 4 == 0).encode()


def write_json_tree(data: Path, base_ms: int) -> dict[str, list[Row]]:
    """Write all the files of the JSON lines test; return the rows by file name."""
    files: dict[str, list[Row]] = {}
    following = iter(range(1, 1_000_000))

    def add(name: str, count: int, form: str = "lines") -> None:
        rows = make_rows((next(following) for _ in range(count)), base_ms)
        separator = b"\r\n" if form == "crlf" else b"\n"
        text = separator.join(map(to_line, rows)) + (b"" if form == "open end" else separator)
        pack = {"gz": gzip.compress, "bz2": bz2.compress}.get(form, bytes)
        path = data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pack(text))
        files[name] = rows

    add("plain.jsonl", 1500)
    add("packed.jsonl.gz", 400, "gz")
    add("packed.jsonl.bz2", 400, "bz2")
    add("crlf.jsonl", 300, "crlf")
    add("open end.jsonl", 3, "open end")
    for name in ODD_NAMES:
        add(name, 5)
    add("o d d/ü[2]/deep {x}.jsonl", 5)
    for number in range(300):
        add(f"small-{number:03}.jsonl", 2)
    (data / "empty.jsonl").touch()
    (data / "blank.jsonl").write_bytes(b"\n\n\n")
    (data / "_hidden.jsonl").write_bytes(to_line(make_rows([999_999], base_ms)[0]))
    (data / ".hidden.jsonl").write_bytes(to_line(make_rows([999_998], base_ms)[0]))
    return files


JSON_SOURCE = f"""\
format = "json"
path = ["data/*", "data/plain.jsonl", "data/o d d/*"]
schema = "id BIGINT, k STRING, v STRING, note STRING, ts TIMESTAMP"
split_size = "{SPLIT_SIZE}B"
"""
JSON_RECORD = """\
key = "k"
value = "v"
timestamp = "ts"
[record.headers]
id = "CAST(id AS STRING)"
note = "note"
raw = "X'00FF80'"
"""


@pytest.mark.slow
def test_json_lines(job: Job) -> None:
    """Odd names, many small files, codecs, keys, tombstones, headers, timestamps, partitions, order, receipts."""
    base_ms = int(time.time() * 1000) - 3_600_000
    files = write_json_tree(job.data, base_ms)
    write_tables(
        job,
        source=JSON_SOURCE,
        transform='where = "id % 10 <> 9"',
        record=JSON_RECORD,
        transaction='timeout = "10s"\nmax_records = 400',
        create="{ partitions = 5 }",
    )
    rows = {row.id: row for named in files.values() for row in named if row.id % 10 != 9}
    started_ms = int(time.time() * 1000)
    done = job.run()
    assert_done(done, len(rows))
    assert done.data["files"] == done.data["files_done"] == len(files) + 2

    records = job.records()
    by_id = {int(header(record, "id") or b""): record for record in records}
    assert len(records) == len(by_id) == len(rows)
    assert by_id.keys() == rows.keys()
    for number, row in rows.items():
        check_record(by_id[number], row, started_ms)
    check_receipts(job, records)
    check_metadata_receipts(job, records, rows)
    check_order(job, files, records)

    before = end_offsets(job.servers, job.name)
    again = job.run()
    assert_done(again, 0)
    assert again.data["splits_planned"] == 0
    assert again.data["records_total"] == len(rows)
    assert end_offsets(job.servers, job.name) == before


def header(record: Record, name: str) -> bytes | None:
    return dict(record.headers)[name]


def check_record(record: Record, row: Row, started_ms: int) -> None:
    """Key, value, headers, timestamp and partition, byte for byte."""
    assert record.key == encoded(row.key)
    assert record.value == encoded(row.value)
    assert [name for name, _ in record.headers] == ["id", "note", "raw"]
    assert header(record, "note") == encoded(row.note)
    assert header(record, "raw") == b"\x00\xff\x80"
    if row.millis is None:
        assert started_ms <= record.timestamp_ms <= time.time() * 1000
    else:
        assert record.timestamp_ms == row.millis
    if record.key is not None:
        assert record.partition == (murmur2(record.key) & 0x7FFFFFFF) % 5


def encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def check_receipts(job: Job, records: list[Record]) -> None:
    """The offset records' counts and checksums are those of the records in the topic."""
    offsets = job_state(job).offsets.values()
    assert all(offset.done for offset in offsets)
    assert sum(offset.records for offset in offsets) == len(records)
    hashes = sum(record_hash(record.key, record.value) for record in records)
    assert sum(offset.checksum for offset in offsets) % 2**64 == hashes % 2**64


def check_metadata_receipts(job: Job, records: list[Record], rows: dict[int, Row]) -> None:
    """So are their sums over headers and timestamps. Where a row has no timestamp of its own, the receipt says so."""
    hashes = sum(
        metadata_hash(
            record_hash(record.key, record.value),
            list(record.headers),
            rows[int(header(record, "id") or b"")].millis,
            has_timestamp=True,
        )
        for record in records
    )
    found = sum(offset.metadata_checksum for offset in job_state(job).offsets.values())
    assert found % 2**64 == hashes % 2**64


def check_order(job: Job, files: dict[str, list[Row]], records: list[Record]) -> None:
    """P2 and P4: split by split the count is the offset record's, and order is kept per topic partition."""
    split_of: dict[int, tuple[str, int]] = {}
    for name, rows in files.items():
        uncut = name.endswith((".gz", ".bz2"))
        step = 2 if name == "crlf.jsonl" else 1
        at = 0
        for row in rows:
            # A line belongs to the split before the byte it begins at, the very first line to the first split.
            split_of[row.id] = (f"data/{name}", 0 if uncut else max(at - 1, 0) // SPLIT_SIZE * SPLIT_SIZE)
            at += len(to_line(row)) + step
    offsets = {place(split): offset for split, offset in job_state(job).offsets.items()}
    counts = Counter(split_of[int(header(record, "id") or b"")] for record in records)
    bz2_splits = {split: offset.records for split, offset in offsets.items() if split[0].endswith(".bz2")}
    assert sum(bz2_splits.values()) == counts["data/packed.jsonl.bz2", 0]
    found = {split: o.records for split, o in offsets.items() if split not in bz2_splits and o.records}
    assert found == {split: n for split, n in counts.items() if not split[0].endswith(".bz2")}
    assert len([split for split in found if split[0] == "data/plain.jsonl"]) > 10
    last: dict[Any, int] = {}
    for record in records:
        number = int(header(record, "id") or b"")
        where = (split_of[number], record.partition)
        assert number > last.get(where, 0), f"{where} has {number} after {last.get(where)}"
        last[where] = number


@pytest.mark.slow
def test_csv_in_hive_folders(job: Job) -> None:
    """Header, quotes, a headers-only file, an inferred schema, folder columns in the value and in a filter that prunes."""
    tree = {
        "day=2026-11-19/c=old/a.csv": 'id,name,amount\n1,"pruned",1.5\n',
        "day=2026-11-20/c=x y/a.csv": 'id,name,amount\n2,"Smith, John",1.5\n3,,\n',
        "day=2026-11-21/c=ü%25/b 1.csv": 'id,name,amount\n4,"a, b, c",-2\n5,plain,1e3',
        "day=2026-11-22/c=z/none.csv": "id,name,amount\n",
        "day=2026-11-22/c=z/zero.csv": "",
    }
    for name, text in tree.items():
        path = job.data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    write_tables(
        job,
        source='format = "csv"\npath = "data"\noptions = { header = true }',
        transform="where = \"day >= DATE'2026-11-20'\"",
        record="key = \"concat_ws('/', day, c)\"",
    )
    assert_done(job.run(), 4)
    found = {json.loads(record.value or b"")["id"]: record for record in job.records()}
    assert {number: json.loads(record.value or b"") for number, record in found.items()} == {
        2: {"id": 2, "name": "Smith, John", "amount": 1.5, "day": "2026-11-20", "c": "x y"},
        3: {"id": 3, "name": None, "amount": None, "day": "2026-11-20", "c": "x y"},
        4: {"id": 4, "name": "a, b, c", "amount": -2.0, "day": "2026-11-21", "c": "ü%"},
        5: {"id": 5, "name": "plain", "amount": 1000.0, "day": "2026-11-21", "c": "ü%"},
    }
    assert {number: record.key for number, record in found.items()} == {
        2: b"2026-11-20/x y", 3: b"2026-11-20/x y", 4: "2026-11-21/ü%".encode(), 5: "2026-11-21/ü%".encode(),
    }  # fmt: skip
    check_receipts(job, job.records())
    assert_done(job.run(), 0)


@pytest.mark.slow
def test_csv_with_a_reordered_header(job: Job) -> None:
    """Columns in another order than the schema's would swap without a word: exit 7 naming the file, and none of it sent."""
    for number in range(3):
        (job.data / f"good{number}.csv").write_text(f"id,a,b\n{number},a{number},b{number}\n")
    (job.data / "other order.csv").write_text("id,b,a\n100,b100,a100\n101,b101,a101\n")
    write_tables(
        job,
        source='format = "csv"\npath = "data/*.csv"\nschema = "id BIGINT, a STRING, b STRING"\noptions = { header = true }',
        record="value = \"concat_ws(' ', CAST(id AS STRING), a, b)\"",
    )
    assert_refused(job.run(), 7, "bad-data", "order.csv")
    good = {f"{n} a{n} b{n}".encode() for n in range(3)}
    sent = Counter(record.value for record in job.records())
    assert set(sent) <= good
    assert max(sent.values(), default=1) == 1
    (job.data / "other order.csv").write_text("id,a,b\n100,a100,b100\n101,a101,b101\n")
    assert_done(job.run(), 5 - len(sent))
    assert Counter(r.value for r in job.records()) == Counter([*good, b"100 a100 b100", b"101 a101 b101"])


@pytest.mark.in_turns("one format each")
def test_json_with_an_inferred_schema(job: Job) -> None:
    """No schema and no value in the spec: null fields are kept, nested ones too; the schema is in the control record."""
    lines = ['{"z": 1, "a": null, "s": {"x": null, "y": [1, null]}}', '{"a": "ü", "z": null}', "", '{"z": 2}']
    (job.data / "a.json").write_text("\n".join(lines))
    write_tables(job, source='format = "json"\npath = "data"')
    assert_done(job.run(), 3)
    assert Counter(record.value for record in job.records()) == Counter(
        text.encode()
        for text in (
            '{"a":null,"s":{"x":null,"y":[1,null]},"z":1}',
            '{"a":"ü","s":null,"z":null}',
            '{"a":null,"s":null,"z":2}',
        )
    )
    control = job_state(job).control
    assert control is not None
    assert control.schema is not None
    assert control.schema == "a STRING,s STRUCT<x: STRING, y: ARRAY<BIGINT>>,z BIGINT"
    check_receipts(job, job.records())


@pytest.mark.in_turns("one format each")
def test_text(job: Job) -> None:
    """Lines as they are: bytes that are no UTF-8, empty lines, CRLF, no newline at the end, tiny splits."""
    crlf = [b"crlf %d " % n + b"x" * (n % 90) for n in range(400)]
    plain = [b"" if n % 50 == 0 else b"plain %d \xff\xfe\x00 %s" % (n, b"y" * (n % 70)) for n in range(400)]
    (job.data / "crlf.txt").write_bytes(b"\r\n".join(crlf))
    (job.data / "plain.txt").write_bytes(b"\n".join(plain) + b"\n")
    (job.data / "one line.txt.gz").write_bytes(gzip.compress("ünï".encode()))
    (job.data / "long.txt").write_bytes(b"z" * 5000 + b"\n" + b"after\n")
    write_tables(job, source='format = "text"\npath = "data/*"\nsplit_size = "1KiB"')
    expected = Counter([*crlf, *plain, "ünï".encode(), b"z" * 5000, b"after"])
    assert_done(job.run(), expected.total())
    records = job.records()
    assert Counter(record.value for record in records) == expected
    assert {record.key for record in records} == {None}
    check_receipts(job, records)
    assert_done(job.run(), 0)


def make_table(first: int, count: int, zone: str | None = "UTC") -> pa.Table:
    numbers = list(range(first, first + count))
    base = datetime(2026, 1, 1, tzinfo=UTC)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "name": pa.array([None if n % 5 == 0 else f"nämé {n}" for n in numbers], pa.string()),
            "raw": pa.array([None if n % 7 == 0 else bytes([n % 256, 0, 255]) for n in numbers], pa.binary()),
            "price": pa.array([Decimal(n) / 100 for n in numbers], pa.decimal128(12, 2)),
            "at": pa.array([base + timedelta(milliseconds=n) for n in numbers], pa.timestamp("us", tz=zone)),
        }
    )


def check_columnar(job: Job, numbers: Iterable[int]) -> None:
    """Every row once, with the right bytes."""
    numbers = list(numbers)
    base_ms = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)
    records = job.records()
    by_id = {int(header(record, "id") or b""): record for record in records}
    assert len(records) == len(numbers)
    assert by_id.keys() == set(numbers)
    for n, record in by_id.items():
        assert record.key == (None if n % 7 == 0 else bytes([n % 256, 0, 255]))
        name = None if n % 5 == 0 else f"nämé {n}"
        value = json.loads(record.value or b"", parse_float=Decimal)
        assert value == {"id": n, "name": name, "price": Decimal(n) / 100}
        assert record.timestamp_ms == base_ms + n
    check_receipts(job, records)


COLUMNAR = {
    "transform": 'where = "id >= 2000"\nselect = ["id", "name", "raw", "price", "at"]',
    "record": 'key = "raw"\nvalue = "to_json(struct(id, name, price))"\ntimestamp = "at"\n'
    'headers = { id = "CAST(id AS STRING)" }',
    "create": '{ partitions = 3, config = { "retention.ms" = -1 } }',
}


@pytest.mark.slow
def test_parquet_with_empty_splits(job: Job) -> None:
    """Most splits hold no row group, and the filter's statistics spare whole files: empty is done all the same."""
    for folder, first, count in [("p=1", 0, 2000), ("p=2", 2000, 3000), ("p=ü 3", 5000, 1000)]:
        (job.data / folder).mkdir()
        parquet.write_table(make_table(first, count), job.data / folder / "part 0.parquet", row_group_size=1500)
    write_tables(job, source='format = "parquet"\npath = "data"\nsplit_size = "2KiB"', **COLUMNAR)
    done = job.run()
    assert_done(done, 4000)
    assert done.data["splits_done"] == done.data["splits_planned"] > 40
    check_columnar(job, range(2000, 6000))
    offsets = job_state(job).offsets.values()
    assert len([offset for offset in offsets if offset.records == 0]) > len(offsets) / 2
    again = job.run()
    assert_done(again, 0)
    assert again.data["splits_planned"] == 0


@pytest.mark.slow
def test_orc(job: Job) -> None:
    """As parquet; one file has no row at all. ORC times have no zone: this machine's must not shine through."""
    orc.write_table(make_table(1500, 2500, None), job.data / "a [x].orc", stripe_size=4096)
    orc.write_table(make_table(4000, 10, None), job.data / "b.orc")
    orc.write_table(make_table(0, 0, None), job.data / "none.orc")
    write_tables(job, source='format = "orc"\npath = "data/*.orc"\nsplit_size = "4KiB"', **COLUMNAR)
    assert_done(job.run(env={"TZ": "America/New_York"}), 2010)
    check_columnar(job, range(2000, 4010))
    assert_done(job.run(), 0)


@pytest.mark.in_turns("one format each")
def test_all_folders_below(job: Job) -> None:
    """Breaks when a folder is left out, or gives a column, or an audit reads other files than the run."""
    write_tables(
        job,
        source='format = "json"\npath = "data"\nrecursive = true',
        record='value = "to_json(struct(*))"',
        create="{ partitions = 1 }",
    )
    rows = []
    for number, name in enumerate(("a.jsonl", "2026/11/24/b.jsonl", "k=7/c.jsonl", "k=7/j=x/d.jsonl", "_old/e.jsonl")):
        file = job.data / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'{{"n":{number}}}\n')
        rows += [f'{{"n":{number}}}'.encode()] * (not name.startswith("_"))
    assert_done(job.run(), 4)
    assert sorted(record.value or b"" for record in job.records()) == rows
    audit = job.run("verify", "--against-source")
    assert audit.exit_code == 0, audit
    (job.data / "2026/12").mkdir()
    (job.data / "2026/12/f.jsonl").write_text('{"n":9}\n')
    assert_done(job.run(), 1)
