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
    """A test as pytest collects it, and the nodes whose marks it has."""

    nodeid: str
    marks: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)  # by name: node and arguments

    def iter_markers_with_node(self, name: str) -> Iterator[tuple[Any, pytest.Mark]]:
        if name in self.marks:
            node, arguments = self.marks[name]
            yield Item(node), pytest.Mark(name, ("why",), dict(arguments), _ispytest=True)

    def get_closest_marker(self, name: str) -> object:
        return self.marks.get(name)


def _cases(test: str, count: int, **marks: tuple[str, Mapping[str, Any]]) -> list[Any]:
    return [Item(f"{test}[case-{number}]", marks) for number in range(count)]


def _played(tests: list[Any]) -> list[list[Any]]:
    """Return the tests that each turn plays."""
    left = [conftest._of_another_turn(tests, turn, TURNS) for turn in range(TURNS)]
    return [[test for test in tests if test not in out] for out in left]


@pytest.mark.parametrize("count", [1, 15, 16, 17, 43])
@pytest.mark.parametrize("node", ["a.py", "a.py::test_it"])
def test_all_turns_together_play_every_case_once(count: int, node: str) -> None:
    tests = _cases("a.py::test_it", count, in_turns=(node, {}))
    played = _played(tests)
    assert Counter(test for turn in played for test in turn) == Counter(tests)
    assert max(map(len, played)) - min(map(len, played)) <= 1


def test_a_test_without_a_mark_is_played_by_every_turn() -> None:
    tests = _cases("a.py::test_it", 3) + _cases("a.py::test_other", 40, in_turns=("a.py::test_other", {}))
    assert all(turn[:3] == tests[:3] for turn in _played(tests))


def test_the_cases_of_each_function_take_turns_among_themselves() -> None:
    """Breaks when the marks of single cases are no group: their function is, so that no turn plays one function alone."""
    one, other = (
        [Item(f"a.py::{name}[{number}]", {"in_turns": (f"a.py::{name}[{number}]", {})}) for number in range(32)]
        for name in ("test_one", "test_other")
    )
    for turn in _played([*one, *other]):  # type: ignore[list-item]
        assert (len([test for test in turn if test in one]), len(turn)) == (2, 4)


def test_only_the_cases_that_a_pattern_names_take_turns() -> None:
    tests = _cases("a.py::test_it", 20, in_turns=("a.py", {"cases": "case-1*"}))
    counts = Counter(test.nodeid for turn in _played(tests) for test in turn)
    assert {name for name, times in counts.items() if times == 1} == {
        test.nodeid for test in tests if "[case-1" in test.nodeid
    }
    assert set(counts.values()) == {1, TURNS}


def test_other_slow_tests_are_played_by_every_fourth_turn() -> None:
    tests = _cases("a.py::test_it", 9, slow=("a.py", {}))
    assert Counter(test for turn in _played(tests) for test in turn) == Counter(dict.fromkeys(tests, TURNS // 4))
