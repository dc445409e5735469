"""The selection of tests by turns (tests/conftest.py): every case has exactly one turn, and a run has some of each test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests import conftest

TURNS = 16


@dataclass(eq=False)
class Item:
    """A test as pytest collects it, and its marks."""

    nodeid: str
    marks: Mapping[str, tuple[str, Mapping[str, Any]]] = field(
        default_factory=dict
    )  # by name: reason and other arguments

    def iter_markers(self, name: str) -> Iterator[pytest.Mark]:
        if name in self.marks:
            reason, arguments = self.marks[name]
            yield pytest.Mark(name, (reason,), dict(arguments), _ispytest=True)

    def get_closest_marker(self, name: str) -> object:
        return self.marks.get(name)


def _cases(test: str, count: int, **marks: tuple[str, Mapping[str, Any]]) -> list[Any]:
    return [Item(f"{test}[case-{number}]", marks) for number in range(count)]


def _played(tests: list[Any]) -> list[list[Any]]:
    """Return the tests that each turn plays."""
    left = [conftest._of_another_turn(tests, turn, TURNS) for turn in range(TURNS)]
    return [[test for test in tests if test not in out] for out in left]


@pytest.mark.parametrize("count", [16, 17, 43])
def test_all_turns_together_play_every_case_once(count: int) -> None:
    tests = _cases("a.py::test_it", count, in_turns=("why", {}))
    played = _played(tests)
    assert Counter(test for turn in played for test in turn) == Counter(tests)
    assert max(map(len, played)) - min(map(len, played)) <= 1


@pytest.mark.parametrize("count", [1, 2, 15])
def test_of_fewer_cases_than_turns_each_turn_plays_one(count: int) -> None:
    """Breaks when a promise has no test in some turns."""
    tests = _cases("a.py::test_it", count, in_turns=("why", {}))
    played = _played(tests)
    assert {len(turn) for turn in played} == {1}
    assert {test for turn in played for test in turn} == set(tests)


def test_a_test_without_a_mark_is_played_by_every_turn() -> None:
    tests = _cases("a.py::test_it", 3) + _cases("a.py::test_other", 40, in_turns=("why", {}))
    assert all(turn[:3] == tests[:3] for turn in _played(tests))


def test_the_functions_of_a_module_with_one_reason_take_turns() -> None:
    """Breaks when functions without parameters are groups of their own, of which every turn plays all."""
    tests = [Item(f"a.py::test_{name}", {"in_turns": ("why", {})}) for name in range(8)]
    others = [
        Item("a.py::test_other", {"in_turns": ("another reason", {})}),
        Item("b.py::test", {"in_turns": ("why", {})}),
    ]
    for turn in _played([*tests, *others]):
        assert len(turn) == 3 and set(others) < set(turn)


def test_only_the_cases_that_a_pattern_names_take_turns() -> None:
    tests = _cases("a.py::test_it", 40, in_turns=("why", {"cases": "case-[123]*"}))
    counts = Counter(test.nodeid for turn in _played(tests) for test in turn)
    assert {name for name, times in counts.items() if times == 1} == {
        test.nodeid
        for test in tests
        if test.nodeid.startswith(("a.py::test_it[case-1", "a.py::test_it[case-2", "a.py::test_it[case-3"))
    }
    assert set(counts.values()) == {1, TURNS}


def test_other_slow_tests_are_played_by_every_eighth_turn() -> None:
    tests = _cases("a.py::test_it", 9, slow=("", {}))
    assert Counter(test for turn in _played(tests) for test in turn) == Counter(dict.fromkeys(tests, TURNS // 8))
