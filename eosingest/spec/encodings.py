"""Defines `avro` and `json_schema` of `record.value` and `record.key`: encodings by a registry's schema (docs/records.md).

Used by model.py. app/encodings.py queries the registry.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from eosingest.errors import SpecError
from eosingest.records.encoding import AVRO, JSON
from eosingest.spec.tables import Table
from eosingest.spec.values import ROW_AS_JSON, TAGS, Expression, Text

LATEST = "latest"
# Their places in a spec.
PLACES = tuple(("record", part, name) for part in ("key", "value") for name in ("avro", "json_schema"))


def _check_url(value: str) -> str:
    for one in value.split(","):
        if not one.strip().startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://; several are separated by commas")
        if "@" in one.split("://", 1)[1].split("/", 1)[0]:
            raise ValueError('must have no login in it: give user, and password = "${env:…}"')
    return value


class Registry(Table):
    """A schema registry that speaks Confluent's API."""

    url: Annotated[Text, AfterValidator(_check_url)] = Field(
        description="Where it is: https://registry:8081; several, separated by commas, are tried one after another."
    )
    user: str | None = Field(default=None, description="The user's name, if the registry requires one.")
    password: str | None = Field(
        default=None,
        description="The user's password, as a reference: ${env:…} or ${file:…}. Resolved when it is used, never shown.",
    )
    ca_location: str | None = Field(
        default=None, description="The certificate of the authority that signed the registry's, as a PEM file."
    )


class BySchema(Table):
    """The keys that all encodings have. `key` is the name in the spec, `kind` the registry's name for such schemas."""

    key: ClassVar[str]
    kind: ClassVar[str]

    subject: Text = Field(description="The subject in the registry, by custom TOPIC-value or TOPIC-key.")
    schema_: Text = Field(
        alias="schema",
        description='A file with the schema, which the first run registers; or "latest", the newest of the subject.',
    )
    registry: Registry = Field(description="The registry.")

    @property
    def expression(self) -> str:
        """The expression to encode, in Spark SQL."""
        raise NotImplementedError

    def text(self, folder: Path) -> str | None:
        """Return the schema in the file, None for the subject's latest. Raises SpecError if it is unreadable or not JSON."""
        if self.schema_ == LATEST:
            return None
        file = folder / self.schema_
        try:
            return json.dumps(json.loads(file.read_text("utf-8")), ensure_ascii=False)
        except OSError as error:
            why = (error.strerror or "it cannot be read").lower()
        except UnicodeDecodeError:
            why = "it is not UTF-8 text"
        except ValueError as error:
            why = f"it is not JSON: {error}"
        raise SpecError(
            f"{self.key}.schema: {file}: {why}",
            code="bad-schema",
            hint=f'nothing was sent; name the file, relative to the spec\'s folder, or write "{LATEST}"',
        )


class Avro(BySchema):
    """Records in Avro, framed as Confluent's clients read them: a zero, the schema's id in four bytes, the datum."""

    key: ClassVar[str] = "avro"
    kind: ClassVar[str] = AVRO

    columns: Expression = Field(
        default="struct(*)", description="Spark SQL: a struct whose fields are those of the schema, by their names."
    )

    @property
    def expression(self) -> str:
        """The struct."""
        return self.columns


class JsonSchema(BySchema):
    """Records in JSON, each validated against a schema, framed as those in Avro."""

    key: ClassVar[str] = "json_schema"
    kind: ClassVar[str] = JSON

    json_: Expression = Field(
        alias="json",
        default=ROW_AS_JSON,
        description="Spark SQL: the JSON text. By default the row, with times to the microsecond.",
    )

    @property
    def expression(self) -> str:
        """The text."""
        return self.json_


class Encoded(Table):
    """How the bytes of a key or a value are made: by one of these."""

    avro: Avro | None = Field(default=None, description="In Avro.")
    json_schema: JsonSchema | None = Field(
        default=None, description="In JSON, each record checked against a JSON Schema."
    )

    @model_validator(mode="after")
    def _one(self) -> Encoded:
        if (self.avro is None) == (self.json_schema is None):
            raise ValueError("must have one table in it: avro or json_schema")
        return self

    @property
    def by(self) -> BySchema:
        """The given encoding."""
        given = self.avro or self.json_schema
        assert given is not None, "the validator sees to it"
        return given


ExpressionOrEncoded = Annotated[
    Annotated[Encoded, Tag(TAGS[0])] | Annotated[Expression, Tag(TAGS[1])],
    Discriminator(lambda value: TAGS[isinstance(value, str)]),
]
