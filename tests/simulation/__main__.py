"""`python -m tests.simulation --schedules N [--seed S]`: many schedules, one summary line last, exit 1 on a violation.

`--replay SEED` runs one schedule and prints its trace; `--without RULE` switches a rule of the protocol off (rules.py).
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import lru_cache, partial
from multiprocessing import get_context

from eosingest.protocol.offsets import record
from tests.simulation.rules import RULES, without
from tests.simulation.schedule import Result, run_schedule

_CHUNK = 10
_DECODED = 10_000  # records whose decoded form is kept in each process
_SHOWN = 50
_TOLD_EVERY = 50_000  # schedules


@dataclass
class Summary:
    """What many schedules came to."""

    schedules: int = 0
    runs: int = 0
    records: int = 0
    steps: int = 0
    not_covered: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    violations: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        self.schedules += 1
        self.runs += result.runs
        self.records += result.records
        self.steps += result.steps
        self.not_covered += not result.covered
        self.faults.update(result.faults)
        if result.violation is not None:
            self.violations.append(result)


def simulate(
    seeds: range,
    *,
    rule: str | None = None,
    jobs: int | None = None,
    until_violated: bool = False,
    tell: Callable[[str], None] = lambda text: None,
) -> Summary:
    """Run the schedules of the seeds on all cores; to the first violation only, where that is asked for.

    `tell` is told violations as they are found, and how far it is. Ctrl-C ends it with the summary of those that were run.
    """
    summary = Summary()
    chunks = [seeds[at : at + _CHUNK] for at in range(0, len(seeds), _CHUNK)]
    pool_of = get_context("fork").Pool(jobs or os.cpu_count(), initializer=_start_process)
    with contextlib.suppress(KeyboardInterrupt), pool_of as pool:
        for results in pool.imap_unordered(partial(_run_chunk, rule=rule), chunks):
            for result in results:
                summary.add(result)
                if result.violation is not None:
                    tell(f"seed {result.seed}: {result.violation}")
                if summary.schedules % _TOLD_EVERY == 0:
                    tell(f"{summary.schedules:,} of {len(seeds):,} schedules, {len(summary.violations)} violations")
            if until_violated and summary.violations:
                break
    return summary


def _start_process() -> None:
    """Let SIGTERM end this process, whatever handler the parent had: the pool ends its processes with it and waits.

    The rest is for speed alone. Runs read the same records again and again: what they decode to depends on nothing else. And
    the collector need not look at what was there before the first world.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    kinds = (record.Claim, record.ControlRecord, record.OffsetRecord)
    for owner, name in ((record, "key_of"), *((kind, "decode") for kind in kinds)):
        setattr(owner, name, lru_cache(_DECODED)(getattr(owner, name)))
    gc.freeze()


def _run_chunk(seeds: range, rule: str | None) -> list[Result]:
    gc.disable()  # a world is all cycles: one look after some of them is cheaper
    try:
        with without(rule) if rule else nullcontext():
            return [run_schedule(seed) for seed in seeds]
    finally:
        gc.collect()
        gc.freeze()  # what is left are the decoded records that are kept: each look would walk them all again
        gc.enable()


def _replay(seed: int, rule: str | None) -> int:
    trace: list[str] = []
    with without(rule) if rule else nullcontext():
        result = run_schedule(seed, trace)
    print("  virtual time   step who                what")
    print("\n".join(trace))
    print(f"seed {seed}: {result.violation or 'every promise was kept'}")
    return 1 if result.violation else 0


def _report(summary: Summary, seeds: range, seconds: float, rule: str | None) -> Iterator[str]:
    option = f" --without {rule}" if rule else ""
    step = f" in steps of {seeds.step}" if seeds.step > 1 else ""
    for result in sorted(summary.violations, key=lambda result: result.steps)[:_SHOWN]:
        yield f"seed {result.seed}: {result.violation}"
        yield f"    python -m tests.simulation --replay {result.seed}{option}"
    for kind, count in summary.faults.most_common():
        yield f"{kind:20s} {count:10,}"
    yield (
        f"simulation: {summary.schedules:,} schedules from seed {seeds.start}{step}, {summary.runs:,} runs,"
        f" {summary.faults.total():,} faults of {len(summary.faults)} kinds, {summary.records:,} records,"
        f" {summary.steps:,} steps, {summary.not_covered} not covered, {len(summary.violations)} violations, {seconds:.0f} s"
        f" ({summary.schedules / seconds * 3600:,.0f} schedules an hour)"
    )


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--schedules", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument(
        "--step",
        type=int,
        default=1,
        help="between seeds; schedules whose seed is 15 modulo 19 mix runs by parts and in one transaction",
    )
    parser.add_argument("--jobs", type=int, help="processes; as many as cores by default")
    parser.add_argument("--without", choices=RULES, metavar="RULE", help=f"one of: {', '.join(RULES)}")
    parser.add_argument("--replay", type=int, metavar="SEED")
    asked = parser.parse_args()
    if asked.replay is not None:
        return _replay(asked.replay, asked.without)
    began = time.monotonic()
    seeds = range(asked.seed, asked.seed + asked.schedules * asked.step, asked.step)
    summary = simulate(seeds, rule=asked.without, jobs=asked.jobs, tell=partial(print, file=sys.stderr, flush=True))
    print("\n".join(_report(summary, seeds, time.monotonic() - began, asked.without)))
    return 1 if summary.violations else 0


if __name__ == "__main__":
    sys.exit(main())
