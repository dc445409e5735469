"""A job that an earlier release left half done is finished by this one: each record once, none of its own sent again."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from confluent_kafka import Producer

from eosingest.kafka.config import ClientSettings
from eosingest.kafka.kafka_python import KafkaPythonAdmin
from eosingest.protocol.offsets import topic
from tests.integration.earlier import NAMES, Earlier, spec_of, write_files
from tests.support.harness import Job, assert_verified, wait_for

OFFSETS_TOPIC = "eosingest-offsets-earlier"


@pytest.mark.parametrize("name", NAMES)
def test_a_job_of_an_earlier_release_is_finished(name: str, tmp_path: Path, servers: str) -> None:
    """Breaks when a split, a position or a fingerprint that an earlier release wrote is not recognised, or cut otherwise."""
    earlier = Earlier.load(name)
    job = Job(tmp_path / name, servers, earlier.name)
    write_files(job.data)
    spec = spec_of(name, job.name, servers).replace(
        "[transaction]", f'offsets_topic = "{OFFSETS_TOPIC}"\n[transaction]'
    )
    job.spec.write_text(spec)
    lay_down(earlier, servers)

    done = job.run()

    assert done.exit_code == 0, done
    assert done.data["records_sent"] == 1200 - len(earlier.sink)
    assert sorted(job.numbers()) == list(range(1200))
    assert_verified(job)


def lay_down(earlier: Earlier, servers: str) -> None:
    """Put the earlier run's records where they were, in topics made as it makes them, under the ids that these have."""
    admin = KafkaPythonAdmin(ClientSettings(servers))
    with contextlib.closing(admin):
        if admin.describe_topic(OFFSETS_TOPIC) is None:
            topic.ensure_topic(admin, OFFSETS_TOPIC)
        admin.create_topic(earlier.topic, partitions=3, replication_factor=1, config={})
        found = wait_for(lambda: admin.describe_topic(earlier.topic))
        offsets_topic = wait_for(lambda: admin.describe_topic(OFFSETS_TOPIC))
        cluster = admin.cluster_id()
    now = {"topic_id": found.topic_id, "offsets_topic_id": offsets_topic.topic_id, "cluster_id": cluster}
    texts = {json.dumps(earlier.ids[name]): json.dumps(new) for name, new in now.items()}
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "earlier-release", "linger.ms": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    for partition, key, value, headers in earlier.sink:
        producer.produce(earlier.topic, value, key, partition, headers=[(k, v.encode()) for k, v in headers.items()])
    place = topic.partition_of(earlier.name, topic.PARTITIONS)
    for key, value in earlier.offsets:
        for old, new in texts.items():
            value = None if value is None else value.replace(old, new)
        producer.produce(OFFSETS_TOPIC, value, key, place)
    producer.commit_transaction(60)
