"""CSV as the tasks read it: by pyarrow and by the parser of single rows alike; values by the options; types from texts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
)

from eosingest.errors import FatalError
from eosingest.protocol.plan import make_plan
from eosingest.sources.files.formats.csv_header import first_row
from eosingest.sources.files.formats.csv_rows import Dialect
from eosingest.sources.files.listing.source_file import as_file
from eosingest.sources.files.reading.csv_columns import CsvColumns, Rows, text_types
from eosingest.sources.files.reading.csv_reader import CsvReader
from eosingest.sources.files.reading.csv_schema import CsvTypes, merged
from eosingest.sources.files.source import FileSource
from eosingest.spark.bare_columns import BareColumns, StraightReader
from eosingest.spark.python_scan import PythonSplit, planned_splits
from eosingest.spark.record_settings import CORRUPT
from tests.support.compressed import COMPRESS

_DIALECTS: list[dict[str, str]] = [
    {}, {"escape": "\\"}, {"escape": ""}, {"quote": ""}, {"quote": "'"}, {"quote": "«"}, {"sep": "||"}, {"sep": "§"},
    {"sep": "\t"}, {"ignoreLeadingWhiteSpace": "true"}, {"ignoreTrailingWhiteSpace": "true"},
    {"sep": "\t", "ignoreTrailingWhiteSpace": "true", "ignoreLeadingWhiteSpace": "true"},
]  # fmt: skip


def columns_of(options: Mapping[str, str], types: Mapping[str, DataType]) -> CsvColumns:
    kinds = text_types(options, list(types.values()))
    null, empty = options.get("nullValue", ""), options.get("emptyValue", "")
    return CsvColumns(Dialect.of(options), len(types), tuple(types), tuple(range(len(types))), kinds, null, empty)


def splits_of(folder: Path, options: Mapping[str, str], size: int = 1 << 20) -> list[PythonSplit]:
    source = FileSource(format="csv", paths=["*"], directory=folder, root=None, min_age_s=0, options=options)
    return planned_splits(make_plan(source, {}, size, source.plan()))


def read(
    folder: Path, data: bytes, options: Mapping[str, str], types: Mapping[str, DataType], size: int = 1 << 20
) -> list[dict[str, Any]]:
    folder.mkdir(exist_ok=True)
    (folder / "a").write_bytes(data)
    reader = CsvReader(options, columns_of(options, types))
    return [
        row for split in splits_of(folder, options, size) for b in reader.read(split, None) for row in b.to_pylist()
    ]


@pytest.mark.parametrize("options", _DIALECTS, ids=str)
def test_both_parsers_read_the_same(options: dict[str, str]) -> None:
    """Breaks when pyarrow gets a row that it reads in another way than the parser of single rows."""
    random, dialect = Random(7), Dialect.of(options)
    pieces = ["a", "b", ",", '"', '""', '","', "'", " ", "é", "\\", "\t", "\x0b", "\x1f", *[dialect.delimiter] * 4]
    for number in range(600):
        lines = ["".join(random.choices(pieces, k=random.randint(1, 8))) for _ in range(random.randint(1, 6))]
        good = f"a{dialect.delimiter}{dialect.quote}b{dialect.quote}"
        lines = [good if number % 2 and random.random() < 0.7 else line for line in lines]
        marks = {"nullValue": random.choice(["", "a"]), "emptyValue": random.choice(["", "b"])}
        columns = columns_of({**options, **marks}, {"a": StringType(), "b": StringType()})
        by_block = columns.decode(Rows("".join(f"{line}\n" for line in lines).encode(), lambda lines=lines: lines))
        by_row = columns.decode(Rows(None, lambda lines=lines: lines))
        assert [each.to_pylist() for each in (*by_block[0], by_block[1])] == [
            each.to_pylist() for each in (*by_row[0], by_row[1])
        ], lines


@pytest.mark.parametrize("size", [1 << 20, 3])
def test_only_the_mark_of_the_file_is_removed(tmp_path: Path, size: int) -> None:
    """pyarrow removes one from every block: it is part of the first field wherever it is not at the start of the file."""
    data = "\ufeffa,\ufeffb\n\ufeffc,d\n\ufeff\ufeffe,f\n".encode()
    rows = read(tmp_path / "in", data, {}, {"a": StringType(), "b": StringType()}, size)
    assert [row["a"] for row in rows] == ["a", "\ufeffc", "\ufeff\ufeffe"] and rows[0]["b"] == "\ufeffb"


def test_a_field_that_does_not_end_ends_the_read_of_a_file_that_is_not_inspected(tmp_path: Path) -> None:
    """Breaks when the lines after it are sent as rows: the inspection would have refused them."""
    (tmp_path / "a").write_bytes(b'1,"x\n2,y"\n3,z\n')
    columns = replace(columns_of({}, {"a": StringType(), "b": StringType()}), inspected=False)
    (split,) = splits_of(tmp_path, {})
    with pytest.raises(FatalError, match="a quoted field does not end in its line"):
        list(CsvReader({}, columns).read(split, None))
    (tmp_path / "a").write_bytes(b'"b"x,a\n1,x\n')
    (split,) = splits_of(tmp_path, {})
    with pytest.raises(FatalError, match=r"its first row: .*not escaped"):
        first_row(as_file(split.item), {"header": "true"}, inspected=False)


def test_regular_rows_are_not_parsed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [*(f'{number},"a, ""{number}"""' for number in range(1000)), '1,a "b" c', "1", "1,2,3"]
    parsed: list[str] = []
    fields = Dialect.fields
    monkeypatch.setattr(Dialect, "fields", lambda self, row: parsed.append(row) or fields(self, row))
    columns = columns_of({}, {"a": StringType(), "b": StringType()})
    (_, texts), corrupt = columns.decode(Rows("".join(f"{row}\n" for row in rows).encode(), lambda: rows))
    assert parsed == ['1,a "b" c']
    assert texts.to_pylist()[999:1001] == ['a, "999"', 'a "b" c']
    assert corrupt.to_pylist()[1000:] == [None, "1", "1,2,3"]


