"""Translates the spec's librdkafka properties for both clients, and adds the settings that the guarantee needs.

One table maps connection properties of librdkafka to those of kafka-python. A property that only one of the two clients can
honour is refused, since a run needs both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eosingest.errors import SpecError
from eosingest.kafka import oidc

_TO_KAFKA_PYTHON = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "ssl.crl.location": "ssl_crlfile",
    "ssl.endpoint.identification.algorithm": "ssl_check_hostname",
    "client.id": "client_id",
}

# Properties that both clients honour in another way (oidc.py, tls.py).
_IN_TEXT = ("ssl.ca.pem", "ssl.certificate.pem", "ssl.key.pem")
_OF_BOTH = oidc.KNOWN | {*_IN_TEXT, "https.ca.location", "https.ca.pem"}

# Properties of librdkafka that kafka-python has no counterpart for, with what to write instead.
_TO_PEM = "convert the PKCS#12 store to PEM files (ssl.certificate.location, ssl.key.location)"
_NO_COUNTERPART = {
    "ssl.keystore.location": _TO_PEM,
    "ssl.keystore.password": _TO_PEM,
    "enable.ssl.certificate.verification": "name the certificate authority in ssl.ca.location",
    "enable.sasl.oauthbearer.unsecure.jwt": f'it enables unsigned tokens; set {oidc.METHOD} = "oidc"',
    "sasl.oauthbearer.config": f'it configures unsigned tokens; set {oidc.METHOD} = "oidc"',
}
_CONNECTION_PREFIXES = ("ssl.", "sasl.", "security.", "enable.ssl.", "enable.sasl.", "https.")
_SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_NO_KERBEROS = (
    "GSSAPI (Kerberos) is not supported: the wheels of confluent-kafka, by which records are written, are built without it;"
    " log in by SCRAM-SHA-512 or OAUTHBEARER, or by a client certificate (ssl.certificate.location)"
)


@dataclass(frozen=True)
class ClientSettings:
    """How to reach a cluster. `properties` may hold secrets: it travels in the task closure only and is not in the repr."""

    bootstrap_servers: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    def librdkafka(self) -> dict[str, object]:
        """Return librdkafka's configuration for any client: the guarantee's properties override the user's."""
        return {
            **self.properties,
            "bootstrap.servers": self.bootstrap_servers,
            # Otherwise a metadata request creates the topic, with the wrong cleanup.policy, on a broker with default settings.
            "allow.auto.create.topics": False,
        }


def refuse_one_sided(properties: Mapping[str, str], key: str = "sink.properties") -> list[str]:
    """Return a problem for each connection property that not both clients can honour; a run needs both.

    `key` is where the spec has the properties. Problems contain no values.
    """
    problems = [f"{key}: {name}{reason}" for name in properties if (reason := why_one_sided(name))]
    return problems + [f"{key}: {problem}" for problem in _of_login(properties)]


def why_one_sided(name: str) -> str:
    """Return why not both clients can honour a connection property, as the end of a sentence; "" if they can."""
    if name in _NO_COUNTERPART:
        return f" is not supported; {_NO_COUNTERPART[name]}"
    if name.startswith("sasl.kerberos."):
        return f": {_NO_KERBEROS}"
    if name.startswith(_CONNECTION_PREFIXES) and name not in _TO_KAFKA_PYTHON and name not in _OF_BOTH:
        return " is not supported; the admin client has no counterpart for it"
    return ""


def _of_login(properties: Mapping[str, str]) -> list[str]:
    """Return the problems of the mechanism and its properties."""
    name = next((name for name in ("sasl.mechanism", "sasl.mechanisms") if name in properties), "")
    mechanism = mechanism_of(properties)
    if mechanism == "GSSAPI" and name:
        return [f"{name}: {_NO_KERBEROS}"]
    if not name:
        if properties.get("security.protocol", "").upper().startswith("SASL_"):
            return [f"sasl.mechanism is missing: one of {', '.join(_SASL_MECHANISMS)}"]
        return []
    if mechanism not in _SASL_MECHANISMS:
        return [f"{name} is not one of {', '.join(_SASL_MECHANISMS)}"]
    return oidc.problems(properties) if mechanism == "OAUTHBEARER" else []


def mechanism_of(properties: Mapping[str, str]) -> str:
    """Return the SASL mechanism; librdkafka's default is GSSAPI."""
    return properties.get("sasl.mechanism", properties.get("sasl.mechanisms", "GSSAPI")).upper()


def kafka_python(settings: ClientSettings) -> dict[str, object]:
    """Return kafka-python's configuration. Raises SpecError for properties it cannot honour."""
    problems = refuse_one_sided(settings.properties)
    if problems:
        raise SpecError("the client properties cannot be used", code="unsupported-property", problems=problems)
    config: dict[str, object] = {
        "bootstrap_servers": [server.strip() for server in settings.bootstrap_servers.split(",")]
    }
    for name, value in settings.properties.items():
        if name == "ssl.endpoint.identification.algorithm":
            config["ssl_check_hostname"] = value.lower() not in ("none", "")
        elif name in ("security.protocol", "sasl.mechanism", "sasl.mechanisms"):
            config[_TO_KAFKA_PYTHON[name]] = value.upper()
        elif name in _TO_KAFKA_PYTHON:
            config[_TO_KAFKA_PYTHON[name]] = value
    return config
