"""A query of PostgreSQL as a source, on a real server: what is refused, when it is cut, what locks it, and what changes it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from eosingest.errors import ChangedError, EosingestError
from eosingest.protocol.source import Snapshot
from eosingest.sources.postgres import snapshot
from eosingest.sources.postgres.reading.scan import scan_of
from eosingest.sources.postgres.source import TableSource
from eosingest.spark.record_settings import RecordSettings
from tests.support.builders import as_recorded
from tests.support.commands import finish
from tests.support.harness import Job, assert_done, assert_refused, assert_verified, wait_for
from tests.support.held_runs import run_killed_at, start_held
from tests.support.postgres import PASSWORD, Postgres, running_postgres
from tests.support.table_reading import read, source_of, table_of

SAMPLE = Path(__file__).parents[2] / "sample_configs" / "query.toml"


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with running_postgres() as up:
        up.execute(
            "create table public.orders (id bigint primary key, customer int not null, v text, at timestamptz default now())",
            "create table public.customers (no int primary key, name text)",
            "create table public.days (day date, n int, primary key (day, n)) partition by range (day)",
            "create table public.day1 partition of public.days for values from ('2026-01-01') to ('2026-01-02')",
            "create table public.day2 partition of public.days for values from ('2026-01-02') to ('2026-01-03')",
            "create view public.bought as select id, name, v from public.orders join public.customers on no = customer",
            "create materialized view public.kept as select 1 as id",
            "create function public.odd(int) returns int language plpgsql volatile as 'begin return $1; end'",
            "create function public.even(int) returns int language plpgsql stable as 'begin return $1; end'",
        )
        yield up


@pytest.fixture
def rows(server: Postgres) -> None:
    """A hundred orders of ten customers, and four rows of two days."""
    server.disconnect_all()  # the sources of an earlier test
    server.execute(
        "truncate public.orders, public.customers, public.days",
        "insert into public.customers select g, 'c' || g from generate_series(0, 9) g",
        "insert into public.orders select g, g % 10, 'v' || g from generate_series(1, 100) g",
        "insert into public.days select '2026-01-01'::date + g / 2, g from generate_series(0, 3) g",
        "analyze",
    )


def source(server: Postgres, query: str, **given: Any) -> TableSource:
    return source_of(server, table=None, query=query, **{"split_rows": 40, **given})


def values(server: Postgres, listing: Snapshot, column: str = "id") -> list[Any]:
    return sorted(row[column] for item in listing.items for row in read(server, item))


# ---- what is a query -------------------------------------------------------------------------------------------------

_REFUSED = {
    "two statements": ("select 1 as id; select 2", "source-query"),
    "brackets": ("select 1 as id) as t; drop table public.customers; select * from (select 1 as id", "source-query"),
    "more brackets": ("select 1 as id) as a, (select 2 as more", "source-query"),
    "insert": ("insert into public.customers values (-1) returning no as id", "source-query"),
    "delete in with": ("with d as (delete from public.orders returning id) select * from d", "source-query"),
    "select into": ("select 1 as id into public.x", "source-query"),
    "for update": ("select id from public.orders for update", "source-query"),
    "show": ("show timezone", "source-query"),
    "explain": ("explain select 1 as id", "source-query"),
    "nothing": ("-- a comment", "source-query"),
    "a parameter": ("select $1::int as id", "source-query"),
    "no such table": ("select id from orders", "source-query"),
    "random": ("select id, random() as r from public.orders", "source-query-unstable"),
    "now": ("select id from public.orders where at < now()", "source-query-unstable"),
    "today": ("select id from public.orders where at < current_date", "source-query-unstable"),
    "a volatile function": ("select public.odd(id::int) as id from public.orders limit 5", "source-query-unstable"),
    "a sample": ("select id from public.orders tablesample bernoulli (50)", "source-query-unstable"),
    "two columns of a name": ("select id, v as id from public.orders", "source-columns"),
    "no such key": ("select v from public.orders", "source-key-missing"),
    "a key of floats": ("select 1.5 as id", "source-key-type"),
    "a key twice": ("select customer as id from public.orders", "source-key-not-unique"),
    "a null key": ("select null::int as id", "source-key-not-unique"),
    "a far date": ("select 'infinity'::date as id", "source-key-date"),
}


@pytest.mark.parametrize("case", _REFUSED)
def test_what_is_refused(server: Postgres, rows: None, case: str) -> None:
    query, code = _REFUSED[case]
    before = server.execute("select count(*), sum(id) from public.orders")
    of_rows = code in ("source-key-not-unique", "source-key-date")
    for look in ("plan",) if of_rows else ("check", "plan"):
        with pytest.raises(EosingestError) as caught:
            getattr(source(server, query), look)()
        assert (caught.value.code, caught.value.exit_code) == (code, 7 if of_rows else 2)
    assert server.execute("select count(*), sum(id) from public.orders") == before
    assert server.execute("select count(*) from public.customers") == [(10,)]


def test_the_command_for_a_volatile_function(server: Postgres, rows: None) -> None:
    """Runs the command of the hint. None is given for a function of the system, which other queries use."""
    body = "returns int language plpgsql volatile as 'begin return $1; end'"
    server.execute(f'create function public."Twice ""or"" more"(a int) {body}')
    server.execute(f'create function public."Twice ""or"" more"(a int, b int) {body}')
    asked = source(server, """select public."Twice ""or"" more"(id::int) as id from public.orders""")
    for _ in range(2):  # the plan does not say which one of the two is called
        with pytest.raises(EosingestError) as caught:
            asked.check()
        server.execute(caught.value.hint.partition("it does not: ")[2].partition(";")[0])
    asked.check()
    with pytest.raises(EosingestError) as caught:
        source(server, "select id, random() as r from public.orders").check()
    assert "ALTER" not in caught.value.hint


@pytest.mark.parametrize(
    "query",
    [
        "select id from public.orders -- to the end",
        "with o as (select id from public.orders) select * from o",
        "select id, 'random() now()' as v from public.orders where v like '%' or v = '100%s'",
        "select id from public.orders tablesample bernoulli (100) repeatable (1)",
        "select public.even(id::int) as id from public.orders",
        "table public.orders",
        "values (1, 'a'), (2, 'b')",
    ],
)
def test_what_is_read(server: Postgres, rows: None, query: str) -> None:
    asked = source(server, query, key=("column1",) if query.startswith("values") else ("id",))
    asked.check()
    expected = [1, 2] if query.startswith("values") else list(range(1, 101))
    assert values(server, asked.plan(), "column1" if query.startswith("values") else "id") == expected


@pytest.mark.parametrize(
    ("query", "key", "ranges"),
    [
        ("select id, v from public.orders where v <> 'v7'", ("id",), 3),
        ("select id, name from public.orders join public.customers on no = customer", ("id",), 3),
        ("select * from public.bought", ("id",), 3),
        ("select id, count(*) as n from public.orders group by id", ("id",), 3),
        ("select day, n from public.days", ("day", "n"), 1),
        ("select id + 1 as id from public.orders", ("id",), 1),
        ("select id::text as id from public.orders", ("id",), 1),
        ("select * from (select id from public.orders order by id limit 90) as first", ("id",), 1),
        ("select id, row_number() over (order by v) as n from public.orders", ("id",), 1),
        ("select distinct on (v) id, v from public.orders order by v, id", ("id",), 1),
        ("select id from public.orders union select no + 1000 from public.customers", ("id",), 1),
    ],
)
def test_when_it_is_cut(server: Postgres, rows: None, query: str, key: tuple[str, ...], ranges: int) -> None:
    """Breaks when each range would compute the query from its beginning, and when it is read as one for nothing."""
    asked = source(server, query, key=key)
    listing = asked.plan()
    assert len(listing.items) == ranges, server.execute(f"explain {query}")
    assert bool(listing.notes) is (ranges == 1 and key == ("id",))
    found = [tuple(row[column] for column in key) for item in listing.items for row in read(server, item)]
    expected = server.execute(f"select {', '.join(key)} from ({query}) as q")
    assert sorted(map(str, found)) == sorted(
        str(tuple(str(v) if column == "day" else v for v, column in zip(row, key, strict=True))) for row in expected
    )


@pytest.mark.parametrize(("value", "direct"), [("v", True), ("upper(v)", False)])
def test_columns_that_are_sent_as_they_are_need_no_jvm(server: Postgres, rows: None, value: str, direct: bool) -> None:
    query = "select id, v || '!' as v from public.orders"
    asked = source(server, query)
    entries = [
        SimpleNamespace(item=item, pending=[SimpleNamespace(id=item.split.id, label="")], skipped=[])  # type: ignore[attr-defined]
        for item in asked.plan().items
    ]
    records = RecordSettings(where=None, select=("*",), key=None, value=value, headers={}, timestamp=None)
    plan: Any = SimpleNamespace(pending_items=entries)
    found = scan_of(table_of(server, table=None, query=query), records, {}).direct(plan)
    assert (found is not None) is direct
    if found is not None:
        batches = [batch for split in found.splits for batch in found.reader.read(split, None, 1 << 20)]
        assert sum(len(batch.splits) for batch in batches) == 100
        assert batches[0].positions is not None and batches[0].positions.at(39) == "40"


# ---- locks -----------------------------------------------------------------------------------------------------------


def must_wait(server: Postgres, *statements: str) -> None:
    for statement in statements:
        with pytest.raises(psycopg.errors.LockNotAvailable):
            server.execute("set lock_timeout = '100ms'", statement)


_READS = "select b.id, b.name, d.n from public.bought b left join public.days d on d.n = b.id"
_EMPTIES = (
    "truncate public.orders",
    "truncate public.customers",
    "truncate public.day2",
    "alter table public.orders add x int",
    "drop view public.bought",
    "create or replace view public.bought as select id, v as name, v from public.orders",
)


def test_truncate_at_the_bad_moment(server: Postgres, rows: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read is locked before the snapshot is taken, and without a gap from then on: also views and parts."""
    moments: list[str] = []

    def tried(connection: Any, pid: int) -> Any:
        moments.append("before the snapshot")
        must_wait(server, *_EMPTIES)
        return holder_locked(connection, pid)

    holder_locked = snapshot.locked
    monkeypatch.setattr(snapshot, "locked", tried)
    asked = source(server, _READS)
    listing = asked.plan()
    assert moments == ["before the snapshot"]
    must_wait(server, *_EMPTIES)
    reading = iter(read(server, listing.items[0]))
    assert next(reading)["id"] == 1
    assert values(server, listing) == list(range(1, 101))
    asked._holder.close()
    server.execute("truncate public.day2")


