"""The Kafka in memory, rule by rule. That a real Kafka answers the same is for tests/integration/test_memory_*.py."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from eosingest.errors import TemporaryError
from eosingest.kafka.ports import FailureKind, KafkaFailure, LogRecord, Records
from tests.support.memory_kafka.clients import MemoryAdmin, MemoryProducer, MemoryReader, NoAnswerError
from tests.support.memory_kafka.cluster import Cluster, Offsets, State
from tests.support.memory_kafka.log import BrokerError, Identity, Log

_T = TypeVar("_T")
TOPIC = "t"


class Net:
    """A network and a clock. `script` holds what becomes of the next requests: "lose", "lose answer", or None for nothing."""

    def __init__(self) -> None:
        self.time = 0.0
        self.script: deque[str | None] = deque()
        self.asked: list[str] = []

    def send(self, request: str, apply: Callable[[], _T]) -> _T:
        self.asked.append(request)
        fate = self.script.popleft() if self.script else None
        if fate == "lose":
            raise NoAnswerError
        answer = apply()
        if fate == "lose answer":
            raise NoAnswerError
        return answer

    def now(self) -> float:
        return self.time

    def wait(self, seconds: float) -> None:
        self.time += seconds


class World:
    """A cluster with one topic of two partitions. With `lazy`, markers wait in `later` until they are run."""

    def __init__(self, *, lazy: bool = False, **settings: Any) -> None:
        self.net = Net()
        self.later: list[Callable[[], None]] = []
        defer = self.later.append if lazy else (lambda action: action())
        self.decided: list[tuple[str, bool, int]] = []
        self.cluster = Cluster(self.net.now, defer=defer, decided=self._decide, **settings)
        self.cluster.create_topic(TOPIC, 2, {})
        self.admin = MemoryAdmin(self.cluster, self.net)
        self.reader = MemoryReader(TOPIC, 0, self.cluster, self.net)

    def _decide(self, name: str, committed: bool, partitions: Any) -> None:
        self.decided.append((name, committed, sum(len(entries) for entries in partitions.values())))

    def producer(self, name: str = "a", timeout_s: float = 60.0) -> MemoryProducer:
        made = MemoryProducer(name, self.cluster, self.net, timeout_s=timeout_s)
        made.init_transactions()
        return made

    def open(self, value: bytes, name: str = "a", timeout_s: float = 60.0) -> MemoryProducer:
        """A producer with one record of its transaction in partition 0."""
        made = self.producer(name, timeout_s)
        made.begin()
        made.produce_to_partition(TOPIC, 0, b"k", value)
        made.flush()
        return made

    def offsets(self, partition: int = 0) -> Offsets:
        return self.cluster.list_offsets(TOPIC, partition)

    def values(self, *, committed: bool = True) -> list[bytes | None]:
        return [record.value for record in self.cluster.fetch(TOPIC, 0, self.offsets().start, committed=committed)[0]]


@pytest.fixture
def world() -> World:
    return World()


def records(*values: bytes | None, key: bytes = b"k") -> list[LogRecord]:
    return [LogRecord(-1, key, value) for value in values]


def refusal(action: Callable[[], Any]) -> str:
    with pytest.raises(BrokerError) as caught:
        action()
    return caught.value.code


def failure(action: Callable[[], Any]) -> KafkaFailure:
    with pytest.raises(KafkaFailure) as caught:
        action()
    return caught.value


# ---- commits, aborts, isolation ----------------------------------------------------------------------------------


def test_a_transaction_is_seen_when_it_is_committed(world: World) -> None:
    producer = world.open(b"1")
    assert world.values() == []
    assert world.values(committed=False) == [b"1"]
    assert world.offsets() == (0, 1, 0)
    producer.commit()
    assert world.values() == [b"1"]
    assert world.offsets() == (0, 2, 2), "the marker takes an offset"
    assert world.decided == [("a", True, 1)]


def test_an_aborted_transaction_is_never_seen(world: World) -> None:
    world.open(b"1")
    world.admin.fence(["a"], timeout_s=5)
    assert world.values() == []
    assert world.values(committed=False) == [b"1"]
    assert world.offsets() == (0, 2, 2)


def test_an_open_transaction_hides_what_was_committed_behind_it(world: World) -> None:
    first, second = world.open(b"1", "a"), world.open(b"2", "b")
    second.commit()
    assert world.offsets() == (0, 3, 0)
    assert world.values() == []
    first.commit()
    assert world.values() == [b"1", b"2"]


def test_a_transaction_over_two_partitions_is_seen_marker_by_marker() -> None:
    world = World(lazy=True)
    producer = world.open(b"1")
    producer.produce_to_partition(TOPIC, 1, b"k", b"2")
    producer.commit()
    assert world.cluster.transactions["a"].state is State.PREPARE_COMMIT
    assert [world.offsets(0).last_stable, world.offsets(1).last_stable] == [0, 0]
    world.later.pop()()
    assert sorted([world.offsets(0).last_stable, world.offsets(1).last_stable]) == [0, 2]
    world.later.pop()()
    assert world.cluster.transactions["a"].state is State.COMPLETE_COMMIT
    assert world.decided == [("a", True, 2)], "decided once, and before the first marker"


def test_between_decision_and_last_marker_everything_has_to_wait() -> None:
    world = World(lazy=True)
    who = world.cluster.init_producer_id("a", 60)
    world.cluster.produce(who, TOPIC, 0, 0, records(b"1"))
    world.cluster.end_txn(who, commit=True)
    for ask in (
        lambda: world.cluster.init_producer_id("a", 60),
        lambda: world.cluster.produce(who, TOPIC, 0, 1, records(b"2")),
        lambda: world.cluster.end_txn(who, commit=True),
    ):
        assert refusal(ask) == "CONCURRENT_TRANSACTIONS"
    assert refusal(lambda: world.cluster.end_txn(who, commit=False)) == "INVALID_TXN_STATE"
    world.later.pop()()
    assert world.cluster.init_producer_id("a", 60).epoch == 1


def test_the_clients_wait_for_the_last_marker() -> None:
    world = World(lazy=True)
    world.open(b"1").commit()
    world.net.wait = lambda seconds: world.later.pop()()  # type: ignore[method-assign]
    assert world.producer().begin() is None


def test_a_commit_of_nothing_asks_nobody(world: World) -> None:
    producer = world.producer()
    producer.begin()
    asked = len(world.net.asked)
    producer.commit()
    assert len(world.net.asked) == asked


@pytest.mark.parametrize("commit", [True, False])
def test_end_txn_asked_again(world: World, commit: bool) -> None:
    who = world.cluster.init_producer_id("a", 60)
    assert refusal(lambda: world.cluster.end_txn(who, commit=commit)) == "INVALID_TXN_STATE"
    world.cluster.produce(who, TOPIC, 0, 0, records(b"1"))
    world.cluster.end_txn(who, commit=commit)
    world.cluster.end_txn(who, commit=commit)
    assert refusal(lambda: world.cluster.end_txn(who, commit=not commit)) == "INVALID_TXN_STATE"
    assert world.offsets().high_watermark == 2


# ---- fencing -------------------------------------------------------------------------------------------------------


def test_init_fences_aborts_and_needs_two_goes(world: World) -> None:
    who = world.cluster.init_producer_id("a", 60)
    world.cluster.produce(who, TOPIC, 0, 0, records(b"1"))
    assert refusal(lambda: world.cluster.init_producer_id("a", 60)) == "CONCURRENT_TRANSACTIONS"
    assert world.offsets().last_stable == 2
    assert world.cluster.init_producer_id("a", 60) == Identity("a", who.producer_id, 2)
    assert refusal(lambda: world.cluster.produce(who, TOPIC, 0, 1, records(b"2"))) == "PRODUCER_FENCED"
    assert refusal(lambda: world.cluster.end_txn(who, commit=True)) == "PRODUCER_FENCED"


@pytest.mark.parametrize("how", ["init", "fence", "time-out"])
def test_a_zombie_commits_nothing(world: World, how: str) -> None:
    zombie = world.open(b"zombie", timeout_s=10)
    if how == "init":
        world.producer()
    elif how == "fence":
        world.admin.fence(["a"], timeout_s=5)
    else:
        world.net.time += 11
    zombie.produce_to_partition(TOPIC, 1, b"k", b"more")
    assert failure(zombie.commit).kind is FailureKind.FENCED
    assert failure(zombie.begin).kind is FailureKind.FENCED, "and it stays so"
    assert world.values() == []
    assert world.offsets(1) == (0, 0, 0)


def test_a_fence_leaves_other_ids_alone(world: World) -> None:
    other = world.open(b"1", "b")
    world.admin.fence(["a", "never-heard-of"], timeout_s=5)
    other.commit()
    assert world.values() == [b"1"]
    assert world.admin.knows_transactional_id("never-heard-of"), "a fence makes it known"
    assert not world.admin.knows_transactional_id("nobody")


def test_a_transaction_in_time_does_not_time_out(world: World) -> None:
    producer = world.open(b"1", timeout_s=10)
    world.net.time += 10
    producer.commit()
    assert world.values() == [b"1"]


def test_epochs_run_out() -> None:
    world = World(max_epoch=4)
    given = [world.cluster.init_producer_id("a", 60) for _ in range(5)]
    assert [(who.producer_id, who.epoch) for who in given] == [(1, 0), (1, 1), (1, 2), (1, 3), (2, 0)]
    assert refusal(lambda: world.cluster.end_txn(given[3], commit=True)) == "INVALID_PRODUCER_ID_MAPPING"


def test_a_fence_may_take_the_last_epoch() -> None:
    world = World(max_epoch=4)
    for _ in range(4):
        who = world.cluster.init_producer_id("a", 60)
    world.cluster.produce(who, TOPIC, 0, 0, records(b"1"))
    assert refusal(lambda: world.cluster.init_producer_id("a", 60)) == "CONCURRENT_TRANSACTIONS"
    assert world.cluster.init_producer_id("a", 60)[1:] == (2, 1)
    assert world.offsets().last_stable == 2


def test_an_idle_id_is_forgotten() -> None:
    world = World(expiration_s=100)
    idle, busy = world.open(b"1", "idle"), world.open(b"2", "busy", timeout_s=1000)
    idle.commit()
    world.net.time += 101
    world.cluster.expire_ids()
    assert [world.admin.knows_transactional_id(name) for name in ("idle", "busy")] == [False, True]
    busy.commit()
    idle.begin()
    idle.produce_to_partition(TOPIC, 0, b"k", b"3")
    found = failure(idle.flush)
    assert (found.kind, found.code) == (FailureKind.UNCERTAIN, "INVALID_PRODUCER_ID_MAPPING")
    assert world.cluster.init_producer_id("idle", 60).epoch == 0
    assert world.values() == [b"1", b"2"]


# ---- what goes into a log --------------------------------------------------------------------------------------------


def test_a_repeated_batch_is_taken_once_and_a_missing_one_is_noticed(world: World) -> None:
    who = world.cluster.init_producer_id("a", 60)
    for _ in range(2):
        world.cluster.produce(who, TOPIC, 0, 0, records(b"1", b"2"))
    assert refusal(lambda: world.cluster.produce(who, TOPIC, 0, 3, records(b"4"))) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    world.cluster.produce(who, TOPIC, 0, 2, records(b"3"))
    assert world.values(committed=False) == [b"1", b"2", b"3"]
    world.cluster.end_txn(who, commit=True)
    assert world.decided == [("a", True, 3)]


def test_a_new_epoch_begins_its_sequence_anew(world: World) -> None:
    world.open(b"1").commit()
    who = world.cluster.init_producer_id("a", 60)
    assert refusal(lambda: world.cluster.produce(who, TOPIC, 0, 1, records(b"2"))) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    world.cluster.produce(who, TOPIC, 0, 0, records(b"2"))


def test_a_late_repetition_in_the_next_transaction_stops_it(world: World) -> None:
    """The log takes the repetition's sequence for the first of the new transaction, and what follows for a gap."""
    who = world.cluster.init_producer_id("a", 60)
    world.cluster.produce(who, TOPIC, 0, 0, records(b"1"))
    world.cluster.end_txn(who, commit=True)
    world.cluster.produce(who, TOPIC, 0, 0, records(b"1"))
    assert refusal(lambda: world.cluster.produce(who, TOPIC, 0, 1, records(b"2"))) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    world.cluster.end_txn(who, commit=True)
    assert world.values() == [b"1"]
    assert world.offsets() == (0, 3, 3), "a marker also where there was no record"


