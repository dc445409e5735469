"""What the producer makes of errors that librdkafka meets between two calls, of its own mock broker.

What a real broker answers is in tests/integration; here it is only asked which word reaches the task.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from confluent_kafka import cimpl

from eosingest.kafka.config import ClientSettings
from eosingest.kafka.ports import FailureKind, KafkaFailure, Records
from eosingest.kafka.producer import LibrdkafkaProducer, ProducerSettings
from eosingest.spark.worker import binary_column

PRODUCE, ADD_PARTITIONS_TO_TXN = 0, 24
TOPIC_DENIED, INVALID_EPOCH, ID_DENIED, FENCED = 29, 47, 53, 90
COLUMNS = Records(binary_column(pa.array([b"k"])), binary_column(pa.array([b"v"])))
ONE_BY_ONE = Records([b"k"], [b"v"])

librdkafka = ctypes.CDLL(cimpl.__file__)
librdkafka.rd_kafka_handle_mock_cluster.restype = ctypes.c_void_p
librdkafka.rd_kafka_handle_mock_cluster.argtypes = [ctypes.c_void_p]
librdkafka.rd_kafka_mock_topic_create.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int]
librdkafka.rd_kafka_mock_push_request_errors_array.argtypes = [
    ctypes.c_void_p,
    ctypes.c_int16,
    ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_int),
]


def settings(**properties: str) -> ProducerSettings:
    return ProducerSettings(ClientSettings("127.0.0.1:1", {"log_level": "0", **properties}), "topic", 10)


@pytest.fixture
def producer() -> Iterator[LibrdkafkaProducer]:
    """A producer in a transaction on a mock broker."""
    made = LibrdkafkaProducer("id", settings(**{"test.mock.num.brokers": "1"}))
    librdkafka.rd_kafka_mock_topic_create(mock_cluster(made), b"topic", 1, 1)
    made.init_transactions()
    made.begin()
    yield made
    made.close()


def mock_cluster(producer: LibrdkafkaProducer) -> int:
    assert producer._batches is not None
    found: int = librdkafka.rd_kafka_handle_mock_cluster(producer._batches._handle)
    return found


@pytest.mark.parametrize("records", [COLUMNS, ONE_BY_ONE], ids=["columns", "one by one"])
@pytest.mark.parametrize(
    ("request_key", "error", "kind"),
    [
        (ADD_PARTITIONS_TO_TXN, FENCED, FailureKind.FENCED),
        (ADD_PARTITIONS_TO_TXN, INVALID_EPOCH, FailureKind.FENCED),
        (ADD_PARTITIONS_TO_TXN, ID_DENIED, FailureKind.REFUSED),
        (ADD_PARTITIONS_TO_TXN, TOPIC_DENIED, FailureKind.REFUSED),
        (PRODUCE, INVALID_EPOCH, FailureKind.FENCED),
    ],
)
@pytest.mark.parametrize("waits", [True, False], ids=["between two batches", "at the end"])
def test_what_broke_the_transaction_is_said(
    producer: LibrdkafkaProducer, records: Records, request_key: int, error: int, kind: FailureKind, waits: bool
) -> None:
    """Breaks when "fatal", or "purged", is all that the task hears: it would try again, and end with 5 instead of 7."""
    librdkafka.rd_kafka_mock_push_request_errors_array(
        mock_cluster(producer), request_key, 1, (ctypes.c_int * 1)(error)
    )
    with pytest.raises(KafkaFailure) as caught:
        producer.produce("topic", records)
        if waits:
            time.sleep(0.4)  # while the next batch is prepared nobody asks the client
            producer.produce("topic", records)
        producer.flush()
        producer.commit()
    assert caught.value.kind is kind, caught.value


def test_a_setting_that_librdkafka_refuses() -> None:
    """Breaks when it is a traceback: what `check` cannot see, such as a linger longer than the transaction."""
    with pytest.raises(KafkaFailure) as caught:
        LibrdkafkaProducer("id", settings(**{"linger.ms": "40000"}))
    assert caught.value.kind is FailureKind.REFUSED
