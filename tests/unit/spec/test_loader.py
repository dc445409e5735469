"""From file to Spec: values, overrides, references, and every kind of mistake with its file, line and key."""

from __future__ import annotations

import pickle
import re
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from eosingest.errors import SpecError
from eosingest.spark.spark_defaults import spark_master
from eosingest.spec import Spec, load, resolve_properties
from eosingest.spec.values import ROW_AS_JSON

MINIMAL = """\
name = "j"
[source]
format = "json"
path = "data/*.jsonl"
[sink]
bootstrap_servers = "embedded"
topic = "t"
"""
Loads = Callable[..., Spec]


@pytest.fixture
def loads(tmp_path: Path) -> Loads:
    """Load a text as `job.toml` in a folder of its own."""

    def from_text(text: str, *overrides: str, **params: str) -> Spec:
        (tmp_path / "job.toml").write_bytes(text.encode())
        return load(tmp_path / "job.toml", params=params, overrides=overrides)

    return from_text


@pytest.fixture
def problems(loads: Loads, tmp_path: Path) -> Callable[..., list[str]]:
    """Load a text that is wrong, and return its problems without the folder's name."""

    def of_text(text: str, *overrides: str, **params: str) -> list[str]:
        with pytest.raises(SpecError) as caught:
            loads(text, *overrides, **params)
        assert caught.value.exit_code == 2
        assert all(problem in str(caught.value) for problem in caught.value.problems)
        return [problem.replace(f"{tmp_path}/", "") for problem in caught.value.problems]

    return of_text


def test_defaults(loads: Loads, tmp_path: Path) -> None:
    spec = loads(MINIMAL)
    assert (spec.name, spec.if_running, spec.directory, spec.file) == ("j", "fence", tmp_path, tmp_path / "job.toml")
    assert (spec.source.format, spec.source.path, spec.source.root) == ("json", ("data/*.jsonl",), None)
    assert (spec.source.ddl, spec.source.options, spec.source.on_change) == (None, {}, "error")
    assert (spec.source.split_size, spec.source.min_age) == (32 * 1024**2, 0.0)
    assert (spec.transform.where, spec.transform.select) == (None, ("*",))
    assert (spec.record.key, spec.record.value) == (None, ROW_AS_JSON)
    assert (spec.record.headers, spec.record.timestamp) == ({}, None)
    assert (spec.sink.create, spec.sink.partitioner, spec.sink.properties) == (None, "murmur2_random", {})
    assert (spec.sink.offsets_topic, spec.sink.transactional_id_prefix) == ("eosingest-offsets", "eosingest.")
    assert (spec.transaction.timeout, spec.transaction.max_records) == (60.0, 1_000_000)
    assert spec.transaction.max_bytes == 256 * 1024**2
    assert (spec.spark.master, spec.spark.conf) == (None, {})


def test_text_sends_its_lines(loads: Loads) -> None:
    text = MINIMAL.replace('"json"', '"text"')
    assert loads(text).record.value == "value"
    assert loads(text + '[record]\nkey = "value"').record.value == "value"
    assert loads(text + '[record]\nvalue = "upper(value)"').record.value == "upper(value)"


def test_defaults_that_depend_on_the_source(loads: Loads) -> None:
    """Breaks when a spec's own words do not count."""
    csv = MINIMAL.replace('"json"', '"csv"') + "[source.options]\nheader = true\n"
    assert loads(csv).source.options == {"header": "true", "escape": '"'}
    own = loads(csv + "escape = '\\'\n[record]\nvalue = \"to_json(struct(*))\"")
    assert (own.source.options["escape"], own.record.value) == ("\\", "to_json(struct(*))")


@pytest.mark.parametrize(("quote", "escape"), [("'", "'"), ("", None)])
def test_a_doubled_quote_is_the_quote_that_is_used(loads: Loads, quote: str, escape: str | None) -> None:
    spec = loads(MINIMAL.replace('"json"', '"csv"') + f'[source.options]\nheader = true\nquote = "{quote}"\n')
    assert spec.source.options.get("escape") == escape


