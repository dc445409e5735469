"""Implements the control plane with kafka-python: topics, configurations, fencing and transaction listing.

It is the driver's `ports.Admin`. Only this module, fencing.py and log_ends.py use private methods of kafka-python (here
`_manager`), which the pin `>=3.0.12,<3.1` and a contract test against a real broker guard.
"""

from __future__ import annotations

import contextlib
import logging
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import kafka.errors as kafka_errors
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec, TransactionState
from kafka.protocol.admin import DescribeClusterRequest
from kafka.protocol.consumer.offsets import IsolationLevel

from eosingest.errors import EosingestError, FatalError, TemporaryError
from eosingest.host.interruptible import in_thread
from eosingest.host.interruption import never
from eosingest.kafka.admin_config import (
    NOT_UNDERSTOOD,
    configuration,
    named_once,
    not_understood,
    refusal,
    refused,
    why_unreachable,
)
from eosingest.kafka.broker_versions import read_unknown_names, refuse_unusable
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.fencing import Fencing
from eosingest.kafka.log_ends import ends_of_epochs, log_ends
from eosingest.kafka.ports import LogEnd, OffsetRange, OpenTransaction, TopicDescription

logging.getLogger("kafka").setLevel(logging.CRITICAL)  # our own errors report it once, with a hint

read_unknown_names()

_BOOTSTRAP_S = 7.0
_BOOTSTRAP_STEP_MS = 3_000
_REQUEST_MS = 30_000
_IN_FLIGHT = 1_000  # fencing is pipelined: with five in flight, 200 ids took 3 s instead of 0.2
_AGAIN_S = 0.2
_GOING_ON = frozenset(
    {
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
        TransactionState.PREPARE_ABORT,
        TransactionState.PREPARE_EPOCH_FENCE,
        TransactionState.UNKNOWN,  # a state of a newer Kafka: never taken for the end of a transaction
    }
)
# Errors for an id that is unknown, or that the user may not see.
_NOT_TOLD = (
    kafka_errors.TransactionalIdNotFoundError,
    kafka_errors.AuthorizationError,
    kafka_errors.UnsupportedVersionError,
)


