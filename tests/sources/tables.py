"""Tables of a real PostgreSQL as subjects of the conformance suite: rows are read again here by psycopg.

What is changed in a table, and when, is for tests/integration/test_tables.py: no item of one is edited or vanishes alone.
"""

from __future__ import annotations

import uuid
from pathlib import Path

from eosingest.protocol.source import Split
from eosingest.sources.postgres.ranges import KeyRange
from eosingest.sources.registry import Kind
from tests.support.postgres import Postgres

_ROWS = 24  # of a range


class Table:
    """A table with a key of whole numbers, whose text is sent: `server` is set before it is created."""

    server: Postgres
    needs_spark = False
    kind: Kind | None = None
    value = "v"
    key = "id"
    columns = "id bigint primary key, v text not null"

    def __init__(self, folder: Path) -> None:
        self._name = f"public.t{uuid.uuid4().hex[:12]}"
        self._exists = False
        self._ranges = 2

    def create(self) -> None:
        self.server.execute(f"create table {self._name} ({self.columns})")
        self._exists = True
        for number in range(self._ranges):
            self._fill(number)

    @property
    def _quoted(self) -> str:
        return f'"{self.key}"'

    def key_of(self, row: int) -> str:
        """Return the key of a row, as PostgreSQL's text."""
        return str(row * 3 - 7)

    def _fill(self, number: int) -> None:
        rows = range(number * _ROWS, (number + 1) * _ROWS)
        values = ", ".join(f"('{self.key_of(row)}', 'row-{row:05}{'x' * (row % 7)}')" for row in rows)
        self.server.execute(f"insert into {self._name} values {values}")

    def spec(self) -> str:
        return (
            f'[source]\nformat = "postgres"\n{self.server.source()}table = "{self._name}"\nkey = "{self.key}"\n'
            f'split_rows = {_ROWS}\n[record]\nvalue = "{self.value}"\n'
        )

    def grow(self) -> None:
        self._fill(self._ranges)
        self._ranges += 1

    def edit(self, row: bytes, *, unseen: bool) -> None:
        raise NotImplementedError

    def touch(self, item: str) -> None:
        """Write a row anew as it is: its version and its place in the table change, and nothing of it."""
        self.server.execute(f"update {self._name} set v = v where {self._quoted} = '{self.key_of(0)}'")

    def remove(self, item: str) -> None:
        """Drop the table, with all of its ranges. A run that has ended in this process may still be connected."""
        if self._exists:
            self.server.disconnect_all()
            self.server.execute(f"drop table {self._name}")
            self._exists = False

    def items(self) -> list[str]:
        return sorted(f"{self._name}>{after or ''}" for after, _ in self._bounds())

    def rows(self) -> list[bytes]:
        order = sorted(self._bounds(), key=lambda bounds: f">{bounds[0] or ''}")
        return [row for bounds in order for row in self._rows_between(*bounds)]

    def rows_of(self, split: Split) -> list[bytes]:
        assert isinstance(split, KeyRange)
        return self._rows_between(split.after, split.upto)

    def is_covered(self, splits: list[Split]) -> bool:
        (split,) = splits
        assert isinstance(split, KeyRange)
        return (split.after, split.upto) in self._bounds()

    def _bounds(self) -> list[tuple[str | None, str]]:
        ends = [self.key_of(number * _ROWS - 1) for number in range(1, self._ranges + 1)]
        return list(zip([None, *ends], ends, strict=False))

    def _rows_between(self, after: str | None, upto: str) -> list[bytes]:
        rows = [self.key_of(row) for row in range(self._ranges * _ROWS)]
        begin = 0 if after is None else rows.index(after) + 1
        wanted = rows[begin : rows.index(upto) + 1]
        found = dict(self.server.execute(f"select {self._quoted}::text, v from {self._name}"))
        return [found[key].encode() for key in wanted if key in found]


class TableByText(Table):
    """The same with a key of texts, which sort by their bytes, through Spark SQL."""

    needs_spark = True
    value = "concat(v, '')"
    key = "it's"
    columns = '"it\'s" varchar(40) collate "C" primary key, v text not null'

    def key_of(self, row: int) -> str:
        return f"{'Z' if row < 20 else 'a' if row < 40 else 'ä'}{row:04}"
