"""The Kafka in memory against a real one: random sequences of operations, and the rare cases one by one.

Two levels: single requests (request_walk.py) and what the core does through its clients (client_walk.py). A failure
names its seed; `EOSINGEST_MEMORY_SEED=s` runs that one alone, `EOSINGEST_MEMORY_WALKS=n` runs so many.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from eosingest import broker
from eosingest.broker import jars
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.offsets_reader import LibrdkafkaOffsetsReader
from tests.integration.test_contracts import quick_log_cleaner
from tests.support import client_walk
from tests.support.harness import wait_for
from tests.support.memory_kafka.cluster import MAX_EPOCH
from tests.support.raw_kafka import RawKafka
from tests.support.request_walk import TIMEOUT_S, CompactionWalk, RequestWalk
from tests.support.shared_broker import running_broker

pytestmark = pytest.mark.slow

REQUEST_WALKS = 40
REQUEST_STEPS = 40
CLIENT_WALKS = 40
CLIENT_STEPS = 25
TIMEOUT_EVERY = 8


def seeds(default: int) -> list[int]:
    """Return the seeds to run, by the environment."""
    only = os.environ.get("EOSINGEST_MEMORY_SEED")
    return [int(only)] if only else list(range(int(os.environ.get("EOSINGEST_MEMORY_WALKS", default))))


@pytest.fixture(scope="module")
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker of its own: topics made again leave hundreds of files open until they are deleted."""
    with running_broker(request.session, tmp_path_factory, {"log.segment.delete.delay.ms": "10000"}) as up:
        yield up.bootstrap_servers


@pytest.fixture(scope="module")
def raw(servers: str) -> Iterator[RawKafka]:
    made = RawKafka(servers)
    yield made
    made.close()


def skip_before(least: tuple[int, int], how: str) -> None:
    """Skip a test where the broker is older, and does otherwise than the Kafka in memory, which does as 4.x."""
    _, version = jars.kafka_libs(time.monotonic() + 60)
    if tuple(map(int, version.split(".")[:2])) < least:
        pytest.skip(f"Kafka {version}: {how}")


# ---- random walks ----------------------------------------------------------------------------------------------------


def test_requests(raw: RawKafka) -> None:
    skip_before((3, 9), "behind an abort a sequence goes on where a repeated batch ended, and no client sends such")
    for seed in seeds(REQUEST_WALKS):
        walk = RequestWalk(seed, raw)
        try:
            walk.run(REQUEST_STEPS)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}\n" + "\n".join(walk.done)) from error


def test_clients(raw: RawKafka, servers: str) -> None:
    """Several walks at a time: most of each is waiting."""

    def walk(seed: int) -> str:
        return client_walk.walk(seed, CLIENT_STEPS, raw, servers, timeouts=seed % TIMEOUT_EVERY == 0)

    with ThreadPoolExecutor(4) as pool:
        failures = [failure for failure in pool.map(walk, seeds(CLIENT_WALKS)) if failure]
    assert not failures, f"{len(failures)} walks differ\n" + "\n\n".join(failures[:3])


# ---- the rare cases, by name -----------------------------------------------------------------------------------------


def test_what_the_coordinator_says(raw: RawKafka) -> None:
    walk = RequestWalk(0, raw)
    name = walk.ids[0]
    walk.init(name)
    (first,) = walk.pairs
    assert walk.end(first, commit=True) == "INVALID_TXN_STATE", "nothing was begun"
    walk.produce(first, "produce", 0)
    assert walk.end(first, commit=True) == "ok"
    walk.compare()
    assert walk.end(first, commit=True) == "ok", "asked again after its answer was lost"
    assert walk.end(first, commit=False) == "INVALID_TXN_STATE"
    walk.produce(first, "produce", 1)
    assert walk.init(name) == "CONCURRENT_TRANSACTIONS", "not success yet, but the abort has begun"
    walk.compare()
    assert walk.end(first, commit=True) == "PRODUCER_FENCED"
    assert walk.init(name) == "ok"
    second = walk.pairs[-1]
    assert (second.real.epoch, second.memory.epoch) == (2, 2), "one for the abort, one for the new producer"
    walk.produce(second, "produce", 0)
    assert walk.end(second, commit=False) == "ok"
    walk.compare()
    assert walk.end(second, commit=True) == "INVALID_TXN_STATE"
    assert walk.end(second, commit=False) == "ok"
    walk.compare()


def test_a_transaction_outlives_its_topic(raw: RawKafka) -> None:
    """Its marker then lands in the new topic of the same name, and takes an offset there."""
    walk = RequestWalk(0, raw)
    walk.init(walk.ids[0])
    (pair,) = walk.pairs
    walk.produce(pair, "produce", 0)
    walk.recreate()
    walk.compare()
    assert walk.memory.list_offsets(walk.topic, 0) == (0, 0, 0)
    walk.end(pair, commit=True)
    walk.compare()
    assert walk.memory.list_offsets(walk.topic, 0) == (0, 1, 1)
    assert walk.produce(pair, "produce", 0) == "OUT_OF_ORDER_SEQUENCE_NUMBER", "the marker made the producer known"
    assert walk.produce(pair, "produce", 1) == "ok"


