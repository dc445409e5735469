"""Refuses settings in `sink.properties` and `spark.conf` on which exactly-once depends; each message names the alternative.

The functions yield (key, text) pairs, to which `load` adds file and line. The kind of source checks `[source]` (sources/).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

Refusals = Iterator[tuple[str, str]]

_WHOLE = re.compile(r"-?[0-9]+")
_GUARANTEE = "the guarantee rests on it; leave it out"
_READER = "eosingest reads its offsets topic its own way; leave it out"
_JAVA_STORE = "that is a Java client's setting; convert the store to PEM files and name them in"
_REFUSED_PROPERTIES = {
    **dict.fromkeys(("acks", "request.required.acks"), f"it is always all: {_GUARANTEE}"),
    "enable.idempotence": f"it is always true: {_GUARANTEE}",
    **dict.fromkeys(
        ("retry.backoff.ms", "retry.backoff.max.ms"), f"a commit that was repeated is known by its time: {_GUARANTEE}"
    ),
    "enable.gapless.guarantee": "it would end a producer where eosingest resumes; leave it out",
    "queuing.strategy": f"records must keep their order: {_GUARANTEE}",
    "delivery.report.only.error": f"every delivery is checked: {_GUARANTEE}",
    "transactional.id": "it is built from prefix, job and task; set sink.transactional_id_prefix",
    "transaction.timeout.ms": "set transaction.timeout",
    **dict.fromkeys(
        ("message.timeout.ms", "delivery.timeout.ms"), "it follows the transaction; set transaction.timeout"
    ),
    **dict.fromkeys(("bootstrap.servers", "metadata.broker.list"), "set sink.bootstrap_servers"),
    **dict.fromkeys(("partitioner", "partitioner_cb"), "set sink.partitioner"),
    "allow.auto.create.topics": "a topic made by accident has the wrong settings; set sink.create",
    **dict.fromkeys(("isolation.level", "auto.offset.reset", "enable.partition.eof", "offset.store.method"), _READER),
    **dict.fromkeys(("enable.auto.commit", "auto.commit.enable", "enable.auto.offset.store"), _READER),
    **dict.fromkeys(("group.id", "group.instance.id", "group.protocol", "share.acknowledgement.mode"), _READER),
    "default.topic.config": "write its settings into sink.properties",
    "topic.blacklist": "it could hide the topics that are written to; leave it out",
    "test.mock.num.brokers": 'a mock is no Kafka; write sink.bootstrap_servers = "embedded"',
    **dict.fromkeys(("ssl.truststore.location", "ssl.truststore.certificates"), f"{_JAVA_STORE} ssl.ca.location"),
    **dict.fromkeys(("ssl.truststore.password", "ssl.truststore.type"), f"{_JAVA_STORE} ssl.ca.location"),
    "ssl.keystore.type": f"{_JAVA_STORE} ssl.certificate.location and ssl.key.location",
    "sasl.jaas.config": "that is a Java client's setting; set sasl.username and sasl.password",
    **dict.fromkeys(("key.serializer", "value.serializer"), "set record.key and record.value"),
    "request.timeout": "set request.timeout.ms",
}
_OF_CODE = ("opaque", "msg_order_cmp", "enabled_events", "on_delivery", "logger")
_IN_FLIGHT = ("max.in.flight", "max.in.flight.requests.per.connection")
_RETRIES = ("retries", "message.send.max.retries")


def refused_properties(properties: Mapping[str, str], timeout: float) -> Refusals:
    """Yield the producer properties that would break exactly-once. `timeout`: transaction.timeout in seconds.

    `kafka.config` checks which connection properties both clients support; librdkafka checks whether a property exists.
    """
    for name, value in properties.items():
        key = name.lower()
        if key in _REFUSED_PROPERTIES:
            yield name, f"not allowed: {_REFUSED_PROPERTIES[key]}"
        elif key.endswith("_cb") or key in _OF_CODE:
            yield name, "not allowed: it cannot be written in a file; leave it out"
        elif key in _IN_FLIGHT and not 1 <= _whole(value, 0) <= 5:
            yield name, "must be 1 to 5: with more the order of records cannot be kept"
        elif key in _RETRIES and _whole(value, 0) < 1:
            yield name, "must be 1 or more: without retries no transaction is idempotent"
        elif key == "socket.timeout.ms" and _whole(value, 0) > timeout * 1000 - 100:
            yield name, "must be at least 100 ms below transaction.timeout"


_ONLY_READ = "a source is only read; leave it out"
_ITS_OWN_WAY = "where reading begins and ends is eosingest's to say; leave it out"
_REFUSED_OF_A_SOURCE = {
    **dict.fromkeys(("bootstrap.servers", "metadata.broker.list"), "set source.bootstrap_servers"),
    **dict.fromkeys(("transactional.id", "transaction.timeout.ms", "enable.idempotence", "acks"), _ONLY_READ),
    "check.crcs": "damaged records are never sent; leave it out",
    "allow.auto.create.topics": "a topic that is read must be there; leave it out",
    **dict.fromkeys(
        ("isolation.level", "auto.offset.reset", "enable.partition.eof", "offset.store.method"), _ITS_OWN_WAY
    ),
    **dict.fromkeys(("enable.auto.commit", "auto.commit.enable", "enable.auto.offset.store"), _ITS_OWN_WAY),
    **dict.fromkeys(("group.id", "group.instance.id", "group.protocol", "share.acknowledgement.mode"), _ITS_OWN_WAY),
    "default.topic.config": "write its settings into source.properties",
    "topic.blacklist": "it could hide the topic that is read; leave it out",
    "test.mock.num.brokers": "a mock is no Kafka; leave it out",
}


def refused_source_properties(properties: Mapping[str, str]) -> Refusals:
    """Yield the consumer properties, of a source that is a topic, with which records could be skipped or read twice."""
    for name in properties:
        key = name.lower()
        if key in _REFUSED_OF_A_SOURCE:
            yield name, f"not allowed: {_REFUSED_OF_A_SOURCE[key]}"
        elif key.endswith("_cb") or key in _OF_CODE:
            yield name, "not allowed: it cannot be written in a file; leave it out"
        elif (key in _REFUSED_PROPERTIES and _JAVA_STORE in _REFUSED_PROPERTIES[key]) or key == "sasl.jaas.config":
            yield name, f"not allowed: {_REFUSED_PROPERTIES[key]}"


def _whole(value: str, otherwise: int) -> int:
    return int(value) if _WHOLE.fullmatch(value.strip()) else otherwise


# Spark settings that only the protocol may set: an entry that ends with `.` or `*` means all keys with that prefix.
_OWNED = {
    "spark.speculation*": "two attempts of one task would fence each other",
    "spark.sql.adaptive.*": "it would move rows between tasks",
    "spark.sql.files.*": "the cuts inside a file must stay the same; set source.split_size",
    "spark.sql.session.timeZone": "it is always UTC, so that the same rows give the same bytes everywhere",
    "spark.sql.ansi.enabled": "it is always true: a bad cast is an error, not a null",
    "spark.task.maxFailures": "tasks need retries; the master is always started with them",
    "spark.stage.maxConsecutiveAttempts": "tasks need retries",
    "spark.master": "set spark.master in the spec's own table: [spark] master = …",
    "spark.app.name": "it is the job's name",
    "spark.remote": "Spark Connect is not supported; set [spark] master = …",
    "spark.sql.sources.useV1SourceList": "the splits are read back from the plans of these readers",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "the files are listed once, by eosingest",
    "spark.sql.csv.*": "eosingest reads CSV, and not Spark: see source.options",
    "spark.sql.parquet.*": "eosingest reads Parquet, and not Spark: see source.options and source.schema",
    "spark.hadoop.parquet.*": "eosingest reads Parquet, and not Spark: see source.options and source.schema",
    "spark.sql.orc.*": "eosingest reads ORC, and not Spark: see source.options and source.schema",
    "spark.hadoop.orc.*": "eosingest reads ORC, and not Spark: see source.options and source.schema",
    "spark.sql.avro.datetimeRebaseModeInRead": "eosingest reads Avro, and not Spark: see source.options",
    **dict.fromkeys(
        ("spark.sql.legacy.parquet.datetimeRebaseModeInRead", "spark.sql.legacy.parquet.int96RebaseModeInRead"),
        "eosingest reads Parquet, and not Spark: see source.options",
    ),
    "spark.sql.legacy.avro.*": "eosingest reads Avro, and not Spark: see source.options",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "the columns of k=v folders are strings: see source.schema",
    "spark.sql.avro.filterPushdown.*": "eosingest reads Avro, and not Spark; leave it out",
    "spark.hadoop.avro.mapred.*": "eosingest reads Avro, and not Spark; leave it out",
    "spark.sql.columnNameOfCorruptRecord": "corrupt rows always end the run with file, split and row named",
    "spark.sql.jsonGenerator.ignoreNullFields": "null fields are always kept",
    "spark.sql.variable.substitute": "it would put this machine's environment into expressions",
    "spark.hadoop.mapreduce.input.linerecordreader.line.maxlength": "longer lines would be dropped",
    "spark.ui.showConsoleProgress": "eosingest shows its own progress",
}
PROTECTED_SPARK_CONF: frozenset[str] = frozenset(_OWNED)


_JAVA_OPTIONS = re.compile(r"spark\.(driver|executor)\.(extra|default)JavaOptions", re.IGNORECASE)
_OF_THE_MACHINE = re.compile(r"-D(user\.(language|country|region|variant|script|extensions)|file\.encoding)\b")


def protects(key: str) -> str | None:
    """Return why the user may not set a Spark setting, or None. Case is ignored."""
    lower = key.lower()
    for pattern, reason in _OWNED.items():
        stem = pattern.lower().removesuffix("*")
        if lower == stem or (pattern.endswith("*") and lower.startswith(stem)):
            return reason
    return None


def refused_conf(conf: Mapping[str, str]) -> Refusals:
    """Yield the Spark settings that only the protocol may set, and keys that are not Spark settings."""
    for key in conf:
        reason = protects(key)
        if reason is not None:
            yield key, f"not allowed: {reason}"
        elif key.lower() == "spark.submit.deploymode" and conf[key].strip().lower() != "client":
            yield (
                key,
                "not allowed: this process is the driver, and no setting can send it elsewhere; leave it out. For a driver in"
                " the cluster: spark-submit --deploy-mode cluster $(eosingest submit-script) run … (docs/clusters.md)",
            )
        elif _JAVA_OPTIONS.fullmatch(key) and _OF_THE_MACHINE.search(conf[key]):
            yield (
                key,
                "not allowed: the JVM's language and encoding are always the same, or the same rows gave other bytes",
            )
        elif not key.startswith("spark."):
            yield key, 'not a Spark setting; its keys begin with "spark.", Hadoop\'s with "spark.hadoop."'
