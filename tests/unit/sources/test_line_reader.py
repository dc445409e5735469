"""Which jobs have their lines read without a JVM, how splits are dealt out, and what of a file is an error."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from eosingest.errors import ChangedError, FatalError
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.plan import Plan, make_plan
from eosingest.protocol.source import Position, PositionKind
from eosingest.protocol.task_contract import Batch, Signal, SplitEnd
from eosingest.records import checksum
from eosingest.sources.files.bytes import lines
from eosingest.sources.files.reading import line_reader
from eosingest.sources.files.reading.folder_columns import FolderColumns
from eosingest.sources.files.reading.json_reader import JsonReader, JsonSettings
from eosingest.sources.files.reading.line_reader import LineReader
from eosingest.sources.files.reading.read_settings import ReadSettings
from eosingest.sources.files.reading.text_reader import TextReader
from eosingest.sources.files.reading.text_scan import TextScan
from eosingest.sources.files.source import FileSource
from eosingest.spark.direct import DirectInputs, _bounds, deal
from eosingest.spark.python_scan import PythonSplit, planned_splits
from tests.support.builders import offset_record, place
from tests.support.compressed import lz4_frame, zstd

LINES = ReadSettings(
    format="text",
    options={},
    schema=None,
    where=None,
    select=("*",),
    key=None,
    value="value",
    headers={},
    timestamp=None,
)


JSON = StructType().add("n", "long")


def plan_of(folder: Path, split_size: int = 100) -> Plan:
    source = FileSource(format="text", paths=["*"], directory=folder, root=None, min_age_s=0)
    return make_plan(source, {}, split_size, source.plan())


def dealt(folder: Path, tasks: int = 1, split_size: int = 100) -> tuple[tuple[PythonSplit, ...], ...]:
    return deal(planned_splits(plan_of(folder, split_size)), tasks)


def reading(splits: Sequence[PythonSplit], longest: int = 1 << 20) -> DirectInputs:
    return DirectInputs(LineReader(None), splits, longest)


def all_of(inputs: DirectInputs, found: OffsetRecord | None = None) -> list[Batch | SplitEnd]:
    items: list[Batch | SplitEnd] = []
    inputs.begin(lambda split: found)
    try:
        while not isinstance(item := inputs.get(5), Signal):
            items.append(item)
    finally:
        inputs.stop()
    assert item is Signal.END
    return items


def values(items: list[Batch | SplitEnd]) -> list[bytes | None]:
    return [value for item in items if isinstance(item, Batch) for value in item.records.values]


def positions_of(batch: Batch | SplitEnd) -> list[Position]:
    assert isinstance(batch, Batch)
    assert batch.positions is not None
    return [batch.positions.at(row) for row in range(len(batch.splits))]


@pytest.mark.parametrize(
    ("settings", "takes"),
    [
        (LINES, True),
        (replace(LINES, value=" `VALUE` -- as it is\n"), True),
        (replace(LINES, options={"lineSep": ";"}), True),
        (replace(LINES, options={"lineSep": "\r\n"}), True),
        (replace(LINES, options={"lineSep": "é"}), True),
        (replace(LINES, where="value <> ''"), False),
        (replace(LINES, select=("upper(value) AS value",)), False),
        (replace(LINES, key="value"), False),
        (replace(LINES, value="upper(value)"), False),
        (replace(LINES, headers={"a": "value"}), False),
        (replace(LINES, timestamp="current_date()"), False),
    ],
)
def test_which_specs(tmp_path: Path, settings: ReadSettings, takes: bool) -> None:
    """Breaks when a spec that asks for more than the lines has them sent as they are."""
    (tmp_path / "a").write_bytes(b"x\n")
    direct = TextScan(settings, settings).direct(plan_of(tmp_path))
    assert (direct is not None and isinstance(direct.reader, LineReader)) is takes


def test_a_folder_may_not_be_called_as_the_lines(tmp_path: Path) -> None:
    """Breaks when a folder's value is sent in place of the lines."""
    (tmp_path / "Value=1").mkdir()
    (tmp_path / "Value=1" / "a").write_bytes(b"x\n")
    with pytest.raises(FatalError) as raised:
        TextScan(LINES, LINES).direct(plan_of(tmp_path))
    assert raised.value.code == "column-twice"


