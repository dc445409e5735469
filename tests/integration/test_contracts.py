"""What the protocol rests on, held against a real Kafka: fencing, watermarks, reading to the end, looks that change nothing.

Both clients are tested through the modules that the rest of eosingest uses them by; what they did is checked with a
plain confluent-kafka consumer.
"""

from __future__ import annotations

import contextlib
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from eosingest import broker
from eosingest.errors import TemporaryError
from eosingest.kafka import offsets_reader
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.kafka_python import KafkaPythonAdmin
from eosingest.kafka.offsets_reader import LibrdkafkaOffsetsReader
from eosingest.kafka.ports import FailureKind, KafkaFailure, LogRecord, Records
from eosingest.kafka.producer import LibrdkafkaProducer, ProducerSettings
from tests.support.harness import read_committed, topic_exists, wait_for

MakeProducer = Callable[..., LibrdkafkaProducer]


@pytest.fixture
def client(servers: str) -> ClientSettings:
    return ClientSettings(servers)


@pytest.fixture
def admin(client: ClientSettings) -> Iterator[KafkaPythonAdmin]:
    made = KafkaPythonAdmin(client)
    yield made
    made.close()


@pytest.fixture
def independent(servers: str) -> AdminClient:
    """Another client's view of the cluster."""
    return AdminClient({"bootstrap.servers": servers})


@pytest.fixture
def name() -> str:
    """A name for a topic or an id that nobody else uses."""
    return f"contract-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def topic(admin: KafkaPythonAdmin, name: str) -> str:
    """A new topic of one partition."""
    admin.create_topic(name, partitions=1, replication_factor=1, config={})
    return name


@pytest.fixture
def make_producer(client: ClientSettings, name: str) -> Iterator[MakeProducer]:
    """Make producers that are closed after the test; each is past init_transactions."""
    made: list[LibrdkafkaProducer] = []

    def make(transactional_id: str, timeout_s: float = 30) -> LibrdkafkaProducer:
        producer = LibrdkafkaProducer(transactional_id, ProducerSettings(client, name, timeout_s))
        made.append(producer)
        producer.init_transactions()
        return producer

    yield make
    for producer in made:
        with contextlib.suppress(AttributeError):  # the test has closed it
            producer.close()


@pytest.fixture
def reader(client: ClientSettings, topic: str) -> Iterator[LibrdkafkaOffsetsReader]:
    made = LibrdkafkaOffsetsReader(topic, 0, client)
    yield made
    made.close()


def open_transaction(producer: LibrdkafkaProducer, topic: str, *values: bytes) -> None:
    """Begin a transaction and have its records delivered."""
    producer.begin()
    producer.produce(topic, Records([b"k"] * len(values), list(values)))
    producer.flush()


def commit(producer: LibrdkafkaProducer, topic: str, *values: bytes) -> None:
    open_transaction(producer, topic, *values)
    producer.commit()


def read(reader: LibrdkafkaOffsetsReader, start: int = 0, end: int | None = None, **more: bool) -> list[LogRecord]:
    end = reader.high_watermark() if end is None else end
    return list(reader.read(start, end, committed=more.get("committed", True), deadline_s=20))


def values(records: list[LogRecord]) -> list[bytes | None]:
    return [entry.value for entry in records]


# ---- fencing -----------------------------------------------------------------------------------------------------


def test_fencing_ends_a_transaction_of_the_other_client(
    servers: str, admin: KafkaPythonAdmin, make_producer: MakeProducer, topic: str
) -> None:
    producer = make_producer(f"{topic}.0")
    commit(producer, topic, b"before")
    open_transaction(producer, topic, b"in flight")
    admin.fence([f"{topic}.0"], timeout_s=20)
    assert admin.open_transactions(topic, 0) == [], "real success: the transaction is decided"
    with pytest.raises(KafkaFailure) as caught:
        producer.commit()
    assert caught.value.kind is FailureKind.FENCED
    assert [record.value for record in read_committed(servers, topic)] == [b"before"]


