"""Inspects a query: which columns it has, which relations it reads, and whether ranges of its key can be cut without a sort.

snapshot.py uses it with two connections. The first locks all relations of the query before the holder takes the snapshot,
since a truncated table is empty for earlier snapshots too. The server refuses a statement that is no query, or that writes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eosingest.errors import SpecError, TemporaryError
from eosingest.sources.postgres.catalogue import Found, ResultColumn, columns_of, keys_of, refuse_encoding
from eosingest.sources.postgres.connection import one_line
from eosingest.sources.postgres.keyset_sql import key_order, key_values
from eosingest.sources.postgres.ranges import Relation

NAME, SAID = "query", "the query"  # in names of ranges, and in messages

_DATABASE = """
select (select system_identifier from pg_control_system()) || '/' || oid, pg_encoding_to_char(encoding)
from pg_database where datname = current_database()
"""
_TYPES = """
select format_type(w.oid, w.mod), b.typname, b.typnamespace = 'pg_catalog'::regnamespace
from unnest(%s::oid[], %s::int[]) with ordinality as w (oid, mod, n) join pg_type b on b.oid = w.oid order by n
"""
# Relations that a connection has locked, with the texts of views, and whether their parent is locked, too.
_LOCKED = """
with locked as materialized (
  select distinct relation as oid from pg_locks
  where pid = %s and locktype = 'relation' and database = (select oid from pg_database where datname = current_database())
)
select c.oid, c.relkind::text, format('%%I.%%I', n.nspname, c.relname),
       exists (select from pg_inherits i where i.inhrelid = c.oid and i.inhparent in (select oid from locked)),
       case when c.relkind = 'v' then pg_get_viewdef(c.oid) else '' end
