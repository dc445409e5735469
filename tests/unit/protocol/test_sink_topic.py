"""Hanging transactions in the sink topic: a job is stopped by its own, and by nobody else's."""

from __future__ import annotations

from typing import cast

import pytest

from eosingest.kafka.ports import Admin, OpenTransaction, TopicDescription
from eosingest.protocol import sink_topic


class _Hanging:
    """An admin client that tells of one hanging transaction."""

    def __init__(self, transactional_id: str) -> None:
        self._found = OpenTransaction(transactional_id, 7, 1.0, hanging=True)

    def hanging_transactions(self, topic: str, partitions: int) -> list[tuple[int, OpenTransaction]]:
        return [(2, self._found)]


@pytest.mark.parametrize(
    ("transactional_id", "ours"),
    [("p.a.0", True), ("p.a.control", True), ("p.a.b.0", False), ("p.aa.0", False), ("producer id 9", False)],
)
def test_only_the_jobs_own_stop_it(transactional_id: str, ours: bool) -> None:
    """Breaks when job "a" waits for what job "a.b", which writes to the same topic, left behind."""
    sink = TopicDescription("sink", "id", 3, {})
    error = sink_topic.hanging(cast(Admin, _Hanging(transactional_id)), sink, {"p.a"})
    assert (error is not None) is ours
    if error is not None:
        assert (error.exit_code, error.code) == (5, "hanging-transaction")
        assert "abort --topic sink --partition 2 --start-offset 7" in error.hint