def test_a_fenced_producer_that_had_nothing_open_cannot_begin_again(
    servers: str, admin: KafkaPythonAdmin, make_producer: MakeProducer, topic: str
) -> None:
    producer = make_producer(f"{topic}.0")
    admin.fence([f"{topic}.0"], timeout_s=20)
    with pytest.raises(KafkaFailure) as caught:
        commit(producer, topic, b"too late")
    assert caught.value.kind is FailureKind.FENCED
    assert read_committed(servers, topic) == []


def test_200_ids_are_fenced_at_once_open_transactions_among_them(
    servers: str, admin: KafkaPythonAdmin, make_producer: MakeProducer, topic: str
) -> None:
    producers = [make_producer(f"{topic}.{task}") for task in (0, 99, 199)]
    for producer in producers:
        open_transaction(producer, topic, b"in flight")
    began = time.monotonic()
    admin.fence([f"{topic}.{task}" for task in range(200)], timeout_s=30)
    assert time.monotonic() - began < 15
    assert all(admin.knows_transactional_id(f"{topic}.{task}") for task in range(200))
    assert admin.known_ids(f"{topic}.") == {f"{topic}.{task}" for task in range(200)}
    for producer in producers:
        with pytest.raises(KafkaFailure) as caught:
            producer.commit()
        assert caught.value.kind is FailureKind.FENCED
    assert read_committed(servers, topic) == []


def test_fencing_nothing_asks_nobody(admin: KafkaPythonAdmin) -> None:
    admin.fence([], timeout_s=0)


def test_init_of_the_next_producer_fences_and_decides(
    servers: str, admin: KafkaPythonAdmin, make_producer: MakeProducer, topic: str
) -> None:
    first = make_producer(f"{topic}.0")
    open_transaction(first, topic, b"in flight")
    second = make_producer(f"{topic}.0")
    assert admin.open_transactions(topic, 0) == []
    commit(second, topic, b"after")
    with pytest.raises(KafkaFailure) as caught:
        first.commit()
    assert caught.value.kind is FailureKind.FENCED
    assert [record.value for record in read_committed(servers, topic)] == [b"after"]


def test_a_closed_producer_leaves_its_transaction_to_be_fenced(
    servers: str, admin: KafkaPythonAdmin, make_producer: MakeProducer, topic: str
) -> None:
    producer = make_producer(f"{topic}.0")
    open_transaction(producer, topic, b"in flight")
    producer.close()
    admin.fence([f"{topic}.0"], timeout_s=20)
    assert admin.open_transactions(topic, 0) == []
    assert read_committed(servers, topic) == []


# ---- the control plane -------------------------------------------------------------------------------------------


def test_describe_and_create(admin: KafkaPythonAdmin, name: str) -> None:
    assert admin.describe_topic(name) is None
    wanted = {"cleanup.policy": "compact", "max.message.bytes": "12345"}
    admin.create_topic(name, partitions=3, replication_factor=-1, config=wanted)
    found = admin.describe_topic(name)
    assert found is not None
    assert (found.name, found.partitions) == (name, 3)
    assert found.topic_id
    assert found.config is not None
    assert wanted.items() <= found.config.items()
    assert int(found.config["segment.bytes"]) > 0, "defaults are told too"

    admin.create_topic(name, partitions=7, replication_factor=-1, config={})
    assert admin.describe_topic(name) == found, "one that exists is fine, and left as it is"


def test_a_topic_made_again_has_another_id(independent: AdminClient, admin: KafkaPythonAdmin, topic: str) -> None:
    first = admin.describe_topic(topic)
    independent.delete_topics([topic])[topic].result(timeout=30)
    wait_for(lambda: topic not in independent.list_topics(timeout=20).topics)
    admin.create_topic(topic, partitions=1, replication_factor=1, config={})
    second = admin.describe_topic(topic)
    assert first is not None
    assert second is not None
    assert first.topic_id != second.topic_id


def test_cluster_id(independent: AdminClient, admin: KafkaPythonAdmin) -> None:
    assert admin.cluster_id() == independent.describe_cluster().result(timeout=20).cluster_id


