"""The reader of Parquet (sources/files/reading/parquet_reader.py), without Spark: splits, types, folders, damage."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from eosingest.errors import ChangedError, FatalError
from eosingest.protocol.plan import make_plan
from eosingest.sources.files.formats.xml.schema import parse
from eosingest.sources.files.reading import columnar_reader, parquet_reader
from eosingest.sources.files.reading.columnar_values import EXCEPTION, LEGACY, Calendars, Rules
from eosingest.sources.files.reading.folder_columns import FolderColumns
from eosingest.sources.files.reading.parquet_reader import ParquetReader
from eosingest.sources.files.source import FileSource
from eosingest.spark.python_scan import PythonSplit, planned_splits
from eosingest.spec.ddl import Field

UTC = pa.timestamp("us", "UTC")
_UUID = pa.uuid() if hasattr(pa, "uuid") else pa.binary(16)  # the oldest pyarrow has none
_TIME = datetime.datetime(2020, 1, 2, 3, 4, 5, 678901)


def splits_of(folder: Path, split_size: int = 1 << 20) -> list[PythonSplit]:
    source = FileSource(format="parquet", paths=[str(folder)], directory=folder, root=None, min_age_s=0)
    return planned_splits(make_plan(source, {}, split_size, source.plan()))


def rows_of(folder: Path, reader: ParquetReader, split_size: int = 1 << 20) -> list[dict[str, Any]]:
    batches = (batch for split in splits_of(folder, split_size) for batch in reader.read(split, None))
    return [row for batch in batches for row in batch.to_pylist()]


def reader_of(*fields: tuple[str, Any], **settings: Any) -> ParquetReader:
    return ParquetReader(pa.schema(fields), **settings)


def test_each_row_group_is_in_one_split(tmp_path: Path) -> None:
    """At any split size, and in the file's order; a column that is not read changes nothing."""
    table = pa.table({"n": list(range(1000)), "s": [f"{n:050}" for n in range(1000)]})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=70, compression="none", use_dictionary=False)
    for names in (["n", "s"], ["n"], []):
        reader = reader_of(*((name, table.schema.field(name).type) for name in names))
        for size in (100, 3000, 1 << 20):
            assert rows_of(tmp_path, reader, size) == table.select(names).to_pylist() or (
                not names and len(rows_of(tmp_path, reader, size)) == 1000
            )


def test_values_have_the_schemas_type(tmp_path: Path) -> None:
    """As they are, widened, or of a part; nested ones too; names are matched whatever their case."""
    unique = uuid.UUID(int=7)
    struct = pa.struct({"a": pa.int8(), "b": pa.list_(pa.int16())})
    entries = [[("k", {"a": 1})], None, []]
    file = pa.table({
        "ID": pa.array([1, None, 3], pa.int32()),
        "o": pa.array([{"a": 1, "b": [1, 2]}, None, {"a": None, "b": []}], struct),
        "m": pa.array(entries, pa.map_(pa.string(), pa.struct({"a": pa.int32()}))),
        "f": pa.array([[1, 2], [5, 6], [3, 4]], pa.list_(pa.int32(), 2)),
        "c": pa.array(["x", None, "y"]).dictionary_encode(),
        "u": pa.array([unique.bytes, None, unique.bytes], _UUID),
        "z": pa.nulls(3),
        "d": pa.array([1, 2, 3], pa.duration("us")),
    })  # fmt: skip
    parquet.write_table(file, tmp_path / "a.parquet")
    reader = reader_of(
        ("id", pa.int64()), ("o", pa.struct({"B": pa.list_(pa.int64()), "not_there": pa.string()})),
        ("m", pa.map_(pa.string(), pa.struct({"a": pa.int64()}))), ("f", pa.list_(pa.int64())), ("c", pa.string()),
        ("u", pa.string() if hasattr(pa, "uuid") else pa.binary()), ("z", pa.string()), ("d", pa.int64()), ("missing", UTC),
    )  # fmt: skip
    first, second, third = rows_of(tmp_path, reader)
    if not hasattr(pa, "uuid"):
        first["u"] = str(unique)
    assert first == {
        "id": 1, "o": {"B": [1, 2], "not_there": None}, "m": [("k", {"a": 1})], "f": [1, 2], "c": "x", "u": str(unique),
        "z": None, "d": 1, "missing": None,
    }  # fmt: skip
    assert second == {**dict.fromkeys(first), "f": [5, 6], "d": 2}
    assert third["o"] == {"B": [], "not_there": None} and third["m"] == [] and third["f"] == [3, 4]


UNFIT: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "a whole number that is no double": (
        pa.array([2**53 + 1]),
        pa.float64(),
        {},
        "a value does not fit the type double",
    ),
    "nanoseconds": (
        pa.array([1_577_934_245_123_456_789], pa.timestamp("ns")),
        UTC,
        {"use_deprecated_int96_timestamps": True},
        "a time with nanoseconds",
    ),
    "no UTF-8": (pa.array([b"caf\xe9"]), pa.string(), {}, "a string is no UTF-8"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_value_that_does_not_fit(name: str, tmp_path: Path) -> None:
    values, target, options, words = UNFIT[name]
    for wrapped, kind in (
        (values, target),
        (pa.StructArray.from_arrays([values], ["a"]), pa.struct({"a": target})),
        (pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), values), pa.list_(target)),
    ):
        parquet.write_table(pa.table({"c": wrapped}), tmp_path / "a.parquet", **options)
        with pytest.raises(FatalError, match=rf"a\.parquet: column c: {words}"):
            rows_of(tmp_path, reader_of(("c", kind)))


