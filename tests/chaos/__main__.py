"""`python -m tests.chaos --rounds N --seed S [--fault NAME …]`: rounds of faults on real processes, one line each.

The last line is the summary; exit 1 where a promise was broken. A failing round is repeated with the command in its line,
and its folder is kept.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
from pathlib import Path

from tests.chaos.inputs import WEIGHTS
from tests.chaos.kinds import KINDS
from tests.chaos.session import Session

_YES = {"yes": True, "no": False}


def main() -> int:
    """Play the rounds; return the exit code."""
    arguments = _parser().parse_args()
    if arguments.list:
        for kind in KINDS.values():
            print(f"{kind.name:28} {kind.place:9} {kind.what}")
        return 0
    seed = arguments.seed if arguments.seed is not None else random.randrange(10**6)
    names = arguments.fault or list(KINDS)
    numbers = [arguments.round] if arguments.round else range(1, arguments.rounds + 1)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that everything is stopped on the way out
    with Session(seed, report=arguments.report) as session:
        for number in numbers:
            kind = KINDS[names[(number - 1) % len(names)]]
            bad_rows, whole = _YES.get(arguments.bad_rows), _YES.get(arguments.whole)
            print(session.play(number, kind, arguments.reads, bad_rows, whole).line, flush=True)
        print(session.summary(), flush=True)
    return 1 if session.violations else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="how many; kinds of faults take turns")
    parser.add_argument("--seed", type=int, help="repeats sizes, moments and choices; random unless given")
    parser.add_argument("--fault", nargs="+", choices=KINDS, metavar="NAME", help="these kinds only")
    parser.add_argument("--reads", choices=WEIGHTS, default="", help="what is read; drawn for each round unless given")
    parser.add_argument("--bad-rows", choices=_YES, help="whether there are some; drawn for each round unless given")
    drawn = "drawn for each round unless given"
    parser.add_argument("--whole", choices=_YES, help=f"whether everything goes in one transaction; {drawn}")
    parser.add_argument("--round", type=int, help="this round only")
    parser.add_argument("--report", type=Path, default=Path("chaos.jsonl"), help="one JSON object per round goes here")
    parser.add_argument("--list", action="store_true", help="name the kinds of faults")
    return parser


if __name__ == "__main__":
    sys.exit(main())
