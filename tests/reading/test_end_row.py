"""The row that Spark computes behind all others: last in any plan, and the records are those that there are without it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import DataFrame

from eosingest.protocol.task_contract import Signal
from eosingest.sources.files.reading.json_scan import JsonScan
from eosingest.sources.files.reading.read_settings import ReadSettings
from eosingest.spark.end_marker import until_end, with_end_row
from eosingest.spark.record_columns import record_frame
from eosingest.spark.record_settings import SPLIT
from tests.support.reading.lab import Asked, Lab, lab, plan_of, settings_of  # noqa: F401 - a fixture

_SPLIT_BYTES = 500
_MADE: dict[str, dict[str, Any]] = {
    "rows": {},
    "a filter": {"where": "n % 3 = 1"},
    "no row": {"where": "n < 0"},
    "never true": {"where": "false"},
    "several of a row": {"select": ("n", "explode(sequence(0L, n % 4)) AS part"), "value": "to_json(struct(*))"},
    "all columns": {
        "key": "name",
        "headers": {"h": "name", "i": "CAST(n AS STRING)"},
        "timestamp": "timestamp_millis(n)",
        "partition": "CAST(n % 2 AS INT)",
    },
    "no column of the row": {"value": "'x'"},
}


def write(folder: Path, files: int = 5, rows: int = 40) -> None:
    """Write files of several splits each; one of them has no row that a filter leaves."""
    for file in range(files):
        made = [{"n": file * rows + row, "name": f"name {row % 7}"} for row in range(rows)]
        (folder / f"{file}.json").write_text("".join(json.dumps(row) + "\n" for row in made))


def records_of(lab: Lab, folder: Path, made: ReadSettings) -> DataFrame:  # noqa: F811
    return record_frame(
        JsonScan(made, made).frame(lab.spark, plan_of(folder, "json", _SPLIT_BYTES), None, 4), made
    ).records


def read_with(lab: Lab, folder: Path, made: ReadSettings) -> tuple[list[Any], list[Any]]:  # noqa: F811
    """Return the records as they are without the end row, and the batches as a task gets them with it."""
    records = records_of(lab, folder, made)
    assert records.rdd.getNumPartitions() > 1 or made.where == "false"
    whole = with_end_row(records)
    assert whole.rdd.getNumPartitions() == 1 and whole.columns == records.columns

    def tell(batches: Any) -> Any:  # as worker.TaskFunction is given them
        yield from batches

    schema = ", ".join(f"`{name}` {kind}" for name, kind in whole.dtypes)
    return [tuple(row) for row in records.collect()], whole.mapInArrow(tell, schema).toArrow().to_batches()


@pytest.mark.in_turns("one expression each")
@pytest.mark.parametrize("made", _MADE)
def test_it_is_the_last_one(tmp_path: Path, lab: Lab, made: str) -> None:  # noqa: F811
    write(tmp_path)
    made_of = {"schema": "n BIGINT, name STRING", "value": "name", **_MADE[made]}
    settings = replace(settings_of(Asked("json", {}, "name")), **made_of)
    records, batches = read_with(lab, tmp_path, settings)
    assert batches[-1].column(SPLIT)[-1].as_py() is None
    *rows, end = until_end(batches)
    assert end is Signal.ALL
    given = [tuple(row.values()) for batch in rows for row in batch.to_pylist()]
    assert [tuple(map(_plain, row)) for row in given] == [tuple(map(_plain, row)) for row in records]
    assert len(records) == {"no row": 0, "never true": 0, "a filter": 67, "several of a row": 500}.get(made, 200)


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


def test_it_does_not_come_where_a_row_fails(tmp_path: Path, lab: Lab) -> None:  # noqa: F811
    """An error in the last row: the JVM computes nothing behind it."""
    write(tmp_path)
    failing = settings_of(Asked("json", {}, "IF(n = 199, raise_error('no'), 'x')", schema="n BIGINT, name STRING"))
    with pytest.raises(SparkRuntimeException, match="no"):
        read_with(lab, tmp_path, failing)
    records = records_of(lab, tmp_path, failing)
    seen = lab.spark.sparkContext.accumulator(0)

    def count(batches: Any) -> Any:
        for batch in batches:
            seen.add(batch.column(SPLIT).null_count)
            yield batch.slice(0, 0)

    schema = ", ".join(f"`{name}` {kind}" for name, kind in records.dtypes)
    with pytest.raises(SparkRuntimeException):
        with_end_row(records).mapInArrow(count, schema).collect()
    assert seen.value == 0
