"""Connects drivers to the holder of the warm JVM, over a socket that only the user can reach, with JSON lines as messages.

    driver ── attach, status or end ─▶ holder        holder ── wait, then an answer ─▶ driver

The folder is the user's own (0700), and each side checks the uid of the other. A driver keeps its connection open as long as it
uses the JVM; the kernel closes it when the driver dies.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import sys
from pathlib import Path
from typing import Any

from eosingest.host.paths import cache_directory
from eosingest.spark.daemon import peer_of

FOLDER_VARIABLE, SWITCH = "EOSINGEST_SPARK_DIR", "EOSINGEST_SPARK"
SOCKET = "socket"
ANSWER_S = 2.0
READY_S = 40.0  # longer than the holder takes to clean the JVM after another driver, or to end it
_NO_ANSWER = "it does not answer in time (eosingest spark down ends it)"
_LINE_BYTES = 1 << 24  # a key has a hash for each variable and each setting


class UnusableError(Exception):
    """The warm JVM cannot be used. The message is the reason."""


class InUseError(UnusableError):
    """Another process uses the warm JVM."""


def folder() -> Path:
    """Return the folder: $EOSINGEST_SPARK_DIR, or one in $XDG_RUNTIME_DIR, or in the cache. It need not exist."""
    own, runtime = os.environ.get(FOLDER_VARIABLE), os.environ.get("XDG_RUNTIME_DIR")
    if own:
        return Path(own).expanduser().absolute()
    return Path(runtime) / "eosingest-spark" if runtime else cache_directory() / "warm"


def is_off() -> bool:
    """Say whether the user wants no warm JVM to be used."""
    return os.environ.get(SWITCH, "").strip().lower() in ("off", "0", "false", "no")


def supported() -> bool:
    """Say whether this system has pidfd and /proc."""
    return sys.platform == "linux" and hasattr(os, "pidfd_open")


def opened(place: Path) -> int:
    """Open the folder; return its descriptor. Raises FileNotFoundError; UnusableError if others can write or read there."""
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    status = os.fstat(descriptor)
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
        os.close(descriptor)
        raise UnusableError(f"the folder {place} is not this user's alone")
    return descriptor


def listen(place: Path) -> socket.socket:
    """Listen in the folder. The caller holds the folder's lock: an earlier listener has ended."""
    descriptor = opened(place)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SOCKET, dir_fd=descriptor)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(_path(descriptor))
        listener.listen(64)
        return listener
    finally:
        os.close(descriptor)


def connect(place: Path, timeout_s: float) -> Channel | None:
    """Return a connection to the holder, None if there is none.

    Raises UnusableError if it is not ours; TimeoutError if too many connections wait for an answer of the holder; OSError.
    """
    try:
        descriptor = opened(place)
    except FileNotFoundError:
        return None
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(timeout_s)
    try:
        connection.connect(_path(descriptor))
    except OSError as error:
        connection.close()
        if isinstance(error, FileNotFoundError | ConnectionRefusedError):
            return None
        if isinstance(error, BlockingIOError):  # the queue of `listen` is full
            raise TimeoutError(_NO_ANSWER) from None
        raise
    finally:
        os.close(descriptor)
    channel = Channel(connection)
    if channel.peer[1] != os.geteuid():
        channel.close()
        raise UnusableError("it is another user's")
    return channel


def _path(descriptor: int) -> str:
    """Return the socket's path through the open folder: a socket's path must be short."""
    return f"/proc/self/fd/{descriptor}/{SOCKET}"


class Channel:
    """One connection, on either side."""

    def __init__(self, connection: socket.socket) -> None:
        """Take over the connection."""
        self._connection = connection
        self._lines = connection.makefile("rb")

    @property
    def peer(self) -> tuple[int, int]:
        """Pid and uid of the process on the other side."""
        return peer_of(self._connection)

    def send(self, **message: Any) -> None:
        """Send a message. Raises OSError."""
        self._connection.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, timeout_s: float | None) -> dict[str, Any]:
        """Return the next message. Raises TimeoutError; ConnectionError if the other side has closed the connection."""
        self._connection.settimeout(timeout_s)
        line = self._lines.readline(_LINE_BYTES)
        if not line.endswith(b"\n"):
            raise ConnectionError("it has ended")
        message: dict[str, Any] = json.loads(line)
        return message

    def wait_for_end(self) -> bool:
        """Wait until the other side closes the connection, or its process ends; say whether it sent anything before."""
        self._connection.settimeout(None)
        return bool(self._lines.read())

    def close(self) -> None:
        """Close the connection."""
        self._lines.close()
        self._connection.close()


def ask(connection: Channel, *, ready_s: float, alive_s: float = ANSWER_S, **request: Any) -> dict[str, Any]:
    """Send a request, and return the answer. Raises UnusableError if there is none, or a refusal.

    Within `alive_s` seconds the holder must say that it is alive.
    """
    try:
        connection.send(**request)
        connection.receive(alive_s)
        answer = connection.receive(ready_s)
    except TimeoutError:
        raise UnusableError(_NO_ANSWER) from None
    except (OSError, ValueError) as error:
        raise UnusableError(str(error)) from None
    if "no" in answer:
        raise (InUseError if "used_by" in answer else UnusableError)(answer["no"])
    return answer
