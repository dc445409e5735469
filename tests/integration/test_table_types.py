"""Every type of PostgreSQL as a task reads it, beside psycopg: exact where Arrow has it so, else the server's own text."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from eosingest.sources.postgres.connection import conninfo
from eosingest.sources.postgres.reading.reader import RowsReader
from eosingest.sources.postgres.source import TableSource
from eosingest.spark.python_scan import PythonSplit
from tests.support.postgres import PASSWORD, Postgres, running_postgres

# Type: values, as SQL. What is not in EXACT is compared as text.
VALUES: dict[str, list[str]] = {
    "boolean": ["true", "false"],
    "smallint": ["-32768", "32767"],
    "integer": ["-2147483648", "2147483647"],
    "bigint": ["-9223372036854775808", "9223372036854775807"],
    "real": ["'NaN'", "'-Infinity'", "1e-45", "3.4028235e38", "0.1"],
    "double precision": ["'NaN'", "'Infinity'", "5e-324", "1.7976931348623157e308", "0.1", "'-0'"],
    "text": ["''", "'a\\x ''\"'", "E'line\\nbreak\\t\\u00fc\\U0001F600'"],
    "varchar(5)": ["''", "'ab   '"],
    "char(5)": ["'ab'", "''"],
    "bytea": ["'\\x00ff5c'", "''"],
    "numeric": ["'NaN'", "'Infinity'", "1e-20", "123456789012345678901234567890.5", "1.10"],
    "numeric(10,2)": ["1.1", "-99999999.99"],
    "money": ["'-1234.5'"],
    "date": ["'infinity'", "'0044-03-15 BC'", "'2026-11-25'", "'10000-01-01'"],
    "timestamp": [
        "'-infinity'",
        "'2026-11-25 24:00'",
        "'1900-01-01 00:00:00.000001'",
        "'294276-12-31 23:59:59.999999'",
    ],
    "timestamptz": ["'infinity'", "'2026-03-29 02:30:00 Europe/Berlin'", "'1883-11-18 12:00:00+00'"],
    "time": ["'24:00'", "'00:00:00.000001'"],
    "timetz": ["'12:00+05:30'"],
    "interval": ["'1 year -2 mons 3 days 04:05:06.7'"],
    "uuid": ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"],
    "json": ['\'{"b": 1,  "b": 2}\''],
    "jsonb": ['\'{"b": 1,  "a": [1.10]}\''],
    "inet": ["'10.0.0.1/8'"],
    "cidr": ["'10.0.0.0/8'"],
    "macaddr": ["'08-00-2b-01-02-03'"],
    "bit(3)": ["B'101'"],
    "varbit": ["B'1'"],
    "oid": ["4294967295"],
    "int[]": ["'{{1,2},{NULL,4}}'", "'[0:1]={1,2}'"],
    "text[]": ["array['a,b', '\"', NULL, '']"],
    "int4range": ["'[1,5]'", "'empty'"],
    "tsvector": ["'a fat cat'"],
    "point": ["'(1.5,-2)'"],
    "public.mood": ["'sad'"],
    "public.pair": ["row(1, 'x,\"y')"],
    "public.positive": ["7"],
    "public.label": ["'short'"],
    "name": ["'n'"],
}


def test_each_value_is_read_as_the_server_says_it() -> None:
    """Breaks when a client rounds, shifts, trims or reinterprets a value; the server's own settings say otherwise."""
    with running_postgres() as server:
        server.execute(
            "create type public.mood as enum ('sad', 'ok')",
            "create type public.pair as (n int, t text)",
            "create domain public.positive as int check (value > 0)",
            "create domain public.label as varchar(20)",
            "alter database postgres set timezone to 'Asia/Kolkata'",
            "alter database postgres set datestyle to 'German'",
            "alter database postgres set intervalstyle to 'iso_8601'",
            "alter database postgres set bytea_output to 'escape'",
            "alter database postgres set extra_float_digits to -10",
        )
        for kind, values in VALUES.items():
            server.execute(
                "drop table if exists public.t",
                f"create table public.t (id int primary key, v {kind})",
                *(f"insert into public.t values ({row}, {value})" for row, value in enumerate([*values, "null"])),
            )
            expected = _expected(server)
            assert _read(server) == expected, kind
            assert _read(server, query=True) == expected, f"{kind} of a query"


def _read(server: Postgres, *, query: bool = False) -> list[Any]:
    """Return the column as a task reads it; bytes and numbers as their text, in PostgreSQL's way."""
    table: Any = SimpleNamespace(
        url=server.url,
        password=PASSWORD,
        table=None if query else "public.t",
        query="select id, v from public.t" if query else None,
        key=("id",),
        split_rows=100,
        incremental=False,
        hide_keys=False,
        others=SimpleNamespace(resolve=lambda given, where: given),
    )
    source = TableSource(table, lambda: None)
    (item,) = source.plan().items
    reader = RowsReader(conninfo(table))
    rows = [value for batch in reader.read(PythonSplit(0, item, None), None) for value in batch.column("v").to_pylist()]  # type: ignore[arg-type]
    return [repr(value) if isinstance(value, float) else value for value in rows]


def _expected(server: Postgres) -> list[Any]:
    """Return the same by psycopg: exact types as Python's values, others as text in UTC and ISO 8601."""
    ((kind,),) = server.execute("select pg_typeof(v)::text from public.t limit 1")
    exact = ("boolean", "smallint", "integer", "bigint", "text", "character varying", "character", "bytea")
    floats = ("real", "double precision")
    value = "v" if kind in (*exact, *floats, "positive", "label") else "v::text"
    settings = (
        "timezone to 'UTC'",
        "datestyle to 'ISO, YMD'",
        "intervalstyle to 'postgres'",
        "extra_float_digits to 1",
    )
    asked = (*(f"set {setting}" for setting in settings), f"select {value} from public.t order by id")
    rows = [found for (found,) in server.execute(*asked)]
    if kind == "real":
        rows = [None if found is None else float(np.float32(found)) for found in rows]
    return [repr(found) if isinstance(found, float) else found for found in rows]
