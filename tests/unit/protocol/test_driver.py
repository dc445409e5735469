"""What the driver asks of Kafka before it claims a job, and in which order; the rest is simulated (tests/simulation)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from eosingest.errors import ChangedError, EosingestError, FatalError, SpecError, TemporaryError
from eosingest.kafka.ports import OpenTransaction
from eosingest.protocol.driver import Driver
from eosingest.protocol.driver_contract import DeadLetterOrder, DriverSettings, Prepared
from eosingest.protocol.offsets import record, topic
from eosingest.protocol.offsets.dead_letters import DeadLetterPin, DeadLetters
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.offsets.state import JobState
from eosingest.protocol.plan import Plan
from eosingest.protocol.task_contract import TaskSettings
from eosingest.protocol.verdict import JobResult
from eosingest.report.model import RunReport
from tests.support.builders import control_record, driver_settings, offset_record, pinned
from tests.support.made_up_files import MadeUpFiles
from tests.support.memory_job import MemoryKafka, Unheard
from tests.support.memory_kafka.clients import MemoryAdmin
from tests.support.memory_kafka.log import Entry

SETTINGS = driver_settings(job="a.1", max_bytes=1000)


class World(MemoryKafka):
    """A Kafka in memory with an offsets topic, and what was asked of it in order."""

    def __init__(self, partitions: int) -> None:
        super().__init__("offsets", self.decided)
        self.told: list[str] = []
        self.fence_timeouts: list[float] = []
        self.hanging = ""  # the topic in which a transaction of the job hangs
        self.cluster.create_topic("offsets", partitions, {"cleanup.policy": "compact"})
        self.admin = _Admin(self)

    def decided(self, name: str, committed: bool, partitions: Mapping[tuple[str, int], list[Entry]]) -> None:
        for entries in partitions.values():
            for entry in entries:
                if entry.key == record.control_key(SETTINGS.job):
                    self.told.append(record.ControlRecord.decode(entry.value or b"").state)

    def has_run(
        self, *sent: OffsetRecord, partitions: int, tasks: int = 2, letters: DeadLetterPin | None = None
    ) -> None:
        """Leave the control and offset records of a run, in an offsets topic that had so many partitions."""
        sink = self.cluster.topics.get("sink")
        topic_id = "" if sink is None else sink.topic_id
        here = pinned(
            topic="sink", topic_id=topic_id, cluster_id="memory", offsets_partitions=partitions, prefix=SETTINGS.prefix
        )
        here = replace(here, offsets_topic_id=self.cluster.topic("offsets").topic_id)
        control = control_record(1, record.RUNNING, tasks_alive=tasks, pinned=here, dead_letters=letters)
        producer = self.control_producer("p.a.1.control")
        producer.init_transactions()
        producer.begin()
        at = topic.partition_of(SETTINGS.job, partitions)
        producer.produce_to_partition("offsets", at, record.control_key(SETTINGS.job), control.encode())
        for each in sent:
            producer.produce_to_partition("offsets", at, each.key(SETTINGS.job), each.encode())
        producer.commit()
        self.told.clear()

    def run(self, settings: DriverSettings, files: MadeUpFiles | None = None) -> RunReport:
        return Driver(settings, self, files or MadeUpFiles(), _NoSpark(), Unheard(), self.runtime()).run()


class _Admin(MemoryAdmin):
    def __init__(self, world: World) -> None:
        super().__init__(world.cluster, world)
        self._world = world

    def fence(self, transactional_ids: Iterable[str], *, timeout_s: float) -> None:
        ids = list(transactional_ids)
        self._world.told += ids
        self._world.fence_timeouts.append(timeout_s)
        super().fence(ids, timeout_s=timeout_s)

    def hanging_transactions(self, topic: str, partitions: int) -> list[tuple[int, OpenTransaction]]:
        return [(0, OpenTransaction("p.a.1.0", 7, 1.0, hanging=True))] if topic == self._world.hanging else []


class _NoSpark:
    def prepare(self, plan: Plan, schema: str | None, *, same_items: bool, encodings: str) -> Prepared:
        raise FatalError("a file is damaged", code="bad-data")

    def start(self, settings: TaskSettings) -> None:
        raise AssertionError("there is nothing to send")

    def poll(self, timeout_s: float) -> JobResult | None:
        raise AssertionError("there is nothing to send")

    def cancel(self) -> None:
        raise AssertionError("there is nothing to send")


def test_tasks_under_another_prefix_are_fenced_behind_the_claim() -> None:
    """Breaks when they are fenced before it: one that inits in between finds the job its own, and sends beside the new run."""
    world = World(5)
    world.has_run(partitions=5)
    world.run(replace(SETTINGS, prefix="q.", from_scratch=True))
    claimed = world.told.index("claimed")
    assert world.told[:claimed] == ["p.a.1.control"]
    assert world.told[claimed + 1 : -1] == ["p.a.1.0", "p.a.1.1", "q.a.1.0", "q.a.1.1"]


@pytest.mark.parametrize("from_scratch", [False, True])
def test_partitions_that_were_added_to_the_offsets_topic(from_scratch: bool) -> None:
    """Breaks when the job looks new in the partition it would have now: everything would be sent again, with exit 0."""
    assert topic.partition_of(SETTINGS.job, 5) != topic.partition_of(SETTINGS.job, 10)
    world = World(10)
    world.has_run(partitions=5)
    with pytest.raises(ChangedError) as caught:
        world.run(replace(SETTINGS, from_scratch=from_scratch))
    assert caught.value.code == "pinned"
    assert "was 5 in the job's earlier runs and is 10 now" in caught.value.message
    assert world.told == [], "nothing was fenced or claimed"


@pytest.mark.parametrize("from_scratch", [False, True])
def test_a_new_job_whose_ids_another_job_has(from_scratch: bool) -> None:
    """Breaks when it fences the other job's tasks, or is said to have lost its progress."""
    world = World(5)
    assert world.run(replace(SETTINGS, job="b.c", prefix="a.")).exit_code == 0
    world.told.clear()
    for prefix, job in (("a.b.", "c"), ("a.b", ".c"), ("", "a.b.c")):
        with pytest.raises(SpecError) as caught:
            world.run(replace(SETTINGS, job=job, prefix=prefix, from_scratch=from_scratch))
        assert (caught.value.exit_code, caught.value.code) == (2, "same-transactional-ids")
        assert 'the transactional ids of job "b.c", whose prefix is "a."' in caught.value.message
    assert world.told == [], "nothing was fenced or claimed"
    for prefix, job in (("a.", "c"), ("a.b.", "c.d"), ("a.", "b.c")):
        assert world.run(replace(SETTINGS, job=job, prefix=prefix)).exit_code == 0


