"""Finds the partitions that cannot be written, since brokers are lost: the cause of errors that say "timed out"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, PartitionMetadata

from eosingest.errors import EosingestError, listed
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.librdkafka import log
from eosingest.kafka.ports import Admin

TRANSACTION_LOG = "__transaction_state"
_TIMEOUT_S = 3.0
_NAMED_AT_MOST = 10


def too_few_replicas(client: ClientSettings, admin: Admin, topics: Iterable[str]) -> list[str]:
    """Say which partitions of the topics have no leader, or fewer in-sync replicas than min.insync.replicas.

    Called after a failure, so it waits for seconds only; returns nothing where no broker answers.
    """
    asking = AdminClient({**client.librdkafka(), "allow.auto.create.topics": False}, logger=log)
    found: list[str] = []
    try:
        for topic in topics:
            described = asking.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
            config = admin.describe_topic(topic)
            needed = int((config.config or {}).get("min.insync.replicas", 1)) if config is not None else 1
            found += too_few_of(topic, described.partitions.values(), needed)
    except (KafkaException, EosingestError):
        pass
    return found


def too_few_of(topic: str, partitions: Iterable[PartitionMetadata], needed: int) -> Iterator[str]:
    """Yield a sentence on one topic, none if every partition can be written. `needed` is its min.insync.replicas."""
    stuck = [part for part in partitions if part.leader < 0 or len(part.isrs) < needed]
    if stuck:
        numbers = [str(number) for number in sorted(part.id for part in stuck)]
        away = sorted({broker for part in stuck for broker in set(part.replicas) - set(part.isrs)})
        yield (
            f"topic {topic}, partition {listed(numbers, _NAMED_AT_MOST)}: {min(len(part.isrs) for part in stuck)}"
            f" of {max(len(part.replicas) for part in stuck)} replicas in sync, min.insync.replicas is {needed};"
            f" not in sync: broker {', '.join(map(str, away))}"
        )
