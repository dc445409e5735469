"""Each rule that the simulation switches off names lines that are there."""

from __future__ import annotations

import pytest

from tests.simulation.rules import RULES, without


@pytest.mark.parametrize("rule", RULES)
def test_the_lines_of_a_rule_are_there(rule: str) -> None:
    """Breaks when a line that a rule names was changed: the simulation's own test of the rule takes minutes to tell."""
    with without(rule):
        pass
