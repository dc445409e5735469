"""Topics on a real broker as subjects of the conformance suite: partitions of transactions, some of which are aborted.

What lies at an offset never changes and no partition vanishes alone, so what changes is for tests/integration/test_topics.py.
"""

from __future__ import annotations

import uuid
from pathlib import Path

from confluent_kafka import Consumer

from eosingest.protocol.source import Split
from eosingest.sources.registry import Kind
from eosingest.sources.topics.ranges import RangeSplit
from tests.support.harness import Record, read_committed, watermarks
from tests.support.source_topics import Sent, SourceTopic
from tests.support.sources.subject import Plain

_ROWS = 24  # of a partition


class OnBroker:
    """A subject that needs a broker: `servers` is set before it is created."""

    servers = ""


class Topic(OnBroker, Plain):
    """Records go straight to the producer."""

    needs_spark = False
    kind: Kind | None = None
    value = ""

    def __init__(self, folder: Path) -> None:
        self._name = f"{folder.name[-20:]}-{uuid.uuid4().hex[:6]}".replace("_", "-").replace("[", "").replace("]", "")
        self._topic: SourceTopic | None = None
        self._partitions = 2
        self._read: tuple[int, list[Record]] = (0, [])

    def create(self) -> None:
        self._topic = SourceTopic(self.servers, self._name, partitions=self._partitions)
        for number in range(self._partitions):
            self._fill(number)

    def _fill(self, partition: int) -> None:
        assert self._topic is not None
        first = partition * 1000
        rows = [Sent(None, self.text_of(row)) for row in range(first, first + _ROWS)]
        half = len(rows) // 2
        self._topic.write_in_transaction(rows[:half], partition)
        self._topic.write_in_transaction([Sent(None, b"never")] * 5, partition, commit=False)
        self._topic.write_in_transaction(rows[half:], partition)
        self._topic.write_in_transaction([Sent(None, b"never")], partition, commit=False)

    def text_of(self, row: int) -> bytes:
        return b"%05d-" % row + b"x" * (row % 7)

    def spec(self) -> str:
        record = f'[record]\nvalue = "{self.value}"\n' if self.value else ""
        return f'[source]\nformat = "kafka"\ntopic = "{self._name}"\nbootstrap_servers = "{self.servers}"\n{record}'

    def grow(self) -> None:
        assert self._topic is not None
        self._partitions += 1
        self._topic.add_partitions(self._partitions)
        self._fill(self._partitions - 1)

    def edit(self, row: bytes, *, unseen: bool) -> None:
        raise NotImplementedError

    def touch(self, item: str) -> None:
        """Do nothing: there is nothing of a partition that changes without its records."""

    def remove(self, item: str) -> None:
        """Delete the topic, with all of its partitions."""
        if self._topic is not None:
            self._topic.delete()
            self._topic = None

    def items(self) -> list[str]:
        return [f"{self._name}-{number}@0" for number in range(self._partitions)]

    def rows(self) -> list[bytes]:
        return [record.value or b"" for record in self._records()]

    def rows_of(self, split: Split) -> list[bytes]:
        assert isinstance(split, RangeSplit)
        return [
            record.value or b""
            for record in self._records()
            if record.partition == split.partition and split.start <= record.offset < split.end
        ]

    def is_covered(self, splits: list[Split]) -> bool:
        (split,) = splits
        assert isinstance(split, RangeSplit)
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "nobody"})
        try:
            return watermarks(consumer, self._name, split.partition) == (split.start, split.end)
        finally:
            consumer.close()

    def _records(self) -> list[Record]:
        """Return what is committed; it is read again where a partition has come since."""
        if self._read[0] != self._partitions:
            self._read = self._partitions, read_committed(self.servers, self._name)
        return self._read[1]


class TopicBySql(Topic):
    """The same through Spark SQL."""

    needs_spark = True
    value = "concat(value, X'')"