def test_values_by_options(tmp_path: Path) -> None:
    options = {
        "nanValue": "-", "positiveInf": "max", "nullValue": "NA", "emptyValue": "empty", "dateFormat": "dd.MM.yyyy",
        "timestampFormat": "yyyyMMdd HHmm",
    }  # fmt: skip
    types = {"x": DoubleType(), "s": StringType(), "d": DateType(), "t": TimestampType(), "b": BinaryType()}
    data = b'-,"",02.01.2020,20200102 1030,aGk=\nmax,NA,NA,NA,NA\n1,,2020-01-02,NA,NA\nInf,x,NA,NA,NA\nInfinity,x,NA,NA,NA\n'
    rows = read(tmp_path / "in", data, options, types)
    assert [row[CORRUPT] for row in rows] == [None, None, "1,,2020-01-02,NA,NA", "Inf,x,NA,NA,NA", None]
    assert math.isnan(rows[0]["x"]) and rows[1]["x"] == math.inf
    assert [str(rows[0][name]) for name in "sdtb"] == ["empty", "2020-01-02", "2020-01-02 10:30:00+00:00", "b'aGk='"]
    assert rows[1]["s"] is None


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("options", [{}, {"multiLine": "true"}, {"lineSep": "\r\n"}], ids=str)
def test_compressed_files(tmp_path: Path, suffix: str, options: dict[str, str]) -> None:
    """Breaks when a codec, or a separator of two bytes, is cut, or its rows are others."""
    end = "\r\n" if "lineSep" in options else "\n"
    expected = [{"a": number, "s": f"x{number}"} for number in range(3000)]
    data = "".join(f"{row['a']},{row['s']}{end}" for row in expected).encode()
    (tmp_path / f"a.{suffix}").write_bytes(COMPRESS[suffix](data))
    reader = CsvReader(options, columns_of(options, {"a": IntegerType(), "s": StringType()}))
    (split,) = splits_of(tmp_path, options, 100)
    rows = [row for batch in reader.read(split, None) for row in batch.to_pylist()]
    assert rows == [{**row, CORRUPT: None} for row in expected]


