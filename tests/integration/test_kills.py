"""Kill -9 at named and at random moments, then run again: each record once, in order, positions as written (P1-P5)."""

from __future__ import annotations

import os
import random
import time

import pytest

from eosingest.host import failpoints
from tests.support.commands import kill_group
from tests.support.harness import BOTH_INPUTS, Job, number_of, topic_exists, wait_for
from tests.support.held_runs import Held, run_killed_at
from tests.support.job_checks import (
    assert_exact,
    assert_positions,
    committed_state,
    concurrent_reader,
    high_watermarks,
    open_transactions,
    write_files,
)

CHAINS = {
    "before the first commit": ("task-before-init", "task-after-init", "task-after-check", "task-after-begin@2"),
    "around commits": ("task-after-produce@3", "task-before-offsets@2", "task-before-commit@2", "task-after-commit@2"),
    "driver": (
        "driver-after-claim",
        "driver-after-fence",
        "driver-before-running",
        "driver-after-running",
        "task-at-end",
        "driver-before-verdict",
        "driver-after-settling",
        "driver-after-verdict",
    ),
}


def test_the_chains_name_every_fail_point() -> None:
    """Breaks when a new fail point is not killed at."""
    killed_at = {point.partition("@")[0] for chain in CHAINS.values() for point in chain}
    assert killed_at == set(failpoints.NAMES)


@pytest.mark.slow
@pytest.mark.in_turns("one fail point each")
@BOTH_INPUTS
@pytest.mark.parametrize("chain", CHAINS)
def test_killed_at_named_points(job: Job, chain: str) -> None:
    """Breaks when progress is read to the last stable offset, when earlier task ids are not fenced before it is read, when
    offset records are not in the records' transaction, or when a split's position and rows part."""
    write_files(job, files=3, rows=12_000)
    for index, point in enumerate(CHAINS[chain]):
        if point.startswith("driver"):  # some more to send: a killed driver may have left nothing
            job.write_numbers(f"part-{index + 3}.jsonl", range(50_000 + index * 100, 50_000 + (index + 1) * 100))
        run_killed_at(job, point)
    assert_positions(job)

    done = job.run()

    assert done.exit_code == 0, done
    assert_exact(job)
    assert_positions(job)
    assert all(offset.done for offset in committed_state(job).offsets.values())
    assert open_transactions(job) == []
    if chain == "driver":  # the last kill came after the verdict
        assert done.data["records_sent"] == 0


@pytest.mark.slow
@BOTH_INPUTS
def test_killed_at_random_moments(job: Job) -> None:
    """Breaks as the named moments do, and when a reader sees a record twice, or one that is not there later (P3).

    EOSINGEST_TEST_SEED repeats a sequence of moments.
    """
    seed = int(os.environ.get("EOSINGEST_TEST_SEED", random.randrange(10**6)))
    print(f"EOSINGEST_TEST_SEED={seed}")
    chance = random.Random(seed)
    write_files(job, files=3, rows=30_000)
    job.edit_spec("max_records = 2000", "max_records = 500")
    _kill_after(job, 0.5 + 1.5 * chance.random())
    _kill_once_there_is_a_topic(job, chance.random())
    with concurrent_reader(job.servers, job.name) as seen:
        for _ in range(3):
            _kill_while_sending(job, 0.8 * chance.random())

        done = job.run_until_complete()

        records = job.records()
        wait_for(lambda: len(seen) >= len(records))
    assert_exact(job)
    assert_positions(job)
    assert sorted(seen) == [(record.partition, record.offset, number_of(record.value)) for record in records]
    assert done.data["records_total"] == len(records)


def _kill_after(job: Job, delay_s: float) -> None:
    process = job.popen()
    time.sleep(delay_s)
    kill_group(process)
    process.communicate()


def _kill_once_there_is_a_topic(job: Job, delay_s: float) -> None:
    process = job.popen()
    wait_for(lambda: topic_exists(job.servers, job.name))
    time.sleep(delay_s)
    kill_group(process)
    process.communicate()


def _kill_while_sending(job: Job, delay_s: float) -> None:
    """Kill a run some time after it has begun to send."""
    before = high_watermarks(job.servers, job.name)
    process = job.popen()
    wait_for(lambda: high_watermarks(job.servers, job.name) != before or process.poll() is not None)
    time.sleep(delay_s)
    kill_group(process)
    process.communicate()
    print(f"killed {delay_s:.3f} s after the first record: {process.returncode}")


@pytest.mark.slow_cases("rows")
@BOTH_INPUTS
def test_workers_killed_in_one_run(job: Job) -> None:
    """Breaks when a task's second attempt sends what the first one committed, or when the worker's end ends the run."""
    write_files(job, files=3, rows=12_000)
    points = ("task-after-produce=kill@2", "task-before-commit=kill@2", "task-after-commit=kill@3")
    held = Held(job, ",".join(points))

    done = job.run(env=held.env)

    assert held.reached(), "the workers were not killed at every point"
    assert done.exit_code == 0, done
    assert done.data["run"] == 1
    assert_exact(job)
    assert_positions(job)
    assert open_transactions(job) == []
