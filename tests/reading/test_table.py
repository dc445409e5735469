"""The table of files (table.py): each is read exactly as an independent reader reads it, or the run does not end with exit 0.

A case that needs no Spark has none: whatever is refused before it starts, and lines that tasks read. `make test` plays those
and every hundredth of the others, at least one of each kind, of a quarter of the kinds; `make test-rest` plays all of them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support.reading.lab import Lab, lab  # noqa: F401 - a fixture
from tests.support.reading.play import play, refused_wrong, sent_wrong
from tests.support.reading.table import Case, named, table

_ONE_OF = 100
_READING = Path(__file__).parents[2] / "docs" / "reading.md"
# Each is a test of its own, so that a failure says where to look.
_PARTS = {
    "text, plain": ("text/spark/plain", "text/spark/separator", "text/spark/frame"),
    "text, folders": ("text/folders", "text/files"),
    "text, gz": ("text/spark/gz",),
    "text, deflate": ("text/spark/deflate",),
    "text, bz2, zst and lz4": ("text/spark/bz2", "text/spark/zst", "text/spark/lz4"),
    "json and csv, compressed": (
        "json/bz2",
        "json/zst",
        "json/lz4",
        "json/gz",
        "csv/bz2",
        "csv/zst",
        "csv/lz4",
        "csv/gz",
    ),
    "csv, dialects and headers": ("csv/dialect", "csv/header"),
    "csv, rows": ("csv/odd", "csv/random", "csv/typed", "csv/habit"),
    "json, rows": (
        "json/kind",
        "json/odd",
        "json/random",
        "json/separator",
        "json/typed",
        "json/options",
        "json/habit",
        "json/times",
    ),
    "documents": ("json/document", "json/array", "json/whole"),
    "records over lines": ("csv/over lines", "csv/whole"),
    "whole files": ("text/whole", "binaryFile"),
    "xml, documents": ("xml/document", "xml/random", "xml/cut", "xml/encoding", "xml/habit"),
    "xml, values": ("xml/typed", "xml/options", "xml/compressed", "xml/files", "xml/folders"),
    "encodings": ("csv/encoding", "json/encoding"),
    "files and folders": ("csv/files", "csv/folders", "json/files", "json/folders"),
    "parquet, pages": ("parquet/written", "parquet/flipped", "parquet/damage", "parquet/old"),
    "parquet, types": ("parquet/type", "parquet/nested", "parquet/given", "parquet/files", "parquet/folders"),
    "parquet and orc, strings": ("parquet/no utf-8", "parquet/utf-8", "orc/no utf-8", "orc/utf-8"),
    "parquet and orc, filters and maps": ("parquet/where", "orc/where", "parquet/map keys", "orc/map keys"),
    "avro, files": ("avro/written", "avro/habit", "avro/damage", "avro/files", "avro/folders", "avro/names"),
    "avro, types": ("avro/type", "avro/given", "avro/union", "avro/beyond"),
    "orc, files": ("orc/written", "orc/damage", "orc/old", "orc/place"),
    "orc, types": ("orc/type", "orc/nested", "orc/given", "orc/files", "orc/folders"),
}


def wrong(cases: list[Case], folder: Path, lab: Lab | None) -> list[str]:  # noqa: F811
    """Return what is wrong with the outcomes, of all that could be played."""
    outcomes = play(cases, folder, lab)
    assert lab is None or len(outcomes) == len(cases)
    judged = [(case, outcomes[case.id]) for case in cases if case.id in outcomes]
    return [said for case, outcome in judged if (said := sent_wrong(case, outcome) or refused_wrong(case, outcome))]


def test_without_spark(tmp_path: Path) -> None:
    """Breaks when a look or an inspection lets through what Spark would read otherwise, or refuses a good file."""
    assert wrong(list(table()), tmp_path, None) == []


@pytest.mark.in_turns("a quarter of the kinds of cases each")
@pytest.mark.parametrize("quarter", range(4))
def test_a_sample(tmp_path: Path, lab: Lab, quarter: int) -> None:  # noqa: F811
    """Of every kind of case at least one."""
    kinds: dict[str, list[Case]] = defaultdict(list)
    for case in table():
        kinds[case.id.rsplit("/", 2)[0]].append(case)
    sample = [case for kind in list(kinds)[quarter::4] for case in kinds[kind][::_ONE_OF]]
    assert wrong(sample, tmp_path, lab) == []


@pytest.mark.slow
@pytest.mark.in_turns("one row of the reading table each")
@pytest.mark.parametrize("part", _PARTS)
def test_whole(tmp_path: Path, lab: Lab, part: str) -> None:  # noqa: F811
    """Breaks when Spark reads a file otherwise than the independent reader does, and says nothing."""
    assert wrong(list(named(*_PARTS[part])), tmp_path, lab) == []


def test_the_table_is_one() -> None:
    """Many cases, most of them without a JVM's help to be judged; all of them in a part; every habit is in the docs."""
    cases = table()
    assert len(cases) > 2000
    prefixes = tuple(prefix for part in _PARTS.values() for prefix in part)
    others = {case.id for case in cases if not case.id.startswith(prefixes)}
    assert all(
        id.startswith(("text/lines", "text/spark", "json/foreign", "csv/foreign", "json/spark", "csv/spark"))
        for id in others
    )
    said = re.sub(r"\s+", " ", _READING.read_text())
    assert [case.id for case in cases if case.habit not in said] == []
    assert len({case.habit for case in cases if case.habit}) > 12
