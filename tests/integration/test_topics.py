"""A topic copied into another one, on a real broker: what read_committed shows of it, once, and every change noticed."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eosingest import broker
from tests.integration.test_verbs import command
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
    topic_exists,
    write_tables,
)
from tests.support.held_runs import run_killed_at, start_held
from tests.support.source_topics import Sent, SourceTopic, copy_job, numbered

# An hour ago: topics keep records for a week, and take none from the future.
NOW_MS = int(time.time()) * 1000 - 3_600_000
# What a copy must keep: order, nulls and empties, names that come twice, times.
ODD = [
    Sent(b"k", b"v", (("a", b"1"), ("b", None), ("a", b""), ("\u00fc", b"\xff\x00")), NOW_MS + 1),
    Sent(b"k", None, (), NOW_MS + 2),  # a tombstone
    Sent(None, b"", (("", b"x"),), NOW_MS + 3),
    Sent(b"", b"\x00", (), NOW_MS + 3),
    Sent(None, None, (("only", None),), NOW_MS),
]


@pytest.fixture
def source(job: Job) -> SourceTopic:
    return SourceTopic(job.servers, f"{job.name}-from")


def copied(job: Job) -> list[tuple[bytes | None, bytes | None]]:
    """Return keys and values in the sink, partition by partition."""
    return [(record.key, record.value) for record in job.records()]


def plain(records: list[Sent]) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in records]


def text_of(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def whole(record: Record) -> tuple[object, ...]:
    return (record.key, record.value, record.headers, record.timestamp_ms)


# ---- what is copied --------------------------------------------------------------------------------------------------


def test_what_read_committed_shows(job: Job, source: SourceTopic) -> None:
    """Aborted transactions, markers in between and at the end; and what comes later is sent alone.

    Breaks when a range is taken to end with a record, aborted records are sent, or anything is sent twice.
    """
    copy_job(job, source, create="{ partitions = 1 }")
    source.write_in_transaction(numbered(0, 10))
    source.write_in_transaction(numbered(500, 510), commit=False)
    source.write(numbered(10, 15))
    source.write_in_transaction(numbered(15, 20))
    source.write_in_transaction(numbered(600, 603), commit=False)
    planned = job.run("plan")
    assert (planned.exit_code, planned.data["items"], planned.data["splits_pending"]) == (0, 1, 1), planned
    assert_done(job.run(), records_sent=20)
    assert copied(job) == plain(numbered(0, 20))

    ends = end_offsets(job.servers, job.name)
    again = job.run()
    assert_done(again, records_sent=0)
    assert end_offsets(job.servers, job.name) == ends
    source.write(numbered(20, 25))
    source.write_in_transaction(numbered(700, 701), commit=False)
    assert_done(job.run(), records_sent=5)
    assert copied(job) == plain(numbered(0, 25))
    status = job.run("status")
    assert (status.exit_code, status.data["records_total"], status.data["splits_done"]) == (0, 25, 2), status
    assert_verified(job)


@pytest.mark.in_turns("one property of a topic each")
def test_a_range_of_nothing_but_aborted_records(job: Job, source: SourceTopic) -> None:
    """Breaks when such a range is never done: it would be read again by every run, or hold the topic up."""
    copy_job(job, source)
    source.write_in_transaction(numbered(0, 5), commit=False)
    assert_done(job.run(), records_sent=0)
    status = job.run("status")
    assert (status.data["splits"], status.data["splits_done"]) == (1, 1)
    source.write(numbered(0, 2))
    assert_done(job.run(), records_sent=2)


@pytest.mark.in_turns("one property of a topic each")
@pytest.mark.slow_cases("by Spark")
@pytest.mark.parametrize("way", ["straight", "by Spark"])
def test_every_part_of_a_record_is_copied(job: Job, source: SourceTopic, way: str) -> None:
    """Breaks when a tombstone becomes an empty value, a null key an empty one, or a header or timestamp is changed or lost."""
    record = "" if way == "straight" else 'key = "nvl2(key, key, NULL)"'
    copy_job(job, source, create="{ partitions = 1 }", record=record)
    source.write(ODD)
    assert_done(job.run(), records_sent=len(ODD))
    assert [whole(found) for found in job.records()] == [
        whole(found) for found in read_committed(job.servers, source.name)
    ]
    assert [whole(found) for found in job.records()] == [(r.key, r.value, list(r.headers), r.timestamp_ms) for r in ODD]
    assert_verified(job)


@pytest.mark.slow
def test_filtered_and_with_another_key(job: Job, source: SourceTopic) -> None:
    """Through Spark SQL, killed in the middle and run again: the position is an offset, whatever `where` leaves out."""
    copy_job(
        job,
        source,
        transform="where = \"CAST(value AS STRING) LIKE '%0'\"",
        record='key = "concat(CAST(partition AS STRING), \'-\', CAST(offset AS STRING))"\ntimestamp = "timestamp"',
        transaction='timeout = "10s"\nmax_records = 3',
        create="{ partitions = 2 }",
    )
    source.write(numbered(0, 200))
    run_killed_at(job, "task-before-commit@3")
    job.run_until_complete()
    assert Counter(copied(job)) == Counter((b"0-%d" % n, b"v%05d" % n) for n in range(0, 200, 10))
    assert_done(job.run(), records_sent=0)


@pytest.mark.in_turns("one property of a topic each")
def test_several_records_of_one(job: Job, source: SourceTopic) -> None:
    """`explode`, killed inside a source record: breaks when its other records are lost or doubled."""
    copy_job(
        job,
        source,
        transform="select = [\"*\", \"explode(array('a', 'b', 'c')) AS part\"]",
        record='value = "concat(CAST(value AS STRING), part)"\nheaders = { h = "part" }',
        transaction='timeout = "10s"\nmax_records = 2',
        create="{ partitions = 1 }",
    )
    source.write(numbered(0, 6))
    run_killed_at(job, "task-before-commit@3")
    job.run_until_complete()
    assert [record.value for record in job.records()] == [
        b"v%05d" % n + p for n in range(6) for p in (b"a", b"b", b"c")
    ]


@pytest.mark.in_turns("one property of a topic each")
def test_a_record_that_the_sink_refuses_is_left_out(job: Job, source: SourceTopic) -> None:
    """As the hint says: by `where`, with --accept-change; what was sent before it is not sent again."""
    create_topic(job.servers, job.name, config={"max.message.bytes": "2000"})
    copy_job(job, source, create="{ partitions = 1 }", transaction='timeout = "10s"\nmax_records = 2')
    source.write(numbered(0, 5))
    source.write([Sent(b"k", b"x" * 3000)])
    source.write(numbered(5, 8))
    assert_refused(job.run(), 7, "record-too-large", "transform.where", "--accept-change")
    assert plain(numbered(0, 5)) == copied(job)
    job.edit_spec("[transform]\n", '[transform]\nwhere = "length(value) < 2000"\n')
    job.run_until_complete("--accept-change")
    assert copied(job) == plain(numbered(0, 8))


@pytest.mark.slow
def test_from_the_tasks_to_spark_in_the_middle_of_a_job(job: Job, source: SourceTopic) -> None:
    """The first records go straight, the others through Spark SQL, from the same offset on: byte for byte one copy."""
    copy_job(job, source, transaction='timeout = "10s"\nmax_records = 2', create="{ partitions = 1 }")
    source.write(ODD)
    source.write_in_transaction(numbered(0, 5))
    run_killed_at(job, "task-before-commit@3")
    assert len(copied(job)) == 4
    job.edit_spec("[record]\n", '[record]\nvalue = "nvl2(value, value, NULL)"\n')
    assert_refused(job.run(), 12, "spec-changed", "record.value", "--accept-change")
    job.run_until_complete("--accept-change")
    assert [whole(found) for found in job.records()] == [
        whole(found) for found in read_committed(job.servers, source.name)
    ]


@pytest.mark.slow
def test_times_from_and_to(job: Job, source: SourceTopic) -> None:
    """Breaks when a range begins or ends elsewhere than Kafka's own look-up by time says, or `from` counts a second time."""
    source.write(
        [record._replace(timestamp_ms=NOW_MS + number * 1000) for number, record in enumerate(numbered(0, 10))]
    )
    times = [f'from = "{text_of(NOW_MS + 2_500)}"', f'to = "{text_of(NOW_MS + 6_000)}"']
    copy_job(job, source, "\n".join(times), create="{ partitions = 1 }")
    assert_done(job.run(), records_sent=3)
    assert copied(job) == plain(numbered(3, 6))
    job.edit_spec("\n".join(times), 'from = "earliest"')
    assert_done(job.run(), records_sent=4)
    assert copied(job) == plain(numbered(3, 10))


