"""Lines that go to Kafka as they are, read in the task itself: no JVM, no Arrow, no Python object that outlives a batch.

    planned splits ─▶ bytes of the file ─▶ lines (sources/files/lines.py) ─▶ addresses and lengths ─▶ task.py

Beside the way through Spark (read.py, worker.py), with the same records and receipts. Such an input reads the bytes of
its splits itself, each from its first line on, and knows where a split ends.
"""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BufferedIOBase
from itertools import pairwise

import numpy as np

from eosingest.errors import ChangedError, FatalError
from eosingest.kafka.columns import BinaryColumn
from eosingest.kafka.protocols import Records
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.plan import Plan, PlannedSplit
from eosingest.protocol.source import SourceFile
from eosingest.protocol.task_contract import Batch, Signal, SplitEnd
from eosingest.records import checksum
from eosingest.sources.files.codecs import DamagedError
from eosingest.sources.files.cuts import file_split, is_cut_by_codec, is_splittable
from eosingest.sources.files.fingerprint import to_milliseconds
from eosingest.sources.files.lines import Bounds, Lines, is_compressed, open_file, read_lines
from eosingest.spark.read_ahead import ReadAhead
from eosingest.spark.record_columns import ReadSettings
from eosingest.spec.expressions import tokens

SCHEMA = "value STRING"  # what Spark would infer of text


@dataclass(frozen=True)
class LineSplit:
    """A planned split and where it lies; `key` is its hash in the plan of the task."""

    key: int
    file: SourceFile
    planned: PlannedSplit

    @property
    def start(self) -> int:
        """Where it begins, in bytes."""
        return file_split(self.planned.split).start

    @property
    def length(self) -> int:
        """How many bytes it has."""
        return file_split(self.planned.split).length


@dataclass(frozen=True)
class LineSource:
    """What the tasks read: the splits of each, and the byte that ends a line (None: line feeds and carriage returns)."""

    tasks: tuple[tuple[LineSplit, ...], ...]
    separator: int | None


def takes_lines(settings: ReadSettings, conf: Mapping[str, str], plan: Plan, base_path: str | None) -> bool:
    """Say whether the records are the lines of text files as they are, in files that are read here as Spark reads them."""
    return sends_lines(settings, conf, base_path) and all(_is_readable(entry.file.path) for entry in plan.pending_files)


def sends_lines(settings: ReadSettings, conf: Mapping[str, str], base_path: str | None) -> bool:
    """Say whether the records are the lines of text files as they are."""
    separator = settings.options.get("lineSep", "\n")
    return (
        settings.format == "text"
        and settings.schema is None
        and (settings.where, settings.key, settings.timestamp, settings.partition) == (None, None, None, None)
        and not settings.headers
        and settings.select == ("*",)
        and [token.name for token in tokens(settings.value)] == ["value"]
        and settings.options.keys() <= {"lineSep"}
        and len(separator.encode()) == 1
        and not any(key.startswith("spark.hadoop.") for key in conf)  # other codecs, other file systems
        and base_path is None  # a folder may give a column of any name
    )


def _is_readable(path: str) -> bool:
    """Say whether a file is plain, or compressed and never cut: of bzip2, which can be cut, Hadoop knows more."""
    plain = is_splittable("text", path) and not is_cut_by_codec(path)
    return plain or is_compressed(path)


def line_source(settings: ReadSettings, planned: Sequence[LineSplit], most_tasks: int) -> LineSource:
    """Deal out what is not done of the planned splits: neighbours to one task, about as many bytes to each."""
    splits = [split for split in planned if not split.planned.done]
    bounds = _bounds([split.length for split in splits], min(most_tasks, len(splits)))
    return LineSource(
        tuple(tuple(splits[first:end]) for first, end in pairwise(bounds)),
        line_separator(settings),
    )


def line_separator(settings: ReadSettings) -> int | None:
    """Return the byte that ends a line, None where it is line feeds and carriage returns."""
    separator = settings.options.get("lineSep")
    return None if separator is None else ord(separator)