def test_nested_tables_are_flattened_and_made_strings(loads: Loads) -> None:
    spec = loads(
        MINIMAL
        + """
create = { partitions = 3, config.retention.ms = -1, config."cleanup.policy" = "compact" }
[sink.properties]
security.protocol = "SSL"
linger.ms = 5
enable.metrics.push = false
[source.options]
allowSingleQuotes = false
[spark.conf]
spark.sql.caseSensitive = true
"spark.driver.memory" = "4g"
spark.memory.fraction = 0.5
"""
    )
    assert spec.sink.properties == {"security.protocol": "SSL", "linger.ms": "5", "enable.metrics.push": "false"}
    assert spec.sink.create is not None
    assert spec.sink.create.config == {"retention.ms": "-1", "cleanup.policy": "compact"}
    assert spec.source.options == {"allowSingleQuotes": "false"}
    assert spec.spark.conf == {
        "spark.sql.caseSensitive": "true",
        "spark.driver.memory": "4g",
        "spark.memory.fraction": "0.5",
    }


def test_a_header_s_name_has_no_nul(loads: Loads) -> None:
    with pytest.raises(SpecError, match="the character NUL"):
        loads(MINIMAL + '[record]\nheaders = { "a\\u0000b" = "\'1\'" }')


def test_a_list_of_paths_and_headers_in_the_order_of_names(loads: Loads) -> None:
    text = MINIMAL.replace('"data/*.jsonl"', '["a", "b/*"]') + "[record]\nheaders = { z = \"'1'\", a = \"'2'\" }"
    spec = loads(text)
    assert spec.source.path == ("a", "b/*")
    assert list(spec.record.headers) == ["a", "z"]


def test_a_spec_is_frozen_and_pickles(loads: Loads) -> None:
    spec = loads(MINIMAL + '[sink.properties]\nsasl.password = "${param:p}"', p="x")
    with pytest.raises(ValueError, match="frozen"):
        spec.name = "k"
    copy = pickle.loads(pickle.dumps(spec))
    assert copy == spec
    assert resolve_properties(copy) == {"sasl.password": "x"}


def test_windows_line_ends_and_byte_order_mark(loads: Loads, problems: Callable[..., list[str]]) -> None:
    assert loads("\ufeff" + MINIMAL.replace("\n", "\r\n")).name == "j"
    assert problems(MINIMAL.replace("topic", "topci").replace("\n", "\r\n"))[0].startswith("job.toml:5: sink.topic: ")


# Overrides


@pytest.mark.parametrize(
    ("override", "attribute", "expected"),
    [
        ("name=other", "name", "other"),
        ('name="other"', "name", "other"),
        ("name=2026-11-20", "name", "2026-11-20"),
        ("sink.topic = orders-dev", "sink.topic", " orders-dev"),
        ("source.path=['a', 'b']", "source.path", ("a", "b")),
        ("source.split_size=64KiB", "source.split_size", 65536),
        ("source.split_size=4096", "source.split_size", 4096),
        ("sink.create.partitions=3", "sink.create.partitions", 3),
        ("sink.create={partitions=3, config={retention.ms=5}}", "sink.create.config", {"retention.ms": "5"}),
        ("sink.properties.linger.ms=7", "sink.properties", {"linger.ms": "7", "client.id": "c"}),
        ('sink.properties."linger.ms"=7', "sink.properties", {"linger.ms": "7", "client.id": "c"}),
        ("sink.properties.client.id=0123", "sink.properties", {"linger.ms": "5", "client.id": "0123"}),
        ("sink.properties.client.id=1_000", "sink.properties", {"linger.ms": "5", "client.id": "1_000"}),
        ("sink.properties={client.id='d'}", "sink.properties", {"client.id": "d"}),
        ("spark.conf.spark.driver.memory=4g", "spark.conf", {"spark.driver.memory": "4g"}),
        ("source.options.allowSingleQuotes=false", "source.options", {"allowSingleQuotes": "false"}),
        ("transaction.max_records=10", "transaction.max_records", 10),
    ],
)
def test_an_override_sets_any_key(loads: Loads, override: str, attribute: str, expected: object) -> None:
    text = MINIMAL + '[sink.properties]\nlinger.ms = 5\n"client.id" = "c"\n'
    if expected == " orders-dev":
        with pytest.raises(SpecError, match="not a topic name"):
            loads(text, override)
        return
    value: object = loads(text, override)
    for part in attribute.split("."):
        value = getattr(value, part)
    assert value == expected


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("sink.topci=x", '--set sink.topci: unknown key; did you mean "topic"?'),
        ("sink.topic", "--set takes key=value"),
        ("=x", "--set takes key=value"),
        ("a b=x", "--set takes key=value"),
        ("name.first=x", "name.first: name is no table"),
        (
            "source.format=xslx",
            "--set source.format: must be one of json, csv, text, parquet, orc, avro, binaryFile, xml",
        ),
        ("sink.topic=5", "--set sink.topic: must be a string in quotes"),
        ("sink.properties.acks=1", "--set sink.properties.acks: not allowed"),
        ("sink.properties.a=[1]", "--set sink.properties.a: must be a string, a number, true or false"),
    ],
)
def test_a_wrong_override(problems: Callable[..., list[str]], override: str, expected: str) -> None:
    found = problems(MINIMAL, override)
    assert len(found) == 1
    assert expected in found[0]


