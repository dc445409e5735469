"""Chooses ports for the embedded broker: those of its last start if they are free, since clients may know the address.

The package's `up` chooses them before each start.
"""

from __future__ import annotations

import random
import socket
import time

from eosingest.broker.server_files import HOST, State
from eosingest.errors import FatalError

# Below every system's ephemeral ports, so that no outgoing connection takes the broker's port while it is down.
_PORTS = range(20_000, 30_000)
_POLL_S = 0.05
_PATIENCE_S = 2.0


def choose_ports(kept: State | None, wanted: int | None) -> tuple[int, int]:
    """Return free ports for clients and for the controller: the `kept` ones if they are free.

    Raises FatalError if the `wanted` port for clients is taken.
    """
    if wanted is not None and not _becomes_free(wanted):
        raise FatalError(f"port {wanted} on {HOST} is taken by another program", code="port-taken")
    free = (port for port in random.sample(_PORTS, len(_PORTS)) if port != wanted and _is_free(port))
    port = wanted or (kept.port if kept and _becomes_free(kept.port) else next(free))
    controller = kept.controller_port if kept and _becomes_free(kept.controller_port) else next(free)
    return port, controller if controller != port else next(free)


def _becomes_free(port: int) -> bool:
    """Wait a moment for the port: the kernel closes a killed process's ports after its command line is gone."""
    deadline = time.monotonic() + _PATIENCE_S
    while not _is_free(port):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As Java's server sockets do: a port in TIME_WAIT can be bound, one in use cannot.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
