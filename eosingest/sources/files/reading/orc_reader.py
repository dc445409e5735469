"""Reads ORC files in tasks: the stripes of a split, each as a whole, in batches of a bounded size (columnar_reader.py)."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from io import BufferedReader
from typing import Any

import pyarrow as pa

from eosingest.sources.files.bytes.codecs import DamagedError
from eosingest.sources.files.cuts import FileSplit
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.reading.columnar import NUMBERED, Stored
from eosingest.sources.files.reading.columnar_reader import (
    BATCH_BYTES,
    MOST_ROWS,
    ColumnarReader,
    SchemaColumns,
    Source,
    damaged,
    explained,
    without_columns,
)
from eosingest.sources.files.reading.columnar_values import CORRECTED, EXCEPTION, LEGACY, Calendars
from eosingest.sources.files.reading.orc_columns import leaf, stored_columns
from eosingest.sources.files.reading.orc_footer import OrcFooter, Stripe, read_footer, writer_zone

_JAVA = "ORC_JAVA"


class OpenOrc:
    """An open ORC file: its footer, and its columns as they are `stored`."""

    def __init__(self, source: Source) -> None:
        """Read the footer. Raises DamagedError."""
        from pyarrow import orc  # the driver and workers for other formats load this module without it

        self._source = source
        with explained(source, _kind_of_damage):
            open_file: Any = orc.ORCFile
            self._file = open_file(source)
            self.footer = _footer(self._file)
            version = str(self._file.writer_version)
            self._java = self._file.writer == _JAVA
            self._codec = _codec_of(self._file), self._file.compression_size
            rows, end = self._file.nrows, _end_of_stripes(self._file)
        if self.footer.is_encrypted:
            raise damaged("columns of it are encrypted")
        if rows != sum(stripe.rows for stripe in self.footer.stripes) or not _are_in_turn(self.footer.stripes, end):
            raise damaged("its footer is damaged, or bytes of the file were added or left out")
        try:
            self.stored = stored_columns(self.footer, version)
        except (ValueError, IndexError, RecursionError) as error:
            raise damaged(str(error) if "no structs" in str(error) else "its footer is damaged") from None

    @property
    def positional(self) -> bool:
        """Whether its columns have no names but those that old versions of Hive give to all."""
        return bool(self.stored) and all(column.name.startswith(NUMBERED) for column in self.stored)

    def calendars(self, place: int) -> Calendars:
        """Return those of a stripe's dates, and the zone of its times. Raises DamagedError.

        Java's library writes Julian dates unless the file says otherwise; others do not say what they write.
        """
        by_java = LEGACY if self._java else EXCEPTION
        return Calendars(
            CORRECTED if self.footer.is_proleptic else by_java, zone=self._zone(self.footer.stripes[place])
        )

    def _zone(self, stripe: Stripe) -> str:
        self._source.seek(stripe.start + stripe.length - stripe.footer)
        try:
            return writer_zone(self._source.read(stripe.footer), *self._codec)
        except Exception:
            if self._source.error is not None:
                raise
            raise damaged(f"the footer of its stripe at byte {stripe.start:,} is damaged") from None

    def rows_of(self, place: int, columns: Sequence[str]) -> pa.RecordBatch:
        """Return columns of a stripe, in the file's order. Raises DamagedError."""
        rows = self.footer.stripes[place].rows
        with explained(self._source, _kind_of_damage):
            found: pa.RecordBatch = self._file.reader.read_stripe(place, columns=list(columns))
            if found.schema.names != list(columns):  # the names of fields have dots, and so may those of columns
                found = self._file.reader.read_stripe(place, columns=None)
                names = found.schema.names
                found = found.select([names.index(name) for name in columns])
            found.validate()
        if len(found) != rows:
            raise damaged(f"stripe {place} has {len(found):,} rows, and by its footer {rows:,}")
        return found