def test_which_transactional_ids_are_known(admin: KafkaPythonAdmin, make_producer: MakeProducer, name: str) -> None:
    assert not admin.knows_transactional_id(f"{name}.0")
    assert not admin.knows_transactional_id(f"{name}.0"), "asking does not make it known"
    make_producer(f"{name}.0")
    assert admin.knows_transactional_id(f"{name}.0")
    assert not admin.knows_transactional_id(f"{name}.1")


def test_who_holds_transactions_open(admin: KafkaPythonAdmin, make_producer: MakeProducer, topic: str) -> None:
    first, second, idle = (make_producer(f"{topic}.{task}") for task in range(3))
    commit(idle, topic, b"done")
    wait_for(lambda: admin.open_transactions(topic, 0) == [])  # a commit's marker follows its answer
    open_transaction(first, topic, b"a")
    open_transaction(second, topic, b"b")
    found = admin.open_transactions(topic, 0)
    assert [(entry.transactional_id, entry.start_offset) for entry in found] == [(f"{topic}.0", 2), (f"{topic}.1", 3)]
    assert all(0 <= entry.age_s < 30 for entry in found)
    first.commit()
    wait_for(lambda: [entry.transactional_id for entry in admin.open_transactions(topic, 0)] == [f"{topic}.1"])


@pytest.mark.slow_cases("nobody listens")
@pytest.mark.parametrize("listening", [False, True], ids=["nobody listens", "nobody answers"])
def test_brokers_that_cannot_be_reached_are_temporary(listening: bool) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{server.getsockname()[1]}"
        if listening:
            server.listen()
        began = time.monotonic()
        with pytest.raises(TemporaryError) as caught:
            KafkaPythonAdmin(ClientSettings(address))
    assert time.monotonic() - began < 15
    assert caught.value.exit_code == 5
    assert address in caught.value.message
    assert "bootstrap_servers" in caught.value.hint


# ---- the reader --------------------------------------------------------------------------------------------------


def test_the_high_watermark_lies_beyond_an_open_transaction(
    make_producer: MakeProducer, topic: str, reader: LibrdkafkaOffsetsReader
) -> None:
    commit(make_producer(f"{topic}.0"), topic, b"a")  # offsets 0 and, the marker, 1
    holder = make_producer(f"{topic}.1")
    open_transaction(holder, topic, b"b")
    commit(make_producer(f"{topic}.2"), topic, b"c")
    assert (reader.log_start(), reader.last_stable_offset(), reader.high_watermark()) == (0, 2, 5)
    holder.commit()
    wait_for(lambda: reader.last_stable_offset() == 6, timeout_s=10)
    assert reader.high_watermark() == 6


def test_a_read_waits_for_an_open_transaction_and_then_says_so(
    make_producer: MakeProducer, topic: str, reader: LibrdkafkaOffsetsReader
) -> None:
    commit(make_producer(f"{topic}.0"), topic, b"a")
    holder = make_producer(f"{topic}.1")
    open_transaction(holder, topic, b"b")
    commit(make_producer(f"{topic}.2"), topic, b"c")
    end = reader.high_watermark()
    began = time.monotonic()
    found = []
    with pytest.raises(KafkaFailure) as caught:
        found.extend(reader.read(0, end, committed=True, deadline_s=1.5))
    assert 1.4 < time.monotonic() - began < 5
    assert (caught.value.kind, caught.value.code) == (FailureKind.UNCERTAIN, "read-deadline")
    assert f"2 of {end}" in caught.value.detail
    assert values(read(reader, end=2)) == [b"a"], "what is decided can be read meanwhile"
    assert values(read(reader, committed=False)) == [b"a", b"b", b"c"]
    holder.commit()
    assert values(read(reader, end=end)) == [b"a", b"b", b"c"], "what was committed behind it was never lost"


def test_a_read_goes_on_when_the_transaction_is_decided_meanwhile(
    make_producer: MakeProducer, topic: str, reader: LibrdkafkaOffsetsReader
) -> None:
    holder = make_producer(f"{topic}.0")
    open_transaction(holder, topic, b"b")
    commit(make_producer(f"{topic}.1"), topic, b"c")
    entries = reader.read(0, reader.high_watermark(), committed=True, deadline_s=20)
    holder.commit()
    assert values(list(entries)) == [b"b", b"c"]