class KafkaPythonAdmin:
    """Admin client; connects when made. Raises TemporaryError where no broker answers, FatalError where it is too old."""

    def __init__(self, settings: ClientSettings, check: Callable[[], None] = never) -> None:
        """Connect. `check` is called while waiting, and raises to end the wait."""
        self._check = check
        self._servers = settings.bootstrap_servers
        self._created: set[str] = set()
        with self._errors("connecting"):
            self._client = _connected(settings, check)
            if check is not never:
                self._hear_signals(self._client._manager)
        try:
            refuse_unusable(self._servers, self._client._manager.broker_version_data.api_versions)
        except FatalError:
            self.close()
            raise

    def _hear_signals(self, manager: Any) -> None:
        """Call `check` while any method of the client waits for an answer: all of them wait in the manager's `run`."""
        run = manager.run
        manager.run = lambda step, *arguments: in_thread(lambda: run(step, *arguments), self._check, "kafka-admin")

    @contextlib.contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        """Turn kafka-python's errors into TemporaryError, where a retry may help, or FatalError."""
        try:
            yield
        except EosingestError:
            raise
        except (kafka_errors.RetriableError, OSError, TimeoutError) as error:
            raise TemporaryError(
                f"{self._servers}: {doing}: no answer from the brokers ({named_once(error)})",
                code="broker-unreachable",
                hint="check bootstrap_servers and that the brokers are up; nothing was sent, run again",
            ) from error
        except kafka_errors.KafkaError as error:
            raise refused(f"{self._servers}: {doing}", error) from error
        except NOT_UNDERSTOOD as error:
            raise not_understood(f"{self._servers}: {doing}", error) from error

    def cluster_id(self) -> str:
        """Return the cluster's id."""
        with self._errors("describing the cluster"):
            return str(self._client._manager.run(self._cluster_id))

    async def _cluster_id(self) -> str:
        """Send DescribeCluster: `describe_cluster` of kafka-python 3.0.12 needs the answer of Kafka 3.7 or newer (KIP-919)."""
        answer = await self._client._manager.send(DescribeClusterRequest())
        if answer.error_code:
            raise kafka_errors.for_code(answer.error_code)(answer.error_message)
        return str(answer.cluster_id)

    def describe_topic(self, name: str) -> TopicDescription | None:
        """Return the description of a topic, None where it does not exist.

        Brokers learn of a new topic one after another: if this client created it, the request is retried for some seconds.
        """
        with self._errors(f"describing topic {name}"):
            try:
                ask = partial(_described, self._client, name)
                entry = _once_led(ask, self._check) if name in self._created else ask()
            except kafka_errors.UnknownTopicOrPartitionError:
                self._created.discard(name)
                return None
        return TopicDescription(name, str(entry["topic_id"]), len(entry["partitions"]), self._topic_config(name))

    def _topic_config(self, name: str) -> Mapping[str, str] | None:
        """Return every setting of a topic, defaults included; None without the right to read it."""
        resource = ConfigResource(ConfigResourceType.TOPIC, name)
        try:
            with self._errors(f"reading the configuration of topic {name}"):
                answer = _once_led(lambda: self._client.describe_configs([resource], config_filter="all"), self._check)
        except FatalError:
            return None
        entries: Mapping[str, Any] = answer["topic"][name]  # empty without the right: kafka-python drops that error
        return {key: str(entry["value"]) for key, entry in entries.items()} or None

    def create_topic(self, name: str, *, partitions: int, replication_factor: int, config: Mapping[str, str]) -> None:
        """Create a topic. Raises FatalError with the `kafka-topics` line where the right to do so is missing."""
        wanted = {"num_partitions": partitions, "replication_factor": replication_factor, "configs": dict(config)}
        try:
            with self._errors(f"creating topic {name}"), contextlib.suppress(kafka_errors.TopicAlreadyExistsError):
                self._client.create_topics({name: wanted}, wait_for_metadata=True)
            self._created.add(name)
        except FatalError as error:
            settings = "".join(f" --config {shlex.quote(f'{key}={value}')}" for key, value in config.items())
            replication = f" --replication-factor {replication_factor}" if replication_factor > 0 else ""
            raise FatalError(
                error.message,
                code="topic-not-created",
                hint=f"create it with: kafka-topics --bootstrap-server {self._servers} --create --topic {name}"
                f" --partitions {partitions}{replication}{settings}",
            ) from error

    def offset_ranges(self, topic: str, partitions: int) -> tuple[OffsetRange, ...]:
        """Return log start and high watermark of each partition of the topic, by number."""
        starts = self._ends(topic, partitions, OffsetSpec.EARLIEST)
        ends = self._ends(topic, partitions, OffsetSpec.LATEST)
        return tuple(OffsetRange(start.offset, end.offset) for start, end in zip(starts, ends, strict=True))

    def last_stable_offsets(self, topic: str, partitions: int) -> tuple[int, ...]:
        """Return the offset of each partition before which every transaction is decided."""
        return tuple(end.offset for end in self.last_stable_ends(topic, partitions))

    def last_stable_ends(self, topic: str, partitions: int) -> tuple[LogEnd, ...]:
        """Return the same, with the epoch of the leader that reported it."""
        found = self._ends(topic, partitions, OffsetSpec.LATEST, IsolationLevel.READ_COMMITTED)
        return tuple(LogEnd(end.offset, end.leader_epoch) for end in found)

    def ends_of_epochs(self, topic: str, epochs: Mapping[int, int]) -> dict[int, int]:
        """Return, for each partition, the offset after its last record of a leader epoch or an earlier one (KIP-320).

        `epochs` are by partition. -1: the leader does not know the epoch.
        """
        places = {TopicPartition(topic, partition): epoch for partition, epoch in epochs.items()}
        with self._errors(f"requesting the leader epochs of topic {topic}"):
            found = _once_led(lambda: self._client._manager.run(ends_of_epochs, self._client, places), self._check)
        return {place.partition: end for place, end in found.items()}

    def offsets_at(self, topic: str, partitions: int, time_ms: int) -> tuple[int | None, ...]:
        """Return the offset of each partition's first record at this time (ms since 1970) or later, None without one."""
        found = self._ends(topic, partitions, time_ms, IsolationLevel.READ_COMMITTED)
        return tuple(end.offset if end.offset >= 0 else None for end in found)

    def _ends(
        self,
        topic: str,
        partitions: int,
        which: OffsetSpec | int,
        level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> list[Any]:
        places = [TopicPartition(topic, partition) for partition in range(partitions)]
        with self._errors(f"requesting the offsets of topic {topic}"):
            return log_ends(self._client, dict.fromkeys(places, which), level, self._check)

    def fence(self, transactional_ids: Iterable[str], *, timeout_s: float) -> None:
        """Send InitProducerId for every id, hundreds in flight, until each is fenced. Raises TemporaryError at the timeout."""
        wanted = list(transactional_ids)
        if wanted:
            fencing = Fencing(self._client, self._servers, self._check)
            with self._errors("fencing earlier transactional ids"):
                self._client._manager.run(fencing.fence, wanted, timeout_s)

    def knows_transactional_id(self, transactional_id: str) -> bool:
        """Say whether the coordinator remembers the id (for 7 days by default). Without the right to see it: False."""
        deadline = time.monotonic() + _REQUEST_MS / 1000
        with self._errors(f"describing transactional id {transactional_id}"):
            while True:
                try:
                    return bool(self._client.describe_transactions([transactional_id]))
                except kafka_errors.CoordinatorNotAvailableError:  # a new cluster creates its transaction log first
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.1)
                except _NOT_TOLD:
                    return False

    def known_ids(self, stem: str) -> frozenset[str]:
        """Return the ids that begin with `stem` and that coordinators remember, if the user may see them."""
        with self._errors("listing transactional ids"):
            listed = self._client.list_transactions()
        return frozenset(name for name in _names(listed).values() if name.startswith(stem))

    def open_transactions(self, topic: str, partition: int) -> list[OpenTransaction]:
        """List the open transactions of the partition, oldest first.

        A coordinator knows a transaction from before its first record until after its last marker: it hangs if it is open
        in the partition both before and after the coordinators are queried, and none of them reports it as ongoing.
        """
        at = TopicPartition(topic, partition)
        with self._errors(f"listing transactions in {topic}-{partition}"):
            holders = _holders(self._client, at)
            listed = self._client.list_transactions(producer_id_filters=[p for p, _ in holders]) if holders else {}
            going_on = {each.producer_id for entries in listed.values() for each in entries if each.state in _GOING_ON}
            unknown = {holder for holder in holders if holder[0] not in going_on}
            hanging = unknown & _holders(self._client, at).keys() if unknown else unknown
        names = _names(listed)
        now_ms = time.time() * 1000
        found = [
            OpenTransaction(
                names.get(producer_id, f"producer id {producer_id}"),
                start_offset,
                max(0.0, (now_ms - last_timestamp) / 1000),
                (producer_id, start_offset) in hanging,
            )
            for (producer_id, start_offset), last_timestamp in holders.items()
            if (producer_id, start_offset) not in unknown - hanging
        ]
        return sorted(found, key=lambda transaction: transaction.start_offset)

    def hanging_transactions(self, topic: str, partitions: int) -> list[tuple[int, OpenTransaction]]:
        """List the hanging transactions of all partitions of the topic; nothing without the right to see them (READ).

        Sends one request to each leader, and more only for partitions with an open transaction. Waits a few seconds for
        leaders: a topic that was just created has none for a moment.
        """
        places = [TopicPartition(topic, partition) for partition in range(partitions)]
        try:
            with self._errors(f"listing transactions in topic {topic}"):
                states = _once_led(lambda: self._client.describe_producers(places), self._check)
        except FatalError:
            return []
        open_in = sorted(
            place.partition
            for place, state in states.items()
            if any(producer.current_transaction_start_offset >= 0 for producer in state.active_producers)
        )
        found = ((partition, each) for partition in open_in for each in self.open_transactions(topic, partition))
        return [(partition, each) for partition, each in found if each.hanging]

    def writers(self, topic: str, partitions: int) -> frozenset[str]:
        """Return the recent writers of the topic, by transactional id where they have one (DescribeProducers, KIP-664).

        Brokers forget a producer after a day (`producer.id.expiration.ms`), and know none that is neither idempotent nor
        transactional. Without the right to see them: none.
        """
        places = [TopicPartition(topic, partition) for partition in range(partitions)]
        try:
            with self._errors(f"listing the producers of topic {topic}"):
                states = self._client.describe_producers(places)
                ids = {producer.producer_id for state in states.values() for producer in state.active_producers}
                names = _names(self._client.list_transactions(producer_id_filters=list(ids))) if ids else {}
        except EosingestError:
            return frozenset()
        return frozenset(names.get(identity, f"producer id {identity}") for identity in ids)

    def close(self) -> None:
        """Close the client and its network thread."""
        self._client.close()


