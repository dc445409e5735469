"""The positions of rows that are read in Python and whose source numbers them: the offsets of a topic's records.

Between a kind's reader, which gives the offsets as a column, and the task, which commits the last one (protocol/source.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eosingest.protocol.source import POSITION_KIND_OFFSET, Position


@dataclass(frozen=True)
class OffsetPositions:
    """Positions that are the offsets of source rows (`protocol.source.Positions`). They never decrease; gaps are possible."""

    offsets: npt.NDArray[np.int64]
    shared: bool = False
    kind: str = POSITION_KIND_OFFSET

    def at(self, row: int) -> Position:
        """Return the offset of a row."""
        return int(self.offsets[row])

    def behind(self, position: Position) -> int:
        """Return how many rows have this offset or a lower one."""
        assert isinstance(position, int), "offsets are whole numbers"
        return int(np.searchsorted(self.offsets, position, side="right"))

    def slice(self, start: int, end: int) -> OffsetPositions:
        """Return the positions of the rows [start, end)."""
        return OffsetPositions(self.offsets[start:end], self.shared)
