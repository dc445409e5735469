"""Subjects of the conformance suite whose keys and values are Avro: a mixin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer

from tests.support.sources.by_registry import ByRegistry


class InAvro(ByRegistry):
    """Such a subject (a mixin before the class of another)."""

    why_unfit = "length is null"
    schemas: Mapping[str, Any] = MappingProxyType(
        {
            "key": {"type": "record", "name": "Key", "fields": [{"name": "job", "type": "string"}]},
            "value": {
                "type": "record",
                "name": "Row",
                "fields": [  # in another order than the columns
                    {"name": "length", "type": "long"},
                    {"name": "text", "type": "string"},
                    {"name": "odd", "type": ["null", "string"], "default": None},
                    {"name": "parts", "type": {"type": "array", "items": "string"}},
                    {
                        "name": "cents",
                        "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
                    },
                ],
            },
        }
    )
    fields = (
        "IF(octet_length({0}) % 2 = 1, {0}, NULL) AS odd, split({0}, '-') AS parts,"
        " CAST(octet_length({0}) / 100 AS DECIMAL(7,2)) AS cents"
    )

    def encoded(self, struct: str) -> str:
        return f'avro]\ncolumns = "{struct}"'

    def made_of(self, text: str) -> dict[str, Any]:
        length = len(text.encode())
        return {"odd": text if length % 2 else None, "parts": text.split("-"), "cents": Decimal(length) / 100}

    def deserializer(self, client: SchemaRegistryClient) -> Callable[..., Any]:
        return AvroDeserializer(client)
