"""Defines the spec's expressions for records, and the names of the columns that a row has in Spark."""

from __future__ import annotations

from dataclasses import dataclass

from eosingest.records.encoding import AVRO, JSON, Encoding
from eosingest.spec.expressions import tokens

SPLIT = "__eosingest_split"
POSITION = "__eosingest_position"
CORRUPT = "__eosingest_corrupt"
UNFIT = "__eosingest_unfit"  # why a row does not fit the schema that encodes it
CHECKSUM = "__eosingest_checksum"
METADATA = "__eosingest_metadata"
ITEM_COLUMN = "_metadata"  # of a row's item: as in Spark, `*` has no such column
TIMESTAMP = "__eosingest_timestamp"
PARTITION = "__eosingest_partition"
HEADER = "__eosingest_header_"  # followed by the header's index in the spec
HEADERS = "__eosingest_headers"  # all headers of a record in one column
HEADERS_TYPE = "ARRAY<STRUCT<key: STRING, value: BINARY>>"


@dataclass(frozen=True, kw_only=True)
class RecordSettings:
    """The spec's expressions: Spark SQL, over the columns of the source. `header_column` is for all headers of a record.

    `key` and `value` are expressions for bytes, or encodings by a schema.
    """

    where: str | None
    select: tuple[str, ...]
    key: str | Encoding | None
    value: str | Encoding
    headers: dict[str, str]
    timestamp: str | None
    partition: str | None = None
    header_column: str | None = None

    @property
    def encodings(self) -> dict[str, Encoding]:
        """The encodings of `key` and `value`, as far as they have one."""
        return {name: one for name, one in (("key", self.key), ("value", self.value)) if isinstance(one, Encoding)}

    @property
    def names_item_column(self) -> bool:
        """Say whether an expression names the column ITEM_COLUMN: not a field of this name, nor a text."""
        encodings = [one.expression for one in self.encodings.values()]
        parts = (self.where, self.key, self.value, self.timestamp, self.partition, self.header_column)
        expressions = (*parts, *self.select, *self.headers.values(), *encodings)
        return any(_names_item_column(text) for text in expressions if isinstance(text, str))

    @property
    def is_avro(self) -> bool:
        """Say whether key or value are in Avro."""
        return any(encoding.kind == AVRO for encoding in self.encodings.values())

    @property
    def json_schemas(self) -> dict[str, str]:
        """The JSON Schemas of `key` and `value`, as far as they have one."""
        return {name: encoding.schema for name, encoding in self.encodings.items() if encoding.kind == JSON}


def _names_item_column(expression: str) -> bool:
    if ITEM_COLUMN not in expression.lower():
        return False
    found = tokens(expression)
    return any(
        token.name == ITEM_COLUMN and (index == 0 or found[index - 1].text != ".") for index, token in enumerate(found)
    )
