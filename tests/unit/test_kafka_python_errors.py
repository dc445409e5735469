"""How the errors of kafka-python become ours, where no broker is needed to see it."""

from __future__ import annotations

import pytest
from kafka import errors

from eosingest.errors import FatalError, TemporaryError
from eosingest.kafka.kafka_python import OLDEST, KafkaPythonAdmin


def admin() -> KafkaPythonAdmin:
    made = object.__new__(KafkaPythonAdmin)
    made._servers = "host:9092"
    return made


def test_a_broker_that_does_not_know_a_request_is_too_old() -> None:
    """Breaks when the user is not told which version would do."""
    with pytest.raises(FatalError) as raised, admin()._errors("describing the cluster"):
        raise errors.IncompatibleBrokerVersion("DescribeClusterRequest")
    assert (raised.value.code, raised.value.exit_code) == ("broker-too-old", 7)
    assert f"Apache Kafka {OLDEST} or newer" in raised.value.hint


def test_what_a_broker_says_it_knows_tells_that_it_is_too_old() -> None:
    """Breaks when a run goes on to what fails in other words: 2.8 without ZooKeeper "needs 0.11", says librdkafka."""
    newer = {22, 24, 26, 60, 61, 65, 66}
    admin()._refuse_too_old(newer)
    for key, name in ((22, "InitProducerId"), (65, "DescribeTransactions"), (66, "ListTransactions")):
        with pytest.raises(FatalError) as raised:
            admin()._refuse_too_old(newer - {key})
        assert (raised.value.code, raised.value.exit_code) == ("broker-too-old", 7)
        assert name in raised.value.message
        assert f"Apache Kafka {OLDEST} or newer" in raised.value.hint


def test_no_answer_is_temporary() -> None:
    with pytest.raises(TemporaryError), admin()._errors("describing the cluster"):
        raise errors.KafkaTimeoutError("late")