@pytest.mark.slow
def test_partitions_that_are_added_and_what_comes_in_mid_run(job: Job, source: SourceTopic) -> None:
    """A run reads up to where the topic ended when it began; the next one goes on there, and begins new partitions."""
    copy_job(job, source, transaction='timeout = "10s"\nmax_records = 4')
    source.write(numbered(0, 12))
    process = start_held(job, "task-before-commit=sleep:3@2")
    source.write(numbered(12, 20))
    source.add_partitions(2)
    source.write(numbered(20, 25), partition=1)
    done = finish(process)
    assert_done(done, records_sent=12)
    assert Counter(copied(job)) == Counter(plain(numbered(0, 12)))
    assert_done(job.run(), records_sent=13)
    assert Counter(copied(job)) == Counter(plain(numbered(0, 25)))


@pytest.mark.slow
def test_a_scope_that_is_half_read_is_read_to_its_end(job: Job, source: SourceTopic) -> None:
    """Killed; then records come. Breaks when the rerun reads up to another end, or beyond what was frozen."""
    copy_job(job, source, transaction='timeout = "10s"\nmax_records = 4', create="{ partitions = 1 }")
    source.write(numbered(0, 12))
    run_killed_at(job, "task-before-commit@2")
    source.write(numbered(12, 20))
    job.edit_spec(f'topic = "{source.name}"', f'topic = "{source.name}"\nto = "2020-01-01T00:00:00Z"')
    done = job.run_until_complete()
    assert copied(job) == plain(numbered(0, 12)), "what was frozen is read, whatever `to` says by now"
    assert [note for note in done.data["notes"] if note.startswith("source.to: ")], done
    assert_done(job.run(), records_sent=0)


