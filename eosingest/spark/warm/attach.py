"""Attaches a driver to the warm JVM, if that is free, alive, ours and equal; otherwise reports why not.

    connect ─▶ send key ─▶ "wait" within 2 s ─▶ a gateway of this run alone ─▶ the JVM owns its port ─▶ py4j

Used by session.py. The connection stays open until the process ends; then the holder cleans the JVM.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark.java_gateway import launch_gateway

from eosingest.host.other_process import OtherProcess
from eosingest.spark.warm import channel
from eosingest.spark.warm.channel import Channel, UnusableError

_LOOKS = 5  # the kernel's table of sockets may lack one while others open and close
_attached: list[Channel] = []


def attach(key: Callable[[], Mapping[str, str]], log_file: Path | None) -> Any | None:
    """Return the gateway of the warm JVM, with `proc`; None if there is no warm JVM, or none may be used.

    Until this process ends the JVM's output goes to `log_file`. Raises UnusableError.
    """
    if channel.is_off() or not channel.supported() or log_file is None:
        return None
    try:
        connection = channel.connect(channel.folder(), channel.ANSWER_S)
    except OSError as error:
        raise UnusableError(str(error)) from None
    return None if connection is None else attach_by(connection, key(), log_file, ready_s=channel.READY_S)


def attach_by(connection: Channel, key: Mapping[str, str], log_file: Path, *, ready_s: float, **more: Any) -> Any:
    """Do the same, over an open connection. `more`: further fields of the request. Raises UnusableError."""
    try:
        gateway = _gateway(
            channel.ask(connection, ready_s=ready_s, verb="attach", key=key, log=str(log_file.absolute()), **more)
        )
    except BaseException:
        connection.close()
        raise
    os.register_at_fork(after_in_child=connection.close)  # a child that outlives the driver does not use the JVM
    _attached.append(connection)
    return gateway


def end_well() -> None:
    """As the first driver, have the holder keep the JVM; give the JVM back before the process ends."""
    while _attached:
        connection = _attached.pop()
        connection.send(done=True)
        connection.close()


def _gateway(answer: Mapping[str, Any]) -> Any:
    """Return a gateway to the JVM, made as pyspark makes it for a JVM that runs already."""
    try:
        process = OtherProcess(*answer["jvm"])
    except OSError:
        raise UnusableError("it has ended") from None
    if not any(_listens(process.pid, answer["port"]) for _ in range(_LOOKS)):
        raise UnusableError(f"port {answer['port']} is not its own")
    given = {"PYSPARK_GATEWAY_PORT": str(answer["port"]), "PYSPARK_GATEWAY_SECRET": answer["secret"]}
    os.environ.update(given)
    try:
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        for name in given:
            del os.environ[name]
    gateway.proc = process
    return gateway


def _listens(pid: int, port: int) -> bool:
    """Say whether this process of ours, and no other, listens on the TCP port."""
    owners = [
        (int(fields[7]), fields[9])
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        for fields in map(str.split, _lines(table))
        if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port
    ]
    try:
        open_there = {os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()}
    except OSError:
        return False
    return bool(owners) and all(uid == os.geteuid() and f"socket:[{inode}]" in open_there for uid, inode in owners)


def _lines(table: str) -> list[str]:
    try:
        return Path(table).read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return []
