"""Bad specs, bad rows, bad files, bad topics: one clear message, the documented exit code, nothing lost or sent twice."""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from tests.support.commands import Done
from tests.support.harness import (
    COLD,
    Job,
    assert_done,
    assert_quiet,
    assert_refused,
    assert_verified,
    create_topic,
    edited,
    end_offsets,
    read_committed,
    run_text,
    topic_exists,
    write_tables,
)
from tests.support.kafka_tools import commands_in, run_command

SECRET = "hunter2-secret"
SOURCE = 'format = "json"\npath = "data/*.jsonl"\nschema = "n BIGINT, s STRING"'
RECORD = 'value = "CAST(n AS STRING)"'


def write_json(job: Job, file: str, rows: list[dict[str, object]]) -> None:
    (job.data / file).write_text("".join(json.dumps(row) + "\n" for row in rows))


# ---- no Spark is started for these ------------------------------------------------------------------------------------

# (text in the spec, what it becomes, code, words of the message or hint)
BAD_SPECS = [
    ('[source]', '[source', "spec-syntax", ("spec.toml:3", "not valid TOML")),
    ('format = "json"', 'formt = "json"\nformat = "json"', "spec-invalid", ("source.formt", 'did you mean "format"')),
    ('format = "json"', 'format = "jsn"', "spec-invalid", ("source.format", 'did you mean "json"')),
    ('name = ', 'nmae = ', "spec-invalid", ("nmae", 'did you mean "name"')),
    ("data/*.jsonl", "nowhere/*.jsonl", "path-not-found", ("nowhere/*.jsonl",)),
    ("CAST(n AS STRING)", "CAST(now() AS STRING)", "spec-invalid", ("record.value", "now()", "retry")),
    ("[transform]", "[transform]\nselect = [\"uuid() AS u\"]", "spec-invalid", ("transform.select", "uuid()", "retry")),
    ("[sink]", "[sink.properties]\nacks = 1\n[sink]", "spec-invalid", ("sink.properties", "acks")),
    ("[sink]", "[sink.properties]\n\"sasl.password\" = \"${env:NOT_SET_ANYWHERE}\"\n[sink]", "spec-invalid",
     ("sink.properties.sasl.password", "NOT_SET_ANYWHERE")),
    ("[sink]", f"[sink.properties]\nlinger = [\"{SECRET}\"]\n[sink]", "spec-invalid", ("sink.properties",)),
]  # fmt: skip


@pytest.mark.in_turns("one bad spec each")
@pytest.mark.parametrize(("old", "new", "code", "words"), BAD_SPECS)
def test_bad_specs(job: Job, old: str, new: str, code: str, words: tuple[str, ...]) -> None:
    """Exit 2, naming the key and the way out; no topic is made, no secret is shown."""
    write_json(job, "a.jsonl", [{"n": 1}])
    write_tables(job, source=SOURCE, record=RECORD)
    with edited(job.spec, old, new):
        done = job.run()
    assert_quiet(done)
    assert (done.exit_code, done.envelope["exit_code"]) == (2, 2), done
    said = json.dumps(done.envelope["errors"], ensure_ascii=False).replace('\\"', '"')
    assert len(done.envelope["errors"]) == 1, said
    assert all(word in said for word in words), f"{words} not in {said}"
    assert SECRET not in done.text
    assert done.codes == [code], done.codes
    assert not topic_exists(job.servers, job.name)


def test_unreachable_broker(job: Job) -> None:
    write_json(job, "a.jsonl", [{"n": 1}])
    write_tables(job, source=SOURCE, record=RECORD)
    began = time.monotonic()
    done = job.run("run", "--set", "sink.bootstrap_servers=127.0.0.1:9", env=COLD)
    assert_refused(done, 5, "broker-unreachable", "127.0.0.1:9", "nothing was sent", "run again")
    assert time.monotonic() - began < 15


