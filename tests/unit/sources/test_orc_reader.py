"""The reader of ORC (sources/files/reading/orc_reader.py), without Spark: stripes, types, times, places, damage."""

from __future__ import annotations

import datetime
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pytest
from pyspark.sql.types import DataType, StringType, TimestampType

from eosingest.errors import ChangedError, FatalError
from eosingest.protocol.plan import make_plan
from eosingest.sources.files.bytes.codecs import DamagedError
from eosingest.sources.files.reading import orc_columns, orc_reader
from eosingest.sources.files.reading.columnar import Unreadable
from eosingest.sources.files.reading.columnar_reader import Source
from eosingest.sources.files.reading.orc_reader import OpenOrc, OrcReader
from eosingest.sources.files.source import FileSource
from eosingest.spark.python_scan import PythonSplit, planned_splits

UTC = pa.timestamp("us", "UTC")
_TABLE = pa.table({"n": list(range(3000)), "s": [f"{n:050}" for n in range(3000)]})


def splits_of(folder: Path, split_size: int = 1 << 20) -> list[PythonSplit]:
    source = FileSource(format="orc", paths=[str(folder)], directory=folder, root=None, min_age_s=0)
    return planned_splits(make_plan(source, {}, split_size, source.plan()))


def rows_of(folder: Path, reader: OrcReader, split_size: int = 1 << 20) -> list[dict[str, Any]]:
    batches = (batch for split in splits_of(folder, split_size) for batch in reader.read(split, None))
    return [row for batch in batches for row in batch.to_pylist()]


def reader_of(*fields: tuple[str, Any], **settings: Any) -> OrcReader:
    return OrcReader(pa.schema(fields), data=tuple(name for name, _ in fields), **settings)


def write_many_stripes(file: Path, **options: Any) -> None:
    orc.write_table(_TABLE, file, **{"stripe_size": 1024, "batch_size": 64, "compression": "uncompressed", **options})


def opened(table: pa.Table, **options: Any) -> OpenOrc:
    out = io.BytesIO()
    orc.write_table(table, out, **options)
    return OpenOrc(Source(io.BytesIO(out.getvalue())))  # type: ignore[arg-type]


def test_each_stripe_is_in_one_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any split size, and in the file's order; a column that is not read changes nothing; batches are small."""
    write_many_stripes(tmp_path / "a.orc", dictionary_key_size_threshold=0)
    monkeypatch.setattr(orc_reader, "MOST_ROWS", 50)
    for names in (["n", "s"], ["n"], []):
        reader = reader_of(*((name, _TABLE.schema.field(name).type) for name in names))
        for size in (2000, 50_000, 1 << 20):
            found = rows_of(tmp_path, reader, size)
            assert found == _TABLE.select(names).to_pylist() or (not names and len(found) == len(_TABLE))
    sizes = [len(list(reader_of(("n", pa.int64())).read(split, None))) for split in splits_of(tmp_path, 50_000)]
    assert len(sizes) > 3 and all(sizes)
    first = next(reader_of(("n", pa.int64())).read(splits_of(tmp_path)[0], None))
    assert len(first) == 50


