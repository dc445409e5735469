"""Subjects of the conformance suite whose keys and values are encoded by the schemas of a real registry: a mixin.

The records are read back by Confluent's own deserializers, which take the schema from the registry, by the id in each record.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.support.registry import SchemaRegistry

if TYPE_CHECKING:
    from tests.support.sources.kinds import FileSubject as Base
else:
    Base = object

# One key for all rows: the suite looks at the order of a partition.
_KEY = "struct('conformance' AS job)"


class ByRegistry(Base):
    """Such a subject (a mixin before the class of another): `registry` is set before it is created.

    `fields` are those of a record beside text and length, in Spark SQL, with `{0}` for the text; `made_of` makes them anew.
    """

    needs_spark = True
    registry: SchemaRegistry
    unfit = b""  # a row whose required field `length` is null
    why_unfit: str
    schemas: Mapping[str, Any]
    fields: str

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._subject = f"conformance-{uuid.uuid4().hex[:12]}"
        for part, schema in self.schemas.items():
            (folder / f"{part}.schema").write_text(json.dumps(schema))

    def spec(self) -> str:
        source, _, _ = super().spec().partition("[record]")
        text = self.value
        length = f"IF({text} = '{self.unfit.decode()}', NULL, octet_length({text})) AS length"
        structs = {"key": _KEY, "value": f"struct({text} AS text, {length}, {self.fields.format(text)})"}
        return source + "".join(self._table(part, structs[part]) for part in self.schemas)

    def _table(self, part: str, struct: str) -> str:
        return (
            f'[record.{part}.{self.encoded(struct)}\nsubject = "{self._subject}-{part}"\nschema = "{part}.schema"\n'
            f'registry = {{ url = "{self.registry.url}" }}\n'
        )

    def encoded(self, struct: str) -> str:
        """Return the name of the encoding's table, and the line that says what is encoded."""
        raise NotImplementedError

    def made_of(self, text: str) -> dict[str, Any]:
        """Return the fields that a record has beside its text and its length."""
        raise NotImplementedError

    def deserializer(self, client: SchemaRegistryClient) -> Callable[..., Any]:
        """Make Confluent's."""
        raise NotImplementedError

    def row(self, key: bytes | None, value: bytes | None) -> bytes:
        """Return the row's text; the other fields have to be those of the text."""
        found = self._decoded(value, MessageField.VALUE)
        text = str(found["text"])
        assert found == {"text": text, "length": len(text.encode()), **self.made_of(text)}
        assert self._decoded(key, MessageField.KEY) == {"job": "conformance"}
        return text.encode()

    def _decoded(self, data: bytes | None, field: MessageField) -> Any:
        return self._deserializer(data, SerializationContext(self._subject, field))

    @cached_property
    def _deserializer(self) -> Callable[..., Any]:
        return self.deserializer(SchemaRegistryClient({"url": self.registry.url}))