@pytest.mark.parametrize(
    ("lengths", "tasks", "bounds"),
    [
        ([5], 1, [0, 1]),
        ([5, 5], 2, [0, 1, 2]),
        ([1, 1, 1, 1, 1, 1, 1], 3, [0, 3, 5, 7]),
        ([100, 1, 1], 3, [0, 1, 2, 3]),
        ([1, 1, 100], 3, [0, 1, 2, 3]),
        ([1, 1, 100], 2, [0, 2, 3]),
        ([1, 100, 1, 1, 1], 3, [0, 2, 3, 5]),
        ([1, 1, 1, 100], 4, [0, 1, 2, 3, 4]),
    ],
)
def test_dealing_out(lengths: list[int], tasks: int, bounds: list[int]) -> None:
    assert _bounds(lengths, tasks) == bounds


def test_lines_with_their_places(tmp_path: Path) -> None:
    """Breaks when receipts, row numbers or positions are not those of the lines."""
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\r\n\r\nthree\n" + b"x" * 200 + b"\nlast")
    splits = dealt(tmp_path)[0]
    items = all_of(reading(splits))

    ends = [item for item in items if isinstance(item, SplitEnd)]
    batches = [item for item in items if isinstance(item, Batch)]
    assert values(items) == [b"one", b"", b"three", b"x" * 200, b"last"]
    assert [end.rows for end in ends] == [4, 0, 1]
    assert [batch.first_row for batch in batches] == [0, 0]
    assert [positions_of(batch) for batch in batches] == [[8, 10, 16, 217], [221]]
    for batch in batches:
        expected = checksum.record_hashes((None, value) for value in batch.records.values)
        assert [int(found) % checksum.MODULUS for found in batch.hashes] == expected
        assert list(batch.records.keys) == [None] * len(batch.splits)
        assert batch.sizes.tolist() == [len(value or b"") for value in batch.records.values]


