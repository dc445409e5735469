"""Finds why no broker answers: a wrong host name or port, TLS or SASL other than in the spec, or no listener.

Called after a failed connect, to find out whether a retry may help. Uses plain sockets, for a few seconds.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from eosingest.errors import SpecError
from eosingest.kafka import tls as tls_by
from eosingest.kafka.config import ClientSettings, mechanism_of

_TIMEOUT_S = 2.0
_ASKED_AT_MOST = 3
_DEFAULT_PORT = 9092
_SERVER = re.compile(r"(?:\w+://)?(\[[^\]]+\]|[^:\s]+)(?::(\d+))?")
_SASL_HANDSHAKE, _VERSION = 17, 1
_ILLEGAL_SASL_STATE = 34
_API_VERSIONS = struct.pack(">hhih", 18, 0, 1, -1)
_IS_IT_KAFKA = "check that bootstrap_servers names a broker's port"
_OTHER_NAME = (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH


@dataclass(frozen=True)
class Reason:
    """The problem with one server; `lasting`: a retry cannot help.

    `answered`: a broker listens, and has answered; with `lasting` it has refused the connection.
    """

    text: str
    lasting: bool
    hint: str = ""
    answered: bool = False


def reasons(settings: ClientSettings) -> list[Reason]:
    """Try the first servers of the list, one after the other, and return a reason for each."""
    properties = {name: value.upper() for name, value in settings.properties.items()}
    protocol = properties.get("security.protocol", "PLAINTEXT")
    return [_look(server, protocol, settings.properties) for server in servers_of(settings)[:_ASKED_AT_MOST]]


def servers_of(settings: ClientSettings) -> list[str]:
    """Return the servers of bootstrap_servers."""
    return [server.strip() for server in settings.bootstrap_servers.split(",") if server.strip()]


def _look(server: str, protocol: str, properties: Mapping[str, str]) -> Reason:
    found = _SERVER.fullmatch(server)
    if found is None:
        return Reason(f"{server} is not host:port", True, "write host:port,host:port into bootstrap_servers")
    host, port = found[1].strip("[]"), int(found[2] or _DEFAULT_PORT)
    at = server if found[2] else f"{server} (no port is given: {_DEFAULT_PORT} was tried)"
    try:
        with socket.create_connection((host, port), _TIMEOUT_S):
            pass
    except (socket.gaierror, UnicodeError) as error:
        passing = getattr(error, "errno", None) == socket.EAI_AGAIN
        why = "the name cannot be resolved" + (" at this time" if passing else "")
        return Reason(f"{at}: {why}", not passing, "check the host's name in bootstrap_servers, and the network's DNS")
    except ConnectionRefusedError:
        return Reason(
            f"{at}: connection refused: nothing listens there",
            False,
            "check the port in bootstrap_servers, and that the brokers are up",
        )
    except OverflowError:
        return Reason(f"{at}: there is no such port", True, "correct bootstrap_servers")
    except OSError as error:
        why = "no answer" if isinstance(error, TimeoutError) else (error.strerror or str(error)).lower()
        return Reason(
            f"{at}: {why}", False, "check host and port in bootstrap_servers, firewalls, and that the brokers are up"
        )
    return _look_at_listener(at, host, port, protocol, properties)


def _look_at_listener(at: str, host: str, port: int, protocol: str, properties: Mapping[str, str]) -> Reason:
    """The port is open: find out whether TLS and SASL are as in the spec."""
    wants_tls, wants_login = protocol.endswith("SSL"), protocol.startswith("SASL")
    tls = _speaks_tls(host, port)
    if tls and not wants_tls:
        right = "SASL_SSL" if wants_login else "SSL"
        return Reason(
            f"{at} speaks TLS, and security.protocol is {protocol}",
            True,
            f'set security.protocol = "{right}" in [sink.properties] (or name the port without TLS)',
        )
    if tls is None:
        return Reason(f"{at}: a server listens, but does not answer", False, _IS_IT_KAFKA)
    if not tls and wants_tls:
        right = "SASL_PLAINTEXT" if wants_login else "PLAINTEXT"
        return Reason(
            f"{at} does not speak TLS, and security.protocol is {protocol}",
            True,
            f'set security.protocol = "{right}" in [sink.properties], or name the port that speaks TLS',
        )
    refused = _refused_handshake(at, host, port, properties) if tls else None
    if refused is not None:
        return refused
    mechanism = mechanism_of(properties)
    return _look_at_login(at, _offered(host, port, mechanism, tls=bool(tls)), protocol, mechanism)


def _look_at_login(at: str, offered: tuple[int, list[str]] | None, protocol: str, mechanism: str) -> Reason:
    wants_login = protocol.startswith("SASL")
    plain = protocol.removeprefix("SASL_")
    if offered is None:
        return Reason(
            f"{at}: a server listens, but does not answer as a Kafka broker",
            False,
            _IS_IT_KAFKA,
        )
    code, mechanisms = offered
    if code == _ILLEGAL_SASL_STATE and wants_login:
        return Reason(
            f"{at} requires no login, and security.protocol is {protocol}",
            True,
            f'set security.protocol = "{plain}" in [sink.properties], or name the port that requires one',
            answered=True,
        )
    if code != _ILLEGAL_SASL_STATE and not wants_login:
        return Reason(
            f"{at} requires a login (SASL: {', '.join(mechanisms) or 'no mechanism is named'}),"
            f" and security.protocol is {protocol}",
            True,
            f'set security.protocol = "SASL_{plain}", sasl.mechanism, sasl.username and sasl.password in [sink.properties]',
            answered=True,
        )
    if wants_login and mechanisms and mechanism not in mechanisms:
        return Reason(
            f"{at} does not accept sasl.mechanism {mechanism}, only {', '.join(mechanisms)}",
            True,
            "set sasl.mechanism to it",
            answered=True,
        )
    return Reason(f"{at}: the broker listens, and did not answer in time", False, "run again", answered=True)


def _speaks_tls(host: str, port: int) -> bool | None:
    """Say whether a TLS handshake begins, with any certificate; a listener that wants a client certificate counts, too.

    None if nothing answers in time.
    """
    try:
        with _connected(host, port, tls=True):
            return True
    except ssl.SSLError as error:
        return "WRONG_VERSION_NUMBER" not in str(error) and "RECORD_LAYER" not in str(error) and "EOF" not in str(error)
    except TimeoutError:
        return None
    except OSError:
        return False


def _refused_handshake(at: str, host: str, port: int, properties: Mapping[str, str]) -> Reason | None:
    """Return why TLS with the spec's properties fails, if one side does not trust the other; None for all else."""
    try:
        context = tls_by.context(properties)
        with (
            socket.create_connection((host, port), _TIMEOUT_S) as raw,
            context.wrap_socket(raw, server_hostname=host) as secured,
        ):
            # In TLS 1.3 a listener refuses a client's certificate only after the handshake.
            secured.sendall(struct.pack(">i", len(_API_VERSIONS)) + _API_VERSIONS)
            secured.recv(4)
    except ssl.SSLCertVerificationError as error:
        if error.verify_code in _OTHER_NAME:
            return Reason(
                f"{at}: the certificate is not for this host: {error.verify_message}",
                True,
                "name the broker in bootstrap_servers as its certificate does (also in advertised.listeners)",
                answered=True,
            )
        return Reason(
            f"{at}: the certificate is not trusted: {error.verify_message}",
            True,
            "name the authority that signed it: ssl.ca.location in [sink.properties]",
            answered=True,
        )
    except ssl.SSLError as error:
        said = re.search(r"alert ([a-z ]+)", str(error).lower().replace("_", " "))
        return _refused_client(at, said[1].strip() if said else "", properties)
    except (OSError, SpecError):
        return None
    return None


