"""Keys and values in Avro, on a real broker and a real registry, read back by Confluent's own deserializer."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.support.harness import (
    Job,
    assert_done,
    assert_refused,
    assert_verified,
    create_topic,
    end_offsets,
    read_committed,
    run_text,
)
from tests.support.held_runs import run_killed_at
from tests.support.registry import SchemaRegistry

SAMPLES = Path(__file__).parents[2] / "sample_configs"
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "user", "type": ["null", "string"], "default": None},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
    ],
}
_SPEC = """\
name = "{name}"
[source]
format = "json"
path = "data/*.jsonl"
schema = "id INT, user STRING, amount DECIMAL(10,2)"
split_size = "64KiB"
[record]
KEY
[record.value]
avro = {{ subject = "{name}-value", schema = "SCHEMA", registry = {{ url = "URL" }} }}
[sink]
bootstrap_servers = "{servers}"
topic = "{name}"
create = {{ partitions = 2 }}
[transaction]
timeout = "10s"
max_records = 200
[spark]
master = "local[2]"
"""
_ROWS = 1000


def write(job: Job, registry: SchemaRegistry, schema: Any = ORDER, key: str = 'key = "user"', **first: Any) -> None:
    """Write the rows, the schema's file (its text, or "latest"), and the spec."""
    named = schema if isinstance(schema, str) else "order.avsc"
    if named != schema:
        (job.folder / named).write_text(json.dumps(schema, indent=2))
    spec = (
        _SPEC.replace("SCHEMA", named)
        .replace("URL", registry.url)
        .replace("KEY", key.replace("{", "{{").replace("}", "}}"))
    )
    job.write_spec(spec)
    data = job.folder / "data"
    data.mkdir(exist_ok=True)
    rows = [{**row(n), "amount": f"{n}.25"} for n in range(_ROWS)]
    rows[0].update(first)
    (data / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))


def row(n: int) -> dict[str, Any]:
    return {"id": n, "user": f"u{n % 7}" if n % 5 else None, "amount": Decimal(f"{n}.25")}


def decoded(job: Job, registry: SchemaRegistry) -> list[dict[str, Any]]:
    """Return the values in the topic, as Confluent's deserializer reads them, in the order of their ids."""
    read = AvroDeserializer(SchemaRegistryClient({"url": registry.url}))
    context = SerializationContext(job.name, MessageField.VALUE)
    values: list[Any] = [read(record.value, context) for record in job.records()]
    return sorted(values, key=lambda value: value["id"])


@pytest.mark.slow
def test_each_row_once_and_nothing_by_a_rerun(job: Job, registry: SchemaRegistry) -> None:
    """Killed in the middle and run again; `plan`, `status` and an audit know the job; the schema is registered once."""
    write(job, registry)
    assert registry.versions(f"{job.name}-value") == []
    assert job.run("plan").exit_code == 0 and registry.versions(f"{job.name}-value") == []
    run_killed_at(job, "task-before-commit@2")
    job.run_until_complete()
    assert decoded(job, registry) == [row(n) for n in range(_ROWS)]
    ends = end_offsets(job.servers, job.name)
    assert_done(job.run(), records_sent=0)
    assert end_offsets(job.servers, job.name) == ends
    assert registry.versions(f"{job.name}-value") == [1]
    assert_verified(job)


@pytest.mark.slow
def test_the_sample(job: Job, registry: SchemaRegistry) -> None:
    """Breaks when sample_configs/orders-avro.toml, or the schema beside it, is not what a run takes."""
    for name in ("orders-avro.toml", "order.avsc"):
        text = (SAMPLES / name).read_text(encoding="utf-8")
        for old, new in (("orders-avro", job.name), ("localhost:9092", job.servers)):
            text = text.replace(old, new)
        (job.spec if name.endswith(".toml") else job.folder / name).write_text(text, encoding="utf-8")
    (job.folder / "data" / "orders").mkdir(parents=True)
    line = '{"id": 1, "user": "ann", "amount": 2.50, "ts": "2026-11-20T10:00:00Z"}\n'
    (job.folder / "data" / "orders" / "a.jsonl").write_text(line)
    assert_done(job.run("run", "--param", f"registry={registry.url}"), records_sent=1)
    (sent,) = decoded(job, registry)
    at = datetime(2026, 11, 20, 10, tzinfo=UTC)
    assert sent == {"id": 1, "user": "ann", "amount": Decimal("2.50"), "ts": at}


