"""What the registry's answers are to a user: by a server that answers with any status, asked by the client that runs use."""

from __future__ import annotations

import contextlib
import json
import ssl
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from eosingest.errors import EosingestError, FatalError, SpecError, TemporaryError
from eosingest.kafka import schema_registry
from eosingest.kafka.schema_registry import Registered, Registry, client_properties
from eosingest.records.encoding import Encoding, Pin, digest_of, pinned, pins
from tests.support.certificates import Certificates
from tests.support.server_thread import serve

_SCHEMA = '{"type": "record", "name": "x", "fields": []}'


class _Answers(ThreadingHTTPServer):
    """Answers each question with `status` and `body`; keeps the last question's head."""

    status, body = 200, "{}"
    heard = ""


class _Handler(BaseHTTPRequestHandler):
    server: _Answers

    def do_GET(self) -> None:
        self.server.heard = self.headers.get("Authorization", "")
        data = self.server.body.encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_registry, "_RETRIES", 0)


@contextlib.contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[_Answers]:
    with _Answers(("127.0.0.1", 0), _Handler) as up:
        if context is not None:
            up.socket = context.wrap_socket(up.socket, server_side=True)
        thread = serve(up)
        yield up
        up.shutdown()
        thread.join(10)


@pytest.fixture
def server() -> Iterator[_Answers]:
    with serving() as up:
        yield up


def registry_at(server: _Answers, **more: str) -> Registry:
    url = f"http://127.0.0.1:{server.server_address[1]}"
    return Registry(client_properties({"url": url, **more}), "record.value.avro.registry")


@pytest.mark.parametrize(
    ("status", "number", "kind", "code"),
    [
        (401, 40101, FatalError, "registry-refused"),
        (403, 40301, FatalError, "registry-refused"),
        (404, 40401, SpecError, "schema-missing"),
        (404, 40402, SpecError, "schema-missing"),
        (404, 404, SpecError, "schema-missing"),
        (409, 409, SpecError, "schema-not-taken"),
        (422, 42201, SpecError, "schema-not-taken"),
        (429, 429, TemporaryError, "registry-unreachable"),
        (500, 50001, TemporaryError, "registry-unreachable"),
        (503, 503, TemporaryError, "registry-unreachable"),
        (400, 400, FatalError, "registry-refused"),
    ],
)
def test_each_status_has_its_exit_code(
    server: _Answers, status: int, number: int, kind: type[EosingestError], code: str
) -> None:
    server.status = status
    server.body = json.dumps({"error_code": number, "message": "com.example.SomeException: because"})
    registry = registry_at(server, user="ann", password="pw-1234")
    with pytest.raises(kind) as raised:
        registry.register("orders-value", _SCHEMA, "AVRO")
    told = f"{raised.value} {raised.value.hint}"
    assert raised.value.code == code
    assert "orders-value" in told and f"because (HTTP {status})" in told and "nothing was sent" in told
    assert "com.example" not in told and "pw-1234" not in told and server.heard.startswith("Basic ")


def test_a_schema_that_is_not_there_is_not_found(server: _Answers) -> None:
    server.status, server.body = 404, '{"error_code": 40403, "message": "Schema not found"}'
    assert registry_at(server).find("orders-value", _SCHEMA, "AVRO") is None


@pytest.mark.parametrize("body", ["<html>a proxy's page</html>", "", "[]", "null", '{"id": null}', "{}"])
def test_an_answer_that_is_none_is_told(server: _Answers, body: str) -> None:
    """A proxy's page with status 200, say. Breaks when the client's own error comes through."""
    server.body = body
    with pytest.raises(EosingestError) as raised:
        registry_at(server).register("orders-value", _SCHEMA, "AVRO")
    assert raised.value.code == "registry-unreachable", raised.value


def test_a_schema_is_what_the_registry_makes_of_it(server: _Answers) -> None:
    """Confluent's writes it in other words. Breaks when the file's are pinned: no later run would find those by the id."""
    words = '{"type":"record","name":"x","namespace":"shop","fields":[]}'
    server.body = json.dumps({"subject": "orders-value", "version": 1, "id": 7, "schema": words})
    registry, given = registry_at(server), '{"type": "record", "name": "shop.x", "fields": []}'
    registered = registry.register("orders-value", given, "AVRO")
    assert registered == Registered("orders-value", 7, words)
    assert registry_at(server).find("orders-value", given, "AVRO") == registered
    assert registry_at(server).by_id("orders-value", 7, "AVRO") == registered


def test_pins() -> None:
    first = Encoding("orders-value", 7, _SCHEMA, "struct(*)")
    spaced = replace(first, schema=json.dumps(json.loads(_SCHEMA), indent=2))
    assert pinned({"value": first}) == pinned({"value": spaced}) != pinned({"value": replace(first, schema='"int"')})
    assert pins(pinned({"value": first})) == {"value": Pin("orders-value", 7, digest_of(_SCHEMA))}
    assert pinned({}) == "" and pins("") == {}


def test_a_schema_of_another_kind(server: _Answers) -> None:
    schema = {"schemaType": "PROTOBUF", "schema": "syntax"}
    server.body = json.dumps({"subject": "orders-value", "version": 1, "id": 7, **schema})
    with pytest.raises(SpecError, match="is of the type PROTOBUF, not AVRO"):
        registry_at(server).latest("orders-value", "AVRO")
    server.body = json.dumps(schema)
    assert registry_at(server).by_id("orders-value", 7, "AVRO") is None


def test_a_registry_that_is_away() -> None:
    registry = Registry(client_properties({"url": "http://127.0.0.1:9"}), "record.value.avro.registry")
    with pytest.raises(TemporaryError, match=r"127\.0\.0\.1:9"):
        registry.latest("orders-value", "AVRO")


def test_certificates(tmp_path: Path) -> None:
    """Breaks when an authority that is not given is trusted, or one that is given is not."""
    made = Certificates(tmp_path / "certificates")
    made.make()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.path("server.pem"), made.path("server.key"))
    with serving(context) as server:
        server.body = json.dumps({"id": 7, "schema": _SCHEMA})
        url = f"https://127.0.0.1:{server.server_address[1]}"
        trusting = Registry(client_properties({"url": url, "ca_location": made.path("ca.pem")}), "avro.registry")
        assert trusting.register("orders-value", _SCHEMA, "AVRO").id == 7
        for others in ({}, {"ca_location": made.path("other-ca.pem")}):
            with pytest.raises(FatalError, match="is not trusted") as raised:
                Registry(client_properties({"url": url, **others}), "avro.registry").latest("orders-value", "AVRO")
            assert "avro.registry.ca_location" in raised.value.hint


def test_a_certificate_that_is_not_there() -> None:
    properties = client_properties({"url": "https://127.0.0.1:9", "ca_location": "/no/such/ca.pem"})
    with pytest.raises(SpecError) as raised:
        Registry(properties, "record.value.avro.registry")
    assert raised.value.code == "bad-registry"
