"""What changes between two runs, or under one: spec, files, topic. Exit 12 and nothing sent, or taken as it should be."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable

import pytest

from eosingest.protocol.offsets.record import RUNNING
from tests.support.builders import place
from tests.support.commands import Done, finish, kill_group
from tests.support.harness import (
    Job,
    assert_done,
    assert_refused,
    edited,
    end_offsets,
    job_state,
    topic_exists,
    wait_for_state,
    write_tables,
)
from tests.support.held_runs import run_killed_at
from tests.support.job_checks import assert_exact, committed_state, write_files

SOURCE = (
    'format = "json"\npath = "data/*.jsonl"\nschema = "n BIGINT, pad STRING"\nsplit_size = "8KiB"\non_change = "error"'
)
TRANSFORM = 'where = "n > -1"\nselect = ["n", "pad"]'
RECORD = 'key = "CAST(n % 10 AS STRING)"\nvalue = "CAST(n AS STRING)"\nheaders = { h = "pad" }'

pytestmark = pytest.mark.timeout(600)


def write_job(job: Job) -> None:
    write_tables(job, source=SOURCE, transform=TRANSFORM, record=RECORD)


def refused_without_a_byte(
    job: Job, code: str, *words: str, arguments: tuple[str, ...] = (), exit_code: int = 12
) -> None:
    """Run: refused with the code and the words, and the topic's high watermarks do not move."""
    before = end_offsets(job.servers, job.name)
    assert_refused(job.run("run", *arguments), exit_code, code, *words)
    assert end_offsets(job.servers, job.name) == before


WAY_OUT = ("nothing was sent", "--from-scratch", "job name")
# (old, new, what the error names): edits that must not pass in the middle of a job.
EDITS = [
    ('where = "n > -1"', 'where = "n > 5"', "transform.where"),
    ('where = "n > -1"\n', "", "transform.where"),
    ('select = ["n", "pad"]', 'select = ["n", "upper(pad) AS pad"]', "transform.select"),
    ("CAST(n % 10 AS STRING)", "CAST(n % 11 AS STRING)", "record.key"),
    ('value = "CAST(n AS STRING)"', "value = \"concat('v', n)\"", "record.value"),
    ('{ h = "pad" }', '{ h = "pad", i = "pad" }', "record.headers"),
    ("[sink]", "[sink]\npartitioner = \"consistent\"", "sink.partitioner"),
    ('schema = "n BIGINT, pad STRING"', 'schema = "n INT, pad STRING"', "source.schema"),
    ('schema = "n BIGINT, pad STRING"', "options = { allowSingleQuotes = false }\nschema = \"n BIGINT, pad STRING\"",
     "source.options"),
]  # fmt: skip
# Pinned for the job's life.
LIFE_EDITS = [
    ('format = "json"', 'root = "data"\nformat = "json"', "source.root"),
    ('format = "json"', 'format = "csv"\noptions = { header = false }', "source.format"),
    ("[sink]", '[sink]\ntransactional_id_prefix = "other."', "sink.transactional_id_prefix"),
]


@pytest.mark.slow
def test_edits_in_the_middle_of_a_job_and_after_it(job: Job) -> None:
    write_job(job)
    job.write_numbers("a.jsonl", range(1000))
    job.write_numbers("b.jsonl", range(1000, 2000))
    good = (job.data / "b.jsonl").read_text()
    lines = good.splitlines(keepends=True)
    (job.data / "b.jsonl").write_text("".join([*lines[:900], '{"n": 1900, "pad"!\n', *lines[901:]]))
    done = job.run()
    assert_refused(done, 7, "corrupt-row", "data/b.jsonl", '"pad"!')
    first = Counter(job.numbers())
    assert set(first.values()) == {1}
    assert set(range(1000)) < first.keys() < set(range(2000)) - {1900}

    for old, new, named in EDITS:
        with edited(job.spec, old, new):
            refused_without_a_byte(job, "spec-changed", named, *WAY_OUT)
    for old, new, named in LIFE_EDITS:
        with edited(job.spec, old, new):
            refused_without_a_byte(job, "pinned", named, *WAY_OUT)
    refused_without_a_byte(
        job, "pinned", "sink.topic", f"{job.name}-2", *WAY_OUT, arguments=("--set", f"sink.topic={job.name}-2")
    )
    assert not topic_exists(job.servers, f"{job.name}-2")
    check_half_done_file_guarded(job, good)
    check_completed_with_the_pinned_split_size(job, good, first)
    check_edits_accepted_when_complete(job)