def test_a_topic_made_again_is_another(world: World) -> None:
    producer = world.open(b"1")
    before = world.admin.describe_topic(TOPIC)
    world.cluster.delete_topic(TOPIC)
    assert world.admin.describe_topic(TOPIC) is None
    assert failure(world.reader.high_watermark).kind is FailureKind.REFUSED
    world.admin.create_topic(TOPIC, partitions=2, replication_factor=1, config={"a": "b"})
    after = world.admin.describe_topic(TOPIC)
    assert before is not None
    assert after is not None
    assert before.topic_id != after.topic_id
    assert after.config == {"a": "b"}
    producer.commit()
    assert world.values() == []
    assert world.offsets() == (0, 1, 1)


def test_create_topic_leaves_one_that_exists(world: World) -> None:
    world.admin.create_topic(TOPIC, partitions=9, replication_factor=1, config={})
    found = world.admin.describe_topic(TOPIC)
    assert found is not None
    assert found.partitions == 2


def test_a_partition_that_is_not_there_is_refused(world: World) -> None:
    producer = world.producer()
    producer.begin()
    producer.produce_to_partition(TOPIC, 7, b"k", b"v")
    assert failure(producer.flush).kind is FailureKind.REFUSED


def test_a_key_stays_in_its_partition(world: World) -> None:
    producer = world.producer()
    producer.begin()
    producer.produce(TOPIC, Records([b"x"] * 5 + [b"y"] * 5, [b"v"] * 10))
    producer.flush()
    assert all(world.offsets(partition).high_watermark in (0, 5, 10) for partition in range(2))
    assert world.offsets(0).high_watermark + world.offsets(1).high_watermark == 10


