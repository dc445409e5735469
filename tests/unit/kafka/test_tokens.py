"""What an endpoint of tokens may answer, on a listener of this test: no secret leaves for elsewhere or is shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from eosingest.errors import EosingestError, FatalError, TemporaryError
from eosingest.kafka.oauth import TokenProvider
from tests.support.server_thread import serve

SECRET = "secret-not-to-be-shown"
Answers = Callable[..., list[tuple[str, str]]]


class Endpoint(ThreadingHTTPServer):
    """Answers as it is told, and keeps what it was asked."""

    said: tuple[int, bytes, dict[str, str]] = (200, b"", {})

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, str, str]] = []
        self.url = f"http://127.0.0.1:{self.server_port}/token"


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.asked.append((self.path, self.headers["Authorization"], body))
        status, answer, headers = self.server.said
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(answer))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint()
    serve(server)
    yield server
    server.shutdown()
    server.server_close()


def provider(endpoint: Endpoint, **more: str) -> TokenProvider:
    stem = "sasl.oauthbearer."
    told = {"client.id": "me", "client.secret": SECRET, "token.endpoint.url": endpoint.url, "scope": "a b", **more}
    return TokenProvider({stem + name: value for name, value in told.items()})


def answer(lasts: float | None, token: str = "t0ken") -> tuple[int, bytes, dict[str, str]]:
    return 200, json.dumps({"access_token": token, "expires_in": lasts}).encode(), {}


def test_a_token_is_kept_until_it_is_to_be_renewed(endpoint: Endpoint) -> None:
    endpoint.said = answer(300)
    made = provider(endpoint, extensions="a=1,b=x=y")
    assert (made.token(), made.token()) == ("t0ken", "t0ken")
    assert made.extensions() == {"a": "1", "b": "x=y"}
    ((path, login, body),) = endpoint.asked
    assert (path, body) == ("/token", "grant_type=client_credentials&scope=a+b")
    assert login == "Basic bWU6c2VjcmV0LW5vdC10by1iZS1zaG93bg=="


def test_a_token_that_lasts_no_time_is_asked_for_again(endpoint: Endpoint) -> None:
    endpoint.said = answer(1e-9)
    made = provider(endpoint)
    made.token()
    endpoint.said = answer(300, "another")
    assert made.token() == "another"


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        ((401, json.dumps({"error": "invalid_client"}).encode(), {}), FatalError, "HTTP 401, invalid_client"),
        ((401, json.dumps({"error": f"No {SECRET}!"}).encode(), {}), FatalError, "HTTP 401)"),
        ((400, f"<p>{SECRET}".encode(), {}), FatalError, "HTTP 400)"),
        ((429, b"", {}), TemporaryError, "HTTP 429"),
        ((503, b"", {}), TemporaryError, "HTTP 503"),
        ((302, b"", {"Location": "http://127.0.0.1:1/elsewhere"}), FatalError, "the endpoint redirects"),
        ((307, b"", {"Location": "/again"}), FatalError, "the endpoint redirects"),
        ((200, b"", {}), FatalError, "no access_token"),
        ((200, b"[]", {}), FatalError, "no access_token"),
        (answer(300, "line\nbreak"), FatalError, "no access_token"),
        ((200, b"x" * ((1 << 20) + 1), {}), FatalError, "larger than"),
    ],
)
def test_what_is_no_token(
    endpoint: Endpoint, said: tuple[int, bytes, dict[str, str]], error: type[EosingestError], words: str
) -> None:
    endpoint.said = said
    made = provider(endpoint)
    with pytest.raises(error) as raised:
        made.token()
    assert words in raised.value.message
    assert "nothing was sent" in raised.value.hint
    assert SECRET not in f"{raised.value!r} {raised.value} {raised.value.hint} {made!r}"
    assert len(endpoint.asked) == 1, "the secret went elsewhere"