def test_a_later_override_wins_and_references_work_in_it(loads: Loads) -> None:
    assert loads(MINIMAL, "name=a", "name=${param:n}", n="b").name == "b"


# References


def test_references_in_every_string(loads: Loads, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("N", "10")
    (tmp_path / "topic").write_text("orders\n")
    spec = loads(
        'name = "j-${param:date}"\n[source]\nformat = "json"\npath = ["a/${param:date}/*", "$${x}"]\n'
        '[record]\nheaders = { d = "\'${param:date}\'" }\n[sink]\nbootstrap_servers = "embedded"\n'
        'topic = "${file:topic}"\n[transaction]\nmax_records = "${env:N}"\ntimeout = "${env:N}"\n'
        'max_bytes = "${env:N}MiB"',
        date="2026-11-20",
    )
    assert (spec.name, spec.source.path) == ("j-2026-11-20", ("a/2026-11-20/*", "${x}"))
    assert (spec.record.headers, spec.sink.topic) == ({"d": "'2026-11-20'"}, "orders")
    assert (spec.transaction.max_records, spec.transaction.timeout) == (10, 10.0)
    assert spec.transaction.max_bytes == 10 * 1024**2


def test_properties_are_checked_at_load_and_resolved_late(
    loads: Loads, problems: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = MINIMAL + '[sink.properties]\nsasl.password = "${env:EOS_PW}"'
    monkeypatch.delenv("EOS_PW", raising=False)
    line = "job.toml:9: sink.properties.sasl.password: ${env:EOS_PW}: the environment variable is not set"
    assert problems(text) == [line]
    monkeypatch.setenv("EOS_PW", "one")
    spec = loads(text)
    assert spec.sink.properties == {"sasl.password": "${env:EOS_PW}"}
    monkeypatch.setenv("EOS_PW", "two")
    assert resolve_properties(spec) == {"sasl.password": "two"}
    monkeypatch.delenv("EOS_PW")
    with pytest.raises(SpecError, match="EOS_PW"):
        resolve_properties(spec)


def test_a_refused_value_is_seen_through_its_reference(problems: Callable[..., list[str]]) -> None:
    text = MINIMAL + '[sink.properties]\nmax.in.flight = "${param:n}"'
    assert problems(text, n="6") == [
        "job.toml:9: sink.properties.max.in.flight: must be 1 to 5: with more the order of records cannot be kept"
    ]


def test_relative_certificates_lie_beside_the_spec(loads: Loads, tmp_path: Path) -> None:
    spec = loads(
        MINIMAL + '[sink.properties]\nssl.ca.location = "ca.pem"\nssl.key.location = "/etc/key"\nclient.id = "ca.pem"'
    )
    assert resolve_properties(spec) == {
        "ssl.ca.location": str(tmp_path / "ca.pem"),
        "ssl.key.location": "/etc/key",
        "client.id": "ca.pem",
    }
    assert resolve_properties(loads(MINIMAL + '[sink.properties]\nssl.ca.location = "probe"')) == {
        "ssl.ca.location": "probe"
    }


def test_unused_and_missing_parameters(problems: Callable[..., list[str]]) -> None:
    assert problems(MINIMAL.replace("data/", "data/${param:day}/"), dya="x") == [
        'job.toml: --param dya: the spec has no "${param:dya}"',
        "job.toml:4: source.path: ${param:day}: the parameter is not given; add --param day=…",
    ]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ('"${env:HOME}/x"', 'root = "${env:HOME}"'),
        ('["a", "${file:job.toml}"]', 'root = "${file:job.toml}"'),
        ('"${param:d}/*"', 'root = "."'),
    ],
)
def test_a_path_that_begins_with_a_reference_needs_a_root(
    problems: Callable[..., list[str]], loads: Loads, monkeypatch: pytest.MonkeyPatch, path: str, line: str
) -> None:
    monkeypatch.setenv("HOME", "/h")
    text = MINIMAL.replace('"data/*.jsonl"', path)
    params = {"d": "x"} if "param" in path else {}
    found = problems(text, **params)
    assert found[0].startswith("job.toml:4: source.path: begins with a reference")
    assert found[0].endswith(line)
    spec = loads(text.replace("[source]\n", f"[source]\n{line}\n"), **params)
    assert spec.root_as_written == line.removeprefix('root = "').removesuffix('"')