@pytest.mark.in_turns("one property of a topic each")
def test_records_without_a_key_keep_their_partition(job: Job) -> None:
    """And so their order, over a kill and over runs; those with a key go where the key says. Breaks when they are spread."""
    source = SourceTopic(job.servers, f"{job.name}-from", partitions=3)
    copy_job(job, source, transaction='timeout = "10s"\nmax_records = 7', create="{ partitions = 3 }")
    for partition in range(3):
        source.write_in_transaction(keyless(partition, 0, 40), partition)
    source.write([Sent(b"k%d" % number, b"with a key") for number in range(12)], partition=1)
    run_killed_at(job, "task-before-commit@3")
    job.run_until_complete()
    for partition in range(3):
        source.write_in_transaction(keyless(partition, 40, 60), partition)
    assert_done(job.run(), records_sent=60)
    assert without_a_key(job) == {number: [sent.value for sent in keyless(number, 0, 60)] for number in range(3)}
    assert len({found.partition for found in job.records() if found.key is not None}) > 1


@pytest.mark.slow
def test_records_without_a_key_through_spark(job: Job) -> None:
    """Filtered, and without their keys: those of a partition stay together there, too."""
    source = SourceTopic(job.servers, f"{job.name}-from", partitions=2)
    where = "where = \"NOT CAST(value AS STRING) LIKE '%3'\""
    copy_job(job, source, transform=where, record='key = "nullif(key, key)"', create="{ partitions = 2 }")
    for partition in range(2):
        source.write([sent._replace(key=b"k") for sent in keyless(partition, 0, 20)], partition)
    assert_done(job.run(), records_sent=36)
    left = {
        number: [sent.value for sent in keyless(number, 0, 20) if not (sent.value or b"").endswith(b"3")]
        for number in range(2)
    }
    assert without_a_key(job) == left