def test_a_read_ends_over_an_aborted_tail(
    admin: KafkaPythonAdmin, make_producer: MakeProducer, topic: str, reader: LibrdkafkaOffsetsReader
) -> None:
    commit(make_producer(f"{topic}.0"), topic, b"a")
    open_transaction(make_producer(f"{topic}.1"), topic, *[b"x"] * 500)
    admin.fence([f"{topic}.1"], timeout_s=20)
    began = time.monotonic()
    assert values(read(reader)) == [b"a"]
    assert values(read(reader, start=2)) == []
    assert time.monotonic() - began < 5
    assert len(read(reader, committed=False)) == 501


def test_a_read_takes_just_the_range(make_producer: MakeProducer, topic: str, reader: LibrdkafkaOffsetsReader) -> None:
    producer = make_producer(f"{topic}.0")
    for value in (b"a", b"b", b"c"):
        commit(producer, topic, value)  # records at 0, 2, 4, markers at 1, 3, 5
    assert [(entry.offset, entry.key, entry.value) for entry in read(reader, 1, 5)] == [
        (2, b"k", b"b"),
        (4, b"k", b"c"),
    ]
    assert values(read(reader, 0, 2)) == [b"a"]
    assert values(read(reader, 5, 6)) == [], "only a marker is left"
    assert values(read(reader, 3, 3)) == []
    assert values(read(reader, 0, 6)) == [b"a", b"b", b"c"], "back again, by the same reader"


def test_both_clients_tell_the_same_topic_id(
    admin: KafkaPythonAdmin, reader: LibrdkafkaOffsetsReader, topic: str, independent: AdminClient, servers: str
) -> None:
    """Breaks when a task takes the topic that the driver read for another one, or another one for it."""
    described = admin.describe_topic(topic)
    assert described is not None
    assert reader.topic_id() == described.topic_id
    independent.delete_topics([topic])[topic].result(timeout=20)
    wait_for(lambda: topic not in independent.list_topics(timeout=20).topics)
    assert KafkaPythonAdmin(ClientSettings(servers)).describe_topic(topic) is None
    with pytest.raises(KafkaFailure) as caught:
        reader.topic_id()
    assert (caught.value.kind, caught.value.code) == (FailureKind.REFUSED, "UNKNOWN_TOPIC_OR_PART")
    admin.create_topic(topic, partitions=1, replication_factor=1, config={})
    again = wait_for(lambda: admin.describe_topic(topic))
    assert again.topic_id != described.topic_id
    assert reader.topic_id() == again.topic_id


def test_an_empty_partition(reader: LibrdkafkaOffsetsReader) -> None:
    assert (reader.log_start(), reader.last_stable_offset(), reader.high_watermark()) == (0, 0, 0)
    assert read(reader) == []


def test_tombstones_and_explicit_partitions(
    admin: KafkaPythonAdmin, client: ClientSettings, make_producer: MakeProducer, name: str
) -> None:
    admin.create_topic(name, partitions=3, replication_factor=1, config={"cleanup.policy": "compact"})
    producer = make_producer(f"{name}.0")
    producer.begin()
    producer.produce_to_partition(name, 2, b"key", b"")
    producer.produce_to_partition(name, 2, b"key", None)
    producer.flush()
    producer.commit()
    for partition, expected in ((0, []), (1, []), (2, [(b"key", b""), (b"key", None)])):
        with contextlib.closing(LibrdkafkaOffsetsReader(name, partition, client)) as reader:
            assert [(entry.key, entry.value) for entry in read(reader)] == expected