# Mistakes


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("topic =", "topci =", 'job.toml:7: sink.topci: unknown key; did you mean "topic"?'),
        ("topic =", "topci =", "job.toml:5: sink.topic: missing"),
        ("[sink]", "[snk]", 'job.toml:5: snk: unknown key; did you mean "sink"?'),
        ("[sink]", "[snk]", "job.toml: sink: missing; add the table [sink]"),
        ('topic = "t"', 'topic = "t"\nif_running = "skip"', 'sink.if_running: unknown key; did you mean "if_running"?'),
        ('name = "j"', 'name = "j"\ntopic = "t"', 'job.toml:2: topic: unknown key; did you mean "sink.topic"?'),
        ('name = "j"', 'name = "j"\ndirectory = "x"', "job.toml:2: directory: unknown key"),
        ('"j"', '"a b"', "job.toml:1: name: must be 1 to 100 of the characters"),
        ('"j"', f'"{"x" * 101}"', "job.toml:1: name: must be 1 to 100 of the characters"),
        ('"j"', "5", "job.toml:1: name: must be a string in quotes"),
        (
            '"json"',
            '"josn"',
            "source.format: must be one of json, csv, text, parquet, orc, avro, binaryFile, xml, kafka, postgres;"
            ' did you mean "json"?',
        ),
        ('"json"', "5", "source.format: must be one of json"),
        ('"data/*.jsonl"', '""', "job.toml:4: source.path[0]: must not be empty"),
        ('"data/*.jsonl"', "[]", "job.toml:4: source.path: must not be empty"),
        ('"data/*.jsonl"', "5", "job.toml:4: source.path: must be a list of strings"),
        ('"data/*.jsonl"', '["a", 5]', "job.toml:4: source.path[1]: must be a string in quotes"),
        ('"t"', '"t/t"', "job.toml:7: sink.topic: not a topic name"),
        ('"t"', '".."', "job.toml:7: sink.topic: not a topic name"),
        ('"t"', '"eosingest-offsets"', "sink.offsets_topic: must not be the topic that records are written to"),
        ('"t"', '"t"\noffsets_topic = "t"', "job.toml:8: sink.offsets_topic: must not be the topic"),
        ('"t"', '"t"\ncreate = true', "job.toml:8: sink.create: must be a table"),
        ('"t"', '"t"\ncreate = {}', "job.toml:8: sink.create.partitions: missing"),
        ('"t"', '"t"\ncreate = { partitions = 0 }', "job.toml:8: sink.create.partitions: must be greater than or"),
        ('"t"', '"t"\ncreate = { partitions = true }', "sink.create.partitions: must be a whole number"),
        ('"t"', '"t"\ncreate = { partitions = "1_0" }', "sink.create.partitions: must be a whole number"),
        ('"t"', '"t"\npartitioner = "murmur"', "sink.partitioner: must be one of random, consistent"),
        ('"t"', '"t"\n[sink.properties]\nacks = 1', "job.toml:9: sink.properties.acks: not allowed"),
        ('"t"', '"t"\nproperties.acks = 1', "job.toml:8: sink.properties.acks: not allowed"),
        ('"t"', '"t"\nproperties = 1', "job.toml:8: sink.properties: must be a table"),
        (
            '"t"',
            '"t"\n[sink.properties]\nlinger.ms = [1]',
            "job.toml:9: sink.properties.linger.ms: must be a string, a",
        ),
        ('"t"', '"t"\n[sink.properties]\na.b = 1\n"a.b" = 2', "sink.properties.a.b: given twice"),
        ('"t"', '"t"\n[spark]\nconf = { "spark.speculation" = true }', "job.toml:9: spark.conf.spark.speculation: not"),
        ('"t"', '"t"\n[spark]\nmaster = "local[x]"', "job.toml:9: spark.master: not a local master"),
        ('"t"', '"t"\n[spark]\nmaster = "sc://h"', "job.toml:9: spark.master: Spark Connect is not supported"),
        ('"t"', '"t"\n[spark]\nmaster = "mesos://h:5050"', "job.toml:9: spark.master: Spark 4 does not run on Mesos"),
        ('"t"', '"t"\n[spark]\nmaster = "yran"', "job.toml:9: spark.master: not a master; Spark knows local[*]"),
        ('"t"', '"t"\n[spark]\nmaster = "spark://h"', "job.toml:9: spark.master: not a master of a standalone cluster"),
        ('"t"', '"t"\n[spark]\nmaster = "yarn"', "job.toml:6: sink.bootstrap_servers: the embedded broker listens on"),
        ('"t"', '"t"\n[transaction]\ntimeout = "0.5s"', "transaction.timeout: must be greater than or equal to 1"),
        ('"t"', '"t"\n[transaction]\ntimeout = "soon"', "job.toml:9: transaction.timeout: not a duration"),
        ('"t"', '"t"\n[transaction]\nmax_bytes = "4g"', "job.toml:9: transaction.max_bytes: the unit is ambiguous"),
        ('"t"', '"t"\n[record]\nkey = "uuid()"', "job.toml:9: record.key: uuid() gives another value at every attempt"),
        ('"t"', '"t"\n[record]\nheaders = { h = "now()" }', "job.toml:9: record.headers.h: now() depends on the time"),
        ('"t"', '"t"\n[record]\nheaders = { "" = "a" }', "job.toml:9: record.headers."),
        ('"t"', '"t"\n[record]\nheaders = 5', "job.toml:9: record.headers: must be a table"),
        ('"t"', '"t"\n[record]\nheaders = ""', "job.toml:9: record.headers: must not be empty"),
        ('"t"', '"t"\n[record]\nheaders = "now()"', "job.toml:9: record.headers: now() depends on the time"),
        ('"t"', '"t"\n[record]\nvalue = "concat(\'a"', "job.toml:9: record.value: the ' at character 8 is not closed"),
        ('"t"', '"t"\n[transform]\nselect = ["a", "rand()"]', "job.toml:9: transform.select[1]: rand() gives another"),
        ('"t"', '"t"\n[transform]\nselect = []', "job.toml:9: transform.select: must not be empty"),
        ('"t"', '"t"\n[transform]\nselect = "a"', "job.toml:9: transform.select: must be a list of strings"),
        ('"t"', '"t"\n[transform]\nwhere = "ts < now()"', "job.toml:9: transform.where: now() depends on the time"),
        (
            'format = "json"',
            'format = "json"\nsplit_size = 10',
            "job.toml:4: source.split_size: must be greater than or",
        ),
        (
            'format = "json"',
            'format = "json"\noptions = { multiLine = true, lineSep = "x" }',
            "job.toml:4: source.options.lineSep: has no effect",
        ),
        (
            'format = "json"',
            'format = "text"\nschema = "value STRING"',
            "job.toml:4: source.schema: text has one column",
        ),
        ('"t"', '"t"\nx = """\ntopci = 1\n"""\ntopci = 2', "job.toml:11: sink.topci: unknown key"),
        ('"t"', '"t"\nx = [\n1,\n2]\ntopci = 2', "job.toml:11: sink.topci: unknown key"),
    ],
)
def test_a_mistake_is_named_with_line_and_key(
    problems: Callable[..., list[str]], old: str, new: str, expected: str
) -> None:
    assert old in MINIMAL
    found = problems(MINIMAL.replace(old, new))
    assert any(expected in problem for problem in found), found


