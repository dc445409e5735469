"""Gets OAUTHBEARER tokens for the control plane: the client-credentials grant with librdkafka's properties, as in librdkafka.

librdkafka gets its own tokens (`sasl.oauthbearer.method = oidc`); kafka-python takes a provider. The standard library sends
the request, over one connection, only to the endpoint: a redirect would carry the secret elsewhere. No error shows the
request, nor more of an answer than its RFC 6749 code.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote_plus, urlsplit

from kafka.net.sasl.oauth import AbstractTokenProvider

from eosingest.errors import FatalError, TemporaryError
from eosingest.kafka import tls
from eosingest.kafka.oidc import ENDPOINT, IDS, SCOPE, SECRETS, extensions

_TIMEOUT_S = 10.0
_ANSWER_BYTES = 1 << 20
_RENEWED_AT = 0.8  # of a token's lifetime, as in librdkafka
_SHORTEST_S = 60.0  # where an answer has no expires_in
_CODE = re.compile(r"[a-z_]{1,40}")
_MAY_PASS = frozenset({408, 425, 429})


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follow no redirect: it is an error then."""


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """Gives kafka-python a valid token (`sasl_oauth_token_provider`); requests a new one before it expires.

    `token` raises FatalError where the endpoint refuses or is not trusted, TemporaryError where it gives no answer.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        super().__init__()
        self._properties = dict(properties)
        self._lock = threading.Lock()
        self._token, self._until = "", 0.0

    def __repr__(self) -> str:
        return "TokenProvider(…)"

    def token(self) -> str:
        """Return the token."""
        with self._lock:
            if time.monotonic() >= self._until:
                self._token, lasts = self._fetch()
                self._until = time.monotonic() + lasts * _RENEWED_AT
            return self._token

    def extensions(self) -> dict[str, str]:
        """Return the SASL extensions for the token."""
        return dict(pair.split("=", 1) for pair in extensions(self._properties))

    def _fetch(self) -> tuple[str, float]:
        """Query the endpoint; return the token and its lifetime in seconds."""
        url = self._properties[ENDPOINT]
        parts = urlsplit(url)
        at = f"{ENDPOINT}: {parts.scheme}://{parts.netloc}{parts.path}"
        https = urllib.request.HTTPSHandler(context=tls.context_of_https(self._properties))
        opener = urllib.request.build_opener(https, _NoRedirect)
        try:
            with opener.open(self._request(url), timeout=_TIMEOUT_S) as answer:
                body = _bounded(answer, at)
        except urllib.error.HTTPError as error:
            with error:
                raise _refused(at, error.code, _code(error)) from None
        except (OSError, ValueError, urllib.error.URLError) as error:
            raise _unreachable(at, getattr(error, "reason", error)) from None
        return _read(body, at)

    def _request(self, url: str) -> urllib.request.Request:
        identity, secret = (
            next(self._properties[name] for name in names if self._properties.get(name)) for names in (IDS, SECRETS)
        )
        form = "grant_type=client_credentials"
        if self._properties.get(SCOPE):
            form += f"&scope={quote_plus(self._properties[SCOPE])}"
        login = base64.b64encode(f"{identity}:{secret}".encode()).decode()
        headers = {"Authorization": f"Basic {login}", "Accept": "application/json"}
        return urllib.request.Request(url, form.encode(), headers, method="POST")


def _bounded(answer: Any, at: str) -> bytes:
    """Return the body. Raises FatalError if it is too large, TimeoutError if late."""
    body, deadline = b"", time.monotonic() + _TIMEOUT_S
    while piece := answer.read1(65_536):
        body += piece
        if len(body) > _ANSWER_BYTES:
            raise FatalError(
                f"{at}: the answer is not a token: it is larger than {_ANSWER_BYTES} bytes",
                code="token-refused",
                hint="nothing was sent; is it the address of a token endpoint?",
            )
        if time.monotonic() > deadline:
            raise TimeoutError
    return body


def _code(error: urllib.error.HTTPError) -> str:
    """Return the answer's error code if RFC 6749 allows its form, else ""."""
    try:
        said = json.loads(error.read(65_536)).get("error", "")
    except (OSError, ValueError, AttributeError):
        return ""
    return said if isinstance(said, str) and _CODE.fullmatch(said) else ""


def _refused(at: str, status: int, code: str) -> FatalError | TemporaryError:
    said = f"HTTP {status}{f', {code}' if code else ''}"
    if status >= 500 or status in _MAY_PASS:
        return TemporaryError(
            f"{at}: no token at this time ({said})", code="token-endpoint", hint="nothing was sent; run again later"
        )
    if 300 <= status < 400:
        return FatalError(
            f"{at}: the endpoint redirects ({said}), and the secret is not sent there",
            code="token-refused",
            hint=f"nothing was sent; set {ENDPOINT} to the final address",
        )
    return FatalError(
        f"{at}: the endpoint returns no token ({said})",
        code="token-refused",
        hint=f"nothing was sent; check {IDS[0]}, {SECRETS[0]} and {SCOPE}, then run again",
    )


def _unreachable(at: str, reason: object) -> FatalError | TemporaryError:
    if isinstance(reason, ssl.SSLCertVerificationError):
        return FatalError(
            f"{at}: the endpoint's certificate is not trusted: {reason.verify_message}",
            code="token-refused",
            hint="nothing was sent; name the authority that signed it: https.ca.location in the properties",
        )
    why = "no answer in time" if isinstance(reason, TimeoutError) else getattr(reason, "strerror", None) or "no answer"
    return TemporaryError(
        f"{at}: {str(why).lower()}",
        code="token-endpoint",
        hint=f"nothing was sent; check {ENDPOINT} and that the endpoint is up, then run again",
    )


def _read(body: bytes, at: str) -> tuple[str, float]:
    """Return the token and its lifetime in seconds."""
    try:
        said = json.loads(body)
        token, lasts = said["access_token"], float(said.get("expires_in") or _SHORTEST_S)
        if not isinstance(token, str) or not re.fullmatch(r"[!-~]+", token):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError):
        raise FatalError(
            f"{at}: the answer has no access_token",
            code="token-refused",
            hint="nothing was sent; is it the address of a token endpoint?",
        ) from None
    return token, max(0.0, lasts)
