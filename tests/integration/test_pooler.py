"""Settings of others in sessions of PostgreSQL, by a real pgbouncer, a role or a database: no row lost, no value changed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from eosingest.errors import FatalError, TemporaryError
from eosingest.sources.postgres.discover import address_of, look
from tests.support.harness import Job, assert_done, assert_refused, assert_verified
from tests.support.pgbouncer import Pooler, pooled
from tests.support.postgres import PASSWORD, Postgres, running_postgres
from tests.support.table_reading import read, source_of, write_table_spec

_ROWS = 100
_SEEN = 49  # of them, by a role under the policy
_ROLE = "reader"
_OTHERS = {  # what others set: each changes rows or texts
    "row_security": "on",
    "timezone": "Asia/Kolkata",
    "datestyle": "German",
    "intervalstyle": "iso_8601",
    "extra_float_digits": "-10",
    "bytea_output": "escape",
    "xmlbinary": "hex",
    "xmloption": "document",
    "search_path": "evil, pg_catalog",
    "standard_conforming_strings": "off",
    "transform_null_equals": "on",
    "statement_timeout": "20s",
    "lock_timeout": "1h",
    "idle_in_transaction_session_timeout": "20s",
    "default_transaction_isolation": "serializable",
    "default_transaction_read_only": "off",
    "default_transaction_deferrable": "on",
    "client_encoding": "LATIN1",
    "app.tenant": "7",
}
_IGNORED = {"ignore_startup_parameters": "extra_float_digits,options"}
_BY_POOLER = ("row_security", "intervalstyle", "extra_float_digits", "bytea_output")
_POOLS: dict[str, dict[str, str]] = {
    "options are ignored": {"pool_mode": "session", **_IGNORED},
    "options are refused": {"pool_mode": "session"},
    "by transactions": {"pool_mode": "transaction", **_IGNORED},
    "by transactions, options are refused": {"pool_mode": "transaction"},
    "sessions are not reset": {"pool_mode": "session", "server_reset_query": "", **_IGNORED},
}
_VALUES = """
create table public."Bücher 1" (
  id bigint primary key, t timestamptz, d date, i interval, f float8, s real, b bytea, ba bytea[], n money, u text
)"""
_FILLED = r"""
insert into public."Bücher 1"
select g, '2026-03-29 02:30:00.000001+02'::timestamptz + g * interval '1 hour', '2026-02-03'::date + g,
  g * interval '90 minutes',
  0.1::float8 * g, 0.1::real * g, '\x00ff5c'::bytea, array['\x00ff'::bytea], g::int::money,
  'ü\\x' || g from generate_series(1, 30) g
"""
# What a task's session is set to: all settings, a custom one, who reads.
_SESSION = """
select s.name as id, s.setting as v from pg_catalog.pg_settings s
union all select 'app.tenant', pg_catalog.coalesce(pg_catalog.current_setting('app.tenant', true), '')
union all select 'current', current_user::text union all select 'session', session_user::text
""".replace("pg_catalog.coalesce", "coalesce")


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A server with a table under a policy, one of values that have texts of many kinds, and names that shadow the server's."""
    with running_postgres("max_connections=100") as up:
        up.execute(
            f"create role {_ROLE} login password '{PASSWORD}'",
            "create role other",
            f"grant other to {_ROLE}",
            "create table public.orders (id bigint primary key, v text not null)",
            f"insert into public.orders select g, 'v' || g from generate_series(1, {_ROWS}) g",
            "alter table public.orders enable row level security",
            f"create policy few on public.orders using (id <= {_SEEN})",
            _VALUES,
            _FILLED,
            "create schema evil",
            "create view evil.pg_class as select 1::oid as oid, 'nothing'::name as relname",
            f"grant usage on schema evil to {_ROLE}, other",
            f"grant select on all tables in schema public, evil to {_ROLE}, other",
        )
        yield up


@pytest.fixture
def straight(server: Postgres) -> Pooler:
    """The server itself, as the role reaches it."""
    reached = Pooler(server, _ROLE)
    reached.port = server.port
    return reached


