"""Reads CSV files in tasks as Arrow columns: a `python_scan.ArrowReader`, whose rows go to the producer or to Spark.

a split ─┬─ lines (bytes/lines.py) ─────────────────────────────┬─▶ without the header ─▶ csv_columns.py ─▶ columns
         ├─ a file that is not cut: its text (text_blocks.py) ──┤
         └─ rows over several lines (whole_csv.py) ─────────────┘
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from io import BufferedReader
from typing import Any

import pyarrow as pa

from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.sources.files.bytes import codecs
from eosingest.sources.files.bytes.lines import BEYOND_BYTES, Bounds, read_lines
from eosingest.sources.files.bytes.text_blocks import BadTextError, blocks, layout
from eosingest.sources.files.cuts import FileSplit, file_split
from eosingest.sources.files.formats.csv_rows import Dialect
from eosingest.sources.files.formats.whole import is_whole
from eosingest.sources.files.formats.whole_csv import Grammar, whole_rows
from eosingest.sources.files.formats.xml.schema import Field
from eosingest.sources.files.listing.partitions import decoded
from eosingest.sources.files.listing.source_file import SourceFile, as_file
from eosingest.sources.files.reading import xml_reader
from eosingest.sources.files.reading.csv_columns import CsvColumns, Rows
from eosingest.sources.files.reading.xml_reader import folder_value
from eosingest.spark.python_scan import PythonSplit
from eosingest.spark.record_columns import CORRUPT


@dataclass(frozen=True)
class CsvReader:
    """Reads a split's rows (`python_scan.ArrowReader`): the columns, the text of corrupt rows, and those of `k=v` folders."""

    options: Mapping[str, str]
    columns: CsvColumns
    folders: tuple[Field, ...] = ()
    decode: Callable[[str], str] = decoded

    def narrowed(self, names: frozenset[str]) -> CsvReader:
        """Return a reader of only these columns; values of others are not checked."""
        folders = tuple(folder for folder in self.folders if folder.name in names)
        return replace(self, columns=self.columns.narrowed(names), folders=folders)

    def read(self, split: PythonSplit, committed: OffsetRecord | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split, including committed ones; see `python_scan.ArrowReader`."""
        file = as_file(split.item)
        beside = [(folder, folder_value(file, folder, self.decode)) for folder in self.folders]
        names = [*self.columns.names, CORRUPT, *(folder.name for folder in self.folders)]
        for rows in rows_of(file, file_split(split.planned.split), self.options):
            with told(file):
                columns, corrupt = self.columns.decode(rows)
            more = [pa.array([value] * len(corrupt), xml_reader.arrow_type(folder.type)) for folder, value in beside]
            yield pa.RecordBatch.from_arrays([*columns, corrupt, *more], names=names)


def rows_of(file: SourceFile, cut: FileSplit, options: Mapping[str, str]) -> Iterator[Rows]:
    """Yield the rows of a split, without the header. Raises ChangedError if the file has changed since it was listed.

    Raises FatalError for text that is not of the encoding, or not of the file's codec; an OSError may be temporary.
    """
    texts = _Texts(options)
    until = None if not file.splittable else cut.start + cut.length + BEYOND_BYTES
    with xml_reader.opened_to_read(file, until) as opened:
        if texts.is_whole:
            found = texts.over_lines(opened, file)
        elif file.splittable:
            found = texts.of_lines(opened, file, cut)
        else:
            found = texts.of_file(opened, file)
        yield from (_without_first(found) if texts.dialect.header and cut.start == 0 else found)


@contextmanager
def told(file: SourceFile) -> Iterator[None]:
    """Raise FatalError for text that cannot be decoded."""
    try:
        yield
    except (BadTextError, UnicodeDecodeError) as bad:
        raise xml_reader.bad_data(file, bad) from bad


def _without_first(found: Iterator[Rows]) -> Iterator[Rows]:
    """Leave out the first row."""
    for rows in found:
        each = rows.each
        data = rows.data
        if data is not None and rows.spans:
            data = "".join(f"{row}\n" for row in each()[1:]).encode()
        elif data is not None:
            data = data[data.index(b"\n") + 1 :]
        if data != b"":
            yield replace(rows, data=data, each=lambda each=each: each()[1:])  # type: ignore[misc]
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
    def is_whole(self) -> bool:
        return is_whole("csv", self.options)

    @cached_property
    def _layout(self) -> Any:
        return layout("csv", self.options)

    def over_lines(self, opened: BufferedReader, file: SourceFile) -> Iterator[Rows]:
        """Yield the rows of a file with rows over several lines."""
        grammar = Grammar.of(self.options)
        for text in whole_rows(codecs.pieces(opened, file.coded_path), self.options):
            each = partial(_each, grammar, text)
            plain = not self.dialect.comment or self.dialect.comment not in text
            yield Rows(text.encode() if plain else None, each, spans=True)

    def of_file(self, opened: BufferedReader, file: SourceFile) -> Iterator[Rows]:
        """Yield the rows of a file that is not cut."""
        for block in blocks(codecs.pieces(opened, file.coded_path), self._layout):
            yield from self._rows(block.text)

    def of_lines(self, opened: BufferedReader, file: SourceFile, cut: FileSplit) -> Iterator[Rows]:
        """Yield the rows of a split."""
        end = self._layout.end
        encoding = self._layout.encoding
        bounds = Bounds(cut.start, cut.start + cut.length, file.length)
        for lines in read_lines(opened, bounds, None if end is None else ord(end)):
            data = lines.data[int(lines.starts[0]) : int(lines.ends[-1])] + (end or b"\n")
            if encoding.upper() in ("UTF-8", "UTF8"):
                yield from self._rows(data)
            else:
                yield from self._rows(_decoded(data, encoding))

    def _rows(self, text: str | bytes) -> Iterator[Rows]:
        """Yield the rows of whole lines, if there are any."""
        separator, data = self._layout.separator, text.encode() if isinstance(text, str) else text
        comment = self.dialect.comment.encode()
        if separator is None and b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        is_odd = separator is not None and (b"\r" in data or (separator != "\n" and b"\n" in data))
        if is_odd or (separator is not None and separator != "\n"):
            lines = data.split(separator.encode())
            each = [line for line in lines if line and not (comment and line.startswith(comment))]
            data = b"\n".join([*each, b""])
            if each:
                yield Rows(None if is_odd else data, lambda: [line.decode() for line in each])
            return
        if not data.endswith(b"\n"):
            data += b"\n"
        if data.startswith((b"\n", comment or b"\n")) or b"\n\n" in data or (comment and b"\n" + comment in data):
            kept = [line for line in data.split(b"\n") if line and not (comment and line.startswith(comment))]
            data = b"\n".join([*kept, b""]) if kept else b""
        if data:
            yield Rows(data, lambda: data.decode().split("\n")[:-1])


def _decoded(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise BadTextError(f"bytes that are no {encoding}") from error


def _each(grammar: Grammar, text: str) -> list[str]:
    return [row for row, _ in grammar.each(text)]
