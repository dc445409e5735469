"""The JSON Schema, the sample specs and the template: they agree with the model and with one another."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import tomli
from jsonschema import Draft7Validator

from eosingest.errors import SpecError
from eosingest.spec import TEMPLATE, json_schema, load, spec_for, spec_for_table, spec_for_topic

SAMPLES = Path(__file__).parents[3] / "sample_configs"
NAMES = sorted(path.name for path in SAMPLES.glob("*.toml"))
PARAMS = {"orders-json.toml": {"date": "2026-11-20"}, "orders-avro.toml": {"registry": "http://localhost:8081"}}
MINIMAL = (
    'name = "j"\nsource = { format = "json", path = "p" }\nsink = { bootstrap_servers = "embedded", topic = "t" }\n'
)


@pytest.fixture(scope="module")
def validator() -> Draft7Validator:
    Draft7Validator.check_schema(json_schema())
    return Draft7Validator(json_schema())


def _tables(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, inner in schema.get("properties", {}).items():
        yield f"{path}{name}", inner
        for each in (inner, *inner.get("oneOf", ())):  # [source] of each kind
            yield from _tables(each, f"{path}{name}.")


def test_the_schema_beside_the_samples_is_this_one() -> None:
    assert json.loads((SAMPLES / "eosingest.schema.json").read_text(encoding="utf-8")) == json_schema()


def test_every_key_has_a_description_and_optional_ones_a_default() -> None:
    keys = dict(_tables(json_schema()))
    assert {"source.schema", "sink.create.partitions", "transaction.max_bytes"} <= keys.keys()
    assert [name for name, key in keys.items() if not key.get("description")] == []
    assert keys["source.split_size"]["default"] == "32MiB"
    assert keys["sink.partitioner"]["default"] == "murmur2_random"
    assert keys["transform.select"]["default"] == ["*"]


def test_the_schema_is_draft_07_without_references() -> None:
    text = json.dumps(json_schema())
    assert json_schema()["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert not [word for word in ("$ref", "$defs", "prefixItems", "unevaluated", '"null"') if word in text]


@pytest.mark.parametrize("name", NAMES)
def test_samples_load_and_fit_the_schema(
    name: str, validator: Draft7Validator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("LANDING", "KAFKA_SERVERS", "KAFKA_USER", "KAFKA_PASSWORD", "PGPASSWORD"):
        monkeypatch.setenv(variable, "/landing")
    load(SAMPLES / name, params=PARAMS.get(name, {}))
    text = (SAMPLES / name).read_text(encoding="utf-8")
    assert text.startswith("#:schema eosingest.schema.json\n")
    assert list(validator.iter_errors(tomli.loads(text))) == []


def test_there_are_ten_samples() -> None:
    assert NAMES == [
        "flights.toml",
        "orders-avro.toml",
        "orders-bucket.toml",
        "orders-hdfs.toml",
        "orders-json.toml",
        "parquet-partitioned.toml",
        "query.toml",
        "secured-cluster.toml",
        "table.toml",
        "topic-copy.toml",
    ]


def test_the_template_loads_also_with_every_line_switched_on(
    tmp_path: Path, validator: Draft7Validator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "x")
    file = tmp_path / "job.toml"
    file.write_text(TEMPLATE, encoding="utf-8")
    assert load(file).name == "my-job"
    assert TEMPLATE.startswith("#:schema eosingest.schema.json\n")
    head, body = TEMPLATE.split("\n\n", 1)
    everything = "\n".join(line.removeprefix("# ") for line in body.splitlines())
    file.write_text(head + "\n\n" + everything.replace("options = {", "options = {", 1), encoding="utf-8")
    spec = load(file)
    assert (spec.record.key, spec.sink.properties["security.protocol"]) == ("user", "SASL_SSL")
    assert list(validator.iter_errors(tomli.loads(everything))) == []


def _written() -> dict[str, str]:
    """Return the specs that `init` writes, and the samples, by name."""
    file: dict[str, Any] = {
        "data": "d", "name": "j", "path": "d", "options": {}, "schema": None, "key": None, "conf": {},
        "unknown_fields": None, "notes": (),
    }  # fmt: skip
    topic: dict[str, Any] = {"address": "a", "topic": "t", "servers": None, "partitions": 3, "max_message_bytes": None}
    table: dict[str, Any] = {"address": "a", "url": "postgresql://u@h/d", "password": "x", "has_password": True}
    return {
        "template": TEMPLATE,
        "json": spec_for(format_="json", **file),
        "text": spec_for(format_="text", **file),
        "topic": spec_for_topic(**topic, id_field=None, notes=()),
        "topic by id": spec_for_topic(**topic, id_field="id", notes=()),
        "table": spec_for_table(**table, table="public.t", key=["id"], record_key="id", incremental=True, notes=()),
        **{name: (SAMPLES / name).read_text(encoding="utf-8") for name in NAMES},
    }


_DEFAULT = re.compile(r"^(# )?(\S+ = [^\n]*?\S) +# the default\b", re.MULTILINE)


@pytest.mark.parametrize("name", _written())
def test_a_line_that_is_called_the_default_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for variable in ("LANDING", "KAFKA_SERVERS", "KAFKA_USER", "KAFKA_PASSWORD", "PGPASSWORD"):
        monkeypatch.setenv(variable, "/landing")
    (tmp_path / "order.avsc").write_bytes((SAMPLES / "order.avsc").read_bytes())

    def loaded(text: str) -> Mapping[str, Any]:
        (tmp_path / "job.toml").write_text(text, encoding="utf-8")
        return load(tmp_path / "job.toml", params=PARAMS.get(name, {})).model_dump()

    text = _written()[name]
    as_written = loaded(text)
    for line in _DEFAULT.finditer(text):
        commented, key = line.groups()
        before, header, between = text[: line.start()].rpartition("\n# [" if commented else "\n[")
        if commented and "\n[" not in between:  # its table is a comment, too
            header = "\n["
        switched = f"{before}{header}{between}{key if commented else ''}\n# {text[line.end() :]}"
        assert loaded(switched) == as_written, key


# Each line is added to a spec that is otherwise right: schema and loader must be of one mind.
@pytest.mark.parametrize(
    ("line", "good"),
    [
        ('if_running = "skip"', True),
        ('if_running = "wait"', False),
        ("unknown = 1", False),
        ('transaction.timeout = "1h30m"', True),
        ("transaction.timeout = 30", True),
        ('transaction.timeout = "PT60S"', False),
        ('transaction.max_bytes = "4g"', False),
        ('transaction.max_bytes = "4 GiB"', True),
        ('transaction.max_records = "${env:N}"', True),
        ('transaction.max_records = "many"', False),
        ("transaction.max_records = 0", False),
        ('transform.select = ["a"]', True),
        ("transform.select = []", False),
        ('transform.select = "a"', False),
        ('record.headers = { a = "b" }', True),
        ("record.headers = { a = 1 }", False),
        ('[spark.conf]\nspark.sql.caseSensitive = true\n"spark.driver.memory" = "4g"', True),
        ("[spark]\nconf = 1", False),
    ],
)
def test_schema_and_loader_agree(
    tmp_path: Path, validator: Draft7Validator, monkeypatch: pytest.MonkeyPatch, line: str, good: bool
) -> None:
    monkeypatch.setenv("N", "10")
    (tmp_path / "job.toml").write_text(MINIMAL + line)
    assert validator.is_valid(tomli.loads(MINIMAL + line)) is good
    if good:
        load(tmp_path / "job.toml")
    else:
        with pytest.raises(SpecError):
            load(tmp_path / "job.toml")
