"""Columns handed to librdkafka in one call, on a real Kafka: the same records as one by one, and every refusal met."""

from __future__ import annotations

import logging
import random
import threading
import time
import uuid
from collections.abc import Iterator
from itertools import pairwise

import confluent_kafka
import numpy as np
import pyarrow as pa
import pytest

from eosingest.kafka import produce_batch
from eosingest.kafka.columns import BinaryColumn
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.kafka_python import KafkaPythonAdmin
from eosingest.kafka.ports import ANY_PARTITION, FailureKind, KafkaFailure, Records
from eosingest.kafka.produce_batch import BatchProducer
from eosingest.kafka.producer import LibrdkafkaProducer, ProducerSettings
from eosingest.spark.worker import binary_column
from tests.support.harness import read_committed

PARTITIONS = 4


@pytest.fixture
def admin(servers: str) -> Iterator[KafkaPythonAdmin]:
    made = KafkaPythonAdmin(ClientSettings(servers))
    yield made
    made.close()


@pytest.fixture
def topic(admin: KafkaPythonAdmin) -> str:
    name = f"batch-{uuid.uuid4().hex[:8]}"
    admin.create_topic(name, partitions=PARTITIONS, replication_factor=1, config={})
    return name


def columns(keys: list[bytes | None], values: list[bytes | None]) -> Records:
    return Records(binary_column(pa.array(keys, pa.binary())), binary_column(pa.array(values, pa.binary())))


def producer(servers: str, topic: str, timeout_s: float = 30, **properties: str) -> LibrdkafkaProducer:
    settings = ProducerSettings(ClientSettings(servers, properties), topic, timeout_s)
    made = LibrdkafkaProducer(f"{topic}.{uuid.uuid4().hex[:8]}", settings)
    made.init_transactions()
    return made


def send(servers: str, topic: str, *parts: Records, **properties: str) -> None:
    """Send the records in one transaction."""
    made = producer(servers, topic, **properties)
    try:
        made.begin()
        for records in parts:
            made.produce(topic, records)
        made.flush()
        made.commit()
    finally:
        made.close()


def some_records(count: int) -> tuple[list[bytes | None], list[bytes | None]]:
    chance = random.Random(count)
    keys = [None if chance.random() < 0.2 else chance.randbytes(chance.randrange(20)) for _ in range(count)]
    values = [
        None if chance.random() < 0.1 else b"%d " % n + chance.randbytes(chance.randrange(300)) for n in range(count)
    ]
    return keys, [b"" if chance.random() < 0.05 else value for value in values]


def test_columns_are_the_same_records_as_one_by_one(servers: str, admin: KafkaPythonAdmin, topic: str) -> None:
    """Keys and values, null and empty ones among them, in the same partitions in the same order."""
    keys, values = some_records(5_000)
    keys = [key or b"no null: librdkafka puts those anywhere" for key in keys]
    other = f"{topic}-one-by-one"
    admin.create_topic(other, partitions=PARTITIONS, replication_factor=1, config={})

    send(servers, topic, columns(keys[:1], values[:1]), columns(keys[1:], values[1:]))
    send(servers, other, Records(keys, values))

    found = [(record.partition, record.key, record.value) for record in read_committed(servers, topic)]
    assert found == [(record.partition, record.key, record.value) for record in read_committed(servers, other)]
    assert len(found) == 5_000
    assert len({partition for partition, _, _ in found}) == PARTITIONS


def test_records_go_to_the_partition_that_is_given(servers: str, admin: KafkaPythonAdmin, topic: str) -> None:
    """Each to its own, or by the partitioner; in columns as one by one."""
    keys, values = some_records(4_000)
    keys = [key or b"no null: librdkafka puts those anywhere" for key in keys]
    chosen = np.random.default_rng(7).integers(ANY_PARTITION, PARTITIONS, len(keys), dtype=np.int32)
    other = f"{topic}-one-by-one"
    admin.create_topic(other, partitions=PARTITIONS, replication_factor=1, config={})
    held = columns(keys, values)
    whole = Records(held.keys, held.values, partitions=chosen)
    send(servers, topic, whole.slice(0, 10), whole.slice(10, 2_005), whole.slice(2_005, 4_000))
    send(servers, other, Records(keys, values, partitions=chosen))

    found = [(record.partition, record.key, record.value) for record in read_committed(servers, topic)]
    assert found == [(record.partition, record.key, record.value) for record in read_committed(servers, other)]
    for partition in range(PARTITIONS):
        mine = [(key, value) for key, value, at in zip(keys, values, chosen, strict=True) if at == partition]
        there = {(key, value) for at, key, value in found if at == partition}
        assert set(mine) <= there
        assert len(mine) > 500
    assert len(found) == len(keys)