@pytest.mark.slow
def test_keys_too(job: Job, registry: SchemaRegistry) -> None:
    key = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
    (job.folder / "key.avsc").write_text(json.dumps(key))
    table = f'schema = "key.avsc", columns = "struct(id)", registry = {{ url = "{registry.url}" }}'
    write(job, registry, key=f'key.avro = {{ subject = "{job.name}-key", {table} }}')
    assert_done(job.run(), records_sent=_ROWS)
    read = AvroDeserializer(SchemaRegistryClient({"url": registry.url}))
    found = [read(record.key, SerializationContext(job.name, MessageField.KEY)) for record in job.records()]
    assert sorted(one["id"] for one in found) == list(range(_ROWS))  # type: ignore[index]


@pytest.mark.slow
def test_the_latest_schema_moves_on_in_the_middle_of_a_job(job: Job, registry: SchemaRegistry) -> None:
    """The pinned one is used until the job is complete (review A9). Breaks when a rerun takes the newer one, or ends."""
    subject = f"{job.name}-value"
    first = registry.register(subject, ORDER)
    write(job, registry, "latest")
    run_killed_at(job, "task-before-commit@2")
    wider = {**ORDER, "fields": [*ORDER["fields"], {"name": "x", "type": ["null", "string"], "default": None}]}
    assert registry.register(subject, wider) != first
    job.run_until_complete()
    assert {int.from_bytes((record.value or b"")[1:5], "big") for record in job.records()} == {first}
    assert decoded(job, registry) == [row(n) for n in range(_ROWS)]


@pytest.mark.slow
def test_a_null_in_a_required_field_is_a_bad_row(job: Job, registry: SchemaRegistry) -> None:
    """With `on_error` it goes to the dead-letter topic, as JSON."""
    write(job, registry, amount=None)
    (job.folder / "data" / "b.jsonl").write_text('{"id": 5000, "user": null, "amount": 1.25}\n')
    done = job.run()
    assert_refused(done, 7, "does-not-fit", "a.jsonl", "row 1", "amount is null")
    other = {"id": 5000, "user": None, "amount": Decimal("1.25")}
    assert decoded(job, registry) == [other], "the other file is sent"
    create_topic(job.servers, f"{job.name}-dead")
    job.edit_spec("[source]\n", f'on_error = {{ topic = "{job.name}-dead", max = 1 }}\n[source]\n')
    assert_done(job.run())
    assert decoded(job, registry) == [*(row(n) for n in range(1, _ROWS)), other]
    (letter,) = read_committed(job.servers, f"{job.name}-dead")
    assert letter.value == b'{"id":0,"user":null,"amount":null}'
    assert dict(letter.headers)["eosingest.code"] == b"does-not-fit"
    assert_verified(job)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([{"name": "id", "type": "long"}], ("user is not in the schema",)),
        ([*ORDER["fields"], {"name": "x", "type": "int"}], ("x is in the schema, and there is no such column",)),
        ([{**ORDER["fields"][0], "type": "string"}, *ORDER["fields"][1:]], ("id: int does not fit string",)),
    ],
)
def test_columns_that_do_not_fit(job: Job, registry: SchemaRegistry, fields: Any, words: tuple[str, ...]) -> None:
    write(job, registry, {**ORDER, "fields": fields})
    assert_refused(job.run(), 2, "schema-does-not-fit", "record.value", *words)


@pytest.mark.slow
def test_an_incompatible_schema(job: Job, registry: SchemaRegistry) -> None:
    subject = f"{job.name}-value"
    registry.register(subject, {**ORDER, "fields": [{"name": "id", "type": "string"}]})
    registry.let_be_compatible(subject)
    write(job, registry)
    assert_refused(job.run(), 2, "schema-not-taken", subject)
    assert registry.versions(subject) == [1]


@pytest.mark.slow
def test_a_registry_that_is_away(job: Job, registry: SchemaRegistry) -> None:
    write(job, registry)
    job.edit_spec(registry.url, "http://127.0.0.1:9")
    assert_refused(job.run(), 5, "registry-unreachable", "127.0.0.1:9")


@pytest.mark.slow
def test_latest_of_a_subject_that_is_not_there(job: Job, registry: SchemaRegistry) -> None:
    write(job, registry, "latest")
    assert_refused(job.run(), 2, "schema-missing", f"{job.name}-value")


@pytest.mark.slow
def test_a_preview_registers_nothing(job: Job, registry: SchemaRegistry) -> None:
    write(job, registry)
    shown = run_text(job, "preview")
    assert shown.exit_code == 0 and '"amount": "0.25"' in shown.text, shown
    assert registry.versions(f"{job.name}-value") == []
