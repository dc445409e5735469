"""Makes TLS contexts from librdkafka's properties, for other clients: kafka-python, and the request for a token.

Python's ssl reads certificates and keys only from files. While those that the spec has as text (`ssl.certificate.pem`) are
loaded, they are in a file in memory, or in one that only this user may read.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from eosingest.errors import SpecError

_SYSTEM = ("", "probe")  # librdkafka's words for the system's own authorities


def context(properties: Mapping[str, str], key: str = "sink.properties") -> ssl.SSLContext:
    """Return the context that the `ssl.` properties describe. Raises SpecError, which names the property and no value."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.check_hostname = checks_names(properties)
    _trust(made, properties, "ssl.ca", key)
    certificate = "ssl.certificate.pem" if properties.get("ssl.certificate.pem") else "ssl.certificate.location"
    if properties.get(certificate):
        _identify(made, properties, certificate, key)
    if properties.get("ssl.crl.location"):
        with _naming("ssl.crl.location", key):
            made.load_verify_locations(properties["ssl.crl.location"])
        made.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    return made


def context_of_https(properties: Mapping[str, str], key: str = "sink.properties") -> ssl.SSLContext:
    """Return the context for the token endpoint: `https.ca.location`, `https.ca.pem`, or the system's authorities."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    _trust(made, properties, "https.ca", key)
    return made


def checks_names(properties: Mapping[str, str]) -> bool:
    """Say whether a broker's certificate must name its host."""
    return properties.get("ssl.endpoint.identification.algorithm", "https").lower() not in ("none", "")


def _trust(made: ssl.SSLContext, properties: Mapping[str, str], stem: str, key: str) -> None:
    text, file = properties.get(f"{stem}.pem"), properties.get(f"{stem}.location", "")
    if text:
        with _naming(f"{stem}.pem", key):
            made.load_verify_locations(cadata=text)
    elif file not in _SYSTEM:
        is_folder = Path(file).is_dir()
        with _naming(f"{stem}.location", key):
            made.load_verify_locations(capath=file) if is_folder else made.load_verify_locations(cafile=file)
    else:
        made.load_default_certs()


def _identify(made: ssl.SSLContext, properties: Mapping[str, str], certificate: str, key: str) -> None:
    private = "ssl.key.pem" if properties.get("ssl.key.pem") else "ssl.key.location"
    # Without a password OpenSSL would prompt for it at the terminal.
    password = properties.get("ssl.key.password", "")
    with _file_of(properties, certificate) as chain, _file_of(properties, private) as secret:
        with _naming(certificate, key):
            Path(chain).read_bytes()
        with _naming(private, key, "it is not a PEM key of this certificate, or ssl.key.password is not its password"):
            made.load_cert_chain(chain, secret or None, password)


@contextlib.contextmanager
def _file_of(properties: Mapping[str, str], name: str) -> Iterator[str]:
    """Give the path of a file with the value: the value itself, or for text a temporary file."""
    value = properties.get(name, "")
    if not name.endswith(".pem"):
        yield value
        return
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("eosingest")
        try:
            os.write(number, value.encode())
            yield f"/proc/self/fd/{number}"
        finally:
            os.close(number)
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(value.encode())
        file.flush()
        yield file.name


@contextlib.contextmanager
def _naming(name: str, key: str, reason: str = "it holds no PEM certificate") -> Iterator[None]:
    """Turn errors of ssl into a SpecError that names the property."""
    try:
        yield
    except (OSError, ValueError) as error:
        why = reason
        if not isinstance(error, (ssl.SSLError, ValueError)):
            why = f"the file cannot be read: {(error.strerror or 'it is not there').lower()}"
        problem = f"{key}: {name}: {why}"
        raise SpecError(
            problem, code="bad-property", hint="nothing was sent; correct it, then: eosingest check", problems=[problem]
        ) from None