def test_int96_of_any_year(tmp_path: Path) -> None:
    """A count of nanoseconds in 64 bits ends in 2262."""
    years = (2020, 2261) if pa.__version__.startswith("16.") else (1700, 1969, 2020, 2261)  # 16 reads older ones wrong
    times = [datetime.datetime(year, 1, 2, 3, 4, 5, 678901, datetime.UTC) for year in years]
    table = pa.table({"t": pa.array(times, UTC)})
    parquet.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    assert [row["t"] for row in rows_of(tmp_path, reader_of(("t", UTC)))] == times


def test_dates_by_the_calendar_of_the_writer(tmp_path: Path) -> None:
    """Spark 2 wrote days of the Julian calendar; its last day is the one before 1582-10-15."""
    days = pa.array([-141_428, -141_427, -719_164], pa.int32()).cast(pa.date32())
    reader = reader_of(("d", pa.date32()))
    of_spark = pa.table({"d": days}).replace_schema_metadata({"org.apache.spark.version": "2.4.8"})
    expected = [datetime.date(1582, 10, 4), datetime.date(1582, 10, 15), datetime.date(1, 1, 1)]
    parquet.write_table(of_spark, tmp_path / "a.parquet")
    assert [row["d"] for row in rows_of(tmp_path, reader)] == expected
    parquet.write_table(pa.table({"d": days.slice(0, 2)}), tmp_path / "a.parquet")
    assert [row["d"] for row in rows_of(tmp_path, reader)] == [datetime.date(1582, 10, 14), expected[1]]
    legacy = reader_of(("d", pa.date32()), rules=Rules(calendars=Calendars(LEGACY)))
    assert [row["d"] for row in rows_of(tmp_path, legacy)] == expected[:2]
    with pytest.raises(FatalError, match="a date before 1582-10-15"):
        rows_of(tmp_path, reader_of(("d", pa.date32()), rules=Rules(calendars=Calendars(EXCEPTION))))


@pytest.mark.parametrize(("value", "same"), [(2, True), (3, False), (None, False)])
def test_a_column_of_folders_that_the_data_has_too(tmp_path: Path, value: int | None, same: bool) -> None:
    (tmp_path / "k=2").mkdir()
    parquet.write_table(pa.table({"n": [1, 2], "k": pa.array([2, value])}), tmp_path / "k=2" / "a.parquet")
    folders = FolderColumns((Field("k", parse("k BIGINT")[0].type),))
    reader = reader_of(("n", pa.int64()), ("k", pa.int64()), folders=folders)
    if same:
        assert rows_of(tmp_path, reader) == [{"n": 1, "k": 2}, {"n": 2, "k": 2}]
    else:
        with pytest.raises(FatalError, match="its column k has another value than its folder k="):
            rows_of(tmp_path, reader)
    assert rows_of(tmp_path, reader.narrowed(frozenset({"n"}))) == [{"n": 1}, {"n": 2}]


def test_batches_are_bounded_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columnar_reader, "BATCH_BYTES", 10_000)
    table = pa.table({"s": ["x" * 3000] * 50, "n": list(range(50))})
    parquet.write_table(table, tmp_path / "a.parquet")
    reader = reader_of(("s", pa.string()), ("n", pa.int64()))
    (split,) = splits_of(tmp_path)
    batches = list(reader.read(split, None))
    assert max(batch.nbytes for batch in batches) < 20_000
    assert [row["n"] for batch in batches for row in batch.to_pylist()] == list(range(50))


def test_fewer_rows_than_the_footer_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The normal end of a split proves that all its rows were read."""
    parquet.write_table(pa.table({"n": list(range(50))}), tmp_path / "a.parquet")
    read = parquet_reader._Reading._iterator

    def short(*arguments: Any) -> Iterator[Any]:
        return (batch.slice(1) for batch in read(*arguments))

    monkeypatch.setattr(parquet_reader._Reading, "_iterator", short)
    with pytest.raises(FatalError, match="row group 0 has 49 rows, and by its footer 50"):
        rows_of(tmp_path, reader_of(("n", pa.int64())))


def test_damage_is_named_without_the_librarys_words(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"s": ["secret"] * 50}), path, write_page_checksum=True, compression="none")
    data = bytearray(path.read_bytes())
    data[data.index(b"secret")] ^= 1
    path.write_bytes(data)
    with pytest.raises(FatalError, match=r"a\.parquet: CRC checksum verification failed for a page") as raised:
        rows_of(tmp_path, reader_of(("s", pa.string())))
    assert "secret" not in str(raised.value)


def test_a_file_that_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"n": [1]}), path)
    (split,) = splits_of(tmp_path)
    parquet.write_table(pa.table({"n": [1], "m": [2]}), path)
    with pytest.raises(ChangedError):
        list(reader_of(("n", pa.int64())).read(split, None))
