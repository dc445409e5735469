"""Whole commands: what rows that cannot be sent cost, where they go to a dead-letter topic: none, 1 and 10 of a hundred.

    .venv/bin/python -m bench.dead_letters [--rows 1000000] [--rounds 3] [--works json text] [--before FOLDER]

JSON lines, some of which are broken; and lines of text, which no task parses, with and without `on_error`. In turns, each to a
topic of its own, after a round that is not counted. `--before`: a checkout of an earlier version, run where no row is bad.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench import topics
from bench.brokers import running_broker
from bench.contenders import Order
from bench.turns import Turn, in_turns, run_eosingest
from bench.works import WORKS, Work, json_176

_JSON, _TEXT = WORKS["json"], WORKS["text"]


def broken(hundredths: int) -> Work:
    """Return the JSON lines, of which so many in a hundred cannot be parsed, as long as the others."""

    def write(path: Path, rows: range) -> None:
        json_176(path, rows)
        lines = path.read_bytes().splitlines(keepends=True)
        for at, number in enumerate(rows):
            if _is_bad(number, hundredths):
                lines[at] = b"{!" + lines[at][2:]
        path.write_bytes(b"".join(lines))

    def sent(rows: int) -> int:
        return sum(1 for number in range(rows) if number % 100 > 9 and not _is_bad(number, hundredths))

    write.__name__ = f"broken_{hundredths}"
    return replace(_JSON, write=write, sent=sent)


def _is_bad(number: int, hundredths: int) -> bool:
    """Say whether a row is bad: never one that the filter drops, nor the first, as which a document of several lines begins."""
    return 50 <= number % 100 < 50 + hundredths


def ours(home: Path, order: Order) -> None:
    """Run `eosingest run`, where a bad row ends the run."""
    run_eosingest(home, "run", str(order.spec()))


def ours_with_letters(home: Path, order: Order) -> None:
    """Run `eosingest run` with a dead-letter topic, which the run creates."""
    spec, topic = order.spec(), _letters(order)
    order_line = (
        f'on_error = {{ topic = "{topic}", max = {order.rows}, create = {{ partitions = {topics.PARTITIONS} }} }}'
    )
    spec.write_text(f"{order_line}\n{spec.read_text()}")
    run_eosingest(home, "run", str(spec))


def _letters(order: Order) -> str:
    return f"{order.topic}-dead"


def check_letters(order: Order) -> None:
    """Assert that there is a letter of each bad row."""
    if order.work not in (_JSON, _TEXT):
        bad = _JSON.sent(order.rows) - order.work.sent(order.rows)
        assert topics.filled(order.servers, _letters(order)).records == bad


def before(home: Path, folder: Path, order: Order) -> None:
    """Run `eosingest run` of another checkout."""
    run_eosingest(home, "run", str(order.spec()), of=folder)


def main() -> None:
    """Measure JSON, then text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--works", nargs="*", default=["json", "text"], choices=["json", "text"])
    parser.add_argument("--before", type=Path, default=None)
    arguments = parser.parse_args()
    with running_broker() as (folder, up):
        home = folder / "home"
        run_eosingest(home, "prepare")
        fail, letters = partial(ours, home), partial(ours_with_letters, home)
        for what in arguments.works:
            good, rates = (_JSON, (1, 10)) if what == "json" else (_TEXT, ())
            turns: dict[str, tuple[Work, Turn]] = {"fail, no bad row": (good, fail), "no bad row": (good, letters)}
            turns |= {f"{rate} % bad rows": (broken(rate), letters) for rate in rates}
            if arguments.before:
                turns["before"] = (good, partial(before, home, arguments.before.resolve()))
            rows, rounds, servers = arguments.rows, arguments.rounds, up.bootstrap_servers
            in_turns(what, turns, folder, servers, rows=rows, rounds=rounds, counted=rows, check=check_letters)


if __name__ == "__main__":
    main()
