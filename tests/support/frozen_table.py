"""Tables whose rows grow between runs, and which are cut otherwise each time: a source that has to freeze how it is cut.

Their rows are those of a simulated source: a table is a file there, its parts are the splits of the file, and the first few are
there at a time. What is frozen are bounds of key ranges, each of one part or of several; a range is one item and one split.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, cast

import numpy as np

from eosingest.kafka.ports import Records
from eosingest.protocol.source import (
    CommittedPosition,
    Fold,
    Gap,
    Item,
    Json,
    Kept,
    Purpose,
    Recorded,
    Scope,
    Snapshot,
    Source,
    Split,
    SplitId,
    SplitKind,
    Version,
)
from eosingest.protocol.task_contract import Batch
from eosingest.report.wording import Wording
from tests.support.builders import Place
from tests.support.simulated_source import SPLIT_SIZE, Rows, SimulatedSource


@dataclass(frozen=True)
class KeyRange(Split):
    """The rows of a table from one key up to another. Its key has the names that splits of files have, for shared helpers."""

    table: str
    start: int
    end: int

    @property
    def item(self) -> str:
        return f"{self.table}@{self.start}"

    @property
    def key(self) -> dict[str, Json]:
        return {"file": self.table, "start": self.start}

    @property
    def bounds(self) -> dict[str, Json]:
        return {"end": self.end}

    @property
    def size(self) -> int:
        return self.end - self.start

    @property
    def label(self) -> str:
        return f"{self.table}, keys {self.start} to {self.end}"

    def size_before(self, committed: CommittedPosition) -> int | None:
        return None

    @property
    def parts(self) -> list[Place]:
        """Return the parts of the table that lie in it."""
        return [(self.table, at) for at in range(self.start, self.end, SPLIT_SIZE)]


@dataclass(frozen=True)
class Range:
    """A range as an item (a `protocol.source.Item`)."""

    split: KeyRange
    seen: tuple[Json, ...] = ()

    @property
    def name(self) -> str:
        return self.split.item

    @property
    def size(self) -> int:
        return self.split.size


WORDING = Wording("range", "ranges", "rows", "not listed now", "the table's name", "", "reach the tables")


class Tables:
    """What all runs find; `ends` is how far each table goes by now."""

    def __init__(self, rows: SimulatedSource, random: Random) -> None:
        self.rows = rows
        self._random = random
        self._all = {file.name: file.length for file in rows.files}
        self.ends = {table: random.randrange(0, end + 1, SPLIT_SIZE) for table, end in self._all.items()}
        self.gone = dict.fromkeys(self._all, 0)  # rows of each table, the first ones, that are not there any more
        self.folds = False  # whether done ranges may be kept as one
        self._made: dict[tuple[KeyRange, str], Rows] = {}

    def grow(self) -> None:
        """Let rows be inserted behind the others, or none."""
        for table, end in self.ends.items():
            if self._random.random() < 0.5:
                self.ends[table] = min(self._all[table], end + SPLIT_SIZE * self._random.choice((1, 2)))

    def expire(self, table: str, rows: int) -> None:
        """Let so many rows be gone, the first ones, of those that were there until now."""
        there = sum(count for (name, at), count in self.rows.lengths.items() if name == table and at < self.ends[table])
        self.gone[table] = max(self.gone[table], min(there, rows))

    def cut(self, table: str, low: int) -> list[int]:
        """Return bounds of ranges from a key on, other ones each time."""
        end = self.ends[table]
        inner = [at for at in range(low + SPLIT_SIZE, end, SPLIT_SIZE) if self._random.random() < 0.5]
        return [low, *inner, end] if low < end else [low]

    def rows_of(self, split: KeyRange, version: str) -> Rows:
        """Return the rows of a range."""
        found = self._made.get((split, version))
        if found is None:
            here = self.rows.hashes[split.table, split.start]
            found = self._made[split, version] = _joined([self.rows.rows[version][part] for part in split.parts], here)
        return found


class TableSplits(SplitKind):
    """Ranges as splits, each one listed as an item."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def cut(self, item: Item, split_size: int) -> tuple[KeyRange, ...]:
        assert isinstance(item, Range)
        return (item.split,)

    def split(self, split: SplitId, bounds: Mapping[str, Json]) -> KeyRange:
        key = json.loads(split)
        return KeyRange(key["file"], key["start"], cast(int, bounds["end"]))

    def item(self, split: SplitId) -> str:
        return self.split(split, {"end": 0}).item

    def covers(self, done: Iterable[Kept], version: Version) -> bool:
        return any(True for _ in done)

    def merges(self, done: Iterable[Kept]) -> list[Fold]:
        ranges = [self.split(*kept) for kept in done] if self._tables.folds else []
        found = []
        for table in self._tables.ends:
            here = sorted((split for split in ranges if split.table == table), key=lambda split: split.start)
            if len(here) > 1 and all(first.end == later.start for first, later in itertools.pairwise(here)):
                found.append(Fold(tuple(split.id for split in here), {"end": here[-1].end}))
        return found


class FrozenTables(Source):
    """A `protocol.source.Source` of one run over these tables. `listed` is how far it found each of them when it listed."""

    wording = WORDING

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.splits = TableSplits(tables)
        self.listed: dict[str, int] = {}
        self.scopes: list[Scope | None] = []  # that it was given, in order

    def check(self) -> None:
        """Nothing is wrong."""

    def plan(
        self, scope: Scope | None = None, recorded: Collection[Recorded] = (), purpose: Purpose = Purpose.RUN
    ) -> Snapshot:
        self.scopes.append(scope)
        self.tables.grow()
        bounds = cast("dict[str, list[int]]", scope) if scope is not None else self._frozen(recorded)
        self.listed = {table: at[-1] for table, at in bounds.items()}
        ranges = [KeyRange(table, *pair) for table, at in bounds.items() for pair in itertools.pairwise(at)]
        versions = {split.item: {"table": split.table} for split in ranges}
        return Snapshot(tuple(map(Range, ranges)), versions, gaps=self.gaps(ranges, recorded), scope=bounds)

    def _frozen(self, recorded: Iterable[Recorded]) -> dict[str, list[int]]:
        """Freeze bounds behind the greatest key that is done of each table."""
        low = dict.fromkeys(self.tables.ends, 0)
        for record in recorded:
            if record.done:
                table = json.loads(record.split)["file"]
                low[table] = max(low[table], cast(int, record.bounds["end"]))
        return {table: self.tables.cut(table, at) for table, at in low.items()}

    def gaps(self, ranges: Iterable[KeyRange], recorded: Iterable[Recorded]) -> tuple[Gap, ...]:
        """None: no row is deleted."""
        return ()

    def changed(self, items: Iterable[Item]) -> list[str]:
        return []


def _joined(parts: Sequence[Rows], split: int) -> Rows:
    """Return the rows of several parts as those of one split, by its hash."""
    sums = [0]
    for part in parts:
        sums += [(sums[-1] + later) % (1 << 64) for later in part.checksums[1:]]
    records = [part.batch.records for part in parts]
    count = len(sums) - 1
    batch = Batch(
        splits=np.full(count, split, dtype=np.int64),
        records=Records(_chained([r.keys for r in records]), _chained([r.values for r in records])),
        hashes=np.concatenate([part.batch.hashes for part in parts]),
        sizes=np.concatenate([part.batch.sizes for part in parts]),
    )
    return Rows(batch, tuple(value for part in parts for value in part.values), tuple(sums))


def _chained(columns: Iterable[Any]) -> list[Any]:
    return [value for column in columns for value in column]
