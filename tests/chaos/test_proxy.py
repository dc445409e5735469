"""The proxy against a real broker and real clients: it reads their frames, and does to them what its rules say."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, Producer

from tests.chaos.checks import check_log
from tests.chaos.rounds import Round
from tests.chaos.session import Session
from tests.support.harness import create_topic, read_committed
from tests.support.kafka_nodes import Cluster
from tests.support.kafka_proxy import (
    ADD_PARTITIONS,
    END_TXN,
    FETCH,
    INIT_PRODUCER_ID,
    METADATA,
    PRODUCE,
    Frame,
    Proxy,
    Rule,
    Spoil,
    correlation_of,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def wire(session: Session) -> Iterator[Cluster]:
    """The cluster behind a proxy, healed after the test."""
    cluster = session.clusters.get("wire")
    yield cluster
    cluster.heal()


@pytest.fixture
def proxy(wire: Cluster) -> Proxy:
    return wire.proxies[0]


@pytest.fixture
def topic(wire: Cluster) -> str:
    name = f"proxy-{uuid.uuid4().hex[:8]}"
    create_topic(wire.direct, name)
    return name


def producer(wire: Cluster, name: str) -> Producer:
    made = Producer({"bootstrap.servers": wire.servers, "transactional.id": name, "log_level": 0})
    made.init_transactions(20)
    return made


def send(made: Producer, topic: str, *values: int) -> float:
    """Send the values in one transaction; return how long its commit took."""
    made.begin_transaction()
    for value in values:
        made.produce(topic, str(value).encode())
    made.flush(20)
    began = time.monotonic()
    made.commit_transaction(30)
    return time.monotonic() - began


def values(wire: Cluster, topic: str) -> list[int]:
    return [int(record.value or b"") for record in read_committed(wire.direct, topic)]


def test_headers() -> None:
    frame = Frame.parse(bytes.fromhex("001a 0001 00000007 0003 616263"))
    assert (frame.api, frame.version, frame.correlation, frame.body[-3:]) == (END_TXN, 1, 7, b"abc")
    assert correlation_of(bytes.fromhex("00000007 00000000 0000")) == 7


def test_a_rule_takes_the_requests_that_it_names() -> None:
    rule = Rule(END_TXN, Spoil.DELAY, needle=b"mine", skip=1, every=2, times=2)
    other = [Frame(END_TXN, 1, 0, b"other"), Frame(PRODUCE, 1, 0, b"mine")]
    assert not any(map(rule.takes, other))
    assert [rule.takes(Frame(END_TXN, 1, 0, b"is mine")) for _ in range(7)] == [False, True, False, True, *[False] * 3]
    assert rule.acted == 2


def test_frames_of_real_clients_are_read_and_passed_on(wire: Cluster, proxy: Proxy, topic: str) -> None:
    """Breaks when frames are cut wrongly: large ones, several at once, of several clients."""
    before = proxy.requests.copy()
    first, second = producer(wire, f"{topic}-1"), producer(wire, f"{topic}-2")
    send(first, topic, *range(50_000))
    send(second, topic, *range(50_000, 50_010))

    read_through = [int(record.value or b"") for record in read_committed(wire.servers, topic)]

    assert sorted(read_through) == list(range(50_010))
    seen = proxy.requests - before
    assert seen[END_TXN] == 2
    assert min(seen[api] for api in (INIT_PRODUCER_ID, ADD_PARTITIONS, METADATA, PRODUCE, FETCH)) >= 2
    assert proxy.faults == []


def test_a_commit_whose_answer_is_cut_off_is_repeated(wire: Cluster, proxy: Proxy, topic: str) -> None:
    made = producer(wire, topic)
    rule = proxy.add(Rule(END_TXN, Spoil.CUT_ANSWER, needle=topic.encode()))
    before = proxy.requests[END_TXN]
    send(made, topic, 1)
    assert (rule.acted, proxy.requests[END_TXN] - before, values(wire, topic)) == (1, 2, [1])


def test_a_commit_whose_answer_is_lost_has_happened(wire: Cluster, proxy: Proxy, topic: str) -> None:
    made = producer(wire, topic)
    proxy.add(Rule(END_TXN, Spoil.LOSE_ANSWER, needle=topic.encode()))
    made.begin_transaction()
    made.produce(topic, b"1")
    with pytest.raises(Exception) as caught:
        made.commit_transaction(1)
    assert caught.value.args[0].code() == KafkaError._TIMED_OUT
    assert values(wire, topic) == [1]


def test_a_delayed_request_is_late_by_so_much(wire: Cluster, proxy: Proxy, topic: str) -> None:
    made = producer(wire, topic)
    proxy.add(Rule(END_TXN, Spoil.DELAY, 1.0, topic.encode()))
    assert 1.0 <= send(made, topic, 1) < 3
    assert send(made, topic, 2) < 0.8


def test_held_bytes_arrive_afterwards(wire: Cluster, proxy: Proxy, topic: str) -> None:
    made = producer(wire, topic)
    proxy.add(Rule(PRODUCE, Spoil.HOLD, 1.0, topic.encode()))
    began = time.monotonic()
    send(made, topic, 1)
    assert 1.0 <= time.monotonic() - began < 4
    assert values(wire, topic) == [1]


def test_a_cut_broker_is_not_seen_until_it_is_back(wire: Cluster, proxy: Proxy, topic: str) -> None:
    made = producer(wire, topic)
    proxy.cut()
    made.begin_transaction()
    made.produce(topic, b"1")
    assert made.flush(1) == 1
    proxy.clear()
    assert made.flush(20) == 0
    made.commit_transaction(20)
    assert values(wire, topic) == [1]


def test_a_late_commit_tears_the_transaction_of_a_client_that_goes_on(wire: Cluster, proxy: Proxy, topic: str) -> None:
    """Why eosingest takes a new producer after a commit that may have been repeated: plain librdkafka is torn."""
    made = producer(wire, topic)
    rule = proxy.add(Rule(END_TXN, Spoil.LATE, 0.6, topic.encode()))
    assert send(made, topic, 1) < 0.5, "the client has repeated the commit, and goes on"
    made.begin_transaction()
    made.produce(topic, b"2")
    made.flush(20)
    time.sleep(1)
    assert rule.late_answers == [0]
    assert values(wire, topic) == [1, 2], "the second transaction was never committed by its client"


@pytest.mark.parametrize("seconds", [0.1, 0.3])
def test_late_commits_tear_nothing_of_ours(session: Session, wire: Cluster, proxy: Proxy, seconds: float) -> None:
    """Breaks when the producer goes on after a commit that librdkafka repeated inside: records came twice, with exit 0."""
    round = Round(
        int(seconds * 1000),
        session.seed,
        session.folder / f"late-{seconds}",
        wire,
        session.servers,
        session.jvm,
        reads="json",
        bad_rows=False,
        whole=False,
    )
    round.prepare()
    round.max_records(150)
    ids = f"eosingest.{round.job.name}.".encode()
    rule = proxy.add(Rule(END_TXN, Spoil.LATE, seconds, ids, skip=4, every=4, times=8))
    try:
        round.finish(round.start(), {0})
        assert rule.acted == 8
        assert len(rule.late_answers) >= 6, "the late requests did not reach the broker"
        check_log(round.direct)
    finally:
        round.end()
