"""Why no broker answers, told apart on listeners of this test: what is lasting is exit 7, what may pass is exit 5."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import kafka.errors as kafka_errors
import pytest

from eosingest.errors import EosingestError, FatalError, TemporaryError
from eosingest.kafka import admin_config, diagnose, kafka_python
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.diagnose import Reason, reasons
from eosingest.kafka.kafka_python import KafkaPythonAdmin

TLS = Path(__file__).parents[1] / "tls"  # a key of this test alone: it protects nothing
TRUSTED = {"ssl_ca_location": str(TLS / "cert.pem")}
ANY_NAME = {"ssl_endpoint_identification_algorithm": "none"}
Listen = Callable[..., str]


def answer(code: int, *mechanisms: str) -> bytes:
    """Return the answer to a SaslHandshake."""
    names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in mechanisms)
    body = struct.pack(">ihi", 1, code, len(mechanisms)) + names
    return struct.pack(">i", len(body)) + body


NO_LOGIN = answer(34)
LOGIN = answer(0, "PLAIN", "SCRAM-SHA-512")


@pytest.fixture()
def listen() -> Iterator[Listen]:
    """Start listeners that give one answer to whatever is asked, behind TLS or not."""
    listeners: list[socket.socket] = []

    def start(said: bytes, *, tls: bool = False) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(TLS / "cert.pem", TLS / "key.pem")

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=talk, args=(connection,), daemon=True).start()

        def talk(connection: socket.socket) -> None:
            try:
                with context.wrap_socket(connection, server_side=True) if tls else connection as talking:
                    # A listener of Kafka's ends a connection on what is no request of its own: TLS to a plain port.
                    if talking.recv(65536)[4:6] == b"\x00\x11":
                        talking.sendall(said)
            except OSError:
                return

        threading.Thread(target=serve, daemon=True).start()
        return f"127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for listener in listeners:
        listener.close()


def why(servers: str, **properties: str) -> Reason:
    (reason,) = reasons(ClientSettings(servers, {name.replace("_", "."): value for name, value in properties.items()}))
    return reason


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    reason = why(f"127.0.0.1:{port}")
    assert (reason.lasting, "connection refused" in reason.text) == (False, True)


@pytest.mark.parametrize(("number", "lasting"), [(socket.EAI_NONAME, True), (socket.EAI_AGAIN, False)])
def test_a_name_that_is_none(monkeypatch: pytest.MonkeyPatch, number: int, lasting: bool) -> None:
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(number, "no")

    monkeypatch.setattr(socket, "create_connection", fail)
    reason = why("kafka.nowhere")
    assert reason.lasting is lasting
    assert "kafka.nowhere (no port is given: 9092 was tried): the name cannot be resolved" in reason.text


@pytest.mark.parametrize(
    ("said", "tls", "properties", "words"),
    [
        (NO_LOGIN, False, {"security_protocol": "SASL_PLAINTEXT"}, "requires no login"),
        (NO_LOGIN, False, {"security_protocol": "SSL"}, "does not speak TLS"),
        (NO_LOGIN, False, {"security_protocol": "sasl_ssl"}, "does not speak TLS"),
        (LOGIN, False, {}, "requires a login (SASL: PLAIN, SCRAM-SHA-512)"),
        (LOGIN, False, {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI"}, "does not accept sasl.mechanism"),
        (NO_LOGIN, True, {}, "speaks TLS, and security.protocol is PLAINTEXT"),
        (LOGIN, True, {"security_protocol": "SASL_PLAINTEXT"}, "speaks TLS"),
        (LOGIN, True, {"security_protocol": "SASL_SSL"}, "the certificate is not trusted"),
        (LOGIN, True, {"security_protocol": "SSL", **TRUSTED}, "the certificate is not for this host"),
        (LOGIN, True, {"security_protocol": "SSL", **TRUSTED, **ANY_NAME}, "requires a login"),
    ],
)  # fmt: skip
def test_a_mismatch_is_lasting(listen: Listen, said: bytes, tls: bool, properties: dict[str, str], words: str) -> None:
    reason = why(listen(said, tls=tls), **properties)
    assert words in reason.text
    assert reason.lasting
    assert reason.hint


@pytest.mark.parametrize(
    ("said", "words"), [(NO_LOGIN, "did not answer in time"), (b"", "does not answer as a Kafka broker")]
)
def test_who_listens_and_does_not_answer_may_do_so_later(listen: Listen, said: bytes, words: str) -> None:
    reason = why(listen(said))
    assert words in reason.text
    assert not reason.lasting


def test_a_listener_that_is_silent_may_speak_tls(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a broker that is starting is said to be one without TLS."""
    monkeypatch.setattr(diagnose, "_TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        reason = why(f"127.0.0.1:{server.getsockname()[1]}", security_protocol="SSL")
    assert "does not answer" in reason.text
    assert not reason.lasting


REFUSED, GIVEN = Reason("a:1: x", True, "mend a", answered=True), Reason("a:1: x", False, "run again", answered=True)
DOWN, UNKNOWN = Reason("b:1: y", False, "start b"), Reason("b:1: y", True, "correct b")


@pytest.mark.parametrize(
    ("servers", "found", "login", "ends"),
    [
        ("a:1", [REFUSED], False, True),
        ("a:1", [UNKNOWN], False, False),  # a name that may be known in a moment
        ("a:1,b:1", [REFUSED, DOWN], True, False),
        ("a:1,b:1", [REFUSED, REFUSED], False, True),
        ("a:1,b:1", [REFUSED, GIVEN], True, False),
        ("a:1,b:1,c:1,d:1", [REFUSED] * 3, False, False),  # the fourth was not tried
        ("a:1", [GIVEN], True, True),
        ("a:1", [GIVEN], False, False),
    ],
)
def test_only_a_refusal_by_all_brokers_ends_the_wait(
    monkeypatch: pytest.MonkeyPatch, servers: str, found: list[Reason], login: bool, ends: bool
) -> None:
    """Else the next step connects."""
    calls = []

    class Client:
        def __init__(self, **_: object) -> None:
            calls.append(1)
            if len(calls) == 1:
                raise kafka_errors.KafkaTimeoutError("Unable to bootstrap")

    monkeypatch.setattr(kafka_python, "KafkaAdminClient", Client)
    monkeypatch.setattr(admin_config, "reasons", lambda settings: found)
    monkeypatch.setattr(admin_config, "_refuses_login", lambda settings: login)
    with pytest.raises(FatalError) if ends else nullcontext():
        kafka_python._connected(ClientSettings(servers), lambda: None)
    assert len(calls) == (1 if ends else 2)


@pytest.mark.parametrize(
    ("found", "error"),
    [
        ([Reason("a:1: x", True, "mend a")], FatalError),
        ([Reason("a:1: x", True, "mend a"), Reason("b:1: y", False, "start b")], TemporaryError),
    ],
)
def test_one_server_that_may_come_back_is_worth_a_retry(
    monkeypatch: pytest.MonkeyPatch, found: list[Reason], error: type[EosingestError]
) -> None:
    def fail(**_: object) -> None:
        raise kafka_errors.KafkaTimeoutError("KafkaTimeoutError: Unable to bootstrap")

    monkeypatch.setattr(kafka_python, "KafkaAdminClient", fail)
    monkeypatch.setattr(kafka_python, "_BOOTSTRAP_S", 0.0)
    monkeypatch.setattr(admin_config, "reasons", lambda settings: found)
    with pytest.raises(error) as caught:
        KafkaPythonAdmin(ClientSettings("a:1,b:1"))
    assert caught.value.code == "broker-unreachable"
    assert all(reason.text in caught.value.message for reason in found)
    assert ("mend a" if error is FatalError else "start b") in caught.value.hint
    assert "KafkaTimeoutError" not in caught.value.message
