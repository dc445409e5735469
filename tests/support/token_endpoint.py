"""An OAuth 2 token endpoint of the tests' own: client credentials against a JWT (RS256), and the keys that verify it (JWKS)."""

from __future__ import annotations

import base64
import json
import re
import ssl
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from tests.support.certificates import openssl
from tests.support.server_thread import serve

CLIENT, SECRET = "loader", "client+secret/not-to-be-shown"
SCOPE, AUDIENCE, ISSUER = "kafka", "the-brokers", "the-tests"
_LASTS_S = 300


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class TokenEndpoint:
    """Two listeners, http and https (with the server's certificate), over one key. `asked` has the bodies of requests."""

    def __init__(self, folder: Path, certificates: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        openssl("genrsa", "-out", "jwt.key", "2048", folder=folder)
        modulus = openssl("rsa", "-in", "jwt.key", "-noout", "-modulus", folder=folder).decode()
        number = bytes.fromhex(re.sub(r"^Modulus=", "", modulus.strip()))
        key = {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "test", "n": _base64(number), "e": "AQAB"}
        self._keys = json.dumps({"keys": [key]}).encode()
        self.asked: list[dict[str, list[str]]] = []
        self.answer: tuple[int, bytes] | None = None  # in place of a token
        self.lasts_s = _LASTS_S
        self.audience = AUDIENCE
        self._plain, self._secured = self._listen(), self._listen()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
        self._secured.socket = context.wrap_socket(self._secured.socket, server_side=True)
        for server in (self._plain, self._secured):
            serve(server)
        self.url = f"http://127.0.0.1:{self._plain.server_port}/token"
        self.secured_url = f"https://127.0.0.1:{self._secured.server_port}/token"
        self.keys_url = f"http://127.0.0.1:{self._plain.server_port}/keys"

    def stop(self) -> None:
        """Close both listeners."""
        for server in (self._plain, self._secured):
            server.shutdown()
            server.server_close()

    def token(self, subject: str) -> str:
        """Return a signed token for a user."""
        now = int(time.time())
        claims = {
            "iss": ISSUER,
            "sub": subject,
            "aud": self.audience,
            "iat": now,
            "exp": now + self.lasts_s,
            "scope": SCOPE,
        }
        head = {"alg": "RS256", "typ": "JWT", "kid": "test"}
        signed = ".".join(_base64(json.dumps(part).encode()) for part in (head, claims))
        signature = openssl("dgst", "-sha256", "-sign", "jwt.key", folder=self.folder, data=signed.encode())
        return f"{signed}.{_base64(signature)}"

    def grant(self, authorization: str, form: dict[str, list[str]]) -> tuple[int, bytes]:
        """Answer a request for a token (RFC 6749, 4.4)."""
        self.asked.append(form)
        if self.answer is not None:
            return self.answer
        wanted = "Basic " + base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if authorization != wanted:
            return 401, json.dumps({"error": "invalid_client", "error_description": f"not {SECRET}"}).encode()
        if form.get("grant_type") != ["client_credentials"] or form.get("scope", [SCOPE]) != [SCOPE]:
            return 400, json.dumps({"error": "invalid_scope"}).encode()
        token = {"access_token": self.token(CLIENT), "token_type": "Bearer", "expires_in": self.lasts_s}
        return 200, json.dumps(token).encode()

    def _listen(self) -> ThreadingHTTPServer:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._send(200, endpoint._keys)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                self._send(*endpoint.grant(self.headers.get("Authorization", ""), parse_qs(body.decode())))

            def _send(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        return ThreadingHTTPServer(("127.0.0.1", 0), Handler)