def check_half_done_file_guarded(job: Job, good: str) -> None:
    """The half-done file may neither vanish, nor change, nor be left alone by min_age behind an exit 0."""
    half = job.data / "b.jsonl"
    aside = job.folder / "b.aside"
    half.rename(aside)
    refused_without_a_byte(job, "source-vanished", "data/b.jsonl", "nothing was sent", "run again")
    shutil.copy(aside, half)
    with edited(half, "xxx", "yyy"):
        refused_without_a_byte(job, "source-changed", "data/b.jsonl", "reingest")
    with edited(half, good[:20], ""):
        refused_without_a_byte(job, "source-changed", "data/b.jsonl", "reingest")
    half.unlink()
    aside.rename(half)
    os.utime(half)
    refused_without_a_byte(
        job, "incomplete", "data/b.jsonl", "source.min_age", arguments=("--set", "source.min_age=1h"), exit_code=3
    )
    half.write_text(good)


def check_completed_with_the_pinned_split_size(job: Job, good: str, first: Counter[int]) -> None:
    """Reingest sends the corrected file as a whole, cut by the pinned size, which is said; the other file is left alone."""
    done = job.run("run", "--set", "source.on_change=reingest", "--set", "source.split_size=4KiB")
    assert_done(done, 1000)
    assert "split_size" in done.stderr
    assert "8192" in done.stderr
    assert Counter(job.numbers()) == first + Counter(range(1000, 2000))
    offsets = job_state(job).offsets.values()
    assert all(offset.done for offset in offsets)
    assert {place(offset)[1] % 8192 for offset in offsets} == {0}
    assert sum(offset.records for offset in offsets) == 2000


def check_edits_accepted_when_complete(job: Job) -> None:
    """A complete job takes another transform, record, schema and split size: for new files only."""
    before = Counter(job.numbers())
    job.write_numbers("c.jsonl", range(2000, 2100))
    job.edit_spec('where = "n > -1"', 'where = "n % 2 = 0"')
    job.edit_spec('value = "CAST(n AS STRING)"', 'value = "CAST(n * 10 AS STRING)"')
    job.edit_spec('schema = "n BIGINT, pad STRING"', 'schema = "n INT, pad STRING"')
    job.edit_spec('split_size = "8KiB"', 'split_size = "3KiB"')
    assert_done(job.run(), 50)
    assert Counter(job.numbers()) == before + Counter(range(20_000, 21_000, 20))
    assert_done(job.run("run", "--set", "source.split_size=5KiB"), 0)


def test_a_file_is_corrected_after_the_rows_that_were_sent(job: Job) -> None:
    """A bad row ends its split: its line is corrected, and the next run sends the rest; what was sent may not change."""
    write_job(job)
    job.write_numbers("a.jsonl", range(100))
    path = job.data / "a.jsonl"
    good = path.read_text()
    path.write_text(good.replace('{"n": 60,', '{"n": 60!'))
    refused = job.run()
    assert_refused(refused, 7, "corrupt-row", "data/a.jsonl", "correct them and run again")
    sent = job.numbers()
    assert sorted(sent) == list(range(60))

    path.write_text(good.replace('{"n": 7,', '{"n": 700,'))
    refused = job.run()
    assert_refused(refused, 12, "source-changed", "data/a.jsonl")
    assert "data/a.jsonl, split at byte 0: gives other rows now" in refused.stderr
    assert job.numbers() == sent
    path.write_text(good.replace('{"n": 60,', '{"n":       60,') + '{"n": 100, "pad": "x"}\n')
    planned = job.run("plan", "--exit-code")
    assert planned.exit_code == 20, planned
    assert "run checks whether that part is unchanged" in planned.stderr
    done = job.run()
    assert_done(done, 41)
    assert "the 60 records sent of it are proven" in done.stderr
    assert sorted(job.numbers()) == list(range(101))
    assert_done(job.run(), 0)
    assert job.run("verify", "--against-source").exit_code == 0


