"""Rows that cannot be sent, on a real broker: dead letters in the transaction of the rows around them, once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.commands import finish
from tests.support.harness import (
    Job,
    Record,
    assert_done,
    assert_refused,
    assert_verified,
    create_topic,
    end_offsets,
    read_committed,
)
from tests.support.held_runs import run_killed_at, start_held
from tests.support.job_checks import delete_topic, told

_SPEC = """\
name = "{name}"
on_error = {{ topic = "{name}-dead", max = MAX }}
[source]
format = "json"
path = "data/*.jsonl"
schema = "id INT, name STRING"
split_size = "64KiB"
[record]
key = "name"
[sink]
bootstrap_servers = "{servers}"
topic = "{name}"
create = {{ partitions = 2 }}
[transaction]
timeout = "10s"
max_records = 200
[spark]
master = "local[2]"
"""
_ROWS = 1000


def write(job: Job, bad: tuple[int, ...], most: int = 100) -> None:
    """Write the rows of a file, some of which are no JSON, the spec, and the dead-letter topic."""
    job.write_spec(_SPEC.replace("MAX", str(most)))
    (job.folder / "data").mkdir(exist_ok=True)
    lines = [f"{{broken {n}" if n in bad else json.dumps({"id": n, "name": f"n{n % 7}"}) for n in range(_ROWS)]
    (job.folder / "data" / "a.jsonl").write_text("\n".join(lines) + "\n")
    create_topic(job.servers, f"{job.name}-dead")


def letters(job: Job) -> list[Record]:
    return read_committed(job.servers, f"{job.name}-dead")


def ids(job: Job) -> list[int]:
    found: list[Any] = [json.loads(record.value or b"{}")["id"] for record in job.records()]
    return sorted(found)


@pytest.mark.slow
def test_each_row_once_here_or_there_and_nothing_by_a_rerun(job: Job) -> None:
    """Killed in the middle and run again; `status` counts them apart."""
    bad = (1, 17, 500, 998, 999)  # not the first: that would look like the begin of a document of several lines
    write(job, bad)
    run_killed_at(job, "task-before-commit@3")
    done = job.run_until_complete()
    assert ids(job) == [n for n in range(_ROWS) if n not in bad]
    found = sorted(letters(job), key=lambda record: int(told(record)["row"]))
    assert [record.value for record in found] == [b"{broken %d" % n for n in bad]
    first = told(found[0])
    assert (first["job"], first["topic"], first["row"], first["code"]) == (job.name, job.name, "2", "corrupt-row")
    assert "a.jsonl" in first["split"] and "cannot be parsed" in first["reason"]
    assert done.data["dead_letters_total"] == 5 and done.data["complete"] is True
    ends = [end_offsets(job.servers, topic) for topic in (job.name, f"{job.name}-dead")]
    again = job.run()
    assert_done(again, records_sent=0)
    assert again.data["dead_letters"] == 0
    assert ends == [end_offsets(job.servers, topic) for topic in (job.name, f"{job.name}-dead")]
    assert job.run("status").data["dead_letters_total"] == 5
    assert_verified(job)


_LINES = """\
name = "{name}"
on_error = {{ topic = "{name}-dead", max = 10 }}
[source]
format = "text"
path = "data/*.txt"
[record]
value = "value"
[sink]
bootstrap_servers = "{servers}"
topic = "{name}"
create = {{ partitions = 2, config = {{ "max.message.bytes" = 2000 }} }}
"""


@pytest.mark.in_turns("one dead-letter topic each")
def test_records_that_only_the_dead_letter_topic_takes(job: Job) -> None:
    """Breaks when the producer takes none that the sink refuses. What is too long there as well is cut, and says so."""
    job.write_spec(_LINES)
    create_topic(job.servers, f"{job.name}-dead", config={"max.message.bytes": "100000"})
    lines = {3: b"y" * 5000, 70: b"z" * 300_000}
    rows = [lines.get(number, f"line {number}".encode()) for number in range(100)]
    job.folder.joinpath("data").mkdir(exist_ok=True)
    job.folder.joinpath("data", "a.txt").write_bytes(b"\n".join(rows))
    assert_done(job.run(), records_sent=98)
    short, long = sorted(letters(job), key=lambda record: int(told(record)["row"]))
    assert (short.value, told(short)["row"], told(short)["code"]) == (lines[3], "4", "record-too-large")
    assert long.value is not None and lines[70].startswith(long.value) and 90_000 < len(long.value) < 100_000
    assert told(long)["truncated"] == "300000" and "truncated" not in told(short)
    assert_verified(job)


@pytest.mark.slow
@pytest.mark.in_turns("one dead-letter topic each")
@pytest.mark.parametrize("recreated", [False, True])
def test_a_dead_letter_topic_that_is_gone_in_mid_run(job: Job, recreated: bool) -> None:
    """Breaks when only the sink topic is looked at behind the last task: letters that are told as written are gone."""
    write(job, (3, 700))
    process = start_held(job, "driver-before-verdict=sleep:6")
    delete_topic(job.servers, job.dead)
    if recreated:
        create_topic(job.servers, job.dead)
    done = finish(process)
    assert (done.exit_code, done.codes) == (12, ["topic-recreated"]), done
    assert job.dead in done.envelope["errors"][0]["message"]
    again = job.run()
    assert (again.exit_code, again.codes) == (12, ["topic-recreated"]), again


@pytest.mark.in_turns("one dead-letter topic each")
def test_max_is_the_end_and_raising_it_the_way_on(job: Job) -> None:
    write(job, tuple(range(10, 20)), most=4)
    done = job.run()
    assert_refused(done, 7, "corrupt-row", "a.jsonl", "row 15", "on_error.max allows")
    assert len(letters(job)) == 4
    job.edit_spec("max = 4", "max = 10")
    assert_done(job.run())
    assert len(letters(job)) == 10 and ids(job) == [n for n in range(_ROWS) if not 10 <= n < 20]


@pytest.mark.in_turns("one dead-letter topic each")
def test_all_tasks_together_write_more_than_max(job: Job) -> None:
    """Breaks when only a job that lasts a second is checked, between its first and its last record."""
    write(job, tuple(range(10, 13)), most=4)
    (job.data / "b.jsonl").write_bytes((job.data / "a.jsonl").read_bytes())
    done = job.run()
    assert_refused(done, 7, "too-many-dead-letters", "6 rows of this run", "only 4 of 4 were left")
    assert_done(job.run(), records_sent=0)
    assert len(letters(job)) == 6 and len(job.records()) == 2 * (_ROWS - 3)


@pytest.mark.in_turns("one dead-letter topic each")
def test_it_may_be_added_behind_a_bad_row(job: Job) -> None:
    """Not a changed spec: it is in no digest (review A10)."""
    write(job, (700,))
    order = f'on_error = {{ topic = "{job.name}-dead", max = 100 }}\n'
    job.edit_spec(order, "")
    assert_refused(job.run(), 7, "corrupt-row", "row 701")
    job.edit_spec(f'name = "{job.name}"\n', f'name = "{job.name}"\n{order}')
    assert_done(job.run())
    assert [record.value for record in letters(job)] == [b"{broken 700"]
    assert ids(job) == [n for n in range(_ROWS) if n != 700]


@pytest.mark.in_turns("one dead-letter topic each")
def test_a_topic_that_is_not_there(job: Job) -> None:
    write(job, (3,))
    job.edit_spec(f'"{job.name}-dead"', f'"{job.name}-nowhere"')
    assert_refused(job.run(), 7, "topic-missing", f"{job.name}-nowhere", "create = { partitions = 1 }")
    assert job.records() == []
    job.edit_spec("max = 100", "max = 100, create = { partitions = 1 }")
    assert_done(job.run())
    assert [record.value for record in read_committed(job.servers, f"{job.name}-nowhere")] == [b"{broken 3"]


@pytest.mark.in_turns("one dead-letter topic each")
def test_a_compacted_topic_is_refused(job: Job) -> None:
    write(job, (3,))
    create_topic(job.servers, f"{job.name}-compacted", config={"cleanup.policy": "compact"})
    job.edit_spec(f'"{job.name}-dead"', f'"{job.name}-compacted"')
    assert_refused(job.run(), 7, "dead-letter-topic-policy", f"{job.name}-compacted")


@pytest.mark.in_turns("one dead-letter topic each")
def test_another_topic_in_the_middle_of_a_job(job: Job) -> None:
    write(job, (3, 900))
    run_killed_at(job, "task-after-commit@2")
    assert letters(job)
    create_topic(job.servers, f"{job.name}-other")
    job.edit_spec(f'"{job.name}-dead"', f'"{job.name}-other"')
    assert_refused(job.run(), 12, "pinned", f"{job.name}-dead", f"{job.name}-other")


@pytest.mark.in_turns("one dead-letter topic each")
@pytest.mark.parametrize("own", ["sink", "offsets"])
def test_a_topic_of_the_job(job: Job, own: str) -> None:
    write(job, ())
    name = {"sink": job.name, "offsets": "eosingest-offsets"}[own]
    job.edit_spec(f'"{job.name}-dead"', f'"{name}"')
    assert_refused(job.run("check"), 2, "spec-invalid", "on_error.topic")
