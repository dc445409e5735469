"""Rows that could not be parsed, under explode and its like: one row each, and the other rows are as Spark makes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.errors import SparkRuntimeException

from eosingest.sources.files.reading.json_scan import JsonScan
from eosingest.sources.files.reading.read_settings import ReadSettings
from eosingest.spark.record_columns import record_frame
from eosingest.spark.record_settings import CORRUPT
from tests.support.reading.lab import Asked, Lab, lab, plan_of, settings_of  # noqa: F401 - a fixture

_SCHEMA = "n INT, tags ARRAY<STRING>, more MAP<STRING, INT>, parts ARRAY<STRUCT<a: INT, b: STRING>>"
_GOOD = [
    '{"n":1,"tags":["a","b",null],"more":{"k":5,"l":null},"parts":[{"a":1,"b":"x"},null]}',
    '{"n":2,"tags":[],"more":{},"parts":[]}',
    '{"n":3}',
    '{"n":4,"tags":["c"],"more":{"":0},"parts":[{"a":2}]}',
]
_BROKEN = ['{"n":5,"tags":["d" BROKEN', "{", '{"n":"no number","tags":["e","f"]}']
_GENERATORS = [
    "explode(tags) AS tag",
    "EXPLODE(tags)",
    "explode(filter(tags, tag -> tag <> 'a')) `the tag`",
    "explode(coalesce(tags, array('x', 'y'))) AS tag",
    "explode_outer(tags) AS tag",
    "posexplode(tags)",
    "posexplode_outer(tags) AS (at, tag)",
    "explode(more)",
    "explode_outer(more) AS (k, v)",
    "inline(parts)",
    "inline_outer(parts) AS (c, d)",
    "inline(transform(tags, tag -> struct(tag, n AS m)))",
    "inline(map_entries(more)) AS (k, v)",
    "explode(array(1, 2)) AS one",
]


def settings(generator: str) -> ReadSettings:
    made = settings_of(Asked("json", {}, "to_json(struct(*))", schema=_SCHEMA))
    return replace(made, select=("n", generator, "n AS again"))


def read(lab: Lab, folder: Path, made: ReadSettings) -> tuple[list[str], list[str]]:  # noqa: F811
    """Return the values of the rows that could be parsed, and the texts of the others."""
    frame = JsonScan(made, made).frame(lab.spark, plan_of(folder, "json"), None, 1)
    rows = record_frame(frame, made).records.select("value", CORRUPT).collect()
    corrupt = [bytes(row[CORRUPT]).decode() for row in rows if row[CORRUPT] is not None]
    return [bytes(row.value).decode() for row in rows if row[CORRUPT] is None], corrupt


@pytest.mark.in_turns("one generator each")
@pytest.mark.parametrize("generator", _GENERATORS)
def test_one_row_of_each_corrupt_row(tmp_path: Path, lab: Lab, generator: str) -> None:  # noqa: F811
    lines = [_GOOD[0], _BROKEN[0], *_GOOD[1:3], *_BROKEN[1:], _GOOD[3]]
    (tmp_path / "rows.json").write_text("\n".join(lines) + "\n")
    values, corrupt = read(lab, tmp_path, settings(generator))
    assert corrupt == _BROKEN
    (tmp_path / "rows.json").write_text("\n".join(_GOOD) + "\n")
    plain = lab.spark.read.schema(_SCHEMA).json(str(tmp_path)).selectExpr("n", generator, "n AS again")
    assert values == [row.value for row in plain.selectExpr("to_json(struct(*)) AS value").collect()]


@pytest.mark.parametrize("generator", ["stack(2, n, n)", "json_tuple(tags[0], 'a')", "posexplode(more)"])
def test_others_stop_at_a_corrupt_row(tmp_path: Path, lab: Lab, generator: str) -> None:  # noqa: F811
    """How many rows they make of it is not known: none, and it would be lost; several, and it would be told several times."""
    (tmp_path / "rows.json").write_text("\n".join([_GOOD[0], *_BROKEN]) + "\n")
    with pytest.raises(SparkRuntimeException, match="corrupt row: "):
        read(lab, tmp_path, settings(generator))


def test_the_file_s_name_of_generated_and_of_corrupt_rows(tmp_path: Path, lab: Lab) -> None:  # noqa: F811
    (tmp_path / "rows.json").write_text("\n".join([_GOOD[3], _BROKEN[0]]) + "\n")
    made = replace(settings("explode(tags) AS tag"), select=("_metadata.file_name AS f", "explode(tags) AS tag"))
    assert read(lab, tmp_path, made) == (['{"f":"rows.json","tag":"c"}'], [_BROKEN[0]])


@pytest.mark.parametrize(
    ("select", "value"),
    [
        (("event._metadata", "event.x"), '{"_metadata":{"id":7},"x":1}'),
        (("event.*", "_metadata.file_name AS f"), '{"_metadata":{"id":7},"x":1,"f":"rows.json"}'),
        (("event.x AS _Metadata", "_metadata.file_size > 0 AS n"), '{"_Metadata":1,"n":true}'),
    ],
)
def test_a_selected_column_named_metadata_hides_the_file_s(
    lab: Lab,  # noqa: F811
    tmp_path: Path,
    select: tuple[str, ...],
    value: str,
) -> None:
    (tmp_path / "rows.json").write_text('{"event":{"_metadata":{"id":7},"x":1}}\n')
    asked = Asked("json", {}, "to_json(struct(*))", schema="event STRUCT<_metadata: STRUCT<id: INT>, x: INT>")
    assert read(lab, tmp_path, replace(settings_of(asked), select=select)) == ([value], [])


def test_a_column_of_the_data_named_metadata_is_the_data_s(lab: Lab, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "rows.json").write_text('{"_METADATA":{"file_name":"mine"}}\n')
    asked = Asked("json", {}, "_metadata.file_name", schema="_METADATA STRUCT<file_name: STRING>")
    assert read(lab, tmp_path, settings_of(asked)) == (["mine"], [])