@pytest.mark.in_turns("one property of a topic each")
def test_records_without_a_key_where_the_sink_has_fewer_partitions(job: Job) -> None:
    """They are all there, spread, and the run says so, unless the spec says where they go."""
    source = SourceTopic(job.servers, f"{job.name}-from", partitions=3)
    copy_job(job, source, create="{ partitions = 2 }")
    source.write(keyless(2, 0, 20), partition=2)
    done = job.run()
    assert_done(done, records_sent=20)
    assert f"the source topic has 3 partitions, and {job.name} has 2: records without a key are spread" in done.stderr
    source.write(keyless(2, 20, 30), partition=2)
    again = job.run("run", "--set", "record.partition=partition % 2", "--accept-change")
    assert_done(again, records_sent=10)
    assert "are spread" not in again.stderr


def keyless(partition: int, first: int, end: int) -> list[Sent]:
    return [Sent(None, b"%d-%05d" % (partition, number)) for number in range(first, end)]


def without_a_key(job: Job) -> dict[int, list[bytes | None]]:
    """Return the values in the sink of records without a key, in order, by partition."""
    found: dict[int, list[bytes | None]] = {}
    for record in job.records():
        if record.key is None:
            found.setdefault(record.partition, []).append(record.value)
    return found


@pytest.mark.slow
def test_a_compacted_topic(job: Job, make_compacted: SourceTopic) -> None:
    """Breaks when holes end a read, or the audit takes what compaction removed for lost."""
    source = make_compacted
    copy_job(job, source, create="{ partitions = 1 }")
    for first in range(0, 60, 20):
        source.write([Sent(b"k%d" % (n % 3), b"v%05d" % n) for n in range(first, first + 20)])
    before = read_committed(source.servers, source.name)
    assert_done(job.run())
    sent = copied(job)
    assert sent[-1] == (before[-1].key, before[-1].value)
    assert set(sent) <= {(b"k%d" % (n % 3), b"v%05d" % n) for n in range(60)}
    assert len(sent) == len(set(sent))
    audit = job.run("verify", "--against-source")
    assert audit.data["verdict"] == "inconclusive", audit
    assert "compacted" in audit.text


@pytest.fixture
def make_compacted(job: Job) -> SourceTopic:
    config = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    return SourceTopic(job.servers, f"{job.name}-from", config=config)


@pytest.mark.slow
def test_another_cluster(job: Job, tmp_path: Path) -> None:
    """The source has servers of its own; its topic may have the name that the sink's has."""
    folder = tmp_path / "other"
    other = broker.up(directory=folder)
    try:
        source = SourceTopic(other.bootstrap_servers, job.name)
        source.write(numbered(0, 5))
        copy_job(job, source)
        assert_done(job.run(), records_sent=5)
        assert Counter(copied(job)) == Counter(plain(numbered(0, 5)))
        assert_verified(job)
    finally:
        broker.down(directory=folder, remove_data=True)
    refused = job.run()
    assert refused.exit_code == 5, refused
    assert job.run("status").exit_code == 0, "what is known of the job is told without the source"