@pytest.mark.slow
def test_files_that_change_after_they_were_sent(job: Job) -> None:
    """Copied: nothing to do. Grown, shrunk, emptied, overwritten: exit 12. Vanished: nothing to do. Reingest: once, whole."""
    write_job(job)
    job.write_numbers("a.jsonl", range(500))
    job.write_numbers("b.jsonl", range(500, 1000))
    assert_done(job.run(), 1000)
    before = end_offsets(job.servers, job.name)

    elsewhere = job.folder.parent / "fresh checkout"
    shutil.copytree(job.folder, elsewhere, copy_function=shutil.copyfile)
    os.utime(elsewhere / "data" / "a.jsonl", (time.time() + 100, time.time() + 100))
    copy = Job(elsewhere, job.servers, job.name)
    write_job(copy)
    done = copy.run()
    assert_done(done, 0)
    assert done.data["splits_planned"] == 0
    assert end_offsets(job.servers, job.name) == before

    path = job.data / "b.jsonl"
    text = path.read_text()
    grown = text + '{"n": 5000, "pad": "x"}\n'
    for other in (grown, text[:-40], "", text.replace('"n": 500', '"n": 900')):
        path.write_text(other)
        refused_without_a_byte(job, "source-changed", "data/b.jsonl", "nothing was sent", "reingest")
    path.write_text(text)
    assert_done(job.run(), 0)
    path.unlink()
    assert_done(job.run(), 0)
    assert end_offsets(job.servers, job.name) == before

    path.write_text(grown)
    assert_done(job.run("run", "--set", "source.on_change=reingest"), 501)
    expected = Counter(range(1000)) + Counter([*range(500, 1000), 5000])
    assert Counter(job.numbers()) == expected
    assert_done(job.run(), 0)
    path.write_text("")
    assert_done(job.run("run", "--set", "source.on_change=reingest"), 0)
    assert Counter(job.numbers()) == expected


@pytest.mark.slow
def test_files_that_change_under_a_run(job: Job) -> None:
    """After the plan: exit 12, never 0. No row of the new content is sent before a run has planned it; then all are, once."""
    write_job(job)
    job.write_numbers("a.jsonl", range(500))
    job.write_numbers("b.jsonl", range(500, 1000))
    b = job.data / "b.jsonl"

    def overwrite() -> None:
        b.write_text(b.read_text().replace('"n": 9', '"n": 8') + '{"n": 1000, "pad": "x"}\n')

    done = run_and_meddle(job, "driver-after-running=sleep:4", RUNNING, 1, overwrite)
    assert done.exit_code == 12, done
    assert_refused(done, 12, "changed-while-read", "data/b.jsonl", "nothing of it was sent; run again")
    sent = Counter(job.numbers())
    assert sent <= Counter(range(500))
    new = Counter(json.loads(line)["n"] for line in b.read_text().splitlines())
    assert_done(job.run(), 500 - sent.total() + new.total())
    assert Counter(job.numbers()) == Counter(range(500)) + new


@pytest.mark.slow
def test_a_file_that_is_half_sent_changes(job: Job) -> None:
    """No run hides it: what is sent of it is no file that ever was. Reingest sends the new content as a whole."""
    write_job(job)
    job.write_numbers("b.jsonl", range(500))
    b = job.data / "b.jsonl"
    run_killed_at(job, "task-after-commit")
    sent = Counter(job.numbers())
    assert 0 < sent.total() < 500
    b.write_text(b.read_text().replace('"n": ', '"n": 9') + '{"n": 1000, "pad": "x"}\n')
    refused_without_a_byte(job, "source-changed", "data/b.jsonl")
    away = b.rename(job.folder / "away")
    job.write_numbers("a.jsonl", range(500, 510))
    refused_without_a_byte(job, "source-vanished", "data/b.jsonl")
    away.rename(b)
    new = Counter(json.loads(line)["n"] for line in b.read_text().splitlines()) + Counter(range(500, 510))
    assert_done(job.run("run", "--set", "source.on_change=reingest"), new.total())
    assert Counter(job.numbers()) == sent + new


def run_and_meddle(
    job: Job, fail_point: str, state: str, run: int, meddle: Callable[[], None], *arguments: str
) -> Done:
    """Run with a fail point that waits; meddle as soon as the control record says that it is there."""
    process = job.popen("run", *arguments, env={"EOSINGEST_FAILPOINTS": fail_point})
    try:
        wait_for_state(job, state, run)
        meddle()
        return finish(process)
    finally:
        kill_group(process)


@pytest.mark.slow
def test_two_dates_young_files_and_late_ones(job: Job) -> None:
    """Each date of one `${param:date}` path is sent once; min_age leaves young files; a late file waits for the next run."""
    write_tables(
        job,
        source=SOURCE.replace("data/*.jsonl", "data/${param:date}/*.jsonl"),
        transform=TRANSFORM,
        record=RECORD,
    )
    for day, first in (("2026-11-20", 0), ("2026-11-21", 1000)):
        (job.data / day).mkdir()
        job.write_numbers(f"{day}/part-0.jsonl", range(first, first + 100))
    long_ago = time.time() - 7200
    first_day = job.data / "2026-11-20"
    os.utime(first_day / "part-0.jsonl", (long_ago, long_ago))
    job.write_numbers("2026-11-20/young.jsonl", range(100, 200))

    def come_late() -> None:
        job.write_numbers("2026-11-20/late.jsonl", range(200, 300))
        os.utime(first_day / "late.jsonl", (long_ago, long_ago))

    arguments = ("--param", "date=2026-11-20", "--set", "source.min_age=1h")
    done = run_and_meddle(job, "driver-after-running=sleep:3", RUNNING, 1, come_late, *arguments)
    assert_done(done, 100)
    assert "min_age" in done.stderr
    assert sorted(job.numbers()) == list(range(100))

    assert_done(job.run("run", "--param", "date=2026-11-21"), 100)
    assert_done(job.run("run", "--param", "date=2026-11-20"), 200)
    assert Counter(job.numbers()) == Counter([*range(300), *range(1000, 1100)])
    for day in ("2026-11-20", "2026-11-21"):
        assert_done(job.run("run", "--param", f"date={day}"), 0)


