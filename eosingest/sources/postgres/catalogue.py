"""Reads from the catalogue a table's identity, its columns and how each is read, and whether its key is usable.

It queries an open connection for source.py. A type is read unchanged if ADBC returns each of its values exactly; all others
are read as PostgreSQL's own text of the value, by a cast in the query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eosingest.errors import FatalError, SpecError
from eosingest.sources.postgres.ranges import KEY_COLUMN, KEY_TYPES, Column, KeyColumn, Relation

# In ADBC, date and timestamp lose infinity, money loses its unit and oid its sign; numeric is a text anyway.
EXACT = {
    "bool": "BOOLEAN",
    "int2": "SMALLINT",
    "int4": "INT",
    "int8": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "text": "STRING",
    "varchar": "STRING",
    "bpchar": "STRING",
    "bytea": "BINARY",
}

_RELATION = """
select c.oid, c.relkind, c.relhassubclass, format('%%I.%%I', n.nspname, c.relname),
       (select system_identifier from pg_control_system()) || '/' || d.oid || '/' || c.oid,
       pg_encoding_to_char(d.encoding)
from pg_class c join pg_namespace n on n.oid = c.relnamespace, pg_database d
where c.oid = to_regclass(%s) and d.datname = current_database()
"""
# Whether a column has no null. A constraint of PostgreSQL 18 that is NOT VALID says nothing of the rows that are there.
NOT_NULL = """a.attnotnull and not exists (
  select from pg_constraint v where v.conrelid = a.attrelid and v.contype = 'n' and not v.convalidated
  and v.conkey = array[a.attnum]
)"""
_COLUMNS = f"""
with recursive base as (
  select a.attnum, t.oid, t.typbasetype, t.typtype, t.typname, t.typnamespace
  from pg_attribute a join pg_type t on t.oid = a.atttypid
  where a.attrelid = %(oid)s and a.attnum > 0 and not a.attisdropped
  union all
  select b.attnum, t.oid, t.typbasetype, t.typtype, t.typname, t.typnamespace
  from base b join pg_type t on t.oid = b.typbasetype
  where b.typtype = 'd'
)
select a.attname, format_type(a.atttypid, a.atttypmod), b.typname, b.typnamespace = 'pg_catalog'::regnamespace,
       a.atttypid = b.oid, coalesce(l.collisdeterministic, true), {NOT_NULL}
from pg_attribute a join base b on b.attnum = a.attnum and b.typtype <> 'd' left join pg_collation l on l.oid = a.attcollation
where a.attrelid = %(oid)s and a.attnum > 0 and not a.attisdropped order by a.attnum
"""
_FOREIGN = """
with recursive parts as (
  select %(oid)s::oid as oid
  union
  select i.inhrelid from parts p join pg_inherits i on i.inhparent = p.oid
)
select format('%%I.%%I', n.nspname, c.relname)
from parts join pg_class c using (oid) join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'f' limit 1
"""
# Of each unique index: its columns, the order of each (3: desc nulls first), whether texts are ordered by their bytes.
_UNIQUE = """
select array_agg(a.attname::text order by n), array_agg(i.indoption[n - 1]::int order by n),
       bool_and(i.indcollation[n - 1] in (0, 950) and (o.opcdefault or o.opcname = 'varchar_ops'))
