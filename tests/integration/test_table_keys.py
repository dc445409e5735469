"""Keys of several columns on a real PostgreSQL: which index walks them, their order, and going on behind each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from eosingest.errors import FatalError, SpecError
from eosingest.protocol.plan import make_plan
from eosingest.sources.postgres.reading.scan import scan_of
from eosingest.spark.bare_columns import StraightReader
from eosingest.spark.record_settings import RecordSettings
from tests.support.harness import Job, assert_done, assert_refused, assert_verified
from tests.support.held_runs import run_killed_at
from tests.support.postgres import Postgres, running_postgres
from tests.support.table_reading import KEY_COLUMN, read, source_of, table_of, write_table_spec


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with running_postgres() as up:
        yield up


_FIRST = ['text collate "C"', "date", "uuid", "int", "timestamptz"]
_VALUES = {
    'text collate "C"': ["''", "'Z'", "'a'", "'ä'", "'it''s \"quoted\", so\\'"],
    "date": ["'0001-01-01'", "'1999-12-31'", "'2026-11-25'", "'9999-12-31'"],
    "uuid": ["'00000000-0000-0000-0000-000000000001'", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"],
    "int": ["-10", "-9", "9", "10"],
    "timestamptz": ["'2026-03-29 01:30:00 Europe/Berlin'", "'2026-03-29 01:30:00+00'", "'2026-03-29 01:30:00.5+00'"],
}


@pytest.mark.in_turns("one pair of types each")
@pytest.mark.parametrize("first", _FIRST)
@pytest.mark.parametrize("second", ["bigint", "date", 'text collate "C"'])
def test_each_row_once_in_the_order_of_the_server(server: Postgres, first: str, second: str) -> None:
    """And behind each key exactly the others. Breaks when a column is compared by itself, or in another way than the index."""
    seconds = {**_VALUES, "bigint": ["-3", "20", "100"]}[second]
    rows = [(one, other) for one in _VALUES[first] for other in seconds]
    server.execute(
        "drop table if exists public.t",
        f"create table public.t (b {second}, v int, a {first}, primary key (a, b))",
        *(f"insert into public.t values ({b}, {number}, {a})" for number, (a, b) in enumerate(rows)),
    )
    expected = [v for (v,) in server.execute("select v from public.t order by a, b")]
    source = source_of(server, key=("a", "b"), split_rows=4)  # it holds the snapshot
    items = source.plan().items
    in_order = sorted(items, key=lambda item: expected.index(read(server, item)[0]["v"]))
    assert [row["v"] for item in in_order for row in read(server, item)] == expected
    assert len(items) == -(-len(rows) // 4) and len({item.name for item in items}) == len(items)
    for item in items:
        found = read(server, item)
        for number, row in enumerate(found):
            position = [str(part) for part in row[KEY_COLUMN].values()]
            assert read(server, item, position) == found[number + 1 :]
            assert read(server, item, position, again=True) == found[number:]


_INDEXES = {
    "in the key's order": ("unique (a, b)", "", 3),
    "both backwards": ("check (true)", "create unique index on public.t (a desc, b desc)", 3),
    "the other way round": ("unique (b, a)", "", 1),
    "one backwards": ("check (true)", "create unique index on public.t (a desc, b)", 1),
    "nulls first": ("check (true)", "create unique index on public.t (a nulls first, b)", 1),
    "of one of them": ("check (true)", "create unique index on public.t (b)", 1),
    "of more": ("unique (a, b, v)", "", 1),
    "of a part": ("check (true)", "create unique index on public.t (a, b) where v > 0", 1),
    "of expressions": ("check (true)", "create unique index on public.t (a, abs(b))", 1),
    "none": ("check (true)", "", 1),
}


@pytest.mark.parametrize("case", _INDEXES)
def test_which_index_cuts_the_table(server: Postgres, case: str) -> None:
    """Breaks when ranges are cut by an order that no index has: a sort for each of them."""
    constraint, statement, ranges = _INDEXES[case]
    server.execute(
        "drop table if exists public.t",
        f"create table public.t (a int not null, b int not null, v int, {constraint})",
        "insert into public.t select g / 4, g, g from generate_series(0, 11) g",
        statement or "select 1",
    )
    listing = source_of(server, key=("a", "b"), split_rows=4).plan()
    assert len(listing.items) == ranges
    assert bool(listing.notes) is (ranges == 1) and all("a, b" in note for note in listing.notes)


def test_a_child_with_null_keys(server: Postgres) -> None:
    """Breaks when NOT NULL of the parent counts for its children: their rows with null are in no range."""
    server.execute(
        "drop table if exists public.t cascade",
        "create table public.t (id bigint primary key, v text)",
        "create table public.part () inherits (public.t)",
        "alter table public.part alter id drop not null",
        "insert into public.t select g, 'x' from generate_series(1, 8) g",
    )
    assert source_of(server, key=("id",), split_rows=4).plan().items
    server.execute("insert into public.part values (null, 'lost')")
    with pytest.raises(FatalError, match="null in some rows"):
        source_of(server, key=("id",), split_rows=4).plan()
    server.execute("drop table public.t cascade")


def test_a_not_null_that_is_not_valid(server: Postgres) -> None:
    """Breaks when NOT NULL … NOT VALID of PostgreSQL 18 counts as proven. This server is older: its catalogue is edited."""
    server.execute(
        "drop table if exists public.t",
        "create table public.t (id bigint unique, v text)",
        "insert into public.t select g, 'x' from generate_series(1, 8) g",
        "insert into public.t values (null, 'lost')",
        "alter table public.t add constraint n check (id is not null) not valid",
        "update pg_constraint set contype = 'n', conbin = null where conname = 'n'",
        "update pg_attribute set attnotnull = true where attrelid = 'public.t'::regclass and attname = 'id'",
    )
    with pytest.raises(FatalError, match="null in some rows"):
        source_of(server, key=("id",), split_rows=4).plan()
    server.execute("drop table public.t")


def test_keys_that_are_none(server: Postgres) -> None:
    def listed(values: str, columns: str = "a text, b date") -> None:
        server.execute(
            "drop table if exists public.t",
            f"create table public.t ({columns})",
            f"insert into public.t values {values}",
        )
        assert source_of(server, key=("a", "b")).plan().items

    listed("('x', '2026-01-01'), ('x', '2026-01-02'), ('y', '2026-01-01')")
    with pytest.raises(FatalError, match=r"a, b of public.t has some values in several rows"):
        listed("('x', '2026-01-01'), ('x', '2026-01-01')")
    with pytest.raises(FatalError, match="null in some rows"):
        listed("('x', '2026-01-01'), ('x', null)")
    for far in ("infinity", "-infinity", "0044-03-15 BC", "10000-01-01"):
        with pytest.raises(FatalError, match=r"public\.t\.b has the value"):
            listed(f"('x', '2026-01-01'), ('y', '{far}'), ('z', '2026-01-01')", "a text, b date, unique (a, b)")
    with pytest.raises(SpecError, match="a key is smallint"):
        listed("('x', 1.5)", "a text, b float8")
    with pytest.raises(SpecError, match="has no column b"):
        listed("('x')", "a text")


_SOURCE = """\
table = "public.t"
key = ["region", "no"]
split_rows = 8
[transform]
select = ["*", "explode(sequence(1, 3)) as n"]
"""


@pytest.fixture
def shops(job: Job, server: Postgres) -> list[str]:
    """A table of twenty rows by region and number, and a job that sends three records of each; the records are returned."""
    server.execute(
        "drop table if exists public.t",
        'create table public.t (region varchar(9) collate "C", no smallint, primary key (region, no))',
        "insert into public.t select r, n from unnest(array['eu', 'us', 'Ä', 'eu-2']) r, generate_series(7, 11) n",
    )
    write_table_spec(job, server, _SOURCE, "concat(region, no, '-', n)")
    return sorted(f"{region}{no}-{n}" for region in ("eu", "us", "Ä", "eu-2") for no in range(7, 12) for n in (1, 2, 3))


def sent(job: Job) -> list[str]:
    return sorted((record.value or b"").decode() for record in job.records())


@pytest.mark.slow
def test_killed_within_a_row(job: Job, server: Postgres, shops: list[str]) -> None:
    """Through Spark SQL: the position is the key and how many of its three records are sent. Then straight, in mid-job."""
    run_killed_at(job, "task-before-commit@2")
    assert len(sent(job)) == 5
    run_killed_at(job, "task-after-commit@3")
    assert job.run_until_complete().exit_code == 0
    assert sent(job) == shops
    assert_done(job.run(), records_sent=0)
    assert_verified(job)


@pytest.mark.slow
def test_rows_that_change_between_kill_and_rerun(job: Job, server: Postgres, shops: list[str]) -> None:
    """Straight from the reader: what is inserted behind the committed key is sent, what is inserted before it is not."""
    job.edit_spec('select = ["*", "explode(sequence(1, 3)) as n"]', "")
    job.edit_spec("value = \"concat(region, no, '-', n)\"", 'value = "region"')
    run_killed_at(job, "task-before-commit@2")  # eu 7 to 11 are committed
    assert sent(job) == ["eu"] * 5
    job.edit_spec('key = ["region", "no"]', 'key = ["no", "region"]')
    assert_refused(job.run(), 12, "spec-changed", "source.key")
    job.edit_spec('key = ["no", "region"]', 'key = ["region", "no"]')
    server.execute(
        "insert into public.t values ('eu', 6), ('eu', 12), ('Eu', 99)",
        "delete from public.t where (region, no) = ('eu-2', 7)",
    )
    assert job.run_until_complete().exit_code == 0
    assert sent(job) == sorted(["eu"] * 6 + ["eu-2"] * 4 + ["us"] * 5 + ["Ä"] * 5)
    job.edit_spec('key = ["region", "no"]', 'key = ["no", "region"]')
    assert_done(job.run(), records_sent=0)


def test_no_column_is_asked_for_that_is_not_sent(server: Postgres) -> None:
    """Breaks when a wide table is read for one column of it."""
    server.execute(
        "drop table if exists public.t",
        "create table public.t (id int primary key, v text, wide text, h text)",
        "insert into public.t values (1, 'v1', 'w1', 'h1'), (2, 'v2', 'w2', 'h2')",
    )
    source = source_of(server)
    plan = make_plan(source, {}, 1, source.plan())
    records = RecordSettings(where=None, select=("*",), key=None, value="V", headers={"x": "h"}, timestamp=None)
    direct = scan_of(table_of(server), records, {}).direct(plan)
    assert direct is not None and isinstance(direct.reader, StraightReader)
    (split,) = direct.splits
    batches = direct.reader.reader.read(split, None)  # type: ignore[arg-type]
    assert [row for batch in batches for row in batch.to_pylist()] == [
        {"v": "v1", "h": "h1", KEY_COLUMN: 1},
        {"v": "v2", "h": "h2", KEY_COLUMN: 2},
    ]
    assert scan_of(table_of(server), replace(records, key="CAST(id AS STRING)"), {}).direct(plan) is None