def test_a_stripe_of_a_store_is_read_at_once(tmp_path: Path) -> None:
    write_many_stripes(tmp_path / "a.orc")
    data = (tmp_path / "a.orc").read_bytes()
    reads: list[int] = []

    class Counted(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            reads.append(size or 0)
            return super().read(size)

    held = orc_reader._StripeInMemory(Counted(data))  # type: ignore[arg-type]
    found = OpenOrc(held)
    reads.clear()
    for place, stripe in enumerate(found.footer.stripes):
        held.hold(stripe.start, stripe.length)
        assert len(found.rows_of(place, ["n", "s"])) == stripe.rows
    assert reads == [stripe.length for stripe in found.footer.stripes]


def test_names_with_dots(tmp_path: Path) -> None:
    """To pyarrow `a.b` is also the field b of a."""
    table = pa.table({"a.b": ["x"], "a": [{"b": 1, "c": 2}], "ü`": [3]})
    orc.write_table(table, tmp_path / "a.orc")
    for names in (["a.b"], ["a"], ["ü`", "a.b"]):
        reader = reader_of(*((name, table.schema.field(name).type) for name in names))
        assert rows_of(tmp_path, reader) == table.select(names).to_pylist()


def test_values_have_the_schemas_type(tmp_path: Path) -> None:
    """As they are, widened, or of a part; nested ones too; names are matched whatever their case."""
    struct = pa.struct({"a": pa.int8(), "b": pa.list_(pa.int16())})
    file = pa.table({
        "ID": pa.array([1, None, 3], pa.int32()),
        "o": pa.array([{"a": 1, "b": [1, 2]}, None, {"a": None, "b": []}], struct),
        "m": pa.array([[("k", {"a": 1})], None, []], pa.map_(pa.string(), pa.struct({"a": pa.int32()}))),
        "t": pa.array([None, 1_577_934_245_123_456_789, -1_577_934_245_123_456_789], pa.timestamp("ns")),
        "z": pa.array([None, 1_577_934_245_123_456_789, 0], pa.timestamp("ns", "UTC")),
    })  # fmt: skip
    orc.write_table(file, tmp_path / "a.orc")
    reader = reader_of(
        ("id", pa.int64()), ("o", pa.struct({"B": pa.list_(pa.int64()), "not_there": pa.string()})),
        ("m", pa.map_(pa.string(), pa.struct({"a": pa.int64()}))), ("t", UTC), ("z", UTC), ("missing", UTC),
    )  # fmt: skip
    first, second, third = rows_of(tmp_path, reader)
    assert first == {
        "id": 1, "o": {"B": [1, 2], "not_there": None}, "m": [("k", {"a": 1})], "t": None, "z": None, "missing": None,
    }  # fmt: skip
    then = datetime.datetime(2020, 1, 2, 3, 4, 5, 123456, datetime.UTC)
    assert second == {**dict.fromkeys(first), "t": then, "z": then}
    before = datetime.datetime(1919, 12, 31, 20, 55, 54, 876543, datetime.UTC)
    assert (third["o"], third["m"], third["t"]) == ({"B": [], "not_there": None}, [], before)


UNFIT: dict[str, tuple[pa.Array, pa.DataType, str]] = {
    "no UTF-8": (pa.array([b"caf\xe9"]).view(pa.string()), pa.string(), "a string is no UTF-8"),
    "a fraction of the first second": (
        pa.array([500_000], pa.timestamp("us")),
        UTC,
        "a time in the second after 1970-01-01",
    ),
    "an old date": (pa.array([-141_428], pa.int32()).cast(pa.date32()), pa.date32(), "a date before 1582-10-15"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_value_that_does_not_fit(name: str, tmp_path: Path) -> None:
    values, target, words = UNFIT[name]
    for wrapped, kind in (
        (values, target),
        (pa.StructArray.from_arrays([values], ["a"]), pa.struct({"a": target})),
        (pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), values), pa.list_(target)),
    ):
        orc.write_table(pa.table({"c": wrapped}), tmp_path / "a.orc")
        with pytest.raises(FatalError, match=rf"a\.orc: column c: {words}.* \(stripe 0\)"):
            rows_of(tmp_path, reader_of(("c", kind)))


def kind_of(values: pa.Array) -> DataType | Unreadable:
    return opened(pa.table({"c": values})).stored[0].kind


def test_types_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times beyond 64 bits of nanoseconds are found by the file's statistics, wherever they are."""
    for year in (1, 1600, 2263, 9999):
        times = pa.array([datetime.datetime(year, 1, 1), datetime.datetime(2020, 1, 1)], pa.timestamp("us"))
        for values in (times, pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), times)):
            found = kind_of(values)
            assert isinstance(found, Unreadable) and "timestamp (with times before" in found.words
    union = pa.UnionArray.from_dense(
        pa.array([0, 1], pa.int8()), pa.array([0, 0], pa.int32()), [pa.array([1]), pa.array(["x"])]
    )
    assert kind_of(union) == Unreadable("uniontype")
    today = pa.array([datetime.datetime(2020, 1, 1)], pa.timestamp("us"))
    assert kind_of(today) == TimestampType()
    monkeypatch.setattr(orc_columns, "_WRAPS", True)
    assert kind_of(today) == TimestampType() and kind_of(pa.array([None], pa.timestamp("us"))) == TimestampType()


def test_old_versions_of_hive_do_not_write_the_zone() -> None:
    out = io.BytesIO()
    orc.write_table(pa.table({"t": pa.array([0], pa.timestamp("us")), "s": ["x"]}), out)
    footer = OpenOrc(Source(out)).footer  # type: ignore[arg-type]
    time, text = orc_columns.stored_columns(footer, "HIVE_8732")
    assert isinstance(time.kind, Unreadable) and text.kind == StringType()
    assert orc_columns.stored_columns(footer, "HIVE_4243")[0].kind == TimestampType()


