"""A TCP proxy between clients and one broker that understands Kafka's frames, and can spoil them on purpose.

A frame is a length (4 bytes) and a body; a request's body begins with API key (2), version (2) and correlation id (4), an
answer's with the correlation id. So a rule can name the request that it spoils ("the third EndTxn of this job's tasks")
and how: lose the answer, delay the request, or bring it to the broker after the client has given the connection up.
The broker advertises the proxy's address, so all of its clients come through here. Runs in a thread of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, NamedTuple

HOST = "127.0.0.1"
PRODUCE, FETCH, METADATA, INIT_PRODUCER_ID, ADD_PARTITIONS, END_TXN = 0, 1, 3, 22, 24, 26
NAMES = {
    PRODUCE: "Produce",
    FETCH: "Fetch",
    INIT_PRODUCER_ID: "InitProducerId",
    ADD_PARTITIONS: "AddPartitionsToTxn",
    END_TXN: "EndTxn",
}
_PATIENCE_S = 10.0


class Spoil(enum.Enum):
    """What to do with a request that a rule names."""

    LOSE_ANSWER = "lose the answer"  # the connection stays, the client waits in vain
    CUT_ANSWER = "cut before the answer"  # the broker has done it, the client sees its connection closed
    DELAY = "delay the request"  # and all behind it on the connection
    LATE = "late request"  # the client's connection is closed at once, the request reaches the broker some time after
    HOLD = "hold the connection"  # bytes of both directions; after that all of them arrive


@dataclass
class Rule:
    """Which requests to spoil: those of one API that hold the bytes `needle`, past the first `skip`, each `every`-th.

    `acted` counts those that were spoilt; `late_answers` are the error codes that the broker gave to late EndTxn requests.
    """

    api: int
    spoil: Spoil
    seconds: float = 0.0
    needle: bytes = b""
    skip: int = 0
    every: int = 1
    times: int = 1
    acted: int = 0
    late_answers: list[int] = field(default_factory=list)
    _met: int = 0

    def takes(self, frame: Frame) -> bool:
        """Say whether this request is to be spoilt, and count it."""
        if frame.api != self.api or self.needle not in frame.body or self.acted >= self.times:
            return False
        self._met += 1
        past = self._met - 1 - self.skip
        if past < 0 or past % self.every:
            return False
        self.acted += 1
        return True


class Frame(NamedTuple):
    """A request: what its header says, and its whole body."""

    api: int
    version: int
    correlation: int
    body: bytes

    @classmethod
    def parse(cls, body: bytes) -> Frame:
        """Read the header of a request's body."""
        api, version, correlation = struct.unpack_from(">hhi", body)
        return cls(api, version, correlation, body)


def correlation_of(answer: bytes) -> int:
    """Return the correlation id of an answer's body."""
    return int(struct.unpack_from(">i", answer)[0])


@dataclass(eq=False)
class _Link:
    """One client's connection, and ours to the broker for it."""

    client: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    broker: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    open: asyncio.Event = field(default_factory=asyncio.Event)
    lost: dict[int, Spoil] = field(default_factory=dict)
    asked: dict[int, Frame] = field(default_factory=dict)

    def drop(self) -> None:
        """Close both sides at once."""
        self.client[1].transport.abort()
        self.broker[1].transport.abort()


