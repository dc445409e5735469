"""`check` is offline: it refuses what a run refuses without a connection, and sends no request."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from eosingest.app.inspect import check
from eosingest.errors import SpecError
from eosingest.spec import load

Checks = Callable[..., list[str]]

TOPIC = 'format = "kafka"\ntopic = "from"\n'
TABLE = 'format = "postgres"\nurl = "postgresql://u@db.example/d"\ntable = "public.t"\nkey = "id"\n'
REGISTRY = """\
[record.value.avro]
subject = "s"
schema = "latest"
registry = { url = "http://r:1", ca_location = "no.pem" }
"""


@pytest.fixture
def checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checks:
    """Checks a spec with this source; a request, and the lookup of a host's name, fail the test."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("check sent a request")

    def read(source: str, more: str = "", servers: str = "h:1", properties: str = "{}") -> list[str]:
        text = f'name = "x"\n[source]\n{source}\n[sink]\nbootstrap_servers = "{servers}"\ntopic = "t"\n'
        (tmp_path / "job.toml").write_text(f"{text}properties = {properties}\n{more}")
        return check(load(tmp_path / "job.toml"))

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("EOSINGEST_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return read


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (f'{TOPIC}properties = {{ "ssl.keystore.location" = "x.p12" }}', "source.properties: ssl.keystore.location is"),
        (f'{TOPIC}properties = {{ "security.protocol" = "SASL_SSL" }}', "source.properties: sasl.mechanism is missing"),
        (f'{TOPIC}properties = {{ "no.such" = "1" }}', "source.properties: librdkafka says: .*no.such"),
        ('format = "kafka"\ntopic = "t"', "t is also sink.topic"),
        ('format = "kafka"\ntopic = "t"\nbootstrap_servers = "h:1"', "t is also sink.topic"),
        ('format = "kafka"\ntopic = "eosingest-offsets"', "eosingest-offsets is also sink.offsets_topic"),
        ('format = "postgres"\nurl = "postgresql://h/d?port=x&no=1"\ntable = "a.t"\nkey = "id"', "source.url: libpq"),
    ],
)
def test_settings_of_the_source_that_every_run_refuses(checks: Checks, source: str, words: str) -> None:
    """Breaks when a spec is called valid, and each run of it ends with exit 2 before it connects."""
    with pytest.raises(SpecError, match=words):
        checks(source)


def test_what_a_connection_decides_is_not_refused(checks: Checks) -> None:
    """With a broker that is down, another cluster that has a topic of the sink's name, a table, a bucket."""
    checks(f'{TOPIC}properties = {{ "client.id" = "x" }}', servers="embedded")
    checks('format = "kafka"\ntopic = "t"\nbootstrap_servers = "other:1"')
    checks('format = "kafka"\ntopic = "t"\nbootstrap_servers = "other:1"', servers="embedded")
    checks(TABLE)


@pytest.mark.parametrize("path", ["s3://b/*.jsonl", "hdfs://name.example:8020/*.jsonl"])
def test_nothing_is_requested_of_a_store(checks: Checks, path: str) -> None:
    """Breaks when the first object is listed to find out whether its JSON has one record per line."""
    checks(f'format = "json"\npath = "{path}"')


def test_the_first_local_item_is_looked_at(checks: Checks, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[\n{"id": 1}\n]\n')
    assert "is one JSON array" in checks('format = "json"\npath = "a.json"')[-1]


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("boto3", 'format = "text"\npath = "s3://b/*"'),
        ("urllib3", 'format = "text"\npath = "hdfs://h/*"'),
        ("psycopg", TABLE),
    ],
)
def test_a_missing_package(checks: Checks, monkeypatch: pytest.MonkeyPatch, package: str, source: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SpecError, match=f"{package}.*not installed"):
        checks(source)


def test_the_certificate_of_a_registry(checks: Checks) -> None:
    with pytest.raises(SpecError, match=r"record.value.avro.registry.ca_location: .*no.pem: "):
        checks('format = "text"\npath = "a"', REGISTRY)


def test_all_at_once(checks: Checks) -> None:
    """Breaks when a wrong property of the sink hides one of the source."""
    source = f'{TOPIC}properties = {{ "ssl.keystore.location" = "x.p12" }}'
    with pytest.raises(SpecError) as raised:
        checks(source, REGISTRY, properties='{ "security.protocol" = "SASL_SSL" }')
    for words in ("sink.properties: sasl.mechanism", "no.pem", "source.properties: ssl.keystore"):
        assert any(words in problem for problem in raised.value.problems), raised.value.problems