def test_records_without_keys_go_to_one_partition_a_call(servers: str, topic: str) -> None:
    """And the next call's to another, until all have had some; with a rule of the user's for librdkafka, by that."""
    calls = [[b"%d %d" % (call, number) for number in range(50)] for call in range(2 * PARTITIONS)]
    send(servers, topic, *(columns(list[bytes | None]([None]) * 50, list(values)) for values in calls))
    found = read_committed(servers, topic)
    assert len(found) == 50 * len(calls)
    at = {record.value: record.partition for record in found}
    assert all(len({at[value] for value in values}) == 1 for values in calls)
    assert [at[values[0]] for values in calls[:PARTITIONS]] == [at[values[0]] for values in calls[PARTITIONS:]]
    assert len({at[values[0]] for values in calls}) == PARTITIONS


def test_a_transaction_over_several_topics(servers: str, admin: KafkaPythonAdmin, topic: str) -> None:
    """Columns to each in turns, and all of it or nothing."""
    other = f"{topic}-other"
    admin.create_topic(other, partitions=PARTITIONS, replication_factor=1, config={})
    values: list[bytes | None] = [b"%d" % number for number in range(1_000)]
    for commits in (False, True):
        made = LibrdkafkaProducer(f"{topic}.several", ProducerSettings(ClientSettings(servers), topic, 30))
        made.init_transactions()  # the second time it fences the first, whose transaction is open
        made.begin()
        for start in range(0, len(values), 100):
            part = values[start : start + 100]
            made.produce((topic, other)[start // 100 % 2], columns(list[bytes | None]([None]) * len(part), part))
        made.flush()
        if commits:
            made.commit()
        made.close()
    found = [{int(record.value or b"-1") for record in read_committed(servers, name)} for name in (topic, other)]
    assert found[0] == {number for number in range(1_000) if number // 100 % 2 == 0}
    assert found[1] == {number for number in range(1_000) if number // 100 % 2 == 1}


def test_null_and_empty_keys_and_values(servers: str, topic: str) -> None:
    keys: list[bytes | None] = [None, b"", b"k", None, b"", b"k"]
    values: list[bytes | None] = [None, None, None, b"", b"", b"v"]
    send(servers, topic, columns(keys, values))
    found = [(record.key, record.value) for record in read_committed(servers, topic)]
    assert sorted(found, key=repr) == sorted(zip(keys, values, strict=True), key=repr)


def test_a_full_queue_is_waited_for_and_nothing_changes_places(servers: str, topic: str) -> None:
    """A queue of 1 MiB under 20 MiB: breaks when what follows a refused record goes before it, or when any is lost."""
    values: list[bytes | None] = [b"%06d" % number + b"x" * 1_000 for number in range(20_000)]
    keys: list[bytes | None] = [b"one partition"] * len(values)
    began = time.process_time()
    send(servers, topic, columns(keys, values), **{"queue.buffering.max.kbytes": "1024"})
    assert [record.value for record in read_committed(servers, topic)] == values
    assert time.process_time() - began < 5, "waiting must not be spinning"


def test_a_record_that_is_too_large_is_refused(servers: str, topic: str) -> None:
    made = producer(servers, topic)
    made.begin()
    with pytest.raises(KafkaFailure) as caught:
        made.produce(topic, columns([b"k"] * 3, [b"small", b"x" * 2_000_000, b"small"]))
    assert (caught.value.kind, caught.value.code) == (FailureKind.REFUSED, "MSG_SIZE_TOO_LARGE")
    made.close()
    assert read_committed(servers, topic) == []


@pytest.mark.parametrize("in_columns", [True, False])
def test_a_record_that_the_broker_refuses_is_named(servers: str, admin: KafkaPythonAdmin, in_columns: bool) -> None:
    """Breaks when all that is said is that the transaction is broken: the run would call that temporary, and try again."""
    name = f"batch-{uuid.uuid4().hex[:8]}"
    admin.create_topic(name, partitions=1, replication_factor=1, config={"max.message.bytes": "10000"})
    made = producer(servers, name)
    made.begin()
    values: list[bytes | None] = [b"small", b"x" * 50_000, b"small"]
    records = columns([b"k"] * 3, values) if in_columns else Records([b"k"] * 3, values)
    with pytest.raises(KafkaFailure) as caught:
        for _ in range(20):
            made.produce(name, records)
            made.flush()
        made.commit()
    assert (caught.value.kind, caught.value.code) == (FailureKind.REFUSED, "MSG_SIZE_TOO_LARGE")
    made.close()
    assert read_committed(servers, name) == []


@pytest.mark.parametrize("most", [200, 500, 3_000])
def test_no_batch_is_larger_than_the_topic_takes(servers: str, admin: KafkaPythonAdmin, most: int) -> None:
    """Breaks when batches grow to librdkafka's own least limit, or past the user's batch.size: the broker refuses each."""
    name = f"batch-{uuid.uuid4().hex[:8]}"
    admin.create_topic(name, partitions=1, replication_factor=1, config={"max.message.bytes": str(most)})
    values: list[bytes | None] = [b"%05d" % number + b"x" * 55 for number in range(1_000)]
    for in_columns in (True, False):
        client = ClientSettings(servers, {"batch.size": "900000"})
        made = LibrdkafkaProducer(
            f"{name}.0", ProducerSettings(client, name, 30, message_max_bytes=most, batch_max_bytes=most)
        )
        made.init_transactions()
        made.begin()
        keys: list[bytes | None] = [b"k"] * len(values)
        made.produce(name, columns(keys, values) if in_columns else Records(keys, values))
        made.flush()
        made.commit()
        made.close()
    assert [record.value for record in read_committed(servers, name)] == [*values, *values]


def test_topics_of_one_transaction_have_limits_of_their_own(servers: str, admin: KafkaPythonAdmin) -> None:
    """Breaks when batches are as large as the other topic takes, or a record of the other topic is refused: dead letters."""
    name, most = f"batch-{uuid.uuid4().hex[:8]}", {"large": 3_000, "small": 500}
    for topic, limit in most.items():
        config = {"max.message.bytes": str(limit)}
        admin.create_topic(f"{name}-{topic}", partitions=1, replication_factor=1, config=config)
    settings = ProducerSettings(
        ClientSettings(servers), f"{name}-small", 30, message_max_bytes=3_000, batch_max_bytes=500
    )
    made = LibrdkafkaProducer(f"{name}.0", settings)
    made.init_transactions()
    made.begin()
    values: dict[str, list[bytes | None]] = {"large": [b"x" * 2_800] * 3, "small": [b"y" * 60] * 100}
    for topic, sent in values.items():
        made.produce(f"{name}-{topic}", columns([b"k"] * len(sent), sent))
    made.flush()
    made.commit()
    made.close()
    for topic, sent in values.items():
        assert [record.value for record in read_committed(servers, f"{name}-{topic}")] == sent


def test_a_fenced_producer_is_told_so(servers: str, admin: KafkaPythonAdmin, topic: str) -> None:
    settings = ProducerSettings(ClientSettings(servers), "eosingest-offsets", 30)
    made = LibrdkafkaProducer(f"{topic}.0", settings)
    made.init_transactions()
    made.begin()
    made.produce(topic, columns([b"k"], [b"v"]))
    made.flush()
    admin.fence([f"{topic}.0"], timeout_s=20)
    with pytest.raises(KafkaFailure) as caught:
        for _ in range(50):
            made.produce(topic, columns([b"k"], [b"v"]))
            made.flush()
        made.commit()
    assert caught.value.kind is FailureKind.FENCED
    made.close()
    assert read_committed(servers, topic) == []


def test_the_memory_may_go_once_it_is_handed_over(servers: str, topic: str) -> None:
    """Breaks when librdkafka keeps pointers into the columns."""
    made = producer(servers, topic, **{"linger.ms": "500"})
    made.begin()
    for number in range(20):
        made.produce(topic, columns([b"k"] * 500, [b"%d" % number * 50] * 500))
    made.flush()
    made.commit()
    made.close()
    found = [record.value for record in read_committed(servers, topic)]
    assert found == [b"%d" % number * 50 for number in range(20) for _ in range(500)]


def test_others_run_while_records_are_handed_over(servers: str, topic: str) -> None:
    """Breaks when the call holds the GIL: a thread beside it then stands still for as long as it takes."""
    tries = [_call_and_longest_stop(servers, topic) for _ in range(3)]  # a busy machine may stop anybody
    assert any(longest < took / 2 for took, longest in tries), tries


def _call_and_longest_stop(servers: str, topic: str) -> tuple[float, float]:
    """Hand many records over in one call; return its seconds, and the longest that a thread beside it stood still in them."""
    made = producer(servers, topic)
    records = columns([None] * 90_000, [b"x" * 600] * 90_000)
    assert isinstance(records.keys, BinaryColumn) and isinstance(records.values, BinaryColumn)
    assert made._batches is not None
    messages = made._batches.messages(records.keys, records.values)
    ticks, stop = list[float](), threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0)

    beside = threading.Thread(target=tick)
    made.begin()
    beside.start()
    began = time.perf_counter()
    made._batches.produce(topic, messages)
    ended = time.perf_counter()
    stop.set()
    beside.join()
    made.close()
    inside = [began, *(at for at in ticks if began < at < ended), ended]
    return ended - began, max(after - before for before, after in pairwise(inside))


@pytest.mark.parametrize(("name", "value"), [("_PRODUCER_BYTES", 184), ("_TESTED", (0x03000000, 0x04000000))])
def test_another_layout_means_one_by_one(
    servers: str,
    topic: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
    value: object,
) -> None:
    """The same records, more slowly, and said once for each producer."""
    monkeypatch.setattr(produce_batch, name, value)
    logging.getLogger("eosingest").addHandler(caplog.handler)
    caplog.set_level(logging.INFO, logger="eosingest")
    keys, values = some_records(300)
    send(servers, topic, columns(keys, values))
    logging.getLogger("eosingest").removeHandler(caplog.handler)
    found = [(record.key, record.value) for record in read_committed(servers, topic)]
    assert sorted(found, key=repr) == sorted(zip(keys, values, strict=True), key=repr)
    assert caplog.text.count("one by one") == 1


def test_the_layout_is_the_expected_one_here() -> None:
    """Else every user of these versions is on the slow path, and nobody notices."""
    made = confluent_kafka.Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": "0"})
    assert BatchProducer.of(made) is not None