def test_a_task_has_locks_of_its_own(server: Postgres, rows: None) -> None:
    """It reads to its end when the holder is gone, and nobody empties the table meanwhile; a task that begins does not."""
    from eosingest.sources.postgres.connection import conninfo
    from eosingest.sources.postgres.reading import reader
    from eosingest.spark.python_scan import PythonSplit

    asked = source(server, "select id, name, repeat(v, 1000) as v from public.bought", split_rows=1000)
    (item,) = asked.plan().items
    batches = reader.RowsReader(conninfo(table_of(server))).read(PythonSplit(0, item, None), None)  # type: ignore[arg-type]
    first = next(batches)
    asked._holder.close()
    must_wait(server, "truncate public.orders", "truncate public.customers")
    assert len(first) + sum(len(batch) for batch in batches) == 100
    again = source(server, "select id from public.bought", split_rows=1000)
    (other,) = again.plan().items
    lost = replace(other, snapshot=replace(other.snapshot, holder="0/0"))  # type: ignore[type-var,attr-defined]
    with pytest.raises(OSError, match="ended while what the query reads was locked"):
        read(server, lost)
    again._holder.close()
    server.execute("truncate public.customers")
    with pytest.raises(OSError, match="the snapshot of this run is gone"):
        read(server, item)


def test_who_waits_to_truncate_is_not_waited_for(server: Postgres, rows: None) -> None:
    asked = source(server, "select id from public.bought")
    (item, *_) = asked.plan().items
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(server.execute, "truncate public.customers")
        wait_for(lambda: server.execute("select 1 from pg_locks where not granted"))
        began = time.monotonic()
        try:
            with pytest.raises(OSError, match="somebody waits to alter, truncate or drop the query"):
                read(server, item)
            assert time.monotonic() - began < 10
        finally:
            asked._holder.close()
        waiting.result(timeout=20)


