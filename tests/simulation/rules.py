"""Rules of the protocol that can be switched off by name, to see that the simulation then finds a violation."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

RULES: dict[str, None] = {}


@contextlib.contextmanager
def without(rule: str) -> Iterator[None]:
    yield
