"""A batch that is damaged on a broker's disk: brokers serve it unchecked, and no record of it may be read."""

from __future__ import annotations

import socket
import struct
import time

import confluent_kafka
import pytest
from confluent_kafka import KafkaError
from kafka.record.default_records import DefaultRecordBatchBuilder

from eosingest.kafka.config import ClientSettings
from eosingest.kafka.librdkafka import DAMAGED, raise_unless_passing
from eosingest.kafka.ports import KafkaFailure
from eosingest.kafka.topic_reader import TopicReader

_GZIP = 1


def batch(number: int, codec: int = 0) -> bytearray:
    """Return a batch of ten records."""
    made = DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=False, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=1 << 20,
    )  # fmt: skip
    for index in range(10):
        made.append(index, timestamp=1_700_000_000_000, key=b"k", value=b"v%d-%d" % (number, index) * 20, headers=[])
    return bytearray(made.build())


def produce(broker: socket.socket, data: bytearray) -> None:
    """Send a batch as it is: librdkafka would compute its checksum."""
    body = struct.pack(">hhih", 0, 7, 1, 1) + b"x" + struct.pack(">hhii", -1, 1, 5000, 1) + struct.pack(">h", 1) + b"t"
    body += struct.pack(">iii", 1, 0, len(data)) + data
    broker.sendall(struct.pack(">i", len(body)) + body)
    (length,) = struct.unpack(">i", broker.recv(4))
    broker.recv(length)


@pytest.mark.parametrize(
    ("codec", "damaged", "code"), [(0, 2, "_BAD_MSG"), (0, 4, "_BAD_MSG"), (_GZIP, 2, "_BAD_MSG"), (0, None, "")]
)
def test_no_record_of_a_damaged_batch_is_read(codec: int, damaged: int | None, code: str) -> None:
    mock = confluent_kafka.Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": "1"})
    while not (brokers := mock.list_topics("t", timeout=5).brokers) or not mock.list_topics("t").topics["t"].partitions:
        time.sleep(0.1)
    (at,) = brokers.values()
    with socket.create_connection((at.host, at.port)) as broker:
        for number in range(5):
            data = batch(number, codec)
            if number == damaged:
                data[-5] ^= 0xFF
            produce(broker, data)
    reader = TopicReader("t", ClientSettings(f"{at.host}:{at.port}"), patience_s=10)
    read: list[int] = []
    try:
        if damaged is None:
            read += [message.offset() for messages in reader.read(0, 0, 50) for message in messages]
            assert read == list(range(50))
            return
        with pytest.raises(KafkaFailure) as caught:
            for messages in reader.read(0, 0, 50):
                read += [message.offset() for message in messages]
        assert caught.value.code == code
        assert read == list(range(len(read))) and len(read) <= damaged * 10
    finally:
        reader.close()


@pytest.mark.parametrize("code", [KafkaError._BAD_MSG, KafkaError._BAD_COMPRESSION, KafkaError._NOT_IMPLEMENTED])
def test_a_damaged_batch_ends_a_read(code: int) -> None:
    with pytest.raises(KafkaFailure) as caught:
        raise_unless_passing(KafkaError(code))
    assert caught.value.code in DAMAGED
    raise_unless_passing(KafkaError(KafkaError._TRANSPORT))