@pytest.mark.in_turns("one refusal each")
def test_topics_that_cannot_be_used(job: Job) -> None:
    """No sink topic and no `create`; an offsets topic that would lose progress. Nothing is made or written."""
    write_json(job, "a.jsonl", [{"n": 1}])
    write_tables(job, source=SOURCE, record=RECORD, create="")
    assert_refused(job.run(), 7, "topic-missing", job.name, "create = {")
    assert not topic_exists(job.servers, job.name)
    for policy in ("delete", "compact,delete"):
        offsets = f"{job.name}-{policy.replace(',', '-')}"
        create_topic(job.servers, offsets, partitions=5, config={"cleanup.policy": policy})
        done = job.run("run", "--set", f"sink.offsets_topic={offsets}")
        assert_refused(done, 7, "offsets-topic-policy", offsets, "kafka-configs", "cleanup.policy=compact")
        assert set(end_offsets(job.servers, offsets).values()) == {0}
    (command,) = commands_in(done.envelope["errors"][0]["hint"])
    run_command(command, job.servers)
    other = job.run("run", "--set", f"sink.offsets_topic={offsets}", "--set", f"name={job.name}-2")
    assert_refused(other, 7, "topic-missing", job.name)


# ---- Spark starts, and no job ------------------------------------------------------------------------------------------

# What only Spark can tell of an expression.
BAD_EXPRESSIONS = [
    ("[transform]", '[transform]\nselect = ["count(*) AS n"]', "not-narrow", ("aggregate",)),
    ("CAST(n AS STRING)", "CAST(missing AS STRING)", "bad-expression", ("record.value", "missing")),
    ("[record]", '[record]\nkey = "n"', "bad-expression", ("record.key", "bigint", "CAST(n AS STRING)")),
]


@pytest.mark.in_turns("one refusal each")
@pytest.mark.slow_cases("aggregate", "unknown column")
@pytest.mark.parametrize("old, new, code, words", BAD_EXPRESSIONS, ids=["aggregate", "unknown column", "BIGINT key"])
def test_bad_expressions(job: Job, old: str, new: str, code: str, words: tuple[str, ...]) -> None:
    write_json(job, "a.jsonl", [{"n": 1}])
    write_tables(job, source=SOURCE, record=RECORD)
    with edited(job.spec, old, new):
        assert_refused(job.run(), 2, code, *words)
    assert job.records() == []


# ---- bad rows ----------------------------------------------------------------------------------------------------------


def rows(first: int, count: int = 50) -> list[dict[str, object]]:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return [{"n": n, "k": f"key-{n}", "s": "x" * 20, "ts": now} for n in range(first, first + count)]


@pytest.mark.in_turns("one refusal each")
def test_rows_that_cannot_be_sent(job: Job) -> None:
    """A corrupt, a too large, a keyless and a too old row: each named with file, split, row and reason, in one message.

    Everything before them and all other splits are sent, once; running again says the same and sends nothing.
    """
    row = 40
    bad = {
        "corrupt.jsonl": (0, None),
        "large.jsonl": (100, {"s": "y" * 3000}),
        "no key [1].jsonl": (200, {"k": None}),
        "old.jsonl": (300, {"ts": "2020-01-01T00:00:00Z"}),
    }
    for file, (first, change) in bad.items():
        lines = [json.dumps(entry) for entry in rows(first)]
        if change is None:
            lines[row - 1] = '{"n": "not a number", "s": "tail of the corrupt row"}'
        else:
            lines[row - 1] = json.dumps({**rows(first)[row - 1], **change})
        (job.data / file).write_text("\n".join(lines) + "\n")
    write_json(job, "good.jsonl", rows(400))
    write_tables(
        job,
        source='format = "json"\npath = "data"\nschema = "n BIGINT, k STRING, s STRING, ts TIMESTAMP"',
        transform='where = "n >= 0"',
        record='key = "k"\nvalue = "concat(n, s)"\ntimestamp = "ts"',
        sink='properties = { "sasl.password" = "${env:T_SECRET}" }',
        create='{ partitions = 2, config = { "max.message.bytes" = 2000, "cleanup.policy" = "compact,delete",'
        ' "retention.ms" = 86400000 } }',
    )
    expected = Counter(
        f"key-{n}".encode() for first in (0, 100, 200, 300) for n in range(first, first + row - 1)
    ) + Counter(f"key-{n}".encode() for n in range(400, 450))

    done = job.run(env={"T_SECRET": SECRET})
    why = '(column n is BIGINT, and its value is "not a number"): '
    assert_refused(done, 7, done.codes[0], "sent once", "stay as they are", why, "tail of the corrupt row")
    (error,) = done.envelope["errors"]
    reasons = {
        "corrupt.jsonl": "cannot be parsed",
        "large.jsonl": "max.message.bytes is 2000",
        "no key [1].jsonl": "key is null",
        "old.jsonl": "retention.ms",
    }
    for file, reason in reasons.items():
        (line,) = [line for line in error["message"].splitlines() if f"data/{file}, " in line]
        assert f"split at byte 0, row {row}: " in line
        assert reason in line
    assert Counter(record.key for record in job.records()) == expected
    assert SECRET not in done.text

    before = end_offsets(job.servers, job.name)
    again = run_text(job, env={"T_SECRET": SECRET})
    assert again.exit_code == 7, again
    assert_quiet(again)
    assert again.stderr.count("error: ") == 1
    assert again.stderr.count("hint: ") == 1
    assert "data/old.jsonl, split at byte 0, row 40" in again.stderr
    assert SECRET not in again.text
    assert end_offsets(job.servers, job.name) == before


