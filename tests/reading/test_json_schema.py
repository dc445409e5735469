"""The types that are inferred of JSON: Spark's own for ordinary data; of any data, types that hold every value."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from eosingest.errors import FatalError
from eosingest.protocol.plan import make_plan
from eosingest.sources.files.reading.folder_columns import FolderColumns
from eosingest.sources.files.reading.json_reader import JsonReader, JsonSettings
from eosingest.sources.files.reading.json_schema import Inference, JsonTypes, Seen, refuse_alike, struct_of
from eosingest.sources.files.reading.schema_types import ddl_of, from_ddl
from eosingest.sources.files.source import FileSource
from eosingest.spark.python_scan import PythonSplit, planned_splits
from eosingest.spark.record_settings import CORRUPT
from tests.support.reading.lab import lab  # noqa: F401 - a fixture

_ODD = [
    2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64, 10**37, 10**38 - 1, 10**38, 10**400, 1e308, 1.0, 1e2, -0.0, 0.1 + 0.2,
    "", "NaN", "12", "1.50", "2020-01-02", "2020", "\U0001f600", "a\nb",
]  # fmt: skip


def splits_of(folder: Path, size: int = 1 << 20, **options: str) -> list[PythonSplit]:
    source = FileSource(format="json", paths=["*"], directory=folder, root=None, min_age_s=0, options=options)
    return planned_splits(make_plan(source, {}, size, source.plan()))


def inferred(folder: Path, size: int = 1 << 20, **options: str) -> StructType:
    types, whole = JsonTypes(JsonSettings.of(options), Inference.of(options)), Seen(fields={})
    for split in splits_of(folder, size, **options):
        whole.merge(types.of(split))
    return struct_of(whole, types.inference)


def by_spark(spark: SparkSession, folder: Path, **options: str) -> StructType:
    spark.conf.set("spark.sql.caseSensitive", "true")
    found = spark.read.options(**options).json(str(folder)).schema
    spark.conf.set("spark.sql.caseSensitive", "false")
    return found


def value(random: Random, depth: int, *, odd: bool) -> Any:
    """A value that is mostly of the same kind for the same name (`random` is the name's)."""
    kind = random.randrange(8 if depth else 6)
    if kind == 7:
        return {
            name: value(random, depth - 1, odd=odd) for name in random.sample(["a", "B", "ü", "x y", "\ufb01", "𝄞"], 3)
        }
    if kind == 6:
        return [value(random, depth - 1, odd=odd) for _ in range(random.randrange(3))]
    if odd and random.random() < 0.3:
        return random.choice(_ODD)
    return [random.randrange(1000), random.random(), random.random() < 0.5, None, f"t{random.randrange(9)}", 7][kind]


def rows(seed: int, *, odd: bool) -> list[dict[str, Any]]:
    random = Random(seed)
    kinds = {name: random.randrange(10**6) for name in random.sample("abcdefgh", 4)}
    found = []
    for number in range(random.randrange(1, 12)):
        row = {}
        for name, kind in kinds.items():
            if random.random() < 0.8:
                row[name] = value(Random(kind if random.random() < 0.9 else number), 2, odd=odd)
        found.append(row)
    return found


def documents(folder: Path, *, odd: bool, many: int) -> Iterator[Path]:
    for seed in range(many):
        place = folder / f"{seed}"
        place.mkdir()
        data = "".join(json.dumps(row, ensure_ascii=seed % 2 == 0) + "\n" for row in rows(seed, odd=odd))
        (place / "a").write_text(data, encoding="utf-8")
        yield place


def test_ordinary_data_has_the_types_of_spark(lab: Any, tmp_path: Path) -> None:  # noqa: F811
    for place in documents(tmp_path, odd=False, many=120):
        assert inferred(place) == by_spark(lab.spark, place), (place / "a").read_text()


_CASES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "numbers": ('{"a":1,"b":1.5,"c":9223372036854775808,"d":1}\n{"a":2,"b":2,"c":1,"d":99999999999999999999}\n', {}),
    "null": ('{"a":null,"b":[],"c":[null],"d":{},"e":{"f":null},"g":[{}]}\n', {}),
    "null dropped": ('{"a":null,"b":[],"c":[null],"d":{},"e":{"f":null},"g":1}\n', {"dropFieldIfAllNull": "true"}),
    "texts": ('{"a":1,"b":true,"c":[1.5],"d":{"e":2}}\n', {"primitivesAsString": "true"}),
    "decimals": (
        '{"a":1.50,"b":1.5,"c":1,"d":"1.5"}\n{"a":100.123,"b":2,"c":1,"d":"20"}\n',
        {"prefersDecimal": "true"},
    ),
    "times": ('{"a":"2020-01-02T10:30:00Z","b":"2020-01-02T10:30:00","c":"x"}\n', {"inferTimestamp": "true"}),
    "mixed": ('{"a":1,"b":[1],"c":{"x":1},"d":true}\n{"a":"x","b":{"x":1},"c":1,"d":1}\n', {}),
    "arrays": ('[{"a":1},{"b":[1,"x"]}]\n', {}),
    "single quotes": ("{'a':NaN,'b':'NaN'}\n{'a':1,'b':'x'}\n", {}),
    "corrupt": ('{"a":1}\n{"b":\n5\n"x"\n{"c":2}\n', {}),
    "document": ('[{"a":1},\n{"a":2.5}]', {"multiLine": "true"}),
    "case": ('{"a":1,"A":"x","\\"q":1}\n', {}),
    "utf-16": ('{"ü":1}\n', {"encoding": "UTF-16LE", "lineSep": "\n"}),
}