# ---- compaction and deletion -----------------------------------------------------------------------------------------


def write(log: Log, producer_id: int, key: bytes, value: bytes | None, committed: bool | None) -> None:
    """One transaction of one record and its marker; None leaves it open."""
    who = Identity(str(producer_id), producer_id, 0)
    log.append(who, 0, records(value, key=key))
    if committed is not None:
        log.write_marker(who, committed=committed)


def left(log: Log) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value) for record in log.fetch(log.start, committed=False)[0]]


def test_compaction_keeps_the_latest_committed_record_of_a_key() -> None:
    log = Log()
    write(log, 1, b"x", b"1", True)  # 0, marker 1
    write(log, 2, b"x", b"2", True)  # 2
    write(log, 3, b"y", b"3", True)  # 4
    write(log, 4, b"x", b"aborted", False)  # 6
    log.compact(log.end)
    assert left(log) == [(2, b"2"), (4, b"3")]
    assert (log.end, log.last_stable) == (8, 8)
    assert log.fetch(5, committed=True) == ([], 8), "positions go on over what is gone"


def test_compaction_stops_where_it_is_told_and_before_what_is_open() -> None:
    log = Log()
    write(log, 1, b"x", b"1", True)  # 0
    write(log, 2, b"x", b"2", None)  # 2, open
    write(log, 3, b"x", b"3", True)  # 3
    log.compact(log.end)
    assert left(log) == [(0, b"1"), (2, b"2"), (3, b"3")]
    log.write_marker(Identity("2", 2, 0), committed=False)
    log.compact(3)
    assert left(log) == [(0, b"1"), (3, b"3")]
    log.compact(log.end)
    assert left(log) == [(3, b"3")]


