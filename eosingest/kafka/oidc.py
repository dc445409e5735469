"""Checks the properties of a login by OAUTHBEARER, `sasl.oauthbearer.…`: which are known, and their problems. Pure.

Used by config.py, for both clients, and by oauth.py, which requests tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

_STEM = "sasl.oauthbearer."
METHOD, ENDPOINT = f"{_STEM}method", f"{_STEM}token.endpoint.url"
IDS = (f"{_STEM}client.id", f"{_STEM}client.credentials.client.id")
SECRETS = (f"{_STEM}client.secret", f"{_STEM}client.credentials.client.secret")
SCOPE, _EXTENSIONS, _GRANT = f"{_STEM}scope", f"{_STEM}extensions", f"{_STEM}grant.type"
KNOWN = frozenset({METHOD, ENDPOINT, *IDS, *SECRETS, SCOPE, _EXTENSIONS, _GRANT})


def problems(properties: Mapping[str, str]) -> list[str]:
    """Return the problems of the properties of a login by OAUTHBEARER, without values."""
    found = []
    if properties.get(METHOD, "").lower() != "oidc":
        found.append(f'{METHOD} must be "oidc": tokens are requested from {ENDPOINT}')
    for names in (IDS, SECRETS):
        if not any(properties.get(name) for name in names):
            found.append(f"{names[0]} is missing")
    if properties.get(_GRANT, "client_credentials") != "client_credentials":
        found.append(f"{_GRANT} must be client_credentials; the others are not supported")
    wrong = _wrong_address(properties.get(ENDPOINT, ""))
    if wrong:
        found.append(f"{ENDPOINT} {wrong}")
    if any("=" not in pair for pair in extensions(properties)):
        found.append(f"{_EXTENSIONS} must be NAME=VALUE,NAME=VALUE")
    return found


def _wrong_address(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return "is not a URL"
    if not url:
        return "is missing"
    if parts.scheme not in ("https", "http") or not parts.hostname:
        return "must be a URL that begins with https:// (or http://)"
    if parts.username or parts.password:
        return f"must not have a login in it; set {IDS[0]} and {SECRETS[0]}"
    return ""


def extensions(properties: Mapping[str, str]) -> list[str]:
    """Return the SASL extensions as they are written, NAME=VALUE."""
    return [pair for pair in properties.get(_EXTENSIONS, "").split(",") if pair]
