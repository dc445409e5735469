"""How the errors of kafka-python become ours, and how ids are fenced, where no broker is needed to see it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import errors

from eosingest.errors import FatalError, TemporaryError
from eosingest.host.interruption import never
from eosingest.kafka import kafka_python
from eosingest.kafka.broker_versions import OLDEST, refuse_unusable
from eosingest.kafka.fencing import Fencing
from eosingest.kafka.kafka_python import KafkaPythonAdmin


def admin() -> KafkaPythonAdmin:
    made = object.__new__(KafkaPythonAdmin)
    made._servers = "host:9092"
    made._check = never
    made._created = set()
    return made


class OneAfterAnother:
    """A client of brokers of which some do not know a new topic yet: so many answers say that there is none."""

    def __init__(self, late: int, late_settings: int = 0) -> None:
        self.late = late
        self.late_settings = late_settings

    def create_topics(self, topics: object, *, wait_for_metadata: bool) -> None:
        pass

    def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        self.late -= 1
        unknown = errors.UnknownTopicOrPartitionError.errno if self.late >= 0 else 0
        return [{"name": name, "error_code": unknown, "topic_id": "id", "partitions": [0]} for name in names]

    def describe_configs(self, *_: object, **__: object) -> dict[str, Any]:
        self.late_settings -= 1
        if self.late_settings >= 0:
            raise errors.UnknownTopicOrPartitionError("t")
        return {"topic": {"t": {"a": {"value": 1}}}}


def test_a_new_topic_is_asked_for_until_brokers_know_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a broker that learns of it late makes the run that created it end with exit 5, or 12."""
    monkeypatch.setattr(kafka_python.time, "sleep", lambda _: None)
    made: Any = admin()
    made._client = OneAfterAnother(late=2, late_settings=2)
    made.create_topic("t", partitions=1, replication_factor=1, config={})
    found = made.describe_topic("t")
    assert found is not None
    assert (found.topic_id, found.config) == ("id", {"a": "1"})
    made._client.late = 1
    assert made.describe_topic("t") is not None, "the next answer may be another broker's"


def test_a_topic_that_nobody_created_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = admin()
    made._client = OneAfterAnother(late=1)
    assert made.describe_topic("t") is None
    assert made._client.late == 0


def test_a_new_topic_that_was_deleted_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_python, "_BOOTSTRAP_S", 0.3)
    made: Any = admin()
    made._client = OneAfterAnother(late=10**6)
    made.create_topic("t", partitions=1, replication_factor=1, config={})
    assert made.describe_topic("t") is None
    asked = made._client.late
    assert made.describe_topic("t") is None
    assert made._client.late == asked - 1


def test_a_broker_that_does_not_know_a_request_is_too_old() -> None:
    """Breaks when the user is not told which version would do."""
    with pytest.raises(FatalError) as raised, admin()._errors("describing the cluster"):
        raise errors.IncompatibleBrokerVersion("DescribeClusterRequest")
    assert (raised.value.code, raised.value.exit_code) == ("broker-too-old", 7)
    assert f"Apache Kafka {OLDEST} or newer" in raised.value.hint


def test_what_a_broker_says_it_knows_tells_that_it_is_too_old() -> None:
    """Breaks when a run goes on to what fails in other words: 2.8 without ZooKeeper "needs 0.11", says librdkafka."""
    newer = dict.fromkeys((22, 24, 26, 60, 61, 65, 66, 1000), (0, 99))
    refuse_unusable("host:9092", newer)
    for key, name in ((22, "InitProducerId"), (65, "DescribeTransactions"), (66, "ListTransactions")):
        with pytest.raises(FatalError) as raised:
            refuse_unusable("host:9092", {known: versions for known, versions in newer.items() if known != key})
        assert (raised.value.code, raised.value.exit_code) == ("broker-too-old", 7)
        assert name in raised.value.message
        assert f"Apache Kafka {OLDEST} or newer" in raised.value.hint


def test_a_broker_that_dropped_what_we_speak_is_too_new() -> None:
    """Breaks when the user of a newer Kafka is told that it is too old, or that it does not answer."""
    known = dict.fromkeys((2, 3, 22, 60, 61, 65, 66), (0, 99))
    with pytest.raises(FatalError) as raised:
        refuse_unusable("host:9092", {**known, 2: (90, 99), 61: (90, 99)})
    assert (raised.value.code, raised.value.exit_code) == ("broker-too-new", 7)
    assert "DescribeProducers, ListOffsets" in raised.value.message
    assert "newer eosingest" in raised.value.hint