def test_all_problems_come_together_in_the_order_of_lines(problems: Callable[..., list[str]]) -> None:
    found = problems(
        'nmae = "j"\n[source]\nformat = "csv"\npath = "${env:EOS_UNSET}/x"\noptions = { headr = true }\n'
        '[record]\nkey = "uuid()"\n[sink]\nbootstrap_servers = "embedded"\n[sink.properties]\nacks = 1\n',
        "spark.conf.spark.speculation=true",
        unused="x",
    )
    keys = [re.sub(r"^job\.toml(:\d+)?: ", r"\1 ", problem)[:34].strip() for problem in found]
    assert keys == [
        '--param unused: the spec has no "',
        "name: missing",
        ":1 nmae: unknown key; did you mean",
        ":4 source.path: begins with a refe",
        ":4 source.path: ${env:EOS_UNSET}:",
        ":5 source.options.headr: unknown o",
        ":7 record.key: uuid() gives anothe",
        ":8 sink.topic: missing",
        ":11 sink.properties.acks: not allo",
        "--set spark.conf.spark.speculation",
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'name = "j"\nname = = 2\n', "job.toml:2: not valid TOML"),
        (b"[source\n", "job.toml:1: not valid TOML"),
        (b'name = "\xff"', "job.toml: not UTF-8 text"),
    ],
)
def test_what_is_no_toml(tmp_path: Path, content: bytes, expected: str) -> None:
    (tmp_path / "job.toml").write_bytes(content)
    with pytest.raises(SpecError) as caught:
        load(tmp_path / "job.toml")
    assert expected in str(caught.value)
    assert caught.value.problems == [caught.value.message]


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no such file") as caught:
        load(tmp_path / "nope.toml")
    assert "init" in caught.value.hint
    with pytest.raises(SpecError, match="is a directory"):
        load(tmp_path)


