"""Eleven rounds, each of another kind; `make chaos` plays as many as are wanted."""

from __future__ import annotations

import pytest

from tests.chaos.kinds import KINDS
from tests.chaos.session import Session

ROUNDS = (
    "kill-run",
    "kill-workers",
    "freeze-run",
    "runs-together",
    "delete-topic",
    "kill-broker",
    "late-commits",
    "lose-commit-answer-and-kill",
    "kill-coordinator",
    "fill-disk",
    "kill-executor",
)


@pytest.mark.parametrize(("number", "name"), list(enumerate(ROUNDS, start=1)))
def test_round(session: Session, number: int, name: str) -> None:
    """Breaks when any promise does; the line says which, and how the round is repeated."""
    played = session.play(number, KINDS[name])
    print(played.line)
    assert not played.wrong, played.line


def test_every_kind_says_what_it_does() -> None:
    assert all(kind.what.endswith(".") for kind in KINDS.values())
