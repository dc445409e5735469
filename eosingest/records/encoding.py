"""Defines how a key or a value is encoded, after its registry was queried: plain values, for Spark and for the pins."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from eosingest.errors import SpecError

AVRO, JSON = "AVRO", "JSON"  # as registries name them
PREFIX_BYTES = 5


@dataclass(frozen=True)
class Encoding:
    """An encoding in Avro or JSON by a registered schema, whose text is the registry's.

    `expression` is Spark SQL: the struct that is written in Avro, or the JSON text. `kind` is AVRO or JSON.
    """

    subject: str
    id: int
    schema: str
    expression: str
    kind: str = AVRO

    @property
    def prefix(self) -> bytes:
        """The prefix of each record's bytes: a zero, and the schema's id in four bytes (Confluent's wire format)."""
        return b"\x00" + self.id.to_bytes(4, "big")


def expanded(schema: str, named: str) -> object:
    """Return a schema with each named type expanded where it is used. Raises SpecError for a wrong or recursive schema."""
    from fastavro.schema import SchemaParseException, UnknownType, expand_schema

    try:
        return expand_schema(json.loads(schema))
    except (SchemaParseException, UnknownType, RecursionError, ValueError) as error:
        why = f"there is no type {error}" if isinstance(error, UnknownType) else str(error) or type(error).__name__
        raise SpecError(
            f"{named} cannot be written: {why}",
            code="bad-schema",
            hint="nothing was sent; correct the schema",
        ) from error


class Pin(NamedTuple):
    """The pinned part of an encoding. `digest` is its schema's: a registry that was set up again assigns the same ids again."""

    subject: str
    id: int
    digest: str


def digest_of(schema: str) -> str:
    """Return the digest of a schema's JSON, independent of white space and the order of keys."""
    plain = json.dumps(json.loads(schema), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()


def pinned(encodings: Mapping[str, Encoding]) -> str:
    """Return the pins of the encodings, by `key` and `value`, as text. "" if there are none."""
    if not encodings:
        return ""
    made = {name: Pin(one.subject, one.id, digest_of(one.schema))._asdict() for name, one in sorted(encodings.items())}
    return json.dumps(made, separators=(",", ":"))


def pins(text: str) -> dict[str, Pin]:
    """Return the pins, by `key` and `value`, from the text that `pinned` returned."""
    return {name: Pin(**one) for name, one in json.loads(text or "{}").items()}
