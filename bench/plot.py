"""Draws what was measured, as SVG, from the JSON that the measurements leave.

    .venv/bin/python -m bench.plot rates bench.json docs/performance.svg
    .venv/bin/python -m bench.plot growth growth.json docs/growth.svg

matplotlib comes into an environment of its own, as the contenders do.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

MATPLOTLIB = "matplotlib==3.11.2"
_OURS, _THEIRS = "#2b6cb0", "#a0aec0"


def rates(results: dict[str, dict[str, list[dict[str, float]]]]) -> Any:
    """One plot a work: bars of the contenders' medians while sending; a line goes from the slowest round to the fastest."""
    from matplotlib import pyplot

    heights = [len(contenders) + 1.5 for contenders in results.values()]
    figure, places = pyplot.subplots(
        len(results), figsize=(9, 0.3 * sum(heights)), sharex=True, squeeze=False, height_ratios=heights
    )
    for (work, contenders), place in zip(results.items(), places[:, 0], strict=True):
        for at, (name, turns) in enumerate(contenders.items()):
            sending = [turn["sending"] / 1e6 for turn in turns]
            median = statistics.median(sending)
            place.barh(at, median, color=_OURS if name.startswith("eosingest") else _THEIRS)
            place.hlines(at, min(sending), max(sending), color="black", linewidth=1)
            place.text(max(sending), at, f" {median:.2f}", va="center", fontsize=8)
        place.set_yticks(range(len(contenders)), list(contenders), fontsize=8)
        place.invert_yaxis()
        place.set_title(work, loc="left", fontsize=9, fontweight="bold")
        place.spines[["top", "right"]].set_visible(False)
    places[-1, 0].set_xlabel("records/s while sending, in millions")
    return figure


def growth(results: dict[str, dict[str, dict[str, dict[str, float]]]]) -> Any:
    """One row a series: seconds of each command, and the highest memory of each process of the run, by size."""
    from matplotlib import pyplot

    figure, places = pyplot.subplots(len(results), 2, figsize=(10, 2.8 * len(results)), squeeze=False)
    for (series, sizes), (time, memory) in zip(results.items(), places, strict=True):
        counts = [int(size) for size in sizes]
        for verb in ("plan", "run", "again"):
            time.plot(
                counts, [found[verb]["seconds"] for found in sizes.values()], marker="o", markersize=3, label=verb
            )
        for kind in ("driver", "worker", "jvm"):
            peaks = [found["run"].get(kind, 0) for found in sizes.values()]
            memory.plot(counts, peaks, marker="o", markersize=3, label=kind)
        for place, what, scale in ((time, "seconds", "log"), (memory, "MiB, highest in the run", "linear")):
            place.set(xscale="log", yscale=scale, ylabel=what, title=series)
            place.minorticks_off()
            place.grid(alpha=0.3)
            place.legend(fontsize=8)
        memory.set_ylim(bottom=0)
    return figure


def main() -> None:
    """Draw; in the environment that has matplotlib."""
    if find_spec("matplotlib") is None:
        from bench.environments import python_with

        sys.exit(subprocess.call([str(python_with(MATPLOTLIB)), __file__, *sys.argv[1:]]))
    from matplotlib import rcParams

    rcParams["svg.fonttype"] = "none"  # text stays text: the file is smaller
    kind, source, target = sys.argv[1:]
    draw: dict[str, Callable[[Any], Any]] = {"rates": rates, "growth": growth}
    figure = draw[kind](json.loads(Path(source).read_text()))
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main()
