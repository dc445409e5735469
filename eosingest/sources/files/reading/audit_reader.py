"""Reads files of lines for an audit without Spark's readers, with `lines.read_lines`.

An audit of the source uses another reader than the run did, if there is one: rows.py (Spark), or this module:

- A run that sends lines as they are reads them in its tasks; the audit, with Spark. Only .zst with a window or frame that Spark
  does not support, and .gz followed by zeros, have no reader but the tasks'.
- A run that has a .bz2 among its pending files reads all of them with Spark, and its receipts count rows; the audit reads them
  here, .bz2 with Python's decoder.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BufferedIOBase
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from eosingest.errors import EosingestError
from eosingest.protocol.plan import Plan, PlannedItem
from eosingest.protocol.source import PositionKind
from eosingest.records import checksum
from eosingest.sources.files.bytes.codecs import PIECE_BYTES, DamagedError, Decompressed, codec_of, pieces
from eosingest.sources.files.bytes.lines import Bounds, decompressed, is_compressed, read_lines
from eosingest.sources.files.cuts import is_cut_by_codec
from eosingest.sources.files.formats.inspection import inspect
from eosingest.sources.files.listing.source_file import SourceFile, as_file
from eosingest.sources.files.reading.hadoop_codecs import end_of_name
from eosingest.sources.files.reading.line_reader import LineSplit
from eosingest.sources.files.reading.planned_files import planned_files
from eosingest.spark.record_columns import CHECKSUM, SPLIT
from eosingest.spark.without_pandas import map_in_arrow

_SCHEMA = f"{SPLIT} BIGINT, {CHECKSUM} BIGINT"


def split_for_audit(context: Any, plan: Plan, slots: int, *, by_another_reader: bool) -> tuple[Plan, Plan]:
    """Divide a plan of lines into the parts that Spark reads and that are read here; Spark gets a file that neither can read.

    Not `by_another_reader`: only files that Spark cannot read are read here. `slots`: how many tasks run at a time.
    """
    apart = _sent_by_spark(plan) if by_another_reader else set()
    compressed = [file for file in planned_files(plan) if is_compressed(file.coded_path) and file.name not in apart]
    if compressed:
        tasks = min(len(compressed), slots)
        apart |= set(context.parallelize(compressed, tasks).mapPartitions(_read_by_lines_alone).collect())
    return (
        replace(plan, items=tuple(entry for entry in plan.items if entry.item.name not in apart)),
        replace(plan, items=tuple(entry for entry in plan.items if entry.item.name in apart)),
    )


def decoded_again(text: str) -> str:
    """Return what a folder's name holds, without the decoder of the run: each `%XX` is a byte of UTF-8."""
    parts = re.split(rb"%([0-9A-Fa-f]{2})", text.encode())
    parts[1::2] = (bytes.fromhex(digits.decode()) for digits in parts[1::2])
    return b"".join(parts).decode(errors="replace")


def _sent_by_spark(plan: Plan) -> set[str]:
    """Return the names of files that Spark read in the run, by their receipts, and that can be read here.

    A .bz2 file cannot unless all its splits are done: only Spark knows where its splits begin.
    """
    return {
        entry.item.name
        for entry in plan.items
        if _receipts_in_rows(entry) and (_is_done(entry) or not is_cut_by_codec(as_file(entry.item).coded_path))
    }


def _receipts_in_rows(entry: PlannedItem) -> bool:
    found = [planned.committed for planned in entry.pending if planned.committed is not None]
    return all(receipt.position_kind is PositionKind.ROWS for receipt in found)


def _is_done(entry: PlannedItem) -> bool:
    done = [planned for planned in entry.pending if planned.done]
    return len(done) == entry.splits


def _read_by_lines_alone(files: Iterable[SourceFile]) -> Iterator[str]:
    for file in files:
        if not _read_by_spark(file) and _whole(file):
            yield file.name


def _read_by_spark(file: SourceFile) -> bool:
    if file.coded_path != file.path and not end_of_name(file.path.rpartition("/")[2]):
        return False
    try:
        if codec_of(file.coded_path) in ("gzip", "deflate"):  # the inspection skips damage that Hadoop reports itself
            with open(file.path, "rb") as opened:
                for _ in pieces(opened, file.coded_path):
                    pass
            return True
        return inspect(file, "text", {}) is None
    except DamagedError:
        return False
    except EosingestError:  # Spark reports it
        return True


def _whole(file: SourceFile) -> bool:
    try:
        with _opened(file) as opened:
            while opened.read(PIECE_BYTES):
                pass
    except (DamagedError, EOFError, zlib.error, gzip.BadGzipFile, OSError):
        return False
    return True


def _opened(file: SourceFile) -> BufferedIOBase:
    """Open a local file, decompressed; .bz2 by Python's decoder."""
    opened = open(file.path, "rb")  # noqa: SIM115 - the returned file closes it
    return (
        Decompressed(opened, file.coded_path)
        if is_cut_by_codec(file.coded_path)
        else decompressed(opened, file.coded_path)
    )


def line_hashes(spark: SparkSession, splits: Sequence[LineSplit], separator: int | None) -> DataFrame:
    """Return split and hash of each line; all lines of a compressed file count for its first split."""
    read = tuple(split for split in splits if split.start == 0 or not _is_read_whole(split.file))
    numbers = spark.range(0, len(read), 1, len(read))
    return map_in_arrow(numbers, _Hashes(read, separator), _SCHEMA)


def _is_read_whole(file: SourceFile) -> bool:
    return codec_of(file.coded_path) is not None


@dataclass(frozen=True)
class _Hashes:
    """Reads splits and hashes their lines, in a task. Pickled and sent to tasks."""

    splits: tuple[LineSplit, ...]
    separator: int | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the hashes of the splits whose numbers are in the batches."""
        for batch in batches:
            for number in batch.column(0).to_numpy():
                yield from self._of(self.splits[number])

    def _of(self, split: LineSplit) -> Iterator[pa.RecordBatch]:
        start = split.start
        whole = _is_read_whole(split.file)
        bounds = Bounds(start, None) if whole else Bounds(start, start + split.length, split.file.length)
        try:
            with _opened(split.file) as file:
                for lines in read_lines(file, bounds, self.separator):
                    keys = np.full(len(lines), split.key, np.int64)
                    hashes = np.asarray(checksum.value_hashes(lines.values(self.separator)), np.int64)
                    yield pa.RecordBatch.from_arrays([pa.array(keys), pa.array(hashes)], names=[SPLIT, CHECKSUM])
        except DamagedError as damaged:
            raise ValueError(f"[DAMAGED_FILE] {split.file.name}: {damaged}") from damaged  # like Spark's errors
