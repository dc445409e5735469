"""Columns of a given schema that are null because a name is misspelt: said before a run, and nothing else is."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from eosingest.sniff.column_typos import misspelt

ROWS = b'{"id": 1, "amount": 2}\n{"id": 2, "amount": 3, "note": "x"}\nno json\n[1]\n'


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def test_a_column_that_is_like_a_field_which_nobody_reads(tmp_path: Path) -> None:
    path = written(tmp_path, "a.jsonl", ROWS)
    said = misspelt(path, "json", ["id", "amonut", "Note"])
    assert said is not None
    assert "amonut (amount is there), Note (note is there)" in said, said
    assert "a.jsonl" in said
    packed = written(tmp_path, "a.jsonl.gz", gzip.compress(ROWS))
    assert misspelt(packed, "json", ["id", "amonut"])


@pytest.mark.parametrize(
    "columns",
    [["id", "amount", "note"], ["id"], ["id", "discount_code"], ["id", "amount", "amount2"], ["notes", "note", "id"]],
    ids=["all", "some", "unlike", "the like one is read", "the like one is read, too"],
)
def test_nothing_is_said_of_a_column_that_may_be_optional(tmp_path: Path, columns: list[str]) -> None:
    assert misspelt(written(tmp_path, "a.jsonl", ROWS), "json", columns) is None


def test_columns_of_parquet_and_orc_whatever_their_case(tmp_path: Path) -> None:
    table = pa.table({"Id": [1], "amount": [2.0]})
    for kind, write in (("parquet", parquet.write_table), ("orc", orc.write_table)):
        path = tmp_path / f"a.{kind}"
        write(table, path)
        assert misspelt(path, kind, ["id", "AMOUNT"]) is None
        assert "amuont (amount is there)" in (misspelt(path, kind, ["id", "amuont"]) or "")


@pytest.mark.parametrize("data", [b"", b"PAR1 is all there is", b"\x1f\x8b damaged"])
def test_a_file_that_the_run_refuses_is_not_spoken_of_here(tmp_path: Path, data: bytes) -> None:
    for name, kind in (("a.jsonl", "json"), ("a.jsonl.gz", "json"), ("a.parquet", "parquet"), ("a.orc", "orc")):
        assert misspelt(written(tmp_path, name, data), kind, ["id"]) is None


def test_xml(tmp_path: Path) -> None:
    """Breaks when a run that finds no row by a misspelt name, or nulls in a column, has nothing to say about it."""
    file = tmp_path / "a.xml"
    file.write_bytes(b"<books><book isbn='1'><title>x</title><n>1</n></book><book/></books>")
    assert misspelt(file, "xml", ["_isbn", "title", "other"], "book") is None
    note = misspelt(file, "xml", ["_isbm", "titel", "n"], "book")
    assert note is not None
    assert "_isbm (_isbn is there), titel (title is there)" in note
    assert "no element <bok> is at the beginning of a.xml; there are: books, book, title, n." in str(
        misspelt(file, "xml", ["title"], "bok")
    )
    file.write_bytes(b"<books>")
    assert misspelt(file, "xml", ["title"], "bok") is None
