"""A TCP proxy on loopback that cuts connections in the middle of what a server answers, after a number of bytes at random."""

from __future__ import annotations

import contextlib
import random
import re
import socket
import threading
from collections.abc import Iterator

_CHUNK = 16 << 10
_REQUEST = re.compile(rb"^((?:GET|HEAD) \S+) HTTP", re.MULTILINE)


class CuttingProxy:
    """Passes bytes on to `port` of loopback; each connection is cut after `least` to `most` bytes of answers. `cuts` counts.

    `asked` has the first line of each HTTP request.
    """

    def __init__(self, port: int, least: int, most: int, seed: int) -> None:
        self._to = ("127.0.0.1", port)
        self._bounds = (least, most)
        self._random = random.Random(seed)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.port = self._listener.getsockname()[1]
        self.cuts = 0
        self.asked: list[str] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._to)
            except OSError:
                client.close()
                continue
            self._open += [client, server]
            left = self._random.randint(*self._bounds)
            threading.Thread(target=self._pass, args=(client, server, None), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, left), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, left: int | None) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK):
                if left is not None:
                    data, left = data[:left], left - len(data)
                else:
                    self.asked += (found.decode() for found in _REQUEST.findall(data))
                sink.sendall(data)
                if left is not None and left <= 0:
                    self.cuts += 1
                    break
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Accept no more, and cut what is open."""
        self._listener.close()
        for one in self._open:
            one.close()


@contextlib.contextmanager
def cutting(port: int, *, least: int, most: int, seed: int = 1) -> Iterator[CuttingProxy]:
    """Run such a proxy in this process."""
    made = CuttingProxy(port, least, most, seed)
    try:
        yield made
    finally:
        made.close()