@pytest.mark.parametrize("raised_there", [ValueError("93"), KeyError("x"), AssertionError(), AttributeError("tags")])
def test_an_answer_that_cannot_be_read_is_named(raised_there: Exception) -> None:
    """Breaks when what kafka-python raises for it ends a command with a traceback and exit 1."""
    with pytest.raises(FatalError) as raised, admin()._errors("describing topic t"):
        raise raised_there
    assert (raised.value.code, raised.value.exit_code) == ("broker-not-understood", 7)
    assert "describing topic t" in raised.value.message
    assert type(raised_there).__name__ in raised.value.message


def test_no_controller_is_temporary() -> None:
    with pytest.raises(TemporaryError), admin()._errors("creating topic t"):
        raise RuntimeError("Failed to find active controller id!")


def test_an_error_code_of_a_newer_broker_is_named() -> None:
    with pytest.raises(FatalError) as raised, admin()._errors("describing topic t"):
        raise errors.for_code(4321)("t")
    assert (raised.value.code, raised.value.exit_code) == ("broker-refused", 7)
    assert "4321" in raised.value.message


def test_an_answer_without_the_topic_does_not_say_that_it_is_missing() -> None:
    """Breaks when a topic is created because an answer of the cluster, with an error of its own, names no topic."""
    made: Any = admin()
    made._client = SimpleNamespace(describe_topics=lambda names: [])
    with pytest.raises(FatalError):
        made.describe_topic("t")


def test_no_answer_is_temporary() -> None:
    with pytest.raises(TemporaryError), admin()._errors("describing the cluster"):
        raise errors.KafkaTimeoutError("late")


def test_a_missing_right_says_what_to_do() -> None:
    with pytest.raises(FatalError) as raised, admin()._errors("describing topic t"):
        raise errors.TopicAuthorizationFailedError("t")
    assert (raised.value.code, raised.value.exit_code) == ("broker-refused", 7)
    assert "kafka-acls --add" in raised.value.hint


@pytest.mark.parametrize(("told", "known"), [({}, None), ({"a": {"value": 1}}, {"a": "1"})])
def test_settings_that_may_not_be_read_are_not_known(told: dict[str, Any], known: dict[str, str] | None) -> None:
    """kafka-python gives no settings where the right to read them is missing. Breaks when that is taken for an empty policy."""
    made = admin()
    client: Any = SimpleNamespace(describe_configs=lambda *_, **__: {"topic": {"t": told}})
    made._client = client
    assert made._topic_config("t") == known


class _Stop(Exception):
    """A signal."""


def test_a_signal_is_heard_while_thousands_of_ids_are_fenced() -> None:
    """Breaks when all of them go in one round: with replicas that take 5 ms each, ten thousand take most of a minute."""
    rounds, looks = list[int](), [0]

    async def fence_round(wanted: list[str]) -> list[str]:
        rounds.append(len(wanted))
        return []

    def check() -> None:
        looks[0] += 1
        if looks[0] == 4:
            raise _Stop

    client: Any = None
    made = Fencing(client, "host:9092", check)
    made._round = fence_round  # type: ignore[method-assign]
    with pytest.raises(_Stop):
        asyncio.run(made.fence([str(number) for number in range(10_000)], 60))
    assert rounds == [500, 500, 500]


def test_every_id_is_fenced_and_those_that_are_not_ready_are_asked_again() -> None:
    fenced, waits = list[str](), [0]

    async def fence_round(wanted: list[str]) -> list[str]:
        again = [name for name in wanted if name in ("7", "8") and len(fenced) < 1_198]
        fenced.extend(name for name in wanted if name not in again)
        return again

    async def sleep(_: float) -> None:
        waits[0] += 1

    client: Any = SimpleNamespace(_net=SimpleNamespace(sleep=sleep))
    made = Fencing(client, "host:9092", lambda: None)
    made._round = fence_round  # type: ignore[method-assign]
    names = [str(number) for number in range(1_200)]
    asyncio.run(made.fence(names, 60))
    assert sorted(fenced) == sorted(names)
    assert waits == [0], "there were others to fence meanwhile"
