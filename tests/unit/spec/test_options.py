"""Allow-lists and refusals: producer properties, Spark settings."""

from __future__ import annotations

import pytest

from eosingest.spec.options import PROTECTED_SPARK_CONF, protects, refused_conf, refused_properties


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
        "spark.sql.parquet.binaryAsString",
        "spark.hadoop.parquet.page.verify-checksum.enabled",
        "spark.sql.avro.datetimeRebaseModeInRead",
        "spark.sql.legacy.avro.datetimeRebaseModeInRead",
        "spark.sql.legacy.parquet.datetimeRebaseModeInRead",
        "spark.sql.legacy.parquet.int96RebaseModeInRead",
        "spark.sql.sources.partitionColumnTypeInference.enabled",
        "spark.hadoop.avro.mapred.ignore.inputs.without.extension",
        "spark.sql.orc.filterPushdown",
        "spark.hadoop.orc.force.positional.evolution",
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
