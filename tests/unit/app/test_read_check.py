"""`check --read` reads what a run would read, without a broker and without a JVM, and names what a run would refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from eosingest.app.read_check import read_source
from eosingest.errors import FatalError
from eosingest.spec import load
from tests.unit.app.test_preview import Silent

JSON = 'format = "json"\nschema = "id BIGINT, n STRUCT<a: ARRAY<DECIMAL(9,2)>>, m MAP<STRING, DATE>"'
DEAD = 'on_error = { topic = "dead", max = 2 }\n'
GOOD = '{"id":1,"n":{"a":[1.25]},"m":{"x":"2026-01-02"}}\n'
Reads = Callable[..., list[str]]


@pytest.fixture
def reads(tmp_path: Path) -> Reads:
    def read(source: str, files: dict[str, str], head: str = "") -> list[str]:
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        spec = (
            f'{head}name = "x"\n[source]\npath = "data.*"\n{source}\n[sink]\nbootstrap_servers = "h:1"\ntopic = "t"\n'
        )
        (tmp_path / "job.toml").write_text(spec)
        return read_source(load(tmp_path / "job.toml"), Silent(), lambda: None)

    return read


def test_rows_are_counted(reads: Reads) -> None:
    assert reads(JSON, {"data.1": GOOD * 3, "data.2": GOOD}) == ["4 rows of 2 files were read; each can be parsed"]


def test_rows_that_cannot_be_parsed(reads: Reads) -> None:
    """In each file; an error where a run would end, a note where the rows are dead letters."""
    files = {"data.1": GOOD + '{"id":"x"}\n', "data.2": '{"m":{"x":"2026-02-30"}}\n'}
    with pytest.raises(
        FatalError,
        match=r"2 cannot be parsed .* data.1: 1 of 2, .*data.2: 1 of 1, the first: column m is map<.*: {\"m\"",
    ) as raised:
        reads(JSON, files)
    assert "(on_error)" in raised.value.hint
    (note,) = reads(JSON, files, DEAD)
    assert note.endswith("A run sends them to dead")
    with pytest.raises(FatalError) as raised:
        reads(JSON, {"data.3": "x\nx\n"}, DEAD)
    assert raised.value.hint.endswith("raise on_error.max")


def test_what_the_inspection_refuses(reads: Reads) -> None:
    """The inspection runs first; without it the same rows are bad rows."""
    twice = {"data.1": GOOD + '{"id":1,"id":2}\n'}
    with pytest.raises(FatalError, match=r"data.1: line 2: an object has the name \"id\" twice"):
        reads(JSON, twice)
    with pytest.raises(FatalError, match="1 cannot be parsed by the schema"):
        reads(f"{JSON}\ninspect = false", twice)


def test_text_that_no_inspection_has_seen(reads: Reads, tmp_path: Path) -> None:
    """Breaks when UTF-16 that nothing names is read as texts with zero bytes."""
    csv = 'format = "csv"\ninspect = false\noptions = { header = false }\nschema = "a STRING, b STRING"'
    (tmp_path / "data.1").write_bytes("a,b\nc,d\n".encode("utf-16-le"))
    with pytest.raises(FatalError, match=r"data\.1: a zero byte"):
        reads(csv, {})


def test_other_formats(reads: Reads, tmp_path: Path) -> None:
    csv = 'format = "csv"\noptions = { header = true }'
    files = {"data.1": "id,x\n1,2\n3,\n"}
    assert reads(f'{csv}\nschema = "id BIGINT, x VARCHAR(5)"', files) == [
        "2 rows of 1 file were read; each can be parsed"
    ]
    assert "by a run only" in reads(csv, files)[0]
    (tmp_path / "data.1").unlink()
    parquet.write_table(pa.table({"id": [1, 2, 3]}), tmp_path / "data.2")
    assert "3 rows" in reads('format = "parquet"', {})[0]
    (tmp_path / "data.2").write_bytes((tmp_path / "data.2").read_bytes()[:-1])
    with pytest.raises(FatalError, match="not a readable Parquet file"):
        reads('format = "parquet"', {})


def test_many_rows_in_processes(reads: Reads) -> None:
    """The files are read by several processes, and each once."""
    text = "".join(json.dumps({"id": number}) + "\n" for number in range(1000))
    files = {f"data.{number}": text for number in range(9)}
    assert reads(JSON, files) == ["9,000 rows of 9 files were read; each can be parsed"]
