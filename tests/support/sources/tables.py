"""Tables of a real PostgreSQL as subjects of the conformance suite: rows are read again here by psycopg.

What is changed in a table, and when, is for tests/integration/test_tables.py: no item of one is edited or vanishes alone.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from eosingest.protocol.source import Split
from eosingest.sources.postgres.ranges import KeyRange
from eosingest.sources.registry import Kind
from tests.support.postgres import Postgres
from tests.support.sources.subject import Plain

_ROWS = 24  # of a range


Key = tuple[str, ...]


class Table(Plain):
    """A table with a key of whole numbers, whose text is sent: `server` is set before it is created."""

    server: Postgres
    needs_spark = False
    kind: Kind | None = None
    value = "v"
    key: tuple[str, ...] = ("id",)
    columns = "id bigint primary key, v text not null"
    item = ""  # what its ranges are called by, if not by the table

    def __init__(self, folder: Path) -> None:
        self._name = f"public.t{uuid.uuid4().hex[:12]}"
        self._exists = False
        self._ranges = 2

    def create(self) -> None:
        self.server.execute(f"create table {self._name} ({self.columns})")
        self._exists = True
        for number in range(self._ranges):
            self._fill(number)

    def key_of(self, row: int) -> Key:
        """Return the key of a row, as PostgreSQL's texts."""
        return (str(row * 3 - 7),)

    def _fill(self, number: int) -> None:
        rows = range(number * _ROWS, (number + 1) * _ROWS)
        keys = {row: ", ".join(f"'{part}'" for part in self.key_of(row)) for row in rows}
        values = ", ".join(f"({keys[row]}, 'row-{row:05}{'x' * (row % 7)}')" for row in rows)
        self.server.execute(f"insert into {self._name} values {values}")

    def spec(self) -> str:
        key = self.key[0] if len(self.key) == 1 else list(self.key)
        return (
            f'[source]\nformat = "postgres"\n{self.server.source()}{self.read()}\nkey = {json.dumps(key)}\n'
            f'split_rows = {_ROWS}\n[record]\nvalue = "{self.value}"\n'
        )

    def read(self) -> str:
        """Return the line of a spec that says what is read."""
        return f'table = "{self._name}"'

    def grow(self) -> None:
        self._fill(self._ranges)
        self._ranges += 1

    def edit(self, row: bytes, *, unseen: bool) -> None:
        raise NotImplementedError

    def touch(self, item: str) -> None:
        """Write a row anew as it is: its version and its place in the table change, and nothing of it."""
        ((row,),) = self.server.execute(f"update {self._name} set v = v where v ~ '^row-00000' returning 1")
        assert row == 1

    def remove(self, item: str) -> None:
        """Drop the table, with all of its ranges. A run that has ended in this process may still be connected."""
        if self._exists:
            self.server.disconnect_all()
            self.server.execute(f"drop table {self._name}")
            self._exists = False

    def items(self) -> list[str]:
        return sorted(self._item(after) for after, _ in self._bounds())

    def rows(self) -> list[bytes]:
        order = sorted(self._bounds(), key=lambda bounds: self._item(bounds[0]))
        return [row for bounds in order for row in self._rows_between(*bounds)]

    def rows_of(self, split: Split) -> list[bytes]:
        assert isinstance(split, KeyRange)
        return self._rows_between(split.after, split.upto)

    def is_covered(self, splits: list[Split]) -> bool:
        (split,) = splits
        assert isinstance(split, KeyRange)
        return (split.after, split.upto) in self._bounds()

    def _item(self, after: Key | None) -> str:
        return f"{self.item or self._name}>{','.join(after or ())}"

    def _bounds(self) -> list[tuple[Key | None, Key]]:
        ends = [self.key_of(number * _ROWS - 1) for number in range(1, self._ranges + 1)]
        return list(zip([None, *ends], ends, strict=False))

    def _rows_between(self, after: Key | None, upto: Key) -> list[bytes]:
        rows = [self.key_of(row) for row in range(self._ranges * _ROWS)]
        begin = 0 if after is None else rows.index(after) + 1
        wanted = rows[begin : rows.index(upto) + 1]
        keys = ", ".join(f'"{name}"::text' for name in self.key)
        found = {tuple(key): row for *key, row in self.server.execute(f"select {keys}, v from {self._name}")}
        return [found[key].encode() for key in wanted if key in found]


class Query(Table):
    """A query over the table, straight from the reader: rows are locked and found by its plan."""

    item = "query"

    def read(self) -> str:
        return f"query = \"select v || '' as v, id from {self._name} where v <> '' -- all\""


class Incremental(Table):
    """A table of a job that goes on behind what it sent: its keys come from a sequence."""

    columns = "id bigint generated always as identity primary key, v text not null"

    def key_of(self, row: int) -> Key:
        return (str(row + 1),)

    def _fill(self, number: int) -> None:
        rows = range(number * _ROWS, (number + 1) * _ROWS)
        values = ", ".join(f"('row-{row:05}{'x' * (row % 7)}')" for row in rows)
        self.server.execute(f"insert into {self._name} (v) values {values}")

    def read(self) -> str:
        return f"{super().read()}\nincremental = true"


class TableByText(Table):
    """The same with a key of texts, which sort by their bytes, through Spark SQL."""

    needs_spark = True
    value = "concat(v, '')"
    key = ("it's",)
    columns = '"it\'s" varchar(40) collate "C" primary key, v text not null'

    def key_of(self, row: int) -> Key:
        return (f"{'Z' if row < 20 else 'a' if row < 40 else 'ä'}{row:04}",)


class TableByTwo(TableByText):
    """The same with a key of two columns, of which neither tells rows apart: texts by their bytes, numbers by value."""

    key = ("region", "no")
    columns = 'region text collate "C", no int, v text not null, primary key (region, no)'

    def key_of(self, row: int) -> Key:
        region = min(row // 20, 2)
        return "Zaä"[region], str((row - 20 * region) * 7 - 30)
