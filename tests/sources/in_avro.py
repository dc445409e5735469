"""Subjects of the conformance suite whose keys and values are Avro, by the schemas of a real registry: a mixin.

The records are read back by Confluent's own deserializer, which takes the schema from the registry, by the id in each record.
"""

from __future__ import annotations

import json
import uuid
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.support.registry import SchemaRegistry

if TYPE_CHECKING:
    from tests.sources.kinds import FileSubject as Base
else:
    Base = object

_SCHEMAS: dict[str, Any] = {
    "key": {"type": "record", "name": "Key", "fields": [{"name": "job", "type": "string"}]},
    "value": {
        "type": "record",
        "name": "Row",
        "fields": [  # in another order than the columns
            {"name": "length", "type": "long"},
            {"name": "text", "type": "string"},
            {"name": "odd", "type": ["null", "string"], "default": None},
            {"name": "parts", "type": {"type": "array", "items": "string"}},
            {"name": "cents", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        ],
    },
}
# One key for all rows: the suite looks at the order of a partition.
_KEY = "struct('conformance' AS job)"
_VALUE = (
    "struct({0} AS text, IF({0} = '{1}', NULL, octet_length({0})) AS length,"
    " IF(octet_length({0}) % 2 = 1, {0}, NULL) AS odd, split({0}, '-') AS parts,"
    " CAST(octet_length({0}) / 100 AS DECIMAL(7,2)) AS cents)"
)


class InAvro(Base):
    """Such a subject (a mixin before the class of another): `registry` is set before it is created."""

    needs_spark = True
    registry: SchemaRegistry
    unfit = b""  # a row whose required field `length` is null

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._subject = f"conformance-{uuid.uuid4().hex[:12]}"
        for part, schema in _SCHEMAS.items():
            (folder / f"{part}.avsc").write_text(json.dumps(schema))

    def spec(self) -> str:
        source, _, _ = super().spec().partition("[record]")
        columns = {"key": _KEY, "value": _VALUE.format(self.value, self.unfit.decode())}
        return source + "".join(self._table(part, columns[part]) for part in _SCHEMAS)

    def _table(self, part: str, columns: str) -> str:
        return (
            f'[record.{part}.avro]\nsubject = "{self._subject}-{part}"\nschema = "{part}.avsc"\ncolumns = "{columns}"\n'
            f'registry = {{ url = "{self.registry.url}" }}\n'
        )

    def row(self, key: bytes | None, value: bytes | None) -> bytes:
        """Return the row's text; the other fields have to be those of the text."""
        found = self._decoded(value, MessageField.VALUE)
        assert found == _made_of(found["text"])
        assert self._decoded(key, MessageField.KEY) == {"job": "conformance"}
        return str(found["text"]).encode()

    def _decoded(self, data: bytes | None, field: MessageField) -> Any:
        return self._deserializer(data, SerializationContext(self._subject, field))

    @cached_property
    def _deserializer(self) -> AvroDeserializer:
        return AvroDeserializer(SchemaRegistryClient({"url": self.registry.url}))


def _made_of(text: str) -> dict[str, Any]:
    length = len(text.encode())
    return {
        "length": length,
        "text": text,
        "odd": text if length % 2 else None,
        "parts": text.split("-"),
        "cents": Decimal(length) / 100,
    }
