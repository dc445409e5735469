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


def test_no_answer_is_temporary() -> None:
    with pytest.raises(TemporaryError), admin()._errors("describing the cluster"):
        raise errors.KafkaTimeoutError("late")
