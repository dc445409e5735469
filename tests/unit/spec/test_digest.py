"""Digest parts: by meaning, so that a rewritten spec is the same and a changed one names the part."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eosingest.protocol.pins import changed_parts
from eosingest.spec import digest_parts, load
from eosingest.spec.ddl import normalise_ddl
from eosingest.spec.values import ROW_AS_JSON

BASE = {
    "name": '"j"',
    "source.format": '"csv"',
    "source.path": '"data"',
    "source.options": "{ header = false }",
    "sink.bootstrap_servers": '"embedded"',
    "sink.topic": '"t"',
}


def _parts(folder: Path, changes: dict[str, str]) -> dict[str, str]:
    file = folder / "job.toml"
    file.write_text("\n".join(f"{key} = {value}" for key, value in {**BASE, **changes}.items()))
    return digest_parts(load(file))


def test_a_default_written_out_changes_nothing(tmp_path: Path) -> None:
    """Breaks when `escape = '"'`, written out, is another spec than without it."""
    parts = _parts(tmp_path, {})
    assert parts == _parts(tmp_path, {"source.options": "{ header = false, escape = '\"' }"})
    assert parts["source.options"] == '{"escape": "\\""}'


@pytest.mark.parametrize(
    "changes",
    [
        {"source.path": '["other"]'},
        {"source.root": '"data"'},
        {"source.recursive": "false"},
        {"source.split_size": '"1MiB"'},
        {"source.min_age": '"1h"'},
        {"source.unknown_fields": '"ignore"'},
        {"source.inspect": "false"},
        {"sink.topic": '"u"'},
        {"sink.properties.linger.ms": "5"},
        {"sink.partitioner": '"murmur2_random"'},
        {"transaction.timeout": '"2 min"'},
        {"spark.master": '"local[7]"'},
        {"spark.conf.spark.driver.memory": '"4g"'},
        {"spark.conf.spark.hadoop.fs.s3a.secret.key": '"x"'},
        {"record.value": json.dumps(f"{ROW_AS_JSON.replace(', ', ' , ')}  -- all")},
        {"transform.select": '["*"]'},
        {"source.options": '{ header = "FALSE", DELIMITER = ",", inferSchema = true }'},
    ],
)
def test_what_shapes_no_bytes_changes_nothing(tmp_path: Path, changes: dict[str, str]) -> None:
    assert _parts(tmp_path, changes) == _parts(tmp_path, {})


def test_unknown_fields_are_no_part_of_it(tmp_path: Path) -> None:
    """Breaks when a job that a late field stopped could not continue with "ignore" without `--accept-change`."""
    json_lines = {"source.format": '"json"', "source.options": "{}", "source.schema": '"a BIGINT"'}
    refusing = {**json_lines, "source.unknown_fields": '"error"'}
    assert _parts(tmp_path, refusing) == _parts(tmp_path, json_lines)


def test_a_header_of_false_is_what_it_was_without_a_word(tmp_path: Path) -> None:
    assert "header" not in _parts(tmp_path, {})["source.options"]


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"source.schema": '"a INT"'}, "source.schema"),
        ({"source.options": "{ header = true }"}, "source.options"),
        ({"source.options": "{ header = false, inferSchema = false }"}, "source.options"),
        ({"transform.where": '"a > 0"'}, "transform.where"),
        ({"transform.select": '["a", "b"]'}, "transform.select"),
        ({"record.key": '"a"'}, "record.key"),
        ({"record.value": '"a"'}, "record.value"),
        ({"record.headers": '{ h = "a" }'}, "record.headers"),
        ({"record.headers": '"h"'}, "record.headers"),
        ({"record.timestamp": '"ts"'}, "record.timestamp"),
        ({"record.partition": '"a"'}, "record.partition"),
        ({"sink.partitioner": '"consistent"'}, "sink.partitioner"),
        ({"spark.conf.spark.sql.caseSensitive": "true"}, "spark.conf"),
        ({"spark.conf.spark.hadoop.io.compression.codecs": '"x"'}, "spark.conf"),
    ],
)
def test_what_shapes_the_bytes_changes_its_part_alone(tmp_path: Path, changes: dict[str, str], part: str) -> None:
    before, after = _parts(tmp_path, {}), _parts(tmp_path, changes)
    assert [name for name in before if before[name] != after[name]] == [part]
    assert before.keys() == after.keys()


def test_the_format_is_a_part_of_its_own(tmp_path: Path) -> None:
    """Of two formats without options in the digest it is all that differs."""
    json_, orc = (_parts(tmp_path, {"source.format": f'"{name}"', "source.options": "{}"}) for name in ("json", "orc"))
    assert [name for name in json_ if json_[name] != orc[name]] == ["source.format"]


def test_reading_folders_below_is_a_part_where_it_is_asked_for(tmp_path: Path) -> None:
    """Breaks when a half done job whose folders stop giving columns is not refused."""
    before, after = _parts(tmp_path, {}), _parts(tmp_path, {"source.recursive": "true"})
    assert after == {**before, "source.recursive": "true"}
    assert changed_parts(before, after) == changed_parts(after, before) == ["source.recursive"]


def test_select_is_a_list_and_not_its_text(tmp_path: Path) -> None:
    one, other = _parts(tmp_path, {"transform.select": "['a', 'b']"}), _parts(tmp_path, {"transform.select": "['a,b']"})
    assert one["transform.select"] != other["transform.select"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("id BIGINT, user STRING", "id bigint,\n  user string"),
        ("id BIGINT", "`id` LONG"),
        ("id: INT", "id INTEGER"),
        ("s STRUCT<a: INT, b: ARRAY<STRING>>", "s struct<`a`:integer,b:array<string>>"),
        ("m MAP<STRING, INT>", "m map<string,integer>"),
        ("d DECIMAL(12,2)", "d dec( 12, 2 )"),
        ("a INT NOT NULL COMMENT 'x y'", "a int not null comment 'x y'"),
    ],
)
def test_a_schema_has_one_spelling(one: str, other: str) -> None:
    assert normalise_ddl(one) == normalise_ddl(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Id INT", "id INT"),
        ("s STRUCT<A: INT>", "s STRUCT<a: INT>"),
        ("m MAP<STRING, STRUCT<A: INT>>", "m MAP<STRING, STRUCT<a: INT>>"),
        ("s STRUCT<a: MAP<STRING, INT>, B: INT>", "s STRUCT<a: MAP<STRING, INT>, b: INT>"),
        ("d DECIMAL(12,2), Long INT", "d DECIMAL(12,2), long INT"),
        ("`a b` INT", "a_b INT"),
        ("a INT, b INT", "b INT, a INT"),
        ("long INT", "bigint INT"),
    ],
)
def test_names_keep_their_case_and_order(one: str, other: str) -> None:
    assert normalise_ddl(one) != normalise_ddl(other)
