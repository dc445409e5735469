"""What every test leaves as it found it, and which tests are left to `make test-rest`."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from eosingest.cli.signals import HANDLED

# No run of a test leaves a JVM behind that archives Spark's classes; tests of just that say otherwise.
os.environ["EOSINGEST_PREPARE"] = "off"

SLOW = Path(__file__).with_name("slow.txt")
# Tests of many kinds or cases each. With EOSINGEST_TURN=0/16 every sixteenth one is played, with 1/16 to 15/16 the others: CI
# takes turns. Of the other slow tests it plays every fourth one. A test is of the first group that it fits.
IN_TURNS = (
    "tests/chaos/test_chaos.py::test_round[",
    "tests/integration/test_broker_versions.py::",
    "tests/integration/test_cluster_faults.py::",
    "tests/integration/test_examples.py::",
    "tests/integration/test_hdfs.py::test_a_node_that_is_killed_in_mid_run[",
    "tests/integration/test_interrupted.py::test_signal_in_mid_split[",
    "tests/integration/test_kills.py::test_killed_at_named_points[",
    "tests/integration/test_python_api.py::",
    "tests/integration/test_rate_limit.py::",
    "tests/integration/test_secrets.py::",
    "tests/integration/test_secured.py::",
    "tests/integration/test_tables.py::test_altered_between_kill_and_rerun[",
    "tests/integration/test_tables.py::test_keys_are_hidden_in_all_output[",
    "tests/integration/test_tables.py::test_refused_before_anything_is_sent[",
    "tests/integration/test_three_brokers.py::test_a_broker_is_lost[",
    "tests/reading/test_mends_taken_out.py::test_with_spark[",
    "tests/reading/test_table.py::test_whole[",
    "tests/sources/test_buckets.py::test_what_changes_in_a_run_is_noticed[",
    "tests/sources/test_buckets_by_spark.py::test_the_same_rows_as_on_a_disk[",
    "tests/sources/test_conformance.py::test_killed_at_every_point_and_run_again[",
    "tests/sources/test_conformance.py::test_with_real_processes[",
    "tests/sources/test_conformance.py::*.to.avro]",
    "tests/sources/test_conformance.py::*.to.json-schema]",
    "tests/sources/test_conformance.py::*.to.dead]",
    "tests/sources/test_conformance.py::*.whole]",
    "tests/sources/test_hdfs.py::test_what_changes_in_a_run_is_noticed[",
    "tests/sources/test_in_one_transaction.py::test_killed_at_every_point_and_run_again[",
    "tests/sources/test_in_one_transaction.py::test_what_changes_in_a_run_is_noticed[",
    "tests/sources/test_in_one_transaction.py::test_with_real_processes[",
    "tests/sources/test_in_one_transaction.py::",
    "tests/sources/test_on_a_cluster.py::",
)


@pytest.fixture(autouse=True)
def _signal_handlers() -> Iterator[None]:
    """Put the process's signal handlers back: the command line installs its own, and forked processes inherit them."""
    before = {number: signal.getsignal(number) for number in HANDLED}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def slow_tests() -> list[str]:
    """Return the lines of the list: how the ids of slow tests begin."""
    lines = SLOW.read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def stands_for(line: str, test: str) -> bool:
    """Say whether a test's id begins with the line; where this has a `*`, anything may be in that place."""
    begin, _, more = line.partition("*")
    return test.startswith(begin) and more in test[len(begin) :]


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the slow tests. A line of the list that stands for no test would hide that one was renamed."""
    lines = slow_tests()
    unused = set(lines)
    for item in items:
        found = [line for line in lines if stands_for(line, item.nodeid)]
        unused.difference_update(found)
        if found:
            item.add_marker(pytest.mark.slow)
    collected = {item.nodeid.partition("::")[0] for item in items}
    selected = config.getoption("lf") or any("::" in argument for argument in config.args)
    stale = [] if selected else sorted(line for line in unused if line.partition("::")[0] in collected)
    if stale:
        raise pytest.UsageError(f"{SLOW.name} names tests that are not there: {', '.join(stale)}")
    if (turn := os.environ.get("EOSINGEST_TURN")) and not selected:  # what failed is collected alone, and counted anew
        left = of_another_turn(items, *map(int, turn.split("/")))
        config.hook.pytest_deselected(items=list(left))
        items[:] = [item for item in items if item not in left]


def of_another_turn(items: list[pytest.Item], turn: int, turns: int) -> set[pytest.Item]:
    """Return the tests of IN_TURNS, and of the other slow ones, that are played in another turn than this of so many."""
    groups: dict[str | None, list[pytest.Item]] = {}
    for item in items:
        group = next((line for line in IN_TURNS if stands_for(line, item.nodeid)), None)
        groups.setdefault(group, []).append(item)
    others = [item for item in groups.pop(None, []) if item.get_closest_marker("slow")]
    left = {item for group in groups.values() for number, item in enumerate(group) if number % turns != turn}
    return left | {item for number, item in enumerate(others) if number % 4 != turn % 4}
