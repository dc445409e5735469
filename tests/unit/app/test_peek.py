"""`topic peek` on topics made by hand: which records are picked, what is said of empty, unknown and open topics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eosingest import broker
from eosingest.app import peek
from eosingest.app.peek import PeekSettings
from eosingest.cli import main as cli
from eosingest.cli import peek as verb
from eosingest.errors import FatalError, TemporaryError
from eosingest.kafka.ports import FailureKind, KafkaFailure, OffsetRange, TopicDescription
from eosingest.report.model import PeekReport


class Message:
    """A message as confluent-kafka has it."""

    def __init__(self, partition: int, offset: int, timestamp: int) -> None:
        self._place = (partition, offset)
        self._timestamp = timestamp

    def partition(self) -> int:
        return self._place[0]

    def offset(self) -> int:
        return self._place[1]

    def timestamp(self) -> tuple[int, int]:
        return 1, self._timestamp

    def key(self) -> bytes:
        return f"{self._place[0]}-{self._place[1]}".encode()

    def value(self) -> None:
        return None

    def headers(self) -> list[tuple[str, bytes]]:
        return [("h", b"x")]


class Cluster:
    """Partitions as lists of (offset, timestamp); what is missing in the offsets are markers and aborted records."""

    def __init__(
        self, partitions: list[list[tuple[int, int]]], ends: list[int], stable: list[int] | None = None
    ) -> None:
        self.partitions, self.ends, self.stable = partitions, ends, stable or ends
        self.reads: list[tuple[int, int, int]] = []

    def __call__(self, *_: Any, **__: Any) -> Cluster:
        return self

    def describe_topic(self, name: str) -> TopicDescription | None:
        return TopicDescription(name, "id", len(self.partitions), {}) if name == "t" else None

    def offset_ranges(self, *_: Any) -> tuple[OffsetRange, ...]:
        return tuple(OffsetRange(0, end) for end in self.ends)

    def last_stable_offsets(self, *_: Any) -> tuple[int, ...]:
        return tuple(self.stable)

    def read(self, partition: int, start: int, end: int) -> Iterator[list[Message]]:
        self.reads.append((partition, start, end))
        found = [Message(partition, at, time) for at, time in self.partitions[partition] if start <= at < end]
        for at in range(0, len(found), 3):
            yield found[at : at + 3]

    def close(self) -> None:
        pass


def look(monkeypatch: pytest.MonkeyPatch, cluster: Cluster, topic: str = "t", **options: Any) -> PeekReport:
    monkeypatch.setattr(peek, "KafkaPythonAdmin", cluster)
    monkeypatch.setattr(peek, "TopicReader", cluster)
    return peek.peek(PeekSettings(topic, "a:9092", **options))


def keys(report: PeekReport) -> list[str]:
    return [(record.key or b"").decode() for record in report.records]


TWO = [[(offset, 100 + offset * 2) for offset in range(20)], [(offset, 101 + offset * 2) for offset in range(20)]]


def test_the_first_records_over_all_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    assert keys(look(monkeypatch, Cluster(TWO, [20, 20]), count=4)) == ["0-0", "1-0", "0-1", "1-1"]


def test_the_last_records(monkeypatch: pytest.MonkeyPatch) -> None:
    assert keys(look(monkeypatch, Cluster(TWO, [20, 20]), count=3, last=True)) == ["1-18", "0-19", "1-19"]


def test_the_last_records_behind_many_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster([[(0, 1), (1, 2), (2, 3)]], [5000])
    assert keys(look(monkeypatch, cluster, count=2, last=True)) == ["0-1", "0-2"]
    assert cluster.reads[0] == (0, 4988, 5000)
    assert len(cluster.reads) < 8


def test_an_open_transaction_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    report = look(monkeypatch, Cluster(TWO, [20, 20], [5, 20]), count=40)
    assert len(report.records) == 25
    assert "a transaction is open" in report.notes[0]


def test_an_empty_topic_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    result = verb.result_of(look(monkeypatch, Cluster([[], []], [0, 0])))
    assert result.exit_code == 0
    assert result.lines == ("topic t on a:9092 (2 partitions) holds no record that read_committed shows.",)


def test_an_unknown_topic_is_exit_7(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FatalError, match="topic nope does not exist on a:9092") as caught:
        look(monkeypatch, Cluster([[]], [0]), topic="nope")
    assert caught.value.code == "topic-missing"


@pytest.mark.parametrize(
    ("kind", "error"), [(FailureKind.REFUSED, FatalError), (FailureKind.UNCERTAIN, TemporaryError)]
)
def test_a_read_that_fails(monkeypatch: pytest.MonkeyPatch, kind: FailureKind, error: type[Exception]) -> None:
    class Failing(Cluster):
        def read(self, *_: Any) -> Iterator[list[Message]]:
            raise KafkaFailure(kind, "TOPIC_AUTHORIZATION_FAILED", "no")

    with pytest.raises(error, match="topic t could not be read"):
        look(monkeypatch, Failing([[(0, 1)]], [1]))


def test_as_text_and_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    result = verb.result_of(look(monkeypatch, Cluster([[(7, 0)]], [8])))
    assert result.lines[1:] == (
        "Partition 0, offset 7, 5 bytes",
        "  key        0-7",
        "  value      null (a tombstone)",
        "  header h   x",
        "  timestamp  1970-01-01T00:00:00.000Z",
    )
    (record,) = json.loads(json.dumps(result.data))["records"]
    assert record == {
        "offset": 7, "partition": 0, "timestamp": "1970-01-01T00:00:00.000Z", "key": "0-7", "value": None,
        "headers": [["h", "x"]], "size": 5,
    }  # fmt: skip


def test_what_is_looked_at(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EOSINGEST_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(broker, "up", lambda **_: pytest.fail("a look started the broker"))
    assert cli.exit_code_of(["topic", "peek", "orders"]) == 5
    assert "the embedded broker is not running" in capsys.readouterr().err
    assert cli.exit_code_of(["topic", "peek", "orders.toml"]) == 2
    assert "no such file" in capsys.readouterr().err
    assert cli.exit_code_of(["topic", "peek", "orders", "--param", "a=1"]) == 2
    (tmp_path / "job.toml").write_text(
        'name = "j"\n[source]\nformat = "json"\npath = "x"\n[sink]\nbootstrap_servers = "a:1"\ntopic = "t"\n'
    )
    seen = []
    monkeypatch.setattr(peek, "peek", lambda settings: seen.append(settings) or PeekReport("t", "a:1", 1, 0, False))
    assert cli.exit_code_of(["topic", "peek", "job.toml", "-n", "3", "--last"]) == 0
    assert cli.exit_code_of(["topic", "peek", "job.toml", "--bootstrap-servers", "b:2"]) == 0
    assert seen == [PeekSettings("t", "a:1", {}, 3, True), PeekSettings("t", "b:2", {}, 10, False)]
