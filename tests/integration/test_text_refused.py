"""CSV and JSON that Spark would read as something else: refused before anything is sent, and the way out goes through."""

from __future__ import annotations

import pytest

from tests.support.harness import Job, assert_done, assert_refused, edited, write_tables


@pytest.mark.slow
def test_quotes_and_lines_of_csv(job: Job) -> None:
    """Nothing of any file is sent; with the option that the message names, and the field in one line, each row once."""
    (job.data / "a.csv").write_text('id,note\n1,plain\n2,"he said ""hi"", then left"\n')
    (job.data / "b.csv").write_text('id,note\n3,"hello\nfoo,bar"\n')
    (job.data / "c.csv").write_bytes(b"id,note\n4,caf\xe9\n")
    write_tables(
        job,
        source='format = "csv"\npath = "data"\noptions = { header = true, escape = "\\\\" }',
        record="value = \"concat_ws('|', id, note)\"",
    )
    done = job.run()
    assert_refused(
        done, 7, "bad-data", "nothing of this run was sent",
        "data/a.csv: line 3", "escape = '\"'",
        "data/b.csv: line 2", "does not end in its line",
        "data/c.csv: line 2", "caf\\xe9",
    )  # fmt: skip
    assert job.records() == []
    (job.data / "b.csv").write_text("id,note\n3,hello foo\n")
    (job.data / "c.csv").write_text("id,note\n4,café\n")
    with edited(job.spec, 'escape = "\\\\"', "escape = '\"'"):
        assert_done(job.run(), 4)
    assert sorted(record.value or b"" for record in job.records()) == [
        b"1|plain", b'2|he said "hi", then left', b"3|hello foo", "4|café".encode(),
    ]  # fmt: skip


@pytest.mark.slow
def test_a_json_array(job: Job) -> None:
    (job.data / "a.json").write_text('[\n  {"n": 1},\n  {"n": 2}\n]\n')
    write_tables(
        job, source='format = "json"\npath = "data"\nschema = "n BIGINT"', record='value = "CAST(n AS STRING)"'
    )
    assert_refused(job.run(), 7, "bad-data", "data/a.json: line 1", "JSON array", "jq -c '.[]'")
    assert job.records() == []


@pytest.mark.slow
def test_without_the_inspection(job: Job) -> None:
    """A name that an object has twice is a bad row then, never sent with its last value; the other rows are sent."""
    (job.data / "a.json").write_text('{"n": 1}\n{"n": 2, "n": 3}\n{"n": 4}\n')
    write_tables(
        job,
        source='format = "json"\npath = "data"\nschema = "n BIGINT"',
        record='value = "CAST(n AS STRING)"',
        head=f'on_error = {{ topic = "{job.name}-dead", max = 1, create = {{ partitions = 1 }} }}',
    )
    assert_refused(job.run(), 7, "bad-data", 'line 2: an object has the name "n" twice')
    assert_refused(job.run("check", "--read"), 7, "bad-data", 'line 2: an object has the name "n" twice')
    with edited(job.spec, 'path = "data"', 'path = "data"\ninspect = false'):
        assert job.run("check", "--read").exit_code == 0
        assert_done(job.run(), 2)
    assert sorted(record.value or b"" for record in job.records()) == [b"1", b"4"]