def test_tombstones_go_when_they_are_told_to() -> None:
    log = Log()
    write(log, 1, b"x", b"1", True)
    write(log, 2, b"x", None, True)
    log.compact(log.end)
    assert left(log) == [(2, None)]
    log.compact(log.end, drop_tombstones=True)
    assert left(log) == []


def test_the_start_moves(world: World) -> None:
    for value in (b"1", b"2"):
        world.open(value).commit()
    world.cluster.log(TOPIC, 0).delete_before(2)
    assert world.offsets() == (2, 4, 4)
    assert world.values() == [b"2"]
    found = failure(lambda: list(world.reader.read(0, 4, committed=True, deadline_s=1)))
    assert (found.kind, found.code) == (FailureKind.UNCERTAIN, "_AUTO_OFFSET_RESET")


# ---- clients: reading, and answers that do not come --------------------------------------------------------------------


def test_a_read_waits_for_what_is_open_until_its_deadline(world: World) -> None:
    world.open(b"0", "b").commit()
    world.open(b"1")
    found: list[LogRecord] = []
    caught = failure(lambda: found.extend(world.reader.read(0, 3, committed=True, deadline_s=5)))
    assert (caught.kind, caught.code) == (FailureKind.UNCERTAIN, "read-deadline")
    assert "2 of 3" in caught.detail
    assert [record.value for record in found] == [b"0"], "what is decided"
    assert world.net.time > 5


