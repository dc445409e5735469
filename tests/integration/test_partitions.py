"""`record.partition`: rows choose their topic partition; one that the topic does not have is found before it is sent."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.support.harness import Job, assert_done, assert_refused, write_tables
from tests.support.job_checks import assert_positions

PARTITIONS = 4


def write_job(job: Job, partition: str, *record: str) -> None:
    write_tables(
        job,
        source='format = "json"\npath = "data"\nschema = "n BIGINT, p INT"\nsplit_size = "64KiB"',
        record="\n".join((f'partition = "{partition}"', 'key = "CAST(n AS STRING)"', *record)),
        create=f"{{ partitions = {PARTITIONS} }}",
    )


def write_rows(job: Job, file: str, rows: dict[int, int | None]) -> None:
    (job.data / file).write_text("".join(json.dumps({"n": n, "p": p}) + "\n" for n, p in rows.items()))


@pytest.mark.slow_cases("each")
@pytest.mark.parametrize("headers", ["", "headers = { h = \"'x'\" }"], ids=["columns", "each"])
def test_rows_choose_their_partition(job: Job, headers: str) -> None:
    """Where a row does not, the partitioner does, as without the key."""
    rows = {n: None if n % 5 == 4 else n % 5 for n in range(8_000)}
    write_job(job, "p", headers)
    write_rows(job, "a.jsonl", rows)
    assert_done(job.run(), 8_000)
    records = job.records()
    assert Counter(int(record.key or b"-1") for record in records) == Counter(rows.keys())
    for record in records:
        given = rows[int(record.key or b"-1")]
        assert given is None or record.partition == given
    assert len({record.partition for record in records if rows[int(record.key or b"-1")] is None}) > 1
    assert_positions(job)
    audit = job.run("verify", "--against-source")
    assert audit.exit_code == 0, audit


@pytest.mark.slow
def test_partitions_that_the_topic_does_not_have(job: Job) -> None:
    """Each is the end of its split, and of no other; -1 is none either, though librdkafka has a meaning for it."""
    write_job(job, "p")
    write_rows(job, "a.jsonl", {n: PARTITIONS if n == 30 else 0 for n in range(50)})
    write_rows(job, "b.jsonl", {n: -1 if n == 70 else 3 for n in range(50, 100)})
    write_rows(job, "c.jsonl", {n: n % 4 for n in range(100, 150)})
    done = job.run()
    assert_refused(
        done, 7, "bad-partition", "the partition is 4, and the topic has 4", "the partition is a negative number"
    )
    assert "data/a.jsonl, split at byte 0, row 31: " in done.text
    assert "data/b.jsonl, split at byte 0, row 21: " in done.text
    sent = Counter(int(record.key or b"-1") for record in job.records())
    assert sent == Counter([*range(30), *range(50, 70), *range(100, 150)])


@pytest.mark.parametrize(
    ("partition", "words"),
    [
        ("'one'", ("record.partition", "string", "CAST")),
        pytest.param("q", ("record.partition", "`q`"), marks=pytest.mark.slow),
        ("rand() * 4", ("record.partition",)),
    ],
)
def test_expressions_that_are_no_partition(job: Job, partition: str, words: tuple[str, ...]) -> None:
    write_job(job, partition)
    write_rows(job, "a.jsonl", {1: 0})
    done = job.run()
    assert done.exit_code == 2, done
    for word in words:
        assert word in done.text, done


@pytest.mark.slow
def test_a_number_that_is_too_large_for_one(job: Job) -> None:
    write_job(job, "n + 4294967296")
    write_rows(job, "a.jsonl", {1: 0})
    assert_refused(job.run(), 7, "bad-data", "CAST_OVERFLOW")
    assert job.records() == []