def _described(client: KafkaAdminClient, name: str) -> dict[str, Any]:
    topics: list[dict[str, Any]] = client.describe_topics([name])
    entry = next((topic for topic in topics if topic["name"] == name), None)
    if entry is None:  # brokers report missing topics by name: this one is not missing
        raise kafka_errors.UnknownError(f"the answer does not name topic {name}")
    if entry["error_code"]:
        raise kafka_errors.for_code(entry["error_code"])(name)
    return entry


def _once_led(ask: Callable[[], Any], check: Callable[[], None]) -> Any:
    """Return what `ask` returns; retry it for some seconds while a broker does not know a leader, or the topic."""
    deadline = time.monotonic() + _BOOTSTRAP_S
    while True:
        check()
        try:
            return ask()
        except kafka_errors.RetriableError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_AGAIN_S)


def _names(listings: Mapping[int, Iterable[Any]]) -> dict[int, str]:
    """Return transactional ids by producer id, from what each broker lists."""
    return {entry.producer_id: entry.transactional_id for entries in listings.values() for entry in entries}


def _holders(client: KafkaAdminClient, at: TopicPartition) -> dict[tuple[int, int], int]:
    """Return the last timestamps of the partition's open transactions, by producer id and start offset."""
    return {
        (producer.producer_id, producer.current_transaction_start_offset): producer.last_timestamp
        for producer in client.describe_producers([at])[at].active_producers
        if producer.current_transaction_start_offset >= 0
    }


def _connected(settings: ClientSettings, check: Callable[[], None]) -> KafkaAdminClient:
    """Connect in short steps: a signal is handled while no broker answers, and a refusal by all of them ends the wait."""
    config, steps, waited = configuration(settings, check), 0, 0.0
    while True:
        check()
        began = time.monotonic()
        try:
            return KafkaAdminClient(
                bootstrap_timeout_ms=_BOOTSTRAP_STEP_MS,
                request_timeout_ms=_REQUEST_MS,
                max_in_flight_requests_per_connection=_IN_FLIGHT,
                **config,
            )
        except (kafka_errors.KafkaTimeoutError, OSError) as error:
            steps, waited = steps + 1, waited + time.monotonic() - began
            found = refusal(settings, check) if steps == 1 else None
            if found is None and isinstance(error, kafka_errors.KafkaTimeoutError) and waited <= _BOOTSTRAP_S:
                continue
            found = found or why_unreachable(settings, check)
            if found is None:
                raise
            raise found from error
