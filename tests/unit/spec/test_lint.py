"""What `check` finds in expressions and schemas without Spark; and that it refuses nothing that Spark takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from eosingest.app.inspect import check
from eosingest.app.lint import further_problems
from eosingest.errors import SpecError
from eosingest.spec import load
from eosingest.spec.columns import columns_of
from eosingest.spec.lint import expression_problems
from tests.unit.spec.valid_expressions import EXAMPLES, ODD, SCHEMA

COLUMNS = "id BIGINT, user STRING, amount DOUBLE, ts TIMESTAMP, s STRUCT<a: INT>"


def lint(
    *, schema: str | None = COLUMNS, folders: Mapping[str, str] | None = None, known: bool = True, **keys: Any
) -> list[tuple[str, str]]:
    """Return (key, text and hint) of what is found."""
    source = {"format": keys.pop("format", "json"), **({"schema": schema} if schema else {})}
    transform = {key: keys.pop(key) for key in ("where", "select") if key in keys}
    tables = {"source": source, "transform": transform, "record": keys}
    found = expression_problems(tables, (folders or {}) if known else None)
    return [
        (str(problem.path[-1]), f"{problem.text}; {problem.hint}" if problem.hint else problem.text)
        for problem in found
    ]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"where": "amount >> > 0 and"}, "something is missing"),
        ({"where": "(amount > 0"}, "a ) is missing"),
        ({"where": "amount > 0)"}, "not an expression"),
        ({"where": "amount > 0 AND OR id = 1"}, "something is missing"),
        ({"where": "amount > 0, id > 1"}, "not an expression"),
        ({"where": "amount > 0 FROM x"}, "not an expression"),
        ({"value": "to_json(struct(*)"}, "a ) is missing"),
        ({"key": "CASE WHEN id > 1 THEN user"}, "not an expression"),
        ({"where": "amout > 0"}, "no column amout; did you mean amount?"),
        ({"key": "usr"}, "no column usr; did you mean user?"),
        ({"key": "UPPER(zone_7)"}, "no column zone_7; the columns are id, user, amount, ts, s"),
        ({"where": "amount > 0 amount < 5"}, "not an expression"),
        ({"key": "user name"}, "is an operator or a comma missing before name?"),
        ({"key": "id"}, "id is of type bigint, not string or binary; write CAST(id AS STRING)"),
        ({"key": "`id`"}, "of type bigint"),
        ({"key": "(ID)"}, "of type bigint"),
        ({"key": "CAST(user AS BIGINT)"}, "of type bigint"),
        ({"key": "id = 1"}, "of type boolean"),
        ({"value": "s"}, "s is of type struct"),
        ({"headers": {"h": "amount"}}, "amount is of type double"),
        ({"headers": "user"}, "of type string, not ARRAY<STRUCT<key STRING, value BINARY>>; write headers = { name ="),
        ({"format": "kafka", "schema": None, "known": False, "key": "keys"}, "no column keys; did you mean key?"),
        ({"format": "kafka", "schema": None, "known": False, "headers": "key"}, "key is of type binary, not ARRAY"),
        ({"timestamp": "id"}, "of type bigint, not timestamp or date; write timestamp_seconds(id), timestamp_millis(id) or"),
        ({"timestamp": "id"}, "timestamp_micros(id div 1000) where it is in nanoseconds"),
        ({"timestamp": "user"}, "of type string, not timestamp or date; write CAST(user AS TIMESTAMP)"),
        ({"partition": "amount"}, "of type double, not integer; write CAST(amount AS INT)"),
        ({"where": "id"}, "of type bigint, not boolean"),
        ({"select": ["id", "usr"]}, "no column usr"),
        ({"select": ["id", "user"], "key": "amount"}, "no column amount; the columns are id, user"),
        ({"select": ["id AS n", "n + 1 AS m"], "key": "n"}, "n is of type bigint"),
        ({"format": "text", "schema": None, "key": "valeu"}, "no column valeu; did you mean value?"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found(keys: dict[str, Any], words: str) -> None:
    found = lint(**keys)
    assert len(found) == 1, found
    assert words in found[0][1]


@pytest.mark.parametrize(
    "keys",
    [
        {"schema": None, "key": "whatever", "where": "nobody > knows"},
        {"schema": None, "format": "parquet", "key": "id"},
        {"schema": '{"type": "struct"}', "key": "id"},
        {"select": ["explode(array(1)) AS x", "*"], "key": "x"},
        {"select": ["s.*"], "key": "a"},
        {"select": ["upper(user)"], "key": "`upper(user)`"},
        {"folders": {"day": ""}, "key": "day"},
        {"known": False, "key": "country"},  # may be a folder's
        {"where": "'unclosed"},  # the model says so
        {"key": "user COLLATE UTF8_LCASE"},
        {"key": "USER"},
    ],
)
def test_what_only_spark_can_tell_passes(keys: dict[str, Any]) -> None:
    assert lint(**keys) == []


@pytest.mark.parametrize("expression", [*ODD, *EXAMPLES])
def test_nothing_that_spark_takes_is_refused(expression: str) -> None:
    for schema in (SCHEMA, None):
        assert lint(schema=schema, select=[expression]) == []


@pytest.mark.parametrize(
    ("ddl", "words"),
    [
        ("id BIGNT", "the column id is of an unknown type, BIGNT; did you mean BIGINT?"),
        ("id BIGINT, note TEXT", "note is of an unknown type, TEXT; Spark calls it STRING"),
        ("id", "the column id has no type"),
        ("id BIGINT, s STRUCT<a: INTT, b: STRING>", "did you mean INT?"),
        ("l ARRAY<MAP<STRING, DUBLE>>", "did you mean DOUBLE?"),
        ("x frobnicate", "known are BOOLEAN"),
    ],
)
def test_a_type_that_is_none(ddl: str, words: str) -> None:
    assert any(words in text for text in columns_of(ddl)[1])


@pytest.mark.parametrize(
    "ddl",
    [
        COLUMNS,
        SCHEMA,
        "a int, b: string, `c d` DECIMAL(10,2) NOT NULL COMMENT 'x, y', e VARCHAR(10)",
        "a STRUCT<>, b ARRAY<STRUCT<x: INT, y: MAP<STRING, ARRAY<INT>>>>, c INTERVAL DAY TO SECOND",
        "struct<a: int, b: string>",
        "a STRING COLLATE UTF8_LCASE, b TIMESTAMP_NTZ, c VARIANT, d VOID",
    ],
)
def test_a_schema_that_spark_takes(ddl: str) -> None:
    columns, wrong = columns_of(ddl)
    assert columns is not None
    assert columns.names
    assert wrong == []


# ---- with a file ---------------------------------------------------------------------------------------------------

SPEC = """\
name = "orders"
[source]
format = "json"
path = "gs://bucket/*.jsonl"
schema = "id BIGNT, user STRING"
[transform]
where = "amount >"
[record]
key = "usr"
[sink]
bootstrap_servers = "localhost"
topci = "orders"
topic = "orders"
[sink.properties]
compresion.type = "zstd"
lingre.ms = 5
[spark]
master = "yran"
"""


def thorough(file: Path) -> None:
    load(file, more=lambda tables: further_problems(tables, file))


def test_everything_at_once_each_with_its_line_and_key(tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text(SPEC)
    with pytest.raises(SpecError) as caught:
        thorough(file)
    assert [(each.line, each.key) for each in caught.value.details] == [
        (4, "source.path"),
        (5, "source.schema"),
        (7, "transform.where"),
        (9, "record.key"),
        (11, "sink.bootstrap_servers"),
        (12, "sink.topci"),
        (15, "sink.properties.compresion.type"),
        (16, "sink.properties.lingre.ms"),
        (18, "spark.master"),
    ]
    assert all(each.file == str(file) and each.code and each.message for each in caught.value.details)
    assert caught.value.details[3].message.endswith(":9: record.key: there is no column usr; did you mean user?")


@pytest.mark.parametrize(
    ("servers", "words"),
    [
        ("localhost", "'localhost' has no port; brokers mostly listen at localhost:9092"),
        ("a:9092,b", "'b' has no port"),
        ("http://broker:9092", "not host:port"),
        ("a:9092,,b:9092", "a comma too many"),
        ("a:99999", "there is no port 99999"),
        ("a 9092", "not host:port"),
        ("a:9092, b:9092", None),
        ("[::1]:9092", None),
        ("SASL_SSL://a:9092", None),
        ("embedded", None),
    ],
)
def test_servers(servers: str, words: str | None) -> None:
    found = [problem.text for problem in further_problems({"sink": {"bootstrap_servers": servers}}, Path("job.toml"))]
    assert (not found) if words is None else (words in found[0])


def test_columns_of_folders_are_known_where_files_are_there(tmp_path: Path) -> None:
    (tmp_path / "data" / "day=1").mkdir(parents=True)
    (tmp_path / "data" / "day=1" / "a.jsonl").write_text("{}\n")
    tables = {
        "source": {"format": "json", "path": "data", "schema": "id STRING"},
        "record": {"key": "day", "value": "night"},
    }
    found = [problem.text for problem in further_problems(tables, tmp_path / "job.toml")]
    assert found == ["there is no column night; the columns are day, id"]


def test_a_file_s_name_is_a_column_of_files_alone(tmp_path: Path) -> None:
    """`_metadata` is named by the record too if `select` does not; a topic has no such column."""
    (tmp_path / "data").mkdir()
    record = {"key": "_metadata.file_name", "value": "id"}
    files = {"format": "json", "path": "data", "schema": "id STRING"}
    for select in (["*"], ["id"]):
        tables = {"source": files, "transform": {"select": select}, "record": record}
        assert list(further_problems(tables, tmp_path / "job.toml")) == []
        del tables["source"]["schema"]
        tables["transform"] = {"select": [*select, "meta AS metadata"]}
        assert list(further_problems(tables, tmp_path / "job.toml")) == []
        files["schema"] = "id STRING"
    bucket = {"format": "json", "path": "s3://b/x", "schema": "id STRING"}
    assert list(further_problems({"source": bucket, "record": {"key": "file_metadata"}}, tmp_path / "job.toml")) == []
    topic = {"format": "kafka", "topic": "t"}
    found = [each.text for each in further_problems({"source": topic, "record": record}, tmp_path / "job.toml")]
    assert "there is no column _metadata" in found[0]


@pytest.mark.parametrize("table", ["sink", "source"])
@pytest.mark.parametrize(
    "name",
    [
        "ssl.providers",
        "ssl.engine.location",
        "ssl.engine.id",
        "ssl.keystore.location",
        "ssl.ca.certificate.stores",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.keytab",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.jwt.template.file",
        "sasl.oauthbearer.metadata.authentication.type",
        "error_cb",
        "on_delivery",
        "logger",
    ],
)
def test_librdkafka_gets_no_property_that_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, name: str
) -> None:
    """It loads the libraries and reads the files that properties name as soon as a client is made."""
    given: list[Mapping[str, object]] = []
    monkeypatch.setattr("confluent_kafka.Producer", lambda config, **_: given.append(config))
    source = 'format = "kafka"\ntopic = "s"\nbootstrap_servers = "b:1"'
    spec = tmp_path / "job.toml"
    spec.write_text(
        f'name = "j"\n[source]\n{source}\n[sink]\nbootstrap_servers = "b:1"\ntopic = "t"\n'
        f'[{table}.properties]\n"linger.ms" = "5"\n"{name}" = "a"\n'
    )
    with pytest.raises(SpecError) as caught:
        load(spec, more=lambda tables: further_problems(tables, spec))
    assert [each.key for each in caught.value.details] == [f"{table}.properties.{name}"]
    assert all(name not in config for config in given)


@pytest.mark.parametrize(("name", "value"), [("ssl.providers", "a"), ("sasl.mechanism", "GSSAPI")])
def test_no_client_is_made_of_properties_that_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setattr("confluent_kafka.Producer", lambda *_, **__: pytest.fail("a client was made"))
    spec = tmp_path / "job.toml"
    spec.write_text(
        'name = "j"\n[source]\nformat = "text"\npath = "a"\n[sink]\nbootstrap_servers = "b:1"\ntopic = "t"\n'
        f'[sink.properties]\n"{name}" = "{value}"\n'
    )
    assert not [*further_problems({"sink": {"properties": {"sasl.mechanism": "GSSAPI"}}}, spec)]
    with pytest.raises(SpecError, match=f"{name}|GSSAPI") as caught:
        check(load(spec))
    assert caught.value.code == "bad-property"
