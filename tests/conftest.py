"""What every test leaves as it found it."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from eosingest.cli.signals import HANDLED


@pytest.fixture(autouse=True)
def _signal_handlers() -> Iterator[None]:
    """Put the process's signal handlers back: the command line installs its own, and forked processes inherit them."""
    before = {number: signal.getsignal(number) for number in HANDLED}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
