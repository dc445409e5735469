"""One session of clusters for the tests of this folder, while they run: its brokers are busy even when nobody asks them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.chaos.session import Session

SEED = 20_261_121


@pytest.fixture(scope="package")
def session() -> Iterator[Session]:
    """A session, whose rounds are the same each time."""
    with Session(SEED) as session:
        yield session


@pytest.fixture(autouse=True)
def same_environment() -> Iterator[None]:
    """Breaks when what is set for the rounds stays behind: brokers of other tests once got their heap from here."""

    def environment() -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}

    before = environment()
    yield
    assert environment() == before
