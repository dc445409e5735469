"""Registers and looks up schemas in a schema registry with Confluent's API. Only the driver calls it, never a task.

Schemas of keys and values are pinned as the registry returns them (docs/protocol.md).
Needs the extra `eosingest[avro]`.
"""

from __future__ import annotations

import contextlib
import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from eosingest.errors import EosingestError, FatalError, SpecError, TemporaryError

_TIMEOUT_S = 10.0
_RETRIES = 2  # after 1 s and 2 s
_SUBJECT_MISSING = (40401, 40402)  # there is no such subject, no such version
_NOT_TAKEN = (409, 422)  # not compatible with earlier versions; not a schema that the registry takes
_JAVA_CLASS = re.compile(r"\b(?:[a-z]\w*\.)+\w+(?:Exception|Error): ")
_LATER = (408, 425, 429)  # and all of 5xx


@dataclass(frozen=True)
class Registered:
    """A schema as the registry has it: its `id`, which is in every record, and its text."""

    subject: str
    id: int
    schema: str


class Registry:
    """A registry at one or several addresses. Every method may raise TemporaryError, FatalError or SpecError."""

    def __init__(self, address: Mapping[str, Any], key: str) -> None:
        """Send nothing yet. `address` has the client's properties, as `client_properties` makes them; `key` is the spec's.

        Raises SpecError where a certificate cannot be used.
        """
        from confluent_kafka.schema_registry import SchemaRegistryClient

        self._key = key
        self._url = str(address["url"])
        try:
            self._client = SchemaRegistryClient({**address, "timeout": _TIMEOUT_S, "max.retries": _RETRIES})
        except (OSError, ValueError) as error:
            # The client's OSError is about the certificate, and does not name it.
            authority = address.get("ssl.ca.location") if isinstance(error, OSError) else None
            place = f"{key}.ca_location: {authority}" if authority else key
            raise SpecError(f"{place}: {error}", code="bad-registry", hint="nothing was sent; correct it") from None

    def register(self, subject: str, schema: str, kind: str) -> Registered:
        """Register the schema in the subject, once: a registered one keeps its id. `kind`: AVRO or JSON."""
        with self._explained(f"the schema could not be registered in subject {subject}"):
            number = int(self._client.register_schema(subject, _schema(schema, kind)))
        return self._as_it_is_there(subject, number, kind)

    def find(self, subject: str, schema: str, kind: str) -> Registered | None:
        """Return the schema if the subject has it; write nothing."""
        try:
            with self._explained(f"subject {subject} could not be looked up"):
                number = int(self._client.lookup_schema(subject, _schema(schema, kind)).schema_id)
        except _MissingError:
            return None
        return self._as_it_is_there(subject, number, kind)

    def latest(self, subject: str, kind: str) -> Registered:
        """Return the newest schema of the subject. Raises SpecError where there is none, or it is of another kind."""
        with self._explained(f"the latest schema of subject {subject} could not be looked up"):
            found = self._client.get_latest_version(subject)
            return _of_kind(kind, subject, int(found.schema_id), found.schema)

    def by_id(self, subject: str, number: int, kind: str) -> Registered | None:
        """Return the schema that has this id, which was registered in the subject; None if there is none of the kind."""
        try:
            return self._as_it_is_there(subject, number, kind)
        except (_MissingError, _OtherKindError):
            return None

    def _as_it_is_there(self, subject: str, number: int, kind: str) -> Registered:
        with self._explained(f"schema {number} of subject {subject} could not be looked up"):
            return _of_kind(kind, subject, number, self._client.get_schema(number))

    @contextlib.contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Turn the client's errors into ours. None contains the user's name or password."""
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        try:
            yield
        except SchemaRegistryError as error:
            raise self._answered(what, error) from error
        except EosingestError:
            raise
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise TemporaryError(
                f"{what}: the answer of {self._url} is not a schema registry's",
                code="registry-unreachable",
                hint=f"nothing was sent; check {self._key}.url: a proxy may have answered; then run again",
            ) from error
        except Exception as error:  # of the HTTP library, which is the client's own choice
            if _of_a_certificate(error):
                raise FatalError(
                    f"{what}: the certificate of {self._url} is not trusted: {error}",
                    code="registry-refused",
                    hint=f"nothing was sent; let {self._key}.ca_location name the certificate of the authority that signed it",
                ) from error
            raise TemporaryError(
                f"{what}: {self._url} does not answer ({type(error).__name__}: {error})",
                code="registry-unreachable",
                hint=f"nothing was sent; check {self._key}.url, and that the registry is up; then run again",
            ) from error

    def _answered(self, what: str, error: Any) -> EosingestError:
        status, words = int(error.http_status_code), _JAVA_CLASS.sub("", str(error.error_message))
        said = f"{words} (HTTP {status})"
        if status in (401, 403):
            return FatalError(
                f"{what}: the registry refuses: {said}",
                code="registry-refused",
                hint=f"nothing was sent; check user and password of {self._key}, and their rights on the subject",
            )
        if error.error_code in _SUBJECT_MISSING or status == 404:
            return _MissingError(
                f"{what}: {said}",
                code="schema-missing",
                hint="nothing was sent; correct subject or url, or register a schema",
            )
        if status in _NOT_TAKEN:
            return SpecError(
                f"{what}: the registry does not accept the schema: {said}",
                code="schema-not-taken",
                hint="nothing was sent; make the schema compatible with the earlier versions, or take another subject",
            )
        if status in _LATER or status >= 500:
            return TemporaryError(
                f"{what}: {self._url} answers {said}", code="registry-unreachable", hint="nothing was sent; run again"
            )
        return FatalError(f"{what}: {self._url} answers {said}", code="registry-refused", hint="nothing was sent")


def _of_a_certificate(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


class _MissingError(SpecError):
    """The registry has no such subject or schema."""


class _OtherKindError(SpecError):
    """The registry's schema is of another kind."""


def client_properties(registry: Mapping[str, str]) -> dict[str, Any]:
    """Return the client's properties for the keys of a spec's `registry`, whose references are resolved."""
    names = {"url": "url", "ca_location": "ssl.ca.location"}
    properties: dict[str, Any] = {names[key]: value for key, value in registry.items() if key in names and value}
    if registry.get("user"):
        properties["basic.auth.user.info"] = f"{registry['user']}:{registry.get('password', '')}"
    return properties


def _of_kind(kind: str, subject: str, number: int, schema: Any) -> Registered:
    if schema.schema_type != kind:
        raise _OtherKindError(
            f"schema {number} of subject {subject} is of the type {schema.schema_type}, not {kind}",
            code="bad-schema",
            hint="nothing was sent; correct the subject",
        )
    return Registered(subject, number, str(schema.schema_str))


def _schema(text: str, kind: str) -> Any:
    from confluent_kafka.schema_registry import Schema

    return Schema(text, kind)
