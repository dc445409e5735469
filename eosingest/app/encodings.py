"""Resolves a spec's encodings to schemas for keys and values. Only the driver queries the schema registry.

    spec, pins ─▶ resolved ─▶ Encoding of key and value ─▶ Spark's expression, new pins

While pins are in force, the pinned ids are used even if the subject has a newer schema. `preview` and an audit look schemas up
and register none; `check` only reads the schemas that are files. Schemas are compared in the form that the registry returns,
which may differ from the registered file.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from eosingest.errors import ChangedError, FatalError, SpecError
from eosingest.records.encoding import AVRO, JSON, Encoding, Pin, digest_of, expanded, pins
from eosingest.records.json_schema import JsonSchemaCheck
from eosingest.spec import Spec, resolve_properties
from eosingest.spec.encodings import BySchema, Encoded

if TYPE_CHECKING:
    from eosingest.kafka.schema_registry import Registered, Registry

_EXTRAS = {AVRO: ("avro", "fastavro"), JSON: ("json-schema", "jsonschema_rs")}
NOT_REGISTERED = 0


def resolved(spec: Spec, pinned: str, *, unknown: Literal["register", "refuse", "show"]) -> dict[str, Encoding]:
    """Return the encodings of `key` and `value`, if they have any, by the pinned ids; look up schemas without a pin.

    A schema that the subject does not have yet (`unknown`) is registered, or refused by a FatalError, or shown with the id 0,
    which no registry assigns. Raises ChangedError if the registry has another schema, or none, under a pinned id, and the
    errors of schema_registry.py.
    """
    known = pins(pinned)
    found = {}
    for name, part in encoded_parts(spec):
        registry = _registry(spec, name, part)
        given = part.text(spec.directory)
        if name in known:
            registered = _pinned(registry, known[name], part.kind)
        elif given is None:
            registered = registry.latest(part.subject, part.kind)
        elif unknown == "register":
            registered = registry.register(part.subject, given, part.kind)
        else:
            registered = _looked_up(registry, part, given, is_shown=unknown == "show")
        _check_schema(part.kind, registered.schema, f"schema {registered.id} of subject {registered.subject}")
        found[name] = Encoding(registered.subject, registered.id, registered.schema, part.expression, part.kind)
    return found


def check(spec: Spec) -> None:
    """Check the schemas that are files, and the settings of registries; query none. Raises SpecError."""
    for name, part in encoded_parts(spec):
        _registry(spec, name, part)
        schema = part.text(spec.directory)
        if schema is not None:
            _check_schema(part.kind, schema, f"record.{name}.{part.key}.schema: {part.schema_}")


def _check_schema(kind: str, schema: str, named: str) -> None:
    if kind == AVRO:
        expanded(schema, named)
    else:
        JsonSchemaCheck(schema, named)


def encoded_parts(spec: Spec) -> Iterator[tuple[str, BySchema]]:
    """Yield `key` and `value` of a spec, those that are encoded by a schema."""
    for name, part in (("key", spec.record.key), ("value", spec.record.value)):
        if isinstance(part, Encoded):
            yield name, part.by


def _registry(spec: Spec, name: str, part: BySchema) -> Registry:
    _need_extra(name, part)
    from eosingest.kafka.schema_registry import Registry, client_properties

    key = f"record.{name}.{part.key}.registry"
    given = {known: value for known, value in part.registry.model_dump().items() if value is not None}
    if part.registry.ca_location is not None:
        given["ca_location"] = str(spec.directory / part.registry.ca_location)
    return Registry(client_properties(resolve_properties(spec, given, key)), key)


def _need_extra(name: str, part: BySchema) -> None:
    extra, library = _EXTRAS[part.kind]
    try:
        importlib.import_module("confluent_kafka.schema_registry")
        importlib.import_module(library)
    except ImportError as error:
        raise SpecError(
            f"record.{name}.{part.key} needs the Python package {error.name}",
            code="missing-extra",
            hint=f"nothing was sent; install it: pip install 'eosingest[{extra}]'",
        ) from error


def _pinned(registry: Registry, pin: Pin, kind: str) -> Registered:
    registered = registry.by_id(pin.subject, pin.id, kind)
    if registered is not None and digest_of(registered.schema) == pin.digest:
        return registered
    what = "is not there any more" if registered is None else "is another one now"
    raise ChangedError(
        f"schema {pin.id}, by which the job's records are written (subject {pin.subject}), {what} in the registry",
        code="schema-changed",
        hint="nothing was sent; restore the registry, or send everything again, in addition to the records in the topic,"
        " with: eosingest run SPEC --from-scratch",
    )


def _looked_up(registry: Registry, part: BySchema, given: str, *, is_shown: bool) -> Registered:
    from eosingest.kafka.schema_registry import Registered

    registered = registry.find(part.subject, given, part.kind)
    if registered is None and is_shown:
        return Registered(part.subject, NOT_REGISTERED, given)
    if registered is None:
        raise FatalError(
            f"subject {part.subject} does not have the schema yet, so its id is not known",
            code="schema-missing",
            hint="the first run registers it; nothing was sent",
        )
    return registered