def _footer(file: Any) -> OrcFooter:
    try:
        return read_footer(file.reader.serialized_file_tail())
    except (ValueError, UnicodeDecodeError) as error:
        raise damaged("its footer is damaged") from error


def _codec_of(file: Any) -> str:
    try:
        return str(file.compression)
    except pa.ArrowInvalid:  # LZO
        return ""


def _end_of_stripes(file: Any) -> int:
    """Return the byte after the last stripe. The file's statistics, footer, postscript and the latter's length follow."""
    after = file.stripe_statistics_length + file.file_footer_length + file.file_postscript_length + 1
    return int(file.file_length - after)


def _are_in_turn(stripes: Sequence[Stripe], end: int) -> bool:
    starts = [stripe.start for stripe in stripes]
    ends = [stripe.start + stripe.length for stripe in stripes]
    return not stripes or (ends[-1] == end and all(map(operator.le, ends, [*starts[1:], end])))


def _kind_of_damage(text: str) -> str:
    """Return what is wrong, without pyarrow's text, which may hold data."""
    if "out of range for nanosecond" in text:
        return "it has times before 1677-09-22 or after 2262-04-10, which cannot be read"
    if "zoneinfo" in text or "timezone" in text.lower():
        return "the time zone of its times is unknown to this machine: install its package of time zones (tzdata)"
    return "its data or its footer is damaged, or it is cut off"


class _StripeInMemory(Source):
    """As Source, with a part of the file in memory: pyarrow reads a stripe in small pieces, each a request to a store."""

    def __init__(self, opened: BufferedReader) -> None:
        super().__init__(opened)
        self._start, self._held, self._at = 0, b"", 0

    def hold(self, start: int, length: int) -> None:
        """Read a part of the file, which replaces the one that was held."""
        super().seek(start)
        self._start, self._held = start, super().read(length)

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        begin = self._at - self._start
        if begin >= 0 and size >= 0 and begin + size <= len(self._held):
            found = self._held[begin : begin + size]
        else:
            super().seek(self._at)
            found = super().read(size)
        self._at += len(found)
        return found

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a byte."""
        if whence == 0:
            self._at = offset
        else:
            super().seek(self._at)
            self._at = super().seek(offset, whence)
        return self._at

    def tell(self) -> int:
        """Return the byte at which reading continues."""
        return self._at


@dataclass(frozen=True)
class OrcReader(ColumnarReader):
    """Reads the stripes of a split: those that begin in it. `data` names the columns by which files without names are read."""

    data: tuple[str, ...] = ()

    def batches(self, file: SourceFile, source: Source, cut: FileSplit) -> Iterator[pa.RecordBatch]:
        """See `ColumnarReader.batches`."""
        held = _StripeInMemory(source.opened) if file.etag else None
        opened = OpenOrc(held or source)
        named = self._named(opened)
        for place, stripe in enumerate(opened.footer.stripes):
            if not cut.start <= stripe.start < cut.start + cut.length:
                continue
            if held is not None:
                held.hold(stripe.start, stripe.length)
            rules = replace(self.rules, calendars=opened.calendars(place), leaf=leaf)
            columns = SchemaColumns(self, file, named, rules)
            names = [opened.stored[at].name for at in columns.read]
            found = _sliced(opened.rows_of(place, names)) if names else without_columns(stripe.rows)
            for batch in found:
                yield from columns.typed(batch, f"stripe {place}")

    def _named(self, opened: OpenOrc) -> Sequence[Stored]:
        """Return a file's columns, with the schema's names by their places if they have none."""
        if not opened.positional:
            return opened.stored
        if len(opened.stored) > len(self.data):
            raise DamagedError("it has more columns than the schema")
        return [replace(column, name=name) for column, name in zip(opened.stored, self.data, strict=False)]


def _sliced(found: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a stripe's rows in batches of about BATCH_BYTES."""
    size = max(1, min(MOST_ROWS, BATCH_BYTES * len(found) // max(1, found.nbytes)))
    return (found.slice(start, size) for start in range(0, len(found), size))
