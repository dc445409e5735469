"""What a spec may say of a table of PostgreSQL, and its ranges and positions, without a server."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from eosingest.errors import FatalError, SpecError
from eosingest.protocol.source import CommittedPosition, Fold, Position, PositionKind
from eosingest.sources.postgres.ranges import (
    Column,
    ExportedSnapshot,
    KeyColumn,
    KeyRange,
    KeySplits,
    Relation,
    TableRange,
    frozen,
    ranges_of,
    shown,
    split_of,
)
from eosingest.sources.postgres.reading.reader import refuse_disorder
from eosingest.spark.positions import positions_of
from eosingest.spec import load
from eosingest.spec.model import Spec

SPEC = """\
name = "t"
[source]
format = "postgres"
url = "postgresql://reader@db:5432/shop?sslmode=require"
password = "${env:DB_PASSWORD}"
table = "public.orders"
key = "id"
[record]
value = "v"
[sink]
bootstrap_servers = "localhost:9092"
topic = "t"
[spark]
master = "local[1]"
"""


def loaded(folder: Path, old: str = "", new: str = "") -> Spec:
    assert old in SPEC
    file = folder / "job.toml"
    file.write_text(SPEC.replace(old, new) if old else SPEC)
    return load(file)


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_PASSWORD", "s3cret-value")


def test_the_password_is_resolved_when_it_is_used(tmp_path: Path) -> None:
    """Breaks when a spec that is loaded, and may be printed, has the password in it, or its digest changes with it."""
    assert "s3cret-value" not in repr(loaded(tmp_path))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("reader@db", "reader:pw-in-url@db", "must have no password"),
        ("?sslmode=require", "?password=pw-in-url", "must not have the parameter password"),
        ("?sslmode=require", "?options=-csearch_path%3Dx", "must not have the parameter options"),
        ("?sslmode=require", "?host=other", "must not have the parameter host"),
        ("postgresql://", "mysql://", "must begin with postgresql://"),
        ('"public.orders"', '"orders"', "must be schema.table"),
        ('"public.orders"', '"public.orders; drop table x"', "must be schema.table"),
        ('"public.orders"', "'public.\"a\" b'", "must be schema.table"),
        ('key = "id"\n', 'key = "id"\nsplit_size = "1MiB"\n', "split_rows"),
        ('key = "id"\n', 'key = "id"\non_change = "reingest"\n', "--from-scratch"),
        ('key = "id"\n', 'key = "id"\nsplit_rows = 0\n', "split_rows"),
        ('key = "id"\n', 'key = "id"\npath = "x"\n', "path"),
        ('key = "id"\n', 'key = ["id", "b"]\nincremental = true\n', "needs a table, and a key of one column"),
        ('table = "public.orders"', 'incremental = true\nquery = "select 1 as id"', "needs a table"),
        ('table = "public.orders"\n', "", "must have either table or query"),
        ('key = "id"\n', 'key = "id"\nquery = "select 1 as id"\n', "must have either table or query"),
        ('table = "public.orders"', 'query = "select 1 as id; "', "without a semicolon"),
        ('table = "public.orders"', 'query = " "', "must be one query"),
        ('key = "id"\n', "key = []\n", "key"),
        ('key = "id"\n', 'key = ["id", ""]\n', "must not be empty"),
        ('key = "id"\n', 'key = ["id", "id"]\n', "must not name a column twice"),
    ],
)
def test_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        loaded(tmp_path, old, new)
    shown = f"{caught.value.message} {caught.value.hint} {caught.value}"
    assert words in shown, shown
    assert "pw-in-url" not in shown


@pytest.mark.parametrize("table", ["'public.\"Or ders\"'", '\'"a""b"."c.d"\'', '"s_1.t$2"'])
def test_names_as_in_sql(tmp_path: Path, table: str) -> None:
    loaded(tmp_path, '"public.orders"', table)


def test_one_column_in_a_list_is_that_column(tmp_path: Path) -> None:
    """Breaks when jobs of today get another digest, or two keys the same one."""
    one = loaded(tmp_path).source.digest_parts()
    assert one == {"format": "postgres", "table": "public.orders", "key": "id"}
    assert loaded(tmp_path, 'key = "id"', 'key = ["id"]').source.digest_parts() == one
    two = [loaded(tmp_path, 'key = "id"', f"key = {key}").source.digest_parts() for key in ('["a", "b"]', '["b", "a"]')]
    assert two[0] != two[1]


def test_a_range_is_found_again_by_what_is_kept_of_it() -> None:
    whole = KeyRange("public.t", "1/2/3", None, ("-7",), 10)
    two = KeyRange("public.t", "1/2/3", ("eu", "7"), ("us", "-1"), 3)
    for split in (whole, two, KeyRange("public.t", "1/2/3", ("it's",), ("ä",), 3)):
        assert split_of("public.t", split.id, json.loads(json.dumps(split.bounds))) == split
    assert whole.item == "public.t>"
    assert (two.item, two.label) == ("public.t>eu,7", "public.t, keys behind eu,7 up to us,-1")


def test_what_is_kept_of_ranges() -> None:
    """Breaks when the offsets topic of a job that is half done is not understood any more: byte for byte."""
    one = KeyRange("public.t", "1/2/3", ("-7",), ("9",), 10)
    two = KeyRange("public.t", "1/2/3", ("eu", "7"), ("us", "-1"), 3)
    assert [one.id, json.dumps(one.bounds)] == ['{"table":"1/2/3","after":"-7"}', '{"to": "9", "rows": 10}']
    assert [two.id, json.dumps(two.bounds)] == [
        '{"table":"1/2/3","after":["eu","7"]}',
        '{"to": ["us", "-1"], "rows": 3}',
    ]
    columns = (Column("a", "text", "STRING", False), Column("b", "integer", "INT", False))
    scopes = [
        frozen(Relation("public.t", "1/2/3", columns, keys), [split])
        for keys, split in (
            ((KeyColumn("b", "int4"),), one),
            ((KeyColumn("a", "text"), KeyColumn("b", "int4")), two),
        )
    ]
    typed = '"table": "1/2/3", "columns": [["a", "text"], ["b", "integer"]]'
    assert [json.dumps(scope) for scope in scopes] == [
        f'{{{typed}, "key": ["b", "int4"], "ranges": [["-7", "9", 10]]}}',
        f'{{{typed}, "key": [["a", "text"], ["b", "int4"]], "ranges": [[["eu", "7"], ["us", "-1"], 3]]}}',
    ]
    assert [ranges_of("public.t", json.loads(json.dumps(scope))) for scope in scopes] == [[one], [two]]


def settled(*ends: int) -> list[KeyRange]:
    """Return ranges of a job that goes on, each behind the one before."""
    return [
        KeyRange("public.t", "1/2/3", (str(after),) if after else None, (str(upto),), 7, settled=True)
        for after, upto in itertools.pairwise(ends)
    ]


def test_a_range_of_a_job_that_goes_on_is_kept_as_such(tmp_path: Path) -> None:
    (split,) = settled(0, 9)
    assert json.dumps(split.bounds) == '{"to": "9", "rows": 7, "settled": true}'
    assert split_of("public.t", split.id, split.bounds) == split
    scope = frozen(Relation("public.t", "1/2/3", (), (KeyColumn("id", "int8"),)), [split])
    assert ranges_of("public.t", json.loads(json.dumps(scope))) == [split]
    digest = loaded(tmp_path, 'key = "id"', 'key = "id"\nincremental = true').source.digest_parts()
    assert digest["incremental"] == "true"


def test_a_range_that_hides_its_keys() -> None:
    """Its name and label tell it from others, by hashes that no other table gives for the same keys."""
    shown = KeyRange("public.t", "1/2/3", ("ada@example.org",), ("bob@example.org",), 10)
    hidden, other = replace(shown, hides_keys=True), replace(shown, hides_keys=True, identity="4/5/6")
    assert hidden == shown and hidden.key == shown.key and hidden.bounds == shown.bounds
    assert "example.org" in shown.item and "example.org" in shown.label
    assert "example.org" not in hidden.item + hidden.label and hidden.item.startswith("public.t>#")
    assert len({hidden.item, other.item, replace(hidden, after=("eve@example.org",)).item}) == 3
    assert replace(hidden, after=None).item == "public.t>"


def test_older_ranges_that_lie_side_by_side_are_folded() -> None:
    """Breaks when numbers are ordered as texts, when a gap is folded over, or when each run writes the folded record anew."""
    many = settled(*range(0, 1001, 10))
    splits = KeySplits("public.t", hides_keys=False)

    def folds(ranges: Iterable[KeyRange]) -> list[Fold]:
        return splits.merges((split.id, split.bounds) for split in ranges)

    assert folds(many[:99]) == [] and folds([]) == []
    (fold,) = folds(reversed(many))
    assert fold.splits == tuple(split.id for split in many[:50])
    assert fold.bounds == {"to": "500", "rows": 350, "settled": True}
    whole = split_of("public.t", fold.splits[0], fold.bounds)
    assert (whole.after, whole.upto, folds([whole, *many[50:]])) == (None, ("500",), [])
    before, after = folds([*many[:20], *many[21:], *settled(1000, 1010)])
    assert before.splits == tuple(split.id for split in many[:20])
    assert after.splits == tuple(split.id for split in many[21:51])
    assert folds([replace(split, settled=False) for split in many]) == [], "a complete table gets no more ranges"


def test_no_two_keys_are_shown_alike() -> None:
    """Breaks when two ranges have one name, and one of them is not read."""
    parts = ["", "a", '"', '""', "a,b", "b", '\\"', '"a"', "2026-01-01 00:00:00+00"]
    one = [shown((part,)) for part in parts]
    assert len(set(one)) == len(parts) and "" not in one
    assert len({shown((first, last)) for first in parts for last in parts}) == len(parts) ** 2
    assert shown(("2026-01-01 00:00:00+00", "7")) == "2026-01-01 00:00:00+00,7"


def test_how_much_of_a_range_lies_before_a_key() -> None:
    """For progress alone: whole numbers are measured, other keys are not."""

    def before(split: KeyRange, *keys: Position) -> list[int | None]:
        return [split.size_before(CommittedPosition(PositionKind.KEY, key, None)) for key in keys]

    assert before(KeyRange("t", "i", ("100",), ("300",), 50), "100", "200", "300", "999") == [0, 25, 50, 50]
    assert before(KeyRange("t", "i", None, ("300",), 50), "200") == [None]
    assert before(KeyRange("t", "i", ("a",), ("z",), 50), "m") == [None]
    assert before(KeyRange("t", "i", ("100", "x"), ("300", "a"), 50), ["200", "y"]) == [25]


def test_positions_are_the_texts_of_keys() -> None:
    """Whole numbers ascend as such, texts by their bytes; also a key that is gone has its place."""
    numbers = positions_of(pa.array([-9, -9, 8, 11]).cast(pa.decimal128(19, 0)), shared=True)
    assert (numbers.kind, numbers.at(0), numbers.at(3)) == ("key", "-9", "11")
    assert [numbers.rows_up_to(key) for key in ("-10", "-9", "9", "10", "11")] == [0, 2, 3, 3, 4]
    assert (numbers.slice(2, 4).at(0), numbers.slice(2, 4).rows_up_to("10")) == ("8", 1)
    texts = positions_of(pa.array(["10", "Z", "a", "ä"]), shared=False)
    assert [texts.rows_up_to(key) for key in ("1", "9", "Z", "b", "ä")] == [0, 1, 2, 3, 4]


def test_positions_of_several_columns_are_lists_of_texts() -> None:
    """Breaks when columns are compared alone, or numbers as texts."""
    regions = pa.array(["Z", "a", "a", "a", "ä"])
    numbers = pa.array([5, -9, 8, 11, 0]).cast(pa.decimal128(19, 0))
    keys = positions_of(pa.StructArray.from_arrays([regions, numbers], ["c0", "c1"]), shared=True)
    assert (keys.kind, keys.at(0), keys.at(3)) == ("key", ["Z", "5"], ["a", "11"])
    found = [keys.rows_up_to(key) for key in (["A", "99"], ["Z", "4"], ["a", "9"], ["a", "11"], ["b", "0"], ["ä", "0"])]
    assert found == [0, 0, 3, 4, 4, 5]
    assert (keys.slice(2, 5).at(0), keys.slice(2, 5).rows_up_to(["a", "10"])) == (["a", "8"], 1)


@pytest.mark.parametrize(
    ("rows", "last", "again", "ascends"),
    [
        ([("a", 9), ("a", 10), ("b", -5), ("ä", 0)], None, False, True),
        ([("a", 9)], ("a", "9"), False, False),
        ([("a", 9)], ("a", "9"), True, True),
        ([("a", 10)], ("a", "9"), False, True),
        ([("a", 10)], ("b", "9"), True, False),
        ([("b", 1), ("a", 2)], None, False, False),
        ([("a", 10), ("a", 9)], None, False, False),
        ([("a", 9), ("a", 9)], None, False, False),
        ([("a", 9), ("b", 9), ("b", None)], None, False, False),
        ([("a", 1), ("b", 0), ("a", 2), ("c", 0)], None, False, False),
    ],
)
def test_keys_that_do_not_ascend_end_the_task(
    rows: list[tuple[str, int | None]], last: tuple[str, str] | None, again: bool, ascends: bool
) -> None:
    """Breaks when a damaged index gives rows in another order, and those behind a position are taken for the rest."""
    split = KeyRange("public.t", "1/2/3", None, ("z", "0"), 9)
    relation = Relation("public.t", "1/2/3", (), (KeyColumn("a", "text"), KeyColumn("b", "int8")))
    keys = [pa.array([a for a, _ in rows]), pa.array([b for _, b in rows], pa.int64())]
    item = TableRange(split, relation, ExportedSnapshot("", ""))
    if ascends:
        refuse_disorder(item, keys, last, again=again)
    else:
        with pytest.raises(FatalError) as caught:
            refuse_disorder(item, keys, last, again=again)
        assert caught.value.code == "source-key-order"
