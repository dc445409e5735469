"""`eosingest verify` on real topics: clean ones, and ones in which something was planted.

A broker of its own, since records are taken out of its log segments and changed there while it is down (segments.py).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from eosingest import broker
from tests.support.commands import Done
from tests.support.harness import Job, assert_done, assert_quiet, edited, run_text, wait_for
from tests.support.held_runs import run_killed_at, start_held
from tests.support.job_checks import delete_topic, write_files
from tests.support.segments import Edit, drop_indexes, edit_record

Record = tuple[bytes | None, bytes | None]

MakeJob = Callable[[str], Job]
SOURCE = "--against-source"
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of this module's broker."""
    made = tmp_path_factory.mktemp("verify-broker")
    up(made)
    yield made
    broker.down(directory=made, remove_data=True)


def up(folder: Path) -> str:
    properties = {"log.cleaner.backoff.ms": "200", "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}
    return broker.up(directory=folder, properties=properties).bootstrap_servers


@pytest.fixture(scope="module")
def make_job(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> MakeJob:
    def make(name: str) -> Job:
        unique = f"{name}-{uuid.uuid4().hex[:6]}"
        return Job(tmp_path_factory.mktemp("jobs") / unique, up(folder), unique)

    return make


class Sent:
    """A job that is complete, with rows that are equal, and the log of its topic to plant things in."""

    ROWS = 6_000

    def __init__(self, job: Job, folder: Path) -> None:
        self.job = job
        self._folder = folder
        write_files(job, files=2, rows=self.ROWS // 2)
        with (job.data / "part-1.jsonl").open("a") as out:
            out.write('{"n": 7, "pad": ""}\n' * 5)
        assert_done(job.run(), self.ROWS + 5)
        self._kept = job.folder / "kept"

    def plant(self, wanted: Record | None = None, edit: Edit | None = None) -> None:
        """Put the log back as the run left it, and edit one record in it."""
        broker.down(directory=self._folder)
        if not self._kept.exists():
            for log in self._logs():
                shutil.copytree(log, self._kept / log.name)
        for log in self._logs():
            for segment in (self._kept / log.name).glob("*.log"):
                shutil.copy(segment, log / segment.name)
            drop_indexes(log)
        if wanted is not None and edit is not None:
            edit_record(self._folder, self.job.name, wanted, edit)
        assert up(self._folder) == self.job.servers

    def _logs(self) -> list[Path]:
        return [path for path in self._folder.rglob(f"{self.job.name}-[0-9]") if path.is_dir()]


@pytest.fixture(scope="module")
def sent(make_job: MakeJob, folder: Path) -> Sent:
    return Sent(make_job("sent"), folder)


def verified(done: Done, records: int) -> None:
    assert_quiet(done)
    assert (done.exit_code, done.data["verdict"], done.codes) == (0, "verified", []), done
    assert done.data["expected"] == done.data["found"]
    assert done.data["found"]["records"] == records
    assert done.data["findings"] == []
    assert done.data["found_late"]["records"] == 0


def mismatch(done: Done, **counts: int) -> list[dict[str, object]]:
    """Check for exit 4 with these counts and no others; return the findings."""
    assert_quiet(done)
    assert (done.exit_code, done.data["verdict"], done.codes) == (4, "mismatch", ["mismatch"]), done
    found = {kind: done.data[kind] for kind in ("lost", "doubled", "changed", "foreign") if done.data[kind]}
    assert found == counts, done.data
    return list(done.data["findings"])


def inconclusive(done: Done, *texts: str) -> None:
    assert_quiet(done)
    assert (done.exit_code, done.codes) == (7, ["inconclusive"]), done
    assert done.data["verdict"] == "inconclusive"
    message = done.envelope["errors"][0]["message"]
    assert message.startswith("inconclusive: ")
    assert [text for text in texts if text not in message] == [], message


def produce(job: Job, *records: Record, transactional_id: str = "somebody-else") -> None:
    """Write records in a transaction of another program."""
    producer = Producer({"bootstrap.servers": job.servers, "transactional.id": transactional_id})
    producer.init_transactions(30)
    producer.begin_transaction()
    for key, value in records:
        producer.produce(job.name, value, key)
    producer.commit_transaction(30)


def row(number: int) -> Record:
    return str(number % 100).encode(), str(number).encode()


# ---- nothing planted -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_job_with_a_history_is_verified_at_every_stop(make_job: MakeJob) -> None:
    """Breaks when receipts are not counted as far as they go, or when what is sent again is not counted twice."""
    job = make_job("history")
    none = job.run("verify")
    assert (none.exit_code, none.codes) == (10, ["no-such-job"]), none
    write_files(job, files=2, rows=4_000)
    run_killed_at(job, "task-after-commit@1")
    half = job.run("verify", SOURCE)
    assert_quiet(half)
    assert (half.exit_code, half.data["verdict"], half.data["state"]) == (0, "verified", "running"), half
    assert 0 < half.data["found"]["records"] < 8_000, "some of it was committed"
    assert half.data["found"]["records"] == len(job.records())

    job.run_until_complete()
    job.write_numbers("part-2.jsonl", range(8_000, 8_500))
    assert_done(job.run(), 500)
    assert job.run().data["records_sent"] == 0
    verified(job.run("verify"), 8_500)
    text = run_text(job, "verify", SOURCE)
    assert text.exit_code == 0, text
    assert "verified. 8,500 records read" in text.stdout
    assert text.stderr == "note: reading the receipts, then topic and source with Spark\n"


@pytest.mark.slow
def test_what_was_sent_again_counts_twice_and_from_scratch_it_counts_anew(make_job: MakeJob) -> None:
    job = make_job("again")
    job.write_numbers("part-0.jsonl", range(1_000))
    job.write_numbers("part-2.jsonl", range(8_000, 8_500))
    assert_done(job.run(), 1_500)
    job.edit_spec("[record]", 'on_change = "reingest"\n[record]')
    job.write_numbers("part-2.jsonl", range(8_000, 8_900))
    assert_done(job.run(), 900)
    verified(job.run("verify", SOURCE), 2_400)

    assert_done(job.run("run", "--from-scratch"), 1_900)
    done = job.run("verify", SOURCE)
    verified(done, 1_900)
    assert len(job.records()) == 4_300, "what was sent before is still there, and not the job's any more"


@pytest.mark.slow
def test_equal_rows_are_no_doubles(sent: Sent) -> None:
    sent.plant()
    done = sent.job.run("verify", SOURCE)
    verified(done, Sent.ROWS + 5)
    assert done.data["source_splits"] == 4
    assert sum(part["high_watermark"] - part["start"] for part in done.data["partitions"]) > Sent.ROWS


# Small tasks, and a word every moment: what is counted of millions, counted of thousands.
_WATCHED = """
import sys
from eosingest.audit import session
from eosingest.cli.main import main
from eosingest.host import interruptible
session._READ_A_TASK, session._TELL_EVERY_S, interruptible._TICK_S = 300, 0.005, 0.005  # or all is read between two looks
sys.argv[1:1] = ["verify"]
sys.exit(main())
"""


@pytest.mark.slow
def test_how_much_is_read_is_said(sent: Sent) -> None:
    """Breaks when nothing is said for minutes, or what is said to be read is invented: more than there is, or going back."""
    sent.plant()
    done = subprocess.run(
        [sys.executable, "-c", _WATCHED, str(sent.job.spec), SOURCE, "--output", "json"],
        capture_output=True,
        text=True,
        env={**os.environ, "EOSINGEST_PROGRESS_SECONDS": "0"},
        cwd=sent.job.folder,
        timeout=120,
    )
    assert (done.returncode, done.stdout.count("\n")) == (0, 1), done
    partitions = json.loads(done.stdout)["data"]["partitions"]
    offsets = sum(part["high_watermark"] - part["start"] for part in partitions)
    for what, unit, planned in (("topic", "offsets", offsets), ("source", "rows", Sent.ROWS + 5)):
        said = re.findall(rf"^reading the {what}: ([\d,]+) of {planned:,} {unit}", done.stderr, re.MULTILINE)
        counts = [int(number.replace(",", "")) for number in said]
        assert counts == sorted(counts) and counts[-1] <= planned, done.stderr
        assert any(0 < count < planned for count in counts), done.stderr
    assert "again" not in done.stderr


# ---- planted in the log itself -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_record_that_is_lost_is_found(sent: Sent) -> None:
    sent.plant(row(2_500), lambda record: None)
    assert len(sent.job.records()) == Sent.ROWS + 4
    findings = mismatch(sent.job.run("verify"), lost=1)
    assert findings[0]["split"] is None
    (finding,) = mismatch(sent.job.run("verify", SOURCE), lost=1)
    assert finding["split"] == "data/part-0.jsonl, split at byte 65536"
    (example,) = finding["examples"]
    assert example.startswith("row ")


@pytest.mark.slow
def test_one_of_several_equal_records_that_is_lost_is_found(sent: Sent) -> None:
    sent.plant(row(7), lambda record: None)
    (finding,) = mismatch(sent.job.run("verify", SOURCE), lost=1)
    assert "split at byte" in str(finding["split"])


def test_a_changed_byte_is_found(sent: Sent) -> None:
    sent.plant(row(5_999), lambda record: record.replace(b"5999", b"5989"))
    findings = mismatch(sent.job.run("verify"), changed=1)
    assert "--against-source" in str(findings[0]["text"])
    (finding,) = mismatch(sent.job.run("verify", SOURCE), changed=1)
    assert finding["split"] == "data/part-1.jsonl, split at byte 65536"
    row_there, record_there = finding["examples"]
    assert row_there.startswith("row ")
    assert record_there.startswith("partition ")


# ---- other producers -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_other_producers_are_told_from_doubles(make_job: MakeJob) -> None:
    """Breaks when what others write counts as success, or when a record of ours that they write again does not show."""
    job = make_job("others")
    write_files(job, files=1, rows=3_000)
    assert_done(job.run(), 3_000)

    produce(job, (b"k", b"not ours"))
    inconclusive(job.run("verify"), "1 foreign", "somebody-else", "all records of the job are there, once")
    produce(job, row(17))
    (doubled, _) = mismatch(job.run("verify"), doubled=1, foreign=1)
    assert str(doubled["examples"][0]).startswith("partition ")
    (doubled, _) = mismatch(job.run("verify", SOURCE), doubled=1, foreign=1)
    assert doubled["split"] == "data/part-0.jsonl, split at byte 0"

    job.write_numbers("part-1.jsonl", range(3_000, 3_100))
    assert_done(job.run(), 100)
    inconclusive(job.run("verify"), "2 surplus", "somebody-else")
    mismatch(job.run("verify", SOURCE), doubled=1, foreign=1)


@pytest.mark.slow
def test_a_record_doubled_between_two_runs_is_proven_without_the_source(make_job: MakeJob) -> None:
    job = make_job("between")
    write_files(job, files=1, rows=2_000)
    assert_done(job.run(), 2_000)
    produce(job, row(1_999))
    job.write_numbers("part-1.jsonl", range(2_000, 2_100))
    assert_done(job.run(), 100)
    (finding,) = mismatch(job.run("verify"), doubled=1)
    partition, offset = next((r.partition, r.offset) for r in reversed(job.records()) if (r.key, r.value) == row(1_999))
    assert finding["examples"] == [f"partition {partition}, offset {offset:,}"]


@pytest.mark.slow
def test_an_open_transaction_in_the_topic_is_named(sent: Sent) -> None:
    sent.plant()
    producer = Producer({"bootstrap.servers": sent.job.servers, "transactional.id": "holds-it-up"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(sent.job.name, b"value", b"key")
    producer.flush(30)
    done = sent.job.run("verify", "--set", "transaction.timeout=1s")
    producer.abort_transaction(30)
    assert (done.exit_code, done.codes) == (5, ["topic-held-up"]), done
    assert '"holds-it-up"' in done.envelope["errors"][0]["message"]


# ---- what the brokers remove ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_retention_is_inconclusive(make_job: MakeJob) -> None:
    job = make_job("retention")
    write_files(job, files=1, rows=2_000)
    assert_done(job.run(), 2_000)
    admin = AdminClient({"bootstrap.servers": job.servers})
    admin.delete_records([TopicPartition(job.name, 1, 50)])[TopicPartition(job.name, 1, 50)].result(30)
    inconclusive(job.run("verify", SOURCE), "50 lost", "partition 1 begins at offset 50", "retention")

    delete_topic(job.servers, job.name)
    gone = job.run("verify")
    assert (gone.exit_code, gone.codes) == (12, ["topic-recreated"]), gone


@pytest.mark.slow
def test_compaction_is_inconclusive(make_job: MakeJob) -> None:
    job = make_job("compacted")
    compacted = (
        '{ partitions = 1, config = { "cleanup.policy" = "compact", "segment.ms" = "300",'
        ' "min.cleanable.dirty.ratio" = "0.001", "max.compaction.lag.ms" = "500" } }'
    )
    job.spec.write_text(job.spec.read_text().replace("{ partitions = 3 }", compacted))
    write_files(job, files=1, rows=1_000)
    assert_done(job.run(), 1_000)

    def is_compacted() -> bool:
        produce(job, (b"rolls the segment", b""))  # the active one, which is never compacted, if it is old enough
        return len(job.records()) < 1_000

    wait_for(is_compacted, every_s=0.4)
    inconclusive(job.run("verify"), "is compacted (cleanup.policy=compact)")


# ---- several jobs, several days ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_daily_jobs_in_one_topic(make_job: MakeJob) -> None:
    """Breaks when what another job of ours wrote is a foreign record, or its equal row a double (D7)."""
    first, second = make_job("monday"), make_job("tuesday")
    second.edit_spec(f'topic = "{second.name}"', f'topic = "{first.name}"')
    for job, numbers in ((first, range(1_000)), (second, range(900, 2_500))):
        job.write_numbers("a.jsonl", numbers)
        assert_done(job.run(), len(numbers))
    for job, other in ((first, second), (second, first)):
        done = job.run("verify", SOURCE)
        if job is first:
            verified(done, 2_600)
            assert any(other.name in note for note in done.data["notes"]), done
        else:
            verified(done, 1_600)  # its extent begins behind what the other one wrote

    produce(first, (None, b"from somewhere else"))
    inconclusive(first.run("verify"), second.name, "somebody-else")


@pytest.mark.slow
def test_a_job_that_sends_a_day_at_a_time(make_job: MakeJob) -> None:
    """Breaks when the days that `path` does not name now make every audit against the source inconclusive (D8)."""
    job = make_job("days")
    job.edit_spec('path = "data/*.jsonl"', 'path = "data/${param:day}/*.jsonl"')
    for day, numbers in (("20", range(500)), ("21", range(500, 1_500))):
        (job.data / day).mkdir()
        job.write_numbers(f"{day}/a.jsonl", numbers)
        assert_done(job.run("run", "--param", f"day={day}"), len(numbers))
    done = job.run("verify", SOURCE, "--param", "day=20")
    verified(done, 1_500)
    assert any("data/21/a.jsonl" in note and "receipts alone" in note for note in done.data["notes"]), done
    with edited(job.data / "20" / "a.jsonl", '"n": 42,', '"n": 420,'):
        inconclusive(job.run("verify", SOURCE, "--param", "day=20"), "data/20/a.jsonl: changed since it was sent")


# ---- a source or a job that moves ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_that_writes_is_inconclusive_for_now(make_job: MakeJob) -> None:
    job = make_job("live")
    write_files(job, files=2, rows=6_000)
    process = start_held(job, "task-before-commit=sleep:6@2")
    done = job.run("verify")
    assert process.wait(120) == 0
    assert (done.exit_code, done.codes) == (5, ["inconclusive"]), done
    assert done.data["verdict"] == "inconclusive"
    assert "run 1 of job" in done.envelope["errors"][0]["message"]


@pytest.mark.slow
def test_a_source_that_is_not_what_was_sent(sent: Sent) -> None:
    sent.plant()
    job, part = sent.job, sent.job.data / "part-0.jsonl"
    seen = part.stat()
    changed = job.run("verify", SOURCE, "--set", "record.value=upper(pad)")
    assert (changed.exit_code, changed.codes) == (12, ["spec-changed"]), changed
    assert "record.value" in changed.envelope["errors"][0]["message"]
    with edited(part, '"n": 42,', '"n": 420,'):
        inconclusive(job.run("verify", SOURCE), "data/part-0.jsonl: changed since it was sent")
    with edited(part, '"n": 2421,', '"n": 9421,'):  # as long as before, and no newer: only its rows tell
        os.utime(part, ns=(seen.st_atime_ns, seen.st_mtime_ns))
        findings = mismatch(job.run("verify", SOURCE), changed=1)
    os.utime(part, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert [(finding["kind"], finding["split"]) for finding in findings] == [
        ("changed", "data/part-0.jsonl, split at byte 65536"),
        ("unlike", "data/part-0.jsonl, split at byte 65536"),
    ]


MISREADING = """
from eosingest.sources.files.reading.json_decoder import JsonDecoder

rows = JsonDecoder.rows
JsonDecoder.rows = lambda self, lines, **how: rows(self, [line.replace(b'"n": 5,', b'"n": 6,') for line in lines], **how)
"""
OTHERWISE = """
from eosingest.sources.files.reading.audit_json import JsonRows

batch = JsonRows.batch
JsonRows.batch = lambda self, lines: batch(self, [line.replace(b'"n": 5,', b'"n": 6,') for line in lines])
"""


@pytest.mark.slow
@pytest.mark.in_turns("one reader that errs each")
def test_a_row_that_two_readers_read_differently_is_no_loss(make_job: MakeJob) -> None:
    """Breaks when a habit of the other reader is called a loss."""
    job = make_job("differ")
    job.write_numbers("a.jsonl", range(3, 9))
    assert_done(job.run(), 6)
    (job.folder / "sitecustomize.py").write_text(OTHERWISE)
    readers_differ(job.run("verify", SOURCE, env={"PYTHONPATH": str(job.folder)}))


@pytest.mark.slow
@pytest.mark.in_turns("one reader that errs each")
def test_a_value_that_the_reader_of_a_run_misreads_is_found(make_job: MakeJob) -> None:
    """Breaks when the source is read again by the reader that has misread it: it would confirm the wrong value."""
    job = make_job("misread")
    job.write_numbers("a.jsonl", range(3, 9))
    (job.folder / "sitecustomize.py").write_text(MISREADING)
    env = {"PYTHONPATH": str(job.folder)}
    assert_done(job.run(env=env), 6)
    assert sorted(json.loads(record.value or "") for record in job.records()) == [3, 4, 6, 6, 7, 8]

    readers_differ(job.run("verify", SOURCE, env=env))


def readers_differ(done: Done) -> None:
    """Check that the audit finds the third row, which its two readers read differently, and nothing else."""
    assert done.exit_code == 7 and done.data["verdict"] == "inconclusive", done
    assert done.data["source_reader"] == "Python's json module"
    (finding,) = done.data["findings"]
    assert finding["kind"] == "readers-differ" and "the readers differ, first in row 3: " in finding["text"]
