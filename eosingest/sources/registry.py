"""The kinds of sources, each registered once: by which formats a spec names it, and where its parts are.

The parts are given as `module:name` and loaded when they are asked for: a run with nothing to do loads no reader, and no
Spark. What is asked of a kind outside of its folder goes through here.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from eosingest.protocol.source import Item, Source
from eosingest.report.wording import Wording
from eosingest.sources.files.formats import NAMES


class PlannedSource(Source, Protocol):
    """A source as the verbs know it: beside what the protocol asks for, what people are told."""

    @property
    def root_as_written(self) -> str:
        """What the identities of its items are relative to, for the control record."""

    def unread(self) -> Source:
        """Return the same source for a look of which nothing is remembered: its items are not read for their versions."""

    def missing(self, names: Iterable[str]) -> builtins.list[str]:
        """Return the names of items that are not there any more, whether the spec names them or not."""

    def columns_beside(self, items: Iterable[Item]) -> tuple[str, ...]:
        """Return the columns that rows get from where their item lies, not from what is in it, in lower case."""

    def local_path(self, item: Item) -> Path | None:
        """Return where an item lies as a file of this machine, for a look into it; None where it is no such file."""

    def is_read_as_one(self, item: Item) -> bool:
        """Say whether the reader that a run does not use cannot tell an item's splits apart."""


@dataclass(frozen=True)
class Kind:
    """A kind of source. The others are `module:name` of what is behind `table`, `source`, `scan`, `rehearsal`, `wording`.

    `in_tasks` are the modules that Spark's Python workers load to read.
    """

    formats: tuple[str, ...]
    tabled: str
    made: str
    scanned: str
    rehearsed: str
    worded: str
    in_tasks: tuple[str, ...]

    def table(self) -> Any:
        """Return the kind's `spec.tables.SourceTable`, the class. Loads pydantic."""
        return _loaded(self.tabled)

    def source(self, table: Any, directory: Path, check: Callable[[], None]) -> PlannedSource:
        """Make the source of a spec's table `[source]`. `directory` is the spec's; `check` raises to end a long look."""
        made: PlannedSource = _loaded(self.made)(table, directory, check)
        return made

    def scan(self, table: Any, records: Any, conf: Mapping[str, str]) -> Any:
        """Make the source's `spark.scan.Scan`. `records` is what records are made by, `conf` the spec's settings of Spark."""
        return _loaded(self.scanned)(table, records, conf)

    def rehearsal(self) -> Any:
        """Make the kind's `spark.training.Rehearsal`."""
        return _loaded(self.rehearsed)()

    @property
    def wording(self) -> Wording:
        """How a person is told of its items."""
        found: Wording = _loaded(self.worded)
        return found


FILES = Kind(
    NAMES,
    tabled="eosingest.sources.files.table:FileTable",
    made="eosingest.sources.files.source:source_of",
    scanned="eosingest.sources.files.reading.scan:scan_of",
    rehearsed="eosingest.sources.files.reading.rehearsal:FileRehearsal",
    worded="eosingest.sources.files.source_file:WORDING",
    in_tasks=(
        "eosingest.sources.files.reading.inspect_files",
        "eosingest.sources.files.reading.line_reader",
        "eosingest.sources.files.reading.other_reader",
    ),
)
KINDS = (FILES,)
IN_TASKS = tuple(name for kind in KINDS for name in kind.in_tasks)


def formats() -> tuple[str, ...]:
    """Return the formats of all kinds."""
    return tuple(name for kind in KINDS for name in kind.formats)


def kind_of(format: str) -> Kind:
    """Return the kind that has the format. Raises KeyError where none has: a spec that was loaded names no other."""
    return {name: kind for kind in KINDS for name in kind.formats}[format]


def _loaded(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