# ---- identity --------------------------------------------------------------------------------------------------------


def test_what_makes_it_another_query(server: Postgres, rows: None) -> None:
    def changed(query: str = _READS) -> bool:
        sent = [as_recorded(item.split) for item in listed.items]  # type: ignore[attr-defined]
        try:
            source(server, query).plan(None, sent)
            source(server, query).plan(listed.scope)
        except ChangedError as error:
            assert error.code == "source-query-changed"
            return True
        return False

    asked = source(server, _READS)
    listed = asked.plan()
    asked._holder.close()
    assert not changed()
    assert changed(_READS + " ")
    server.execute("create table public.day3 partition of public.days for values from ('2026-01-03') to ('2026-01-04')")
    assert not changed(), "a new part is as rows that are inserted"
    server.execute(
        "drop table public.day3",
        "create or replace view public.bought as select id, name, v from public.orders join public.customers on no = id",
    )
    assert changed()
    server.execute(
        "create or replace view public.bought as select id, name, v from public.orders join public.customers on no = customer"
    )
    assert not changed()
    server.execute(
        "create table public.days2 (like public.days)",
        "drop table public.days",
        "alter table public.days2 rename to days",
    )
    assert changed()
    server.execute(
        "drop table public.days",
        "create table public.days (day date, n int, primary key (day, n)) partition by range (day)",
        "create table public.day1 partition of public.days for values from ('2026-01-01') to ('2026-01-02')",
        "create table public.day2 partition of public.days for values from ('2026-01-02') to ('2026-01-03')",
    )


