"""Client settings: the spec's librdkafka property names, the settings that the guarantee needs, and kafka-python's names.

Stands between the spec and the two clients. One table says which connection property of librdkafka is which of
kafka-python; a property that only one of the two can honour is refused, since a run needs both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eosingest.errors import SpecError

_TO_KAFKA_PYTHON = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "ssl.crl.location": "ssl_crlfile",
    "ssl.endpoint.identification.algorithm": "ssl_check_hostname",
    "client.id": "client_id",
}

# Properties of librdkafka that kafka-python has no counterpart for, with what to write instead.
_NO_COUNTERPART = {
    "ssl.ca.pem": "put the certificate into a file and name it in ssl.ca.location",
    "ssl.certificate.pem": "put the certificate into a file and name it in ssl.certificate.location",
    "ssl.key.pem": "put the key into a file and name it in ssl.key.location",
    "ssl.keystore.location": "convert the PKCS#12 store to PEM files (ssl.certificate.location, ssl.key.location)",
    "enable.ssl.certificate.verification": "name the certificate authority in ssl.ca.location",
}
_CONNECTION_PREFIXES = ("ssl.", "sasl.", "security.", "enable.ssl.")
_SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI")


@dataclass(frozen=True)
class ClientSettings:
    """How to reach a cluster. `properties` may hold secrets: it travels in the task closure only and is not in the repr."""

    bootstrap_servers: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    def librdkafka(self) -> dict[str, object]:
        """Return librdkafka's configuration for any client: the user's properties under those the guarantee needs."""
        return {
            **self.properties,
            "bootstrap.servers": self.bootstrap_servers,
            # To ask for a topic's metadata would create it, with the wrong cleanup.policy, on a broker with default settings.
            "allow.auto.create.topics": False,
        }


def refuse_one_sided(properties: Mapping[str, str], key: str = "sink.properties") -> list[str]:
    """Return a problem for each connection property that kafka-python, the control plane, cannot honour.

    `key` is where the spec has the properties.
    """
    problems = []
    for name, value in properties.items():
        if name in _NO_COUNTERPART:
            problems.append(f"{key}: {name} is not supported; {_NO_COUNTERPART[name]}")
        elif name in ("sasl.mechanism", "sasl.mechanisms") and value.upper() not in _SASL_MECHANISMS:
            problems.append(
                f"{key}: {name} is not one of {', '.join(_SASL_MECHANISMS)}; OAUTHBEARER is not supported yet"
            )
        elif name.startswith(_CONNECTION_PREFIXES) and name not in _TO_KAFKA_PYTHON:
            problems.append(f"{key}: {name} is not supported; the admin client has no counterpart for it")
    return problems


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
