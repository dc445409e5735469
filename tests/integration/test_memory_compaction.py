"""The Kafka in memory against a real one: what the log cleaner leaves of committed, aborted and open transactions."""

from __future__ import annotations

import contextlib
import warnings

import pytest
from confluent_kafka.admin import AdminClient

from eosingest import broker
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.librdkafka import LibrdkafkaOffsetsReader
from tests.integration.brokers import last_words, running_broker
from tests.integration.harness import wait_for
from tests.integration.raw_kafka import RawKafka
from tests.integration.request_walk import CompactionWalk
from tests.integration.test_contracts import quick_log_cleaner

# More than one only where the broker itself has died, as it has three times in CI and nobody has seen why. What is compared
# is what Kafka leaves; with no broker that lives to leave anything, it is neither right nor wrong: an expected failure, with
# what each broker said last in a warning.
TRIES = 3


@pytest.mark.parametrize("retention_ms", [86_400_000, 0], ids=["tombstones stay", "tombstones go"])
def test_compaction(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, retention_ms: int
) -> None:
    """What is left of committed, aborted and open transactions, and what a reader gets from every offset."""
    for _ in range(TRIES):
        with running_broker(request.session, tmp_path_factory) as up:
            try:
                with contextlib.closing(RawKafka(up.bootstrap_servers)) as raw:
                    compare_after_compaction(raw, up.bootstrap_servers, retention_ms)
                return
            except Exception:
                if broker.status(directory=up.directory).running:
                    raise
                warnings.warn(f"the broker died in {up.directory}:\n{last_words(up.directory)}", stacklevel=1)
    pytest.xfail(f"{TRIES} brokers died")


def compare_after_compaction(raw: RawKafka, servers: str, retention_ms: int) -> None:
    """Write, have both sides compact, and compare; then the same with a transaction that holds the cleaner up."""
    config = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.001",
        "delete.retention.ms": str(retention_ms),
    }
    walk = CompactionWalk(0, raw, config)
    gone = retention_ms == 0
    for name in [*walk.ids, walk.ids[0]]:
        walk.init(name)
    holder, *walk.pairs = walk.pairs[1], walk.pairs[2]
    with contextlib.closing(LibrdkafkaOffsetsReader(walk.topic, 0, ClientSettings(servers))) as reader:
        with quick_log_cleaner(AdminClient({"bootstrap.servers": servers})):
            walk.write(40)
            wait_for(lambda: walk.same_after_compaction(reader, drop_tombstones=gone))
            assert walk.produce(holder, "produce", 0) == "ok"
            walk.write(20)
            wait_for(lambda: walk.same_after_compaction(reader, drop_tombstones=gone))
        log = walk.memory.log(walk.topic, 0)
        assert len(log.entries) < log.end
        for start in range(0, log.end, 7):
            for committed in (True, False):
                assert walk.same(reader, start, committed) or (committed and start > log.last_stable)