@pytest.mark.parametrize("options", [{}, {"multiLine": "true"}, {"lineSep": "\r\n"}], ids=str)
def test_a_header_after_many_comments(tmp_path: Path, options: dict[str, str]) -> None:
    """Breaks when the header is looked for in the first block only, or a line break is lost or made."""
    end = "\r\n" if "lineSep" in options else "\n"
    data = ("#" * 99 + end) * 9000 + end.join(["a,b", "1,x", "#", "", '2,"y"'])
    all_options = {**options, "header": "true", "comment": "#"}
    rows = read(tmp_path / "in", data.encode(), all_options, {"a": IntegerType(), "b": StringType()})
    assert [(row["a"], row["b"]) for row in rows] == [(1, "x"), (2, "y")]


def test_only_columns_that_are_used_are_converted(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"h,i,j\nx,1,y\nx,1\n")
    types = {"h": IntegerType(), "i": IntegerType(), "j": IntegerType()}
    options = {"header": "true"}
    reader = CsvReader(options, columns_of(options, types))
    (split,) = splits_of(tmp_path, options)
    for names, corrupt in ((["i"], [None, "x,1"]), (["h"], ["x,1,y", "x,1"]), ([], [None, "x,1"])):
        (batch,) = reader.narrowed(frozenset(names)).read(split, None)
        assert batch.schema.names == [*names, CORRUPT]
        assert batch.column(CORRUPT).to_pylist() == corrupt


def test_corrupt_rows_of_bare_columns(tmp_path: Path) -> None:
    """Breaks when a row that cannot be read is sent as a null."""
    (tmp_path / "a").write_bytes(b"k,v\nk,v,w\n")
    reader = CsvReader({}, columns_of({}, {"k": StringType(), "v": StringType()}))
    (split,) = splits_of(tmp_path, {})
    (batch,) = StraightReader(reader, BareColumns("k", "v", {})).read(split, None, 1 << 20)
    assert batch.corrupt == [None, b"k,v,w"]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1", "", "00123", "-5"], IntegerType()),
        (["1", "3000000000"], LongType()),
        (["1", "9" * 20], DecimalType(38, 0)),
        (["1", "1.5"], DoubleType()),
        (["9" * 20, "NaN"], StringType()),  # DOUBLE would round it
        (["-9007199254740993", "0.5", " 1"], StringType()),
        (["9007199254740992", "1" + "0" * 18, "1e3", "NaN", "0" * 20 + "7"], DoubleType()),
        (["9223372036854775807", "0.5"], StringType()),
        (["-9223372036854775808", "9223372036854774784", "+9007199254740994", "0.5"], DoubleType()),
        (["9223372036854775807", "-9223372036854775808"], LongType()),
        (["9" * 40, "1"], StringType()),
        (["9" * 5_000], StringType()),
        (["1", "1d"], StringType()),
        (["1", "true"], StringType()),
        (["2020-01-02", "2020-1-3"], DateType()),
        (["2020-01-02", "2020-01-02 10:30"], TimestampType()),
        (["2020", "2020-01-02"], StringType()),
        (["2020-01-02", "10:30"], StringType()),
        (["2020-01-02 x"], StringType()),
        (["", ""], StringType()),
    ],
)
def test_types_of_texts(tmp_path: Path, texts: list[str], expected: DataType) -> None:
    """The same for every cut of a file, and in any order of its rows."""
    for number, (order, size) in enumerate(((texts, 1 << 20), (texts[::-1], 1), (texts, 5))):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "a").write_text("".join(f"{text},x\n" for text in order))
        types = CsvTypes({}, columns_of({}, {"t": StringType(), "x": StringType()}))
        kinds = [types.of(split) for split in splits_of(folder, {}, size)]
        kind, _ = merged(kinds, 2)
        assert (StringType() if kind is None else kind.type()) == expected


def test_many_columns(tmp_path: Path) -> None:
    """Breaks when there is a limit of columns."""
    names = [f"c{number}" for number in range(25_000)]
    data = ",".join(names) + "\n" + ",".join(map(str, range(len(names)))) + "\n"
    (row,) = read(tmp_path / "in", data.encode(), {"header": "true"}, dict.fromkeys(names, IntegerType()))
    assert row["c24999"] == 24_999
    assert row[CORRUPT] is None