def test_a_read_goes_on_when_it_is_decided(world: World) -> None:
    producer = world.open(b"1")
    reading = world.reader.read(0, 1, committed=True, deadline_s=100)
    world.net.wait = lambda seconds: producer.commit()  # type: ignore[method-assign]
    assert [record.value for record in reading] == [b"1"]


def test_a_read_takes_just_the_range(world: World) -> None:
    for value in (b"1", b"2", b"3"):
        world.open(value).commit()  # 0, 2, 4 and markers
    read = world.reader.read
    assert [record.offset for record in read(1, 5, committed=True, deadline_s=1)] == [2, 4]
    assert list(read(5, 6, committed=True, deadline_s=1)) == []
    assert (world.reader.log_start(), world.reader.high_watermark(), world.reader.last_stable_offset()) == (0, 6, 6)
    assert world.admin.offset_ranges(TOPIC, 2) == ((0, 6), (0, 0))


def test_who_holds_transactions_open(world: World) -> None:
    world.open(b"0", "c").commit()
    world.open(b"1", "b")
    world.net.time += 7
    world.open(b"2", "a")
    assert world.admin.open_transactions(TOPIC, 0) == [("b", 2, 7.0, False), ("a", 3, 0.0, False)]
    assert world.admin.open_transactions(TOPIC, 1) == []


@pytest.mark.parametrize("fate", ["lose", "lose answer"])
def test_a_commit_is_asked_for_again_until_it_is_answered(world: World, fate: str) -> None:
    producer = world.open(b"1")
    world.net.script.extend([fate, fate])
    producer.commit()
    assert world.net.asked[-3:] == ["EndTxn"] * 3
    assert world.values() == [b"1"]
    assert world.offsets().high_watermark == 2, "once"


@pytest.mark.parametrize("fate", ["lose", "lose answer"])
def test_records_are_sent_again_and_taken_once(world: World, fate: str) -> None:
    producer = world.producer()
    producer.begin()
    producer.produce_to_partition(TOPIC, 0, b"k", b"1")
    world.net.script.append(fate)
    producer.commit()
    assert world.values() == [b"1"]


@pytest.mark.parametrize(("fate", "expected"), [("lose", []), ("lose answer", [b"1"])])
def test_a_commit_that_is_never_answered_is_uncertain(world: World, fate: str, expected: list[bytes]) -> None:
    producer = world.open(b"1", timeout_s=10)
    world.net.script.extend([fate] * 100)
    assert failure(producer.commit).kind is FailureKind.UNCERTAIN
    world.net.script.clear()
    world.producer()
    assert world.values() == expected, "only reading tells"


def test_an_init_whose_answer_is_lost_takes_another_epoch(world: World) -> None:
    world.net.script.append("lose answer")
    producer = world.producer()
    assert world.cluster.transactions["a"].epoch == 1
    producer.begin()
    producer.produce_to_partition(TOPIC, 0, b"k", b"1")
    producer.commit()
    assert world.values() == [b"1"]


def test_after_a_failure_a_producer_does_nothing_more(world: World) -> None:
    producer = world.open(b"1", timeout_s=10)
    producer.produce_to_partition(TOPIC, 0, b"k", b"2")
    world.net.script.extend(["lose"] * 100)
    assert failure(producer.flush).kind is FailureKind.UNCERTAIN
    world.net.script.clear()
    asked = len(world.net.asked)
    assert failure(producer.commit).kind is FailureKind.UNCERTAIN
    assert failure(producer.begin).kind is FailureKind.UNCERTAIN
    assert len(world.net.asked) == asked


def test_an_admin_without_answers_is_temporary(world: World) -> None:
    world.net.script.extend(["lose"] * 100)
    with pytest.raises(TemporaryError):
        world.admin.describe_topic(TOPIC)
    with pytest.raises(TemporaryError) as caught:
        world.admin.fence(["a"], timeout_s=5)
    assert caught.value.code == "fence-timeout"
