"""A real Kafka request by request, with the methods of `memory.Cluster`: what the clients' own retries would hide.

Speaks the versions that librdkafka speaks where they matter: InitProducerId, AddPartitionsToTxn and EndTxn before KIP-890's
epoch bump (transaction version 2). Made for one broker that leads everything.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import kafka.errors as kafka_errors
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec
from kafka.protocol.admin.transactions import DescribeTransactionsRequest
from kafka.protocol.consumer import IsolationLevel, ListOffsetsRequest
from kafka.protocol.producer.produce import ProduceRequest
from kafka.protocol.producer.transaction import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest
from kafka.record.default_records import DefaultRecordBatchBuilder

from eosingest.kafka.ports import LogRecord
from tests.support.memory_kafka.cluster import Offsets
from tests.support.memory_kafka.log import BrokerError, Identity

_INIT_VERSION = 4
_ADD_VERSION = 3
_END_VERSION = 3
_PRODUCE_VERSION = 9
_NOT_YET = (5, 6, 14, 15, 16)  # no leader of a new topic, or no coordinator
_PATIENCE_S = 20.0
_INIT_ANSWER = 24  # length, correlation id, throttle time, error code, producer id, epoch
_DECIDING = "Prepare"
_START = (OffsetSpec.EARLIEST, IsolationLevel.READ_UNCOMMITTED)
_HIGH_WATERMARK = (OffsetSpec.LATEST, IsolationLevel.READ_UNCOMMITTED)
_LAST_STABLE = (OffsetSpec.LATEST, IsolationLevel.READ_COMMITTED)


class RawKafka:
    """One connection to one broker. Methods raise BrokerError with Kafka's name of the code that was answered."""

    def __init__(self, servers: str) -> None:
        host, port = servers.split(":")
        self._address = (host, int(port))
        self._client = KafkaAdminClient(bootstrap_servers=servers, max_in_flight_requests_per_connection=1000)
        # Not by describe_cluster of kafka-python 3.0.12, which takes only what Kafka 3.7 and newer answer.
        (self._node,) = AdminClient({"bootstrap.servers": servers}).list_topics(timeout=20).brokers
        self._make_transaction_log()

    def _make_transaction_log(self) -> None:
        """Look for a coordinator: the first look makes the log that transactions are kept in."""
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            try:
                self._client.describe_transactions(["nobody"])
            except kafka_errors.TransactionalIdNotFoundError:
                return
            except kafka_errors.RetriableError:
                time.sleep(0.1)

    def close(self) -> None:
        self._client.close()

    # ---- transactions ----------------------------------------------------------------------------------------------

    def init_producer_id(self, transactional_id: str, timeout_s: float) -> Identity:
        request = InitProducerIdRequest[_INIT_VERSION]
        answer = self._ask(
            lambda: request(
                transactional_id=transactional_id,
                transaction_timeout_ms=int(timeout_s * 1000),
                producer_id=-1,
                producer_epoch=-1,
            ),
            lambda answer: answer.error_code,
        )
        return Identity(transactional_id, answer.producer_id, answer.producer_epoch)

    def init_often(self, transactional_id: str, times: int) -> int:
        """InitProducerId so many times, hundreds in flight at once, over a plain socket; return the last epoch."""
        self.init_producer_id(transactional_id, 60.0)  # waits until the coordinator has loaded its log
        times -= 1
        name = transactional_id.encode()
        body = struct.pack(f">hhihh{len(name)}si", 22, 1, 0, -1, len(name), name, 60_000)
        request, batch = struct.pack(">i", len(body)) + body, 500
        with (
            socket.create_connection(self._address, timeout=_PATIENCE_S) as connection,
            connection.makefile("rb") as file,
        ):
            for sent in range(0, times, batch):
                count = min(batch, times - sent)
                connection.sendall(request * count)
                answers = [struct.unpack(">iiihqh", file.read(_INIT_ANSWER)) for _ in range(count)]
                assert not any(answer[3] for answer in answers), answers
        return int(answers[-1][-1])

    def produce(self, who: Identity, topic: str, partition: int, sequence: int, records: Sequence[LogRecord]) -> None:
        """AddPartitionsToTxn, then Produce, as a producer does with its first batch."""
        self._add_partition(who, topic, partition)
        self.produce_alone(who, topic, partition, sequence, records)

    def produce_alone(
        self, who: Identity, topic: str, partition: int, sequence: int, records: Sequence[LogRecord]
    ) -> None:
        """Produce: of a partition that is not added its coordinator does not know."""
        batch = _batch(who, sequence, records)
        place = ProduceRequest.TopicProduceData
        self._ask(
            lambda: ProduceRequest[_PRODUCE_VERSION](
                transactional_id=who.transactional_id,
                acks=-1,
                timeout_ms=10_000,
                topic_data=[
                    place(name=topic, partition_data=[place.PartitionProduceData(index=partition, records=batch)])
                ],
            ),
            lambda answer: answer.responses[0].partition_responses[0].error_code,
        )

    def _add_partition(self, who: Identity, topic: str, partition: int) -> None:
        place = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        self._ask(
            lambda: AddPartitionsToTxnRequest[_ADD_VERSION](
                v3_and_below_transactional_id=who.transactional_id,
                v3_and_below_producer_id=who.producer_id,
                v3_and_below_producer_epoch=who.epoch,
                v3_and_below_topics=[place(name=topic, partitions=[partition])],
            ),
            lambda answer: answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code,
        )

    def end_txn(self, who: Identity, *, commit: bool) -> None:
        self._ask(
            lambda: EndTxnRequest[_END_VERSION](
                transactional_id=who.transactional_id,
                producer_id=who.producer_id,
                producer_epoch=who.epoch,
                committed=commit,
            ),
            lambda answer: answer.error_code,
        )

    def _ask(self, make: Callable[[], Any], code_of: Callable[[Any], int]) -> Any:
        """Send one request; again only while a topic or the transaction log is being made."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            answer = self._client._manager.run(self._send, make())
            code = code_of(answer)
            if code not in _NOT_YET or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        if code:
            raise BrokerError(kafka_errors.for_code(code).message)
        return answer

    async def _send(self, request: Any) -> Any:
        return await self._client._manager.send(request, node_id=self._node)

    # ---- looks -------------------------------------------------------------------------------------------------------

    def look(self, topic: str, partitions: int, transactional_ids: Sequence[str]) -> tuple[list[str], list[Offsets]]:
        """Return the state of each id ("Ongoing 3": with its epoch) when no marker is left to write, then the offsets."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                states, offsets = self._client._manager.run(self._look, topic, partitions, list(transactional_ids))
                if not any(state.startswith(_DECIDING) for state in states):
                    return states, offsets
            except kafka_errors.RetriableError:
                time.sleep(0.1)
            assert time.monotonic() < deadline, f"{topic}: some transaction is not decided"

    async def _look(self, topic: str, partitions: int, ids: list[str]) -> tuple[list[str], list[Offsets]]:
        """All at once: the broker answers one after another, so the states are older than the offsets."""
        described = self._client._manager.send(DescribeTransactionsRequest(transactional_ids=ids), node_id=self._node)
        looks = [
            self._client._manager.send(_list_offsets(topic, partitions, *kind), node_id=self._node)
            for kind in (_START, _HIGH_WATERMARK, _LAST_STABLE)
        ]
        states = [_state(entry) for entry in (await described).transaction_states]
        return states, [Offsets(*each) for each in zip(*[_offsets(await look) for look in looks], strict=True)]

    # ---- topics ------------------------------------------------------------------------------------------------------

    def create_topic(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        wanted = {"num_partitions": partitions, "replication_factor": 1, "configs": dict(config)}
        self._client.create_topics({topic: wanted}, wait_for_metadata=True)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic, and wait until the broker has forgotten it."""
        self._client.delete_topics([topic])
        deadline = time.monotonic() + _PATIENCE_S
        while any(not found["error_code"] for found in self._client.describe_topics([topic])):
            assert time.monotonic() < deadline, f"{topic} is not deleted"
            time.sleep(0.01)

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        """DeleteRecords."""
        self._client.delete_records({TopicPartition(topic, partition): offset})


def _batch(who: Identity, sequence: int, records: Iterable[LogRecord]) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, True, who.producer_id, who.epoch, sequence, 1 << 20)
    for index, record in enumerate(records):
        builder.append(index, record.timestamp_ms, record.key, record.value, [])
    return bytes(builder.build())


def _state(entry: Any) -> str:
    if entry.error_code == kafka_errors.TransactionalIdNotFoundError.errno:
        return "unknown"
    _raise(entry.error_code)
    return f"{entry.transaction_state} {entry.producer_epoch}"


def _list_offsets(topic: str, partitions: int, timestamp: OffsetSpec, isolation: IsolationLevel) -> ListOffsetsRequest:
    place = ListOffsetsRequest.ListOffsetsTopic
    wanted = [place.ListOffsetsPartition(partition_index=number, timestamp=timestamp) for number in range(partitions)]
    return ListOffsetsRequest(
        isolation_level=isolation.value, topics=[place(name=topic, partitions=wanted)], min_version=2
    )


def _offsets(answer: Any) -> list[int]:
    (topic,) = answer.topics
    found = sorted(topic.partitions, key=lambda partition: partition.partition_index)
    for partition in found:
        _raise(partition.error_code)
    return [partition.offset for partition in found]


def _raise(code: int) -> None:
    if code:
        raise kafka_errors.for_code(code)