def test_columns_without_names_are_found_by_their_place(tmp_path: Path) -> None:
    orc.write_table(pa.table({"_col0": [1], "_col1": ["x"]}), tmp_path / "a.orc")
    reader = reader_of(("a", pa.int64()), ("b", pa.string()), ("c", pa.string()))
    assert rows_of(tmp_path, reader) == [{"a": 1, "b": "x", "c": None}]
    assert rows_of(tmp_path, reader.narrowed(frozenset("b"))) == [{"b": "x"}]


def test_a_stripe_has_all_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_many_stripes(tmp_path / "a.orc")
    read = OpenOrc.rows_of

    def short(self: OpenOrc, place: int, columns: Any) -> Any:
        self._file = _Short(self._file)
        return read(self, place, columns)

    class _Short:
        def __init__(self, file: Any) -> None:
            self.reader = self
            self._file = file

        def read_stripe(self, place: int, columns: Any) -> Any:
            return self._file.reader.read_stripe(place, columns=columns).slice(1)

    monkeypatch.setattr(OpenOrc, "rows_of", short)
    with pytest.raises(FatalError, match=r"a\.orc: stripe 0 has [\d,]+ rows, and by its footer"):
        rows_of(tmp_path, reader_of(("n", pa.int64())))


def test_damage(tmp_path: Path) -> None:
    """Nothing that pyarrow raises gets out, nor any text of it, and a file that changed is none that is damaged."""
    write_many_stripes(tmp_path / "a.orc", compression="zlib")
    (split,) = splits_of(tmp_path)
    good = (tmp_path / "a.orc").read_bytes()
    for bad in (good[: len(good) // 2], good[4:], good[:99] + good[100:], good[:99] + good[98:], b"ORC" + bytes(500)):
        with pytest.raises(DamagedError):
            OpenOrc(Source(io.BytesIO(bad)))  # type: ignore[arg-type]
    stripe = OpenOrc(Source(io.BytesIO(good))).footer.stripes[1]  # type: ignore[arg-type]
    end = stripe.start + stripe.length - stripe.footer
    (tmp_path / "a.orc").write_bytes(good[: stripe.start] + bytes(end - stripe.start) + good[end:])
    reader = reader_of(("n", pa.int64()))
    with pytest.raises(ChangedError):
        list(reader.read(split, None))
    with pytest.raises(FatalError, match=r"a\.orc: its data or its footer is damaged, or it is cut off$"):
        rows_of(tmp_path, reader)


_FLIPS = """
import io, json, random, sys
from eosingest.sources.files.bytes.codecs import DamagedError
from eosingest.sources.files.reading.columnar_reader import Source
from eosingest.sources.files.reading.orc_reader import OpenOrc
data, count = open(sys.argv[1], "rb").read(), int(sys.argv[2])
random.seed(sys.argv[1])
damaged = 0
for _ in range(count):
    bad = bytearray(data)
    near_the_end = random.random() < 0.4
    at = random.randrange(max(0, len(bad) - 900), len(bad)) if near_the_end else random.randrange(len(bad))
    bad[at] ^= 1 << random.randrange(8)
    try:
        found = OpenOrc(Source(io.BytesIO(bytes(bad))))
        for place, stripe in enumerate(found.footer.stripes):
            found.rows_of(place, [column.name for column in found.stored])
    except DamagedError:
        damaged += 1
print(damaged)
"""


@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "zlib", "zstd", "lz4"])
def test_flipped_bits_do_not_end_the_process(codec: str, tmp_path: Path) -> None:
    """Breaks when pyarrow crashes on a damaged file, or raises what is no DamagedError."""
    times = pa.array(range(0, 3000 * 10**12, 10**12), pa.timestamp("us"))
    write_many_stripes(tmp_path / "a.orc", compression=codec, stripe_size=20_000)
    more = _TABLE.append_column("t", times).append_column("l", pa.array([[n, None] for n in range(3000)]))
    orc.write_table(more, tmp_path / "a.orc", compression=codec, stripe_size=20_000)
    done = subprocess.run(
        [sys.executable, "-c", _FLIPS, str(tmp_path / "a.orc"), "100"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 0
