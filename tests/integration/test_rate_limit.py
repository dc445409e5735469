"""`sink.rate_limit` on a real broker: tasks together stay below it, and records are there once as ever."""

from __future__ import annotations

import pytest

from tests.support.harness import BOTH_INPUTS, Job, assert_done
from tests.support.held_runs import run_killed_at

pytestmark = pytest.mark.in_turns("waits for the limit that it measures")

_VALUE_BYTES = 1_000
_COUNT = 600


def write(job: Job) -> None:
    for file in range(4):
        numbers = range(file * _COUNT // 4, (file + 1) * _COUNT // 4)
        job.write_numbers(f"{file}.jsonl", numbers, pad=_VALUE_BYTES)
    if 'format = "json"' in job.spec.read_text():
        job.edit_spec('value = "CAST(n AS STRING)"', f"value = \"rpad(CAST(n AS STRING), {_VALUE_BYTES}, ' ')\"")


@pytest.mark.slow_cases("rows")
@BOTH_INPUTS
def test_a_run_stays_below_the_limit(job: Job) -> None:
    """By the times at which records were made, in windows of two seconds, behind what goes at once; killed in the middle.

    Breaks when each task takes the whole limit, when it is not kept, or when a slow run loses or doubles records.
    """
    write(job)
    limit = ("--max-bytes-per-second", "100kB")
    run_killed_at(job, "task-before-commit@2", *limit, "--set", "transaction.max_records=50")
    done = job.run("run", *limit)
    assert_done(done)
    assert sorted(job.numbers()) == list(range(_COUNT))
    times = sorted(record.timestamp_ms for record in job.records())
    assert done.data["records_sent"] * _VALUE_BYTES / 100_000 <= done.data["seconds"] + 1.5, done.data
    for at in times:
        in_window = sum(at <= other < at + 2000 for other in times)
        assert in_window * _VALUE_BYTES <= 2 * 100_000 + 2 * 50_000 + 20_000, (at - times[0], in_window)


@pytest.mark.parametrize("limit", ["0", "-1", "fast", "10MiB/s"])
def test_what_is_no_limit_is_refused(job: Job, limit: str) -> None:
    refused = job.run("run", "--max-bytes-per-second", limit)
    assert (refused.exit_code, refused.codes) == (2, ["spec-invalid"]) and "sink.rate_limit" in refused.text, refused
