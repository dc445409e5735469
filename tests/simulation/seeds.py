"""The seeds that are known to miss each rule when it is switched off: tried first, so that no test has to search.

`python -m tests.simulation.seeds` finds them again, a few for each rule, and writes seeds.json: after a change of the protocol,
which gives every schedule another course.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.simulation.__main__ import simulate
from tests.simulation.rules import RULES, without
from tests.simulation.schedule import run_schedule

SEEDS = Path(__file__).with_name("seeds.json")
KEPT = 3
# Where a rule is missed rarely, and not by the first schedules (one in 10,000 here).
FIRST = {"task-0-is-always-fenced": 20_000}
MOST_SCHEDULES = 20_000


def known(rule: str) -> list[int]:
    """Return the seeds that missed the rule when they were last looked for."""
    return list(json.loads(SEEDS.read_text()).get(rule, []))


def violated_by_known(rule: str) -> bool:
    """Say whether one of the known seeds breaks a promise with the rule switched off."""
    with without(rule):
        return any(run_schedule(seed).violation for seed in known(rule))


def find(rule: str) -> list[int]:
    """Return seeds that miss the rule, as soon as there are some; none where no schedule does."""
    first = FIRST.get(rule, 0)
    summary = simulate(range(first, first + MOST_SCHEDULES), rule=rule, until_violated=True)
    return sorted(result.seed for result in summary.violations)


def main() -> int:
    """Look for seeds of every rule whose known ones do not miss it any more."""
    seeds: dict[str, list[int]] = json.loads(SEEDS.read_text()) if SEEDS.exists() else {}
    missing = 0
    for rule in RULES:
        if not (rule in seeds and violated_by_known(rule)):
            found = find(rule)[:KEPT]
            seeds[rule] = found
            missing += not found
        print(f"{rule}: {seeds[rule]}", flush=True)
        SEEDS.write_text(json.dumps({name: seeds[name] for name in RULES if name in seeds}, indent=1) + "\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
