"""The spec that `eosingest init` writes: short, valid, and explained where it stands."""

from __future__ import annotations

TEMPLATE = """\
#:schema eosingest.schema.json
# A job for eosingest: read these files, send each row to this topic, exactly once.
#
#   eosingest check FILE     look for mistakes in this file, offline
#   eosingest plan FILE      show what would be sent
#   eosingest run FILE       send it; run it again and only what is new is sent
#
# Any string may hold ${param:x} (given as --param x=…), ${env:X} or ${file:path}; "$${" is a plain "${".

name = "my-job"                     # the job's progress is kept under this name
# if_running = "fence"              # an earlier run is still alive here: fence it off | fail | skip

[source]
format = "json"                     # json (one record a line) | csv | text | parquet | orc
path = "data/*.jsonl"               # file, folder or glob, or a list; relative to this file
# schema = "id BIGINT, user STRING, ts TIMESTAMP"   # without it Spark looks through the data first
# options = { timestampFormat = "yyyy-MM-dd" }      # options of Spark's reader; csv: { header = true }
# min_age = "60s"                   # leave files alone that may still be being written
# on_change = "error"               # a file changed since it was sent: error | reingest

# [transform]
# where = "amount > 0"
# select = ["id", "user", "ts"]

# [record]                          # Spark SQL expressions over the row
# key = "user"                      # string or binary; a number: "CAST(id AS STRING)"
# value = "to_json(struct(*))"      # the default
# headers = { source = "'my-job'" }
# timestamp = "ts"
# partition = "CAST(id % 3 AS INT)" # the default: by the key, as Java's producer does it

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

# [spark]
# master = "local[*]"
# conf = { "spark.driver.memory" = "4g" }
"""
