"""Source rows of which an expression makes several records, and the positions that a reader of them gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eosingest.protocol.source import POSITION_KIND_OFFSET, Position


@dataclass(frozen=True)
class RowOffsets:
    """The offset of each record's source row (`protocol.source.Positions`), as a topic's reader has them: there may be gaps."""

    offsets: npt.NDArray[np.int64]
    shared: bool = True
    kind: str = POSITION_KIND_OFFSET

    def at(self, row: int) -> Position:
        return int(self.offsets[row])

    def behind(self, position: Position) -> int:
        assert isinstance(position, int)
        return int(np.searchsorted(self.offsets, position, side="right"))

    def slice(self, start: int, end: int) -> RowOffsets:
        return RowOffsets(self.offsets[start:end], self.shared, self.kind)


def joined(first: RowOffsets, second: RowOffsets) -> RowOffsets:
    """Put those of two batches into one. Between splits they may go back: nobody asks beyond a split."""
    return RowOffsets(np.concatenate((first.offsets, second.offsets)), first.shared, first.kind)
