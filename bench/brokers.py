"""A broker for measurements and a folder for their files: both are gone when they end, also by SIGTERM (`timeout`)."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eosingest import broker


@contextmanager
def running_broker() -> Iterator[tuple[Path, broker.BrokerStatus]]:
    """Yield a fresh folder and the broker that runs in it."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="eosingest-bench-") as name:
        folder = Path(name)
        try:
            yield folder, broker.up(directory=folder / "broker")
        finally:
            broker.down(directory=folder / "broker", remove_data=True)