def test_a_prefix_that_gives_a_job_the_ids_of_another() -> None:
    world = World(5)
    world.run(replace(SETTINGS, job="b.c", prefix="a."))
    world.run(replace(SETTINGS, job="c", prefix="x."))
    with pytest.raises(SpecError):
        world.run(replace(SETTINGS, job="c", prefix="a.b.", from_scratch=True))


def test_a_new_job_beside_others() -> None:
    world = World(10)
    world.has_run(partitions=5)
    assert world.run(replace(SETTINGS, job="another")).exit_code == 0


def test_thousands_of_ids_have_time_to_be_fenced() -> None:
    """Breaks when the time-out is that of a read: replicas that take 10 ms for each of 5,000 ids would let no run claim."""
    world = World(5)
    world.has_run(partitions=5, tasks=5_000)
    with contextlib.suppress(EosingestError):
        world.run(SETTINGS)
    assert world.fence_timeouts == [topic.read_deadline_s(SETTINGS.transaction_timeout_s) + 100]


@pytest.mark.parametrize("asked", [True, False], ids=["with on_error", "without it now"])
def test_a_transaction_that_hangs_in_the_dead_letter_topic(asked: bool) -> None:
    """Breaks when only the sink topic is looked at: the next commit of its producer would commit a letter of an aborted one."""
    world = World(5)
    world.cluster.create_topic("dead", 1, {})
    world.has_run(partitions=5, letters=DeadLetterPin("dead", "topic-2", (0,)))
    settings = replace(SETTINGS, dead_letters=DeadLetterOrder("dead", 9) if asked else None)
    world.hanging = "dead"
    with pytest.raises(TemporaryError) as caught:
        world.run(settings)
    assert caught.value.code == "hanging-transaction"
    assert "--topic dead --partition 0 --start-offset 7" in caught.value.hint
    world.hanging = ""
    assert world.run(settings).exit_code == 0


@pytest.mark.parametrize("known", [True, False], ids=["by the last complete run", "by none"])
def test_offset_records_of_letters_that_were_deleted(known: bool) -> None:
    """Breaks when the rows of letters whose offset records were deleted are sent again."""
    world = World(5)
    world.cluster.create_topic("dead", 1, {})
    pin = DeadLetterPin("dead", "topic-2", (0,), before=3 if known else 0)
    world.has_run(partitions=5, letters=pin)
    if not known:
        assert world.run(SETTINGS).exit_code == 0
        return
    with pytest.raises(ChangedError, match="account for 0 dead letters, the control record for 3"):
        world.run(SETTINGS)


@pytest.mark.parametrize("from_scratch", [False, True])
@pytest.mark.parametrize("asked", [True, False], ids=["with on_error", "without it now"])
def test_a_run_that_fails_before_it_sends_keeps_the_pin_of_the_dead_letters(asked: bool, from_scratch: bool) -> None:
    """Breaks when every such run retires the letters of a changed file again, or forgets where the letters begin."""
    world, files = World(5), MadeUpFiles()
    world.cluster.create_topic("dead", 1, {})
    letters, pin = DeadLetters(2, 3, 4, 5), DeadLetterPin("dead", "topic-2", (0,))
    sent = offset_record("a", rows=3, records=1, done=True, read=files.put("a", 100))
    world.cluster.create_topic("sink", 1, {})
    world.has_run(replace(sent, dead=letters), partitions=5, letters=pin)
    producer = world.control_producer("p.a.1.0")
    producer.init_transactions()
    producer.begin()
    producer.produce_to_partition("dead", 0, b"k", b"a letter")
    producer.commit()
    files.put("a", 100, mtime_ms=2, content="y")
    order = DeadLetterOrder("dead", 9) if asked else None
    settings = replace(SETTINGS, dead_letters=order, on_change="reingest", from_scratch=from_scratch)
    for _ in range(2):
        with pytest.raises(FatalError, match="damaged"):
            world.run(settings, files)
    state = JobState(SETTINGS.job)
    state.fold(world.committed("offsets"))
    assert state.control is not None and state.control.dead_letters == pin
    assert state.dead_letters(pin) == letters
