"""Reads the bytes of one object by ranges: after a broken connection it resumes at the byte at which it broke.

s3.py and hdfs.py give it to Python's buffered reader, from which all readers of files read. Each request is for bytes that
were not read yet, so no byte is lost or read twice.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from typing import Any, Protocol

from eosingest.sources.files.storage.port import GivenUpError, UnreachableError

_WINDOW_BYTES = 16 << 20  # of one request; the connection is reused after it
_BEYOND_BYTES = 256 << 10  # of one after `until`, of which little is needed
_PIECE_BYTES = 128 << 10  # of one read; those before a break are kept
_BREAKS = 6  # consecutive ones, without a byte between them
_PAUSE_S, _MOST_PAUSE_S = 0.1, 2.0


class Body(Protocol):
    """The body of an answer."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""

    def close(self) -> None:
        """End the request."""


class ObjectStream(io.RawIOBase):
    """Reads an object of `length` bytes. `get` requests the bytes [start, end); `until` as in `Storage.open`."""

    def __init__(
        self,
        name: str,
        get: Callable[[int, int], Body],
        length: int,
        until: int | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Send no request yet."""
        self._name = name
        self._get = get
        self._length = length
        self._until = length if until is None else until
        self._sleep = sleep
        self._at = 0
        self._body: Body | None = None
        self._end = 0  # of the body's bytes

    def readinto(self, buffer: Any, /) -> int:
        """Read the next bytes; 0 at the end. Raises UnreachableError if the store gives none after several requests."""
        view = memoryview(buffer).cast("B")
        wanted = min(len(view), self._length - self._at)
        if wanted <= 0:
            return 0
        for attempt in range(_BREAKS):
            try:
                found = self._read(wanted)
            except Exception as error:
                self._drop()
                if not _is_break(error):
                    raise
                if attempt + 1 == _BREAKS:
                    raise UnreachableError(f"{self._name}: reading broke at byte {self._at:,}: {error}") from error
                self._sleep(min(_MOST_PAUSE_S, _PAUSE_S * 2**attempt))
            else:
                view[: len(found)] = found
                self._at += len(found)
                return len(found)
        raise AssertionError("the last attempt returns or raises")

    def _read(self, wanted: int) -> bytes:
        if self._body is None:
            window = min(_WINDOW_BYTES, self._until - self._at) if self._at < self._until else _BEYOND_BYTES
            self._end = min(self._length, self._at + window)
            self._body = self._get(self._at, self._end)
        found = self._body.read(min(wanted, self._end - self._at, _PIECE_BYTES))
        if not found:
            raise ConnectionError("the connection ended before the last byte")
        if self._at + len(found) == self._end:
            self._body.read(1)  # reads its end, which frees the connection
            self._drop()
        return found

    def _drop(self) -> None:
        body, self._body = self._body, None
        if body is not None:
            body.close()

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a byte; no request is sent before it is read."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._length}[whence]
        if base + offset < 0:
            raise ValueError("a byte before the first")
        if base + offset != self._at:
            self._drop()
            self._at = base + offset
        return self._at

    def tell(self) -> int:
        """Return the byte at which reading continues."""
        return self._at

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """End the request."""
        self._drop()
        super().close()


def _is_break(error: Exception) -> bool:
    """Say whether an error is one of the connection, while a body was read or requested."""
    if isinstance(error, OSError):
        return not isinstance(error, GivenUpError)
    names = {kind.__name__ for kind in type(error).__mro__}  # of botocore and urllib3, which may be missing
    return bool(names & {"HTTPClientError", "HTTPError", "IncompleteReadError"})
