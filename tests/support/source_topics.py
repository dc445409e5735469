"""Topics that jobs read, filled by librdkafka's own producers: plain, in transactions, in transactions that are aborted."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from tests.support.harness import Job, create_topic, topic_exists, wait_for, write_tables


class Sent(NamedTuple):
    """A record as it was written. A timestamp of 0 is the producer's own clock."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = 0


class SourceTopic:
    """A topic on a broker, and those who write to it."""

    _ids = itertools.count()

    def __init__(
        self,
        servers: str,
        name: str,
        *,
        partitions: int = 1,
        config: Mapping[str, str] | None = None,
        replication_factor: int = 1,
    ) -> None:
        self.servers, self.name = servers, name
        self.admin = AdminClient({"bootstrap.servers": servers})
        self._config = config
        self._partitions = partitions
        self._replication_factor = replication_factor
        self.create()

    def create(self) -> None:
        create_topic(
            self.servers,
            self.name,
            partitions=self._partitions,
            config=self._config,
            replication_factor=self._replication_factor,
        )

    def delete(self) -> None:
        self.admin.delete_topics([self.name])[self.name].result(20)
        wait_for(lambda: not topic_exists(self.servers, self.name))

    def recreate(self) -> None:
        """Delete the topic, and create another one of that name; a broker takes a moment to let go of the name."""
        self.delete()

        def created() -> bool:
            with contextlib.suppress(KafkaException):
                self.create()
                return True
            return False

        wait_for(created)

    def add_partitions(self, total: int) -> None:
        self.admin.create_partitions([NewPartitions(self.name, total)])[self.name].result(20)

    def delete_before(self, offset: int, partition: int = 0) -> None:
        """Move the log start, as retention does."""
        place = TopicPartition(self.name, partition, offset)
        for future in self.admin.delete_records([place]).values():
            future.result(20)

    def write(self, records: Iterable[Sent], partition: int = 0) -> None:
        """Write records outside of any transaction."""
        producer = self._producer({})
        self._produce(producer, records, partition)
        assert producer.flush(20) == 0

    def write_in_transaction(self, records: Iterable[Sent], partition: int = 0, *, commit: bool = True) -> None:
        """Write records in a transaction of their own, and end it."""
        with self.open_transaction(records, partition) as producer:
            if commit:
                producer.commit_transaction(20)
            else:
                producer.abort_transaction(20)

    @contextlib.contextmanager
    def open_transaction(self, records: Iterable[Sent], partition: int = 0) -> Iterator[Producer]:
        """Write records in a transaction that is left open; the producer may end it."""
        name = f"{self.name}-writer-{next(self._ids)}"
        producer = self._producer({"transactional.id": name, "transaction.timeout.ms": 600_000})
        producer.init_transactions(20)
        producer.begin_transaction()
        self._produce(producer, records, partition)
        assert producer.flush(20) == 0
        yield producer

    def _producer(self, config: Mapping[str, object]) -> Producer:
        return Producer({"bootstrap.servers": self.servers, "linger.ms": 5, "message.max.bytes": 4_000_000, **config})

    def _produce(self, producer: Producer, records: Iterable[Sent], partition: int) -> None:
        for record in records:
            producer.produce(
                self.name,
                record.value,
                record.key,
                partition,
                timestamp=record.timestamp_ms,
                headers=list(record.headers) or None,
            )
            producer.poll(0)


def numbered(first: int, end: int) -> list[Sent]:
    """Return records whose keys and values tell their numbers."""
    return [Sent(b"k%d" % (number % 7), b"v%05d" % number) for number in range(first, end)]


def copy_job(job: Job, source: SourceTopic, more: str = "", **tables: str) -> Job:
    """Write a job's spec that copies a topic; `more` are further keys of [source]."""
    servers = f'bootstrap_servers = "{source.servers}"\n' if source.servers != job.servers else ""
    write_tables(job, source=f'format = "kafka"\ntopic = "{source.name}"\n{servers}{more}', **tables)
    return job
