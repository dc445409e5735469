"""A random walk over what the core asks of Kafka, through the clients in memory and the real ones at once.

Producers of three transactional ids, several of each alive (all but the newest are zombies), one reader a partition, one
admin. After each operation both sides must have given the same answer, and hold the same offsets, states and epochs.
"""

from __future__ import annotations

import contextlib
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from eosingest.kafka.config import ClientSettings
from eosingest.kafka.kafka_python import KafkaPythonAdmin
from eosingest.kafka.offsets_reader import LibrdkafkaOffsetsReader
from eosingest.kafka.ports import FailureKind, KafkaFailure, OffsetsReader, Producer
from eosingest.kafka.producer import LibrdkafkaProducer, ProducerSettings
from tests.support.harness import wait_for
from tests.support.memory_kafka.clients import MemoryAdmin, MemoryProducer, MemoryReader
from tests.support.memory_kafka.cluster import Cluster
from tests.support.raw_kafka import RawKafka

PARTITIONS = 2
TIMEOUT_S = 300.0
SHORT_TIMEOUT_S = 3.0
DEADLINE_S = 0.3
# librdkafka knows of the partition from its metadata; and says of a record only that it was dropped.
_SAME = {"_UNKNOWN_PARTITION": "UNKNOWN_TOPIC_OR_PART", "_PURGE_QUEUE": "INVALID_PRODUCER_ID_MAPPING"}
_T = TypeVar("_T")


class Direct:
    """A network that always delivers, and a clock that goes on when somebody waits."""

    def __init__(self) -> None:
        self.time = 1_000_000.0

    def send(self, request: str, apply: Callable[[], _T]) -> _T:
        return apply()

    def now(self) -> float:
        return self.time

    def wait(self, seconds: float) -> None:
        self.time += seconds


@dataclass
class Pair:
    """A producer on both sides. `retired`: its topic was made again, so that librdkafka's view of it is old."""

    name: str
    memory: Producer
    real: Producer
    in_transaction: bool = False
    failed: bool = False
    retired: bool = False


class Answer(NamedTuple):
    """How an operation ended: what it returned, or how it failed."""

    value: Any = None
    kind: FailureKind | None = None
    code: str = ""