# Secrets

SECRET = "hunter2-geheim"


@pytest.mark.parametrize(
    ("text", "overrides"),
    [
        (MINIMAL.replace("topic", "topci") + '[sink.properties]\nsasl.password = "SECRET"', []),
        (MINIMAL.replace('"t"', '"SECRET/"'), []),
        (MINIMAL.replace('"j"', '"SECRET "'), []),
        (MINIMAL.replace('"json"', '"SECRET"'), []),
        (MINIMAL + '[transaction]\ntimeout = "SECRET"\nmax_bytes = "SECRET"\nmax_records = "SECRET"', []),
        (MINIMAL + '[spark]\nmaster = "local SECRET"', []),
        (MINIMAL + '[record]\nkey = "f(\'SECRET"', []),
        (MINIMAL + '[sink.properties]\nmax.in.flight = "SECRET"\nretries = "SECRET"', []),
        (MINIMAL + '[source.options]\nallowComments = "SECRET"\nsamplingRatio = "SECRET"', []),
        (MINIMAL + 'create = "SECRET"', []),
        (MINIMAL + 'create = { partitions = "${env:EOS_SECRET}" }', []),
        (MINIMAL + '[sink.properties]\nsasl.password = ["SECRET"]', []),
        (MINIMAL + '[sink.properties]\nsasl.password = "SECRET${env:EOS_UNSET}"', []),
        (MINIMAL + '[sink.properties]\nsasl.password = "SECRET', []),
        (MINIMAL, ["sink.properties.sasl.password=SECRET", "nmae=SECRET"]),
        (MINIMAL.replace("[source]", "[sauce]") + 'properties = { "sasl.password" = "${env:EOS_SECRET}" }', []),
    ],
)
def test_no_error_shows_a_value(
    loads: Loads, monkeypatch: pytest.MonkeyPatch, text: str, overrides: Sequence[str]
) -> None:
    monkeypatch.setenv("EOS_SECRET", SECRET)
    with pytest.raises(SpecError) as caught:
        loads(
            text.replace("SECRET", SECRET).replace("EOS_" + SECRET, "EOS_SECRET"),
            *(override.replace("SECRET", SECRET) for override in overrides),
        )
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(caught.value.problems)
    assert SECRET not in shown


