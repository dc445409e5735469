"""Restores signal handlers after each test; selects slow tests, and the turn of tests with many cases, by marks."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatchcase

import pytest

from eosingest.cli.signals import HANDLED
from tests.support import suite_jvm
from tests.support.processes import QUICK_JVM

# No run of a test leaves a JVM behind that archives Spark's classes; tests of just that say otherwise.
os.environ["EOSINGEST_PREPARE"] = "off"
# Nor does one use the warm JVM of the person who runs the tests; tests of a warm JVM have one of their own.
os.environ["EOSINGEST_SPARK"] = "off"
# Brokers and Spark start in half the time with the first compiler only.
os.environ.setdefault("KAFKA_HEAP_OPTS", f"-Xmx1g {QUICK_JVM}")
# The same for all commands, so that they use one warm JVM; not in a SPARK_CONF_DIR, which costs them the archive of classes.
os.environ["SPARK_SUBMIT_OPTS"] = QUICK_JVM
# Commands read compiled modules, as those of an installation do.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.fixture(autouse=True)
def _signal_handlers() -> Iterator[None]:
    """Put the process's signal handlers back: the command line installs its own, and forked processes inherit them.

    SIGHUP ends what a test starts, also in a suite that nohup has started.
    """
    before = {number: signal.getsignal(number) for number in HANDLED}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def pytest_sessionfinish() -> None:
    """End the warm JVM of this test process."""
    suite_jvm.end()


@pytest.hookimpl(tryfirst=True)  # before `-m` reads the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the cases that `slow_cases` names as slow; with EOSINGEST_TURN=0/16 deselect the tests of other turns."""
    selected = config.getoption("lf", default=False) or any("::" in argument for argument in config.args)
    missing = _mark_slow_cases(items)
    if missing and not selected:
        raise pytest.UsageError(f"slow_cases names cases that do not exist: {', '.join(sorted(missing))}")
    if (turn := os.environ.get("EOSINGEST_TURN")) and not selected:
        left = _of_another_turn(items, *map(int, turn.split("/")))
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = [item for item in items if item not in left]


def _mark_slow_cases(items: list[pytest.Item]) -> set[str]:
    """Mark them, and return the patterns that match no case, each with the node that carries it."""
    unmatched: dict[str, bool] = {}
    for item in items:
        for node, mark in item.iter_markers_with_node("slow_cases"):
            place = _origin(node)
            for pattern in mark.args:
                matches = fnmatchcase(_case(item), pattern)
                unmatched[f"{place} {pattern!r}"] = unmatched.get(f"{place} {pattern!r}", True) and not matches
                if matches:
                    item.add_marker(pytest.mark.slow)
    return {place for place, missing in unmatched.items() if missing}


def _of_another_turn(items: list[pytest.Item], turn: int, turns: int) -> set[pytest.Item]:
    """Return the tests that run in another turn than this one of so many.

    Of the tests that take turns in a module, for the same reason, each turn runs one in `turns`, at least one; of the other
    slow tests one in eight.
    """
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    others: list[pytest.Item] = []
    for item in items:
        if group := _turn_group(item):
            groups[group].append(item)
        elif item.get_closest_marker("slow"):
            others.append(item)
    left = set[pytest.Item]()
    for group in groups.values():
        every = min(turns, len(group))
        left |= {item for number, item in enumerate(group) if number % every != turn % every}
    return left | {item for number, item in enumerate(others) if number % 8 != turn % 8}


def _turn_group(item: pytest.Item) -> str | None:
    """Return the group of a test that takes turns: of a module all marks of the same reason. None without such a mark."""
    for mark in item.iter_markers("in_turns"):
        pattern = mark.kwargs.get("cases", "*")
        if fnmatchcase(_case(item), pattern):
            return f"{item.nodeid.partition('::')[0]} {mark.args[0]} {pattern}"
    return None


def _origin(node: pytest.Item | pytest.Collector) -> str:
    return node.nodeid.partition("[")[0]


def _case(item: pytest.Item) -> str:
    """Return the id of a test's parameters, the text in brackets; "" for a test that has none."""
    return item.nodeid.partition("[")[2].removesuffix("]")