# ---- what is refused and noticed -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_sinks_own_topics(job: Job) -> None:
    """Breaks when a run reads what it writes: it would never end, or never be done."""
    source = SourceTopic(job.servers, job.name)
    source.write(numbered(0, 3))
    for servers in ("", f'bootstrap_servers = "{job.servers.replace("127.0.0.1", "localhost")}"'):
        copy_job(job, source, servers)
        assert_refused(job.run(), 2, "source-is-sink", "sink.topic")
    write_tables(job, source='format = "kafka"\ntopic = "eosingest-offsets"')
    offsets = job.run()
    assert (offsets.exit_code, offsets.codes) in ((2, ["source-is-sink"]), (2, ["source-topic-missing"])), offsets
    write_tables(job, source='format = "kafka"\ntopic = "nowhere"')
    assert_refused(job.run(), 2, "source-topic-missing", "nowhere")


@pytest.mark.slow
def test_records_that_retention_took_unread(job: Job, source: SourceTopic) -> None:
    """Between runs, and between a kill and the next run: breaks when a gap is passed over without a word."""
    copy_job(job, source, transaction='timeout = "10s"\nmax_records = 4', create="{ partitions = 1 }")
    source.write(numbered(0, 12))
    source.delete_before(2)
    run_killed_at(job, "task-before-commit@2")
    assert len(copied(job)) == 4
    source.delete_before(6)
    source.write(numbered(12, 14))
    assert_done(job.run_until_complete())
    assert copied(job) == plain(numbered(2, 12)), "what was read may go"
    source.delete_before(13)
    refused = job.run()
    assert_refused(refused, 12, "source-records-deleted", "offset 12:", "--from-scratch")
    assert copied(job) == plain(numbered(2, 12))
    assert_done(job.run("run", "--from-scratch"), records_sent=1)


@pytest.mark.in_turns("one property of a topic each")
def test_a_gap_that_is_accepted(job: Job, source: SourceTopic) -> None:
    """In the middle of a job, and between jobs. Breaks when a record that is left is not sent, or what is missing not told."""
    copy_job(job, source, transaction='timeout = "10s"\nmax_records = 4', create="{ partitions = 1 }")
    source.write(numbered(0, 12))
    run_killed_at(job, "task-before-commit@2")
    source.delete_before(7)
    planned = job.run("plan")
    assert (planned.exit_code, planned.codes) == (12, ["source-records-deleted"]), planned
    assert_refused(job.run(), 12, "source-records-deleted", f"{source.name}-0, offsets 4 to 6", "--accept-gap")
    run_killed_at(job, "driver-after-running", "--accept-gap")
    assert_done(job.run(), records_sent=5)  # what was accepted once stays so
    assert copied(job) == plain([*numbered(0, 4), *numbered(7, 12)])
    assert_done(job.run("run", "--accept-gap"), records_sent=0)

    source.write(numbered(12, 20))
    source.delete_before(20)
    source.write_in_transaction(numbered(20, 22), commit=False)
    assert_refused(job.run(), 12, "source-records-deleted", "offsets 12 to 19")
    assert_done(job.run("run", "--accept-gap"), records_sent=0)
    source.write(numbered(22, 24))
    assert_done(job.run(), records_sent=2)
    assert copied(job) == plain([*numbered(0, 4), *numbered(7, 12), *numbered(22, 24)])
    texts = [f"{source.name}-0, offsets 12 to 19", f"{source.name}-0, offsets 4 to 6"]
    status, audit = job.run("status"), job.run("verify")
    assert [(gap["text"], gap["size"]) for gap in status.data["gaps"]] == list(zip(texts, (8, 3), strict=True)), status
    assert (audit.exit_code, audit.data["gaps"]) == (0, status.data["gaps"]), audit

    assert_done(job.run("run", "--from-scratch"), records_sent=2)
    assert job.run("status").data["gaps"] == []


