"""A table of PostgreSQL on a real server and a real broker: each key once, as one snapshot shows it, and every end of it."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from eosingest.errors import EosingestError
from eosingest.host.paths import cache_directory
from tests.support.commands import Done, finish
from tests.support.harness import (
    Job,
    assert_done,
    assert_refused,
    assert_verified,
    end_offsets,
    read_committed,
    run_text,
    topic_exists,
    wait_for,
)
from tests.support.held_runs import run_killed_at, start_held
from tests.support.postgres import PASSWORD, PASSWORD_IN, Postgres, running_postgres
from tests.support.table_reading import read, source_of, write_table_spec

_ROWS = 100
_HELD = "task-before-commit=sleep:8@2"  # a transaction of ten rows is committed by then


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with running_postgres() as up:
        yield up


@pytest.fixture
def orders(job: Job, server: Postgres) -> Postgres:
    """A table of a hundred rows with the even keys from 2 to 200, and a job that sends their texts."""
    server.execute(
        "drop table if exists public.orders",
        "create table public.orders (id bigint primary key, v text not null)",
        f"insert into public.orders select 2 * g, 'v' || 2 * g from generate_series(1, {_ROWS}) g",
    )
    write_spec(job, server)
    return server


def write_spec(job: Job, server: Postgres) -> None:
    write_table_spec(job, server, 'table = "public.orders"\nkey = "id"\nsplit_rows = 40', max_records=10)


def sent(job: Job) -> list[str]:
    return sorted((record.value or b"").decode() for record in job.records())


def values(numbers: Iterable[int]) -> list[str]:
    return sorted(f"v{number}" for number in numbers)


EVEN = range(2, 2 * _ROWS + 1, 2)


# ---- what is sent ----------------------------------------------------------------------------------------------------


def test_each_row_once_and_nothing_more_by_a_rerun(job: Job, orders: Postgres) -> None:
    planned = job.run("plan")
    assert (planned.exit_code, planned.data["items"], planned.data["splits_pending"]) == (0, 3, 3), planned
    assert planned.data["split_size"] is None, "ranges are cut by split_rows"
    done = job.run()
    assert_done(done, records_sent=_ROWS)
    assert sent(job) == values(EVEN)
    ends = end_offsets(job.servers, job.name)
    orders.execute("insert into public.orders values (1001, 'later')")
    again = job.run()
    assert_done(again, records_sent=0)
    assert "rows written since then are not read" in again.stderr
    assert end_offsets(job.servers, job.name) == ends
    assert_verified(job)
    again = job.run("run", "--from-scratch")
    assert_done(again, records_sent=_ROWS + 1)


@pytest.mark.slow
def test_the_whole_row_as_json(job: Job, orders: Postgres) -> None:
    """Through Spark SQL, killed in the middle and run again; the key column is no column of the row twice."""
    job.edit_spec('value = "v"', 'key = "CAST(id AS STRING)"\nvalue = "to_json(struct(*))"')
    run_killed_at(job, "task-before-commit@2")
    job.run_until_complete()
    rows = [json.loads(record.value or b"") for record in job.records()]
    assert sorted(rows, key=lambda row: row["id"]) == [{"id": n, "v": f"v{n}"} for n in EVEN]
    assert all(record.key == str(json.loads(record.value or b"")["id"]).encode() for record in job.records())


@pytest.mark.slow
def test_an_empty_table(job: Job, orders: Postgres) -> None:
    orders.execute("truncate public.orders")
    assert_done(job.run(), records_sent=0)


# ---- changes while a run reads ---------------------------------------------------------------------------------------


def test_a_run_reads_one_snapshot(job: Job, orders: Postgres) -> None:
    """Rows that are inserted, updated and deleted meanwhile are read as they were; TRUNCATE and ALTER have to wait."""
    run = start_held(job, _HELD)
    orders.execute(
        "insert into public.orders values (1, 'new'), (3, 'new'), (199, 'new'), (999, 'new')",
        "update public.orders set v = 'changed' where id in (4, 120, 200)",
        "delete from public.orders where id in (6, 150)",
        "update public.orders set id = 777 where id = 160",
    )
    for statement in ("truncate public.orders", "alter table public.orders add x int", "drop table public.orders"):
        with pytest.raises(psycopg.errors.LockNotAvailable):
            orders.execute("set lock_timeout = '200ms'", statement)
    assert_done(finish(run), records_sent=_ROWS)
    assert sent(job) == values(EVEN)
    orders.execute("truncate public.orders")  # nobody holds it any more


@pytest.mark.slow
def test_somebody_waits_to_alter_the_table(job: Job, orders: Postgres) -> None:
    """Ranges that are not begun stand behind them in the queue for the lock: the run ends, and does not wait for ever."""
    run = start_held(job, _HELD)
    with ThreadPoolExecutor(1) as pool:
        altered = pool.submit(orders.execute, "alter table public.orders add x int")
        assert_refused(finish(run), 5, "source-unreadable", "somebody waits to alter", "run again")
        altered.result(timeout=20)
    assert_refused(job.run(), 12, "source-columns-changed")
    orders.execute("alter table public.orders drop x")
    job.run_until_complete()
    assert sent(job) == values(EVEN)


@pytest.mark.slow
def test_the_connection_with_the_snapshot_is_lost(job: Job, orders: Postgres) -> None:
    """What has begun ends in its snapshot; what has not is for the next run; nothing is lost or sent twice."""
    job.edit_spec("split_rows = 40", "split_rows = 10")
    run = start_held(job, "task-before-commit=sleep:6@2")
    orders.disconnect_all()
    ended = finish(run)
    assert ended.exit_code in (5, 7), ended
    assert job.run_until_complete().exit_code == 0
    assert sent(job) == values(EVEN)


@pytest.mark.slow
def test_the_server_is_killed(job: Job) -> None:
    with running_postgres() as server:
        server.execute(
            "create table public.orders (id bigint primary key, v text not null)",
            f"insert into public.orders select 2 * g, 'v' || 2 * g from generate_series(1, {_ROWS}) g",
            "checkpoint",
        )
        write_spec(job, server)
        run = start_held(job, _HELD)
        server.kill()
        ended = finish(run)
        assert ended.exit_code in (3, 5), ended
        unreachable = job.run()
        assert_refused(unreachable, 5, "source-unreadable", "run again")
        server.start()
        job.run_until_complete()
        assert sent(job) == values(EVEN)


# ---- changes between a kill and the rerun ----------------------------------------------------------------------------


@pytest.mark.slow
def test_rows_that_change_between_kill_and_rerun(job: Job, orders: Postgres) -> None:
    """By the key: behind the committed one the table is read as it is now, before it nothing is read again."""
    run_killed_at(job, "task-before-commit@2")
    assert sent(job) == values(range(2, 21, 2))
    orders.execute(
        "insert into public.orders values (1, 'below'), (21, 'above'), (999, 'behind the last range')",
        "update public.orders set v = 'sent before' where id = 4",
        "update public.orders set v = 'changed' where id = 30",
        "delete from public.orders where id in (6, 40)",
    )
    job.run_until_complete()
    kept = [n for n in EVEN if n not in (30, 40)]
    assert sent(job) == sorted([*values(kept), "above", "changed"])
    assert_done(job.run(), records_sent=0)


@pytest.mark.slow
def test_truncated_between_kill_and_rerun(job: Job, orders: Postgres) -> None:
    """Rows that are gone are not sent; the job is complete with those that were."""
    run_killed_at(job, "task-before-commit@2")
    orders.execute("truncate public.orders")
    job.run_until_complete()
    assert sent(job) == values(range(2, 21, 2))


@pytest.mark.slow
@pytest.mark.in_turns("one change of a table each")
@pytest.mark.parametrize(
    "statement",
    [
        "alter table public.orders add x int",
        "alter table public.orders alter v type varchar(99)",
        "alter table public.orders rename v to w",
    ],
)
def test_altered_between_kill_and_rerun(job: Job, orders: Postgres, statement: str) -> None:
    run_killed_at(job, "task-before-commit@2")
    before = sent(job)
    orders.execute(statement)
    assert_refused(job.run(), 12, "source-columns-changed", "alter the table back", "--from-scratch")
    assert sent(job) == before


@pytest.mark.slow
def test_recreated_between_kill_and_rerun_and_behind_the_end(job: Job, orders: Postgres) -> None:
    anew = (
        "drop table public.orders",
        "create table public.orders (id bigint primary key, v text not null)",
        "insert into public.orders values (1, 'other')",
    )
    run_killed_at(job, "task-before-commit@2")
    before = sent(job)
    orders.execute(*anew)
    assert_refused(job.run(), 12, "source-table-recreated", "--from-scratch")
    assert sent(job) == before
    assert_done(job.run("run", "--from-scratch"), records_sent=1)
    orders.execute(*anew)
    assert_refused(job.run(), 12, "source-table-recreated")


# ---- what is refused -------------------------------------------------------------------------------------------------

_REFUSED = {
    "no table": ("drop table public.orders", 2, "source-table-missing"),
    "a view": ("drop table public.orders; create view public.orders as select 1 as id, 'x' as v", 2, "source-no-table"),
    "no such key": ("alter table public.orders rename id to other", 2, "source-key-missing"),
    "a key of floats": ("alter table public.orders alter id type float8", 2, "source-key-type"),
    "a key twice": (
        "alter table public.orders drop constraint orders_pkey; insert into public.orders values (2, 'twice')",
        7,
        "source-key-not-unique",
    ),
    "a null key": (
        "alter table public.orders drop constraint orders_pkey; alter table public.orders alter id drop not null;"
        " insert into public.orders values (null, 'null')",
        7,
        "source-key-not-unique",
    ),
    "a foreign part": (
        "drop table public.orders; create table public.orders (id bigint, v text) partition by range (id);"
        " drop foreign data wrapper if exists nothing cascade; create foreign data wrapper nothing;"
        " create server nowhere foreign data wrapper nothing;"
        " create foreign table public.part partition of public.orders default server nowhere",
        2,
        "source-no-table",
    ),
    "a far date": (
        "drop table public.orders; create table public.orders (id date primary key, v text);"
        " insert into public.orders values ('2026-01-01', 'a'), ('infinity', 'b')",
        7,
        "source-key-date",
    ),
}


@pytest.mark.slow
@pytest.mark.in_turns("one refusal each")
@pytest.mark.parametrize("case", _REFUSED)
def test_refused_before_anything_is_sent(job: Job, orders: Postgres, case: str) -> None:
    statements, exit_code, code = _REFUSED[case]
    orders.execute(*statements.split(";"))
    try:
        assert_refused(job.run(), exit_code, code)
    finally:
        orders.execute("drop view if exists public.orders" if case == "a view" else "select 1")
    assert not topic_exists(job.servers, job.name) or read_committed(job.servers, job.name) == []


@pytest.mark.slow
@pytest.mark.parametrize("column", ["", "(id)"])
def test_a_role_that_may_not_read(job: Job, orders: Postgres, column: str) -> None:
    """Nor may it where one column is not granted: that is known before the job is claimed."""
    orders.execute("drop role if exists reader", f"create role reader login password '{PASSWORD}'")
    if column:
        orders.execute(f"grant select {column} on public.orders to reader")
    job.edit_spec("postgres@127", "reader@127")
    ended = job.run()
    assert_refused(ended, 7, "postgres-refused", "SELECT")
    assert PASSWORD not in ended.text
    orders.execute("grant select on public.orders to reader")
    assert_done(job.run(), records_sent=_ROWS)
    orders.execute("drop owned by reader", "drop role reader")


@pytest.mark.slow
def test_rows_that_a_policy_hides(job: Job, orders: Postgres) -> None:
    """Breaks when the rows that a role may see are taken for the table."""
    orders.execute(
        "drop role if exists partial",
        f"create role partial login password '{PASSWORD}'",
        "grant select on public.orders to partial",
        "alter table public.orders enable row level security",
        "create policy few on public.orders using (id < 50)",
    )
    job.edit_spec("postgres@127", "partial@127")
    assert_refused(job.run(), 7, "postgres-refused", "row-level security")
    orders.execute("alter role partial bypassrls")
    assert_done(job.run(), records_sent=_ROWS)
    orders.execute("drop owned by partial", "drop role partial")


def test_a_wrong_password_is_not_shown(job: Job, orders: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD_IN, "wr0ng-secret")
    ended = job.run()
    assert_refused(ended, 7, "postgres-refused", "password")
    assert "wr0ng-secret" not in ended.text
    job.edit_spec("postgres@127", "postgres:in-the-url@127")
    refused = job.run("check")
    assert refused.exit_code == 2 and "in-the-url" not in refused.text, refused


@pytest.mark.slow
def test_two_at_once(job: Job, orders: Postgres) -> None:
    """The second run fences the first: each row is sent once."""
    first = start_held(job, "task-before-commit=sleep:8@3")
    second = job.run()
    assert_done(second)
    assert finish(first).exit_code != 0
    assert sent(job) == values(EVEN)


@pytest.mark.slow
def test_a_server_without_free_connections_is_for_later(job: Job, orders: Postgres) -> None:
    """A server that refuses connections for want of slots is asked again by the next run: exit 5."""
    held = []
    try:
        with pytest.raises(psycopg.OperationalError):
            for _ in range(60):
                held.append(psycopg.connect(orders.url, password=PASSWORD))
        assert_refused(job.run(), 5, "source-unreadable")
    finally:
        for connection in held:
            connection.close()
    wait_for(lambda: len(orders.execute("select 1 from pg_stat_activity where usename = 'postgres'")) < 20)
    assert_done(job.run(), records_sent=_ROWS)


# ---- keys that are not to be shown -----------------------------------------------------------------------------------


_MAIL = "ada 077@example.org"
# A query that fails, what its error says, and what it says if keys are hidden.
_FAILING = {
    "value": ("select mail, mail::int::text as v from public.people", 'integer: "ada 001@example.org"', "22P02"),
    "detail": ("select mail, ('{' || mail)::json as v from public.people", 'Token "ada" is invalid', "22P02"),
    "function": ("select mail, public.refused(mail) as v from public.people", f"no {_MAIL} here", "42501"),
    "built": ("select mail, public.built(mail) as v from public.people", 'at or near "077"', "42601"),
    "cancel": (
        "select mail, public.slow(mail) as v from public.people",
        *["canceling statement due to user request"] * 2,
    ),
    "terminate": ("select mail, public.slow(mail) as v from public.people", *["terminating connection due to"] * 2),
    "revoke": ("select mail, v from public.people", *["permission denied for table people"] * 2),
    "name": (
        "select mail, w as v from public.people where mail > 'ada@example.org'",
        *['column "w" does not exist'] * 2,
    ),
}


@pytest.fixture
def people(server: Postgres) -> None:
    """A table of a hundred mail addresses, and functions that fail, or are slow, for one of them."""
    server.execute(
        "drop table if exists public.people",
        'create table public.people (mail text collate "C" primary key, v text not null)',
        "insert into public.people"
        " select 'ada' || to_char(g, '000') || '@example.org', 'v' || g from generate_series(1, 100) g",
        f"do $$ begin if to_regrole('clerk') is null then create role clerk login password '{PASSWORD}'; end if; end $$",
        "grant select on public.people to clerk",
        *(
            f"create or replace function public.{name}(t text) returns text stable language plpgsql as"
            f" $$ declare r text; begin if t = '{_MAIL}' then {body}; end if; return t; end $$"
            for name, body in (
                ("refused", "raise exception 'no % here', t using errcode = '42501'"),
                ("built", "execute 'select ' || t into r"),
                ("slow", "perform pg_sleep(60)"),
            )
        ),
    )


@pytest.mark.parametrize("case", _FAILING)
@pytest.mark.parametrize("hidden", [True, False])
def test_keys_are_hidden_in_errors_of_the_server(server: Postgres, people: None, case: str, hidden: bool) -> None:
    """Breaks when a statement, which has keys in it, or a value is in an error, or in one that it comes from."""
    query, shown, safe = _FAILING[case]
    url = server.url.replace("postgres@", "clerk@")
    source = source_of(server, url=url, table=None, query=query, key=("mail",), split_rows=40, hide_keys=hidden)
    with ThreadPoolExecutor(1) as pool, pytest.raises((EosingestError, OSError)) as caught:
        items = source.plan().items
        if case == "revoke":
            server.execute("revoke select on public.people from clerk")
        elif case in ("cancel", "terminate"):
            pool.submit(wait_for, lambda: _ended(server, case))
        for item in items:
            read(server, item, url=url)
    source._holder.close()
    said, traced = str(caught.value), "".join(traceback.format_exception(caught.value))
    assert (safe if hidden else shown) in said and "query" in said
    assert "Query was" not in traced and 'collate "C"' not in traced
    assert not hidden or ("example.org" not in traced and "ada" not in said), traced


def _ended(server: Postgres, how: str) -> bool:
    """Cancel the statement of a task, or end its connection, as soon as it sleeps; say whether it did."""
    return server.execute(f"select pg_{how}_backend(pid) from pg_stat_activity where wait_event = 'PgSleep'") != []


@pytest.mark.slow
@pytest.mark.in_turns("one key type each")
@pytest.mark.parametrize("hidden", [True, False])
def test_keys_are_hidden_in_all_output(job: Job, server: Postgres, people: None, hidden: bool) -> None:
    """In the middle of a job and at its end, in text, JSON and logs, also of bad rows, of differences and of errors."""
    server.execute("update public.people set v = repeat('x', 1500000) where mail like 'ada 077%'")
    source = f'table = "public.people"\nkey = "mail"\nsplit_rows = 40\nhide_keys = {str(hidden).lower()}'
    write_table_spec(job, server, source, max_records=10)
    run_killed_at(job, "task-before-commit@2")
    said = [job.run(verb) for verb in ("plan", "status", "run")] + [run_text(job, verb) for verb in ("plan", "status")]
    assert said[2].codes == ["record-too-large"], said[2]
    server.execute("update public.people set v = 'v' where mail like 'ada 077%'")
    said.append(run_text(job, "run", "--verbose"))
    server.execute("update public.people set v = 'another' where mail like 'ada 005%'")
    audits = [job.run("verify", "--against-source"), run_text(job, "verify", "--against-source")]
    assert all(audit.exit_code for audit in audits), audits
    assert len(job.records()) == 100
    said += _failed_runs(Job(job.folder / "failing", job.servers, f"{job.name}-failing"), server, hidden)
    logs = (cache_directory() / "logs").glob(f"{job.name}-*.log")
    text = "".join([*(done.text for done in said + audits), *(log.read_text(errors="replace") for log in logs)])
    assert ("@example.org" not in text) is hidden
    assert ("public.people>#" in text) is hidden


def _failed_runs(job: Job, server: Postgres, hidden: bool) -> list[Done]:
    """Run queries that fail on a value, and one that is cancelled: their rows read by Spark, or sent as they are."""
    runs = []
    for case in ("value", "function", "cancel", "value"):
        query, shown, safe = _FAILING[case]
        value = "v" if len(runs) < 3 else "concat(v, '')"
        source = f'query = "{query}"\nkey = "mail"\nsplit_rows = 40\nhide_keys = {str(hidden).lower()}'
        write_table_spec(job, server, source, value)
        job.edit_spec(f'"{job.name}"', f'"{job.name}-{len(runs)}"')
        runs.append(_run_cancelled(job, server) if case == "cancel" else job.run())
        exit_code, code = (5, "source-unreadable") if case == "cancel" else (7, "postgres-refused")
        assert_refused(runs[-1], exit_code, code, safe if hidden else shown)
    return runs


def _run_cancelled(job: Job, server: Postgres) -> Done:
    """Run, and cancel the statement of each attempt of the task."""
    run = job.start()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(wait_for, lambda: not _ended(server, "cancel") and run.poll() is not None, 120)
        return finish(run)
