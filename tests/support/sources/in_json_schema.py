"""Subjects of the conformance suite whose keys and values are JSON by a schema: a mixin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer

from tests.support.sources.by_registry import ByRegistry

_DRAFT = "http://json-schema.org/draft-07/schema#"


class InJsonSchema(ByRegistry):
    """Such a subject (a mixin before the class of another)."""

    why_unfit = 'length: the value is not of type "integer"'
    schemas: Mapping[str, Any] = MappingProxyType(
        {
            "key": {
                "$schema": _DRAFT,
                "title": "Key",
                "type": "object",
                "properties": {"job": {"const": "conformance"}},
                "required": ["job"],
            },
            "value": {
                "$schema": _DRAFT,
                "title": "Row",
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "length": {"type": "integer", "minimum": 0},
                    "odd": {"type": ["string", "null"]},
                    "parts": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                },
                "required": ["text", "length", "odd", "parts"],
                "additionalProperties": False,
            },
        }
    )
    fields = "IF(octet_length({0}) % 2 = 1, {0}, NULL) AS odd, split({0}, '-') AS parts"

    def encoded(self, struct: str) -> str:
        return f'json_schema]\njson = "to_json({struct})"'

    def made_of(self, text: str) -> dict[str, Any]:
        return {"odd": text if len(text.encode()) % 2 else None, "parts": text.split("-")}

    def deserializer(self, client: SchemaRegistryClient) -> Callable[..., Any]:
        return JSONDeserializer(None, schema_registry_client=client)
