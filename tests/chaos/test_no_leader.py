"""A partition that has no leader for a while, on a cluster of three: it is waited for, by the client that saw it so."""

from __future__ import annotations

import threading
import time

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from eosingest.kafka.config import ClientSettings
from eosingest.kafka.offsets_reader import LibrdkafkaOffsetsReader
from tests.chaos.session import Session
from tests.support.harness import wait_for

pytestmark = pytest.mark.slow

TOPIC = "without-a-leader-for-a-while"


def test_a_leader_that_comes_back_is_found(session: Session) -> None:
    """Breaks when the reader asks its own memory again and again: it keeps "no leader" for a quarter of an hour."""
    cluster = session.clusters.get("three")
    admin = AdminClient({"bootstrap.servers": cluster.direct, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, 3, 1)])[TOPIC].result(30)

    def leader() -> int | None:
        partitions = admin.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions
        return partitions[0].leader if partitions else None

    node = cluster.nodes[wait_for(lambda: max(0, leader() or 0)) - 1]
    node.kill()
    try:
        wait_for(lambda: leader() == -1, 30)
        back = threading.Timer(4, node.launch)
        back.start()
        began = time.monotonic()
        reader = LibrdkafkaOffsetsReader(TOPIC, 0, ClientSettings(cluster.direct))
        try:
            assert reader.high_watermark() == 0
        finally:
            reader.close()
            back.join()
        assert time.monotonic() - began > 3, "there was a leader all the time"
    finally:
        cluster.heal()
