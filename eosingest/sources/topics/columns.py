"""Defines the columns of a topic's record, with their Spark SQL types: for the spec, the reader and Spark."""

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