def test_a_role_that_may_read_the_view_alone(server: Postgres, rows: None) -> None:
    """Breaks when what a view reads must be locked by who may read the view only; a policy hides no rows."""
    server.execute(
        f"create role viewer login password '{PASSWORD}'",
        "grant usage on schema public to viewer",
        "grant select on public.bought to viewer",
    )
    try:
        url = server.url.replace("postgres@", "viewer@")
        asked = source(server, "select id from public.bought", url=url)
        listing = asked.plan()
        must_wait(server, "truncate public.orders")
        assert values(server, listing) == list(range(1, 101))
        asked._holder.close()
        with pytest.raises(EosingestError) as caught:
            source(server, "select id from public.orders", url=url).check()
        assert (caught.value.exit_code, caught.value.code) == (7, "postgres-refused")
        server.execute(
            "grant select on public.orders to viewer",
            "alter table public.orders enable row level security",
            "create policy few on public.orders using (id < 50)",
        )
        with pytest.raises(EosingestError, match="row-level security") as caught:
            source(server, "select id from public.orders", url=url).plan()
        assert caught.value.exit_code == 7
    finally:
        server.execute(
            "drop policy if exists few on public.orders",
            "alter table public.orders disable row level security",
            "drop owned by viewer",
            "drop role viewer",
        )


# ---- a job -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def sample(job: Job, server: Postgres, rows: None) -> list[str]:
    """The job of sample_configs/query.toml over the tables here; the ids that it sends are returned."""
    text = SAMPLE.read_text()
    for old, new in (
        ('url = "postgresql://reader@localhost:5432/shop"\npassword = "${env:PGPASSWORD}"', server.source().rstrip()),
        ('"embedded"', f'"{job.servers}"'),
        ('name = "orders-of-customers"', f'name = "{job.name}"\ntransaction = {{ timeout = "10s", max_records = 10 }}'),
        ('topic = "orders-of-customers"', f'topic = "{job.name}"'),
        ("# split_rows = 250_000", "split_rows = 40"),
    ):
        assert old in text
        text = text.replace(old, new)
    text += '[spark]\nmaster = "local[1]"\n'
    job.write_spec(text.replace("{", "{{").replace("}", "}}"))
    return sorted(str(number) for number in range(1, 101))


def sent(job: Job) -> list[str]:
    return sorted((record.key or b"").decode() for record in job.records())


@pytest.mark.slow
def test_the_sample_killed_and_run_again(job: Job, server: Postgres, sample: list[str]) -> None:
    planned = job.run("plan")
    assert (planned.exit_code, planned.data["items"]) == (0, 3), planned
    run_killed_at(job, "task-before-commit@2")
    assert len(sent(job)) == 10
    run_killed_at(job, "task-after-commit@2")
    assert len(sent(job)) < 100
    assert job.run_until_complete().exit_code == 0
    assert sent(job) == sample
    assert_done(job.run(), records_sent=0)
    assert_verified(job)


@pytest.mark.slow
def test_emptied_while_a_run_reads(job: Job, server: Postgres, sample: list[str]) -> None:
    """The run reads its snapshot, or ends where it would stand behind who waits; the next one ends as the table is then."""
    run = start_held(job, "task-before-commit=sleep:8@2")
    must_wait(server, "truncate public.customers")
    assert_done(finish(run), records_sent=100)
    assert sent(job) == sample
    server.execute(
        "drop table public.customers cascade", "create table public.customers (no int primary key, name text)"
    )
    server.execute(
        "create view public.bought as select id, name, v from public.orders join public.customers on no = customer"
    )
    assert_refused(job.run(), 12, "source-query-changed", "--from-scratch")
