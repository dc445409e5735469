"""Eighteen rounds over all that is read, two of them with bad rows, and two in which all is to go in one transaction.

`make chaos` plays as many as are wanted.
"""

from __future__ import annotations

import pytest

from tests.chaos.kinds import KINDS
from tests.chaos.session import Session

pytestmark = pytest.mark.slow

# What strikes, and what is read.
ROUNDS = (
    ("kill-run", "json"),
    ("kill-workers", "table"),
    ("freeze-run", "topic"),
    ("runs-together", "bucket"),
    ("kill-run", "hdfs"),
    ("delete-topic", "lines"),
    ("kill-broker", "topic"),
    ("late-commits", "json"),
    ("lose-commit-answer-and-kill", "lines"),
    ("kill-coordinator", "json"),
    ("fill-disk", "lines"),
    ("kill-executor", "table"),
    ("kill-run", "table-as-avro"),
    ("kill-registry", "json-as-avro"),
)
WITH_BAD_ROWS = (("kill-driver", "json"), ("allow-letters-late", "lines"))
IN_ONE_TRANSACTION = (("mend-expression-late", "json"), ("set-job-late", "lines"))
_ALL = (*ROUNDS, *WITH_BAD_ROWS, *IN_ONE_TRANSACTION)


@pytest.mark.in_turns("one fault each")
@pytest.mark.parametrize(("name", "reads"), _ALL)
def test_round(session: Session, name: str, reads: str) -> None:
    """Breaks when any promise does; the line says which, and how the round is repeated."""
    bad_rows, whole = ((name, reads) in some for some in (WITH_BAD_ROWS, IN_ONE_TRANSACTION))
    played = session.play(_ALL.index((name, reads)) + 1, KINDS[name], reads, bad_rows, whole)
    print(played.line)
    assert not played.wrong, played.line


def test_every_kind_says_what_it_does() -> None:
    assert all(kind.what.endswith(".") for kind in KINDS.values())