@pytest.mark.in_turns("one refusal each")
def test_corrupt_csv_rows(job: Job) -> None:
    """A bad number, a field too many, a field too few: as corrupt as in JSON, also behind a filter."""
    (job.data / "number.csv").write_text("id,name\n1,a\n2,b\nabc,the bad one\n4,d\n")
    (job.data / "many.csv").write_text("id,name\n11,a\n12,b,too many\n13,c\n")
    (job.data / "few.csv").write_text("id,name\n21,a\n22,b\n23,c\n24\n")
    (job.data / "good.csv").write_text('id,name\n31,"a, b"\n')
    write_tables(
        job,
        source='format = "csv"\npath = "data/*"\nschema = "id BIGINT, name STRING"\noptions = { header = true }',
        transform='where = "id > 0"',
        record="value = \"concat(id, '=', name)\"",
    )
    done = job.run()
    assert_refused(
        done, 7, "corrupt-row",
        "data/number.csv, split at byte 0, row 3: ", "(column id is BIGINT, and its text is abc): abc,the bad one",
        "data/many.csv, split at byte 0, row 2: ", "(it has 3 fields, and there are 2 columns): 12,b,too many",
        "data/few.csv, split at byte 0, row 4: ", "24",
    )  # fmt: skip
    assert Counter(record.value for record in job.records()) == Counter(
        [b"1=a", b"2=b", b"11=a", b"21=a", b"22=b", b"23=c", b"31=a, b"]
    )


# ---- data that fails inside Spark --------------------------------------------------------------------------------------


def at_most_once(job: Job, allowed: set[bytes]) -> Counter[bytes | None]:
    found = Counter(record.value for record in job.records())
    assert set(found) <= allowed
    assert max(found.values(), default=1) == 1
    return found


def fails_and_stays_failed(job: Job, allowed: set[bytes], exit_codes: tuple[int, ...], named: str) -> Done:
    """The run fails with one message that names what is meant, twice, and nothing is sent twice."""
    done = job.run()
    assert done.exit_code in exit_codes, done
    assert_refused(done, done.exit_code, done.codes[0], named, "nothing was sent twice")
    sent = at_most_once(job, allowed)
    again = job.run()
    assert again.exit_code in exit_codes, again
    assert_quiet(again)
    assert sent <= at_most_once(job, allowed)
    return again


@pytest.mark.slow
def test_a_cast_that_fails(job: Job) -> None:
    """ANSI: a bad cast in the value is an error, not a null."""
    write_json(job, "a.jsonl", [{"n": n, "s": str(n)} for n in range(100)])
    write_json(job, "b.jsonl", [{"n": n, "s": "not-a-number" if n == 150 else str(n)} for n in range(100, 200)])
    write_tables(job, source=SOURCE, record='value = "CAST(CAST(s AS INT) AS STRING)"')
    done = job.run()
    assert_refused(done, 7, "bad-data", "CAST_INVALID_INPUT", "not-a-number", "correct the data and run again")
    at_most_once(job, {str(n).encode() for n in range(200)} - {b"150"})