def test_no_repr_shows_a_value(loads: Loads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EOS_SECRET", SECRET)
    spec = loads(
        MINIMAL
        + '[sink.properties]\nsasl.password = "hunter2-geheim"\n[spark.conf]\n'
        + 'spark.hadoop.fs.s3a.secret.key = "${env:EOS_SECRET}"\n[record]\nvalue = "\'${env:EOS_SECRET}\'"'
    )
    assert spec.spark.conf == {"spark.hadoop.fs.s3a.secret.key": SECRET}
    for thing in (spec, spec.sink, spec.spark, spec.record, [spec.spark]):
        assert SECRET not in f"{thing} {thing!r}"


# The master


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", "local[1,4]"),
        ("local[2]", "local[2,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2,1]", "local[2,4]"),
        ("local[2,2]", "local[2,2]"),
        ("local[ *, 8 ]", "local[*,8]"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("spark://h:7077", "spark://h:7077"),
        ("yarn", "yarn"),
    ],
)
def test_a_local_master_always_retries(loads: Loads, master: str, expected: str) -> None:
    spec = loads(MINIMAL, f'spark.master="{master}"', 'sink.bootstrap_servers="h:9092"')
    assert spark_master(spec) == expected


CSV_WITHOUT_A_WORD = MINIMAL.replace('format = "json"', 'format = "csv"')


def test_csv_says_whether_it_has_a_header(tmp_path: Path) -> None:
    """A header that is sent as a record cannot be taken back."""
    file = tmp_path / "job.toml"
    for options in ("", "\n[source.options]\nsep = ';'\n"):
        file.write_text(CSV_WITHOUT_A_WORD + options)
        with pytest.raises(SpecError) as caught:
            load(file)
        assert caught.value.code == "csv-header"
        assert "header = true or header = false" in caught.value.message
        assert "first line" in caught.value.hint
    for said in ("true", "false", "'false'"):
        file.write_text(CSV_WITHOUT_A_WORD + f"\n[source.options]\nHeader = {said}\n")
        load(file)


def test_xml_needs_a_schema_that_it_can_be_read_by(problems: Callable[..., list[str]]) -> None:
    xml = MINIMAL.replace('format = "json"', 'format = "xml"\noptions = { rowTag = "row", attributePrefix = "@" }')
    assert xml != MINIMAL
    assert any("source.schema: is missing" in said for said in problems(xml))
    assert any("type BINARY, as which no XML is read" in said for said in problems(xml, 'source.schema="a BINARY"'))
    assert any("@a is an attribute" in said for said in problems(xml, 'source.schema="`@a` ARRAY<INT>"'))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('format = "json"\nunknown_fields = "error"', None),
        ('format = "json"\nunknown_fields = "error"\noptions = { allowComments = false }', None),
        ('format = "json"\noptions = { AllowComments = true }', "RFC 8259"),
        ('format = "json"\noptions = { timezone = "Europe/Berlin" }', "to_utc_timestamp(COLUMN, 'ZONE')"),
        ('format = "json"\noptions = { timestampFormat = "yyyy-ww" }', "write to_timestamp(COLUMN, 'PATTERN')"),
        ('format = "csv"\nunknown_fields = "error"\noptions = { header = true }', "has no effect with csv"),
        ('format = "parquet"\nunknown_fields = "error"', "has no effect with parquet"),
        ('format = "json"\nunknown_fields = "error"\ninspect = false', "the inspection finds unknown fields"),
        ('format = "json"\nunknown_fields = "errors"', 'did you mean "error"?'),
    ],
)
def test_unknown_fields(loads: Loads, problems: Callable[..., list[str]], source: str, words: str | None) -> None:
    """Breaks when "error" is taken where fields are dropped that no check sees."""
    text = MINIMAL.replace('format = "json"', source)
    if words is None:
        assert loads(text).source.unknown_fields in source
    else:
        (problem,) = problems(text)
        assert words in problem
