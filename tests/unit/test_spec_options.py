"""Allow-lists and refusals: reader options per format, producer properties, Spark settings."""

from __future__ import annotations

import pytest

from eosingest.spec.options import (
    ALLOWED_OPTIONS,
    DEFAULT_OPTIONS,
    PROTECTED_SPARK_CONF,
    canonical_options,
    meaningful_options,
    protects,
    reader_options,
    refused_conf,
    refused_options,
    refused_properties,
)

FORMATS = list(ALLOWED_OPTIONS)


def _options(format_: str, has_schema: bool = False, /, **options: str) -> dict[str, str]:
    return dict(refused_options(format_, options, has_schema=has_schema))


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(
    "name",
    [
        "mode",
        "columnNameOfCorruptRecord",
        "ignoreCorruptFiles",
        "ignoreMissingFiles",
        "pathGlobFilter",
        "recursiveFileLookup",
        "modifiedBefore",
        "modifiedAfter",
        "basePath",
        "wholetext",
        "multiLine",
        "__globPaths__",
        "MULTILINE",
        "compression",
        "path",
    ],
)
def test_options_that_break_the_splits_are_refused_in_every_format(format_: str, name: str) -> None:
    assert _options(format_, **{name: "true"})[name].startswith("not allowed: ")


@pytest.mark.parametrize(
    ("format_", "name", "value", "expected"),
    [
        ("csv", "headr", "true", 'did you mean "header"?'),
        ("json", "timestampformat ", "x", 'did you mean "timestampFormat"?'),
        ("parquet", "header", "true", "unknown option for parquet"),
        ("csv", "header", "yes", "must be true or false"),
        ("csv", "maxColumns", "many", "must be a whole number"),
        ("json", "samplingRatio", "all", "must be a number"),
        ("csv", "escape", "ab", "must be one character, or empty"),
        ("csv", "quote", "\U0001f600", "must be one character, or empty"),
        ("csv", "unescapedQuoteHandling", "KEEP", "must be one of STOP_AT_CLOSING_QUOTE, BACK"),
        ("orc", "zzz", "1", "known are mergeSchema"),
    ],
)
def test_unknown_and_ill_typed_options(format_: str, name: str, value: str, expected: str) -> None:
    assert expected in _options(format_, **{name: value})[name]


def test_good_options_pass_in_any_case() -> None:
    assert _options("csv", HEADER="True", nullvalue="NA", Sep="||", quote="", escape="\\") == {}
    assert _options("csv", header="true", unescapedQuoteHandling="skip_value") == {}
    assert canonical_options("csv", {"HEADER": "True", "nullvalue": "NA"}) == {"header": "True", "nullValue": "NA"}
    assert _options("json", timestampFormat="yyyy", samplingRatio="0.1") == {}


def test_an_option_given_twice_is_seen() -> None:
    assert "given twice" in _options("csv", sep=";", SEP=",")["SEP"]
    assert "same option as sep" in _options("csv", sep=";", delimiter=",")["delimiter"]
    assert "same option as encoding" in _options("json", encoding="UTF-8", charset="UTF-8")["charset"]


def test_csv_rules() -> None:
    assert "enforceSchema" in _options("csv", header="true", enforceSchema="true")
    assert _options("csv", header="false", enforceSchema="true") == {}
    assert "no effect" in _options("csv", True, inferSchema="true")["inferSchema"]
    assert _options("csv", False, inferSchema="true") == {}


def test_reader_options_are_completed() -> None:
    assert reader_options("csv", {"header": "true"}, has_schema=True) == {"header": "true", "enforceSchema": "false"}
    assert reader_options("csv", {}, has_schema=False) == {"inferSchema": "true"}
    assert reader_options("csv", {"inferSchema": "false"}, has_schema=False) == {"inferSchema": "false"}
    assert reader_options("json", {"locale": "de"}, has_schema=False) == {"locale": "de"}


@pytest.mark.parametrize("format_", FORMATS)
def test_every_default_given_by_hand_means_nothing(format_: str) -> None:
    assert set(DEFAULT_OPTIONS[format_]) <= set(ALLOWED_OPTIONS[format_])
    assert meaningful_options(format_, DEFAULT_OPTIONS[format_], has_schema=False) == {}


