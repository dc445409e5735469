"""Reads files that are one value each, in tasks: `wholetext` of text, and binaryFile (a `python_scan.ArrowReader`).

a file, one split ─▶ its content, of text decompressed ─▶ a row, with the columns of `k=v` folders
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.sources.files.bytes import codecs
from eosingest.sources.files.listing.errors import while_sent
from eosingest.sources.files.listing.names import hadoop_text
from eosingest.sources.files.listing.source_file import SourceFile, as_file
from eosingest.sources.files.reading.folder_columns import FolderColumns, appended
from eosingest.sources.files.reading.open_file import opened_to_read
from eosingest.spark.python_scan import PythonSplit

TEXT, CONTENT = "value", "content"


@dataclass(frozen=True)
class ValueReader:
    """Reads the row of a file; `content` None: without the file's bytes. `folders` are the columns after the others."""

    content: str | None
    folders: FolderColumns

    def narrowed(self, names: frozenset[str]) -> ValueReader:
        """Return a reader that reads the content only if it is among these columns."""
        return self if self.content in names else replace(self, content=None)

    def read(self, split: PythonSplit, committed: OffsetRecord | None) -> Iterator[pa.RecordBatch]:
        """Yield the row of a file; see `python_scan.ArrowReader`."""
        file = as_file(split.item)
        content = self._content(file)
        yield appended(pa.RecordBatch.from_pydict({**self._listed(file), **content}), self.folders.of(file))

    def _content(self, file: SourceFile) -> Mapping[str, pa.Array[Any]]:
        if self.content is None:
            if not file.storage.is_as_listed(file):
                raise while_sent(file)
            return {}
        with opened_to_read(file) as opened:
            if self.content == CONTENT:
                return {CONTENT: _one(opened.read())}
            # Bytes that are not UTF-8 stay as they are.
            return {TEXT: _one(b"".join(codecs.pieces(opened, file.coded_path))).view(pa.string())}

    def _listed(self, file: SourceFile) -> Mapping[str, pa.Array[Any]]:
        """Return the other columns of binaryFile."""
        if self.content == TEXT:
            return {}
        return {
            "path": pa.array([hadoop_text(file.path)]),
            "modificationTime": pa.array([file.mtime_ms * 1000], pa.int64()).cast(pa.timestamp("us", "UTC")),
            "length": pa.array([file.length], pa.int64()),
        }


def _one(value: bytes) -> pa.Array[Any]:
    """Return an array of one value, over its memory."""
    offsets: Any = np.array([0, len(value)], np.int32)
    made: Any = pa.BinaryArray
    found: pa.Array[Any] = made.from_buffers(pa.binary(), 1, [None, pa.py_buffer(offsets), pa.py_buffer(value)])
    return found
