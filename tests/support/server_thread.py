"""Serves requests of tests in a thread, by a server of the standard library that ends at once."""

from __future__ import annotations

import socketserver
import threading

_POLL_S = 0.02  # 0.5 s by default, for which each `shutdown` waits


def serve(server: socketserver.BaseServer) -> threading.Thread:
    """Serve in a daemon thread, until `server.shutdown()`."""
    thread = threading.Thread(target=server.serve_forever, args=(_POLL_S,), daemon=True)
    thread.start()
    return thread
