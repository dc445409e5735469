"""What a spec may say of a table of PostgreSQL, and its ranges and positions, without a server."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from eosingest.errors import SpecError
from eosingest.sources.postgres.ranges import KeyRange, split_of
from eosingest.spark.positions import positions_of
from eosingest.spec import load

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


def loaded(folder: Path, old: str = "", new: str = "") -> object:
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


def test_a_range_is_found_again_by_what_is_kept_of_it() -> None:
    whole = KeyRange("public.t", "1/2/3", None, "-7", 10)
    for split in (whole, KeyRange("public.t", "1/2/3", "it's", "ä", 3)):
        assert split_of("public.t", split.id, split.bounds) == split
    assert whole.item == "public.t>"


def test_how_much_of_a_range_lies_before_a_key() -> None:
    """For progress alone: whole numbers are measured, other keys are not."""
    split = KeyRange("t", "i", "100", "300", 50)
    assert [split.size_before(key) for key in ("100", "200", "300", "999")] == [0, 25, 50, 50]
    assert KeyRange("t", "i", None, "300", 50).size_before("200") == 0
    assert KeyRange("t", "i", "a", "z", 50).size_before("m") == 0


def test_positions_are_the_texts_of_keys() -> None:
    """Whole numbers ascend as such, texts by their bytes; also a key that is gone has its place."""
    numbers = positions_of(pa.array([-9, -9, 8, 11]).cast(pa.decimal128(19, 0)), shared=True)
    assert (numbers.kind, numbers.at(0), numbers.at(3)) == ("key", "-9", "11")
    assert [numbers.behind(key) for key in ("-10", "-9", "9", "10", "11")] == [0, 2, 3, 3, 4]
    assert (numbers.slice(2, 4).at(0), numbers.slice(2, 4).behind("10")) == ("8", 1)
    texts = positions_of(pa.array(["10", "Z", "a", "ä"]), shared=False)
    assert [texts.behind(key) for key in ("1", "9", "Z", "b", "ä")] == [0, 1, 2, 3, 4]
