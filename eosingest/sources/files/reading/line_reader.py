"""Reads lines that go to Kafka as they are, in the task itself: no JVM, no Arrow, no Python object that outlives a batch.

    planned splits ─▶ bytes of the file ─▶ lines (bytes/lines.py) ─▶ addresses and lengths ─▶ task.py

Implements `DirectReader` (spark/direct.py). Records and receipts are the same as those of text_reader.py.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BufferedIOBase

import numpy as np

from eosingest.errors import FatalError
from eosingest.kafka.columns import BinaryColumn
from eosingest.kafka.ports import Records
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.task_contract import Batch
from eosingest.records import checksum
from eosingest.sources.files.bytes.codecs import DamagedError
from eosingest.sources.files.bytes.lines import BEYOND_BYTES, Bounds, Lines, decompressed, is_compressed, read_lines
from eosingest.sources.files.cuts import FileSplit, file_split
from eosingest.sources.files.listing.errors import opened_as_listed, while_sent
from eosingest.sources.files.listing.source_file import SourceFile, as_file
from eosingest.sources.files.positions import BytePositions
from eosingest.spark.python_scan import PythonSplit


@dataclass(frozen=True)
class LineReader:
    """Reads lines (`direct.DirectReader`). `separator` ends one, None: line feeds and carriage returns."""

    separator: bytes | None

    def read(self, split: PythonSplit, committed: OffsetRecord | None, longest: int) -> Iterator[Batch]:
        """Yield the lines of a split, including committed ones; see `DirectReader`.

        A line of more than `longest` bytes is not read whole, unless it was sent.
        """
        file, cut = as_file(split.item), file_split(split.planned.split)
        bounds = replace(bounds_of(file, cut), longest=longest)
        rows = 0
        with opened_lines(file, cut) as opened:
            for lines in self._lines(opened, bounds, 0 if committed is None else committed.rows):
                yield _batch(split.key, lines, rows, self.separator)
                rows += len(lines)

    def _lines(self, file: BufferedIOBase, bounds: Bounds, sent: int) -> Iterator[Lines]:
        """Yield the lines. The first `sent` ones are read whole: they may have been sent under a larger limit."""
        if sent:
            for lines in read_lines(file, replace(bounds, longest=sys.maxsize), self.separator):
                before = lines.between(0, sent)
                yield before
                sent -= len(before)
                if not sent:
                    bounds = replace(bounds, position=int(before.positions[-1]))
                    break
            else:
                return
        yield from read_lines(file, bounds, self.separator)


def lines_of(file: SourceFile, cut: FileSplit, separator: bytes | None) -> Iterator[list[bytes]]:
    """Yield the lines of a split, in blocks; raises as `opened_lines`."""
    with opened_lines(file, cut) as opened:
        for lines in read_lines(opened, bounds_of(file, cut), separator):
            yield lines.values(separator)


def bounds_of(file: SourceFile, cut: FileSplit) -> Bounds:
    """Return the range to read of a split of a file: the whole file if it is decompressed."""
    whole = is_compressed(file.coded_path)
    return Bounds(cut.start, None if whole else cut.start + cut.length, None if whole else file.length)


@contextmanager
def opened_lines(file: SourceFile, cut: FileSplit) -> Iterator[BufferedIOBase]:
    """Open a split's file, decompressed. Raises ChangedError if it has changed since it was listed, or is gone.

    Raises FatalError if it cannot be decompressed or may not be read. Any other OSError may be temporary.
    """
    until = None if is_compressed(file.coded_path) else cut.start + cut.length + BEYOND_BYTES
    try:
        with opened_as_listed(file, while_sent, until) as opened:
            yield decompressed(opened, file.coded_path)
    except (EOFError, zlib.error, gzip.BadGzipFile, DamagedError, PermissionError) as error:
        raise FatalError(
            f"{file.name}: the data could not be read: {error}",
            code="bad-data",
            hint="committed records are kept, nothing was sent twice; correct the file and run again",
        ) from error


def _batch(key: int, lines: Lines, first_row: int, separator: bytes | None) -> Batch:
    count = len(lines)
    lengths = lines.ends - lines.starts
    address = np.frombuffer(lines.data, np.uint8).ctypes.data
    values = BinaryColumn(lines.data, lines.starts.astype(np.uint64) + np.uint64(address), lengths)
    return Batch(
        splits=np.full(count, key, np.int64),
        records=Records(BinaryColumn.nulls(count), values),
        hashes=checksum.value_hashes(lines.values(separator)),
        sizes=lengths,
        first_row=first_row,
        positions=BytePositions(lines.positions),
    )
