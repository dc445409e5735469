"""One session of clusters for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chaos.session import Session

SEED = 20_261_121


@pytest.fixture(scope="session")
def session() -> Iterator[Session]:
    """A session, whose rounds are the same each time."""
    with Session(SEED) as session:
        yield session
