"""Reads lines of text in tasks as an Arrow column: a `python_scan.ArrowReader`, whose rows go to the producer or to Spark.

a split ─▶ lines (line_reader.py, for an audit audit_lines.py) ─▶ the column, and those of `k=v` folders
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.sources.files.cuts import FileSplit, file_split
from eosingest.sources.files.listing.source_file import SourceFile, as_file
from eosingest.sources.files.reading.folder_columns import FolderColumns, appended
from eosingest.sources.files.reading.line_reader import lines_of
from eosingest.spark.python_scan import PythonSplit

LINE = "value"
# Yields the lines of a split, in blocks, given what ends a line (`lines.read_lines`).
CutLines = Callable[[SourceFile, FileSplit, bytes | None], Iterator[list[bytes]]]


@dataclass(frozen=True)
class TextReader:
    """Reads the lines of splits, followed by the columns of the `folders`."""

    separator: bytes | None
    folders: FolderColumns
    cut: CutLines = lines_of

    def read(self, split: PythonSplit, committed: OffsetRecord | None) -> Iterator[pa.RecordBatch]:
        """Yield the lines of a split, including committed ones; see `python_scan.ArrowReader`."""
        file = as_file(split.item)
        values = self.folders.of(file)
        for lines in self.cut(file, file_split(split.planned.split), self.separator):
            # Bytes that are not UTF-8 stay as they are.
            column = pa.array(lines, pa.binary()).view(pa.string())
            yield appended(pa.RecordBatch.from_arrays([column], names=[LINE]), values)