def _refused_client(at: str, said: str, properties: Mapping[str, str]) -> Reason | None:
    """Return the reason for an alert about the client's certificate, else None."""
    if "certificate" not in said and "unknown ca" not in said:
        return None
    if not any(properties.get(name) for name in ("ssl.certificate.location", "ssl.certificate.pem")):
        return Reason(
            f"{at} requires a client certificate, and the properties have none (TLS alert: {said})",
            True,
            "set ssl.certificate.location and ssl.key.location, or name a listener that requires none",
            answered=True,
        )
    return Reason(
        f"{at} does not accept the client's certificate (TLS alert: {said}): it has expired, or no authority that the"
        " broker trusts has signed it",
        True,
        "correct ssl.certificate.location and ssl.key.location (openssl x509 -noout -dates -issuer -in FILE shows both)",
        answered=True,
    )


def _offered(host: str, port: int, mechanism: str, *, tls: bool) -> tuple[int, list[str]] | None:
    """Send a SaslHandshake; return the error code and the mechanisms of the listener, None if none arrive."""
    name = mechanism.encode()
    client = b"eosingest"
    body = struct.pack(
        f">hhih{len(client)}sh{len(name)}s", _SASL_HANDSHAKE, _VERSION, 1, len(client), client, len(name), name
    )
    try:
        with _connected(host, port, tls=tls) as connection:
            connection.sendall(struct.pack(">i", len(body)) + body)
            (size,) = struct.unpack(">i", _exactly(connection, 4))
            return _handshake(_exactly(connection, size)) if 6 <= size < 1 << 16 else None
    except (OSError, struct.error, UnicodeDecodeError):
        return None


def _handshake(answer: bytes) -> tuple[int, list[str]]:
    _, code, count = struct.unpack_from(">ihi", answer)
    at, names = 10, []
    for _ in range(max(0, count)):
        (length,) = struct.unpack_from(">h", answer, at)
        names.append(answer[at + 2 : at + 2 + length].decode())
        at += 2 + length
    return code, names


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionResetError
        data += piece
    return data


@contextlib.contextmanager
def _connected(host: str, port: int, *, tls: bool) -> Iterator[socket.socket]:
    with socket.create_connection((host, port), _TIMEOUT_S) as raw:
        if not tls:
            yield raw
            return
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        with context.wrap_socket(raw, server_hostname=host) as secured:
            yield secured
