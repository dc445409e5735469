"""Keys and values in JSON by a schema, on a real broker and a real registry, read back by Confluent's own deserializer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.support.harness import (
    Job,
    assert_done,
    assert_refused,
    assert_verified,
    create_topic,
    read_committed,
    run_text,
)
from tests.support.held_runs import run_killed_at
from tests.support.registry import SchemaRegistry

ORDER = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 0},
        "user": {"type": ["string", "null"]},
        "amount": {"type": "number"},
    },
    "required": ["id", "user"],
}
_SPEC = """\
name = "{name}"
[source]
format = "json"
path = "data/*.jsonl"
schema = "id INT, user STRING, amount DECIMAL(10,2)"
split_size = "64KiB"
[record]
key = "user"
[record.value]
json_schema = {{ subject = "{name}-value", schema = "order.json", registry = {{ url = "URL" }} }}
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


def row(n: int) -> dict[str, Any]:
    return {"id": n, "user": f"u{n % 7}" if n % 5 else None, "amount": n + 0.25}


def write(job: Job, registry: SchemaRegistry, **first: Any) -> None:
    """Write the rows, the first of them with other values, the schema and the spec."""
    (job.folder / "order.json").write_text(json.dumps(ORDER, indent=2))
    job.write_spec(_SPEC.replace("URL", registry.url))
    (job.folder / "data").mkdir(exist_ok=True)
    rows = [{**row(n), **(first if n == 0 else {})} for n in range(_ROWS)]
    (job.folder / "data" / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))


def decoded(job: Job, registry: SchemaRegistry) -> list[dict[str, Any]]:
    """Return the values in the topic, as Confluent's deserializer reads and checks them, in the order of their ids."""
    read = JSONDeserializer(None, schema_registry_client=SchemaRegistryClient({"url": registry.url}))
    context = SerializationContext(job.name, MessageField.VALUE)
    values: list[Any] = [read(record.value, context) for record in job.records()]
    return sorted(values, key=lambda value: value["id"])


@pytest.mark.slow
def test_each_row_once_and_nothing_by_a_rerun(job: Job, registry: SchemaRegistry) -> None:
    write(job, registry)
    shown = run_text(job, "preview")
    assert shown.exit_code == 0 and '{"id":0,"user":null,"amount":0.25}' in shown.text, shown
    assert registry.versions(f"{job.name}-value") == []
    run_killed_at(job, "task-before-commit@2")
    job.run_until_complete()
    assert decoded(job, registry) == [row(n) for n in range(_ROWS)]
    assert_done(job.run(), records_sent=0)
    assert registry.versions(f"{job.name}-value") == [1]
    assert_verified(job)


@pytest.mark.slow
def test_a_row_that_is_not_as_the_schema_says(job: Job, registry: SchemaRegistry) -> None:
    """Its value is not told. Breaks when a row is sent that Confluent's deserializer refuses. Or, a letter."""
    write(job, registry, id=-77123)
    (job.folder / "data" / "b.jsonl").write_text('{"id": 5000, "user": null, "amount": 1.25}\n')
    shown = run_text(job, "preview")
    assert shown.exit_code == 7 and "id: the value is less than the minimum of 0" in shown.text, shown
    done = job.run()
    assert_refused(done, 7, "does-not-fit", "a.jsonl", "row 1", "id: the value is less than the minimum of 0")
    assert "77123" not in done.text
    other = {"id": 5000, "user": None, "amount": 1.25}
    assert decoded(job, registry) == [other], "the other file is sent"
    create_topic(job.servers, f"{job.name}-dead")
    job.edit_spec("[source]\n", f'on_error = {{ topic = "{job.name}-dead", max = 1 }}\n[source]\n')
    assert_done(job.run())
    assert decoded(job, registry) == [*(row(n) for n in range(1, _ROWS)), other]
    (letter,) = read_committed(job.servers, f"{job.name}-dead")
    assert (letter.value or b"")[5:] == b'{"id":-77123,"user":null,"amount":0.25}', "as it was made, behind the frame"
    assert_verified(job)


def test_a_schema_that_is_none(job: Job, registry: SchemaRegistry) -> None:
    write(job, registry)
    (job.folder / "order.json").write_text('{"type": "objec"}')
    for verb in ("check", "run"):
        assert_refused(job.run(verb), 2, "bad-schema", "order.json" if verb == "check" else "subject")
    assert registry.versions(f"{job.name}-value") == []
