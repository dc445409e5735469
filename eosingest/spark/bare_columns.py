"""Sends columns unchanged as the parts of records: which specs do so, and how a task makes the records.

A part of python_scan.py: the way straight to the producer, on which no JVM has rows.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.task_contract import Batch
from eosingest.records import checksum
from eosingest.records.encoding import Encoding
from eosingest.spark.corrupt_rows import explained, why_of
from eosingest.spark.record_settings import (
    CHECKSUM,
    CORRUPT,
    HEADER,
    HEADERS,
    HEADERS_TYPE,
    METADATA,
    PARTITION,
    POSITION,
    SPLIT,
    TIMESTAMP,
    RecordSettings,
)
from eosingest.spark.worker import listed_headers, to_batch
from eosingest.spec.expressions import Token, tokens

if TYPE_CHECKING:
    from eosingest.spark.python_scan import ArrowReader, PythonSplit

_BYTES = ("STRING", "BINARY")
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class BareColumns:
    """The source columns that are the records' key, value, headers, timestamp and partition.

    `header_column` has all headers of a record.
    """

    key: str | None
    value: str
    headers: Mapping[str, str]
    timestamp: str | None = None
    partition: str | None = None
    header_column: str | None = None

    @property
    def names(self) -> frozenset[str]:
        """The columns that are sent."""
        named = (self.key, self.value, self.timestamp, self.partition, self.header_column, *self.headers.values())
        return frozenset(name for name in named if name is not None)


def bare_columns(records: RecordSettings, columns: Mapping[str, str]) -> BareColumns | None:
    """Return the columns that a spec sends unchanged as the parts of a record; None for any other spec."""
    if records.where is not None or records.select != ("*",):
        return None
    names = {name.lower(): name for name in columns}
    if len(names) < len(columns):
        return None  # names that differ in case only: Spark decides which is meant
    missing = list[str | Encoding]()

    def bare(expression: str | Encoding | None, kinds: Sequence[str]) -> str | None:
        if expression is None:
            return None
        found = [] if isinstance(expression, Encoding) else tokens(expression)
        name = names.get(found[0].name) if len(found) == 1 and _is_name(found[0]) else None
        if name is None or columns[name] not in kinds:
            missing.append(expression)
        return name

    made = BareColumns(
        bare(records.key, _BYTES),
        bare(records.value, _BYTES) or "",
        {name: bare(text, _BYTES) or "" for name, text in records.headers.items()},
        bare(records.timestamp, ("TIMESTAMP",)),
        bare(records.partition, ("INT",)),
        bare(records.header_column, (HEADERS_TYPE,)),
    )
    return None if missing else made


def _is_name(token: Token) -> bool:
    """Say whether an expression of this token is a column, and no constant."""
    return token.kind == "quoted" or bool(_WORD.fullmatch(token.text) and token.name not in ("null", "true", "false"))


@dataclass(frozen=True)
class StraightReader:
    """Yields bare columns as record columns (`direct.DirectReader`), with the same record hashes as Spark's.

    `position` as in `PythonScan`.
    """

    reader: ArrowReader
    bare: BareColumns
    position: str | None = None

    def read(self, split: PythonSplit, committed: OffsetRecord | None, longest: int) -> Iterator[Batch]:
        """Yield the rows of a split; see `direct.DirectReader`."""
        rows = 0
        for found in self.reader.read(split, committed):
            if len(found):
                made = to_batch(self._records(split.key, found), tuple(self.bare.headers), several=False)
                yield replace(explained(made, why_of(self.reader)), first_row=rows)
                rows += len(found)

    def _records(self, key: int, found: pa.RecordBatch) -> pa.RecordBatch:
        """Return the record columns (record_columns.py) of a batch."""
        values = _as_bytes(found.column(self.bare.value))
        columns = {"value": values, SPLIT: pa.array(np.full(len(found), key, np.int64))}
        keys: Sequence[bytes | None] = [None] * len(found)
        if self.bare.key is not None:
            columns["key"] = _as_bytes(found.column(self.bare.key))
            keys = columns["key"].to_pylist()
        hashes = checksum.record_hashes(zip(keys, values.to_pylist(), strict=True))
        columns[CHECKSUM] = _signed(hashes)
        if self.position is not None:
            columns[POSITION] = found.column(self.position)
        if CORRUPT in found.schema.names:
            columns[CORRUPT] = _as_bytes(found.column(CORRUPT))
        if self.bare.partition is not None:
            columns[PARTITION] = found.column(self.bare.partition)
        metadata = self._metadata_columns(found)
        if metadata:
            columns |= metadata
            columns[METADATA] = _signed(self._metadata(hashes, metadata))
        return pa.RecordBatch.from_pydict(columns)

    def _metadata_columns(self, found: pa.RecordBatch) -> dict[str, pa.Array[Any]]:
        """Return the record columns of headers and timestamp; none where the records have neither."""
        bare = self.bare
        columns = {
            f"{HEADER}{index}": _as_bytes(found.column(name)) for index, name in enumerate(bare.headers.values())
        }
        if bare.header_column is not None:
            columns[HEADERS] = found.column(bare.header_column)
        if bare.timestamp is not None:
            columns[TIMESTAMP] = _milliseconds(found.column(bare.timestamp))
        return columns

    def _metadata(self, hashes: Sequence[int], columns: Mapping[str, pa.Array[Any]]) -> Iterator[int]:
        """Yield the metadata hash of each row, as Spark computes it (record_columns.py)."""
        named = [columns[f"{HEADER}{index}"].to_pylist() for index, _ in enumerate(self.bare.headers)]
        rows = zip(*named, strict=True) if named else itertools.repeat((), len(hashes))
        listed = listed_headers(columns[HEADERS]) if HEADERS in columns else None
        has_timestamp = TIMESTAMP in columns
        times = columns[TIMESTAMP].to_pylist() if has_timestamp else itertools.repeat(None, len(hashes))
        more = listed if listed is not None else itertools.repeat((), len(hashes))
        for found, row, others, time in zip(hashes, rows, more, times, strict=True):
            headers = [*zip(self.bare.headers, row, strict=True), *others]
            yield checksum.metadata_hash(found, headers, time, has_timestamp=has_timestamp)


def _as_bytes(column: pa.Array[Any]) -> pa.Array[Any]:
    """Return a string or binary column as binary, without a copy."""
    if pa.types.is_string(column.type):
        return column.cast(pa.binary())
    return column.cast(pa.large_binary()) if pa.types.is_large_string(column.type) else column


def _milliseconds(column: pa.Array[Any]) -> pa.Array[Any]:
    """Return a column of timestamps as milliseconds since 1970, rounded down as Spark's unix_millis does."""
    if column.type.unit == "ms":
        return column.cast(pa.int64())
    units = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    given = units.is_valid().to_numpy(zero_copy_only=False)
    rounded: pa.Array[Any] = pa.array(units.fill_null(0).to_numpy() // 1000, mask=~given)
    return rounded


def _signed(hashes: Iterable[int]) -> pa.Array[Any]:
    return pa.array(np.fromiter(hashes, np.uint64).view(np.int64))
