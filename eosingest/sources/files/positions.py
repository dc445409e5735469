"""Locates the end of each line of a batch: positions in the bytes of a file, decompressed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eosingest.protocol.source import Position, PositionKind


@dataclass(frozen=True)
class BytePositions:
    """Positions of lines (`protocol.source.Positions`): the byte after each end of line, ascending."""

    ends: npt.NDArray[np.int64]
    kind: PositionKind = PositionKind.BYTES
    shared: bool = False  # a line is one record

    def at(self, row: int) -> Position:
        """Return the byte after a line's end of line."""
        return int(self.ends[row])

    def rows_up_to(self, position: Position) -> int:
        """Return how many lines end at or before a byte."""
        assert isinstance(position, int), "files have no other"
        return int(np.searchsorted(self.ends, position, side="right"))

    def slice(self, start: int, end: int) -> BytePositions:
        """Return the positions of the lines [start, end)."""
        return BytePositions(self.ends[start:end])
