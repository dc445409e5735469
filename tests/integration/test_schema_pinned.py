"""An inferred schema in the middle of a job: what later files hold beside it is never dropped."""

from __future__ import annotations

import json

import pytest

from tests.support.harness import Job, assert_done, assert_refused, job_state, write_tables

pytestmark = pytest.mark.slow


def test_a_column_that_comes_in_the_middle_of_a_job(job: Job) -> None:
    """Breaks when what a failed run inferred is pinned for files that it did not know: the new field vanished, exit 0."""
    broken = job.data / "b.jsonl"
    (job.data / "a.jsonl").write_text('{"n":1}\n{"n":2}\n')
    broken.write_text('{"n":3}\n{"n":4\n')
    write_tables(
        job, source='format = "json"\npath = "data"\non_change = "reingest"', record='key = "CAST(n AS STRING)"'
    )
    assert_refused(job.run(), 7, "corrupt-row", "data/b.jsonl, split at byte 0, row 2")
    pinned = job_state(job).settled
    assert pinned is not None
    assert (pinned.schema, bool(pinned.schema_files)) == ("n BIGINT", True)

    broken.write_text('{"n":3}\n{"n":4,"m":"x"}\n')
    (job.data / "c.jsonl").write_text('{"n":5,"m":"y"}\n')
    sent = len(job.records())
    assert_refused(
        job.run(),
        12,
        "schema-outgrown",
        "data/b.jsonl, data/c.jsonl: ",
        "m STRING is new",
        'schema = "n BIGINT,m STRING"',
    )
    assert len(job.records()) == sent

    # Corrected as far as the schema goes, the job goes on, though the list of files is another one.
    broken.write_text('{"n":3}\n{"n":4}\n')
    (job.data / "c.jsonl").rename(job.folder / "later.jsonl")
    (job.data / "d.jsonl").write_text('{"n":6}\n')
    assert_done(job.run())
    (job.folder / "later.jsonl").rename(job.data / "c.jsonl")
    assert_done(job.run(), 1)
    values = {record.key: json.loads(record.value or b"") for record in job.records()}
    assert values == {
        b"1": {"n": 1}, b"2": {"n": 2}, b"3": {"n": 3}, b"4": {"n": 4}, b"5": {"m": "y", "n": 5}, b"6": {"n": 6},
    }  # fmt: skip
