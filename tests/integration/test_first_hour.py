"""A first hour: from one's own file to records in a topic, by the commands that say what comes next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from tests.integration.test_verbs import command
from tests.support.commands import Done
from tests.support.harness import Job, assert_done, end_offsets, job_state, topic_exists

ROWS = [
    {"id": 1, "customer": "ann", "note": 'said "hi", left', "amount": 2.5},
    {"id": 2, "customer": "bob", "note": None, "amount": 3.25},
    {"id": 3, "customer": "eve", "note": "Düren; x", "amount": None},
]
CSV = 'id,customer,note,amount\n1,ann,"said ""hi"", left",2.5\n2,bob,,3.25\n3,eve,Düren; x,\n'


def values(done: Done) -> list[Any]:
    return [json.loads(record["value"]) for record in done.data["records"]]


def write(kind: str, folder: Path) -> Path:
    file = folder / f"orders.{kind}"
    if kind == "csv":
        file.write_text(CSV)
    else:
        parquet.write_table(pyarrow.Table.from_pylist(ROWS), file)
    return file


@pytest.mark.slow_cases("parquet")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_from_a_file_to_records(job: Job, kind: str) -> None:
    """init --from, check, preview, run, topic peek: the rows of the file, each once, with no edit but the cluster's name."""
    data = write(kind, job.folder)
    job.spec.unlink()
    assert command("init", "--from", str(data), str(job.spec)).exit_code == 0
    text = job.spec.read_text()
    assert 'key = "CAST(id AS STRING)"' in text
    text = text.replace('"embedded"', f'"{job.servers}"').replace('topic = "orders"', f'topic = "{job.name}"')
    text = text.replace('name = "orders"', f'name = "{job.name}"')
    job.spec.write_text(text + '\n[spark]\nmaster = "local[2]"\n')
    assert job.run("check").exit_code == 0

    seen = job.run("preview", "--rows", "2")
    assert seen.exit_code == 0, seen
    assert (values(seen), [record["key"] for record in seen.data["records"]]) == (ROWS[:2], ["1", "2"])
    assert seen.data["schema"].replace(", ", ",").startswith("id BIGINT,customer STRING,note STRING,amount DOUBLE")
    assert not topic_exists(job.servers, job.name), "nothing is sent or made by a look"

    assert_done(job.run(), 3)
    before = end_offsets(job.servers, job.name)
    peeked = peek(job, str(job.spec))
    assert peeked.exit_code == 0, peeked
    assert sorted(values(peeked), key=lambda row: row["id"]) == ROWS
    assert sorted(record["key"] for record in peeked.data["records"]) == ["1", "2", "3"]
    assert end_offsets(job.servers, job.name) == before

    last = peek(job, job.name, "--bootstrap-servers", job.servers, "--last", "-n", "1")
    assert len(last.data["records"]) == 1
    nobody = peek(job, f"{job.name}-no", "--bootstrap-servers", job.servers)
    assert (nobody.exit_code, nobody.codes) == (7, ["topic-missing"])
    assert not topic_exists(job.servers, f"{job.name}-no"), "a look makes no topic"
    assert job_state(job).control is not None


def peek(job: Job, *arguments: str) -> Done:
    return command("topic", "peek", *arguments, "--output", "json")
