"""The columns of a record of a topic, with their Spark SQL types: the same for the spec, the reader and Spark."""

from __future__ import annotations

from typing import Final

OFFSET: Final = "offset"
COLUMNS: Final = {
    "key": "BINARY",
    "value": "BINARY",
    "headers": "ARRAY<STRUCT<key: STRING, value: BINARY>>",
    "topic": "STRING",
    "partition": "INT",
    OFFSET: "BIGINT",
    "timestamp": "TIMESTAMP",
}