from pg_index i cross join generate_series(1, i.indnkeyatts) n join pg_opclass o on o.oid = i.indclass[n - 1]
left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[n - 1]
where i.indrelid = %s and i.indisunique and i.indisvalid and i.indimmediate and i.indpred is null
group by i.indexrelid
"""
KEYS_MAY_BE = "smallint, integer, bigint, text, varchar, uuid, date, timestamp or timestamptz"
_BOTH_WAYS = ({0}, {3})  # an index is read forwards or backwards, all columns alike


@dataclass(frozen=True)
class ResultColumn:
    """A column as the server reports it; `base` is the name of its type without domains (`is_base`: it is no domain)."""

    name: str
    type: str
    base: str
    built_in: bool
    is_base: bool = True
    deterministic: bool = True
    not_null: bool = False


@dataclass(frozen=True)
class Found:
    """A table or a query, and properties of its key. `walkable`: an index has the order in which the key is read."""

    relation: Relation
    not_null: bool
    unique: bool
    walkable: bool


def find(connection: Any, table: str, key: Sequence[str]) -> Found:
    """Look up a table and its key. Raises SpecError if they are missing or cannot be read, and psycopg's errors."""
    row = connection.execute(_RELATION, (table,)).fetchone()
    if row is None:
        raise _spec(
            "source-table-missing", f"source.table: there is no table {table} (with a role that may use its schema)"
        )
    oid, kind, has_children, name, identity, encoding = row
    if kind not in ("r", "p"):
        raise _spec("source-no-table", f"source.table: {table} is a view or the like, and only tables are read")
    if foreign := connection.execute(_FOREIGN, {"oid": oid}).fetchone():
        raise _spec(
            "source-no-table", f"source.table: {foreign[0]}, a part of {table}, is a foreign table: it has no snapshot"
        )
    refuse_encoding(table, encoding)
    rows = [ResultColumn(*row) for row in connection.execute(_COLUMNS, {"oid": oid}).fetchall()]
    columns, keys = columns_of(table, rows), keys_of(table, rows, key)
    indexes = [found for found in connection.execute(_UNIQUE, (oid,)).fetchall() if set(found[0]) == set(key)]
    relation = Relation(name, identity, columns, keys)
    whole = kind == "p" or not has_children  # children of a table have separate unique indexes, and may take nulls
    unique = bool(indexes) and whole
    walkable = any(of == list(key) and by_bytes and set(ways) in _BOTH_WAYS for of, ways, by_bytes in indexes)
    not_null = {row.name for row in rows if row.not_null}
    return Found(relation, whole and not_null.issuperset(key), unique, walkable)


def refuse_encoding(what: str, encoding: str) -> None:
    """Raise FatalError for a database whose texts may have any encoding."""
    if encoding == "SQL_ASCII":
        raise FatalError(
            f"the database of {what} has no encoding (SQL_ASCII)", code="no-encoding", hint="nothing was sent"
        )


def columns_of(what: str, rows: Sequence[ResultColumn]) -> tuple[Column, ...]:
    """Return how columns are read. Raises SpecError if their names are too alike, or reserved."""
    names = [row.name.lower() for row in rows]
    if len(set(names)) < len(names) or any(name.startswith(KEY_COLUMN) for name in names):
        raise _spec(
            "source-columns",
            f"{what} has columns whose names are equal or differ in case only, or begin with {KEY_COLUMN}",
        )
    read = ((row, EXACT.get(row.base) if row.built_in else None) for row in rows)
    return tuple(Column(row.name, row.type, spark or "STRING", spark is None) for row, spark in read)


def keys_of(what: str, rows: Sequence[ResultColumn], key: Sequence[str]) -> tuple[KeyColumn, ...]:
    """Return the columns of the key. Raises SpecError if one is missing, or cannot be a key."""
    by_name = {row.name: row for row in rows}
    for missing in [each for each in key if each not in by_name]:
        raise _spec("source-key-missing", f"source.key: {what} has no column {missing}; it has {', '.join(by_name)}")
    return tuple(KeyColumn(each, _key_type(what, by_name[each])) for each in key)


def _key_type(what: str, row: ResultColumn) -> str:
    if not row.built_in or not row.is_base or row.base not in KEY_TYPES:
        raise _spec("source-key-type", f"source.key: {row.name} of {what} is {row.type}; a key is {KEYS_MAY_BE}")
    if not row.deterministic:
        raise _spec("source-key-type", f"source.key: the collation of {row.name} of {what} is nondeterministic")
    return row.base


def _spec(code: str, text: str) -> SpecError:
    return SpecError(text, code=code, hint="nothing was sent; correct [source]")
