"""Implements `spark.scan.Scan` for lines of files in stores: Python reads them; Spark computes everything beyond lines.

If Python does not cut the lines (`takes`), Spark reads them, as it reads all other formats (scan.py).

    lines as they are ─▶ line_reader.py ─▶ task.py            no JVM has rows
    anything else ─────▶ TextReader ─▶ PythonScan (spark/python_scan.py) ─▶ Spark SQL ─▶ task.py

The records are the same as of text files on a disk. Columns of `k=v` folders are strings here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from eosingest.errors import FatalError, listed
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.plan import Plan
from eosingest.sources.files.bytes.codecs import codec_of, named_by_codec
from eosingest.sources.files.bytes.lines import is_compressed, read_lines
from eosingest.sources.files.cuts import file_split
from eosingest.sources.files.listing.partitions import decoded, folder_values, partition_base
from eosingest.sources.files.listing.source_file import as_file
from eosingest.sources.files.reading import line_jobs
from eosingest.sources.files.reading import splits as file_splits
from eosingest.sources.files.reading.files_in_python import FilesInPython
from eosingest.sources.files.reading.inspect_files import inspect_pending
from eosingest.sources.files.reading.line_reader import LineReader, LineSplit, bounds_of, opened_lines
from eosingest.sources.files.reading.planned_files import pending_files, planned_files
from eosingest.spark.python_scan import PythonScan, PythonSplit
from eosingest.spark.scan import Direct, Tasks

_LINE = "value"


def takes(paths: Sequence[str], options: Mapping[str, str], compression: str | None = None) -> bool:
    """Say whether lines of such paths are read here: not if lines end with several bytes, or all have another codec."""
    if len(options.get("lineSep", "\n").encode()) != 1:
        return False
    return not all(_is_of_another_codec(named_by_codec(path, compression)) for path in paths)


def _is_of_another_codec(path: str) -> bool:
    """Say whether a name is that of compressed text which Python does not cut into lines: `.bz2` and `.deflate`."""
    return codec_of(path) is not None and not is_compressed(path)


@dataclass(frozen=True)
class TextReader:
    """Reads the lines of a split as a column (`python_scan.ArrowReader`), followed by the texts of its `folders`."""

    separator: int | None
    folders: tuple[str, ...] = ()
    decode: Callable[[str], str] = decoded

    def read(self, split: PythonSplit, committed: OffsetRecord | None) -> Iterator[pa.RecordBatch]:
        """Yield the lines of a split, including committed ones; see `python_scan.ArrowReader`."""
        file, cut = as_file(split.item), file_split(split.planned.split)
        beside = {name.lower(): value for name, value in folder_values(file, self.decode).items()}
        with opened_lines(file, cut) as opened:
            for lines in read_lines(opened, bounds_of(file, cut), self.separator):
                # Bytes that are not UTF-8 stay as they are, as in Spark's reader of text.
                found = [pa.array(lines.values(self.separator), pa.binary()).view(pa.string())]
                found += [pa.array([beside[name.lower()]] * len(lines), pa.string()) for name in self.folders]
                yield pa.RecordBatch.from_arrays(found, names=[_LINE, *self.folders])


@dataclass(frozen=True)
class StoreLines(FilesInPython):
    """How text in stores is read."""

    def direct(self, plan: Plan) -> Direct | None:
        """Return the tasks' reader of lines that go to Kafka as they are, or of bare columns; None for anything else."""
        if not line_jobs.sends_lines(self.read, {}, partition_base(planned_files(plan), recursive=self.recursive)):
            return super().direct(plan)
        splits = [LineSplit(*planned) for planned in file_splits.planned_splits(plan, file_splits.BLOCK)]
        return Direct(LineReader(line_jobs.line_separator(self.read)), splits, line_jobs.SCHEMA)

    def inspect(self, tasks: Tasks, plan: Plan, *, direct: bool, slots: int) -> None:
        """Check names and first bytes; the tasks find damage themselves, by the same decoders.

        Raises FatalError for files whose codec no task reads.
        """
        files = pending_files(plan)
        unread = [file.name for file in files if _is_of_another_codec(file.coded_path)]
        if unread:
            raise FatalError(
                f"{listed(unread, 10)}: of a store, text that is compressed otherwise than as .gz, .zst or .lz4 is read where"
                " nothing else is named",
                code="bad-data",
                hint="nothing of this run was sent; give them a job with a path that ends so (*.bz2), and leave them out here",
            )
        inspect_pending(tasks, self.read, plan, as_lines=True, slots=slots)

    def of(self, plan: Plan) -> PythonScan:
        """Return the scan of the lines, followed by the folders' texts."""
        names = tuple(self.folders(plan))
        reader = TextReader(line_jobs.line_separator(self.read), names, self.decode)
        return PythonScan(self.records, reader, dict.fromkeys((_LINE, *names), "STRING"))
