"""Tables of a real PostgreSQL: read in this process, by the source and the reader that a run has; and the specs of jobs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from eosingest.protocol.source import Item, Position, PositionKind
from eosingest.sources.postgres.connection import conninfo
from eosingest.sources.postgres.reading.reader import RowsReader
from eosingest.sources.postgres.source import TableSource
from eosingest.spark.python_scan import PythonSplit
from tests.support.harness import Job
from tests.support.postgres import PASSWORD, Postgres

KEY_COLUMN = "__eosingest_key"
_SPEC = """\
name = "{name}"
[source]
format = "postgres"
SOURCE
[record]
value = "VALUE"
[sink]
bootstrap_servers = "{servers}"
topic = "{name}"
create = {{ partitions = PARTITIONS }}
[transaction]
timeout = "10s"
max_records = MAX_RECORDS
[spark]
master = "local[1]"
"""


def write_table_spec(
    job: Job,
    server: Postgres,
    source: str,
    value: str = "v",
    *,
    partitions: int = 2,
    max_records: int = 5,
) -> None:
    """Write the spec of a job that reads a table; `source` has the lines of `[source]`, and what stands before `[record]`."""
    filled = _SPEC.replace("SOURCE", f"{server.source()}{source.rstrip()}".replace("{", "{{").replace("}", "}}"))
    for name, text in (("VALUE", value), ("PARTITIONS", str(partitions)), ("MAX_RECORDS", str(max_records))):
        filled = filled.replace(name, text)
    job.write_spec(filled)


def table_of(server: Postgres, **given: Any) -> Any:
    """Return what a spec says in `[source]`: `public.t` by the key `id`, or as `given`."""
    said = {
        "url": server.url,
        "password": PASSWORD,
        "table": "public.t",
        "query": None,
        "incremental": False,
        "hide_keys": False,
        "key": ("id",),
        "split_rows": 100,
        "others": SimpleNamespace(resolve=lambda secrets, where: secrets),
    }
    return SimpleNamespace(**{**said, **given})


def source_of(server: Postgres, **given: Any) -> TableSource:
    return TableSource(table_of(server, **given), lambda: None)


def read(
    server: Postgres, item: Item, position: Position | None = None, *, again: bool = False, **given: Any
) -> list[dict[str, Any]]:
    """Return the rows of a range behind a position, and with the row at it where not all of its records were sent.

    `given` as in `table_of`.
    """
    committed: Any = None
    if position is not None:
        committed = SimpleNamespace(position=position, position_kind=PositionKind.KEY, row_records=1 if again else None)
    reader = RowsReader(conninfo(table_of(server, **given)))
    batches = reader.read(PythonSplit(0, item, None), committed)  # type: ignore[arg-type]
    return [row for batch in batches for row in batch.to_pylist()]