def _bounds(lengths: Sequence[int], tasks: int) -> list[int]:
    """Return where to cut a row of things of these lengths into `tasks` parts of like length, none of them empty."""
    ends = np.cumsum(lengths)
    wanted = np.searchsorted(ends, ends[-1] * np.arange(1, tasks) / tasks) + 1
    least = np.arange(1, tasks)
    apart = np.maximum.accumulate(wanted - least) + least
    return [0, *np.minimum(np.maximum(apart, least), len(lengths) - tasks + least).tolist(), len(lengths)]


class LineInputs:
    """The lines of a task's splits (`task_contract.Inputs`)."""

    def __init__(self, splits: Sequence[LineSplit], separator: int | None, longest: int) -> None:
        """Read nothing yet: where to begin is in the offsets topic. A line of more than `longest` bytes is not read whole."""
        self._splits = splits
        self._separator = separator
        self._longest = longest
        self._ahead: ReadAhead[Batch | SplitEnd] | None = None

    def begin(self, committed: Callable[[PlannedSplit], OffsetRecord | None]) -> None:
        """Begin to read, behind what is committed."""
        self._ahead = ReadAhead(self._items(committed))

    def get(self, timeout_s: float) -> Batch | SplitEnd | Signal:
        """Return what comes next; see the protocol."""
        assert self._ahead is not None, "begin comes first"
        return self._ahead.get(timeout_s)

    def stop(self) -> None:
        """End the reading."""
        if self._ahead is not None:
            self._ahead.stop()

    def _items(self, committed: Callable[[PlannedSplit], OffsetRecord | None]) -> Iterator[Batch | SplitEnd]:
        for split in self._splits:
            found = committed(split.planned)
            if found is None or not found.done:
                yield from self._of_split(split, found)

    def _of_split(self, split: LineSplit, found: OffsetRecord | None) -> Iterator[Batch | SplitEnd]:
        """Read a split from its first line on, also where some are committed: the task proves that they are those sent."""
        whole, start = is_compressed(split.file.path), split.start
        bounds = Bounds(
            start=start,
            end=None if whole else start + split.length,
            length=None if whole else split.file.length,
            longest=self._longest,
        )
        rows = 0
        with _opened(split) as file:
            for lines in self._lines(file, bounds, 0 if found is None else found.rows):
                yield _batch(split.key, lines, rows, self._separator)
                rows += len(lines)
            _refuse_change(split, file)
        yield SplitEnd(split.key, rows)

    def _lines(self, file: BufferedIOBase, bounds: Bounds, sent: int) -> Iterator[Lines]:
        """Yield the lines. The first `sent` ones are as long as they are: they were sent under another limit, perhaps."""
        if sent:
            for lines in read_lines(file, replace(bounds, longest=sys.maxsize), self._separator):
                before = lines.between(0, sent)
                yield before
                sent -= len(before)
                if not sent:
                    bounds = replace(bounds, position=int(before.positions[-1]))
                    break
            else:
                return
        yield from read_lines(file, bounds, self._separator)


@contextmanager
def _opened(split: LineSplit) -> Iterator[BufferedIOBase]:
    """Open a split's file. Raises ChangedError where it is not the one that was listed, FatalError where it is no text.

    Any other OSError may be gone next time.
    """
    try:
        with open_file(split.file.path) as file:
            _refuse_change(split, file)
            yield file
    except FileNotFoundError as error:
        raise _changed(split) from error
    except (EOFError, zlib.error, gzip.BadGzipFile, DamagedError, PermissionError) as error:
        raise FatalError(
            f"{split.file.name}: the data could not be read: {error}",
            code="bad-data",
            hint="what was committed is kept, nothing was sent twice; correct the file and run again",
        ) from error


def _refuse_change(split: LineSplit, file: BufferedIOBase) -> None:
    now = os.fstat(file.fileno())
    if (now.st_size, to_milliseconds(now.st_mtime_ns)) != (split.file.length, split.file.mtime_ms):
        raise _changed(split)


def _changed(split: LineSplit) -> ChangedError:
    return ChangedError(
        f"{split.file.name}: changed after it was listed",
        code="changed-while-read",
        hint="what was committed of it is kept; restore the file, or wait until nothing writes to it (source.min_age)",
        item=split.file.name,
    )


def _batch(key: int, lines: Lines, first_row: int, separator: int | None) -> Batch:
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
        positions=lines.positions,
    )
