"""Generates the specs that `eosingest init` writes: short, valid, and explained by comments."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

_COPY = "-copy"
_TOPIC_AT_MOST = 249  # Kafka's limit on the length of a name
_CREATE = "create = { partitions = 3 }         # only when the topic does not exist"
_VALUE_IS_ROW = "# The value is the whole row as JSON, unless `value` has another expression."
_DEFAULT_MESSAGE_BYTES = 1_048_588  # a topic's max.message.bytes by default

TEMPLATE = """\
#:schema eosingest.schema.json
# A job for eosingest: read these files, send each row to this topic, exactly once.
#
#   eosingest check FILE     look for mistakes in this file, offline
#   eosingest preview FILE   show the first records as they would be sent
#   eosingest plan FILE      show what would be sent: files, splits, bytes
#   eosingest run FILE       send it; run it again to send only new data
#
# For data of yours: eosingest init --from FILE, kafka://host:9092/topic or postgresql://user@host/database/table.
# Any string may hold ${param:x} (given as --param x=…), ${env:X} or ${file:path}; "$${" is a plain "${".

name = "my-job"                     # the job's progress is kept under this name
# if_running = "fence"              # an earlier run is still alive here: fence it off | fail | skip
# on_error = { topic = "my-topic-dead", max = 100, create = { partitions = 1 } }   # for rows that cannot be sent

[source]
format = "json"                     # json (one record a line) | csv | text | xml | parquet | orc | avro | binaryFile
path = "data/*.jsonl"               # file, folder or glob, or a list; relative to this file
# schema = "id BIGINT, user STRING, ts TIMESTAMP"   # xml needs it; of json and csv it is inferred otherwise
# options = { timestampFormat = "yyyy-MM-dd" }      # by the names of Spark's reader; csv: { header = true }
# recursive = true                  # of a folder, all files in all folders below it
# allow_empty = true                # no file there: exit 0 instead of 2
# min_age = "60s"                   # leave files alone that may still be being written
# on_change = "error"               # a file changed since it was sent: error | reingest

# [transform]
# where = "amount > 0"
# select = ["id", "user", "ts"]

# [record]                          # Spark SQL expressions over the row
# key = "user"                      # string or binary; a number: "CAST(id AS STRING)"
# value = "to_json(struct(id, user))"   # by default the whole row as JSON, with times to the microsecond
# headers = { source = "'my-job'" }
# timestamp = "ts"
# partition = "CAST(id % 3 AS INT)" # without it by the key, as Java's producer does it

[sink]
bootstrap_servers = "embedded"      # a real Apache Kafka on this machine; or "host:9092,host:9092"
topic = "my-topic"
create = { partitions = 3 }         # only when the topic does not exist

# [sink.properties]                 # by librdkafka's names
# security.protocol = "SASL_SSL"
# sasl.mechanism = "SCRAM-SHA-512"
# sasl.username = "me"
# sasl.password = "${env:KAFKA_PASSWORD}"

# [transaction]
# timeout = "60s"
# boundary = "job"                  # a small load: all that a run has to send in one transaction, or nothing

# [spark]
# master = "local[*]"
# conf = { "spark.driver.memory" = "4g" }
"""


def toml_string(text: str) -> str:
    """Return a text as a basic string of TOML: its escapes are those of JSON, and DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def spec_for(
    *,
    data: str,
    name: str,
    path: str,
    format_: str,
    options: Mapping[str, str | bool],
    compression: str | None = None,
    schema: str | None,
    key: str | None,
    conf: Mapping[str, str],
    unknown_fields: str | None,
    notes: Sequence[str],
) -> str:
    """Return the text of a spec for a data file, from the result of `sniff`. `data` is the file's name, `key` an expression."""
    lines = [
        *_head(data, name, notes),
        "[source]",
        f"format = {toml_string(format_)}",
        f"path = {_escaped(path)}",
    ]
    if compression is not None:
        lines.append(f"compression = {toml_string(compression)}")
    if options:
        lines.append(f"options = {_inline(options)}")
    if schema is not None:
        own = format_ in ("parquet", "orc")  # the files have their schema
        lines.append(f"{'# the schema of the files: ' if own else 'schema = '}{_escaped(schema)}")
    if unknown_fields is not None:
        lines.append(
            f"unknown_fields = {toml_string(unknown_fields):<19} # fields that the schema does not name: error | ignore"
        )
    lines += ["", "[record]"]
    lines.append(
        f"key = {toml_string(key)}"
        if key
        else '# key = "…"                 # a column that says which records belong together'
    )
    value = '# value = "value"                   # the default: the line' if format_ == "text" else _VALUE_IS_ROW
    lines += [value, "", *_sink(name), _CREATE]
    if conf:
        lines += ["", "[spark]", f"conf = {_inline(conf)}"]
    return "\n".join(lines) + "\n"


