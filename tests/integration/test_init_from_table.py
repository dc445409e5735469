"""`init --from postgresql://…` with a real PostgreSQL: which key is chosen, what is refused, and that the spec runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eosingest.errors import FatalError, SpecError, TemporaryError
from eosingest.sources.postgres.discover import Look, address_of, look
from tests.integration.test_verbs import command
from tests.support.harness import Job, assert_done, assert_refused, read_committed
from tests.support.postgres import PASSWORD, Postgres, running_postgres


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with running_postgres() as up:
        yield up


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)


@pytest.fixture
def table(server: Postgres) -> Iterator[Postgres]:
    """Give the server with two schemas of no table."""
    drop = ["drop schema if exists public cascade", 'drop schema if exists "Odd one" cascade']
    server.execute(*drop, "create schema public", 'create schema "Odd one"')
    yield server
    server.execute(*drop, "create schema public")


def _look(server: Postgres, table: str) -> Look:
    address = address_of(f"{server.url}/{table}")
    assert address is not None
    return look(address)


_KEYS = {
    "a primary key": ("id bigserial primary key, u uuid not null unique", ["id"], True, 0),
    "an identity": ("id int generated always as identity primary key", ["id"], True, 0),
    "no sequence": ("id int primary key", ["id"], False, 0),
    "several columns, in the key's order": ("b int, a int, primary key (a, b)", ["a", "b"], False, 0),
    "another key, where the first one's type is none": ("f float8 primary key, u int not null unique", ["u"], False, 0),
    "one that gives ranges, before one that does not": ("t text primary key, u int not null unique", ["u"], False, 0),
    "one that gives none, where there is no other": ("t text primary key", ["t"], False, 1),
    "a column that may be null is none": ("a int unique, b int not null unique", ["b"], False, 0),
    "one that is checked late": ("d int primary key deferrable", ["d"], False, 2),
}


@pytest.mark.parametrize("case", _KEYS)
def test_which_key(table: Postgres, case: str) -> None:
    """Breaks when a key is written that cannot be read by, or one that makes a single range where another makes many."""
    columns, key, incremental, notes = _KEYS[case]
    table.execute(f"create table public.t ({columns})")
    found = _look(table, "t")
    assert [column.name for column in found.relation.keys] == key
    said = [note for note in found.notes if "text of the value" not in note]
    assert (found.incremental, len(said)) == (incremental, notes), found.notes


@pytest.mark.parametrize("index", ["unique (a, b)", "check (true)"])
def test_no_key(table: Postgres, index: str) -> None:
    """Breaks when a key is made up: with null in it rows would be missed."""
    table.execute(f"create table public.t (a int, b int not null, {index})")
    if index == "check (true)":
        table.execute("create unique index on public.t (b) where a > 0", "create unique index on public.t (abs(b))")
    with pytest.raises(SpecError, match=r"public\.t has no primary key") as refused:
        _look(table, "public.t")
    assert refused.value.code == "source-key-missing"


@pytest.mark.parametrize(
    "name",
    [
        "Odd%20one.T%20able",
        '"Odd one"."T able"',
        "T%20able",
        '"T able"',
        "orders",
        "public.orders",
        "ORDERS",
        "Public.Orders",
        '"public"."orders"',
        'PUBLIC."orders"',
    ],
)
def test_how_a_table_is_named(table: Postgres, name: str) -> None:
    table.execute(
        'create table "Odd one"."T able" (id int primary key)', "create table public.orders (id int primary key)"
    )
    expected = "public.orders" if "rder" in name.lower() and "odd" not in name.lower() else '"Odd one"."T able"'
    assert _look(table, name).relation.name == expected


def test_what_is_no_table(table: Postgres) -> None:
    """Breaks when one of two tables is guessed, or nothing says which there are."""
    table.execute(
        "create table public.t (id int primary key)",
        'create table "Odd one".t (id int primary key)',
        "create view public.v as select 1 as id",
        "create table public.parts (id int primary key) partition by range (id)",
        "create table public.part_1 partition of public.parts for values from (1) to (9)",
    )
    for name, code, words in (
        ("t", "source-table-missing", 'several tables t: "Odd one".t, public.t'),
        ("", "source-table-missing", r'names no table; this role may read "Odd one".t, public.parts, public.t'),
        (
            "nope",
            "source-table-missing",
            'no table nope in this database; this role may read "Odd one".t, public.parts',
        ),
        ("pg_class", "source-table-missing", "no table pg_class"),
        ("v", "source-no-table", "public.v is a view, and has no key"),
    ):
        with pytest.raises(SpecError, match=words) as refused:
            _look(table, name)
        assert refused.value.code == code and refused.value.hint.startswith("nothing was written")
    assert _look(table, "parts").relation.name == "public.parts"


def test_columns_that_cannot_be_read(table: Postgres) -> None:
    """Breaks when a table that has a key is said to have none."""
    table.execute('create table public.t (id int primary key, "ID" int)')
    with pytest.raises(SpecError, match="differ in case only") as refused:
        _look(table, "t")
    assert (refused.value.code, refused.value.hint[:19]) == ("source-columns", "nothing was written")


def test_who_may_not_look(table: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    table.execute(
        "create table public.t (id int primary key)",
        "drop role if exists nobody_much",
        f"create role nobody_much login password '{PASSWORD}'",
        "revoke all on schema public from public",
        "grant usage on schema public to nobody_much",
    )
    url = table.url.replace("postgres@", "nobody_much@")
    address = address_of(f"{url}/t")
    assert address is not None
    with pytest.raises(FatalError, match="permission denied") as refused:
        look(address)
    assert "SELECT on the table" in refused.value.hint
    with pytest.raises(SpecError, match="this role may read none"):
        look(address_of(f"{url}/") or address)
    monkeypatch.setenv("PGPASSWORD", "wrong")
    with pytest.raises(FatalError, match="password authentication failed") as refused:
        look(address)
    assert "PGPASSWORD" in refused.value.hint and "wrong" not in str(refused.value)
    nobody = address_of("postgresql://me@127.0.0.1:1/shop/t")
    assert nobody is not None
    with pytest.raises(TemporaryError, match="could not be reached") as away:
        look(nobody)
    assert away.value.hint.startswith("nothing was written")


@pytest.mark.slow
def test_the_spec_runs(table: Postgres, job: Job) -> None:
    """init, check, run, with no edit but the cluster's name: each row once, by its key. Breaks when it needs another edit."""
    table.execute(
        'create table "Odd one"."T ${able}" (region text collate "C", "the id" int, v numeric, primary key (region, "the id"))',
        """insert into "Odd one"."T ${able}" select 'r' || n % 3, n, n / 4.0 from generate_series(1, 20) n""",
    )
    job.spec.unlink()
    address = f"{table.url}/Odd%20one.T%20$%7Bable%7D"
    missing = command("init", "--from", f"{address}x", str(job.spec), "--output", "json")
    assert_refused(missing, 2, "source-table-missing", "nothing was written", '"Odd one"."T ${able}"')
    assert not job.spec.exists()
    made = command("init", "--from", address, str(job.spec), "--output", "json")
    assert made.exit_code == 0, made
    assert made.data["notes"] == ["read as PostgreSQL's text of the value: v (numeric)"]
    text = job.spec.read_text()
    assert PASSWORD not in text and 'password = "${env:PGPASSWORD}"' in text
    topic = "Odd-one-.-T-able"
    text = text.replace('"embedded"', f'"{job.servers}"').replace(f'"{topic}"', f'"{job.name}"')
    job.spec.write_text(text + '\n[spark]\nmaster = "local[1]"\n')
    assert job.run("check").exit_code == 0
    assert_done(job.run(), records_sent=20)
    records = read_committed(job.servers, job.name)
    assert {record.key: record.value for record in records} == {
        b'{"region":"r%d","the id":%d}' % (n % 3, n): b'{"region":"r%d","the id":%d,"v":"%s"}'
        % (n % 3, n, str(v).encode())
        for n, v in table.execute('select "the id", v from "Odd one"."T ${able}"')
    }
    assert_done(job.run(), records_sent=0)
