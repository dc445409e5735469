"""`init --from kafka://…`: which addresses are taken, what is said of records, and that the spec is one that `check` takes.

The brokers are played here; tests/integration/test_topics.py has a real one.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eosingest import broker
from eosingest.cli import main as cli
from eosingest.errors import EosingestError, FatalError, SpecError, TemporaryError
from eosingest.kafka.ports import FailureKind, KafkaFailure, LogEnd, OffsetRange, TopicDescription
from eosingest.sources.topics import discover as look_module
from eosingest.sources.topics.discover import Address, address_of, id_fields, kind_of
from eosingest.spec import load

SECRET = "hunter2"


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EOSINGEST_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize(
    ("text", "servers", "topic"),
    [
        ("kafka://h:9092/orders", "h:9092", "orders"),
        ("KAFKA://h1:9092,h2.example:9093/a.b_c-D", "h1:9092,h2.example:9093", "a.b_c-D"),
        ("kafka://embedded/t", "embedded", "t"),
        ("kafka://[::1]:9092,127.0.0.1:1/t", "[::1]:9092,127.0.0.1:1", "t"),
    ],
)
def test_an_address(text: str, servers: str, topic: str) -> None:
    assert address_of(text) == Address(servers, topic)


@pytest.mark.parametrize("text", ["orders.csv", "s3://bucket/key", "kafka", "kafka/orders.csv", "kafka:/h/t"])
def test_what_is_no_address(text: str) -> None:
    """Breaks when a file is taken for a topic."""
    assert address_of(text) is None


@pytest.mark.parametrize(
    "text",
    ["kafka://h/t", "kafka://h:9092", "kafka://h:9092/", "kafka:///t", "kafka://h:9092/a/b", "kafka://h:9092/t?x=1", "kafka://h:x/t",
     "kafka://h:9092,/t", "kafka://h:9092/t\n", "kafka://h:9092/..", "kafka://h 1:1/t", f"kafka://h:1/{'t' * 250}"],
)  # fmt: skip
def test_a_wrong_address(text: str) -> None:
    with pytest.raises(SpecError, match="is not kafka://host:port") as refused:
        address_of(text)
    assert text not in str(refused.value)
    assert refused.value.code == "bad-address"


@pytest.mark.parametrize(
    "text",
    [f"kafka://me:{SECRET}@h:9092/t", f"kafka://{SECRET}@h/t", f"kafka://h1,me:{SECRET}@h2/t", f"kafka://a/{SECRET}@b"],
)
def test_a_login_is_refused_and_not_repeated(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when a password comes to stand in a message, on the screen or in a spec."""
    for output in ("text", "json"):
        assert cli.exit_code_of(["init", "--from", text, "job.toml", "--output", output, "-v"]) == 2
        said = "".join(capsys.readouterr())
        assert SECRET not in said
        assert "sasl.password" in said
        assert "${env:KAFKA_PASSWORD}" in said
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (None, "null"), (b"", "text"), (b"abc \xc3\xbc\n", "text"), (b'{"a": 1}', "JSON objects"), (b' [1]', "JSON"),
        (b"{no", "text"), (b"[" * 100_000, "text"),
        (b"\xff", "bytes"), (b"a\x00b", "bytes"), (b"\x00\x00\x00\x00\x07\x02a", "bytes after a schema registry's id"),
        (b"\x00\x00\x00\x00\x07\xff\xfe", "bytes after a schema registry's id"), (b"\x00\x01", "bytes"),
    ],
)  # fmt: skip
def test_what_bytes_look_like(data: bytes | None, kind: str) -> None:
    assert kind_of(data) == kind


def test_which_fields_may_be_a_key() -> None:
    assert id_fields(b'{"order_id": 1, "id": "x", "userId": null, "key": true, "a b_id": 1, "n": 2}') == [
        "order_id",
        "id",
    ]
    assert id_fields(b"[1]") == id_fields(b"no") == id_fields(None) == []


# ---- the spec that is written ----------------------------------------------------------------------------------------


class Message:
    def __init__(self, key: bytes | None, value: bytes | None) -> None:
        self._key, self._value = key, value

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return self._value


class Played:
    """Brokers that have one topic, or none; `failure` is raised by whoever reads."""

    def __init__(self, *messages: Message, partitions: int = 3, config: dict[str, str] | None = None) -> None:
        self.messages = list(messages)
        self.partitions = partitions
        self.config = config
        self.there = True
        self.failure: Exception | None = None
        self.asked: list[tuple[int, int, int]] = []

    def __call__(self, *_: object, **__: object) -> Played:
        return self

    def close(self) -> None:
        """Nothing."""

    def describe_topic(self, name: str) -> TopicDescription | None:
        return TopicDescription(name, "id", self.partitions, self.config) if self.there else None

    def offset_ranges(self, topic: str, partitions: int) -> tuple[OffsetRange, ...]:
        return (OffsetRange(0, 1000),) * bool(self.messages) + (OffsetRange(5, 5),) * (partitions - bool(self.messages))

    def last_stable_ends(self, topic: str, partitions: int) -> tuple[LogEnd, ...]:
        return tuple(LogEnd(found.end, None) for found in self.offset_ranges(topic, partitions))

    def read(self, partition: int, start: int, end: int) -> Iterator[list[Message]]:
        self.asked.append((partition, start, end))
        if self.failure is not None:
            raise self.failure
        yield self.messages


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Callable[[Played], None]:
    def played(as_told: Played) -> None:
        monkeypatch.setattr(look_module, "KafkaPythonAdmin", as_told)
        monkeypatch.setattr(look_module, "TopicReader", as_told)

    return played


