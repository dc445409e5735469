"""Counts the rows of splits with the reader of a run, in processes of this host: for `check --read`, which starts no JVM."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

import pyarrow as pa

from eosingest.protocol.plan import Plan
from eosingest.spark.corrupt_rows import Why, why_of
from eosingest.spark.python_scan import ArrowReader, PythonScan, PythonSplit, planned_splits
from eosingest.spark.record_settings import CORRUPT
from eosingest.spark.scan import ErrorsAsValues, Tasks, results

_TICK_S = 0.2
_TASKS_PER_PROCESS = 4  # splits differ in size


@dataclass(frozen=True)
class Rows:
    """The rows of an item: how many, how many of them cannot be parsed, and the text of the first such row."""

    item: str
    count: int
    corrupt: int = 0
    first: str = ""


@dataclass(frozen=True)
class _CountRows:
    """The function of a process. Pickled. Yields the Rows of each split."""

    reader: ArrowReader

    def __call__(self, splits: Iterable[PythonSplit]) -> Iterator[Rows]:
        for split in splits:
            yield self._of(split)

    def _of(self, split: PythonSplit) -> Rows:
        count, corrupt, first = 0, 0, ""
        for batch in self.reader.read(split, None):
            count += len(batch)
            if CORRUPT in batch.schema.names:
                texts = batch.column(CORRUPT).drop_null().cast(pa.binary())
                first = first or (_first(texts[0].as_py(), why_of(self.reader)) if len(texts) else "")
                corrupt += len(texts)
        return Rows(split.item.name, count, corrupt, first)


def _first(text: bytes, why: Why | None) -> str:
    """Return the text of a corrupt row, after the reason."""
    (reason,) = why([text]) if why is not None else [""]
    shown = text.decode(errors="backslashreplace")
    return f"{reason}: {shown}" if reason else shown


def count_rows(tasks: Tasks, scan: PythonScan, plan: Plan) -> list[Rows]:
    """Read all splits of a plan; return the rows of each item, in the plan's order. Raises the first error of a reader."""
    found: dict[str, Rows] = {}
    for result in tasks(_CountRows(scan.reader), planned_splits(plan)):
        before = found.get(result.item, Rows(result.item, 0))
        found[result.item] = Rows(
            result.item, before.count + result.count, before.corrupt + result.corrupt, before.first or result.first
        )
    return list(found.values())


def in_processes(check: Callable[[], None]) -> Tasks:
    """Return tasks in processes, as many as the host has cores. `check` is called meanwhile, and raises to end them."""

    def run(function: Callable[[Iterable[Any]], Iterable[Any]], items: Sequence[Any]) -> list[Any]:
        processes = min(len(items), os.cpu_count() or 1)
        if processes <= 1:
            return list(function(items))
        parts = min(len(items), processes * _TASKS_PER_PROCESS)
        slices = [items[number::parts] for number in range(parts)]
        with get_context("spawn").Pool(processes, _leave_signals) as pool:
            waiting = pool.map_async(partial(_listed, ErrorsAsValues(function)), slices, chunksize=1)
            while not waiting.ready():
                waiting.wait(_TICK_S)
                check()
            return results(each for found in waiting.get() for each in found)

    return run


def _listed(function: Callable[[Iterable[Any]], Iterable[Any]], items: Sequence[Any]) -> list[Any]:
    return list(function(items))


def _leave_signals() -> None:
    """Leave Ctrl-C, which a terminal sends to all processes, to the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
