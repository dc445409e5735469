"""Positions that are no number of rows, where one source row becomes several records (`explode`): killed everywhere, exact.

The positions are the tests' own: offsets with gaps. Rows come as a task reads them itself, from the committed position on and
with an end to each split; or as Spark gives them, from where the run's plan found the position, whatever was sent since.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from eosingest.host import failpoints
from eosingest.kafka.ports import LogRecord, Records
from eosingest.protocol.offsets import record
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.offsets.state import JobState
from eosingest.protocol.plan import PlannedSplit
from eosingest.protocol.task_contract import Batch, Outcome, Signal, SplitEnd, TaskSettings
from eosingest.records import checksum
from eosingest.spark.direct import DirectInputs
from eosingest.spark.positions import OffsetPositions
from tests.support.builders import control_record, place, planned_split, split_id, task_settings
from tests.support.memory_job import KilledError
from tests.support.sources.in_process import JOB, OFFSETS, TOPIC, Kafka, run_task

A, B = 11, 22  # the hashes of two splits
STARTS = {A: 0, B: 100}
# Of each split: the offsets of its source rows, and how many records each makes; none of the one at 4.
MADE = {A: {0: 3, 1: 1, 4: 0, 5: 2, 9: 4}, B: {100: 1, 107: 5}}
POINTS = [name for name in failpoints.NAMES if name.startswith("task-")]

Made = dict[int, int]


def records_of(split: int, made: Made) -> list[tuple[int, bytes]]:
    """Return source row and value of every record of a split."""
    return [(row, f"{STARTS[split]}:{row}:{n}".encode()) for row, count in made.items() for n in range(count)]


def batch(split: int, records: list[tuple[int, bytes]], *, shared: bool = True) -> Batch:
    values: list[bytes | None] = [value for _, value in records]
    hashes = np.array([checksum.record_hash(None, value) for value in values], dtype=np.uint64)
    count = len(records)
    return Batch(
        np.full(count, split, np.int64),
        Records([None] * count, values),
        hashes.view(np.int64),
        np.full(count, 10, np.int64),
        positions=OffsetPositions(np.array([row for row, _ in records], dtype=np.int64), shared),
    )


class Planned(NamedTuple):
    """A planned split with its hash (`direct.DirectSplit`)."""

    key: int
    planned: PlannedSplit


@dataclass
class ReadByTheTask:
    """An input that begins at the committed position, and says where splits end (`task_contract.Inputs`)."""

    made: dict[int, Made]
    batch_rows: int = 3
    shared: bool = True
    early: bool = False  # from the first row on, and without ends: as Spark gives rows in a second attempt
    items: Iterator[Batch | SplitEnd | Signal] = field(default_factory=lambda: iter(()))

    def begin(self, committed: Callable[[PlannedSplit], OffsetRecord | None]) -> None:
        splits = [Planned(key, planned_split("f", STARTS[key])) for key in self.made]
        if self.early:
            self.items = itertools.chain.from_iterable(self.read(split, None, 0) for split in splits)
        else:
            self.items = DirectInputs(self, splits, 0)._items(committed)

    def read(self, split: Planned, committed: OffsetRecord | None, longest: int) -> Iterator[Batch]:
        """Yield the rows of a split (`direct.DirectReader`), those after the committed position where it is given."""
        records = records_of(split.key, self.made[split.key])
        if committed is not None:
            assert isinstance(committed.position, int)
            first = committed.position if committed.row_records is not None else committed.position + 1
            records = [(row, value) for row, value in records if row >= first]
        for at in range(0, len(records), self.batch_rows):
            yield batch(split.key, records[at : at + self.batch_rows], shared=self.shared)

    def get(self, timeout_s: float) -> Batch | SplitEnd | Signal:
        return next(self.items, Signal.END)

    def stop(self) -> None:
        """Nothing: nothing reads on."""


class Job:
    """A run's one task, attempt by attempt, on a Kafka in memory."""

    def __init__(self, max_records: int = 1) -> None:
        self.kafka = Kafka()
        self.kafka.cluster.create_topic(TOPIC, 1, {})
        self.kafka.cluster.create_topic(OFFSETS, 1, {})
        running = control_record(2, started="it", tasks_alive=1)
        self.kafka.cluster.log(OFFSETS, 0).append_plain(
            [LogRecord(-1, record.control_key(JOB), running.encode(), 0)],
        )
        self.settings: TaskSettings = task_settings(
            job=JOB,
            run=2,
            started="it",
            topic=TOPIC,
            offsets_topic=OFFSETS,
            offsets_topic_id=self.kafka.cluster.topic(OFFSETS).topic_id,
            offsets_partition=0,
            splits={key: planned_split("f", start) for key, start in STARTS.items()},
            max_records=max_records,
        )

    def attempt(self, inputs: Any) -> Outcome:
        outcome: Outcome = run_task(self.kafka, self.settings, 0, inputs)
        return outcome

    def values(self) -> list[bytes]:
        return [entry.value or b"" for entry in self.kafka.committed(TOPIC)]

    def offsets(self) -> dict[int, OffsetRecord]:
        """Return the offset records by the split's start."""
        state = JobState(JOB)
        state.fold(self.kafka.committed(OFFSETS))
        return {place(found)[1]: found for found in state.offsets.values()}

    def check(self) -> None:
        """What is committed is a beginning of each split's records, each once and in order, as its offset record says."""
        sent = self.values()
        for split, made in MADE.items():
            records = records_of(split, made)
            mine = [value for value in sent if value.startswith(b"%d:" % STARTS[split])]
            assert mine == [value for _, value in records[: len(mine)]]
            found = self.offsets().get(STARTS[split])
            assert (found.rows if found else 0) == len(mine)
            if found and mine:
                row = records[len(mine) - 1][0]
                before = sum(1 for other, _ in records[: len(mine)] if other == row)
                assert (found.position_kind, found.position, found.row_records) == ("offset", row, before)