@pytest.mark.slow
def test_a_spec_may_be_corrected_until_something_is_sent(job: Job) -> None:
    """A first run that sent nothing pins nothing: another topic and filter are accepted."""
    write_job(job)
    job.write_numbers("a.jsonl", range(10))
    wrong_topic = f"{job.name}-wrong"
    wrong = job.spec.read_text()
    job.spec.write_text(wrong.replace(f'topic = "{job.name}"', f'topic = "{wrong_topic}"').replace("n > -1", "m > -1"))
    assert_refused(job.run(), 2, "bad-expression", "transform.where", "`m`", "nothing was sent")
    assert end_offsets(job.servers, wrong_topic) == {0: 0, 1: 0, 2: 0}
    job.spec.write_text(wrong.replace("n > -1", "n > 4"))
    assert_done(job.run(), 5)
    assert sorted(job.numbers()) == [5, 6, 7, 8, 9]
    assert end_offsets(job.servers, wrong_topic) == {0: 0, 1: 0, 2: 0}


@pytest.mark.in_turns("one edit each")
@pytest.mark.slow_cases("lines", "rows")
@pytest.mark.parametrize("job", ["rows", "lines"], indirect=True)
def test_an_edit_that_keeps_length_and_time(job: Job) -> None:
    """Breaks when the rest of a split goes out behind other rows than were sent: nobody sees this edit but the receipt."""
    write_files(job, files=1, rows=8_000)
    job.edit_spec("local[2]", "local[1]")
    job.edit_spec('split_size = "64KiB"', 'split_size = "16MiB"')
    run_killed_at(job, "task-after-commit@1")
    (half,) = committed_state(job).offsets.values()
    assert (place(half)[1], half.done) == (0, False)
    (file,) = job.data.iterdir()
    times, good = file.stat(), file.read_bytes()
    at = good.index(b"1")
    file.write_bytes(good[:at] + b"2" + good[at + 1 :])
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    assert_refused(job.run(), 12, "prefix-changed", f"data/{file.name}, split at byte 0", "receipt", "--from-scratch")
    assert len(job.records()) == half.records

    file.write_bytes(good)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert job.run().exit_code == 0
    assert_exact(job)


@pytest.mark.slow
def test_the_way_out_of_a_first_run_with_the_wrong_schema(job: Job) -> None:
    """Breaks when a file of which half is sent can never be finished under the schema that it needs (D2), or when a change
    that would make something else of what was sent is taken in.
    """
    source = 'format = "csv"\npath = "data/*.csv"\noptions = { header = true }\nschema = "n SMALLINT, t STRING"'
    write_tables(
        job,
        source=source,
        record='value = "concat(n, t)"\nheaders = { h = "t" }',
        transaction='timeout = "10s"\nmax_records = 50',
    )
    numbers = [*range(200), 40_000, *range(201, 300)]
    (job.data / "a.csv").write_text("n,t\n" + "".join(f"{n},x\n" for n in numbers))
    assert_refused(job.run(), 7, "corrupt-row", "a.csv")
    sent = Counter(record.value for record in job.records())
    assert len(sent) == sent.total() == 200

    for old, new in (("[transform]\n", '[transform]\nwhere = "n > 10"\n'), ('h = "t"', 'h = "upper(t)"')):
        with edited(job.spec, old, new):
            refused = job.run("run", "--accept-change")
            assert_refused(refused, 12, "change-not-proven", "data/a.csv, split at byte 0", "nothing was sent")
    with edited(job.spec, "n SMALLINT", "n INT"):
        assert_refused(job.run(), 12, "spec-changed", "source.schema", "--accept-change")
        assert Counter(record.value for record in job.records()) == sent
        done = job.run("run", "--accept-change")
        assert_done(done, 100)
        assert any("proven" in note for note in done.data["notes"]), done
        assert job.run("verify", "--against-source").data["verdict"] == "verified"
    assert Counter(record.value for record in job.records()) == Counter(f"{n}x".encode() for n in numbers)
