"""The table of files: format × codec × encoding × damage × odd content, and what each file says by an independent reader.

    table_text.py, _rows.py, _columns.py, _avro.py, _whole.py, _xml.py
        ─▶ table() ─▶ test_table.py: the whole reading path, exact or refused
                   └▶ test_mends_taken_out.py: one check off, one case wrong

Nothing of eosingest is asked for an expectation (independent.py). Every case is computed, from fixed seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tests.support.reading.independent import Columns, ddl, rows

ONE_SPLIT = 1 << 20


@dataclass(frozen=True)
class Case:
    """Files, how they are read, and what must come of it.

    Without more the rows are those of the independent reader, and where it refuses a file the run must. `may_refuse`: it may
    do so in any case, for a reason that docs/reading.md has. `refused`: it must, whatever the reader says. `habit`: the rows
    are `expected`, and these words stand in docs/reading.md. `together`: cases of one such word have one inferred schema, and
    may be read at once.
    """

    id: str
    format: str
    files: Callable[[], Mapping[str, bytes]]
    columns: Columns | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    split_size: int = ONE_SPLIT
    schema: str | None = None
    value: str | None = None
    where: str | None = None
    expected: tuple[Any, ...] | None = None
    habit: str = ""
    may_refuse: bool = False
    refused: bool = False
    together: str = ""
    compression: str | None = None

    @property
    def ddl(self) -> str | None:
        """The schema that is given to Spark, None: it is inferred, or the lines of text."""
        if self.schema is not None or self.columns is None:
            return self.schema or None
        return ddl(self.columns)

    def expectation(self) -> list[Any] | None:
        """Return the rows of all files in the order of their names; None where the run must not end with exit 0."""
        if self.refused:
            return None
        if self.expected is not None:
            return list(self.expected)
        found: list[Any] = []
        for name, data in sorted(self.files().items()):
            mine = rows(self.format, name, data, self.columns, self.options) if data else []
            if mine is None:
                return None
            found += mine
        return found


@cache
def table() -> tuple[Case, ...]:
    """Return all cases, each with an id of its own."""
    from tests.support.reading import (
        table_avro,
        table_columns,
        table_filters,
        table_rows,
        table_text,
        table_whole,
        table_xml,
    )

    of_rows = [*table_text.cases(), *table_rows.cases(), *table_whole.cases()]
    of_columns = [*table_columns.cases(), *table_filters.cases(), *table_avro.cases()]
    found: list[Case] = [*of_rows, *of_columns, *table_xml.cases()]
    assert len({case.id for case in found}) == len(found), _doubled(found)
    return tuple(found)


def _doubled(cases: list[Case]) -> list[str]:
    ids = [case.id for case in cases]
    return sorted({each for each in ids if ids.count(each) > 1})


def named(*prefixes: str) -> Iterator[Case]:
    """Yield the cases whose ids begin so."""
    return (case for case in table() if case.id.startswith(prefixes))


def one(name: str, data: bytes) -> Callable[[], Mapping[str, bytes]]:
    """Return what makes a case's single file."""
    return lambda: {name: data}
