"""Gives the positions of rows that are read in Python: offsets of a topic's records, and keys of a table's rows.

Between a kind's reader, which gives the positions as a column, and the task, which commits the last one (protocol/source.py).
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eosingest.protocol.source import Position, PositionKind, Positions


def positions_of(column: pa.Array[Any], *, shared: bool) -> Positions:
    """Return the positions in a column: offsets of BIGINT, keys of DECIMAL(19,0), STRING, or a STRUCT of these."""
    if pa.types.is_integer(column.type):
        return OffsetPositions(column.to_numpy(zero_copy_only=False), shared)
    return KeyPositions(column, shared)


@dataclass(frozen=True)
class OffsetPositions:
    """Positions that are the offsets of source rows (`protocol.source.Positions`). They never decrease; gaps are possible."""

    offsets: npt.NDArray[np.int64]
    shared: bool = False
    kind: PositionKind = PositionKind.OFFSET

    def at(self, row: int) -> Position:
        """Return the offset of a row."""
        return int(self.offsets[row])

    def rows_up_to(self, position: Position) -> int:
        """Return how many rows have this offset or a lower one."""
        assert isinstance(position, int), "offsets are whole numbers"
        return int(np.searchsorted(self.offsets, position, side="right"))

    def slice(self, start: int, end: int) -> OffsetPositions:
        """Return the positions of the rows [start, end)."""
        return OffsetPositions(self.offsets[start:end], self.shared)


@dataclass(frozen=True)
class KeyPositions:
    """Positions that are keys (`protocol.source.Positions`), as texts; `keys` is a column of whole numbers, texts or STRUCTs.

    Whole numbers are DECIMAL(19,0), unlike offsets, and ascend; texts ascend by their UTF-8 bytes, as in Python.
    A key of several columns is a STRUCT and ascends as a tuple does; its position is a list of texts.
    """

    keys: pa.Array[Any]
    shared: bool = False
    kind: PositionKind = PositionKind.KEY

    def at(self, row: int) -> Position:
        """Return the key of a row."""
        key = self._key(row)
        return [str(part) for part in key] if isinstance(key, tuple) else str(key)

    def rows_up_to(self, position: Position) -> int:
        """Return how many rows have this key or a lower one."""
        kind = self.keys.type
        if pa.types.is_struct(kind):
            assert isinstance(position, list), "a key of several columns is a list"
            key: Any = tuple(_value(part, field.type) for part, field in zip(position, kind, strict=True))
        else:
            key = _value(position, kind)
        return bisect.bisect_right(range(len(self.keys)), key, key=self._key)

    def slice(self, start: int, end: int) -> KeyPositions:
        """Return the positions of the rows [start, end)."""
        return KeyPositions(self.keys.slice(start, end - start), self.shared)

    def _key(self, row: int) -> Any:
        key = self.keys[row].as_py()
        return tuple(key.values()) if isinstance(key, dict) else key


def _value(text: object, kind: pa.DataType) -> int | str:
    """Return a part of a position as a value of its column."""
    return int(str(text)) if pa.types.is_decimal(kind) else str(text)
