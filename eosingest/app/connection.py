"""Connects the clients of a Spec: admin client, control producer, readers. Starts the embedded broker if needed.

Used by runs (run.py), audits (verify.py) and the read-only verbs (inspect.py). The client libraries, which take a third of a
second to import, are imported where clients are created: a preview creates none.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eosingest import broker
from eosingest.errors import SpecError, TemporaryError
from eosingest.host.interruption import never
from eosingest.kafka.config import ClientSettings, refuse_one_sided
from eosingest.kafka.ports import OffsetsReader, Producer, TopicDescription
from eosingest.protocol.control_log import ControlLog
from eosingest.protocol.offsets import topic
from eosingest.report.progress import Observer
from eosingest.spark import spark_defaults
from eosingest.spec import Spec, resolve_properties

if TYPE_CHECKING:
    from eosingest.kafka.kafka_python import KafkaPythonAdmin

EMBEDDED = "embedded"


@dataclass
class Connection:
    """The driver's clients (`control_log.DriverKafka`)."""

    client: ClientSettings
    admin: KafkaPythonAdmin
    offsets_topic: str
    transaction_timeout_s: float
    check: Callable[[], None]

    def control_producer(self, transactional_id: str) -> Producer:
        """Create the control producer."""
        from eosingest.kafka.producer import LibrdkafkaProducer, ProducerSettings

        settings = ProducerSettings(self.client, self.offsets_topic, self.transaction_timeout_s)
        return LibrdkafkaProducer(transactional_id, settings, self.check)

    def reader(self, partition: int) -> OffsetsReader:
        """Create a reader of one partition of the offsets topic."""
        from eosingest.kafka.offsets_reader import LibrdkafkaOffsetsReader

        return LibrdkafkaOffsetsReader(self.offsets_topic, partition, self.client, self.check)


@contextlib.contextmanager
def connected(
    spec: Spec, observer: Observer, check: Callable[[], None] = never, *, start: bool = True
) -> Iterator[Connection]:
    """Connect to the cluster; start the embedded broker if the spec names it. `check` ends waits by raising.

    With `start` False, for read-only verbs, nothing is started: an embedded broker that is down is a TemporaryError.
    """
    from eosingest.kafka.kafka_python import KafkaPythonAdmin

    spark_defaults.refuse_embedded_elsewhere(spec)
    servers = spec.sink.bootstrap_servers
    if servers == EMBEDDED and not start:
        servers = broker.status().bootstrap_servers
        if not servers:
            raise embedded_is_down()
    elif servers == EMBEDDED:
        status_now = broker.up()
        servers = status_now.bootstrap_servers
        if status_now.started_now:
            observer.note(f"started the embedded broker at {servers}; it stays up until: eosingest broker down")
    client = ClientSettings(servers, resolve_properties(spec))
    admin = KafkaPythonAdmin(client, check)
    try:
        yield Connection(client, admin, spec.sink.offsets_topic, spec.transaction.timeout, check)
    finally:
        admin.close()


def embedded_is_down() -> TemporaryError:
    """Make the error of a read-only verb for an embedded broker that is not running."""
    return TemporaryError(
        "the embedded broker is not running", code="broker-down", hint="start it with: eosingest broker up"
    )


def control_log(
    spec: Spec, kafka: Connection, offsets_topic: TopicDescription, partition: int | None = None
) -> ControlLog:
    """Create a reader of the job's records in the offsets topic, for read-only verbs. The caller closes it.

    It reads `partition`, by default the one computed from the job's name and the topic's partition count.
    """
    if partition is None:
        partition = topic.partition_of(spec.name, offsets_topic.partitions)
    return ControlLog(
        spec.name,
        kafka,
        offsets_topic=spec.sink.offsets_topic,
        partition=partition,
        deadline_s=lambda: topic.read_deadline_s(spec.transaction.timeout),
        now=time.monotonic,
        sleep=time.sleep,
    )


def refuse_unusable_properties(spec: Spec) -> None:
    """Raise SpecError for client properties that cannot be used. Cheaper than the checks of the verb `check`."""
    problems = refuse_one_sided(resolve_properties(spec))
    if problems:
        raise SpecError("\n".join(problems), code="bad-property", problems=problems)