def test_a_read_over_what_compaction_left(
    independent: AdminClient, admin: KafkaPythonAdmin, client: ClientSettings, make_producer: MakeProducer, name: str
) -> None:
    config = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.001",
        "delete.retention.ms": "0",
    }
    admin.create_topic(name, partitions=1, replication_factor=1, config=config)
    with contextlib.closing(LibrdkafkaOffsetsReader(name, 0, client)) as reader, quick_log_cleaner(independent):
        producer = make_producer(f"{name}.0")
        for number in range(50):
            commit(producer, name, str(number).encode())

        def compacted() -> bool:
            time.sleep(0.15)
            commit(producer, name, b"last")  # rolls the segment: the active one is never compacted
            return len(read(reader)) < 10

        wait_for(compacted, timeout_s=60)
        end = reader.high_watermark()
        left = read(reader, end=end)
    assert end > 100, "50 records and as many markers were written"
    offsets = [entry.offset for entry in left]
    assert offsets == sorted(offsets)
    assert offsets[0] > 0
    assert left[-1].value == b"last"


@contextlib.contextmanager
def quick_log_cleaner(client: AdminClient) -> Iterator[None]:
    """Have the broker look for something to compact all the time, instead of every 15 s."""
    (node,) = client.describe_cluster().result(timeout=20).nodes

    def alter(operation: AlterConfigOpType) -> None:
        entry = ConfigEntry("log.cleaner.backoff.ms", "100", incremental_operation=operation)
        resource = ConfigResource(ConfigResource.Type.BROKER, str(node.id), incremental_configs=[entry])
        client.incremental_alter_configs([resource])[resource].result(timeout=20)

    alter(AlterConfigOpType.SET)
    try:
        yield
    finally:
        alter(AlterConfigOpType.DELETE)


def test_a_start_offset_that_is_gone_is_an_error_not_an_empty_read(
    independent: AdminClient, make_producer: MakeProducer, topic: str, reader: LibrdkafkaOffsetsReader
) -> None:
    producer = make_producer(f"{topic}.0")
    for value in (b"a", b"b", b"c"):
        commit(producer, topic, value)
    at = TopicPartition(topic, 0, 4)
    independent.delete_records([at])[at].result(timeout=20)
    assert (reader.log_start(), reader.high_watermark()) == (4, 6)
    began = time.monotonic()
    with pytest.raises(KafkaFailure) as caught:
        read(reader)
    assert caught.value.code == "_AUTO_OFFSET_RESET"
    assert time.monotonic() - began < 10
    assert values(read(reader, start=4)) == [b"c"]


# ---- looks that change nothing -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_looking_at_a_missing_topic_never_makes_it(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a broker that would: the one of the other tests has auto-creation off."""
    monkeypatch.setattr(offsets_reader, "_LEADER_S", 3.0)  # how long each look waits for a leader that never comes
    up = broker.up(directory=tmp_path / "b", properties={"auto.create.topics.enable": "true"})
    try:
        client = ClientSettings(up.bootstrap_servers)
        with contextlib.closing(KafkaPythonAdmin(client)) as admin:
            assert admin.describe_topic(name) is None
        with contextlib.closing(LibrdkafkaOffsetsReader(name, 0, client)) as reader:
            for look in (reader.high_watermark, reader.last_stable_offset, reader.log_start):
                with pytest.raises(KafkaFailure):
                    look()
            with pytest.raises(KafkaFailure):
                list(reader.read(0, 1, committed=True, deadline_s=3))
        time.sleep(0.5)
        assert not topic_exists(up.bootstrap_servers, name)
        assert auto_creation_works(up.bootstrap_servers), "or this test proves nothing"
    finally:
        broker.down(directory=tmp_path / "b", remove_data=True)


def auto_creation_works(servers: str) -> bool:
    producer = Producer({"bootstrap.servers": servers})
    producer.produce("made-by-writing", b"x")
    return producer.flush(20) == 0 and topic_exists(servers, "made-by-writing")


def test_producing_to_a_missing_topic_is_refused(servers: str, make_producer: MakeProducer, name: str) -> None:
    producer = make_producer(f"{name}.0", timeout_s=5)
    with pytest.raises(KafkaFailure) as caught:
        commit(producer, name, b"x")
    assert not topic_exists(servers, name)
    assert caught.value.kind is not FailureKind.FENCED
