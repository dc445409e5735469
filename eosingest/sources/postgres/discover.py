"""Resolves a table's address, `postgresql://user@host:5432/database/table`, for `init --from`: its key and its columns.

    address ─▶ the catalogue: the tables of that name ─▶ its unique indexes, each tried as a key ─▶ Look

There is no spec yet, so the password comes from libpq (PGPASSWORD, ~/.pgpass). Reads no row.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from eosingest.errors import FatalError, SpecError, TemporaryError, listed
from eosingest.sources.postgres.catalogue import KEYS_MAY_BE, NOT_NULL, Found, find
from eosingest.sources.postgres.connection import (
    READ_ONLY,
    check_url,
    conninfo_of,
    explained,
    gives_password,
    settle,
    transaction,
)
from eosingest.sources.postgres.incremental import sequence_of
from eosingest.sources.postgres.ranges import Relation
from eosingest.sources.postgres.source import as_one_range

_SCHEMES = ("postgresql://", "postgres://")
_AS_IN = "postgresql://reader@db:5432/shop/public.orders"
_HINTS = {
    "source-unreadable": "nothing was written; is the server there, and is the address right?",
    "postgres-refused": "nothing was written; the password comes from PGPASSWORD or ~/.pgpass, and the role needs SELECT on the"
    " table",
    "source-columns": "nothing was written; a query that renames them can read this table: begin with: eosingest init",
}
_SHOWN = 20  # names of tables, in messages
_PARTS = re.compile(r'"(?:[^"]|"")*"|[^"]+|"')
_OWN = "n.nspname <> 'information_schema' and n.nspname !~ '^pg_'"
_TABLES = f"""
select format('%%I.%%I', n.nspname, c.relname), c.relkind::text
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v', 'm', 'f') and {_OWN}
  and %(name)s::text in (c.relname::text, n.nspname || '.' || c.relname,
                         format('%%I', c.relname), format('%%I.%%I', n.nspname, c.relname))
order by 1
"""
_ALL = f"""
select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p') and not c.relispartition and {_OWN}
  and has_schema_privilege(n.oid, 'USAGE') and has_table_privilege(c.oid, 'SELECT')