def init_often(walk: RequestWalk, name: str, times: int) -> None:
    assert walk.raw.init_often(name, times) == times - 1
    for _ in range(times):
        walk.memory.init_producer_id(name, TIMEOUT_S)


def test_epochs_run_out(raw: RawKafka) -> None:
    """Behind epoch 32,766 comes another producer id."""
    walk = RequestWalk(0, raw)
    name = walk.ids[0]
    init_often(walk, name, MAX_EPOCH - 1)
    walk.init(name)
    walk.init(name)
    last, new = walk.pairs
    assert last.memory.epoch == last.real.epoch == MAX_EPOCH - 1
    assert new.memory.epoch == new.real.epoch == 0
    assert walk.produce(last, "produce", 0) == "INVALID_PRODUCER_ID_MAPPING"
    assert walk.end(last, commit=True) == "INVALID_PRODUCER_ID_MAPPING"
    walk.produce(new, "produce", 0)
    walk.end(new, commit=True)
    walk.compare()


def test_a_fence_takes_the_last_epoch(raw: RawKafka) -> None:
    """Then the new producer id is there when the abort is done."""
    skip_before((4, 0), "the new producer id comes with the next InitProducerId only")
    walk = RequestWalk(0, raw)
    name = walk.ids[0]
    init_often(walk, name, MAX_EPOCH - 1)
    walk.init(name)
    (last,) = walk.pairs
    walk.produce(last, "produce", 0)
    assert walk.init(name) == "CONCURRENT_TRANSACTIONS"
    walk.compare()
    assert walk.end(last, commit=True) == "INVALID_PRODUCER_ID_MAPPING"
    assert walk.init(name) == "ok"
    new = walk.pairs[-1]
    assert new.memory.epoch == new.real.epoch == 1
    assert new.real.producer_id != last.real.producer_id


def test_ids_are_forgotten(tmp_path: Path) -> None:
    """A zombie whose id is forgotten is not fenced, but cannot write either; an open transaction is never forgotten."""
    properties = {
        "transactional.id.expiration.ms": "2000",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "100",
    }
    up = broker.up(directory=tmp_path / "forgetful", properties=properties)
    with contextlib.closing(RawKafka(up.bootstrap_servers)) as raw:
        walk = client_walk.ClientWalk(0, raw, up.bootstrap_servers, expiration_s=2.0)
        done, busy, fresh = (walk.make_producer(name) for name in walk.ids)
        for pair in (done, busy):
            walk.begin(pair)
            walk.send(pair, [0, 1])
        walk.commit(done, alone=True)
        walk.compare()
        walk.network.wait(3)
        walk.cluster.expire_ids()
        wait_for(lambda: walk.states()[1].count("unknown") == 2)
        walk.compare()
        walk.look()
        walk.commit(busy, alone=True)
        for pair in (done, fresh):
            walk.begin(pair)
            assert walk.send(pair, [0]).code == "INVALID_PRODUCER_ID_MAPPING"
        heir = walk.make_producer(walk.ids[0])
        walk.begin(heir)
        assert walk.send(heir, [0, 1]).kind is None
        walk.commit(heir, alone=True)
        walk.read(0, whole=True)
        walk.close()
    broker.down(directory=tmp_path / "forgetful", remove_data=True)


@pytest.mark.parametrize("retention_ms", [86_400_000, 0], ids=["tombstones stay", "tombstones go"])
def test_compaction(raw: RawKafka, servers: str, retention_ms: int) -> None:
    """What is left of committed, aborted and open transactions, and what a reader gets from every offset."""
    config = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.001",
        "delete.retention.ms": str(retention_ms),
    }
    walk = CompactionWalk(0, raw, config)
    gone = retention_ms == 0
    for name in [*walk.ids, walk.ids[0]]:
        walk.init(name)
    holder, *walk.pairs = walk.pairs[1], walk.pairs[2]
    with contextlib.closing(LibrdkafkaOffsetsReader(walk.topic, 0, ClientSettings(servers))) as reader:
        with quick_log_cleaner(AdminClient({"bootstrap.servers": servers})):
            walk.write(40)
            wait_for(lambda: walk.same_after_compaction(reader, drop_tombstones=gone))
            assert walk.produce(holder, "produce", 0) == "ok"
            walk.write(20)
            wait_for(lambda: walk.same_after_compaction(reader, drop_tombstones=gone))
        log = walk.memory.log(walk.topic, 0)
        assert len(log.entries) < log.end
        for start in range(0, log.end, 7):
            for committed in (True, False):
                assert walk.same(reader, start, committed) or (committed and start > log.last_stable)