@pytest.mark.parametrize("early", [False, True], ids=["by the task", "by Spark"])
@pytest.mark.parametrize("max_records", [1, 2, 4])
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_every_hit_of_every_point(point: str, max_records: int, early: bool) -> None:
    """Breaks when a transaction that ends inside a source row loses or doubles its other records."""
    everything = [value for split, made in MADE.items() for _, value in records_of(split, made)]
    for hit in range(1, 50):
        job = Job(max_records)
        killed = killed_at(point, hit, lambda job=job: job.attempt(ReadByTheTask(MADE, early=early)))
        job.check()
        outcome = job.attempt(ReadByTheTask(MADE, batch_rows=2, early=early))
        assert (outcome.exit_code, outcome.read_all) == (0, True), outcome
        job.check()
        assert job.values() == everything
        assert (outcome.last_split == (split_id("f", 100), 6)) is early
        if not killed:
            assert hit > 1
            return
    raise AssertionError(f"{point} is passed without an end")


def killed_at(point: str, hit: int, run: Callable[[], object]) -> bool:
    """Run until the hit of a fail point kills it; say whether it did."""
    left = hit

    def reached(name: str) -> None:
        nonlocal left
        left -= name == point
        if name == point and left == 0:
            raise KilledError(name)

    failpoints.handle_with(reached)
    try:
        run()
    except KilledError:
        return True
    finally:
        failpoints.handle_with(None)
    return False


def cut(split: int, records: int) -> Job:
    """Make a job that has committed so many records of a split."""
    job = Job()
    assert killed_at("task-after-commit", records, lambda: job.attempt(ReadByTheTask({split: MADE[split]})))
    job.check()
    return job


@pytest.mark.parametrize(
    ("now", "early"),
    [
        *itertools.product([{0: 1, 1: 1, 5: 2}, {1: 1, 5: 2}, {0: 1}], [False, True]),
        ({}, False),  # where nothing comes of the split, and no end, the driver cannot take it as done
    ],
)
def test_a_source_row_that_gives_less_than_was_sent_of_it(now: Made, early: bool) -> None:
    """Breaks when records of the next source row are passed over for those of one that changed, or is gone."""
    job = cut(A, 2)
    before = job.values()
    outcome = job.attempt(ReadByTheTask({A: now, B: MADE[B]}, early=early))
    assert (outcome.exit_code, outcome.code) == (12, "prefix-changed" if len(now) > 1 else "split-shrank")
    assert job.values() == before


