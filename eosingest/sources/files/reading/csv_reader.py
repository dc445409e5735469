"""Reads CSV files in tasks as Arrow columns: a `python_scan.ArrowReader`, whose rows go to the producer or to Spark.

a split ─┬─ lines (bytes/lines.py) ─────────────────────────────┬─▶ without the header ─▶ csv_columns.py ─▶ columns
         ├─ a file that is not cut: its text (text_blocks.py) ──┤
         └─ rows over several lines (whole_csv.py) ─────────────┘
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import BufferedReader
from typing import Any, TypeVar

import pyarrow as pa

from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.sources.files.bytes import codecs
from eosingest.sources.files.bytes.lines import BEYOND_BYTES, Bounds, read_lines
from eosingest.sources.files.bytes.text_blocks import BadTextError, blocks, layout, zero_byte
from eosingest.sources.files.cuts import FileSplit, file_split
from eosingest.sources.files.formats.csv_rows import Dialect
from eosingest.sources.files.formats.whole import is_whole
from eosingest.sources.files.formats.whole_csv import Grammar, whole_rows
from eosingest.sources.files.listing.source_file import SourceFile, as_file
from eosingest.sources.files.reading.csv_columns import CsvColumns, Rows
from eosingest.sources.files.reading.folder_columns import FolderColumns, appended
from eosingest.sources.files.reading.open_file import opened_to_read
from eosingest.spark.python_scan import PythonSplit
from eosingest.spark.record_settings import CORRUPT

_T = TypeVar("_T")


@dataclass(frozen=True)
class CsvReader:
    """Reads a split's rows (`python_scan.ArrowReader`): the columns, the text of corrupt rows, and those of `k=v` folders."""

    options: Mapping[str, str]
    columns: CsvColumns
    folders: FolderColumns = field(default_factory=FolderColumns)

    def narrowed(self, names: frozenset[str]) -> CsvReader:
        """Return a reader of only these columns; values of others are not checked."""
        return replace(self, columns=self.columns.narrowed(names), folders=self.folders.narrowed(names))

    def read(self, split: PythonSplit, committed: OffsetRecord | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split, including committed ones; see `python_scan.ArrowReader`."""
        file = as_file(split.item)
        values = self.folders.of(file)
        names = [*self.columns.names, CORRUPT]
        for columns, corrupt in read_rows(file, file_split(split.planned.split), self.options, self.columns.decode):
            yield appended(pa.RecordBatch.from_arrays([*columns, corrupt], names=names), values)

    def why(self, texts: Sequence[bytes]) -> list[str]:
        """See `corrupt_rows.Explaining`."""
        return self.columns.why([text.decode(errors="replace") for text in texts])


def read_rows(
    file: SourceFile, cut: FileSplit, options: Mapping[str, str], parsed: Callable[[Rows], _T]
) -> Iterator[_T]:
    """Yield what `parsed` returns for the rows of a split, in blocks, without the header.

    Raises ChangedError if the file has changed since it was listed, FatalError for text that is not of the encoding, or not of
    the file's codec; an OSError may be temporary.
    """
    texts = _Texts(options)
    until = None if not file.splittable else cut.start + cut.length + BEYOND_BYTES
    with opened_to_read(file, until) as opened:
        if is_whole("csv", options):
            found = texts.over_lines(opened, file)
        elif file.splittable:
            found = texts.of_lines(opened, file, cut)
        else:
            found = texts.of_file(opened, file)
        for rows in _without_first(found) if texts.dialect.header and cut.start == 0 else found:
            yield parsed(rows)


def _without_first(found: Iterator[Rows]) -> Iterator[Rows]:
    """Leave out the first row."""
    for rows in found:
        each = rows.each()[1:]
        if rows.each():
            data = None if rows.data is None else "".join(f"{row}\n" for row in each).encode()
            yield replace(rows, data=data, each=lambda each=each: each)  # type: ignore[misc]
            break
    yield from found


@dataclass(frozen=True)
class _Texts:
    """Cuts text into rows, by the options of a spec."""

    options: Mapping[str, str]

    @cached_property
    def dialect(self) -> Dialect:
        return Dialect.of(self.options)

    @cached_property
    def _layout(self) -> Any:
        return layout("csv", self.options)

    def over_lines(self, opened: BufferedReader, file: SourceFile) -> Iterator[Rows]:
        """Yield the rows of a file with rows over several lines."""
        grammar = Grammar.of(self.options)
        for text in whole_rows(codecs.pieces(opened, file.coded_path), self.options):
            plain = not self.dialect.comment or self.dialect.comment not in text
            yield Rows(text.encode() if plain else None, lambda text=text: list(grammar.each(text)), spans=True)  # type: ignore[misc]

    def of_file(self, opened: BufferedReader, file: SourceFile) -> Iterator[Rows]:
        """Yield the rows of a file that is not cut."""
        for block in blocks(codecs.pieces(opened, file.coded_path), self._layout):
            yield from self._rows(block.text)

    def of_lines(self, opened: BufferedReader, file: SourceFile, cut: FileSplit) -> Iterator[Rows]:
        """Yield the rows of a split."""
        end = self._layout.end
        encoding = self._layout.encoding
        bounds = Bounds(cut.start, cut.start + cut.length, file.length)
        for lines in read_lines(opened, bounds, end):
            data = lines.data[int(lines.starts[0]) : int(lines.ends[-1])] + (end or b"\n")
            if encoding.upper() in ("UTF-8", "UTF8"):
                yield from self._rows(data)
            else:
                yield from self._rows(_decoded(data, encoding))

    def _rows(self, text: str | bytes) -> Iterator[Rows]:
        """Yield the rows of whole lines, if there are any."""
        data, comment = text.encode() if isinstance(text, str) else text, self.dialect.comment.encode()
        separator = self._layout.separator
        if b"\0" in data:  # without the inspection, UTF-16 that nothing names would be texts
            raise zero_byte()
        if separator is None and b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        end, skipped = (separator or "\n").encode(), (b"\n", comment or b"\n")
        rest = b"" if separator is None else data.replace(end, b"")
        is_odd = b"\r" in rest or b"\n" in rest
        if not data.endswith(end):
            data += end
        lines: list[bytes] | None = None
        if is_odd or end != b"\n" or data.startswith(skipped) or any(b"\n" + each in data for each in skipped):
            lines = [line for line in data.split(end) if line and not (comment and line.startswith(comment))]
            data = b"".join(b"%b\n" % line for line in lines)
        if data:
            yield Rows(
                None if is_odd else data,
                lambda: [_decoded(line, "UTF-8") for line in (data.split(b"\n")[:-1] if lines is None else lines)],
            )


def _decoded(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise BadTextError(f"bytes that are no {encoding}") from error
