"""Starts commands as forks of a process that has imported all that they import, which is most of a short command's CPU time.

    python -m tests.support.command_server DESCRIPTOR   (a socket pair's end; started by `Server`, and ends with its owner)

A command has its own arguments, environment, working folder and session, and runs `eosingest`'s main function, as a new
process would. The environment must not have variables that matter while modules are imported.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

from eosingest import __main__
from eosingest.host.garbage import collect_rarely
from eosingest.host.library_warnings import keep_off_the_terminal

_STATUS = struct.Struct("i")
_IMPORTED = (
    "eosingest.cli.main",
    "eosingest.cli.run",
    "eosingest.cli.preview",
    "eosingest.cli.verify",
    "eosingest.app.run",
    "eosingest.app.preview",
    "eosingest.app.verify",
    "eosingest.kafka.kafka_python",
    "eosingest.spark.job",
    "eosingest.spark.preview",
    "eosingest.audit.scan",
    "eosingest.sources.files.source",
    "eosingest.sources.files.reading.scan",
    "eosingest.spec.loader",
)


class Command(subprocess.Popen[str]):
    """A command that the server forked, with the interface of the Popen of a process that it is not the parent of."""

    def __init__(self, args: list[str], pid: int, stdout: int, stderr: int, status: int) -> None:
        """Take the pid, the ends of its output's pipes to read from, and of the pipe that gets its wait status."""
        with contextlib.suppress(OSError):  # makes all attributes; nothing is started
            super().__init__([], executable="/nonexistent", text=True)
        self.args, self.pid, self.returncode = args, pid, None
        self._child_created = True
        self.stdout, self.stderr = open(stdout), open(stderr)  # noqa: SIM115 - closed by communicate
        self._status = status

    def _internal_poll(self, _deadstate: int | None = None, **_: object) -> int | None:
        if self.returncode is None:
            self._take(os.WNOHANG)
        return self.returncode

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        """Return what `os.waitpid` would: pid and wait status, (0, 0) while it runs."""
        if wait_flags & os.WNOHANG and not _is_readable(self._status):
            return 0, 0
        (status,) = _STATUS.unpack(os.read(self._status, _STATUS.size))
        os.close(self._status)
        return self.pid, status

    def _take(self, wait_flags: int) -> None:
        pid, status = self._try_wait(wait_flags)
        if pid:
            self._handle_exitstatus(status)  # type: ignore[attr-defined]


def _is_readable(descriptor: int) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        return bool(selector.select(0))


class Server:
    """A server, which ends with this process."""

    def __init__(self) -> None:
        """Start it."""
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            root = Path(__file__).parents[2]
            command = [sys.executable, "-m", "tests.support.command_server", str(theirs.fileno())]
            self._process = subprocess.Popen(command, cwd=root, pass_fds=[theirs.fileno()])

    def start(self, arguments: list[str], env: Mapping[str, str], cwd: Path | None) -> Command:
        """Fork a command; `env` is its whole environment."""
        out, err, status = os.pipe(), os.pipe(), os.pipe()
        request = json.dumps([arguments, dict(env), str(cwd or Path.cwd())]).encode()
        try:
            socket.send_fds(self._socket, [_STATUS.pack(len(request))], [out[1], err[1], status[1]])
            self._socket.sendall(request)
            (pid,) = _STATUS.unpack(self._socket.recv(_STATUS.size, socket.MSG_WAITALL))
        finally:
            for _, theirs in (out, err, status):
                os.close(theirs)
        return Command(["eosingest", *arguments], pid, out[0], err[0], status[0])

    def end(self) -> None:
        """End it; its commands run on."""
        self._socket.close()
        self._process.wait(10)


@cache
def _server() -> Server:
    """Start the server of this test process."""
    server = Server()
    atexit.register(server.end)
    return server


def start(arguments: list[str], env: Mapping[str, str], cwd: Path | None) -> Command:
    """Start `eosingest ARGUMENTS`; `env` is its whole environment."""
    return _server().start(arguments, env, cwd)


class _Requests:
    """The requests of the owner, and the commands that run."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._selector = selectors.DefaultSelector()
        self._selector.register(requests, selectors.EVENT_READ)
        self._running: dict[int, tuple[int, int]] = {}  # pid and status pipe, by pidfd

    def serve(self) -> list[str]:
        """Fork a command for each request, until the requests end; in the fork, return its arguments."""
        while True:
            for key, _ in self._selector.select():
                if key.fd in self._running:
                    self._report(key.fd)
                elif (arguments := self._fork()) is not None:
                    return arguments

    def _fork(self) -> list[str] | None:
        header, descriptors, _, _ = socket.recv_fds(self._requests, _STATUS.size, 3)
        if not header:
            sys.exit(0)
        (length,) = _STATUS.unpack(header)
        arguments, env, folder = json.loads(self._requests.recv(length, socket.MSG_WAITALL))
        pid = os.fork()
        if pid == 0:
            self._become(env, folder, descriptors)
            return [str(text) for text in arguments]
        for descriptor in descriptors[:2]:
            os.close(descriptor)
        pidfd = os.pidfd_open(pid)
        self._running[pidfd] = pid, descriptors[2]
        self._selector.register(pidfd, selectors.EVENT_READ)
        self._requests.sendall(_STATUS.pack(pid))
        return None

    def _report(self, pidfd: int) -> None:
        """Write the wait status of a command that has ended."""
        self._selector.unregister(pidfd)
        pid, status = self._running.pop(pidfd)
        os.write(status, _STATUS.pack(os.waitpid(pid, 0)[1]))
        for descriptor in (pidfd, status):
            os.close(descriptor)

    def _become(self, env: Mapping[str, str], folder: str, descriptors: list[int]) -> None:
        """Make a fork the new command's process."""
        os.setsid()
        for target, descriptor in enumerate(descriptors[:2], start=1):
            os.dup2(descriptor, target)
        others = [*self._running, *(pipe for _, pipe in self._running.values())]
        self._selector.close()
        for descriptor in (self._requests.detach(), *descriptors, *others):
            os.close(descriptor)
        os.environ.clear()
        os.environ.update(env)
        os.chdir(folder)


def main() -> None:
    """Serve the socket that the first argument names."""
    keep_off_the_terminal()
    collect_rarely()
    for module in _IMPORTED:
        import_module(module)
    sys.argv[1:] = _Requests(socket.socket(fileno=int(sys.argv[1]))).serve()
    sys.argv[0] = __main__.__file__
    __main__.main()


if __name__ == "__main__":
    main()