@pytest.fixture(params=_POOLS)
def pooler(server: Postgres, request: pytest.FixtureRequest) -> Iterator[Pooler]:
    settings = _POOLS[request.param]
    with pooled(server, _ROLE, **settings) as up:
        if settings["pool_mode"] == "transaction" or "server_reset_query" in settings:
            leave_settings(up)
        yield up


@pytest.fixture(params=["role", "database", "connect_query"])
def hostile(server: Postgres, straight: Pooler, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The server, where a role or the database sets what others set, or a pooler when it connects."""
    if request.param == "connect_query":
        query = "; ".join(f"set {name} to '{_OTHERS[name]}'" for name in _BY_POOLER)
        quoted = query.replace("'", "''")
        with pooled(
            server, _ROLE, pool_mode="session", server_reset_query="", database=f"connect_query='{quoted}'"
        ) as up:
            yield up
        return
    whose = f"role {_ROLE}" if request.param == "role" else "database postgres"
    server.execute(*(f"alter {whose} set {name} to {_literal(name, value)}" for name, value in _OTHERS.items()))
    yield straight
    server.execute(f"alter {whose} reset all")


def _literal(name: str, value: str) -> str:
    return value if name == "search_path" else f"'{value}'"


def leave_settings(pooler: Pooler) -> None:
    """Be other clients, who leave settings, roles, temporary tables and prepared statements in all sessions of the pool."""
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            other = stack.enter_context(pooler.connect())
            for name, value in _OTHERS.items():
                other.execute(f"set {name} to {_literal(name, value)}".encode())
            other.execute("create temporary table pg_locks (pid int)")
            other.execute('prepare "_pg3_0" as select 1')
            other.execute('prepare "_pg3_1" as select 1')
            other.execute("set role other")


def rows_of(server: Any, **given: Any) -> list[dict[str, Any]]:
    source = source_of(server, **given)
    try:
        return [row for item in source.plan().items for row in read(server, item)]
    finally:
        source._holder.close()


# ---- rows that a policy hides -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.in_turns("one pool each")
def test_rows_that_a_policy_hides(job: Job, pooler: Pooler) -> None:
    """Breaks when `row_security = off` does not reach the transactions: 51 of 100 rows would be lost, with exit 0."""
    write_table_spec(job, pooler, 'table = "public.orders"\nkey = "id"', max_records=10)  # type: ignore[arg-type]
    for verb in ("plan", "run"):
        assert_refused(job.run(verb), 7, "postgres-refused", "row-level security")


@pytest.mark.slow
@pytest.mark.in_turns("one pool each")
def test_a_job_by_a_pooler(job: Job, server: Postgres, pooler: Pooler) -> None:
    server.execute(f"alter role {_ROLE} bypassrls")
    try:
        write_table_spec(job, pooler, 'table = "public.orders"\nkey = "id"\nsplit_rows = 40', max_records=10)  # type: ignore[arg-type]
        assert_done(job.run(), records_sent=_ROWS)
        assert_verified(job)
    finally:
        server.execute(f"alter role {_ROLE} nobypassrls")


@pytest.mark.parametrize("given", [{}, {"query": "select * from public.orders", "table": None}], ids=["table", "query"])
def test_no_way_to_read_under_a_policy(hostile: Any, given: dict[str, Any]) -> None:
    """Breaks when one of the ways to the table, in the driver, does not set `row_security`."""
    asked = {"table": "public.orders", **given}
    for ask in (lambda source: source.check(), lambda source: source.plan()):
        with pytest.raises(FatalError, match="row-level security") as caught:
            ask(source_of(hostile, **asked))
        assert caught.value.code == "postgres-refused"


def test_init_under_a_policy(hostile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    address = address_of(f"{hostile.url}/orders")
    assert address is not None
    with pytest.raises(FatalError, match="row-level security"):
        look(address)


# ---- values -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def expected(server: Postgres) -> dict[str, list[dict[str, Any]]]:
    """What is read where nobody sets anything."""
    straight = Pooler(server, _ROLE)
    straight.port = server.port
    return {way: rows_of(straight, **given) for way, given in _WAYS.items()}


_WAYS: dict[str, dict[str, Any]] = {
    "table": {"table": 'public."Bücher 1"'},
    "query": {"table": None, "query": "select * from public.\"Bücher 1\" where u = 'ü\\\\x7' or id > 7"},
    "settings": {"table": None, "query": _SESSION},
}


@pytest.mark.parametrize("way", _WAYS)
def test_values_by_a_pooler(pooler: Pooler, expected: dict[str, list[dict[str, Any]]], way: str) -> None:
    """Breaks when a value depends on what a pooler drops, or on what another client has left in the session."""
    assert _plain(rows_of(pooler, **_WAYS[way])) == _plain(expected[way])


@pytest.mark.parametrize("way", ["table", "query"])
def test_values_under_settings_of_others(hostile: Any, expected: dict[str, list[dict[str, Any]]], way: str) -> None:
    """Breaks when a value depends on what a role, a database, or a pooler's `connect_query` sets."""
    assert _plain(rows_of(hostile, **_WAYS[way])) == _plain(expected[way])


def _plain(rows: list[dict[str, Any]]) -> list[str]:
    assert len(rows) > 20
    return sorted(repr(row) for row in rows)


def test_settings_that_only_a_superuser_has(server: Postgres, straight: Pooler) -> None:
    """Breaks when damaged pages are taken for empty ones, since the server is set to do so."""
    table = {"table": 'public."Bücher 1"'}
    for name in ("zero_damaged_pages", "ignore_checksum_failure"):
        server.execute(f"alter role {_ROLE} set {name} to on")
        with pytest.raises(FatalError, match=f"{name} is on, not off") as caught:
            rows_of(straight, **table)
        server.execute(f"alter role {_ROLE} reset {name}")
        assert caught.value.code == "postgres-settings"
    assert len(rows_of(straight, **table)) == 30


def test_a_setting_that_hides_the_types(server: Postgres, straight: Pooler) -> None:
    """Breaks when ADBC, which reads the types before any setting of ours, gives bytes for texts, or an unnamed error."""
    server.execute(f"alter role {_ROLE} set quote_all_identifiers to on")
    try:
        with pytest.raises(FatalError, match="quote_all_identifiers is on, not off") as caught:
            rows_of(straight, table='public."Bücher 1"')
    finally:
        server.execute(f"alter role {_ROLE} reset quote_all_identifiers")
    assert caught.value.code == "postgres-settings"


def test_a_session_of_the_pool_is_left_as_it_was(server: Postgres) -> None:
    """Breaks when a setting of ours, or the end of one of others, stays in a session that another client gets."""
    with pooled(server, _ROLE, pool_mode="transaction", default_pool_size="1") as pooler:
        with pooler.connect() as other:
            other.execute("set work_mem to '7MB'")
        source_of(pooler, table='public."Bücher 1"').check()
        with pooler.connect() as other:
            (found,) = other.execute("select current_setting('work_mem') || current_setting('row_security')").fetchall()
    assert found == ("7MBon",)


# ---- what no pooler can do --------------------------------------------------------------------------------------------


def test_statement_mode(server: Postgres) -> None:
    with pooled(server, _ROLE, pool_mode="statement") as pooler, pytest.raises(FatalError) as caught:
        source_of(pooler, table='public."Bücher 1"').plan()
    assert caught.value.code == "pooler-refused" and "pool_mode = transaction" in caught.value.hint


def test_a_parameter_of_the_environment(server: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when PGOPTIONS reaches the server, or when what a pooler refuses is taken for a wrong URL."""
    with pooled(server, _ROLE, pool_mode="session") as pooler:
        monkeypatch.setenv("PGOPTIONS", "-c search_path=evil")
        assert len(rows_of(pooler, table='public."Bücher 1"')) == 30
        monkeypatch.setenv("PGGEQO", "off")
        with pytest.raises(FatalError) as caught:
            source_of(pooler, table='public."Bücher 1"').check()
    assert caught.value.code == "pooler-refused" and "PGGEQO" in caught.value.hint


def test_a_pool_that_is_too_small(server: Postgres) -> None:
    """Breaks when the wait for a connection that never comes is not explained."""
    settings = {"pool_mode": "transaction", "default_pool_size": "1", "query_wait_timeout": "1"}
    with pooled(server, _ROLE, **settings) as pooler, pooler.connect() as other:
        other.execute("select 1")
        with pytest.raises(TemporaryError) as caught:
            source_of(pooler, table='public."Bücher 1"').plan()
    assert "pool_size" in caught.value.hint
