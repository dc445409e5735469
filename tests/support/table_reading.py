"""A table of a real PostgreSQL read in this process, by the source and the reader that a run has: no broker, no JVM."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from eosingest.protocol.source import POSITION_KIND_KEY, Item, Position
from eosingest.sources.postgres.connection import conninfo
from eosingest.sources.postgres.reading.reader import RowsReader
from eosingest.sources.postgres.source import TableSource
from eosingest.spark.python_scan import PythonSplit
from tests.support.postgres import PASSWORD, Postgres

KEY_COLUMN = "__eosingest_key"


def table_of(server: Postgres, **given: Any) -> Any:
    """Return what a spec says in `[source]`: `public.t` by the key `id`, or as `given`."""
    said = {
        "url": server.url,
        "password": PASSWORD,
        "table": "public.t",
        "query": None,
        "incremental": False,
        "key": ("id",),
        "split_rows": 100,
        "others": SimpleNamespace(resolve=lambda secrets, where: secrets),
    }
    return SimpleNamespace(**{**said, **given})


def source_of(server: Postgres, **given: Any) -> TableSource:
    return TableSource(table_of(server, **given), lambda: None)


def read(
    server: Postgres, item: Item, position: Position | None = None, *, again: bool = False
) -> list[dict[str, Any]]:
    """Return the rows of a range behind a position, and with the row at it where not all of its records were sent."""
    committed: Any = None
    if position is not None:
        committed = SimpleNamespace(
            position=position, position_kind=POSITION_KIND_KEY, row_records=1 if again else None
        )
    reader = RowsReader(conninfo(table_of(server)))
    batches = reader.read(PythonSplit(0, item, None), committed)  # type: ignore[arg-type]
    return [row for batch in batches for row in batch.to_pylist()]