def test_a_source_row_that_gives_less_at_the_end_of_the_input() -> None:
    """Breaks when the driver would mark a split whose last source row is not the one that was sent."""
    job = cut(A, 2)
    outcome = job.attempt(ReadByTheTask({A: {0: 1}}, early=True))
    assert (outcome.exit_code, outcome.last_split) == (0, (split_id("f", 0), 1))
    assert job.offsets()[0].rows == 2


def test_what_was_inserted_before_a_position_is_not_sent() -> None:
    """It lies before what is committed: the next run does not see it, and so no retry may, either."""
    job = cut(A, 4)
    assert job.attempt(ReadByTheTask({A: {-1: 2, **MADE[A]}}, early=True)).exit_code == 0
    job.check()


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("back", [5, 4])
def test_positions_that_go_back(shared: bool, back: int) -> None:
    """Breaks when rows are sent that the next run would not find behind its position; a source row's own records may go on."""
    job, other = Job(), Job()
    rows = [batch(A, [(row, b"0:%d" % row)], shared=shared) for row in (3, 5, back)]
    outcome = job.attempt(given(*rows))
    if shared and back == 5:
        assert (outcome.exit_code, len(job.values()), job.offsets()[0].row_records) == (0, 3, 2)
    else:
        assert (outcome.exit_code, outcome.code, len(job.values())) == (7, "row-out-of-place", 2)
    assert other.attempt(given(*rows[:2])).exit_code == 0


def test_whole_source_rows_go_on_behind_the_position() -> None:
    """Breaks when a row that was sent is sent again, one behind it is taken for it, or n is written where there is none."""
    made = {A: dict.fromkeys((0, 3, 4, 8), 1)}
    for early in (False, True):
        for hit in range(1, 5):
            job = Job()
            first = ReadByTheTask(made, shared=False)
            assert killed_at("task-after-commit", hit, lambda job=job, first=first: job.attempt(first))
            found = job.offsets()[0]
            assert (found.position, found.row_records, found.rows) == (list(made[A])[hit - 1], None, hit)
            outcome = job.attempt(ReadByTheTask(made, shared=False, early=early))
            assert (outcome.exit_code, outcome.last_split) == (0, (split_id("f", 0), 4) if early else None)
            assert job.values() == [value for _, value in records_of(A, made[A])]
            assert job.offsets()[0].done is not early


def test_rows_without_a_position_behind_one() -> None:
    """Breaks when rows that nobody can place are counted from anywhere."""
    job = cut(A, 2)
    outcome = job.attempt(given(replace(batch(A, records_of(A, MADE[A])), positions=None)))
    assert (outcome.exit_code, outcome.code, len(job.values())) == (7, "row-out-of-place", 2)


def test_what_was_counted_is_counted_on() -> None:
    """Breaks when a position is taken up within a source row, of which nobody knows how much was sent."""
    job = Job()
    whole = batch(A, records_of(A, MADE[A]))
    assert killed_at("task-after-commit", 2, lambda: job.attempt(given(replace(whole, positions=None))))
    assert killed_at("task-after-commit", 2, lambda: job.attempt(given(whole)))
    found = job.offsets()[0]
    assert (found.position_kind, found.position, found.rows, found.row_records) == ("rows", 4, 4, None)
    assert job.attempt(given(whole)).exit_code == 0
    assert job.values() == [value for _, value in records_of(A, MADE[A])]


def given(*batches: Batch) -> ReadByTheTask:
    """Make an input of these batches, as they are."""
    inputs = ReadByTheTask({})
    inputs.begin = lambda committed: setattr(inputs, "items", iter(batches))  # type: ignore[method-assign]
    return inputs
