"""Forks the daemons of the Python workers from a process that has imported what tasks need: a second less for each run.

    holder.py ─▶ start ─▶ main: imports, then a fork for each connection ◀── daemon.fork_elsewhere, in the warm JVM's children

The fork, not the server, receives the run's environment, so that the next run's workers do not have it in memory. The server
ends with the holder, which closes the server's standard input.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import signal
import socket
import subprocess
import sys
from pathlib import Path

from eosingest.spark import daemon
from eosingest.spark.warm.key import stats

_REQUEST_S = 5.0
_IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)  # SIGCHLD: nobody waits for the forks


def start() -> subprocess.Popen[bytes]:
    """Start the server; this process's environment names its socket from then on."""
    name = f"eosingest-{secrets.token_hex(16)}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        listener.listen(64)
        descriptor = listener.fileno()
        command = [sys.executable, "-m", "eosingest.spark.warm.worker_server", str(descriptor)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[descriptor])
    os.environ[daemon.SERVER] = name
    return process


def main(listener: socket.socket) -> None:
    """Import all, then fork for each connection until standard input closes; a fork is its connection's daemon."""
    daemon.keep_freed_memory()
    daemon.import_all()
    code = _imported_code()
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    connection = _forked(listener, code)
    if connection is not None:
        with contextlib.suppress(OSError, ValueError):  # the process at the other end has ended, or is its own daemon
            _take_place_of_peer(connection)
            daemon.run()


def _imported_code() -> list[str]:
    """Return the state of all imported modules on the disk, and of the places in which Python finds modules."""
    modules = (getattr(module, "__file__", None) for module in [*sys.modules.values()])
    places = sys.path[1:]  # without the working folder
    return stats(Path(each) for each in (*modules, *places) if each)


def _forked(listener: socket.socket, code: list[str]) -> socket.socket | None:
    """Fork for each connection; in the fork, return the connection. None at the end of standard input.

    If the code is another one on the disk, close the connection instead: the process at the other end imports it.
    """
    with selectors.DefaultSelector() as selector:
        for stream in (listener, sys.stdin):
            selector.register(stream, selectors.EVENT_READ)
        while sys.stdin not in [key.fileobj for key, _ in selector.select()]:
            connection, _ = listener.accept()
            if _imported_code() == code and os.fork() == 0:
                listener.close()
                return connection
            connection.close()
    return None


def _take_place_of_peer(connection: socket.socket) -> None:
    """Take over streams, environment and folder of the process at the other end. Raises OSError, ValueError."""
    if daemon.peer_of(connection)[1] != os.geteuid():
        raise ValueError("another user")
    connection.settimeout(_REQUEST_S)
    daemon.send(connection, sys.executable)
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    sys.argv[:], sys.path[:], environment, folder = daemon.receive(connection)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    daemon.forget_archives()
    for signal_number in _IGNORED:
        signal.signal(signal_number, signal.SIG_DFL)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