def test_meaningful_options_fold_names_and_drop_what_a_schema_makes_idle() -> None:
    assert meaningful_options("csv", {"delimiter": ";", "header": "TRUE"}, has_schema=True) == {
        "header": "true",
        "sep": ";",
    }
    assert meaningful_options("csv", {"inferSchema": "false"}, has_schema=False) == {"inferSchema": "false"}
    assert meaningful_options("csv", {"inferSchema": "false"}, has_schema=True) == {}


@pytest.mark.parametrize(
    ("name", "value", "alternative"),
    [
        ("acks", "1", "always all"),
        ("request.required.acks", "-1", "always all"),
        ("enable.idempotence", "false", "always true"),
        ("max.in.flight", "6", "1 to 5"),
        ("max.in.flight.requests.per.connection", "1000000", "1 to 5"),
        ("max.in.flight", "lots", "1 to 5"),
        ("retries", "0", "1 or more"),
        ("transactional.id", "x", "sink.transactional_id_prefix"),
        ("transaction.timeout.ms", "1000", "transaction.timeout"),
        ("message.timeout.ms", "1000", "transaction.timeout"),
        ("delivery.timeout.ms", "1000", "transaction.timeout"),
        ("bootstrap.servers", "x:1", "sink.bootstrap_servers"),
        ("metadata.broker.list", "x:1", "sink.bootstrap_servers"),
        ("isolation.level", "read_uncommitted", "leave it out"),
        ("allow.auto.create.topics", "true", "sink.create"),
        ("partitioner", "random", "sink.partitioner"),
        ("retry.backoff.ms", "5", "leave it out"),
        ("retry.backoff.max.ms", "5", "leave it out"),
        ("enable.gapless.guarantee", "true", "leave it out"),
        ("queuing.strategy", "lifo", "leave it out"),
        ("group.id", "x", "leave it out"),
        ("test.mock.num.brokers", "3", "embedded"),
        ("stats_cb", "x", "leave it out"),
        ("ssl.truststore.location", "x", "ssl.ca.location"),
        ("sasl.jaas.config", "x", "sasl.username"),
        ("socket.timeout.ms", "60000", "below transaction.timeout"),
        ("Acks", "1", "always all"),
    ],
)
def test_properties_that_break_the_guarantee_name_the_alternative(name: str, value: str, alternative: str) -> None:
    assert alternative in dict(refused_properties({name: value}, 60.0))[name]


def test_other_properties_pass() -> None:
    properties = {"linger.ms": "5", "max.in.flight": "5", "security.protocol": "SSL", "socket.timeout.ms": "59900"}
    assert list(refused_properties({**properties, "compression.type": "zstd", "retries": "5"}, 60.0)) == []


@pytest.mark.parametrize(
    "key",
    [
        "spark.speculation",
        "spark.speculation.quantile",
        "spark.sql.adaptive.enabled",
        "spark.sql.adaptive.coalescePartitions.enabled",
        "spark.sql.files.maxPartitionBytes",
        "spark.sql.files.ignoreCorruptFiles",
        "spark.sql.session.timeZone",
        "spark.sql.session.timezone",
        "spark.sql.ansi.enabled",
        "spark.task.maxFailures",
        "spark.master",
        "spark.app.name",
        "spark.sql.sources.useV1SourceList",
        "spark.sql.sources.parallelPartitionDiscovery.threshold",
        "spark.sql.csv.parser.columnPruning.enabled",
        "spark.sql.jsonGenerator.ignoreNullFields",
        "spark.ui.showConsoleProgress",
    ],
)
def test_spark_settings_of_the_protocol_are_refused(key: str) -> None:
    assert protects(key)
    assert dict(refused_conf({key: "x"}))[key].startswith("not allowed: ")


def test_other_spark_settings_pass() -> None:
    assert list(refused_conf({"spark.driver.memory": "4g", "spark.sql.caseSensitive": "true"})) == []
    assert "not a Spark setting" in dict(refused_conf({"driver.memory": "4g"}))["driver.memory"]
    assert "spark.sql.files.*" in PROTECTED_SPARK_CONF


@pytest.mark.parametrize("key", ["spark.submit.deployMode", "spark.submit.deploymode"])
def test_a_spec_cannot_send_the_driver_elsewhere(key: str) -> None:
    """Breaks when `check` takes what no run can be started with."""
    assert "--deploy-mode cluster" in dict(refused_conf({key: "cluster"}))[key]
    assert list(refused_conf({key: "client"})) == []