order by 1
"""
# The columns of unique indexes over NOT NULL columns: first the primary key, then indexes with the fewest columns.
_KEYS = f"""
select array_agg(a.attname::text order by n)
from pg_index i cross join generate_series(1, i.indnkeyatts) n
left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[n - 1]
where i.indrelid = to_regclass(%s) and i.indisunique and i.indisvalid and i.indpred is null
group by i.indexrelid, i.indisprimary, i.indnkeyatts having bool_and(coalesce({NOT_NULL}, false))
order by i.indisprimary desc, i.indnkeyatts, i.indexrelid
"""


@dataclass(frozen=True)
class Address:
    """The database, as a URL, and the table that a text names in it."""

    url: str
    table: str

    def __str__(self) -> str:
        database, mark, parameters = self.url.partition("?")
        return f"{database}/{quote(self.table, safe='')}{mark}{parameters}"


@dataclass(frozen=True)
class Look:
    """The result for a table. `incremental`: whether a job may resume after its last key."""

    relation: Relation
    incremental: bool
    notes: tuple[str, ...]


def address_of(text: str) -> Address | None:
    """Return the address in a text, None if it is no `postgresql://…`. Raises SpecError, which does not repeat a password."""
    if not text.lower().startswith(_SCHEMES):
        return None
    if gives_password(text):
        raise SpecError(
            "the address has a password in it, which would be kept in the shell's history and in the spec",
            code="credentials-in-address",
            hint="nothing was written; leave it out, and give it as PGPASSWORD or in ~/.pgpass",
        )
    try:
        check_url(text)
    except ValueError as error:
        raise _bad_address(str(error)) from None
    path, mark, parameters = text.partition("?")
    _, _, place = path.partition("://")
    server, database, table, *more = [*place.split("/"), "", ""]
    if not database or any(more) or "\0" in unquote(table):
        raise _bad_address("must name a database and one table of it")
    return Address(f"postgresql://{server}/{database}{mark}{parameters}", unquote(table))


def _bad_address(why: str) -> SpecError:
    return SpecError(f"the address {why}", code="bad-address", hint=f"nothing was written; as in {_AS_IN}")


def look(address: Address) -> Look:
    """Query the server. Raises TemporaryError if none answers, FatalError if it refuses, SpecError for no usable table."""
    with (
        _with_hint(),
        explained(f"{address} could not be looked up"),
        transaction(conninfo_of(address.url), READ_ONLY) as connection,
    ):
        settle(connection)
        found = _keyed(connection, _table(connection, address))
        connection.execute(f"select * from {found.relation.name} limit 0".encode())  # requires the right to read it
        return Look(found.relation, _may_go_on(connection, found), tuple(_notes(found)))


@contextlib.contextmanager
def _with_hint() -> Iterator[None]:
    """Give errors about the server a hint for `init`, which has no spec yet."""
    try:
        yield
    except (TemporaryError, FatalError, SpecError) as error:
        hint = _HINTS.get(error.code, error.hint.replace("nothing was sent", "nothing was written"))
        raise type(error)(error.message.removeprefix("source.url: "), code=error.code, hint=hint) from error


def _table(connection: Any, address: Address) -> str:
    """Return the name of the table as in SQL. The address may have it plain, or as in SQL: quoted, or in capitals."""
    if not address.table:
        raise _no_table(f"the address names no table; {_readable(connection)}")
    for name in dict.fromkeys((address.table, _as_in_sql(address.table))):
        found = connection.execute(_TABLES, {"name": name}).fetchall()
        if len(found) > 1:
            names = listed([name for name, _ in found], _SHOWN)
            raise _no_table(f"there are several tables {address.table}: {names}")
        if found:
            return _refuse_view(*found[0])
    raise _no_table(f"there is no table {address.table} in this database; {_readable(connection)}")


def _as_in_sql(text: str) -> str:
    """Return a name as SQL reads its parts: quoted ones unchanged, others in lower case."""
    return "".join(
        part[1:-1].replace('""', '"') if part.startswith('"') else part.lower() for part in _PARTS.findall(text)
    )


def _refuse_view(name: str, kind: str) -> str:
    if kind == "f":
        raise SpecError(
            f"{name} is a foreign table: it has no snapshot",
            code="source-no-table",
            hint="nothing was written; name the table in the database that holds it",
        )
    if kind not in ("r", "p"):
        query = json.dumps(f"select * from {name}", ensure_ascii=False)
        raise SpecError(
            f"{name} is a view, and has no key",
            code="source-no-table",
            hint=f"nothing was written; begin with: eosingest init; and give [source] query = {query} and a key",
        )
    return name


def _no_table(text: str) -> SpecError:
    return SpecError(text, code="source-table-missing", hint=f"nothing was written; name one table, as in {_AS_IN}")


def _readable(connection: Any) -> str:
    names = [name for (name,) in connection.execute(_ALL).fetchall()]
    return f"this role may read {listed(names, _SHOWN) or 'none'}"


def _keyed(connection: Any, table: str) -> Found:
    """Return the table with the best of its keys: one that gives ranges, else the first one. Raises SpecError for none."""
    fit = []
    for (key,) in connection.execute(_KEYS, (table,)).fetchall():
        try:
            fit.append(find(connection, table, key))
        except SpecError as error:
            if error.code != "source-key-type":
                raise
    if not fit:
        raise SpecError(
            f"{table} has no primary key and no unique index over columns that are NOT NULL and each {KEYS_MAY_BE}",
            code="source-key-missing",
            hint='nothing was written; begin with: eosingest init; and give [source] key = "…": without such an index each run'
            " proves that it is unique",
        )
    return next((found for found in fit if found.walkable and found.unique), fit[0])


def _may_go_on(connection: Any, found: Found) -> bool:
    if len(found.relation.keys) > 1:
        return False
    with contextlib.suppress(SpecError):
        sequence_of(connection, found.relation)
        return True
    return False


def _notes(found: Found) -> Iterator[str]:
    relation = found.relation
    if not found.walkable:
        yield as_one_range(found)
    if not found.unique:
        yield f"each run proves that {relation.key_names} is unique, which reads the table: no index does at all times"
    texts = [f"{column.name} ({column.type})" for column in relation.columns if column.as_text]
    if texts:
        yield f"read as PostgreSQL's text of the value: {listed(texts, _SHOWN)}"
