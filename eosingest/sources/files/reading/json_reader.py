"""Reads JSON in tasks as Arrow columns: a `python_scan.ArrowReader`, whose rows go straight to the producer or to Spark.

a split ─▶ bytes/lines.py ────────────┬─▶ lines in UTF-8 ─▶ json_decoder.py ─▶ json_columns.py ─▶ columns
a file as one split ─▶ text_blocks.py ┤                                                     + folders, corrupt rows
a document (multiLine) ─▶ elements ───┘
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BufferedIOBase

import pyarrow as pa
from pyspark.sql.types import DataType, DateType, StructType, TimestampNTZType, TimestampType

from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.sources.files.bytes.codecs import PIECE_BYTES, Decompressed, codec_of
from eosingest.sources.files.bytes.lines import BEYOND_BYTES, Bounds, read_lines
from eosingest.sources.files.bytes.text_blocks import BadTextError, Layout, blocks, layout
from eosingest.sources.files.cuts import FileSplit, file_split
from eosingest.sources.files.formats.entry import is_multi_line
from eosingest.sources.files.formats.whole_json import check_json
from eosingest.sources.files.listing.source_file import SourceFile, as_file
from eosingest.sources.files.reading.folder_columns import FolderColumns, appended
from eosingest.sources.files.reading.json_columns import JsonColumns
from eosingest.sources.files.reading.json_decoder import JsonDecoder
from eosingest.sources.files.reading.open_file import opened_to_read
from eosingest.spark.python_scan import PythonSplit

_BATCH_BYTES = 1 << 20
_PATTERNS: Mapping[str, type[DataType]] = {
    "dateformat": DateType,
    "timestampformat": TimestampType,
    "timestampntzformat": TimestampNTZType,
}


@dataclass(frozen=True)
class JsonSettings:
    """How the files are written, by the options of a spec. `whole`: a file is a document."""

    layout: Layout
    whole: bool = False
    single_quotes: bool = True
    words: bool = True
    patterns: Mapping[type[DataType], str] = field(default_factory=dict)

    @staticmethod
    def of(options: Mapping[str, str]) -> JsonSettings:
        """Return the settings that the options mean."""
        lower = {name.lower(): value for name, value in options.items()}
        return JsonSettings(
            layout("json", options),
            is_multi_line(options),
            lower.get("allowsinglequotes", "true").lower() == "true",
            lower.get("allownonnumericnumbers", "true").lower() == "true",
            {kind: lower[name] for name, kind in _PATTERNS.items() if name in lower},
        )

    @property
    def of_inspection(self) -> Mapping[str, str]:
        """The options of `check_json`."""
        return {"encoding": self.layout.encoding, "allowNonNumericNumbers": str(self.words)}

    @property
    def is_utf_8(self) -> bool:
        """Whether the encoding is UTF-8."""
        return codecs.lookup(self.layout.encoding).name == "utf-8"


@dataclass(frozen=True)
class JsonReader:
    """Reads the rows of splits (`python_scan.ArrowReader`), with a column of corrupt rows (`record_settings.CORRUPT`).

    `folders` are the columns of `k=v` folders, after those of the `schema`. `names_once`, `folder_names`: see `JsonDecoder`.
    """

    schema: StructType
    settings: JsonSettings
    folders: FolderColumns = field(default_factory=FolderColumns)
    names_once: bool = False
    folder_names: tuple[str, ...] = ()

    def narrowed(self, names: frozenset[str]) -> JsonReader:
        """Return a reader of only these columns. A value of another column is not checked."""
        fields = [each for each in self.schema.fields if each.name in names]
        return replace(self, schema=StructType(fields), folders=self.folders.narrowed(names))

    def read(self, split: PythonSplit, committed: OffsetRecord | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split, including committed ones; see `python_scan.ArrowReader`."""
        file, cut = as_file(split.item), file_split(split.planned.split)
        values = self.folders.of(file)
        settings = self.settings
        decoder = JsonDecoder(
            self.schema,
            single_quotes=settings.single_quotes,
            words=settings.words,
            names_once=self.names_once,
            folder_names=self.folder_names,
        )
        columns = JsonColumns(self.schema, settings.patterns, settings.words)
        for texts in texts_of(file, cut, settings, decoder):
            rows = decoder.rows(texts, arrays=not settings.whole)
            if rows.values:
                yield appended(columns.batch(rows), values)

    def why(self, texts: Sequence[bytes]) -> list[str]:
        """See `corrupt_rows.Explaining`."""
        from eosingest.sources.files.reading.audit_json import JsonRows

        rows = JsonRows(self.schema, self.settings, folder_names=self.folder_names)
        return [rows.why(text) for text in texts]


def texts_of(
    file: SourceFile, cut: FileSplit, settings: JsonSettings, decoder: JsonDecoder
) -> Iterator[Sequence[bytes]]:
    """Yield the lines of a split, or the elements of a document, in UTF-8. Raises the errors of `opened_to_read`."""
    is_plain = codec_of(file.coded_path) is None
    end = cut.start + cut.length
    with opened_to_read(file, end + BEYOND_BYTES if is_plain else None) as opened:
        # It closes both when it is dropped.
        content = opened if is_plain else Decompressed(opened, file.coded_path)
        bounds = Bounds(cut.start, end, file.length) if is_plain else Bounds(0, None)
        yield from _texts(content, bounds, settings, decoder)


def _texts(
    content: BufferedIOBase, bounds: Bounds, settings: JsonSettings, decoder: JsonDecoder
) -> Iterator[Sequence[bytes]]:
    if settings.whole:
        text = content.read()
        if decoder.names_once:  # nothing has inspected the document
            check_json([text], settings.of_inspection)
        yield from _batches(decoder.elements(_in_utf_8([text], settings)[0]))
    elif settings.layout.ends_at_a_byte:
        separator = settings.layout.end
        for lines in read_lines(content, replace(bounds, longest=sys.maxsize), separator):
            yield _in_utf_8(lines.values(separator), settings)
    else:
        # Bytes that are not UTF-8 are kept: their line is a corrupt row.
        found = replace(settings.layout, errors="surrogateescape") if settings.is_utf_8 else settings.layout
        for block in blocks(iter(lambda: content.read(PIECE_BYTES), b""), found):
            yield [line.encode(errors="surrogateescape") for line in found.lines(block.text)]


def _in_utf_8(texts: list[bytes], settings: JsonSettings) -> list[bytes]:
    if settings.is_utf_8:
        return texts
    encoding = settings.layout.encoding
    try:
        return [text.decode(encoding).encode() for text in texts]
    except UnicodeDecodeError as error:
        raise BadTextError(f"bytes that are no {encoding}") from error


def _batches(texts: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Yield the texts in pieces of about _BATCH_BYTES."""
    begin, length = 0, 0
    for place, text in enumerate(texts):
        length += len(text)
        if length >= _BATCH_BYTES:
            yield texts[begin : place + 1]
            begin, length = place + 1, 0
    yield texts[begin:]
