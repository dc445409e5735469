"""Jobs that go on behind the last key of a table, on a real server: no late commit is lost, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from eosingest.errors import EosingestError, TemporaryError
from eosingest.protocol.source import Purpose, Snapshot
from eosingest.sources.postgres import snapshot
from eosingest.sources.postgres.source import TableSource
from tests.support.builders import as_recorded
from tests.support.harness import Job, assert_done, assert_refused, assert_verified, wait_for
from tests.support.held_runs import run_killed_at
from tests.support.postgres import PASSWORD, Postgres, running_postgres
from tests.support.table_reading import read, source_of, write_table_spec


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with running_postgres() as up:
        yield up


@pytest.fixture(autouse=True)
def _table(server: Postgres) -> None:
    server.disconnect_all()
    server.execute(
        "drop table if exists public.t cascade", "create table public.t (id bigserial primary key, v text not null)"
    )


def source(server: Postgres, **given: Any) -> TableSource:
    return source_of(server, incremental=True, **given)


def opened(server: Postgres) -> Any:
    return psycopg.connect(server.url, password=PASSWORD)


def sent_of(listing: Snapshot) -> list[Any]:
    return [as_recorded(item.split) for item in listing.items]  # type: ignore[attr-defined]


def ids(server: Postgres, listing: Snapshot) -> list[int]:
    return sorted(row["id"] for item in listing.items for row in read(server, item))


def test_a_late_commit_below_the_last_key(server: Postgres) -> None:
    """By the greatest key alone it is lost; a run waits for who has drawn a key, takes its snapshot, and lets writers go on."""
    with opened(server) as late:
        late.execute("insert into public.t (v) values ('late')")  # draws 1 and stays open
        server.execute("insert into public.t (v) values ('early')")  # draws 2
        ((naive,),) = server.execute("select max(id) from public.t")
        first = source(server)
        with ThreadPoolExecutor(1) as pool:
            listed = pool.submit(first.plan)
            wait_for(lambda: server.execute("select 1 from pg_locks where mode = 'ShareLock' and not granted"))
            assert not listed.done()
            late.commit()
            listing = listed.result(timeout=30)
    assert server.execute(f"select v from public.t where id > {naive}") == [], "the naive way never sees it"
    assert naive == 2 and ids(server, listing) == [1, 2]
    server.execute(
        "insert into public.t (v) values ('3'), ('4')", "set lock_timeout = '1s'", "delete from public.t where id = 1"
    )
    assert ids(server, listing) == [1, 2], "writers go on while the run reads"
    second = source(server)
    behind = second.plan(None, sent_of(listing))
    assert ids(server, behind) == [3, 4]
    third = source(server)
    assert third.plan(None, [*sent_of(listing), *sent_of(behind)]).items == ()


def test_a_look_waits_for_nobody(server: Postgres) -> None:
    """Breaks when a plan that is only shown keeps writers waiting, or waits for them; its rows can be read all the same."""
    with opened(server) as late:
        late.execute("insert into public.t (v) values ('late')")
        server.execute("insert into public.t (v) values ('early')")
        run = source(server)
        listing = run.plan(purpose=Purpose.SHOW)
        assert server.execute("select 1 from pg_locks where mode = 'ShareLock'") == []
        assert ids(server, listing) == [2]
        late.commit()
    assert ids(server, run.plan()) == [1, 2], "a run sees both"


def test_a_writer_that_stays_open(server: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "WAIT_S", 1)
    server.execute("insert into public.t (v) values ('early')")
    with opened(server) as late:
        late.execute("insert into public.t (v) values ('late')")
        with pytest.raises(TemporaryError, match="transactions that write to it were open"):
            source(server).plan()
        going_on = source(server)
        scope: Any = {
            "settled": True,
            "table": going_on._hold().relation.identity,
            "columns": [["id", "bigint"], ["v", "text"]],
            "key": ["id", "int8"],
            "ranges": [[None, "1", 1]],
        }
        assert ids(server, going_on.plan(scope)) == [1], "what is frozen waits for nobody"


_REFUSED = {
    "no default": "alter table public.t alter id drop default",
    "another default": "alter table public.t alter id set default nextval('public.t_id_seq') + 1",
    "a cache": "alter sequence public.t_id_seq cache 10",
    "descending": "alter sequence public.t_id_seq increment -1 minvalue -9 maxvalue 9",
    "in a circle": "alter sequence public.t_id_seq cycle",
    "a parent": "create table public.child () inherits (public.t)",
    "a part": "create table public.p (id bigint not null default nextval('public.t_id_seq'), v text not null)"
    " partition by range (id); alter table public.p attach partition public.t for values from (0) to (99)",
}


@pytest.mark.parametrize("case", _REFUSED)
def test_keys_that_may_come_late(server: Postgres, case: str) -> None:
    server.execute(*_REFUSED[case].split(";"))
    try:
        for look in ("check", "plan"):
            with pytest.raises(EosingestError) as caught:
                getattr(source(server), look)()
            assert (caught.value.code, caught.value.exit_code) == ("source-not-incremental", 2)
    finally:
        server.disconnect_all()
        server.execute("drop table if exists public.p cascade")


@pytest.mark.parametrize(
    "how", ["bigint generated always as identity", "int generated by default as identity", "smallserial"]
)
def test_keys_of_a_sequence(server: Postgres, how: str) -> None:
    server.execute(
        "drop table public.t",
        f"create table public.t (id {how} primary key, v text not null)",
        "insert into public.t (v) values ('a'), ('b')",
    )
    source(server).check()
    asked = source(server)
    assert ids(server, asked.plan()) == [1, 2]


def test_keys_that_were_set_by_hand(server: Postgres) -> None:
    """Breaks when keys that the sequence gives next would lie before what is sent, and nobody says so."""
    server.execute("insert into public.t (v) values ('a'), ('b')", "insert into public.t values (100, 'by hand')")
    with pytest.raises(EosingestError, match="the key 100, and its sequence has given none above 2") as caught:
        source(server).plan()
    assert (caught.value.code, caught.value.exit_code) == ("source-key-by-hand", 7)
    server.execute("select setval('public.t_id_seq', 100)")
    asked = source(server)
    sent = sent_of(asked.plan())
    server.disconnect_all()
    server.execute("truncate public.t restart identity", "insert into public.t (v) values ('again')")
    with pytest.raises(EosingestError, match="the sequence was set back"):
        source(server).plan(None, sent)


def test_a_job_that_was_not_incremental(server: Postgres) -> None:
    server.execute("insert into public.t (v) values ('a'), ('b')")
    asked = source_of(server)
    sent = sent_of(asked.plan())
    with pytest.raises(EosingestError, match="was sent without incremental") as caught:
        source(server).plan(None, sent)
    assert (caught.value.code, caught.value.exit_code) == ("source-not-incremental", 12)


def test_the_rights_that_it_needs(server: Postgres) -> None:
    server.execute(
        "insert into public.t (v) values ('a')",
        f"create role taker login password '{PASSWORD}'",
        "grant usage on schema public to taker",
        "grant select on public.t to taker",
    )
    try:
        url = server.url.replace("postgres@", "taker@")
        for missing in ("grant update on public.t to taker", "grant select on sequence public.t_id_seq to taker"):
            with pytest.raises(EosingestError) as caught:
                source(server, url=url).plan()
            assert (caught.value.exit_code, caught.value.code) == (7, "postgres-refused")
            server.execute(missing)
        asked = source(server, url=url)
        assert ids(server, asked.plan()) == [1]
    finally:
        server.disconnect_all()
        server.execute("drop owned by taker", "drop role taker")


_SOURCE = """\
table = "public.t"
key = "id"
incremental = true
split_rows = 10
"""


@pytest.mark.slow
def test_each_row_once_over_many_runs(job: Job, server: Postgres) -> None:
    """A run that finds an open writer is for later; killed in the middle it is taken up; the next one sends what is new."""
    write_table_spec(job, server, _SOURCE, partitions=1)

    def sent() -> list[str]:
        return sorted((record.value or b"").decode() for record in job.records())

    with opened(server) as late:
        late.execute("insert into public.t (v) values ('late')")
        server.execute("insert into public.t (v) select 'early-' || g from generate_series(1, 24) g")
        assert_refused(job.run(), 5, "source-unreadable", "write to it", "run again")
        late.commit()
    run_killed_at(job, "task-before-commit@3")
    assert len(sent()) == 10
    server.execute("insert into public.t (v) values ('behind')")
    assert job.run_until_complete().exit_code == 0
    assert sent() == sorted(["late", *(f"early-{g}" for g in range(1, 25))])
    assert_done(job.run(), records_sent=1)
    assert_done(job.run(), records_sent=0)
    assert sent() == sorted(["late", "behind", *(f"early-{g}" for g in range(1, 25))])
    assert_verified(job)