@pytest.mark.in_turns("one property of a topic each")
def test_the_rest_of_a_record_that_is_gone(job: Job, source: SourceTopic) -> None:
    """Killed inside what `explode` makes of a record, which is then deleted. Breaks when the run waits for it for ever."""
    copy_job(
        job,
        source,
        transform="select = [\"*\", \"explode(array('a', 'b', 'c')) AS part\"]",
        record='value = "concat(CAST(value AS STRING), part)"\nheaders = { h = "part" }',
        transaction='timeout = "10s"\nmax_records = 2',
        create="{ partitions = 1 }",
    )
    source.write(numbered(0, 4))
    run_killed_at(job, "task-before-commit@3")
    source.delete_before(2)
    assert_refused(job.run(), 12, "source-records-deleted", "offset 1:", "--accept-gap")
    assert_done(job.run("run", "--accept-gap"), records_sent=6)
    sent = ["0a", "0b", "0c", "1a", "2a", "2b", "2c", "3a", "3b", "3c"]
    assert [record.value for record in job.records()] == [f"v0000{part}".encode() for part in sent]


def test_nothing_goes_by_itself_from_a_file(job: Job) -> None:
    assert_refused(job.run("run", "--accept-gap"), 2, "no-gaps", "--accept-gap")


@pytest.mark.slow
def test_records_that_are_deleted_while_a_run_has_not_got_there(job: Job, source: SourceTopic) -> None:
    """Breaks when a reader begins at the first record that is left."""
    copy_job(job, source, transaction='timeout = "10s"\nmax_records = 4')
    source.write(numbered(0, 12))
    process = start_held(job, "driver-after-running=sleep:3")
    source.delete_before(5)
    done = finish(process)
    assert (done.exit_code, done.codes) == (12, ["source-records-deleted"]), done
    assert "offsets 0 to 4: deleted" in done.envelope["errors"][0]["message"]
    assert copied(job) == []


@pytest.mark.in_turns("one property of a topic each")
def test_a_topic_that_is_recreated(job: Job, source: SourceTopic) -> None:
    """Between runs and in mid-run. Breaks when offsets of one topic are taken for those of another."""
    copy_job(job, source)
    source.write(numbered(0, 12))
    assert_done(job.run(), records_sent=12)
    source.recreate()
    source.write(numbered(100, 130))
    assert_refused(job.run(), 12, "source-topic-recreated", source.name, "--from-scratch")
    process = start_held(job, "driver-after-running=sleep:4", "--from-scratch")
    source.recreate()
    source.write(numbered(200, 260))
    done = finish(process)
    assert done.exit_code == 12, done
    assert "source-topic-recreated" in done.codes, done
    assert Counter(copied(job)) == Counter(plain(numbered(0, 12)))


@pytest.mark.slow
def test_an_open_transaction_holds_the_end_back(job: Job, source: SourceTopic) -> None:
    """Breaks when a run waits for it, passes over what lies behind it, or says nothing of it."""
    copy_job(job, source, create="{ partitions = 1 }")
    source.write(numbered(0, 3))
    with source.open_transaction(numbered(3, 5)) as producer:
        source.write(numbered(5, 7))
        done = job.run()
        assert_done(done, records_sent=3)
        (note,) = [note for note in done.data["notes"] if "open transaction" in note]
        assert note.startswith(f"{source.name}-0: 4 offsets from 3 on are left for a later run"), note
        assert f"{source.name}-writer" in note
        again = job.run()
        assert_done(again, records_sent=0)
        (note,) = [note for note in again.data["notes"] if "open transaction" in note]
        assert note.startswith("warning: ")
        producer.commit_transaction(20)
    assert_done(job.run(), records_sent=4)
    assert copied(job) == plain(numbered(0, 7))


# ---- looks ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_preview_and_check(job: Job, source: SourceTopic) -> None:
    copy_job(job, source)
    source.write(ODD)
    shown = job.run("preview")
    assert shown.exit_code == 0, shown
    assert "headers ARRAY<STRUCT<key: STRING, value: BINARY>>" in shown.data["schema"].replace("`", "")
    first = shown.data["records"][0]
    assert [name for name, _ in first["headers"]] == ["a", "b", "a", "\u00fc"]
    assert first["timestamp"] == text_of(NOW_MS + 1), first
    checked = job.run("check")
    assert checked.exit_code == 0, checked