class ClientWalk:
    """One walk; `run` raises AssertionError where the two differ, and `done` then says what led there."""

    def __init__(self, seed: int, raw: RawKafka, servers: str, *, expiration_s: float = 86_400.0) -> None:
        self.random = random.Random(seed)
        self.raw = raw
        self.settings = ClientSettings(servers)
        self.network = Direct()
        self.cluster = Cluster(self.network.now, expiration_s=expiration_s)
        self.topic = f"clients-{uuid.uuid4().hex[:8]}"
        self.ids = [f"{self.topic}.{number}" for number in range(2)] + [f"foreign-{self.topic}"]
        self.known: set[str] = set()
        self.pairs: list[Pair] = []
        self.made = 0
        self.records = 0
        self.done: list[str] = []
        self.admins = (MemoryAdmin(self.cluster, self.network), KafkaPythonAdmin(self.settings))
        self.readers: dict[int, tuple[OffsetsReader, OffsetsReader]] = {}
        for admin in self.admins:
            admin.create_topic(self.topic, partitions=PARTITIONS, replication_factor=1, config={})

    # ---- the walk ----------------------------------------------------------------------------------------------------

    def run(self, steps: int, *, timeouts: bool = False) -> None:
        """Walk, with one time-out in the middle where asked for, and read everything at the end."""
        self.make_producer()
        for number in range(steps):
            if timeouts and number == steps // 2:
                self.time_out()
            else:
                self.step()
            self.compare()
        self.look()
        for partition in range(PARTITIONS):
            self.read(partition, whole=True)

    def close(self) -> None:
        for pair in self.pairs:
            pair.real.close()
        self.close_readers()
        self.admins[1].close()

    def close_readers(self) -> None:
        for pair in self.readers.values():
            pair[1].close()
        self.readers.clear()

    def step(self) -> None:
        kinds: dict[Callable[[], None], float] = {
            self.make_producer: 2 if len(self.pairs) < 6 else 0,
            self.move_on: 14,
            self.leave: 1,
            self.fence: 1.5,
            self.read_somewhere: 2,
            self.trim: 0.7,
            self.look: 1,
            self.recreate: 0.2,
        }
        self.random.choices(list(kinds), list(kinds.values()))[0]()

    # ---- producers -----------------------------------------------------------------------------------------------------

    def make_producer(self, name: str = "", timeout_s: float = TIMEOUT_S) -> Pair:
        """A new producer of some id: from here on the others of this id are zombies."""
        name = name or self.random.choice(self.ids)
        self.made += 1
        settings = ProducerSettings(self.settings, self.topic, timeout_s)
        memory = MemoryProducer(name, self.cluster, self.network, timeout_s=timeout_s)
        pair = Pair(f"{name[-1]}#{self.made}", memory, LibrdkafkaProducer(name, settings))
        self.pairs.append(pair)
        self.known.add(name)
        self.ask(f"{pair.name} init", memory.init_transactions, pair.real.init_transactions)
        return pair

    def move_on(self) -> None:
        """The next step of some producer, a zombie or not."""
        if not self.pairs:
            return
        pair = self.random.choice(self.pairs)
        if not pair.in_transaction:
            self.begin(pair)
        elif pair.retired or self.random.random() < 0.4:
            self.commit(pair)
        elif self.random.random() < 0.03:
            self.send(pair, [PARTITIONS + 3])
        else:
            self.send(pair, self.random.choices(range(PARTITIONS), k=self.random.randint(1, 3)))
            if self.random.random() < 0.3:
                self.commit(pair)

    def begin(self, pair: Pair) -> None:
        self.ask_producer(pair, "begin", lambda producer: producer.begin())
        pair.in_transaction = True

    def send(self, pair: Pair, partitions: list[int]) -> Answer:
        """Records to partitions, and a flush: they have arrived, or the failure is known."""
        self.records += 1
        record = self.records

        def send(producer: Producer) -> None:
            for number, partition in enumerate(partitions):
                value = None if record % 7 == 0 else f"{record}.{number}".encode()
                producer.produce_to_partition(self.topic, partition, f"k{record % 3}".encode(), value)
            producer.flush()

        return self.ask_producer(pair, f"send {record} to {partitions}", send)

    def commit(self, pair: Pair, *, alone: bool = False) -> None:
        """Commit, at times with a record that was not flushed."""
        alone = alone or pair.retired or self.random.random() < 0.5
        partition = None if alone else self.random.randrange(PARTITIONS)

        def commit(producer: Producer) -> None:
            if partition is not None:
                producer.produce_to_partition(self.topic, partition, b"last", b"last")
            producer.commit()

        self.ask_producer(pair, "commit" if partition is None else f"last record to {partition} and commit", commit)
        pair.in_transaction = False

    def leave(self, pair: Pair | None = None) -> None:
        """Close a producer, whatever it has open."""
        if self.pairs:
            pair = pair or self.random.choice(self.pairs)
            self.pairs.remove(pair)
            self.ask(f"{pair.name} close", pair.memory.close, pair.real.close)

    def time_out(self) -> None:
        """A producer whose transaction outlasts its time, on Kafka first: nothing else could end it there."""
        name = self.random.choice(self.ids)
        pair = self.make_producer(name, timeout_s=SHORT_TIMEOUT_S)
        self.begin(pair)
        self.send(pair, [0, 1])
        self.done.append("its transaction times out")
        wait_for(lambda: "Ongoing" not in self.raw.look(self.topic, PARTITIONS, [name])[0][0], timeout_s=30)
        self.network.wait(SHORT_TIMEOUT_S + 1)

    # ---- the admin and the readers -------------------------------------------------------------------------------------

    def fence(self) -> None:
        names = self.random.sample(self.ids, self.random.randint(1, 2))
        self.known.update(names)
        self.ask(f"fence {names}", *(lambda admin=admin: admin.fence(names, timeout_s=20) for admin in self.admins))

    def look(self) -> None:
        """Everything that can be asked without changing anything."""

        def looks(admin: Any) -> list[Any]:
            topic = admin.describe_topic(self.topic)
            return [
                (topic.name, topic.partitions),
                admin.describe_topic("nobody-made-it"),
                [admin.knows_transactional_id(name) for name in [*self.ids, "nobody"]],
                sorted(admin.known_ids(self.ids[0][:-1]) & set(self.ids)),
                [[entry[:2] for entry in admin.open_transactions(self.topic, number)] for number in range(PARTITIONS)],
                admin.offset_ranges(self.topic, PARTITIONS),
            ]

        self.ask("look", *(lambda admin=admin: looks(admin) for admin in self.admins))
        for partition in range(PARTITIONS):
            self.ask(
                f"watermarks of {partition}",
                *(
                    lambda reader=reader: (reader.log_start(), reader.high_watermark(), reader.last_stable_offset())
                    for reader in self.reader(partition)
                ),
            )

    def reader(self, partition: int) -> tuple[OffsetsReader, OffsetsReader]:
        if partition not in self.readers:
            self.readers[partition] = (
                MemoryReader(self.topic, partition, self.cluster, self.network),
                LibrdkafkaOffsetsReader(self.topic, partition, self.settings),
            )
        return self.readers[partition]

    def read_somewhere(self) -> None:
        self.read(self.random.randrange(PARTITIONS), whole=self.random.random() < 0.5)

    def read(self, partition: int, *, whole: bool) -> None:
        """Read the partition or a piece of it, both ways: what is decided, then that a read waits behind what is open."""
        log = self.cluster.log(self.topic, partition)
        start, end = log.start, log.end
        if not whole:
            start = self.random.randint(max(0, start - 1), end)
            end = self.random.randint(start, end)
        self.read_range(partition, start, end, committed=False)
        decided = min(end, max(start, log.last_stable))
        self.read_range(partition, start, decided, committed=True)
        self.read_range(partition, decided, end, committed=True, deadline_s=DEADLINE_S)

    def read_range(self, partition: int, start: int, end: int, *, committed: bool, deadline_s: float = 20) -> None:
        found: tuple[list[Any], list[Any]] = ([], [])

        def read(reader: OffsetsReader, into: list[Any]) -> None:
            for record in reader.read(start, end, committed=committed, deadline_s=deadline_s):
                into.append(record[:3])

        memory, real = self.reader(partition)
        text = f"read {partition} from {start} to {end} {'committed' if committed else 'uncommitted'}"
        self.ask(text, lambda: read(memory, found[0]), lambda: read(real, found[1]))
        assert found[0] == found[1], f"memory gave {found[0]}, Kafka {found[1]}"

    def trim(self) -> None:
        partition = self.random.randrange(PARTITIONS)
        log = self.cluster.log(self.topic, partition)
        offset = self.random.randint(log.start, log.last_stable)
        self.ask(
            f"delete before {offset} of {partition}",
            lambda: log.delete_before(offset),
            lambda: self.raw.delete_before(self.topic, partition, offset),
        )

    def recreate(self) -> None:
        """Delete the topic and make it again: another id, and what was open in it is decided in the new one."""
        before = [admin.describe_topic(self.topic) for admin in self.admins]
        self.close_readers()
        for kafka in (self.cluster, self.raw):
            kafka.delete_topic(self.topic)
        for admin, old in zip(self.admins, before, strict=True):
            assert admin.describe_topic(self.topic) is None
            admin.create_topic(self.topic, partitions=PARTITIONS, replication_factor=1, config={})
            assert admin.describe_topic(self.topic).topic_id != old.topic_id, "a topic made again has another id"
        self.done.append("the topic is made again")
        for pair in self.pairs:
            pair.retired = True

    # ---- both at once --------------------------------------------------------------------------------------------------

    def ask_producer(self, pair: Pair, text: str, action: Callable[[Producer], None]) -> Answer:
        """As `ask`; after a failure only that it fails again is compared, since no sound caller goes on."""
        before = pair.failed
        answer = self.ask(
            f"{pair.name} {text}", lambda: action(pair.memory), lambda: action(pair.real), only_whether=before
        )
        pair.failed = pair.failed or answer.kind is not None
        if answer.kind is FailureKind.REFUSED:  # by librdkafka itself, which would commit the others of the transaction
            self.leave(pair)
        return answer

    def ask(
        self, text: str, memory: Callable[[], Any], real: Callable[[], Any], *, only_whether: bool = False
    ) -> Answer:
        """Do it on both sides; fails unless both gave the same answer."""
        answers = attempt(memory), attempt(real)
        self.done.append(f"{text} -> {answers[0].code if answers[0].kind else 'ok'}")
        same = (answers[0].kind is None) == (answers[1].kind is None) if only_whether else answers[0] == answers[1]
        assert same, f"{text}: memory said {answers[0]}, Kafka {answers[1]}"
        return answers[0]

    def states(self) -> tuple[list[str], list[str]]:
        names = sorted(self.known)
        offsets = [self.cluster.list_offsets(self.topic, partition) for partition in range(PARTITIONS)]
        found = [self.cluster.transactions.get(name) for name in names]
        memory = [f"{known.state.value} {known.epoch}" if known else "unknown" for known in found]
        states, real = self.raw.look(self.topic, PARTITIONS, names)
        return memory + [str(entry) for entry in offsets], states + [str(entry) for entry in real]

    def compare(self) -> None:
        memory, real = self.states()
        assert memory == real, f"memory has {memory}, Kafka {real}"


def attempt(action: Callable[[], Any]) -> Answer:
    """Say what came of it. A fence has one code here, whatever the client found out by."""
    try:
        return Answer(action())
    except KafkaFailure as failure:
        code = "fenced" if failure.kind is FailureKind.FENCED else failure.code
        return Answer(None, failure.kind, _SAME.get(code, code))


def walk(seed: int, steps: int, raw: RawKafka, servers: str, *, timeouts: bool) -> str:
    """Walk; return how the two came to differ (or what else ended the walk), nothing where they did not."""
    made = ClientWalk(seed, raw, servers)
    try:
        made.run(steps, timeouts=timeouts)
    except Exception as error:
        return f"seed {seed}: {type(error).__name__}: {error}\n" + "\n".join(made.done)
    finally:
        with contextlib.suppress(AttributeError):
            made.close()
    return ""