def test_the_spec(brokers: Callable[[Played], None], capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when `check` does not take it, the copy has other partitions, or it would not keep all records."""
    config = {"cleanup.policy": "compact,delete", "max.message.bytes": "5000000", "retention.ms": "1000"}
    played = Played(Message(None, b'{"order_id": 1}'), Message(b"k", b'{"order_id": 2}'), config=config)
    brokers(played)
    assert cli.exit_code_of(["init", "--from", "kafka://h1:9092,h2:9092/orders.v1", "job.toml"]) == 0
    said = "".join(capsys.readouterr())
    assert "of 2 records read, the keys are: null (1), text (1); the values: JSON objects" in said
    assert "compacted" in said
    assert played.asked == [(0, 950, 1000)], "the last records, and of no partition that is empty"
    assert cli.exit_code_of(["check", "job.toml"]) == 0
    spec = load(Path("job.toml"))
    assert (spec.name, spec.sink.topic, spec.sink.bootstrap_servers) == ("orders.v1-copy", "orders.v1-copy", "embedded")
    assert spec.source.places() == ("orders.v1 on h1:9092,h2:9092",)
    assert spec.sink.create is not None
    assert spec.sink.create.partitions == 3
    assert spec.sink.create.config == {"retention.ms": "-1", "max.message.bytes": "5000000"}
    assert (spec.record.key, spec.record.headers, spec.record.partition) == ("key", "headers", None)
    text = Path("job.toml").read_text()
    shown = [line.removeprefix("# ") for line in text.splitlines() if line.startswith(("# where", "# key", "# from"))]
    Path("edited.toml").write_text(
        text.replace("# [transform]", "[transform]")
        .replace("# where", "where")
        .replace("# key", "key")
        .replace("# from", "from")
    )
    assert len(shown) == 3
    assert cli.exit_code_of(["check", "edited.toml"]) == 0, "what is shown in comments can be taken in"


@pytest.mark.parametrize("topic", ["t" * 249, "-", "a_b"])
def test_names_that_are_odd(brokers: Callable[[Played], None], topic: str) -> None:
    """Breaks when the name of the copy, or of the job, is one that `check` refuses."""
    brokers(Played(partitions=1))
    assert cli.exit_code_of(["init", "--from", f"kafka://h:1/{topic}", "job.toml"]) == 0
    assert cli.exit_code_of(["check", "job.toml"]) == 0
    assert load(Path("job.toml")).sink.topic != topic


def test_a_topic_of_the_embedded_broker(
    brokers: Callable[[Played], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named without a port, which changes; and it is not started by a look."""
    assert cli.exit_code_of(["init", "--from", "kafka://embedded/t", "job.toml"]) == 5
    assert "eosingest broker up" in "".join(capsys.readouterr())
    assert not Path("job.toml").exists()
    brokers(Played(partitions=2))
    up = broker.BrokerStatus(
        running=True, bootstrap_servers="127.0.0.1:7", pid=1, version="", directory=Path(), log=Path()
    )
    monkeypatch.setattr(broker, "status", lambda: up)
    assert cli.exit_code_of(["init", "--from", "kafka://embedded/t", "job.toml"]) == 0
    assert cli.exit_code_of(["check", "job.toml"]) == 0
    assert load(Path("job.toml")).source.places() == ("t",), "on the sink's cluster"


def error_of(text: str) -> EosingestError:
    with pytest.raises(EosingestError) as raised:
        look_module.look(address_of(text))  # type: ignore[arg-type]
    return raised.value


def test_a_topic_that_is_not_there_or_may_not_be_read(brokers: Callable[[Played], None]) -> None:
    played = Played(Message(None, b""))
    brokers(played)
    played.failure = KafkaFailure(FailureKind.REFUSED, "TOPIC_AUTHORIZATION_FAILED", "no")
    refused = error_of("kafka://h:1/t")
    assert (type(refused), refused.code) == (FatalError, "kafka-refused")
    assert "properties" in refused.hint
    played.failure = KafkaFailure(FailureKind.UNCERTAIN, "read-deadline", "no further")
    late = error_of("kafka://h:1/t")
    assert (type(late), late.code, late.hint) == (TemporaryError, "kafka-uncertain", "nothing was written; try again")
    played.there = False
    missing = error_of("kafka://h:1/t")
    assert (type(missing), missing.code) == (SpecError, "source-topic-missing")


@pytest.mark.slow
def test_nobody_answers() -> None:
    """In bounded time, and without a spec that nobody has looked at."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        nobody = error_of(f"kafka://127.0.0.1:{port}/t")
    assert (type(nobody), nobody.code) == (TemporaryError, "broker-unreachable")
    assert nobody.hint.startswith("nothing was written; check the port")
    assert "run again" not in nobody.hint