@pytest.mark.in_turns("one property of a topic each")
def test_the_sample(job: Job) -> None:
    """Breaks when sample_configs/topic-copy.toml is not what a run takes."""
    text = (Path(__file__).parents[2] / "sample_configs" / "topic-copy.toml").read_text()
    source = SourceTopic(job.servers, f"{job.name}-from", partitions=2)
    source.write(ODD)
    source.write(numbered(0, 5), partition=1)
    names = {"orders-v1": source.name, "orders-v2": job.name, "orders-copy": job.name, "embedded": job.servers}
    for old, new in names.items():
        assert f'"{old}"' in text
        text = text.replace(f'"{old}"', f'"{new}"')
    job.spec.write_text(text)
    assert_done(job.run(), records_sent=len(ODD) + 5)
    assert Counter(map(str, map(whole, job.records()))) == Counter(
        map(str, map(whole, read_committed(job.servers, source.name)))
    )


# ---- init --from -----------------------------------------------------------------------------------------------------


@pytest.mark.in_turns("one property of a topic each")
def test_init_from_a_topic(job: Job) -> None:
    """init --from kafka://…, check, run: each record once, in its partition, with no edit but the cluster's name.

    Breaks when the spec that is written does not run: records older than topics keep them by default, larger ones.
    """
    source = SourceTopic(job.servers, f"{job.name}-from", partitions=3, config={"max.message.bytes": "3000000"})
    old = NOW_MS - 30 * 86_400_000
    for partition in range(3):
        source.write([Sent(None, b'{"id": %d}' % n, (("h", b"x"),), old + n) for n in range(5)], partition)
    source.write([Sent(b"k", b"x" * 2_000_000, (), NOW_MS)], partition=1)
    job.spec.unlink()
    servers = f"127.0.0.1:1,{job.servers}"
    made = command("init", "--from", f"kafka://{servers}/{source.name}", str(job.spec), "--output", "json")
    assert made.exit_code == 0, made
    assert "of 16 records read, the keys are" in " ".join(made.data["notes"])
    copy = f"{source.name}-copy"
    text = job.spec.read_text()
    assert f'bootstrap_servers = "{servers}"' in text
    assert not topic_exists(job.servers, copy), "a look makes no topic"
    job.spec.write_text(text.replace('"embedded"', f'"{job.servers}"') + '\n[spark]\nmaster = "local[2]"\n')
    assert job.run("check").exit_code == 0
    assert_done(job.run(), records_sent=16)
    sent, found = read_committed(job.servers, source.name), read_committed(job.servers, copy)
    assert Counter(map(repr, map(whole, found))) == Counter(map(repr, map(whole, sent)))
    for number in range(3):
        assert [whole(r) for r in found if (r.partition, r.key) == (number, None)] == [
            whole(r) for r in sent if (r.partition, r.key) == (number, None)
        ]
    assert_done(job.run(), records_sent=0)
    assert_verified(job)


@pytest.mark.slow
def test_init_from_a_topic_that_is_not_there(job: Job) -> None:
    """Breaks when a look makes the topic, or a spec is written that cannot run."""
    job.spec.unlink()
    missing = command("init", "--from", f"kafka://{job.servers}/{job.name}-no", str(job.spec), "--output", "json")
    assert_refused(missing, 2, "source-topic-missing", "nothing was written", f"{job.name}-no")
    assert not topic_exists(job.servers, f"{job.name}-no")
    nobody = command("init", "--from", "kafka://127.0.0.1:1/t", str(job.spec), "--output", "json")
    assert_refused(nobody, 5, "broker-unreachable", "nothing was written", "127.0.0.1:1")
    assert not job.spec.exists()