@pytest.mark.slow
def test_truncated_gzip(job: Job) -> None:
    """An end of input that is none: nothing is sent, also not when it is run again."""
    packed = gzip.compress("".join(json.dumps({"n": n, "s": str(n * n)}) + "\n" for n in range(20_000)).encode())
    path = job.data / "cut.jsonl.gz"
    path.write_bytes(packed[: len(packed) // 2])
    write_tables(
        job, source=SOURCE.replace("*.jsonl", "*"), record=RECORD, transaction='timeout = "10s"\nmax_records = 3000'
    )
    for _ in range(2):
        assert_refused(job.run(), 7, "bad-data", "cut.jsonl.gz", "nothing of this run was sent")
    assert job.records() == []
    path.write_bytes(packed)
    assert_done(job.run(), 20_000)


@pytest.mark.slow
@pytest.mark.parametrize("schema", ["", 'schema = "n BIGINT"'], ids=["inferred", "given"])
def test_corrupt_parquet(job: Job, schema: str) -> None:
    """Garbage under a good name, and a file cut short: exit 7 naming the file, whether the schema is given or not."""
    for number in range(3):
        parquet.write_table(pa.table({"n": pa.array([number])}), job.data / f"good {number}.parquet")
    good = (job.data / "good 0.parquet").read_bytes()
    (job.data / "broken.parquet").write_bytes(good[: len(good) // 2])
    write_tables(job, source=f'format = "parquet"\npath = "data"\n{schema}', record=RECORD)
    done = job.run()
    assert_refused(done, 7, done.codes[0], "broken.parquet")
    at_most_once(job, {b"0", b"1", b"2"})
    (job.data / "broken.parquet").unlink()
    assert_done(job.run())
    assert sorted(record.value or b"" for record in job.records()) == [b"0", b"1", b"2"]


@pytest.mark.in_turns("one refusal each")
def test_a_timeout_that_the_brokers_do_not_allow(job: Job) -> None:
    write_json(job, "a.jsonl", [{"n": 1}])
    write_tables(job, source=SOURCE, record=RECORD, transaction='timeout = "20m"')
    hint = "lower transaction.timeout to the brokers' transaction.max.timeout.ms"
    assert_refused(job.run(), 7, "kafka-refused", "INVALID_TRANSACTION_TIMEOUT", hint)


@pytest.mark.slow
def test_corrupt_row_that_is_not_utf8(job: Job) -> None:
    """Breaks when the text of a corrupt row is taken for UTF-8; the rows before it and the other file are sent."""
    (job.data / "latin.jsonl").write_bytes(b'{"n":1,"s":"x"}\n{"n":2,"s":"caf\xe9"}\n')
    write_json(job, "good.jsonl", [{"n": 3, "s": "y"}])
    write_tables(job, source=SOURCE, record=RECORD)
    assert_refused(job.run(), 7, "corrupt-row", "data/latin.jsonl, split at byte 0, row 2: ", "caf\\xe9")
    assert sorted(record.value or b"" for record in job.records()) == [b"1", b"3"]


@pytest.mark.slow
def test_corrupt_row_under_explode(job: Job) -> None:
    """A generator makes no row of a null array, and so none of a corrupt row: it would be lost without a word."""
    (job.data / "tags.jsonl").write_text('{"n":1,"tags":["a","b"]}\n{"n":2,"tags":["c" BROKEN\n{"n":3,"tags":["d"]}\n')
    write_tables(
        job,
        source='format = "json"\npath = "data/*"\nschema = "n BIGINT, tags ARRAY<STRING>"',
        transform='select = ["n", "explode(tags) AS tag"]',
        record='value = "concat(n, tag)"',
        create="{ partitions = 1 }",
    )
    assert_refused(job.run(), 7, "corrupt-row", "data/tags.jsonl", "row 3: ", "BROKEN")
    assert [record.value for record in job.records()] == [b"1a", b"1b"]
    create_topic(job.servers, f"{job.name}-dead")
    job.edit_spec("[source]\n", f'on_error = {{ topic = "{job.name}-dead", max = 1 }}\n[source]\n')
    assert_done(job.run())
    assert [record.value for record in job.records()] == [b"1a", b"1b", b"3d"]
    (letter,) = read_committed(job.servers, f"{job.name}-dead")
    assert letter.value == b'{"n":2,"tags":["c" BROKEN'
    assert_verified(job)
