"""`[source]` of a topic: its keys, what is refused, the defaults of its records, and the points in time that it may name."""

from __future__ import annotations

from pathlib import Path

import pytest

from eosingest.errors import SpecError
from eosingest.sources.topics.client import source_client
from eosingest.sources.topics.table import TopicTable
from eosingest.sources.topics.times import milliseconds
from eosingest.spec import Spec, digest_parts, load
from eosingest.spec.tables import Beside

SOURCE = '[source]\nformat = "kafka"\ntopic = "orders-v1"\n'
SINK = (
    '[sink]\nbootstrap_servers = "sink:1"\ntopic = "orders-v2"\nproperties = { "linger.ms" = 7, "client.id" = "me" }\n'
)


def loaded(folder: Path, more: str = "", record: str = "") -> Spec:
    file = folder / "job.toml"
    file.write_text(f'name = "j"\n{SOURCE}{more}\n{record}\n{SINK}')
    return load(file)


def client_of(spec: Spec) -> tuple[str, dict[str, str]]:
    assert isinstance(spec.source, TopicTable)
    resolve = spec.references().resolve
    beside = Beside(
        spec.sink.topic,
        spec.sink.offsets_topic,
        None,
        lambda: (spec.sink.bootstrap_servers, dict(spec.sink.properties)),
        lambda properties, key: {name: resolve(text) for name, text in properties.items()},
    )
    made = source_client(spec.source.beside(beside))
    return made.bootstrap_servers, dict(made.properties)


def test_a_record_is_copied_by_default(tmp_path: Path) -> None:
    """Breaks when what a record has is dropped without a word in the spec."""
    record = loaded(tmp_path).record
    assert (record.key, record.value, record.headers, record.timestamp) == ("key", "value", "headers", "timestamp")
    assert record.partition is None
    other = loaded(tmp_path, record='[record]\nheaders = {}\nvalue = "topic"').record
    assert (other.key, other.value, other.headers, other.timestamp) == ("key", "topic", {}, "timestamp")


def test_where_it_begins_and_ends_is_not_in_the_digest(tmp_path: Path) -> None:
    """It is frozen with the scope: a run that goes on reads up to where the first one meant to."""
    parts = digest_parts(loaded(tmp_path))
    assert parts["source.topic"] == "orders-v1"
    assert digest_parts(loaded(tmp_path, 'from = "2026-11-20T00:00:00Z"\nto = "2026-11-21T00:00:00Z"')) == parts


def test_its_cluster_is_the_sinks_unless_it_names_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when properties of one cluster, and so perhaps a password, are sent to another one."""
    monkeypatch.setenv("SOURCE_PASSWORD", "secret")
    assert client_of(loaded(tmp_path)) == ("sink:1", {"linger.ms": "7", "client.id": "me"})
    assert client_of(loaded(tmp_path, 'bootstrap_servers = "other:1"')) == ("other:1", {})
    own = loaded(tmp_path, 'bootstrap_servers = "other:1"\nproperties = { sasl.password = "${env:SOURCE_PASSWORD}" }')
    assert isinstance(own.source, TopicTable)
    assert own.source.properties == {"sasl.password": "${env:SOURCE_PASSWORD}"}, (
        "secrets are resolved when they are used"
    )
    assert client_of(own) == ("other:1", {"sasl.password": "secret"})


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('path = "data"', "source.path: unknown key"),
        ('tpoic = "a"', 'source.tpoic: unknown key; did you mean "topic"?'),
        ('split_size = "1MiB"', "source.split_size: a partition is read by one task"),
        ('on_change = "reingest"', "source.on_change: a topic that was recreated"),
        ('bootstrap_servers = "embedded"', "source.bootstrap_servers: leave it out"),
        ('from = "latest"', 'source.from: must be "earliest" or a time'),
        ('to = "earliest"', 'source.to: must be "latest" or a time'),
        ('from = "2026-11-20T00:00:00"', 'source.from: must be "earliest" or a time with an offset from UTC'),
        ('properties = { isolation.level = "read_uncommitted" }', "source.properties.isolation.level: not allowed"),
        ('properties = { auto.offset.reset = "earliest" }', "source.properties.auto.offset.reset: not allowed"),
        ('properties = { bootstrap.servers = "a:1" }', "not allowed: set source.bootstrap_servers"),
        ('properties = { ssl.truststore.location = "a" }', "convert the store to PEM"),
        ('properties = { group.id = "a" }', "source.properties.group.id: not allowed"),
    ],
)
def test_what_is_wrong_with_it(tmp_path: Path, more: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        loaded(tmp_path, more)
    assert words in caught.value.message


@pytest.mark.parametrize("properties", ['{ "fetch.mn.bytes" = 1 }', '{ ssl.keystore.password = "x" }'])
def test_properties_that_no_client_takes(tmp_path: Path, properties: str) -> None:
    with pytest.raises(SpecError, match=r"source\.properties"):
        client_of(loaded(tmp_path, f"properties = {properties}"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-11-20T00:00:00+01:00", 1_795_129_200_000),
        ("2026-11-20T00:00:00.0001Z", 1_795_132_800_001),  # the first record of this time or later is none of 0.000
        ("1969-12-31T23:59:59.999Z", -1),
    ],
)
def test_points_in_time(text: str, found: int) -> None:
    assert milliseconds(text) == found