from locked join pg_class c using (oid) join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
order by c.oid
"""
_VOLATILE = """
select format('%%s.%%s', n.nspname, p.proname), n.nspname = 'pg_catalog',
  format('%%I.%%I(%%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid))
from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where p.provolatile = 'v' and (n.nspname, p.proname) in (select * from unnest(%s::text[], %s::text[])) limit 1
"""
_IDENTIFIER = r'(?:"(?:[^"]|"")+"|[a-z_][a-z0-9_$]*)'
_CALL = re.compile(rf"(?:({_IDENTIFIER})\.)?({_IDENTIFIER})\(")
_TEXT = re.compile(r"'(?:[^']|'')*'")
_CLOCK = re.compile(
    r"\b(?:CURRENT_DATE|CURRENT_TIME|CURRENT_TIMESTAMP|LOCALTIME|LOCALTIMESTAMP|now\(|transaction_timestamp\(|statement_timestamp\()"
)
# Plans of these nodes return the rows after a key without computing those before it.
_STREAMED = frozenset(
    {
        "Append",
        "Index Only Scan",
        "Index Scan",
        "Memoize",
        "Merge Append",
        "Merge Join",
        "Nested Loop",
        "Result",
        "Subquery Scan",
    }
)
# Small tables are read in these ways despite an index. Disabled, they are in the plan only if there is none.
_DEAR = ("sort", "seqscan", "material", "hashagg", "hashjoin")
# SQLSTATEs of a faulty query: syntax and names, forbidden actions, parameters without a value.
_WRONG = ("42", "0A", "25", "22", "08P01")


@dataclass(frozen=True)
class Locked:
    """A relation that is locked. `is_part`: of another locked one. `text` is that of a view."""

    oid: int
    kind: str
    name: str
    is_part: bool
    text: str


def lock(connection: Any, query: str, *, hides_keys: bool) -> Any:
    """Lock all that a query reads in ACCESS SHARE MODE, by executing it for no row; return its result.

    Before that it must be one statement alone: then it cannot end the brackets that it is put into. Raises SpecError for a
    text that is no query, or that writes. `hides_keys` as in `connection.one_line`.
    """
    with _explained(hides_keys=hides_keys):
        alone = connection.pgconn.prepare(b"", query.encode())
        if alone.error_message:
            raise _errors().error_from_result(alone)
        return connection.execute(f"select * from (\n{query}\n) as t limit 0".encode(), binary=True).pgresult


def locked(connection: Any, pid: int) -> list[Locked]:
    """Return the relations that a process has locked; `connection` may be its own or another one."""
    return [Locked(*row) for row in connection.execute(_LOCKED, (pid,)).fetchall()]


def backend_of(connection: Any) -> int:
    """Return the process that serves the connection: with a pooler, libpq knows another number."""
    return int(connection.execute("select pg_backend_pid()").fetchone()[0])


def find_query(connection: Any, query: str, key: Sequence[str], held: Sequence[Locked], *, hides_keys: bool) -> Found:
    """Look up a query in the connection's snapshot; another connection has locked the relations that it reads (`held`).

    Raises SpecError if it cannot be read, TemporaryError if it now reads other relations. `hides_keys` as in `lock`.
    """
    result = lock(connection, query, hides_keys=hides_keys)
    own = locked(connection, backend_of(connection))
    if [one.oid for one in own] != [one.oid for one in held]:
        raise TemporaryError(
            f"source.query: what the query reads has changed while it was locked: {_names(held)}, and then {_names(own)}",
            code="source-unreadable",
            hint="nothing was sent by this run; run again",
        )
    if foreign := next((one.name for one in own if one.kind == "f"), None):
        raise SpecError(
            f"source.query: {foreign} is a foreign table: it has no snapshot",
            code="source-no-table",
            hint="nothing was sent; correct [source]",
        )
    database, encoding = connection.execute(_DATABASE).fetchone()
    refuse_encoding(SAID, encoding)
    found = _columns(connection, result)
    relation = Relation(
        NAME, f"{database}/{_digest(query, own)}", columns_of(SAID, found), keys_of(SAID, found, key), query
    )
    _refuse_unstable(connection, query)
    return Found(relation, not_null=False, unique=False, walkable=_is_walkable(connection, relation))


def _names(relations: Sequence[Locked]) -> str:
    return ", ".join(one.name for one in relations) or "nothing"


def _digest(query: str, relations: Sequence[Locked]) -> str:
    """Return the digest of a query: its text, the texts of views, and the oids that it reads (not of parts, which change)."""
    texts = json.dumps([query, *(one.text for one in relations if one.text)]).encode()
    oids = "+".join(str(one.oid) for one in relations if not one.is_part)
    return f"{hashlib.blake2b(texts, digest_size=8).hexdigest()}/{oids}"


def _columns(connection: Any, result: Any) -> list[ResultColumn]:
    names = [result.fname(number).decode() for number in range(result.nfields)]
    oids = [result.ftype(number) for number in range(result.nfields)]
    types = connection.execute(_TYPES, (oids, [result.fmod(number) for number in range(result.nfields)])).fetchall()
    return [ResultColumn(name, *of) for name, of in zip(names, types, strict=True)]


def _refuse_unstable(connection: Any, query: str) -> None:
    """Raise SpecError if the plan may give other rows each time: each task and each run executes the query again."""
    rows = connection.execute(f"explain (verbose, costs off) select * from (\n{query}\n) as t".encode()).fetchall()
    text = _TEXT.sub("''", "\n".join(line for (line,) in rows))
    if clock := _CLOCK.search(text):
        raise _unstable(clock[0].rstrip("("), "give a time as a constant")
    if any("Sampling:" in line and "REPEATABLE" not in line for line in text.splitlines()):
        raise _unstable("TABLESAMPLE", "give it REPEATABLE (…)")
    calls = {tuple(_bare(part) for part in (call[1] or "pg_catalog", call[2])) for call in _CALL.finditer(text)}
    schemas, names = [schema for schema, _ in calls], [name for _, name in calls]
    if found := connection.execute(_VOLATILE, (schemas, names)).fetchone():
        name, of_the_system, signature = found
        own = "" if of_the_system else f", or, if it does not: ALTER FUNCTION {signature} STABLE"
        raise _unstable(f"{name}()", f"leave it out{own}")


def _bare(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _unstable(what: str, hint: str) -> SpecError:
    return SpecError(
        f"source.query: {what} may give other rows each time that the query is computed, and each task computes it again",
        code="source-query-unstable",
        hint=f"nothing was sent; {hint}",
    )


def _is_walkable(connection: Any, relation: Relation) -> bool:
    """Say whether an index returns the rows after any key, by ascending key, without computing the others."""
    first = f"select {', '.join(key_values(relation))} from {relation.sql} as t order by {key_order(relation)} limit 1"
    for setting in _DEAR:
        connection.execute(f"set enable_{setting} = off".encode())
    (plan,) = connection.execute(f"explain (format json) {first}".encode()).fetchone()
    for setting in _DEAR:
        connection.execute(f"reset enable_{setting}".encode())
    top = plan[0]["Plan"]
    return top["Node Type"] == "Limit" and all(_is_streamed(node) for node in _below(top))


def _below(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for below in node.get("Plans", ()):
        yield below
        yield from _below(below)


def _is_streamed(node: Mapping[str, Any]) -> bool:
    kind = node["Node Type"]
    return kind in _STREAMED or (kind == "Aggregate" and node.get("Strategy") == "Sorted")


@contextlib.contextmanager
def _explained(*, hides_keys: bool) -> Iterator[None]:
    """Turn the server's errors for a wrong query into an error of the spec."""
    try:
        yield
    except _errors().Error as error:
        state = error.sqlstate or ""
        if state.startswith(_WRONG) and state != "42501":  # a missing right is no fault of the query
            raise _wrong(one_line(error, hides_keys=hides_keys)) from None
        raise


def _errors() -> Any:
    from psycopg import errors

    return errors


def _wrong(text: str) -> SpecError:
    return SpecError(
        f"source.query: PostgreSQL refused: {text}",
        code="source-query",
        hint="nothing was sent; give one SELECT (or WITH … SELECT) that only reads, with names of tables as schema.table",
    )
