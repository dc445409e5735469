"""An object's bytes by ranged requests, over connections that break: none is lost, none comes twice."""

from __future__ import annotations

import io
import random
from dataclasses import dataclass, field

import pytest

from eosingest.errors import FatalError
from eosingest.sources.files.storage import object_stream
from eosingest.sources.files.storage.object_stream import ObjectStream
from eosingest.sources.files.storage.port import NotAsListedError, UnreachableError


@dataclass
class Server:
    """Gives ranges of its data; a connection breaks, or ends early, at random."""

    data: bytes
    random: random.Random
    breaks: float
    asked: list[tuple[int, int]] = field(default_factory=list)
    open: int = 0

    def get(self, start: int, end: int) -> _Body:
        self.asked.append((start, end))
        assert 0 <= start < end <= len(self.data), "a range that no server has"
        if self.random.random() < self.breaks:
            raise ConnectionResetError("refused")
        self.open += 1
        return _Body(self, io.BytesIO(self.data[start:end]))


@dataclass
class _Body:
    server: Server
    data: io.BytesIO

    def read(self, size: int, /) -> bytes:
        if self.server.random.random() < self.server.breaks:
            self.data.read(self.server.random.randrange(size + 1))  # what came is lost with the connection
            if self.server.random.random() < 0.5:
                raise ConnectionResetError("cut")
            return b""
        return self.data.read(self.server.random.randrange(1, size + 1))

    def close(self) -> None:
        self.server.open -= 1


def stream(server: Server, until: int | None = None) -> ObjectStream:
    return ObjectStream("s3://b/k", server.get, len(server.data), until, sleep=lambda seconds: None)


@pytest.mark.parametrize("seed", range(30))
def test_every_byte_once_whatever_breaks(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(object_stream, "_WINDOW_BYTES", chance.choice((100, 1000, 1 << 20)))
    monkeypatch.setattr(object_stream, "_BEYOND_BYTES", chance.choice((7, 300)))
    monkeypatch.setattr(object_stream, "_BREAKS", 200)
    server = Server(chance.randbytes(chance.randrange(1, 20_000)), chance, chance.choice((0, 0.1, 0.5)))
    until = chance.choice((None, 0, 500, len(server.data)))
    reader = io.BufferedReader(stream(server, until), chance.choice((10, 512, 1 << 20)))
    assert reader.read() == server.data
    for _ in range(20):
        start, size = chance.randrange(len(server.data) + 3), chance.randrange(2000)
        assert reader.seek(start) == start
        assert reader.read(size) == server.data[start : start + size]
    reader.close()
    assert server.open == 0, "a connection was left open"


def test_a_whole_object_is_one_request() -> None:
    server = Server(b"x" * 5000, random.Random(1), 0)
    assert io.BufferedReader(stream(server)).read() == server.data
    assert server.asked == [(0, 5000)]


def test_little_is_asked_for_where_little_is_wanted() -> None:
    """Breaks when the look at an object's first bytes asks for all of it."""
    server = Server(b"x" * 5_000_000, random.Random(1), 0)
    opened = io.BufferedReader(stream(server, 4096), 1 << 20)
    assert opened.read(4096) == b"x" * 4096
    assert server.asked == [(0, 4096)]


def test_a_store_that_never_answers_ends_it() -> None:
    server = Server(b"x" * 10, random.Random(1), 1)
    with pytest.raises(UnreachableError, match="at byte 0"):
        stream(server).read(1)
    assert len(server.asked) == 6


@pytest.mark.parametrize("error", [NotAsListedError("412"), FatalError("403")])
def test_what_is_no_break_is_not_tried_again(error: Exception) -> None:
    asked = []

    def get(start: int, end: int) -> object_stream.Body:
        asked.append(start)
        raise error

    with pytest.raises(type(error)):
        ObjectStream("s3://b/k", get, 10).read(1)
    assert asked == [0]
