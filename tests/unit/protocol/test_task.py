"""The heart of the protocol, step by step: what a task asks of Kafka, in which order, and what it makes of each answer.

Kafka is a scripted recorder here: it answers as told and writes down what it was asked, so that orders and numbers can be
looked at. That the real Kafka answers so is for tests/integration/test_contracts.py and the chaos tests.
"""

from __future__ import annotations

import itertools
import json
import pickle
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from eosingest.errors import ChangedError
from eosingest.kafka.ports import ANY_PARTITION, FailureKind, KafkaFailure, LogRecord, Records
from eosingest.protocol.offsets import record
from eosingest.protocol.offsets.record import Claim, OffsetRecord
from eosingest.protocol.offsets.state import JobState
from eosingest.protocol.plan import PlannedSplit
from eosingest.protocol.source import PositionKind
from eosingest.protocol.task import AttemptLostError, Batch, Outcome, Signal, SplitEnd, Task, TaskSettings
from eosingest.protocol.task_contract import DeadLetterSettings
from eosingest.protocol.verdict import JobResult, proven_done
from eosingest.records import checksum
from eosingest.records.limits import TopicLimits
from eosingest.sources.files.positions import BytePositions
from eosingest.sources.topics.ranges import RangeSplit
from eosingest.spark.positions import OffsetPositions
from tests.support.builders import (
    bad_row,
    by_split,
    control_record,
    fingerprint,
    last_split,
    offset_record,
    place,
    plan,
    planned_item,
    planned_split,
    source_file,
    split_id,
    task_settings,
)
from tests.support.builders import outcome as ended

JOB, RUN, STARTED, NUMBER, ATTEMPT = "job", 5, "this run", 3, 70
NAMED: dict[str, Any] = {"job": JOB, "run": RUN, "started": STARTED}  # what an outcome says of its run
CONTENT = fingerprint(300)
A, B, C = 111, -222, 333  # the hashes of three splits of one file, at bytes 0, 100 and 200
STARTS = {A: 0, B: 100, C: 200}

FENCED = KafkaFailure(FailureKind.FENCED, "_FENCED", "fenced by a newer instance")
UNCERTAIN = KafkaFailure(FailureKind.UNCERTAIN, "_TIMED_OUT", "no answer")
REFUSED = KafkaFailure(FailureKind.REFUSED, "TOPIC_AUTHORIZATION_FAILED", "no right to write")


DEAD = DeadLetterSettings("dead", 1_000_000, allowed=100, left=100)


def through(failure: KafkaFailure) -> Callable[[Producer], None]:
    """A commit that goes through, and whose answer is lost."""

    def act(producer: Producer) -> None:
        producer.take_over()
        raise failure

    return act