class Proxy:
    """Listens on `port`, which is known before the broker is started; `to` names the broker's own port."""

    def __init__(self) -> None:
        """Bind a port; nothing is answered before `start`."""
        self._socket = socket.create_server((HOST, 0))
        self.port = int(self._socket.getsockname()[1])
        self.requests: Counter[int] = Counter()
        self.faults: list[str] = []
        self.rewrite: Callable[[Frame, bytes], bytes] | None = None  # makes another answer to a request
        self._rules: list[Rule] = []
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._cut = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"proxy-{self.port}", daemon=True)

    def start(self, broker_port: int) -> None:
        """Begin to serve."""
        self._broker_port = broker_port
        self._thread.start()
        self._run(self._serve)

    def stop(self) -> None:
        """Close everything."""
        self._run(self._close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE_S)
        self._loop.close()

    # ---- what a test does to it ------------------------------------------------------------------------------------

    def add(self, rule: Rule) -> Rule:
        """Spoil by this rule from now on."""
        self._call(lambda: self._rules.append(rule))
        return rule

    def clear(self) -> None:
        """Forget the rules, let go of what is held, and serve again."""

        def clear() -> None:
            self._rules.clear()
            self.rewrite = None
            self._cut = False
            for link in self._links:
                link.open.set()

        self._call(clear)

    def hold(self) -> None:
        """Hold the bytes of all present connections, in both directions, until `clear`."""

        def hold() -> None:
            for link in self._links:
                link.open.clear()

        self._call(hold)

    def cut(self) -> None:
        """Close all connections and refuse new ones until `clear`: clients and broker do not see each other."""

        def cut() -> None:
            self._cut = True
            for link in list(self._links):
                link.drop()

        self._call(cut)

    def _call(self, function: Callable[[], object]) -> None:
        """Call a function in the loop's thread, and wait for it."""

        async def call() -> None:
            function()

        self._run(call)

    def _run(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        asyncio.run_coroutine_threadsafe(function(), self._loop).result(_PATIENCE_S)

    # ---- connections -----------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        self._server = await asyncio.start_server(self._accept, sock=self._socket, limit=1 << 20)

    async def _close(self) -> None:
        self._server.close()
        for link in list(self._links):
            link.drop()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self._cut:
                raise ConnectionError
            broker = await asyncio.open_connection(HOST, self._broker_port, limit=1 << 20)
        except OSError:  # no broker: the client sees what it would see without us
            writer.transport.abort()
            return
        link = _Link((reader, writer), broker)
        link.open.set()
        self._links.add(link)
        self._spawn(self._pump(link, self._requests))
        self._spawn(self._pump(link, self._answers))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pump(self, link: _Link, pump: Callable[[_Link], Coroutine[Any, Any, None]]) -> None:
        """Move frames of one direction until either side closes; then both are closed."""
        try:
            await pump(link)
        except (OSError, asyncio.IncompleteReadError):
            pass
        except Exception as error:  # a bug here must not pass for a fault of the wire
            self.faults.append(repr(error))
        link.drop()
        self._links.discard(link)

    async def _requests(self, link: _Link) -> None:
        while True:
            frame = Frame.parse(await _read(link.client[0]))
            self.requests[frame.api] += 1
            await link.open.wait()
            link.asked[frame.correlation] = frame
            rule = next((rule for rule in self._rules if rule.takes(frame)), None)
            if rule is not None and rule.spoil is Spoil.LATE:
                self._spawn(self._late(frame, rule))
                return
            if rule is not None:
                await self._spoil(link, frame, rule)
            await _write(link.broker[1], frame.body)

    async def _spoil(self, link: _Link, frame: Frame, rule: Rule) -> None:
        if rule.spoil is Spoil.DELAY:
            await asyncio.sleep(rule.seconds)
        elif rule.spoil is Spoil.HOLD:
            link.open.clear()
            self._loop.call_later(rule.seconds, link.open.set)
            await link.open.wait()
        else:
            link.lost[frame.correlation] = rule.spoil

    async def _answers(self, link: _Link) -> None:
        while True:
            answer = await _read(link.broker[0])
            await link.open.wait()
            request = link.asked.pop(correlation_of(answer))
            spoil = link.lost.pop(request.correlation, None)
            if self.rewrite is not None:
                answer = self.rewrite(request, answer)
            if spoil is Spoil.CUT_ANSWER:
                return
            if spoil is None:
                await _write(link.client[1], answer)

    async def _late(self, frame: Frame, rule: Rule) -> None:
        """Bring a request to the broker after its time, as if it had waited in the broker's own queue."""
        await asyncio.sleep(rule.seconds)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection(HOST, self._broker_port)
            await _write(writer, frame.body)
            answer = await _read(reader)
            writer.transport.abort()
            if frame.api == END_TXN:  # versions 0 to 2: correlation id, throttle time, error code
                rule.late_answers.append(int(struct.unpack_from(">h", answer, 8)[0]))


async def _read(reader: asyncio.StreamReader) -> bytes:
    """Read one frame's body."""
    (length,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(length)


async def _write(writer: asyncio.StreamWriter, body: bytes) -> None:
    writer.write(struct.pack(">i", len(body)) + body)
    await writer.drain()