def test_reads_what_was_sent_as_well(tmp_path: Path) -> None:
    """Breaks when a committed position is sought: that what lies before it is what was sent would not be proven."""
    (tmp_path / "a").write_bytes(b"one\ntwo\nthree\n")
    splits = dealt(tmp_path)[0]
    found = offset_record("a", 0, 14, rows=2, position=8, position_kind=PositionKind.BYTES)

    def read(found: OffsetRecord) -> tuple[list[bytes | None], list[int | None]]:
        items = all_of(reading(splits), found)
        return values(items), [item.first_row for item in items if isinstance(item, Batch)]

    assert read(found) == ([b"one", b"two", b"three"], [0, 2])
    assert read(replace(found, position=2, position_kind=PositionKind.ROWS)) == ([b"one", b"two", b"three"], [0, 2])
    assert read(replace(found, done=True)) == ([], [])


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
def test_lines_that_were_sent_are_as_long_as_they_are(
    tmp_path: Path, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when a sent line that is over today's limit ends its split: what is behind it would be called done, unsent."""
    monkeypatch.setattr(lines, "_BLOCK_BYTES", 8)
    monkeypatch.setattr(lines, "BEYOND_BYTES", 4)
    whole = [b"one", b"y" * 50, b"three", b"four", b"five"]
    (tmp_path / "a").write_bytes(b"\n".join(whole))
    found = offset_record("a", 0, 70, rows=rows)

    items = all_of(reading(dealt(tmp_path)[0], longest=10), found)

    batches = [item for item in items if isinstance(item, Batch)]
    counts = [len(batch.splits) for batch in batches]
    assert [batch.first_row for batch in batches] == [sum(counts[:at]) for at in range(len(counts))]
    if rows == 1:  # the long one is yet to be sent: it comes without its rest, as the last one, for the task to refuse
        assert [value and value[:3] for value in values(items)] == [b"one", b"yyy"]
    else:
        assert values(items) == whole
        assert positions_of(batches[-1])[-1] == 70


def test_a_file_that_changed(tmp_path: Path) -> None:
    """Breaks when a file is sent under the fingerprint of another content."""
    path = tmp_path / "a"
    path.write_bytes(b"one\n")
    splits = dealt(tmp_path)[0]
    for change in (lambda: path.write_bytes(b"one\ntwo\n"), lambda: os.utime(path, (0, 0)), path.unlink):
        change()
        with pytest.raises(ChangedError, match="changed after it was listed"):
            all_of(reading(splits))


def test_a_file_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when only the beginning of a split's reading is looked at."""
    monkeypatch.setattr(lines, "_BLOCK_BYTES", 64)
    path = tmp_path / "a"
    path.write_bytes(b"one\n" * 1_000)
    splits = dealt(tmp_path, split_size=10_000)[0]
    inputs = reading(splits)
    inputs.begin(lambda split: None)
    try:
        assert isinstance(inputs.get(5), Batch)
        path.write_bytes(b"two\n" * 1_001)
        with pytest.raises(ChangedError, match="changed after it was listed"):
            while not isinstance(inputs.get(5), SplitEnd):
                pass
    finally:
        inputs.stop()


COMPRESS = {"a": bytes, "a.gz": gzip.compress, "a.zst": zstd, "a.lz4": lz4_frame}


@pytest.mark.parametrize("name", COMPRESS)
@pytest.mark.parametrize("kind", ["bytes", "rows"])
def test_going_on_at_a_position(tmp_path: Path, name: str, kind: str) -> None:
    """Breaks when lines of a file that is decompressed are left out or sent again by the run that goes on with it."""
    data = b"".join(b"%d\n" % number for number in range(100_000, 400_000))
    (tmp_path / name).write_bytes(COMPRESS[name](data))
    splits = dealt(tmp_path, split_size=1 << 30)[0]
    position, sent = (7 * 200_000, 200_000)
    length = (tmp_path / name).stat().st_size
    found = offset_record(
        name, 0, length, rows=sent, position=position if kind == "bytes" else sent, position_kind=kind
    )
    items = all_of(reading(splits), found)
    assert items[-1] == SplitEnd(splits[0].key, 300_000)
    batches = [item for item in items if isinstance(item, Batch)]
    rows = [(batch.first_row + index, value) for batch in batches for index, value in enumerate(batch.records.values)]
    assert [value for row, value in rows if row >= sent] == data[position:].splitlines()


@pytest.mark.parametrize("name", COMPRESS)
def test_a_position_behind_the_end(tmp_path: Path, name: str) -> None:
    """Breaks when a file that held more when it was sent, and was put back, counts as read to its end."""
    (tmp_path / name).write_bytes(COMPRESS[name](b"one\ntwo\n"))
    splits = dealt(tmp_path)[0]
    found = offset_record(name, 0, 8, rows=3, position=12, position_kind=PositionKind.BYTES)
    items = all_of(reading(splits), found)
    assert items[-1] == SplitEnd(splits[0].key, 2)  # fewer than are committed: the task says so


def test_what_cannot_be_read_now_is_no_bad_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a disk that fails for a moment tells the user to correct the file."""

    def fails(file: object, path: str) -> None:
        raise OSError(5, "Input/output error")

    (tmp_path / "a").write_bytes(b"one\n")
    splits = dealt(tmp_path)[0]
    monkeypatch.setattr(line_reader, "decompressed", fails)
    with pytest.raises(OSError, match="Input/output error"):
        all_of(reading(splits))


@pytest.mark.parametrize("reader", [TextReader(None, FolderColumns()), JsonReader(JSON, JsonSettings.of({}))])
def test_no_rows_of_content_that_is_written_while_a_file_is_read(
    tmp_path: Path, reader: TextReader | JsonReader
) -> None:
    """Breaks when they are sent before the end of the split shows that the file has changed."""
    path = tmp_path / "a"
    path.write_bytes(b'{"n":1}\n' * 1_000_000)
    (split,) = dealt(tmp_path, split_size=1 << 30)[0]
    batches = reader.read(split, None)
    seen = {str(value) for value in next(batches).column(0).unique().to_pylist()}
    with path.open("r+b") as file:
        file.write(b'{"n":2}\n' * 1_000_000)
    with pytest.raises(ChangedError, match="changed after it was listed"):
        for batch in batches:
            seen |= {str(value) for value in batch.column(0).unique().to_pylist()}
    assert len(seen) == 1


@pytest.mark.parametrize("name", ["a.gz", "a.zst", "a.lz4"])
def test_a_file_that_cannot_be_decompressed(tmp_path: Path, name: str) -> None:
    """Breaks when a torn file counts as read to its end, or as a bug."""
    whole = COMPRESS[name](b"".join(b"%d\n" % number for number in range(1000)))
    for torn in (
        whole[:-1],
        whole[:-20],
        b"not compressed at all",
        whole[:40] + b"\xff" * 20 + whole[60:],
        whole + b"x",
    ):
        path = tmp_path / name
        path.write_bytes(torn)
        splits = dealt(tmp_path)[0]
        with pytest.raises(FatalError, match=rf"{name}: the data could not be read") as raised:
            all_of(reading(splits))
        assert raised.value.code == "bad-data"


def test_split_without_a_task_is_none(tmp_path: Path) -> None:
    """Breaks when a split is dealt out twice or to nobody."""
    for name in "abc":
        (tmp_path / name).write_bytes(b"0123456\n" * 50)
    tasks = dealt(tmp_path, tasks=4, split_size=64)
    splits = [place(split.planned) for task in tasks for split in task]
    assert len(tasks) == 4
    assert splits == sorted({(name, start) for name in "abc" for start in range(0, 400, 64)})
