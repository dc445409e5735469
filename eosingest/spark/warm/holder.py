"""Holds the warm JVM: starts it, gives it to one driver at a time, cleans it after each.

    python -m eosingest.spark.warm.holder FOLDER   (started by app/warm.py; its standard input is the first driver's connection)

The process leads a session, so that neither Ctrl-C nor the end of the terminal reaches it. The JVM ends with it: its standard
input closes. It ends on SIGTERM, when no driver used it for `idle_s`, after many runs or hours, or when its heap stays full.
`_lock` is held while the JVM is taken: by a driver from its request to the end of the cleaning, or at the holder's end.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from eosingest.host import interruptible, other_process
from eosingest.spark.warm import channel, clean, key, worker_server
from eosingest.spark.warm.channel import Channel
from eosingest.spark.without_pandas import keep_converters_from_pandas

LOCK, PROCESSES, JVM_LOG, HOLDER_LOG = "lock", "processes.json", "jvm.log", "holder.log"
_POLL_S, _LOCK_S = 0.2, 0.02
_REQUEST_S, _PING_S, _READY_S, _END_S = 30.0, 2.0, 5.0, 5.0
_RUNS, _AGE_S, _HEAP = 500, 12 * 3600.0, 0.5
_LOG_BYTES = 1 << 20


class Holder:
    """The JVM of one folder, from its start to its end."""

    def __init__(self, place: Path, first: dict[str, Any]) -> None:
        """Take the first driver's request: settings on the command line, the key, how long the JVM may be idle."""
        self._place = place
        self._boot: dict[str, str] = first["boot"]
        self._key: dict[str, str] = first["key"]
        self._idle_s = float(first["idle_s"])
        self._since = time.time()
        self._lock = threading.Lock()  # its owner has the JVM
        self._ended = threading.Event()
        self._why_ended = "it has ended"  # what a driver is answered that waits for the JVM
        self._user: int | None = None  # the pid of the driver that has the JVM
        self._used = time.monotonic()
        self._runs = 0
        self._log: Path | None = None  # gets the JVM's output
        self._copied = 0  # bytes of the JVM's log that were copied
        self._copying = threading.Lock()

    def run(self, first: Channel, request: dict[str, Any]) -> None:
        """Start the JVM, serve the first driver, then all others until the end."""
        signal.signal(signal.SIGTERM, lambda *_: self._ended.set())
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        try:
            self._start()
        except Exception as error:
            clean.kill_the_rest([os.getpid()])
            first.send(no=f"it did not start: {error}")
            raise
        listener = channel.listen(self._place)
        self._place.joinpath(PROCESSES).write_text(
            json.dumps([(pid, other_process.started(pid)) for pid in self._pids()])
        )
        try:
            self._lock.acquire()
            threading.Thread(target=self._use, args=(first, request), daemon=True).start()
            self._serve(listener)
        finally:
            self._end(listener)

    def _start(self) -> None:
        keep_converters_from_pandas()
        self._workers = worker_server.start()
        conf = SparkConf(loadDefaults=False).setAll([*self._boot.items()])
        log = self._place / JVM_LOG
        log.unlink(missing_ok=True)
        with log.open("ab") as output:
            self._gateway = launch_gateway(conf, popen_kwargs={"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
        self._process: subprocess.Popen[bytes] = self._gateway.proc
        self._before = clean.state_of(self._gateway.jvm)

    def _pids(self) -> tuple[int, ...]:
        """Return the processes that live as long as the JVM."""
        return os.getpid(), self._process.pid, self._workers.pid

    def _serve(self, listener: socket.socket) -> None:
        """Accept connections until the end. If idleness ends it, the lock is held: no driver gets the JVM any more."""
        listener.settimeout(_POLL_S)
        while not self._ended.is_set() and self._process.poll() is None and self._is_reached():
            self._copy_output()
            with contextlib.suppress(TimeoutError):
                connection, _ = listener.accept()
                threading.Thread(target=self._answer, args=(Channel(connection),), daemon=True).start()
                continue
            if time.monotonic() - self._used > self._idle_s and self._lock.acquire(blocking=False):
                return

    def _is_reached(self) -> bool:
        """Say whether the socket is still in the folder, which a logout may remove; also true while a driver has the JVM."""
        return self._lock.locked() or self._place.joinpath(channel.SOCKET).is_socket()

    def _answer(self, connection: Channel) -> None:
        """Serve one connection."""
        with contextlib.suppress(OSError, ValueError, KeyError):
            if connection.peer[1] == os.geteuid():
                request = connection.receive(_REQUEST_S)
                connection.send(wait=True)
                differs = key.difference(request["key"], self._key) if "key" in request else None
                if request["verb"] == "status":
                    connection.send(**self._status(), differs=differs)
                elif request["verb"] == "end":
                    self._end_for(connection)
                elif differs is not None:
                    connection.send(no=f"it differs in {differs} (eosingest spark up SPEC replaces it)")
                elif self._is_given(connection):
                    self._use(connection, request)
                    return
        connection.close()

    def _status(self) -> dict[str, Any]:
        return {
            "pid": self._process.pid,
            "since": self._since,
            "idle_s": self._idle_s,
            "runs": self._runs,
            "used_by": self._user,
        }

    def _is_given(self, connection: Channel) -> bool:
        """Give the JVM to this driver; refuse it if another has the JVM. While the JVM is cleaned the driver waits."""
        user = self._acquire()
        if user is not None:
            self._refuse(connection, user)
        elif self._ended.is_set():
            connection.send(no=self._why_ended)
        else:
            return True
        return False

    def _acquire(self) -> int | None:
        """Acquire the lock, after the JVM is cleaned, or wait for its end; if a driver has it, return the driver's pid."""
        while not self._lock.acquire(timeout=_LOCK_S):
            if (user := self._user) is not None:
                return user
            if self._ended.is_set():
                return None
        return None

    def _refuse(self, connection: Channel, user: int) -> None:
        connection.send(no=f"the process {user} uses it", used_by=user)

    def _use(self, connection: Channel, request: dict[str, Any]) -> None:
        """Let the driver use the JVM to the driver's end, and clean the JVM. The caller has the lock."""
        self._user, self._used = connection.peer[0], time.monotonic()
        server, ended_well = None, False
        self._runs += 1
        self._log = Path(request["log"])
        try:
            server, port, secret = self._in_jvm(lambda jvm: clean.gateway_for_a_run(jvm), _READY_S)
            started = other_process.started(self._process.pid)
            with contextlib.suppress(OSError):  # the driver has ended
                connection.send(port=port, secret=secret, jvm=(self._process.pid, started))
                ended_well = connection.wait_for_end()
            self._user = None
            if self._runs == 1 and not ended_well:
                raise RuntimeError("spark up did not end well")
            self._in_jvm(lambda jvm: clean.clean(jvm, self._before, server, self._pids()), clean.CLEANED_S)
            heap = self._in_jvm(clean.heap_used, _READY_S)
        except Exception as error:  # the JVM's state is unknown
            sys.stderr.write(f"the JVM ends, since it does not answer, or cannot be cleaned: {error!r}\n")
            self._why_ended = "it did not answer, and was ended"
            with contextlib.suppress(OSError):  # before the JVM ends, and with it this process
                connection.send(no=self._why_ended)
            self._ended.set()
            time.sleep(10 * _LOCK_S)  # a driver that waits is answered, too
            self._process.kill()
            connection.close()
            return
        connection.close()
        self._copy_output()
        self._log, self._used = None, time.monotonic()
        if heap > _HEAP or self._runs >= _RUNS or time.time() - self._since > _AGE_S:
            self._ended.set()  # with the lock
            return
        self._lock.release()

    def _in_jvm(self, step: Any, within_s: float) -> Any:
        """Run a step in the JVM. Raises what it raises; TimeoutError."""
        return interruptible.begin(lambda: step(self._gateway.jvm), "warm-jvm").result(within_s)

    def _end_for(self, connection: Channel) -> None:
        """End by `spark down`, unless a run uses a JVM that answers."""
        user = self._acquire()
        if user is not None and self._answers():
            self._refuse(connection, user)
            return
        connection.send(pid=self._process.pid)
        self._ended.set()

    def _answers(self) -> bool:
        try:
            self._in_jvm(lambda jvm: jvm.java.lang.System.nanoTime(), _PING_S)
        except Exception:  # of py4j, or a timeout
            return False
        return True

    def _end(self, listener: socket.socket) -> None:
        """End the JVM and what it has started."""
        listener.close()
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        clean.kill_the_rest([os.getpid()])
        self._copy_output()
        for name in (channel.SOCKET, PROCESSES):
            self._place.joinpath(name).unlink(missing_ok=True)

    def _copy_output(self) -> None:
        """Append the JVM's new output to the log of its driver. A full disk does no harm."""
        with self._copying, contextlib.suppress(OSError):
            log, copy = self._place / JVM_LOG, self._log  # which another thread changes
            size = log.stat().st_size
            if copy is not None and size > self._copied:
                with log.open("rb") as source, copy.open("ab") as target:
                    source.seek(self._copied)
                    target.write(source.read(size - self._copied))
            self._copied = size
            if copy is None and size > _LOG_BYTES:
                os.truncate(log, 0)  # the JVM appends
                self._copied = 0


def main() -> None:
    """Hold a JVM in the folder, unless another process does."""
    place = Path(sys.argv[1])
    lock = os.open(place / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    first = Channel(socket.socket(fileno=os.dup(0)))
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        first.send(no="another process starts one")
        return
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    request = first.receive(_REQUEST_S)
    first.send(wait=True)
    Holder(place, request).run(first, request)


if __name__ == "__main__":
    main()
