"""The offsets topic: a job's partition, the topic's settings, and how far a read goes."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import confluent_kafka.cimpl
import pytest
from kafka.partitioner.default import murmur2 as kafka_python_murmur2

from eosingest.errors import FatalError, TemporaryError
from eosingest.kafka.ports import (
    FailureKind,
    KafkaFailure,
    LogRecord,
    OffsetRange,
    OpenTransaction,
    TopicDescription,
)
from eosingest.protocol.offsets import topic
from eosingest.protocol.offsets.record import Claim, claim_key
from eosingest.protocol.offsets.state import JobState

# org.apache.kafka.common.utils.UtilsTest.testMurmur2
JAVA_VECTORS = [
    (b"21", -973932308),
    (b"foobar", -790332482),
    (b"a-little-bit-long-string", -985981536),
    (b"a-little-bit-longer-string", -1486304829),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    (b"abc", 479470107),
]
POSITIVE = 0x7FFFFFFF


@pytest.mark.parametrize(("data", "expected"), JAVA_VECTORS)
def test_murmur2_is_javas(data: bytes, expected: int) -> None:
    assert topic.murmur2(data) == expected & POSITIVE


def test_murmur2_agrees_with_kafka_python_and_librdkafka() -> None:
    librdkafka = ctypes.CDLL(confluent_kafka.cimpl.__file__).rd_kafka_msg_partitioner_murmur2
    librdkafka.argtypes = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_int32,
        ctypes.c_void_p,
        ctypes.c_void_p,
    ]
    make = random.Random(2)
    for length in [*range(40), 100, 1001]:
        data = make.randbytes(length)
        assert topic.murmur2(data) == kafka_python_murmur2(data) & POSITIVE
        if data:
            for partitions in (1, 5, 1009):
                assert topic.murmur2(data) % partitions == librdkafka(None, data, len(data), partitions, None, None)


def test_partition_of_a_job() -> None:
    assert topic.partition_of("foobar", 5) == (-790332482 & POSITIVE) % 5
    assert topic.partition_of("ünï", 7) == (kafka_python_murmur2("ünï".encode()) & POSITIVE) % 7
    assert {topic.partition_of(f"job-{n}", 5) for n in range(100)} == {0, 1, 2, 3, 4}


# ---- reading -----------------------------------------------------------------------------------------------------


@dataclass
class Reader:
    """A partition of which the last records lie behind an open transaction (`kafka.ports.OffsetsReader`)."""

    entries: dict[int, LogRecord]
    high: int
    stable: int
    start: int = 0
    calls: list[tuple[int, int, bool, float]] = field(default_factory=list)

    place = "offsets-2"

    def topic_id(self) -> str:
        raise AssertionError("reads do not ask for it")

    def log_start(self) -> int:
        return self.start

    def high_watermark(self) -> int:
        return self.high

    def last_stable_offset(self) -> int:
        return self.stable

    def read(self, start: int, end: int, *, committed: bool, deadline_s: float) -> Iterator[LogRecord]:
        self.calls.append((start, end, committed, deadline_s))
        return iter([entry for at, entry in sorted(self.entries.items()) if start <= at < end])

    def close(self) -> None:
        raise AssertionError("the reader is its maker's to close")


def attempt_at(at: int, attempt: int) -> LogRecord:
    return LogRecord(at, claim_key("job", 0), Claim(1, "s", attempt).encode())


@pytest.fixture
def reader() -> Reader:
    """Offsets 0 to 9; 3 and 6 hold records, 4 is a gap, everything from 5 on is undecided for a while."""
    return Reader({3: attempt_at(3, attempt=33), 6: attempt_at(6, attempt=66)}, high=10, stable=5)


def attempt_in(state: JobState) -> int | None:
    claim = state.claims.get(0)
    return claim.attempt if claim else None


def test_read_to_end_reads_to_the_high_watermark_not_the_last_stable_offset(reader: Reader) -> None:
    state = JobState("job")
    topic.read_to_high_watermark(reader, state, deadline_s=12)
    assert reader.calls == [(0, 10, True, 12)]
    assert (attempt_in(state), state.end) == (66, 10)


def test_read_decided_looks_as_far_as_nobody_is_waited_for(reader: Reader) -> None:
    state = JobState("job")
    topic.read_to_last_stable_offset(reader, state, deadline_s=12)
    assert reader.calls == [(0, 5, True, 12)]
    assert (attempt_in(state), state.end) == (33, 5)


def test_read_undecided_takes_in_all_there_is(reader: Reader) -> None:
    state = JobState("job")
    topic.read_uncommitted(reader, state, deadline_s=12)
    assert reader.calls == [(0, 10, False, 12)]
    assert (attempt_in(state), state.end) == (66, 10)


def test_the_next_read_goes_on_where_the_last_one_ended(reader: Reader) -> None:
    state = JobState("job")
    topic.read_to_last_stable_offset(reader, state, deadline_s=1)
    topic.read_to_high_watermark(reader, state, deadline_s=1)
    reader.high, reader.entries[11] = 12, attempt_at(11, attempt=99)
    topic.read_to_high_watermark(reader, state, deadline_s=1)
    assert [call[:2] for call in reader.calls] == [(0, 5), (5, 10), (10, 12)]
    assert attempt_in(state) == 99


def test_a_state_that_begins_at_the_end_of_the_plan_reads_from_there(reader: Reader) -> None:
    state = JobState("job", end=4)
    topic.read_to_high_watermark(reader, state, deadline_s=1)
    assert reader.calls[0][:2] == (4, 10)


def test_a_first_read_begins_at_the_start_of_the_log(reader: Reader) -> None:
    reader.start = 2
    topic.read_to_high_watermark(reader, JobState("job"), deadline_s=1)
    assert reader.calls[0][:2] == (2, 10)


@pytest.mark.parametrize(("start", "high"), [(0, 7), (0, 0), (9, 10), (9, 7)])
def test_a_log_that_lost_what_was_read_is_an_error(reader: Reader, start: int, high: int) -> None:
    state = JobState("job", end=8)
    reader.start, reader.high = start, high
    with pytest.raises(KafkaFailure) as caught:
        topic.read_to_high_watermark(reader, state, deadline_s=1)
    assert (caught.value.kind, caught.value.code) == (FailureKind.REFUSED, "log-truncated")
    assert "8" in caught.value.detail
    assert reader.calls == []
    assert state.end == 8


def test_a_log_that_ends_and_starts_where_it_was_read_to_is_none_such(reader: Reader) -> None:
    reader.start = reader.high = 8
    topic.read_to_high_watermark(reader, JobState("job", end=8), deadline_s=1)


def test_after_a_failed_read_the_end_is_not_moved(reader: Reader) -> None:
    reader.entries[4] = LogRecord(4, claim_key("job", 0), b'{"v":99}')
    state = JobState("job")
    with pytest.raises(FatalError):
        topic.read_to_high_watermark(reader, state, deadline_s=1)
    assert state.end == 0


def test_a_read_may_wait_for_two_transaction_timeouts_and_10_s() -> None:
    assert topic.read_deadline_s(60) == 130


# ---- the topic ---------------------------------------------------------------------------------------------------


@dataclass
class Cluster:
    """The part of `kafka.ports.Admin` that the topic needs, over one topic that is there or not."""

    policy: str | None = None
    readable: bool = True
    slow: bool = False
    created: list[tuple[str, int, int, dict[str, str]]] = field(default_factory=list)

    def cluster_id(self) -> str:
        raise AssertionError("not asked for")

    def describe_topic(self, name: str) -> TopicDescription | None:
        if self.policy is None:
            return None
        return TopicDescription(name, "id", 5, {"cleanup.policy": self.policy} if self.readable else None)

    def create_topic(self, name: str, *, partitions: int, replication_factor: int, config: Mapping[str, str]) -> None:
        self.created.append((name, partitions, replication_factor, dict(config)))
        self.policy = None if self.slow else config["cleanup.policy"]

    def offset_ranges(self, topic: str, partitions: int) -> tuple[OffsetRange, ...]:
        raise AssertionError("not asked for")

    def fence(self, transactional_ids: Iterable[str], *, timeout_s: float) -> None:
        raise AssertionError("not asked for")

    def knows_transactional_id(self, transactional_id: str) -> bool:
        raise AssertionError("not asked for")

    def known_ids(self, stem: str) -> frozenset[str]:
        raise AssertionError("not asked for")

    def open_transactions(self, topic: str, partition: int) -> list[OpenTransaction]:
        raise AssertionError("not asked for")

    def close(self) -> None:
        raise AssertionError("not asked for")


def test_a_missing_topic_is_made() -> None:
    cluster = Cluster()
    found, warnings = topic.ensure_topic(cluster, "offsets")
    ((name, partitions, replication, config),) = cluster.created
    assert (name, partitions, replication) == ("offsets", 5, -1), "-1: the broker's own default"
    assert config["cleanup.policy"] == "compact"
    assert "min.insync.replicas" not in config
    assert (found.name, warnings) == ("offsets", [])


def test_a_good_topic_is_left_as_it_is() -> None:
    cluster = Cluster("compact")
    assert topic.ensure_topic(cluster, "offsets")[1] == []
    assert cluster.created == []


@pytest.mark.parametrize("policy", ["delete", "compact,delete", "delete,compact", ""])
def test_a_policy_that_deletes_is_an_error(policy: str) -> None:
    with pytest.raises(FatalError) as caught:
        topic.ensure_topic(Cluster(policy), "offsets")
    assert (caught.value.exit_code, caught.value.code) == (7, "offsets-topic-policy")
    assert f'"{policy}"' in caught.value.message
    assert "cleanup.policy=compact" in caught.value.hint


def test_without_the_right_to_read_its_settings_there_is_a_warning() -> None:
    _, (warning,) = topic.ensure_topic(Cluster("delete", readable=False), "offsets")
    assert "offsets" in warning
    assert "cleanup.policy" in warning


def test_a_topic_that_does_not_appear_is_temporary() -> None:
    with pytest.raises(TemporaryError) as caught:
        topic.ensure_topic(Cluster(slow=True), "offsets")
    assert caught.value.code == "offsets-topic-missing"
