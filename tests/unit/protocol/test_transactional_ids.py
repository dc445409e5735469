"""Which jobs share transactional ids: those whose prefix and name run together to the same, and no others."""

from __future__ import annotations

import itertools
from collections import defaultdict

from eosingest.protocol.transactional_ids import control_id, sharing, task_id

Pair = tuple[str, str]
TASKS = (0, 1, 10, 11)


def words(alphabet: str, least: int, most: int) -> list[str]:
    return ["".join(word) for size in range(least, most + 1) for word in itertools.product(alphabet, repeat=size)]


def test_all_pairs_of_a_small_alphabet() -> None:
    """Breaks when two jobs share an id that `sharing` does not tell: a digit or a dot at a name's end, an empty prefix."""
    pairs = list(itertools.product(words("a1.", 0, 3), [*words("a1.", 1, 3), "a.control", "control", ".control.1"]))
    by_id: dict[str, set[Pair]] = defaultdict(set)
    for pair in pairs:
        ids = [control_id(*pair), *(task_id(*pair, task) for task in TASKS)]
        assert len(set(ids)) == len(ids), pair
        for name in ids:
            by_id[name].add(pair)
    shared: dict[Pair, set[Pair]] = defaultdict(set)
    for holders in by_id.values():
        for one in holders:
            shared[one] |= holders - {one}
    known = set(pairs)
    for pair in pairs:
        assert shared[pair] == set(sharing(*pair)) & known, pair
    assert any(shared.values())


def test_jobs_of_one_prefix_share_nothing() -> None:
    prefix = "eosingest."
    for job in words("a1.", 1, 3):
        assert all(other != prefix for other, _ in sharing(prefix, job))


def test_ids_as_brokers_see_them() -> None:
    """Breaks when ids change their form: a run would fence none of the producers of the run before."""
    assert (control_id("eosingest.", "orders"), task_id("eosingest.", "orders", 3)) == (
        "eosingest.orders.control",
        "eosingest.orders.3",
    )
