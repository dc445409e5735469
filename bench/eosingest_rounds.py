"""A contender: eosingest in a process that keeps its Spark session, so that rounds are of a warm JVM, as other contenders' are.

Reads lines of JSON ({"spec": path}) and answers each with one ({"seconds": of the run, without Spark's start}). The argument
says the way: "as-it-is", "arrow" (no lines path) or "each" (nor the C call for a batch: one for each record).
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from eosingest.app.run import run
from eosingest.app.settings import RunOptions
from eosingest.report.progress import Progress
from eosingest.sources.files.reading.text_scan import TextScan
from eosingest.spark import session
from eosingest.spec.loader import load


class Unheard:
    """Takes notes and progress, and drops them."""

    def note(self, text: str) -> None:
        """Drop it."""

    def progress(self, progress: Progress) -> None:
        """Drop it."""


def keep_session() -> None:
    """Let the first run start Spark, and every other one find it, with the session where that one is needed."""
    start, kept = session.start, list[Any]()

    def start_once(**settings: Any) -> Any:
        if not kept:
            kept.append(start(**settings))
        return kept[0]

    session.start = start_once
    setattr(session.Spark, "stop", lambda _: None)  # noqa: B010 - not for mypy to see


def main() -> None:
    """Answer until the input ends."""
    way = sys.argv[1]
    if way != "as-it-is":
        setattr(TextScan, "direct", lambda *_: None)  # noqa: B010 - not for mypy to see
    if way == "each":  # the workers import sitecustomize.py, which takes the C call away
        os.environ["PYTHONPATH"] = os.pathsep.join(
            (str(Path(__file__).parent / "one_by_one"), os.environ.get("PYTHONPATH", ""))
        )
    keep_session()
    for line in sys.stdin:
        spec = load(Path(json.loads(line)["spec"]))
        began = time.monotonic()
        report = run(spec, RunOptions(), Unheard(), lambda: None)
        seconds = time.monotonic() - began
        assert report is not None and report.exit_code == 0, report
        print(json.dumps({"seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
