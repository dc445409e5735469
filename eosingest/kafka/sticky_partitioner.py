"""Chooses one partition for a call whose records have no keys, which costs librdkafka less time than one for each.

Used by producer.py. With null keys, librdkafka's random partitioners and Java's producer (KIP-480) also use one partition for
a while and then another; here the partition changes per call, instead of after milliseconds or bytes.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from eosingest.kafka.columns import BinaryColumn

if TYPE_CHECKING:
    from confluent_kafka.admin import ClusterMetadata

# Partitioners that spread records with a null key. The others send all of them to one partition, which librdkafka chooses.
_ANYWHERE = frozenset({"consistent_random", "murmur2_random", "fnv1a_random"})
_STICKY = "sticky.partitioning.linger.ms"  # a user who sets librdkafka's own rule gets it


def spreads(partitioner: str) -> bool:
    """Say whether a partitioner sends records with a null key to any partition, and others by their key."""
    return partitioner in _ANYWHERE


class Spread:
    """Chooses the partitions of a topic round robin, from a random one on."""

    def __init__(self, partitioner: str, properties: Mapping[str, str]) -> None:
        """Take the producer's partitioner and properties, by librdkafka's names."""
        self._chooses = spreads(partitioner) and _STICKY not in properties
        self._turns: dict[str, Iterator[int]] = {}

    def learn(self, metadata: ClusterMetadata) -> None:
        """Remember the topics' partitions that have a leader now."""
        for name, topic in metadata.topics.items():
            led = sorted(number for number, partition in topic.partitions.items() if partition.leader >= 0)
            first = random.randrange(len(led)) if led else 0
            self._turns[name] = itertools.cycle(led[first:] + led[:first])

    def next(self, topic: str, keys: BinaryColumn) -> int | None:
        """Return the partition for records with these keys, None where librdkafka is to choose for each."""
        if not self._chooses or keys.addresses.any():
            return None
        return next(self._turns.get(topic, iter(())), None)