@dataclass
class World:
    """Clock, log, script and protocol of all calls. `script` says, per operation, what its next calls do: None succeeds."""

    calls: list[str] = field(default_factory=list)
    log: list[LogRecord] = field(default_factory=list)
    sent: list[bytes | None] = field(default_factory=list)  # values of committed records
    letters: list[tuple[bytes | None, dict[str, str]]] = field(
        default_factory=list
    )  # values, headers of committed ones
    partitions: list[int | None] = field(default_factory=list)  # of all records that were handed over
    transactions: list[list[bytes | None]] = field(default_factory=list)
    script: dict[str, deque[Any]] = field(default_factory=dict)
    time: float = 1000.0
    undecided_from: int | None = None
    offsets_topic_id: str = "id-1"
    producers: list[Producer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.write_control()

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.time += seconds

    def will(self, operation: str, *actions: Any) -> None:
        self.script.setdefault(operation, deque()).extend(actions)

    def did(self, operation: str, producer: Producer | None = None) -> None:
        self.calls.append(operation)
        action = self.script[operation].popleft() if self.script.get(operation) else None
        if isinstance(action, BaseException):
            raise action
        if action is not None:
            action(producer)

    def append(self, key: bytes, value: bytes | None) -> None:
        self.log.append(LogRecord(len(self.log), key, value))

    def write_control(self, **changes: Any) -> None:
        control = control_record(RUN, record.RUNNING, started=STARTED, tasks_alive=8, host="other-host")
        self.append(record.control_key(JOB), replace(control, **changes).encode())

    def write_run(self, run: int, *, ended: bool) -> None:
        mine = record.RunRecord(run, "some run", ended)
        self.append(mine.key(JOB), mine.encode())

    def write_claim(self, attempt: int, *, run: int = RUN, started: str = STARTED, task: int = NUMBER) -> None:
        self.append(record.claim_key(JOB, task), Claim(run, started, attempt).encode())

    def write_offset(self, offset: OffsetRecord) -> None:
        self.append(offset.key(JOB), offset.encode())

    # what the log says, folded by itself

    def state(self) -> JobState:
        state = JobState(JOB)
        state.fold(self.log)
        return state

    def offset(self, split: int) -> OffsetRecord:
        return self.state().offsets[split_id("f", STARTS[split])]

    def offsets(self) -> dict[int, tuple[int, bool]]:
        """Return position and done of every split in the log, by start."""
        return {place(found)[1]: (found.position, found.done) for found in self.state().offsets.values()}

    def claims(self) -> list[int]:
        key = record.claim_key(JOB, NUMBER)
        return [json.loads(entry.value or b"")["attempt"] for entry in self.log if entry.key == key]

    # task.TaskKafka

    def producer(self, task: int) -> Producer:
        assert task == NUMBER
        self.did("producer")
        self.producers.append(Producer(self))
        return self.producers[-1]

    def reader(self) -> Reader:
        return Reader(self)


class Producer:
    """Records what it is asked (`kafka.ports.Producer`); closed producers and wrong orders are bugs of the task."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.state = "new"
        self.values: list[bytes | None] = []
        self.letters: list[tuple[bytes | None, dict[str, str]]] = []
        self.entries: list[tuple[bytes, bytes | None]] = []

    def _step(self, operation: str, before: tuple[str, ...], after: str) -> None:
        assert self.state in before, f"{operation} on a producer that is {self.state}"
        self.state = "failed"
        self.world.did(operation, self)
        self.state = after

    def init_transactions(self) -> None:
        self._step("init", ("new",), "ready")

    def begin(self) -> None:
        self._step("begin", ("ready",), "open")

    def produce(self, topic: str, records: Records) -> None:
        assert not self.entries, "no record of data after the offset records"
        assert len(records.keys) == len(records.values) == len(records) > 0
        self._step("produce", ("open",), "open")
        if topic == DEAD.topic:
            headers = [{name: (value or b"").decode() for name, value in each} for each in records.headers or []]
            self.letters += zip(records.values, headers, strict=True)
            return
        assert topic == "topic"
        self.values += records.values
        self.world.partitions += [None] * len(records) if records.partitions is None else records.partitions.tolist()

    def produce_to_partition(self, topic: str, partition: int, key: bytes, value: bytes | None) -> None:
        assert (topic, partition) == ("offsets", 2)
        assert self.world.calls[-1] in ("flush", "offset"), "offset records come after the flush, and last"
        self._step("offset", ("open",), "open")
        self.entries.append((key, value))

    def flush(self) -> None:
        self._step("flush", ("open",), "open")

    def commit(self) -> None:
        self._step("commit", ("open",), "ready")
        self.take_over()

    def take_over(self) -> None:
        for entry in self.entries:
            self.world.append(*entry)
        self.world.sent += self.values
        self.world.letters += self.letters
        self.world.transactions.append(self.values)
        self.values, self.letters, self.entries = [], [], []

    def close(self) -> None:
        self.world.calls.append("close")
        self.state = "closed"


class Reader:
    """Reads the world's log (`kafka.ports.OffsetsReader`); `read` is said once per read that finds something."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.closed = False

    place = "offsets-2"

    def topic_id(self) -> str:
        return self.world.offsets_topic_id

    def log_start(self) -> int:
        return 0

    def high_watermark(self) -> int:
        self.world.did("high watermark")
        return len(self.world.log)

    def last_stable_offset(self) -> int:
        self.world.did("stable")
        undecided = self.world.undecided_from
        return len(self.world.log) if undecided is None else undecided

    def read(self, start: int, end: int, *, committed: bool, deadline_s: float) -> Iterator[LogRecord]:
        assert committed
        assert deadline_s == 30, "two transaction timeouts and 10 s"
        return iter(self.world.log[start:end])

    def close(self) -> None:
        self.world.calls.append("reader closed")


class Inputs:
    """Gives items in order, then END (`task.Inputs`); a function among them is called, and gives the item."""

    def __init__(self, world: World, items: tuple[Any, ...]) -> None:
        self.world = world
        self.items = deque(items)
        self.waits: list[float] = []

    def begin(self, committed: Callable[[PlannedSplit], OffsetRecord | None]) -> None:
        pass

    def confirm(self) -> None:
        self.world.did("confirm")

    def stop(self) -> None:
        """Nothing: nothing reads on."""

    def get(self, timeout_s: float) -> Batch | SplitEnd | Signal:
        assert timeout_s >= 0
        self.waits.append(timeout_s)
        if not self.items:
            return Signal.END
        item = self.items.popleft()
        return item() if callable(item) else item


@pytest.fixture
def world() -> World:
    return World()


def value_of(split: int, row: int) -> bytes:
    return f"{STARTS.get(split, split)}:{row}".encode()


def values(split: int, start: int, end: int) -> list[bytes | None]:
    return [value_of(split, row) for row in range(start, end)]


def rows(
    split: int, start: int, end: int, *, size: int = 10, corrupt: tuple[int, ...] = (), keys: bool = True
) -> Batch:
    """Make the batch of the rows [start, end) of a split."""
    count = end - start
    key_column: list[bytes | None] = [b"k" if keys else None] * count
    value_column = values(split, start, end)
    hashes = np.array(
        [checksum.record_hash(key, value) for key, value in zip(key_column, value_column, strict=True)],
        dtype=np.uint64,
    )
    return Batch(
        splits=np.full(count, split, dtype=np.int64),
        records=Records(key_column, value_column),
        hashes=hashes.view(np.int64),
        sizes=np.full(count, size, dtype=np.int64),
        corrupt=[(b"bad" if row in corrupt else None) for row in range(start, end)] if corrupt else None,
    )


def joined(*batches: Batch) -> Batch:
    """Put batches into one, as Arrow batches hold rows of several splits."""
    corrupt = [text for batch in batches for text in batch.corrupt or [None] * len(batch.splits)]
    return Batch(
        np.concatenate([batch.splits for batch in batches]),
        Records(
            [key for batch in batches for key in batch.records.keys],
            [value for batch in batches for value in batch.records.values],
        ),
        np.concatenate([batch.hashes for batch in batches]),
        np.concatenate([batch.sizes for batch in batches]),
        corrupt if any(corrupt) else None,
    )


def committed(split: int, position: int, *, done: bool = False, run: int = 4, task: int = 9) -> OffsetRecord:
    """Make the offset record that a task would have left after `position` rows of a split."""
    total = sum(checksum.record_hash(b"k", value) for value in values(split, 0, position)) % (1 << 64)
    return offset_record(
        "f",
        STARTS[split],
        rows=position,
        done=done,
        checksum=total,
        read=CONTENT,
        run=run,
        task=task,
        sequence=6,
        metadata_checksum=0,
    )


def settings(*known: OffsetRecord, **changes: Any) -> TaskSettings:
    """Make the settings of a run that planned the splits A, B and C, `known` being their offset records by then."""
    at = by_split(known)
    told = {
        key: planned_split("f", start, now=CONTENT, committed=at.get(split_id("f", start)))
        for key, start in STARTS.items()
    }
    return replace(task_settings(job=JOB, run=RUN, started=STARTED, splits=told), **changes)


def run(
    world: World, *items: Any, known: tuple[OffsetRecord, ...] = (), attempt: int = ATTEMPT, attempt_number: int = 0,
    **changes: Any,
) -> Outcome:  # fmt: skip
    task = Task(
        settings(*known, **changes),
        NUMBER,
        world,
        attempt=attempt,
        attempt_number=attempt_number,
        now=lambda: world.time,
        now_ms=lambda: 1_800_000_000_000,
        sleep=world.sleep,
    )
    return task.run(Inputs(world, items))


def later(world: World, seconds: float, item: Any = Signal.TICK) -> Callable[[], Any]:
    """An item that comes only after some time."""

    def get() -> Any:
        world.time += seconds
        return item

    return get


def without(calls: list[str], *names: str) -> list[str]:
    return [call for call in calls if call not in names]


# ---- the order ---------------------------------------------------------------------------------------------------


def test_protocol_step_order(world: World) -> None:
    outcome = run(world, rows(A, 0, 5))
    assert world.calls == [
        "stable",  # 0: is the run mine?
        "producer",
        "init",  # 1
        "high watermark",  # 2, and 3 on what it found
        "begin",  # 4
        "produce",
        "flush",
        "offset",
        "offset",  # the claim
        "commit",
        "close",
        "reader closed",
    ]
    assert world.sent == values(A, 0, 5)
    assert outcome == ended(NUMBER, last_split("f", 0, 5), records=5, transactions=1, **NAMED)


def test_nothing_to_read_begins_no_transaction(world: World) -> None:
    outcome = run(world)
    assert world.calls == ["stable", "producer", "init", "high watermark", "close", "reader closed"]
    assert outcome == ended(NUMBER, **NAMED)


def test_a_batch_without_rows_begins_no_transaction(world: World) -> None:
    outcome = run(world, rows(A, 0, 0), Signal.TICK)
    assert "begin" not in world.calls
    assert (outcome.read_all, outcome.last_split) == (True, None)


def test_the_offset_record_says_what_was_written(world: World) -> None:
    run(world, rows(A, 0, 5), rows(A, 5, 7))
    assert world.offset(A) == offset_record(
        "f",
        0,
        rows=7,
        checksum=sum(checksum.record_hash(b"k", value) for value in values(A, 0, 7)) % (1 << 64),
        read=CONTENT,
        run=RUN,
        task=NUMBER,
        metadata_checksum=0,
    )


def test_rows_without_a_key_keep_the_partition_that_they_come_from(world: World) -> None:
    """Breaks when it is another one behind the end of the split, or when rows are cut into pieces."""
    homes = {A: RangeSplit("from", "id", 1, 0, 9, partitions=3), B: RangeSplit("from", "id", 2, 0, 9, partitions=3)}
    told = {key: PlannedSplit(split, {}, None) for key, split in homes.items()}
    limits = TopicLimits(1_000_000, partitions=3)
    batches = joined(rows(A, 0, 3, keys=False), rows(B, 0, 2, keys=False), rows(B, 2, 3))
    run(world, batches, splits=told, limits=limits, keeps_partitions=True, max_records=2)
    assert world.partitions == [1, 1, 1, 2, 2, ANY_PARTITION]


def test_each_offset_record_of_a_split_has_the_next_sequence_number(world: World) -> None:
    run(world, rows(A, 0, 6), max_records=2)
    key = committed(A, 0).key(JOB)
    values_of = [entry.value or b"" for entry in world.log if entry.key == key]
    written = [OffsetRecord.decode(value, split=record.split_id_of(JOB, key)) for value in values_of]
    assert [(entry.sequence, entry.position) for entry in written] == [(0, 2), (1, 4), (2, 6)]


def test_the_claim_is_written_once_in_the_first_transaction(world: World) -> None:
    run(world, rows(A, 0, 6), max_records=2)
    assert world.calls.count("commit") == 3
    assert world.claims() == [ATTEMPT]
    assert world.state().claims[NUMBER] == Claim(RUN, STARTED, ATTEMPT)
    assert [entry.key for entry in world.log].index(record.claim_key(JOB, NUMBER)) <= 2


def test_a_claim_in_a_lost_transaction_is_written_again(world: World) -> None:
    world.will("produce", FENCED)
    with pytest.raises(AttemptLostError):
        run(world, rows(A, 0, 5))
    assert world.claims() == []
    run(world, rows(A, 0, 5), attempt=ATTEMPT + 1, attempt_number=1)
    assert world.claims() == [ATTEMPT + 1]


# ---- when a transaction ends -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("max_records", "sizes"), [(1, [1] * 10), (3, [3, 3, 3, 1]), (10, [10]), (11, [10])])
def test_max_records_is_exact(world: World, max_records: int, sizes: list[int]) -> None:
    outcome = run(world, rows(A, 0, 4), rows(A, 4, 10), max_records=max_records)
    assert [len(transaction) for transaction in world.transactions] == sizes
    assert world.sent == values(A, 0, 10)
    assert (outcome.records, outcome.transactions) == (10, len(sizes))


@pytest.mark.parametrize(
    ("max_bytes", "sizes"), [(9, [1] * 10), (10, [1] * 10), (29, [2] * 5), (30, [3, 3, 3, 1]), (100, [10])]
)
def test_max_bytes_is_never_passed_but_by_one_record_alone(world: World, max_bytes: int, sizes: list[int]) -> None:
    run(world, rows(A, 0, 4), rows(A, 4, 10), max_bytes=max_bytes)
    assert [len(transaction) for transaction in world.transactions] == sizes
    assert world.sent == values(A, 0, 10)


def test_records_of_different_sizes_fill_a_transaction_up_to_max_bytes(world: World) -> None:
    run(
        world, joined(*(rows(A, n, n + 1, size=size) for n, size in enumerate([10, 90, 1, 500, 60, 50]))), max_bytes=100
    )
    assert [len(transaction) for transaction in world.transactions] == [2, 1, 1, 1, 1]


def test_the_rate_limit_spreads_records_over_time(world: World) -> None:
    """Each row of 10 bytes goes a second behind the one before; a transaction is committed at half of its timeout meanwhile.

    Breaks when the limit is passed, when nothing is committed while the task waits, or when a row is sent twice.
    """
    began, at = world.time, list[float]()
    for _ in range(20):
        world.will("produce", lambda producer: at.append(world.time))
    outcome = run(world, rows(A, 0, 12), later(world, 30), rows(A, 12, 20), rate_limit=10)
    assert (outcome.code, world.sent) == ("", values(A, 0, 20))
    assert [round(moment - began) for moment in at] == [*range(12), *range(41, 49)]
    assert [len(transaction) for transaction in world.transactions] == [5, 5, 2, 5, 3]


def test_a_row_larger_than_the_rate_limit_goes_alone(world: World) -> None:
    began = world.time
    run(world, joined(*(rows(A, n, n + 1, size=size) for n, size in enumerate([5, 95, 1]))), rate_limit=10)
    assert world.sent == values(A, 0, 3) and round(world.time - began) == 10


def test_without_a_limit_nothing_waits(world: World) -> None:
    began = world.time
    run(world, rows(A, 0, 1000, size=1000))
    assert world.time == began


def test_many_small_splits_share_a_transaction(world: World) -> None:
    run(world, joined(rows(A, 0, 2), rows(B, 0, 2)), rows(C, 0, 2))
    assert world.calls.count("commit") == 1
    assert world.offsets() == {0: (2, True), 100: (2, True), 200: (2, False)}


def test_a_limit_counts_over_splits(world: World) -> None:
    run(world, joined(rows(A, 0, 3), rows(B, 0, 3), rows(C, 0, 3)), max_records=4)
    assert world.transactions == [
        values(A, 0, 3) + values(B, 0, 1),
        values(B, 1, 3) + values(C, 0, 2),
        values(C, 2, 3),
    ]


def test_the_deadline_commits_while_no_row_comes(world: World) -> None:
    inputs = Inputs(world, (rows(A, 0, 2), later(world, 4.9), later(world, 0.2), later(world, 100), rows(A, 2, 3)))
    task = Task(
        settings(), NUMBER, world, attempt=1, attempt_number=0, now=lambda: world.time, now_ms=lambda: 1_800_000_000_000
    )
    task.run(inputs)
    assert world.transactions == [values(A, 0, 2), values(A, 2, 3)]
    # Open transactions bound the wait by half of the transaction timeout, from the begin.
    assert inputs.waits[1:3] == [5.0, pytest.approx(0.1)]
    assert inputs.waits[0] > 0
    assert inputs.waits[3] > 0, "no transaction is open: no deadline to run after"


def test_the_deadline_commits_between_rows_too(world: World) -> None:
    def act(_: Producer) -> None:
        world.time += 2

    world.will("produce", *[act] * 6)
    run(world, *(rows(A, row, row + 1) for row in range(6)))
    assert [len(transaction) for transaction in world.transactions] == [3, 3]


# ---- what ends a split -------------------------------------------------------------------------------------------


def test_input_that_ends_proves_nothing(world: World) -> None:
    outcome = run(world, rows(A, 0, 5))
    assert world.offsets() == {0: (5, False)}
    assert outcome.last_split == last_split("f", 0, 5)


def test_rows_of_the_next_split_end_a_split(world: World) -> None:
    outcome = run(world, rows(A, 0, 2), rows(B, 0, 1))
    assert world.offsets() == {0: (2, True), 100: (1, False)}
    assert outcome.last_split == last_split("f", 100, 1)


def test_a_split_that_was_committed_before_it_ended_is_marked_later(world: World) -> None:
    run(world, rows(A, 0, 2), rows(B, 0, 1), max_records=2)
    assert world.transactions == [values(A, 0, 2), values(B, 0, 1)]
    assert world.offsets() == {0: (2, True), 100: (1, False)}
    assert world.offset(A).sequence == 1
    assert world.offset(A).checksum == committed(A, 2).checksum


def test_a_split_whose_rows_were_all_committed_before_is_marked_when_the_next_comes(world: World) -> None:
    run(world, rows(A, 0, 2), rows(B, 0, 1), known=(committed(A, 2), committed(B, 1, done=True)))
    assert world.sent == []
    assert world.calls.count("commit") == 1
    assert world.offsets() == {0: (2, True)}
    assert (world.offset(A).sequence, world.offset(A).run, world.offset(A).task) == (7, RUN, NUMBER)


def test_a_split_that_comes_back_is_an_error(world: World) -> None:
    outcome = run(world, rows(A, 0, 2), rows(B, 0, 1), rows(A, 2, 3))
    assert (outcome.exit_code, outcome.code, outcome.read_all) == (7, "split-met-twice", False)
    assert world.sent == []


def test_a_split_of_another_task_of_this_run_is_an_error(world: World) -> None:
    world.write_offset(committed(A, 2, run=RUN, task=NUMBER + 1))
    outcome = run(world, rows(A, 0, 5))
    assert (outcome.exit_code, outcome.code) == (7, "split-in-two-tasks")
    assert "f, split at byte 0" in outcome.message
    assert world.sent == []


def test_a_split_of_another_task_of_an_earlier_run_is_simply_continued(world: World) -> None:
    outcome = run(world, rows(A, 0, 5), known=(committed(A, 2, run=RUN - 1, task=NUMBER + 1),))
    assert outcome.exit_code == 0
    assert world.sent == values(A, 2, 5)


# ---- resuming ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("position", [0, 1, 4, 5])
def test_rows_below_the_committed_position_are_passed_over(world: World, position: int) -> None:
    run(world, rows(A, 0, 3), rows(A, 3, 6), known=(committed(A, position),))
    assert world.sent == values(A, position, 6)
    assert world.offset(A) == replace(committed(A, 6), run=RUN, task=NUMBER, sequence=7), "and the receipt goes on"


def test_a_split_with_fewer_rows_than_are_committed_is_not_the_same_split(world: World) -> None:
    outcome = run(world, rows(A, 0, 3), rows(B, 0, 2), known=(committed(A, 5),))
    assert (outcome.exit_code, outcome.code, world.sent) == (12, "split-shrank", [])
    last = run(world, rows(A, 0, 3), known=(committed(A, 5),))
    assert last.last_split == last_split("f", 0, 3), "which is not the committed position: the driver will not mark it"


def test_nothing_new_writes_nothing(world: World) -> None:
    outcome = run(world, rows(A, 0, 3), known=(committed(A, 3),))
    assert "begin" not in world.calls
    assert outcome.last_split == last_split("f", 0, 3), "Spark's word may end it"


def test_all_rows_of_a_done_split_are_passed_over(world: World) -> None:
    known = (committed(A, 3, done=True), committed(C, 9, done=True))
    outcome = run(world, rows(A, 0, 3), rows(B, 0, 2), rows(C, 0, 9), known=known)
    assert world.sent == values(B, 0, 2)
    assert world.offsets() == {100: (2, True)}
    assert outcome.last_split is None


def test_what_an_earlier_attempt_of_this_run_committed_counts(world: World) -> None:
    world.write_claim(ATTEMPT - 1)
    world.write_offset(committed(A, 4, run=RUN, task=NUMBER))
    run(world, rows(A, 0, 6), known=(committed(A, 2),), attempt_number=1)
    assert world.sent == values(A, 4, 6)
    assert world.offset(A).checksum == committed(A, 6).checksum


def test_a_finished_task_run_again_is_a_no_op(world: World) -> None:
    first = run(world, rows(A, 0, 3), rows(B, 0, 2))
    log = list(world.log)
    again = run(world, rows(A, 0, 3), rows(B, 0, 2), attempt=ATTEMPT + 1, attempt_number=1)
    assert world.log == log
    assert (again.last_split, again.records, again.transactions) == (first.last_split, 0, 0)


# ---- is the run mine? --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{"run": RUN + 1}, {"started": "a run of the same number"}, {"run": RUN - 1}])
def test_a_run_that_is_not_mine_is_not_even_disturbed(world: World, changes: dict[str, Any]) -> None:
    world.write_control(**changes)
    outcome = run(world, rows(A, 0, 5))
    assert (outcome.exit_code, outcome.code, outcome.read_all) == (6, "fenced", False)
    assert "other-host" in outcome.message
    assert world.calls == ["stable", "reader closed"]


def test_a_successor_behind_an_open_transaction_is_seen_after_init(world: World) -> None:
    world.write_control(run=RUN + 1, state=record.CLAIMED)
    world.undecided_from = 1
    outcome = run(world, rows(A, 0, 5))
    assert (outcome.exit_code, outcome.code) == (6, "fenced")
    assert without(world.calls, "close", "reader closed") == ["stable", "producer", "init", "high watermark"]
    assert world.producers[0].state == "closed"


def test_a_control_record_behind_an_open_transaction_is_waited_for(world: World) -> None:
    world.undecided_from = 0
    assert run(world, rows(A, 0, 5)).exit_code == 0
    assert world.sent == values(A, 0, 5)


def test_no_control_record_at_all_is_an_error(world: World) -> None:
    world.log.clear()
    outcome = run(world, rows(A, 0, 5))
    assert (outcome.exit_code, outcome.code) == (7, "control-lost")
    assert world.sent == []


@pytest.mark.parametrize("state", [record.SETTLING, record.COMPLETE, record.FAILED, record.CLAIMED])
def test_a_run_that_has_ended_takes_nothing_more(world: World, state: str) -> None:
    world.write_control(state=state)
    outcome = run(world, rows(A, 0, 5))
    assert (outcome.exit_code, outcome.code) == (3, "run-ended")
    assert "init" not in world.calls


def test_a_newer_attempt_of_this_task_stops_the_older(world: World) -> None:
    world.write_claim(ATTEMPT + 1)
    outcome = run(world, rows(A, 0, 5))
    assert (outcome.exit_code, outcome.code) == (3, "superseded")
    assert "init" not in world.calls


def test_a_newer_attempt_that_claims_while_this_one_is_at_work_stops_it(world: World) -> None:
    def claim(_: Producer) -> None:
        world.write_claim(ATTEMPT + 1)
        raise FENCED

    world.will("commit", claim)
    outcome = run(world, rows(A, 0, 5))
    assert (outcome.code, outcome.read_all, outcome.last_split) == ("superseded", False, None)
    assert world.sent == []
    assert world.calls.count("init") == 1


@pytest.mark.parametrize(
    "claim",
    [
        {"attempt": ATTEMPT},
        {"attempt": ATTEMPT - 1},
        {"attempt": ATTEMPT + 1, "run": RUN - 1},
        {"attempt": ATTEMPT + 1, "started": "earlier run of this number"},
        {"attempt": ATTEMPT + 1, "task": NUMBER + 1},
    ],
)
def test_other_claims_do_not(world: World, claim: dict[str, Any]) -> None:
    world.write_claim(**claim)
    assert run(world, rows(A, 0, 5)).exit_code == 0


def test_a_successor_found_after_a_fence_is_exit_6_not_a_retry(world: World) -> None:
    def claim(_: Producer) -> None:
        world.write_control(run=RUN + 1, state=record.CLAIMED)
        raise FENCED

    world.will("flush", claim)
    outcome = run(world, rows(A, 0, 5))
    assert (outcome.exit_code, outcome.code) == (6, "fenced")
    assert (world.calls.count("init"), world.sent) == (1, [])


# ---- failures ----------------------------------------------------------------------------------------------------

IN_FLIGHT = ["produce", "flush", "offset", "commit"]


@pytest.mark.parametrize("operation", ["producer", "init", "high watermark", "stable", "begin", *IN_FLIGHT])
def test_a_refusal_ends_the_task_at_once(world: World, operation: str) -> None:
    world.will(operation, REFUSED)
    outcome = run(world, rows(A, 0, 5))
    assert (outcome.exit_code, outcome.code) == (7, "TOPIC_AUTHORIZATION_FAILED")
    assert "no right to write" in outcome.message
    assert (outcome.read_all, outcome.last_split, world.sent) == (False, None, [])
    assert world.calls.count(operation) == 1
    assert all(producer.state == "closed" for producer in world.producers)


@pytest.mark.parametrize("failure", [FENCED, UNCERTAIN])
@pytest.mark.parametrize("operation", ["init", "high watermark", "producer", "stable"])
def test_a_failed_start_is_tried_again(world: World, operation: str, failure: KafkaFailure) -> None:
    world.will(operation, failure, failure)
    outcome = run(world, rows(A, 0, 5))
    assert (outcome.exit_code, outcome.restarts) == (0, 2)
    assert world.sent == values(A, 0, 5)
    closed, alive = world.producers[:-1], world.producers[-1]
    assert all(producer.state == "closed" for producer in closed)
    assert alive.values == []


def test_a_start_goes_the_whole_way_again(world: World) -> None:
    world.will("high watermark", UNCERTAIN)
    run(world, rows(A, 0, 5))
    way = without(world.calls, "begin", *IN_FLIGHT)
    start = ["stable", "producer", "init", "high watermark"]
    assert way == [*start, "close", *start, "close", "reader closed"]


def test_fenced_three_times_without_a_commit_names_both_causes(world: World) -> None:
    world.will("init", FENCED, FENCED, FENCED)
    outcome = run(world, rows(A, 0, 5))
    assert (outcome.exit_code, outcome.code, outcome.restarts) == (7, "fenced-again-and-again", 3)
    assert "transactional id" in outcome.message
    assert "transaction.timeout" in outcome.message
    assert "sink.transactional_id_prefix" in outcome.hint
    assert world.sent == []


@pytest.mark.parametrize("batches", [2, 1])
def test_fenced_once_on_the_last_attempt_is_no_again_and_again(world: World, batches: int) -> None:
    """Breaks when one transaction timeout behind three killed attempts asks for another prefix, where a run goes on."""

    def late(producer: Producer | None) -> None:
        world.time += 11  # the transaction timeout is 10 s
        raise FENCED

    slow = batches == 1
    world.will("commit", *([late] if slow else [None, FENCED]))
    outcome = run(world, rows(A, 0, 3), rows(A, 3, 5), attempt_number=3, max_records=5 if slow else 3)
    assert (outcome.exit_code, outcome.code) == (3, "attempt-lost")
    assert "run again" in outcome.hint
    assert world.sent == ([] if slow else values(A, 0, 3))


def test_failing_three_times_without_a_commit_is_temporary(world: World) -> None:
    world.will("init", UNCERTAIN, FENCED, UNCERTAIN)
    outcome = run(world, rows(A, 0, 5))
    assert (outcome.exit_code, outcome.code) == (5, "kafka-failed")
    assert "no answer" in outcome.message


def test_commits_between_failures_start_the_count_anew(world: World) -> None:
    def slow(_: Producer) -> None:
        world.time += 1.5  # so that a new producer is made after each

    world.will("commit", *[slow] * 4)
    world.will("init", None, *[FENCED, FENCED, None] * 4)
    outcome = run(world, rows(A, 0, 4), max_records=1)
    assert (outcome.exit_code, outcome.restarts) == (0, 8)
    assert world.sent == values(A, 0, 4)


def test_a_read_that_open_transactions_hold_up_is_not_tried_again(world: World) -> None:
    world.will("high watermark", KafkaFailure(FailureKind.UNCERTAIN, "read-deadline", "read to 5 of 10"))
    outcome = run(world, rows(A, 0, 5))
    assert (outcome.exit_code, outcome.code) == (5, "offsets-held-up")
    assert "5 of 10" in outcome.message
    assert world.calls.count("init") == 1


@pytest.mark.parametrize("failure", [FENCED, UNCERTAIN])
@pytest.mark.parametrize("operation", ["begin", *IN_FLIGHT])
def test_what_was_in_flight_is_never_sent_from_memory(world: World, operation: str, failure: KafkaFailure) -> None:
    world.will(operation, failure)
    with pytest.raises(AttemptLostError):
        run(world, rows(A, 0, 5))
    assert (world.sent, world.offsets()) == ([], {})
    assert world.calls.count("init") == 2, "the log was asked what was committed"
    assert all(producer.state == "closed" for producer in world.producers)
    assert world.calls[-1] == "reader closed"


@pytest.mark.parametrize(("failure", "exit_code"), [(FENCED, 7), (UNCERTAIN, 5)])
@pytest.mark.parametrize("operation", IN_FLIGHT)
def test_on_the_last_attempt_it_is_a_value(world: World, operation: str, failure: KafkaFailure, exit_code: int) -> None:
    world.will(operation, failure)
    outcome = run(world, rows(A, 0, 5), attempt_number=3)
    assert outcome.exit_code == exit_code
    assert (outcome.read_all, outcome.last_split, world.sent) == (False, None, [])


@pytest.mark.parametrize(("attempt_number", "max_attempts", "value"), [(2, 4, False), (0, 1, True), (1, 2, True)])
def test_which_attempt_is_the_last(world: World, attempt_number: int, max_attempts: int, value: bool) -> None:
    world.will("commit", FENCED)
    try:
        outcome = run(world, rows(A, 0, 5), attempt_number=attempt_number, max_attempts=max_attempts)
    except AttemptLostError:
        assert not value
    else:
        assert (value, outcome.exit_code) == (True, 7)


def test_a_lost_attempt_keeps_what_was_committed_and_the_next_goes_on_there(world: World) -> None:
    world.will("commit", None, FENCED)
    with pytest.raises(AttemptLostError) as caught:
        run(world, rows(A, 0, 5), max_records=2)
    assert "_FENCED" in caught.value.message
    pickle.dumps(caught.value)
    assert world.sent == values(A, 0, 2)
    run(world, rows(A, 0, 5), max_records=2, attempt=ATTEMPT + 1, attempt_number=1)
    assert world.sent == values(A, 0, 5)
    assert world.offset(A).checksum == committed(A, 5).checksum


def test_fenced_with_nothing_in_flight_goes_on(world: World) -> None:
    """Only a done mark is left to write when the fence comes: it is known from the input, not from memory."""
    world.will("flush", None, FENCED)
    outcome = run(world, rows(A, 0, 2), rows(B, 0, 1), known=(committed(B, 1, done=True),), max_records=2)
    assert (outcome.exit_code, outcome.restarts) == (0, 1)
    assert world.sent == values(A, 0, 2)
    assert world.offsets() == {0: (2, True)}


@pytest.mark.parametrize("failure", [UNCERTAIN, FENCED])
def test_an_unknown_commit_that_went_through_is_not_sent_again(world: World, failure: KafkaFailure) -> None:
    world.will("commit", None, through(failure))
    outcome = run(world, rows(A, 0, 6), rows(B, 0, 1), max_records=2)
    assert outcome.exit_code == 0
    assert world.sent == values(A, 0, 6) + values(B, 0, 1)
    assert world.offsets() == {0: (6, True), 100: (1, False)}
    assert world.offset(A).checksum == committed(A, 6).checksum
    assert world.calls.count("init") == 2


def test_an_unknown_last_commit_that_went_through(world: World) -> None:
    world.will("commit", through(UNCERTAIN))
    outcome = run(world, rows(A, 0, 2))
    assert (outcome.exit_code, outcome.read_all, outcome.last_split) == (0, True, last_split("f", 0, 2))
    assert world.sent == values(A, 0, 2)


def test_unknown_commits_that_went_through_are_progress(world: World) -> None:
    world.will("commit", *[through(UNCERTAIN)] * 5)
    outcome = run(world, rows(A, 0, 5), max_records=1)
    assert (outcome.exit_code, outcome.restarts) == (0, 5)
    assert world.sent == values(A, 0, 5)


def test_an_unknown_commit_that_did_not_go_through_is_lost(world: World) -> None:
    world.will("commit", through(UNCERTAIN), UNCERTAIN)
    with pytest.raises(AttemptLostError):
        run(world, rows(A, 0, 5), max_records=2)
    assert world.sent == values(A, 0, 2)


def test_a_slow_commit_makes_a_new_producer(world: World) -> None:
    """Breaks when a commit that the client repeated inside, which takes 0.8 s, counts as quick (tests/chaos found it)."""

    def slow(_: Producer) -> None:
        world.time += 0.8

    world.will("commit", slow)
    outcome = run(world, rows(A, 0, 4), max_records=2)
    assert (outcome.exit_code, outcome.restarts) == (0, 0)
    assert world.calls.count("init") == 2
    first = world.calls.index("commit")
    assert world.calls[first + 1 : first + 5] == ["close", "stable", "producer", "init"]
    assert world.sent == values(A, 0, 4)


def test_a_quick_commit_keeps_the_producer(world: World) -> None:
    def quick(_: Producer) -> None:
        world.time += 0.4

    world.will("commit", quick)
    run(world, rows(A, 0, 6), max_records=2)
    assert world.calls.count("producer") == 1


def test_failed_last_commit_marks_nothing_empty(world: World) -> None:
    """All rows were in flight when the brokers went away: splits without an offset record are not empty ones."""
    world.will("commit", UNCERTAIN)
    world.will("init", None, UNCERTAIN, UNCERTAIN)
    outcome = run(world, rows(A, 0, 2), rows(B, 0, 1))
    assert outcome.exit_code == 5
    pending = [planned_split("f", start, now=CONTENT) for start in STARTS.values()]
    assert (
        proven_done(
            plan(planned_item(source_file("f", 300), pending)), world.state(), JobResult([outcome]), tasks=1, run=RUN
        )
        == []
    )


def test_bugs_are_raised_and_clients_are_closed(world: World) -> None:
    def broken() -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(world, rows(A, 0, 5), broken)
    assert world.calls[-2:] == ["close", "reader closed"]
    assert world.sent == []


def test_a_log_that_went_back_ends_the_task(world: World) -> None:
    """Breaks when it is a traceback: "a bug of ours", exit 1, after four attempts."""
    world.write_offset(replace(committed(A, 2), sequence=9))
    world.write_offset(replace(committed(A, 1), sequence=8))
    outcome = run(world, rows(A, 0, 5))
    assert (outcome.exit_code, outcome.code) == (7, "sequence-went-back")
    assert world.calls == ["stable", "reader closed"]


# ---- rows that cannot be sent ------------------------------------------------------------------------------------


def test_a_bad_row_cuts_its_split_and_the_others_go_on(world: World) -> None:
    outcome = run(world, rows(A, 0, 2), rows(A, 2, 6, corrupt=(4,)), rows(A, 6, 8), rows(B, 0, 2), rows(C, 0, 1))
    assert world.sent == values(A, 0, 4) + values(B, 0, 2) + values(C, 0, 1)
    assert world.offsets() == {0: (4, False), 100: (2, True), 200: (1, False)}
    assert (outcome.exit_code, outcome.code, outcome.read_all) == (7, "bad-rows", True)
    (found,) = outcome.bad_rows
    assert {**found, "reason": ""} == bad_row("f", 0, row=5, code="corrupt-row", reason="")
    assert "bad" in found["reason"]


def test_a_bad_first_row_leaves_no_trace_of_its_split(world: World) -> None:
    outcome = run(world, rows(A, 0, 2, corrupt=(0,)), rows(B, 0, 1))
    assert world.offsets() == {100: (1, False)}
    assert outcome.bad_rows[0]["row"] == 1


def test_a_bad_last_split_is_not_reported_as_ended(world: World) -> None:
    outcome = run(world, rows(A, 0, 2), rows(B, 0, 3, corrupt=(2,)))
    assert (outcome.last_split, outcome.exit_code) == (None, 7)
    assert world.offsets() == {0: (2, True), 100: (2, False)}


def test_one_bad_row_a_split_is_told(world: World) -> None:
    outcome = run(
        world,
        joined(rows(A, 0, 3, corrupt=(1, 2)), rows(B, 0, 3, corrupt=(0,)), rows(C, 0, 2)),
    )
    assert outcome.bad_rows == [
        bad_row("f", start, row, reason=found["reason"])
        for (start, row), found in zip([(0, 2), (100, 1)], outcome.bad_rows, strict=True)
    ]
    assert world.sent == values(A, 0, 1) + values(C, 0, 2)


def test_rows_are_counted_from_the_start_of_the_split_also_when_resuming(world: World) -> None:
    outcome = run(world, rows(A, 0, 3), rows(A, 3, 6, corrupt=(5,)), known=(committed(A, 4),))
    assert outcome.bad_rows[0]["row"] == 6
    assert world.sent == values(A, 4, 5)


def test_a_bad_row_below_the_committed_position_is_not_looked_at(world: World) -> None:
    outcome = run(world, rows(A, 0, 3, corrupt=(0,)), known=(committed(A, 2),))
    assert (outcome.exit_code, world.sent) == (0, values(A, 2, 3))


def test_the_topics_limits_are_held(world: World) -> None:
    outcome = run(world, rows(A, 0, 2, keys=False), limits=TopicLimits(1000, null_key_allowed=False))
    assert (outcome.bad_rows[0]["code"], world.sent) == ("null-key", [])
    outcome = run(world, rows(A, 0, 2, size=1000), limits=TopicLimits(1000))
    assert (outcome.bad_rows[0]["code"], world.sent) == ("record-too-large", [])


def test_bad_rows_are_kept_when_the_task_then_ends_otherwise(world: World) -> None:
    world.will("commit", REFUSED)
    outcome = run(world, rows(A, 0, 2, corrupt=(0,)), rows(B, 0, 1))
    assert (outcome.code, len(outcome.bad_rows)) == ("TOPIC_AUTHORIZATION_FAILED", 1)


# ---- dead letters ------------------------------------------------------------------------------------------------


def letters(world: World) -> list[tuple[str, str, str]]:
    """Return split, row and code of the letters that are committed."""
    told = [headers for _, headers in world.letters]
    return [tuple(headers[f"eosingest.{name}"] for name in ("split", "row", "code")) for headers in told]  # type: ignore[misc]


def test_a_row_that_cannot_be_sent_is_a_letter_in_the_same_transaction(world: World) -> None:
    outcome = run(
        world, rows(A, 0, 5, corrupt=(1, 4)), rows(B, 0, 1, size=900), dead_letters=DEAD, limits=TopicLimits(900)
    )
    assert (outcome.exit_code, outcome.bad_rows, outcome.dead_letters, outcome.records) == (0, [], 3, 3)
    assert world.sent == [value_of(A, 0), value_of(A, 2), value_of(A, 3)]
    assert [value for value, _ in world.letters] == [b"bad", b"bad", value_of(B, 0)]
    assert [(row, code) for _, row, code in letters(world)] == [
        ("2", "corrupt-row"),
        ("5", "corrupt-row"),
        ("1", "record-too-large"),
    ]
    assert world.offsets() == {0: (5, True), 100: (1, False)}
    assert len(world.transactions) == 1
    found = world.offset(A)
    assert (found.rows, found.records, found.dead.count) == (5, 3, 2)


def test_sums_of_records_and_letters_are_those_of_all_rows(world: World) -> None:
    run(world, rows(A, 0, 5, corrupt=(1, 4)), dead_letters=DEAD)
    found = world.offset(A)
    assert (found.checksum + found.dead.rows) % (1 << 64) == committed(A, 5).checksum
    assert found.dead.checksum == 2 * checksum.record_hash(b"k", b"bad") % (1 << 64)


def test_what_was_a_letter_is_passed_over_and_not_judged_anew(world: World) -> None:
    """Which rows were bad depends on limits and clock of that time. Breaks when a rerun sends one as a record."""
    run(world, rows(A, 0, 3, corrupt=(1,)), dead_letters=DEAD)
    world.write_control(run=RUN + 1, started="next")
    known = world.offset(A)
    again = run(world, rows(A, 0, 5), known=(known,), run=RUN + 1, started="next", attempt=ATTEMPT + 1)
    assert (again.exit_code, again.records, again.dead_letters) == (0, 2, 0)
    assert world.sent == [value_of(A, 0), value_of(A, 2), value_of(A, 3), value_of(A, 4)]
    assert world.offset(A).dead == known.dead


def test_another_row_in_place_of_a_letter_is_noticed(world: World) -> None:
    run(world, rows(A, 0, 3, corrupt=(1,)), dead_letters=DEAD)
    world.write_control(run=RUN + 1, started="next")
    other = joined(rows(A, 0, 1), rows(B, 1, 2), rows(A, 2, 4))
    other.splits[:] = A
    again = run(world, other, known=(world.offset(A),), run=RUN + 1, started="next", attempt=ATTEMPT + 1)
    assert again.code == "prefix-changed"


def test_a_letter_is_lost_with_its_transaction_and_sent_once_by_the_next(world: World) -> None:
    world.will("commit", FENCED)
    with pytest.raises(AttemptLostError):
        run(world, rows(A, 0, 3, corrupt=(1,)), dead_letters=DEAD)
    assert (world.sent, world.letters, world.offsets()) == ([], [], {})
    run(world, rows(A, 0, 3, corrupt=(1,)), dead_letters=DEAD, attempt=ATTEMPT + 1, attempt_number=1)
    assert [value for value, _ in world.letters] == [b"bad"] and len(world.sent) == 2


def test_another_attempt_commits_as_many_rows_with_other_letters(world: World) -> None:
    """Breaks when the receipt goes on from what this attempt had in memory: it is of rows that nobody committed so."""

    def rival(_: Producer) -> None:
        world.write_offset(committed(A, 3, run=RUN, task=NUMBER))
        raise FENCED

    world.will("commit", rival)
    outcome = run(world, rows(A, 0, 3, corrupt=(1,)), rows(A, 3, 5), dead_letters=DEAD, max_records=3)
    found = world.offset(A)
    assert (outcome.exit_code, found.rows, found.records, found.dead.count) == (0, 5, 5, 0)
    assert found.checksum == committed(A, 5).checksum


def test_beyond_what_is_allowed_a_bad_row_ends_its_split(world: World) -> None:
    few = replace(DEAD, allowed=5, left=1)
    outcome = run(world, rows(A, 0, 5, corrupt=(1, 3)), rows(B, 0, 2, corrupt=(0,)), rows(C, 0, 1), dead_letters=few)
    assert (outcome.exit_code, outcome.code, outcome.dead_letters) == (7, "bad-rows", 1)
    assert [(found["label"], found["row"]) for found in outcome.bad_rows] == [
        (bad_row("f", 0, row=4)["label"], 4),
        (bad_row("f", 100, row=1)["label"], 1),
    ]
    assert outcome.bad_rows[0]["letters"] == "raise max"
    assert world.sent == [value_of(A, 0), value_of(A, 2), value_of(C, 0)]
    assert world.offsets() == {0: (3, False), 200: (1, False)}


def test_a_row_that_its_input_may_have_cut_off_is_no_letter(world: World) -> None:
    """A reader of lines leaves off at one that is endless. Breaks when the split goes on as if it had ended there."""
    outcome = run(world, rows(A, 0, 1), rows(A, 1, 2, size=(64 << 20) + 1), rows(B, 0, 1), dead_letters=DEAD)
    assert (outcome.exit_code, outcome.bad_rows[0]["code"]) == (7, "record-too-large")
    assert "on_error" not in outcome.bad_rows[0]["reason"]
    assert (world.letters, world.offsets()) == ([], {0: (1, False), 100: (1, False)})


def test_letters_fill_a_transaction_as_records_do(world: World) -> None:
    run(world, rows(A, 0, 6, corrupt=tuple(range(6))), dead_letters=DEAD, max_records=2)
    assert len(world.transactions) == 3 and len(world.letters) == 6


def test_a_letter_that_is_too_long_is_cut_and_says_so(world: World) -> None:
    batch = replace(rows(A, 0, 1), corrupt=[b"x" * 5000])
    run(world, batch, dead_letters=replace(DEAD, max_message_bytes=2000))
    ((value, headers),) = world.letters
    assert headers["eosingest.truncated"] == "5001"
    size = len(value or b"") + 1 + sum(10 + len(name) + len(text.encode()) for name, text in headers.items())
    assert 1800 < size <= 2000 - 82


def test_a_refusal_names_the_topic_of_letters_too(world: World) -> None:
    """Kafka does not say which of the two it refused."""
    world.will("produce", REFUSED)
    assert "Write on topic and dead" in run(world, rows(A, 0, 5), dead_letters=DEAD).hint


def test_a_row_of_an_unplanned_split_stops_the_task(world: World) -> None:
    outcome = run(world, rows(A, 0, 2), rows(444, 0, 2), rows(B, 0, 1))
    assert (outcome.exit_code, outcome.code) == (12, "unplanned-split")
    assert (outcome.read_all, outcome.last_split) == (False, None)
    assert world.sent == []
    assert "run again" in outcome.hint


# ---- all of it ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_whatever_fails_every_row_is_sent_once_and_positions_agree(seed: int) -> None:
    """Attempts as Spark makes them, with failures strewn over every operation, until one comes through."""
    random = np.random.default_rng(seed)
    world = World()
    batches = [joined(rows(A, 0, 7), rows(B, 0, 3)), rows(B, 3, 11), joined(rows(B, 11, 12), rows(C, 0, 9))]
    expected = values(A, 0, 7) + values(B, 0, 12) + values(C, 0, 9)
    actions = [*[None] * 12, FENCED, UNCERTAIN]
    outcome = None
    for attempt in itertools.count():
        for operation in ("init", "high watermark", "begin", *IN_FLIGHT):
            through_all_the_same = [through(UNCERTAIN), through(FENCED)] * 2 if operation == "commit" else []
            choice = [*actions, *through_all_the_same]
            world.script[operation] = deque(choice[n] for n in random.integers(0, len(choice), 8))
        try:
            outcome = run(world, *batches, max_records=4, attempt=attempt, attempt_number=0)
        except AttemptLostError:
            outcome = None
        total = world.state().records_total
        assert world.sent == expected[:total], "a prefix, each row once, in order"
        assert sum(found.position for found in world.state().offsets.values()) == total
        if outcome is not None and outcome.exit_code == 0:
            break
        assert attempt < 200
    assert world.sent == expected
    assert world.offsets() == {0: (7, True), 100: (12, True), 200: (9, False)}
    assert {split: world.offset(split).checksum for split in (A, B, C)} == {
        A: committed(A, 7).checksum,
        B: committed(B, 12).checksum,
        C: committed(C, 9).checksum,
    }
    assert outcome is not None
    assert (outcome.read_all, outcome.last_split) == (True, last_split("f", 200, 9))


def test_an_outcome_survives_the_way_to_the_driver() -> None:
    rest = {"records": 10, "transactions": 2, "restarts": 1}
    bad = [bad_row("ü")]
    outcome = ended(3, ("f", 100, 5), exit_code=7, code="bad-rows", message="m", hint="h", bad_rows=bad, **rest)
    assert Outcome.from_json(json.loads(json.dumps(outcome.to_json()))) == outcome
    plain = Outcome(0, "j", 1, "s")
    assert Outcome.from_json(json.loads(json.dumps(plain.to_json()))) == plain


def test_settings_travel_in_a_closure() -> None:
    told = settings(committed(A, 3))
    assert pickle.loads(pickle.dumps(told)) == told


@pytest.mark.parametrize(("newest", "ended", "code"), [(RUN + 1, False, "fenced"), (RUN, True, "run-ended")])
def test_a_run_record_stops_a_task_whose_control_record_is_old(
    world: World, newest: int, ended: bool, code: str
) -> None:
    """Compaction may take the newer control record away between two looks of a task; the run's own record stays."""
    world.write_run(newest, ended=ended)
    outcome = run(world, rows(A, 0, 2))
    assert (outcome.code, world.sent) == (code, [])


def test_the_records_of_this_run_and_of_earlier_ones_stop_nothing(world: World) -> None:
    world.write_run(RUN - 1, ended=True)
    world.write_run(RUN, ended=False)
    assert run(world, rows(A, 0, 2)).exit_code == 0


# ---- inputs that read the bytes of their splits --------------------------------------------------------------------


def lines(split: int, start: int, end: int) -> Batch:
    """Make the batch of rows [start, end) as a reader of bytes gives them: ten bytes each."""
    ends = np.arange(start + 1, end + 1, dtype=np.int64) * 10
    return replace(rows(split, start, end), first_row=start, positions=BytePositions(ends))


def in_bytes(found: OffsetRecord) -> OffsetRecord:
    return replace(found, position=found.rows * 10, position_kind=PositionKind.BYTES)


def test_positions_in_bytes_and_ends_that_are_told(world: World) -> None:
    """Breaks when the position is not that of the last row handed over, or when an end that is told has to be proven."""
    outcome = run(world, lines(A, 0, 3), SplitEnd(A, 3), lines(B, 0, 2), lines(B, 2, 4), SplitEnd(B, 4), max_records=3)

    assert (outcome.exit_code, outcome.last_split, outcome.records) == (0, None, 7)
    found = world.state().offsets
    assert [(o.position_kind, o.position, o.rows, o.done) for o in found.values()] == [
        ("bytes", 30, 3, True),
        ("bytes", 40, 4, True),
    ]


def test_goes_on_at_a_position_in_bytes(world: World) -> None:
    """Breaks when rows that are committed are sent again, or the position behind them is not taken up."""
    known = in_bytes(committed(A, 2))
    outcome = run(world, lines(A, 0, 5), SplitEnd(A, 5), known=(known,))

    assert (outcome.exit_code, outcome.records) == (0, 3)
    assert world.sent == values(A, 2, 5)
    (found,) = world.state().offsets.values()
    assert (found.position, found.rows, found.records, found.done) == (50, 5, 5, True)


def test_an_end_right_behind_a_position(world: World) -> None:
    """Breaks when a split of which all is committed but its end is not marked as done."""
    outcome = run(world, lines(A, 0, 2), SplitEnd(A, 2), SplitEnd(B, 0), known=(in_bytes(committed(A, 2)),))

    assert (outcome.exit_code, outcome.records) == (0, 0)
    assert [(o.position, o.rows, o.done) for o in world.state().offsets.values()] == [(20, 2, True), (0, 0, True)]


def test_rows_take_over_from_bytes_and_bytes_from_rows(world: World) -> None:
    """Breaks when a position in bytes is taken for a number of rows, or a number of rows for bytes."""
    run(world, rows(A, 0, 3), rows(B, 0, 1), known=(in_bytes(committed(A, 2)),))
    assert world.sent == [*values(A, 2, 3), *values(B, 0, 1)]

    run(world, lines(B, 0, 2), SplitEnd(B, 2))
    assert world.sent == [*values(A, 2, 3), *values(B, 0, 2)]


def test_fewer_rows_than_are_committed_at_an_end_that_is_told(world: World) -> None:
    """Breaks when a split that lost rows is marked as done."""
    outcome = run(world, lines(A, 0, 1), SplitEnd(A, 1), known=(committed(A, 2),))
    assert (outcome.exit_code, outcome.code) == (12, "split-shrank")
    assert world.sent == []


@pytest.mark.parametrize("kind", [rows, lines])
@pytest.mark.parametrize("other", [0, 1])
def test_a_prefix_that_is_not_what_was_sent(world: World, kind: Callable[..., Batch], other: int) -> None:
    """Breaks when the rest of a split goes out behind rows that were never sent, or instead of some that were."""
    whole = kind(A, 0, 5)
    hashes = whole.hashes.copy()
    hashes[other] += 1
    outcome = run(world, replace(whole, hashes=hashes), kind(B, 0, 1), known=(committed(A, 2),))
    assert (outcome.exit_code, outcome.code, world.sent) == (12, "prefix-changed", [])
    assert "f, split at byte 0: its first 2 rows are not those that were sent" in outcome.message


def with_header(batch: Batch, value: bytes) -> Batch:
    """Give each row a metadata hash."""
    hashes = [
        checksum.metadata_hash(int(found), [("h", value)], None, has_timestamp=False)
        for found in batch.hashes.view(np.uint64)
    ]
    return replace(batch, metadata=np.array(hashes, dtype=np.uint64).view(np.int64))


def test_headers_and_timestamps_have_a_sum_of_their_own(world: World) -> None:
    """Breaks when the rest of a split goes out under other headers than its beginning."""
    whole = with_header(rows(A, 0, 5), b"x")
    assert whole.metadata is not None
    run(world, whole, max_records=2)
    assert world.state().offsets[split_id("f", 0)].metadata_checksum == checksum.add(0, whole.metadata)

    half = replace(committed(A, 2), metadata_checksum=checksum.add(0, whole.metadata[:2]))
    for other in (with_header(rows(A, 0, 5), b"y"), rows(A, 0, 5)):
        assert run(World(), other, known=(half,)).code == "prefix-changed"
    same = World()
    assert run(same, whole, known=(half,)).code == ""
    assert same.state().offsets[split_id("f", 0)].metadata_checksum == checksum.add(0, whole.metadata)


@pytest.mark.parametrize(("value", "code"), [(b'{"v":2}', "newer-format"), (b'{"v":1}', "damaged-record")])
@pytest.mark.parametrize("place", [b'{"control":"run"}]', b'{"task":99}]', b'{"file":"f","start":5}]', b'{"later":1}]'])
def test_a_record_that_cannot_be_read_ends_a_task_that_sends(
    world: World, place: bytes, value: bytes, code: str
) -> None:
    """Breaks when it is skipped: it may be a newer release's claim, and what comes next would be sent beside that run."""

    def stranger() -> Batch:
        world.append(record.key_prefix(JOB) + place, value)
        return rows(A, 2, 4)

    world.will("commit", None, FENCED)
    outcome = run(world, rows(A, 0, 2), stranger, max_records=2)
    assert (outcome.exit_code, outcome.code, world.sent) == (7, code, values(A, 0, 2))


def test_rows_behind_the_prefix_may_be_any(world: World) -> None:
    """Breaks when more is compared than the receipt covers, or where a batch ends in the middle of the prefix."""
    outcome = run(world, rows(A, 0, 1), rows(A, 1, 3), rows(A, 3, 5), known=(committed(A, 2),))
    assert (outcome.exit_code, world.sent) == (0, values(A, 2, 5))


@pytest.mark.parametrize(("given", "code"), [(3, "prefix-changed"), (1, "split-shrank"), (2, "")])
def test_a_done_split_that_is_read_again(world: World, given: int, code: str) -> None:
    """Breaks when a split that gives more or fewer rows than it was done with is passed over without a word."""
    done = replace(committed(A, 2), done=True)
    outcome = run(world, rows(A, 0, given), rows(B, 0, 1), known=(done,))
    assert outcome.code == code
    assert world.sent == ([] if code else values(B, 0, 1))


@pytest.mark.parametrize("item", [lines(A, 3, 5), lines(A, 2, 5)])
def test_entered_behind_the_first_row(world: World, item: Batch) -> None:
    """Breaks when rows before the first one that came in are never sent, or not proven."""
    outcome = run(world, item, known=(in_bytes(committed(A, 2)),))
    assert (outcome.code, world.sent) == ("row-out-of-place", [])


@pytest.mark.parametrize("item", [lines(A, 4, 5), SplitEnd(A, 4), SplitEnd(A, 2)])
def test_rows_out_of_place(world: World, item: Batch | SplitEnd) -> None:
    """Breaks when a gap, or an end that comes too early, is taken for what was in the file."""
    outcome = run(world, lines(A, 0, 3), item)
    assert (outcome.exit_code, outcome.code) == (7, "row-out-of-place")
    assert world.sent == []


def test_an_end_behind_a_bad_row(world: World) -> None:
    """Breaks when a split that stopped at a bad row is marked as done, or is out of place for it."""
    bad = replace(lines(A, 0, 3), corrupt=[None, b"bad", None])
    outcome = run(world, bad, lines(A, 3, 5), SplitEnd(A, 5), lines(B, 0, 1), SplitEnd(B, 1))
    assert (outcome.exit_code, outcome.code) == (7, "bad-rows")
    assert world.offsets() == {0: (10, False), STARTS[B]: (10, True)}


def test_a_source_that_cannot_be_read_now(world: World) -> None:
    """Breaks when it is not tried again, or without an end."""

    def fails() -> Any:
        raise OSError(5, "Input/output error")

    with pytest.raises(AttemptLostError, match="Input/output error"):
        run(world, fails)
    outcome = run(world, fails, attempt_number=3)
    assert (outcome.exit_code, outcome.code) == (5, "source-unreadable")


def test_a_source_that_is_not_as_planned_ends_the_attempt(world: World) -> None:
    """Breaks when what the input says of the source is taken for a bug, or tried again."""

    def changed() -> Any:
        raise ChangedError("f: changed after it was listed", code="unplanned-split", hint="wait")

    outcome = run(world, lines(A, 0, 3), changed)
    assert (outcome.exit_code, outcome.code, outcome.hint) == (12, "unplanned-split", "wait")
    assert world.sent == []


def test_a_position_that_moved_while_the_input_came_up_to_it(world: World) -> None:
    """Breaks when an attempt passes over by another position than it began at: rows between the two would be lost."""
    found = replace(committed(B, 2), position=50, position_kind=PositionKind.OFFSET, row_records=2)

    def of_b(start: int, *offsets: int) -> Batch:
        positions = OffsetPositions(np.array(offsets, dtype=np.int64), shared=True)
        return replace(rows(B, start, start + len(offsets)), positions=positions)

    def goes_through(producer: Producer) -> None:
        world.write_offset(
            replace(found, position=57, row_records=1, rows=5, records=5, sequence=7, run=RUN, task=NUMBER)
        )
        through(UNCERTAIN)(producer)

    world.will("commit", goes_through)
    items = (rows(A, 0, 1), later(world, 6, of_b(0, 50)), of_b(1, 50, 50, 50, 57, 57))
    with pytest.raises(AttemptLostError, match="ahead of this attempt"):
        run(world, *items, known=(found,))
    assert world.sent == values(A, 0, 1)


def test_another_attempt_commits_all_of_a_split_that_has_positions(world: World) -> None:
    """Breaks when rows that came in before the other commit count as all rows of the split (simulation 3143097565)."""
    world.will("commit", lambda _: another_commits_all(world))
    outcome = run(world, with_positions(0, 3), with_positions(3, 4), rows(C, 0, 1), max_records=3)
    assert (outcome.exit_code, outcome.code, world.sent) == (0, "", [value_of(C, 0)])


@pytest.mark.parametrize(("cuts", "limit"), [((4,), {"max_records": 3}), ((2, 4), {"max_bytes": 25})])
def test_another_attempt_commits_what_this_one_is_sending(
    world: World, cuts: tuple[int, ...], limit: dict[str, int]
) -> None:
    """Breaks when the rest of a batch is sent after another attempt has committed all of its split."""
    world.will("commit", lambda _: another_commits_all(world))
    batches = [with_positions(start, end) for start, end in itertools.pairwise((0, *cuts))]
    with pytest.raises(AttemptLostError, match="ahead of this attempt"):
        run(world, *batches, rows(C, 0, 1), **limit)
    assert world.sent == []


def with_positions(start: int, end: int) -> Batch:
    offsets = np.array([50, 50, 57, 57], dtype=np.int64)
    return replace(rows(B, start, end), positions=OffsetPositions(offsets[start:end], shared=True))


def another_commits_all(world: World) -> None:
    found = committed(B, 4, run=RUN, task=NUMBER)
    world.write_offset(replace(found, position=57, position_kind=PositionKind.OFFSET, row_records=2, done=True))
    raise FENCED


def test_another_offsets_topic_of_that_name() -> None:
    """Breaks when a task goes on by what it remembers of a topic that is gone: a newer run may own the job in the new one."""
    world = World(offsets_topic_id="id-2")
    outcome = run(world, rows(A, 0, 3))
    assert (outcome.exit_code, outcome.code, world.sent) == (12, "progress-lost", [])