@pytest.mark.parametrize("case", _CASES)
def test_cases_and_options(lab: Any, tmp_path: Path, case: str) -> None:  # noqa: F811
    text, options = _CASES[case]
    (tmp_path / "a").write_bytes(text.encode(options.get("encoding", "utf-8")))
    expected = by_spark(lab.spark, tmp_path, **options)
    assert inferred(tmp_path, **options) == StructType([each for each in expected if each.name != "_corrupt_record"])


@pytest.mark.parametrize(
    ("data", "columns"),
    [
        (b'{"a":""}\n{"a":1}\n', "a STRING"),  # Spark: BIGINT, of which '' is no value
        (b'{"a":9007199254740993}\n{"a":0.5}\n', "a STRING"),  # DOUBLE, which rounds it
        (b'{"a":9007199254740992}\n{"a":0.5}\n', "a DOUBLE"),
        (b'{"a":%d}\n' % 10**40, "a STRING"),
        (b'{"a":1e400}\n{"a":1}\n', "a DOUBLE"),
        (b'{"a":1}\n\xff\n{"a":2}\n', "a BIGINT"),
        (b'\xef\xbb\xbf{"a":1}\n', "a BIGINT"),
    ],
)
def test_types_hold_every_value(lab: Any, tmp_path: Path, data: bytes, columns: str) -> None:  # noqa: F811
    (tmp_path / "a").write_bytes(data)
    assert inferred(tmp_path) == from_ddl(columns)


_OPTIONS: list[dict[str, str]] = [
    {}, {"prefersDecimal": "true"}, {"inferTimestamp": "true"}, {"primitivesAsString": "true"},
]  # fmt: skip


@pytest.mark.parametrize("options", _OPTIONS, ids=str)
def test_every_value_is_read(lab: Any, tmp_path: Path, options: dict[str, str]) -> None:  # noqa: F811
    """Breaks when a row from which a schema was inferred is a corrupt row of it; whatever the order and the cuts."""
    for place, size in zip(documents(tmp_path, odd=True, many=150), itertools.cycle((1 << 20, 40)), strict=False):
        found = inferred(place, size, **options)
        reader = JsonReader(found, JsonSettings.of(options), FolderColumns())
        for split in splits_of(place, **options):
            for batch in reader.read(split, None):
                assert batch.column(CORRUPT).null_count == len(batch), ((place / "a").read_text(), found)
        text = (place / "a").read_text(encoding="utf-8").splitlines(keepends=True)
        (place / "a").write_text("".join(reversed(text)), encoding="utf-8")
        assert inferred(place, **options) == found
        shutil.rmtree(place)


def test_names_that_differ_in_case_are_refused() -> None:
    with pytest.raises(FatalError, match="a and A"):
        refuse_alike(from_ddl("x ARRAY<STRUCT<a: INT, A: INT>>"))


def test_a_field_without_a_value_has_the_pinned_type() -> None:
    seen, pinned = Seen(fields={}), from_ddl("a BIGINT, o STRUCT<b: DOUBLE>, l ARRAY<INT>")
    Inference().add({"a": None, "o": {"b": None, "c": None}, "l": [], "n": None}, seen)
    found = struct_of(seen, Inference(), pinned)
    assert ddl_of(found) == "STRUCT<a: BIGINT, l: ARRAY<INT>, n: STRING, o: STRUCT<b: DOUBLE, c: STRING>>"
