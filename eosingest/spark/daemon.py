"""Runs the daemon from which a local Spark forks its Python workers, with all imports of a task already done.

pyspark's own daemon imports nothing, so each worker would spend half a second on imports, in a run that may last seconds.
jvm.py sets it as `spark.python.daemon.module`. It creates no Kafka client: librdkafka's threads do not survive a fork.
In a warm JVM a process that has done the imports already forks the daemon (warm/worker_server.py).
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import socket
import struct
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h
_KEPT_BYTES = 64 << 20
WORKING_FOLDER = "EOSINGEST_WORKING_FOLDER"  # the driver's, if the JVM was started in another one
SERVER = "EOSINGEST_WORKER_SERVER"  # the name of the worker server's abstract socket, in the environment of a warm JVM
_ANSWER_S = 5.0
_LENGTH = struct.Struct("I")


def forget_archives() -> None:
    """Import pyspark from its installed folder, not from the zip archives that Spark puts before it on the path.

    A worker calls `importlib.invalidate_caches()` before each task; each zipimporter then reads its archive's directory
    again, once per package (python/cpython#103200): 0.1 s per task. Archives of a Spark other than the installed one stay.
    """
    found = PathFinder.find_spec("pyspark", [entry for entry in sys.path if not Path(entry).is_file()])
    if found is None or not found.origin:
        return
    home = Path(found.origin).parent
    archives = [entry for entry in sys.path if Path(entry).is_file() and Path(entry).is_relative_to(home)]
    sys.path[:] = [entry for entry in sys.path if entry not in archives]
    for cached in [entry for entry in sys.path_importer_cache if entry.startswith(tuple(archives))]:
        del sys.path_importer_cache[cached]


def keep_freed_memory() -> None:
    """Have glibc reuse freed memory instead of returning it to the kernel, which costs page faults at the next allocation.

    Code that scans text in pieces of 256 KiB spends half of its time on these (docs/performance.md). Other C libraries lack
    `mallopt`, or ignore it.
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES // 2)


def enter_working_folder() -> None:
    """Change to the driver's working folder, which relative paths of Kafka's settings refer to."""
    if (folder := os.environ.get(WORKING_FOLDER)) is not None:
        with contextlib.suppress(OSError):  # it was deleted meanwhile
            os.chdir(folder)


def import_all() -> None:
    """Import what tasks need, and keep it out of every garbage collection: modules live as long as the process."""
    gc.disable()
    import pyspark.worker  # noqa: F401 - imported for the workers, as is the next one

    import eosingest.spark.worker  # noqa: F401
    from eosingest.sources.registry import IN_TASKS
    from eosingest.spark.without_pandas import keep_pyarrow_from_pandas

    for module in IN_TASKS:
        import_module(module)
    keep_pyarrow_from_pandas()
    gc.freeze()
    gc.enable()


def fork_elsewhere() -> bool:
    """Have the warm JVM's worker server fork the daemon in place of this process; return after the daemon's end.

    The daemon gets this process's standard streams: it ends when the JVM closes its standard input. Returns False if there is
    no server, or it does not answer, runs another Python, or has imported code that was edited since.
    """
    name = os.environ.get(SERVER)
    if name is None:
        return False
    enter_working_folder()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_ANSWER_S)
        try:
            connection.connect(f"\0{name}")
            if peer_of(connection)[1] != os.geteuid() or receive(connection) != sys.executable:
                return False
        except (OSError, ValueError):
            return False
        connection.settimeout(None)  # from here on the fork is the daemon
        socket.send_fds(connection, [b"-"], [0, 1, 2])
        send(connection, [sys.argv, sys.path, dict(os.environ), os.getcwd()])
        connection.recv(1)
    return True


def peer_of(connection: socket.socket) -> tuple[int, int]:
    """Return pid and uid of the process on the other side."""
    pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, uid


def send(connection: socket.socket, message: object) -> None:
    """Send a value as JSON. Raises OSError."""
    text = json.dumps(message).encode()
    connection.sendall(_LENGTH.pack(len(text)) + text)


def receive(connection: socket.socket) -> Any:
    """Return the next value. Raises OSError; ValueError if the connection ends before."""
    length = connection.recv(_LENGTH.size, socket.MSG_WAITALL)
    if len(length) < _LENGTH.size:
        raise ValueError("the connection has ended")
    (bytes_,) = _LENGTH.unpack(length)
    return json.loads(connection.recv(bytes_, socket.MSG_WAITALL))


def run() -> None:
    """Be the daemon; the process ends with it."""
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__" and not fork_elsewhere():
    enter_working_folder()
    keep_freed_memory()
    forget_archives()
    import_all()
    run()