def spec_for_topic(
    *,
    address: str,
    topic: str,
    servers: str | None,
    partitions: int,
    max_message_bytes: int | None,
    id_field: str | None,
    notes: Sequence[str],
) -> str:
    """Return the text of a spec that copies a topic. `servers` None: the topic is on the embedded broker.

    The copy has unlimited retention: brokers delete records that are older than the retention, and a run refuses them.
    """
    copy = f"{topic[: _TOPIC_AT_MOST - len(_COPY)]}{_COPY}"
    config = {"retention.ms": "-1"}
    if max_message_bytes is not None and max_message_bytes != _DEFAULT_MESSAGE_BYTES:
        config["max.message.bytes"] = str(max_message_bytes)
    lines = [
        *_head(address, job_name(copy), notes),
        "[source]",
        'format = "kafka"',
        f"topic = {toml_string(topic)}",
    ]
    if servers is not None:
        lines.append(f"bootstrap_servers = {toml_string(servers)}")
        lines.append('# properties = { "security.protocol" = "SASL_SSL", "sasl.password" = "${env:KAFKA_PASSWORD}" }')
    lines += [
        '# from = "2026-11-01T00:00:00Z"      # by default all records; the next run resumes after them',
        "",
        "# [transform]",
        f"# where = {toml_string(_where(id_field))}",
        "",
        "[record]                            # each record as it is: key, value, headers and timestamp",
        f"# key = {toml_string(_field(id_field))}" if id_field else '# key = "key"',
        "",
        *_sink(copy),
        "# As many partitions as the source has: so records without a key keep theirs, and their order.",
        f"create = {{ partitions = {partitions}, config = {_inline(config)} }}",
    ]
    return "\n".join(lines) + "\n"


def spec_for_table(
    *,
    address: str,
    url: str,
    password: str,
    has_password: bool,
    table: str,
    key: Sequence[str],
    record_key: str,
    incremental: bool,
    notes: Sequence[str],
) -> str:
    """Return the text of a spec that reads a table. `password` is a reference; without `has_password` none was needed so far.

    `record_key` is an expression; `incremental` says whether a job may resume after the table's last key.
    """
    name = job_name(table.removeprefix("public."))
    given = "" if has_password else "# "
    lines = [
        *_head(address, name, notes),
        "[source]",
        'format = "postgres"',
        f"url = {_escaped(url)}",
        f"{given}password = {toml_string(password)}",
        f"table = {_escaped(table)}",
        f"key = {_escaped(key[0]) if len(key) == 1 else '[' + ', '.join(map(_escaped, key)) + ']'}",
    ]
    if incremental:
        lines.append("# incremental = true                # a run of a complete job sends the rows that came since")
    lines += [
        "",
        "[record]",
        f"key = {_escaped(record_key)}",
        _VALUE_IS_ROW,
        "",
        *_sink(name),
        _CREATE,
    ]
    return "\n".join(lines) + "\n"


def job_name(text: str) -> str:
    """Return a job's name, derived from another name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:100] or "my-job"


def _head(source: str, name: str, notes: Sequence[str]) -> list[str]:
    return [
        "#:schema eosingest.schema.json",
        f"# Written by: eosingest init --from {' '.join(source.split())}",
        *(f"# Note: {' '.join(note.split())}" for note in notes),
        "",
        f"name = {toml_string(name)}",
        "",
    ]


def _sink(topic: str) -> list[str]:
    return [
        "[sink]",
        'bootstrap_servers = "embedded"      # a real Apache Kafka on this machine; or "host:9092,host:9092"',
        f"topic = {toml_string(topic)}",
    ]


def _escaped(text: str) -> str:
    """Return a text as a string of TOML, with `${` escaped."""
    return toml_string(text.replace("${", "$${"))


def _field(name: str) -> str:
    return f"get_json_object(CAST(value AS STRING), '$.{name}')"


def _where(id_field: str | None) -> str:
    return f"{_field(id_field)} IS NOT NULL" if id_field else "key IS NOT NULL"


def _inline(table: Mapping[str, str | bool]) -> str:
    texts = {key: str(value).lower() if isinstance(value, bool) else toml_string(value) for key, value in table.items()}
    pairs = (f"{key if key.isalnum() else toml_string(key)} = {text}" for key, text in texts.items())
    return f"{{ {', '.join(pairs)} }}"
